"""Found by Spark on start, as any top-level module named `pyspark_*`: brings `iceberg-py`."""

from iceberg_pyspark.spark.data_source.source import IcebergDataSource as DefaultSource

__all__ = ["DefaultSource"]
