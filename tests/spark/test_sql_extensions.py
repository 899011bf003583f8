"""Iceberg's ALTER TABLE statements in `spark.sql`, with and without our parser before Spark's.

`tests/interop/test_sql_extensions.py` compares each statement with Iceberg's own extensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import install
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge import features
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spark.spark_table import SparkTable
from tests.support.native_lake import sqlite_lake

SETTINGS = ("", ".type", ".uri", ".warehouse")


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("lake"), "lake") as session:
        yield session


def create_table(spark: SparkSession, lake: IcebergSession, name: str) -> SparkTable:
    spark.sql(f"create table lake.db.{name} (id int not null, ts timestamp, s string)")
    spark.sql(f"insert into lake.db.{name} values (1, timestamp '2020-01-02 03:04:05', 'a')")
    return lake.table(f"lake.db.{name}")


def parser_of(spark: SparkSession) -> str:
    return str(spark._jsparkSession.sessionState().sqlParser().getClass().getName())


def configure(other: SparkSession, spark: SparkSession) -> None:
    for key in SETTINGS:
        name = f"spark.sql.catalog.lake{key}"
        other.conf.set(name, str(spark.conf.get(name)))


def test_every_statement(spark: SparkSession, lake: IcebergSession) -> None:
    table = create_table(spark, lake, "every")
    first = table.current_snapshot
    assert first is not None
    for statement in (
        "add partition field days(ts) as day",
        "-- first, an order\n write ordered by bucket(4, id), s desc;",
        "set identifier fields id",
        f"create branch b as of version {first.snapshot_id} retain 7 days",
        "create tag `the tag`",
        "replace partition field day with hours(ts)",
    ):
        frame = spark.sql(f"ALTER TABLE lake.db.every {statement}")
        assert (frame.columns, frame.collect()) == ([], [])
    table.refresh()
    assert [(f.name, str(f.transform)) for f in table.spec.fields] == [("ts_hour", "hour")]
    assert [f.direction for f in table.sort_order.fields] == ["asc", "desc"]
    assert table.properties["write.distribution-mode"] == "range"
    assert table.schema.identifier_field_ids == (1,)
    assert table.refs["b"].max_ref_age_ms == 7 * 86_400_000
    assert table.refs["the tag"].type == "tag"
    assert not any("statement" in p for p in table.properties)
    for statement in (
        "drop partition field ts_hour",
        "write unordered",
        "drop identifier fields id",
        "drop branch if exists b",
        "drop tag `the tag`",
    ):
        spark.sql(f"alter table lake.db.every {statement}")
    after = lake.table("lake.db.every")
    assert not after.spec.fields
    assert not after.sort_order.fields
    assert after.properties["write.distribution-mode"] == "none"
    assert not after.schema.identifier_field_ids
    assert set(after.refs) == {"main"}
    assert spark.table("lake.db.every").count() == 1


def test_a_location_takes_the_files_to_come(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    table = create_table(spark, lake, "moved")
    before = Path(table.location.removeprefix("file:"))
    spark.sql(f"alter table lake.db.moved set location '{tmp_path / 'new'}'")
    spark.sql("insert into lake.db.moved values (2, null, 'b')")
    assert sorted(r.id for r in spark.table("lake.db.moved").collect()) == [1, 2]
    table.refresh()
    assert table.location.endswith(str(tmp_path / "new"))
    assert len(list((tmp_path / "new" / "data").glob("*.parquet"))) == 1
    assert len(list((before / "data").glob("*.parquet"))) == 1
    for location, message in (
        ("s3://bucket/t", "its files are in file://"),
        ("ftp://host/t", "ftp"),
    ):
        with pytest.raises(PySparkException, match=message):
            spark.sql(f"alter table lake.db.moved set location '{location}'")
    assert lake.table("lake.db.moved").location == table.location


def test_errors_are_those_that_spark_gives(spark: SparkSession, lake: IcebergSession) -> None:
    create_table(spark, lake, "refused")
    with pytest.raises(ParseException) as e:
        spark.sql("alter table lake.db.refused\n  create tag t retain 5 weeks")
    assert "near 'weeks': expected DAYS, HOURS or MINUTES" in str(e.value)
    assert "(line 2, pos 24)" in str(e.value)
    for statement, condition in (
        ("alter table lake.db.nothing create branch b", "TABLE_OR_VIEW_NOT_FOUND"),
        ("alter table lake.nowhere.t create branch b", "TABLE_OR_VIEW_NOT_FOUND"),
        ("alter table nowhere.t create branch b", "PARSE_SYNTAX_ERROR"),
        ("alter table lake.db.refused add column id int", "FIELD_ALREADY_EXISTS"),
        ("select :missing", "UNBOUND_SQL_PARAMETER"),
    ):
        with pytest.raises(AnalysisException) as refused:
            spark.sql(statement)
        actual = refused.value.getCondition() or ""
        assert actual.startswith(condition), statement
    with pytest.raises(PySparkException, match="no partition field 'nothing'"):
        spark.sql("alter table lake.db.refused drop partition field nothing")
    with pytest.raises(PySparkException, match="SET IDENTIFIER FIELDS"):
        spark.sql("alter table lake.db.refused set tblproperties ('identifier-fields'='id')")


@pytest.mark.nightly
def test_statements_with_variables_and_parameters_are_parsed(
    spark: SparkSession, lake: IcebergSession
) -> None:
    table = create_table(spark, lake, "substituted")
    spark.conf.set("my.branch", "of_a_variable")
    spark.sql("alter table lake.db.substituted create branch ${my.branch}")
    assert "of_a_variable" in table.refresh().refs
    rows = spark.sql("select id from lake.db.substituted where id = :id", args={"id": 1})
    assert rows.collect() == [(1,)]


@pytest.mark.nightly
def test_sessions_that_spark_makes_parse_too(spark: SparkSession, lake: IcebergSession) -> None:
    table = create_table(spark, lake, "elsewhere")
    other = spark.newSession()
    configure(other, spark)
    other.sql("use lake.db")
    other.sql("alter table elsewhere create branch of_a_new_session")
    cloned = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    cloned.sql("alter table lake.db.elsewhere create branch of_a_clone")
    assert {"of_a_new_session", "of_a_clone"} <= set(table.refresh().refs)


def test_a_session_without_iceberg_has_its_own_parser(
    spark: SparkSession, lake: IcebergSession
) -> None:
    create_table(spark, lake, "without")
    other = spark.newSession()
    configure(other, spark)
    installed = install(other)
    assert parser_of(other).startswith("IcebergPy")
    installed.uninstall()
    assert parser_of(other).startswith("org.apache.spark.")
    with pytest.raises(ParseException):
        other.sql("alter table lake.db.without create branch b")
    install(other)
    other.sql("alter table lake.db.without create branch b")
    install(other).uninstall()


@pytest.mark.nightly
def test_session_runs_statements_if_the_parser_cannot_be_replaced(
    spark: SparkSession, lake: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table(spark, lake, "taken")
    has = Bridge.has

    def lacks_extensions(bridge: Any, feature: features.Feature) -> bool:
        return feature is not features.SQL_EXTENSIONS and has(bridge, feature)

    assert lake.bridge is not None
    lake.bridge.uninstall()
    monkeypatch.setattr(Bridge, "has", lacks_extensions)
    lake.bridge.install()
    try:
        with pytest.raises(ParseException):
            spark.sql("alter table lake.db.taken create branch b")
        assert lake.sql("alter table lake.db.taken create branch b").collect() == []
        assert "b" in table.refresh().refs
        assert lake.sql("select id from lake.db.taken").collect() == [(1,)]
        with pytest.raises(InvalidRequestError, match="position 33"):
            lake.sql("alter table lake.db.taken create brunch b")
        with pytest.raises(ParseException):
            lake.sql("alter table nowhere.taken create branch b")
    finally:
        monkeypatch.undo()
        lake.bridge.uninstall()
        lake.bridge.install()
    lake.sql("alter table lake.db.taken drop branch b")
    assert "b" not in table.refresh().refs
