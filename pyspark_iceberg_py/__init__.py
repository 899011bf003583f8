"""Found by Spark on start (any top-level module named `pyspark_*`): brings the data source `iceberg-py`."""

from iceberg_pyspark.spark.data_source import IcebergDataSource as DefaultSource

__all__ = ["DefaultSource"]
