"""The layer that knows pyspark: it translates and delegates, and has no rules of Iceberg."""
