"""Glue to pyspark: translates and delegates; no Iceberg rule lives here."""
