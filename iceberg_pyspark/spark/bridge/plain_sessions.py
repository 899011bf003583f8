"""Calls of the JVM for sessions that may have no Iceberg yet: settings, and Python data sources."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource

from iceberg_pyspark.redaction import get_logger

_log = get_logger(__name__)


def session_settings(session: SparkSession) -> list[tuple[str, str]]:
    """Return the names and values of a session's settings; none if the session is stopped.

    pyspark's map of them takes some calls of the JVM for each setting.
    """
    if session._sc._jsc is None:
        return []
    text = session._jsparkSession.conf().getAll().mkString("\n")
    return [line.partition(" -> ")[::2] for line in text.splitlines()]


def has_alias(frame: DataFrame) -> bool:
    """Return whether a DataFrame of any session has an alias, or is a table."""
    plan = getattr(frame, "_plan", None)
    if plan is not None:
        # Under Spark Connect the client has the plan.
        return type(plan).__name__ in ("SubqueryAlias", "Read")
    analyzed = frame._jdf.queryExecution().analyzed()
    return bool(analyzed.getClass().getSimpleName() == "SubqueryAlias")


_JAVA_CLASS = "org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource"


def register_unless_found(spark: SparkSession, source: type[DataSource]) -> None:
    """Register a data source in a classic session if Spark, which searches now, does not find it.

    `spark.dataSource.register` would refuse the name: once Iceberg has been installed, the JVM has
    a class of this name, which needs the Python data source.
    """
    name = source.name()
    try:
        from pyspark.sql.udf import _wrap_function  # noqa: PLC0415 - internal to Spark

        manager = spark._jsparkSession.sessionState().dataSourceManager()
        if not manager.dataSourceExists(name):
            java_class = getattr(spark.sparkContext._jvm, _JAVA_CLASS)
            python_class = _wrap_function(spark.sparkContext, source)
            manager.registerDataSource(name, java_class(python_class))
    except Exception as e:  # noqa: BLE001 - whatever this release of Spark lacks
        _log.warning("Spark does not find the format %s, and it cannot be registered: %s", name, e)
