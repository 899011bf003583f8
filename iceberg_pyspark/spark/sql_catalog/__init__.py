"""A catalog for Spark SQL."""
