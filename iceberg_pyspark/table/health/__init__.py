"""The health of a table: what its metadata and manifests tell, and what maintenance would gain.

`figures.py` has the values, `examination.py` finds those of files, `gains.py` asks the procedures,
`report_text.py` shows them to a person, `report.py` is what a table gives.
"""
