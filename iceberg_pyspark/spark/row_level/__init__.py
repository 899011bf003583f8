"""DELETE, UPDATE and MERGE as Spark jobs.

An operation pins one snapshot (`target.py`) and builds one DataFrame of changes
(`change_frame.py`). One job runs it (`row_level_job.py`): its tasks write the new rows and collect
the positions of old rows (`table/row_level/change_task.py`). The driver merges the results, writes
the deletes (`table/commits/row_deletes.py`) and commits (`row_changes/row_commit.py`).
"""
