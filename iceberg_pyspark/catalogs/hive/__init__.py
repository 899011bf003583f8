"""A catalog in a Hive metastore."""
