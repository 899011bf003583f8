"""The answers of a catalog of Spark's SQL."""
