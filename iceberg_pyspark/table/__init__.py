"""Table, Scan and Transaction: the shell that joins catalogs, planning, rows and commits."""
