"""The command `iceberg-py`: tables and catalogs at a terminal and in scripts.

`application.py` registers the commands, `invocation.py` has what all commands share, `output.py`
prints results. Commands import slow modules only when they need them.
"""
