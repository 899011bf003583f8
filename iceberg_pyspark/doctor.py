"""`python -m iceberg_pyspark.doctor` shows which features a new Spark session has, and why.

Run the module with the Python, the environment and the settings of your application (also by
`spark-submit --conf ... doctor.py`). The module creates a session with these settings, installs
Iceberg and prints `IcebergSession.describe()`.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Describe a new session; return 0 if no feature is missing, 1 if one is, 2 without Spark."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - it may not be there: that is said
    except ImportError as e:
        print(f"no Spark here: {e}; pip install 'iceberg-pyspark[spark]'", file=sys.stderr)
        return 2
    from iceberg_pyspark.spark.session import install  # noqa: PLC0415 - needs pyspark

    try:
        spark = SparkSession.builder.appName("iceberg-pyspark doctor").getOrCreate()
    except Exception as e:  # noqa: BLE001 - whatever keeps Spark from starting is the answer
        print(f"Spark does not start: {e}", file=sys.stderr)
        return 2
    try:
        session = install(spark)
        print(session.describe())
        return 0 if session.bridge is not None and not session.bridge.missing_features else 1
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
