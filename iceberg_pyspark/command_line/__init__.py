"""The command `iceberg-py`: tables and catalogs at a terminal and in scripts.

`application.py` registers the commands, `invocation.py` contains code that all commands share, and
`output.py` prints results. Commands import slow modules only when needed.
"""
