"""Serve Iceberg tables to SQL clients and BI tools: Spark's Thrift server, with this package.

    spark-submit --conf spark.sql.catalog.lake=iceberg_pyspark \\
        --conf spark.sql.catalog.lake.warehouse=/data/warehouse \\
        jobs/thrift_server.py --port 10000

The catalogs are those of Spark's configuration. The server asks for no password: whoever reaches
the port can do what the server can. SIGTERM ends it.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import install

_SETTING = "spark.hadoop.hive.server2.thrift"
_SECONDS_BETWEEN_LOOKS = 2


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    parser.add_argument("--port", type=int, default=10000, help="the port to listen on")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    options = parse_arguments(argv)
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    _keep_classes()
    spark = (
        SparkSession.builder.appName("thrift_server")
        .config(f"{_SETTING}.bind.host", options.host)
        .config(f"{_SETTING}.port", str(options.port))
        .getOrCreate()
    )
    install(spark)
    try:
        # clients that name no namespace begin with USE default
        spark.sql("CREATE NAMESPACE IF NOT EXISTS default")
    except PySparkException as e:
        print(f"clients must name a namespace when they connect: {e}", file=sys.stderr)
    server = _start(spark)
    print(f"listening on {options.host}:{options.port}", flush=True)
    try:
        while not ending.wait(_SECONDS_BETWEEN_LOOKS):
            if spark.sparkContext._jsc.sc().isStopped():
                return 1
        server.stop()
        spark.stop()
    except (OSError, Py4JError):
        print("Spark ended", file=sys.stderr)  # as spark-submit does when it is told to end
        return 1
    return 0


def _keep_classes() -> None:
    """Give the driver's JVM a class loader that Hive does not close when a client goes."""
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    thread = jvm.java.lang.Thread.currentThread()
    loader = jvm.org.apache.spark.sql.internal.NonClosableMutableURLClassLoader
    thread.setContextClassLoader(loader(thread.getContextClassLoader()))


def _start(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    servers = jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
    return servers.startWithContext(spark._jsparkSession.sqlContext())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
