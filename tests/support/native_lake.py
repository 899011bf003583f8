"""Sessions with Iceberg in them: our catalog `lake` over the tables of Java's, or one alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark.session import IcebergSession, install
from tests.support.oracle import Oracle
from tests.support.rows import spark_rows


@contextmanager
def native_lake(oracle: Oracle) -> Iterator[Oracle]:
    """The oracle's session with our catalog `lake` in it, installed until the end."""
    conf = {
        "spark.sql.catalog.lake": "iceberg_pyspark",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(oracle.warehouse),
    }
    for key, value in conf.items():
        oracle.spark.conf.set(key, value)
    session = install(oracle.spark)
    assert session.is_native
    try:
        yield oracle
    finally:
        session.uninstall()


@contextmanager
def sqlite_lake(spark: SparkSession, folder: Path, name: str) -> Iterator[IcebergSession]:
    """A session with a catalog of that name on SQLite, whose namespace `db` is empty."""
    prefix = f"spark.sql.catalog.{name}"
    conf = {
        prefix: "iceberg_pyspark",
        f"{prefix}.type": "sql",
        f"{prefix}.uri": f"sqlite:///{folder / 'catalog.db'}",
        f"{prefix}.warehouse": str(folder),
    }
    for key, value in conf.items():
        spark.conf.set(key, value)
    session = install(spark)
    assert session.is_native
    spark.sql(f"create namespace {name}.db")
    yield session
    session.uninstall()
    for key in conf:
        spark.conf.unset(key)


def same_rows(lake: Oracle, query: str) -> str:
    """Compare a query of {t} on both catalogs; the plan of ours, as text."""
    ours = lake.spark.sql(query.format(t="lake"))
    plan = plan_of(ours)
    java = lake.spark.sql(query.format(t="java_hadoop"))
    assert spark_rows(ours.collect()) == spark_rows(java.collect())
    return plan


def plan_of(frame: DataFrame) -> str:
    """What Spark will carry out, as text."""
    return str(frame._jdf.queryExecution().executedPlan().toString())
