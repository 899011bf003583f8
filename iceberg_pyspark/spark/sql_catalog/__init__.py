"""The catalog for Spark SQL."""
