"""`python -m iceberg_pyspark.doctor` shows which features a new Spark session has, and why.

Run the module with the Python, the environment and the settings of your application (also by
`spark-submit --conf ... doctor.py`). The module creates a session with these settings, installs
Iceberg and prints `IcebergSession.describe()`.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Describe a new session; return 0 if nothing is missing, 1 if anything is, 2 without Spark."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - it may not be there: that is said
    except ImportError as e:
        print(f"no Spark here: {e}; pip install 'iceberg-pyspark[spark]'", file=sys.stderr)
        return 2
    # these need pyspark
    from iceberg_pyspark.spark.data_source.worker_python import (  # noqa: PLC0415
        worker_python_problem,
    )
    from iceberg_pyspark.spark.session import install  # noqa: PLC0415

    try:
        spark = SparkSession.builder.appName("iceberg-pyspark doctor").getOrCreate()
    except Exception as e:  # noqa: BLE001 - whatever keeps Spark from starting is the answer
        print(f"Spark does not start: {e}", file=sys.stderr)
        return 2
    try:
        session = install(spark)
        print(session.describe())
        is_complete = session.bridge is not None and not session.bridge.missing_features
        return 0 if is_complete and worker_python_problem(spark) is None else 1
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
