"""Found by Spark on start (any top-level module named `pyspark_*`): brings the data source `iceberg-py`."""
