"""The settings of a session in one call of the JVM, for sessions that may have no Iceberg yet."""

from __future__ import annotations

from pyspark.sql import SparkSession


def session_settings(session: SparkSession) -> list[tuple[str, str]]:
    """Return the names and values of a session's settings; none if the session is stopped.

    pyspark's map of them takes some calls of the JVM for each setting.
    """
    if session._sc._jsc is None:
        return []
    text = session._jsparkSession.conf().getAll().mkString("\n")
    return [line.partition(" -> ")[::2] for line in text.splitlines()]
