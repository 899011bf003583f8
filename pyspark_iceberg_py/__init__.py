"""The module that makes `iceberg-py` available: Spark imports all top-level `pyspark_*` modules."""

from iceberg_pyspark.spark.data_source.source import IcebergDataSource as DefaultSource

__all__ = ["DefaultSource"]
