"""Apache Iceberg for PySpark, with `pip install` and nothing else."""
