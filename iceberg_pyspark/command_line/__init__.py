"""The command `iceberg-py`: tables and catalogs at a terminal and in scripts.

`application.py` has the commands by name, `invocation.py` what every command is given, `output.py`
how answers are printed. What takes long to import is imported by the command that needs it.
"""
