"""Reports the health of a table, from metadata and manifests, and the gains of maintenance.

`figures.py` defines the values, `examination.py` computes those of files, `gains.py` asks the
procedures, `report_text.py` formats a report for people, `examine.py` defines the report.
"""
