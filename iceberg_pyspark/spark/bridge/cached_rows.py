"""Rows that Spark has cached of a table, which become stale when the table changes.

The JVM reads them again after Spark's own statements. Procedures, methods of `SparkTable` and saves
by name are not Spark statements; they call `recache_table` after a commit.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException

from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.bridge.py4j_names import Py4JError
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.sql_text.names import quoted_name

_log = get_logger(__name__)


def recache_table(bridge: Bridge, table: Sequence[str], branch: str | None = None) -> None:
    """Let Spark read the cached rows of a changed table again when they are needed next.

    `table` is the full name, which begins with the catalog. The commit is done, so a failure is
    only logged.
    """
    name = tuple(table) if branch in (None, MAIN) else (*table, f"branch_{branch}")
    try:
        bridge.recache_table(name)
    except (PySparkException, Py4JError):
        text = quoted_name(name)
        _log.warning(
            "%s was changed, but Spark could not read its cached rows again: run REFRESH TABLE %s",
            text,
            text,
            exc_info=True,
        )
