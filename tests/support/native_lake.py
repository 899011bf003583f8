"""Sessions with Iceberg installed: our catalog `lake` on Java's tables, or a catalog on SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark.session import IcebergSession, install
from tests.support.oracle import Oracle
from tests.support.readings import java_rows
from tests.support.rows import spark_rows


@contextmanager
def native_lake(oracle: Oracle) -> Iterator[Oracle]:
    """Install our catalog `lake` in the oracle's session until the end of the block."""
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


def sqlite_conf(name: str, folder: Path, warehouse: Path | None = None) -> dict[str, str]:
    """Return the settings of a catalog of ours on SQLite, by default with its tables beside it."""
    prefix = f"spark.sql.catalog.{name}"
    return {
        prefix: "iceberg_pyspark",
        f"{prefix}.type": "sql",
        f"{prefix}.uri": f"sqlite:///{folder / 'catalog.db'}",
        f"{prefix}.warehouse": str(warehouse or folder),
    }


@contextmanager
def sqlite_lake(spark: SparkSession, folder: Path, name: str) -> Iterator[IcebergSession]:
    """Yield a session with a catalog of this name on SQLite, whose namespace `db` is empty."""
    conf = sqlite_conf(name, folder)
    for key, value in conf.items():
        spark.conf.set(key, value)
    session = install(spark)
    assert session.is_native
    spark.sql(f"create namespace {name}.db")
    yield session
    session.uninstall()
    for key in conf:
        spark.conf.unset(key)


def with_session_catalog(session: SparkSession, folder: Path) -> SparkSession:
    """Configure `spark_catalog` of a session as a catalog on SQLite; return the session."""
    for key, value in sqlite_conf("spark_catalog", folder, folder / "ours").items():
        session.conf.set(key, value)
    return session


@contextmanager
def session_catalog(spark: SparkSession, folder: Path) -> Iterator[SparkSession]:
    """Yield a new session whose `spark_catalog` was configured before Iceberg was installed."""
    session = with_session_catalog(spark.newSession(), folder)
    installed = install(session)
    yield session
    installed.uninstall()


def same_rows(lake: Oracle, query: str) -> str:
    """Assert that a query on {t} returns the same rows in both catalogs; return our plan."""
    ours = lake.spark.sql(query.format(t="lake"))
    plan = plan_of(ours)
    java = lake.spark.sql(query.format(t="java_hadoop"))
    assert spark_rows(ours.collect()) == java_rows(lake, java)
    return plan


def plan_of(frame: DataFrame) -> str:
    """Return the plan that Spark will execute, as text."""
    return str(frame._jdf.queryExecution().executedPlan().toString())
