"""Readers and writers of Parquet, ORC and Avro files."""
