"""Rows that Spark has cached of a table, which become stale when the table changes.

Spark reads them anew after its own statements. A procedure, a method of `SparkTable` and a save by
name are no such statements, and say here what they have changed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.sql_text.names import quoted_name

_log = logging.getLogger(__name__)


def read_cached_anew(spark: SparkSession, table: Sequence[str], branch: str | None = None) -> None:
    """Let Spark read the cached rows of a changed table anew when they are needed next.

    `table` is the full name, which begins with the catalog. The commit is done, so a failure is
    only logged.
    """
    names = [tuple(table)]
    if branch not in (None, MAIN):
        names.append((*table, f"branch_{branch}"))
    for name in map(quoted_name, names):
        try:
            spark.catalog.refreshTable(name)
        except (PySparkException, Py4JError):
            _log.warning(
                "%s was changed, but Spark could not refresh its cached rows: run REFRESH TABLE %s",
                name,
                name,
                exc_info=True,
            )
