"""DELETE, UPDATE and MERGE: rows changed where they lie, as jobs of Spark's own.

An operation pins one snapshot (`target.py`) and makes one DataFrame of changes (`change_frame.py`).
One job runs it: its tasks write the new rows and gather the positions of the rows that go
(`change_task.py`). The driver unites what they found (`touched_rows.py`), writes the deletes
(`table/changes/row_deletes.py`) and commits (`run.py`).
"""
