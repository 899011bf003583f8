"""Settings of a session, for as long as a test needs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

NOT_ADAPTIVE = {"spark.sql.adaptive.enabled": "false"}
"""The plan is whole before anything has run."""

JOINS_OF_GROUPS = NOT_ADAPTIVE | {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
}
"""With these Spark joins tables that are partitioned alike without a shuffle."""


@contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """A session with other settings; at the end it has those of before."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
