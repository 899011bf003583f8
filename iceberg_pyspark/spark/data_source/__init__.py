"""The format `iceberg-py` as Spark's Python data source: options, reads, writes."""
