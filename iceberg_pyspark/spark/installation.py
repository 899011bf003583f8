"""The beginning of `install(spark)`: the JVM loads the Java classes while Python imports.

Both take about half a second in a new process, and neither waits for the other. If this package
was imported before Spark's JVM started, Python has imported by then: see
`spark/bridge/early_imports.py`.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from iceberg_pyspark.spark.session import IcebergSession


def install(spark: SparkSession) -> IcebergSession:
    """Make Iceberg tables native to a classic session; a repeated call returns the same object.

    If the bridge cannot be installed (Spark Connect, a driver without py4j or Janino), one log line
    says why, and the portable data source still works.
    """
    if f"{__package__}.session" not in sys.modules:
        threading.Thread(target=_load_classes, args=(spark,), daemon=True).start()
    from iceberg_pyspark.spark import session  # noqa: PLC0415 - the module names the reason

    return session.install(spark)


def _load_classes(spark: SparkSession) -> None:
    """Load the classes into the session's JVM, unless it has them."""
    # `session.install` does the same, finds the classes or raises the error.
    with suppress(Exception):
        from iceberg_pyspark.spark.bridge.jvm import Bridge  # noqa: PLC0415

        Bridge(spark)
