"""The session of the other tests; test_processes.py tests clusters and servers."""

from __future__ import annotations

import datetime as dt

from pyspark.sql import SparkSession


def test_a_local_session_counts_and_speaks_utc(spark: SparkSession) -> None:
    assert spark.range(100).count() == 100
    noon = spark.sql("SELECT TIMESTAMP '2026-01-01 12:00:00 UTC' AS ts").collect()[0].ts
    assert noon == dt.datetime(2026, 1, 1, 12)
