"""Table, Scan and Transaction: connects catalogs, planning, rows and commits."""
