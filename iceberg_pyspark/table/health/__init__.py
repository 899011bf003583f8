"""Reports the health of a table, from metadata and manifests, and the gains of maintenance.

`figures.py` defines the values, `examination.py` computes those of files, `health_report.py` asks
the procedures and defines the report, `report_text.py` formats a report for people.
"""
