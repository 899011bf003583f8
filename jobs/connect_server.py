"""Serve Iceberg tables to clients of Spark Connect: a server whose driver is in Python.

    $SPARK_HOME/sbin/spark-daemon.sh submit iceberg-connect 1 \\
        --conf spark.sql.catalog.lake=iceberg_pyspark \\
        --conf spark.sql.catalog.lake.warehouse=/data/warehouse jobs/connect_server.py

`spark-submit` starts it too, in the foreground. The port and all other settings are Spark's. The
catalogs are those of Spark's configuration. SIGTERM, or `spark-daemon.sh stop`, ends it.
"""

from __future__ import annotations

import signal
import sys
import threading

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from iceberg_pyspark import install

_PLUGINS, _PLUGIN = "spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin"
_SECONDS_BETWEEN_LOOKS = 2


def main() -> int:
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    # as Spark's own server, which listens when its context starts
    spark = SparkSession.builder.appName("Spark Connect server").config(_PLUGINS, _PLUGIN)
    session = install(spark.getOrCreate())
    print(session, flush=True)
    try:
        while not ending.wait(_SECONDS_BETWEEN_LOOKS):
            if session.spark.sparkContext._jsc.sc().isStopped():
                return 1
        session.spark.stop()
    except (OSError, Py4JError):
        print("Spark ended", file=sys.stderr)  # as spark-submit does when it is told to end
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
