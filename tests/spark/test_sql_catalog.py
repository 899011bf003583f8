"""Spark SQL on an SQLite catalog without any jar: what path tables cannot do, and `install`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import install
from iceberg_pyspark.errors import InvalidRequestError, NoSuchTableError
from iceberg_pyspark.spark.bridge import jvm
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spark.session_catalogs import catalog_and_levels
from tests.support.native_lake import sqlite_lake
from tests.support.plain_values import float32
from tests.support.spark_settings import configured

PREFIX = "spark.sql.catalog.lake"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("lake"), "lake") as session:
        yield session


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32())})


def condition_of(spark: SparkSession, statement: str) -> str | None:
    with pytest.raises(AnalysisException) as e:
        spark.sql(statement).collect()
    return e.value.getCondition()


def test_namespaces_with_properties(spark: SparkSession, lake: IcebergSession) -> None:
    spark.sql("create namespace lake.props comment 'c' with dbproperties ('a'='1', 'b'='2')")
    spark.sql("create namespace if not exists lake.props")
    spark.sql("alter namespace lake.props set properties ('a'='3')")
    described = {r[0]: r[1] for r in spark.sql("describe namespace extended lake.props").collect()}
    assert described["Comment"] == "c"
    assert "(a,3)" in described["Properties"]
    assert "(b,2)" in described["Properties"]
    assert ("props",) in spark.sql("show namespaces in lake").collect()
    assert condition_of(spark, "create namespace lake.props") == "SCHEMA_ALREADY_EXISTS"
    spark.sql("create table lake.props.t (id int)")
    assert condition_of(spark, "drop namespace lake.props") == "SCHEMA_NOT_EMPTY"
    spark.sql("drop namespace lake.props cascade")
    assert condition_of(spark, "describe namespace lake.props") == "SCHEMA_NOT_FOUND"
    spark.sql("drop namespace if exists lake.props")


def test_tables_are_renamed_and_dropped(spark: SparkSession, lake: IcebergSession) -> None:
    spark.sql("create table lake.db.old (id int)")
    spark.sql("create table if not exists lake.db.old (id int)")
    spark.sql("create table lake.db.taken (id int)")
    assert (
        condition_of(spark, "alter table lake.db.old rename to db.taken")
        == "TABLE_OR_VIEW_ALREADY_EXISTS"
    )
    spark.sql("alter table lake.db.old rename to db.new")
    assert not spark.catalog.tableExists("lake.db.old")
    assert spark.table("lake.db.new").columns == ["id"]
    # Iceberg's documentation writes the catalog's name, which Spark takes for a namespace
    spark.sql("alter table lake.db.new rename to lake.db.newer")
    spark.sql("alter table lake.db.newer rename to new")
    spark.sql("drop table lake.db.new")
    spark.sql("drop table if exists lake.db.new")
    assert condition_of(spark, "drop table lake.db.new") == "TABLE_OR_VIEW_NOT_FOUND"
    assert condition_of(spark, "create table lake.nowhere.t (id int)") == "SCHEMA_NOT_FOUND"


def test_a_location_is_kept(spark: SparkSession, lake: IcebergSession, tmp_path: Path) -> None:
    spark.sql(f"create table lake.db.placed (id int) location '{tmp_path / 'placed'}'")
    table = lake.table("lake.db.placed")
    assert table.location == f"file:{tmp_path / 'placed'}"
    table.append(rows(1))
    assert table.to_df().count() == 1
    assert (tmp_path / "placed" / "data").is_dir()


def test_defaults_need_version_3_and_a_literal(spark: SparkSession, lake: IcebergSession) -> None:
    with pytest.raises(PySparkException, match="default values need format version 3"):
        spark.sql("create table lake.db.defaults (id int default 1)")
    with pytest.raises(PySparkException, match="is not a literal"):
        spark.sql(
            "create table lake.db.defaults (d date default current_date()) "
            "tblproperties ('format-version'='3')"
        )
    spark.sql(
        "create table lake.db.defaults (id int, t timestamp default "
        "timestamp '2020-01-02 03:04:05', b binary default X'0a', f double default 1, "
        "c decimal(6, 3) default -2.5, z boolean default true) tblproperties ('format-version'='3')"
    )
    spark.sql("alter table lake.db.defaults add column s string not null default 'x'")
    actual = {f.name: f.write_default for f in lake.table("lake.db.defaults").schema.fields}
    assert actual["t"] == 1577934245000000
    assert (actual["b"], actual["f"], str(actual["c"]), actual["z"]) == (b"\n", 1.0, "-2.500", True)
    assert actual["s"] == "x"


def test_a_name_begins_with_a_catalog_before_a_namespace(
    spark: SparkSession, lake: IcebergSession
) -> None:
    other = "spark.sql.catalog.other"
    spark.conf.set(other, "of.another.Connector")
    spark.catalog.setCurrentCatalog("lake")
    try:
        assert catalog_and_levels(spark, "lake.db.t") == ("lake", ("db", "t"))
        assert catalog_and_levels(spark, "db.t") == ("lake", ("db", "t"))
        assert catalog_and_levels(spark, "other.db.t") is None
        assert catalog_and_levels(spark, "other") == ("lake", ("default", "other"))
    finally:
        spark.catalog.setCurrentCatalog("spark_catalog")
        spark.conf.unset(other)


DEFAULTS = {
    "i": ("int", "-5", -5),
    "n": ("bigint", "9223372036854775807", 2**63 - 1),
    "s": ("string", "'it''s'", "it's"),
    "e": ("string", r"'a\\b\nc'", "a\\b\nc"),
    "d": ("date", "date '2020-01-02'", date(2020, 1, 2)),
    "t": ("timestamp", "timestamp '2020-01-02 03:04:05Z'", datetime(2020, 1, 2, 3, 4, 5)),
    "u": (
        "timestamp_ntz",
        "timestamp_ntz '2020-01-02 03:04:05.123456'",
        datetime(2020, 1, 2, 3, 4, 5, 123456),
    ),
    "z": ("boolean", "true", True),
    "b": ("binary", "X'0aff'", b"\n\xff"),
    "c": ("decimal(6, 3)", "-2.5", Decimal("-2.500")),
    "f": ("double", "1e300", 1e300),
    "g": ("float", "0.5", 0.5),
    "h": ("float", "0.1", float32(0.1)),
    "k": ("float", "-1e-45F", -(2.0**-149)),
}
"""The type, the SQL literal and the Python value of each column."""


def test_columns_missing_in_insert_have_their_defaults(
    spark: SparkSession, lake: IcebergSession
) -> None:
    columns = ", ".join(f"{c} {type_} default {sql}" for c, (type_, sql, _) in DEFAULTS.items())
    spark.sql(
        f"create table lake.db.filled (id int, {columns}) tblproperties ('format-version'='3')"
    )
    values = tuple(value for _, _, value in DEFAULTS.values())
    spark.sql("insert into lake.db.filled (id) values (1)")
    spark.sql("set time zone 'America/New_York'")
    spark.sql("set spark.sql.parser.escapedStringLiterals = true")
    try:
        spark.sql("insert into lake.db.filled (id) select 2")
    finally:
        spark.sql("set time zone 'UTC'")
        spark.sql("set spark.sql.parser.escapedStringLiterals = false")
    spark.sql("insert into lake.db.filled (i, id, s) values (default, 3, null)")
    spark.sql("insert overwrite lake.db.filled by name select 4 as id where 1 = 0")
    assert spark.table("lake.db.filled").count() == 0
    spark.sql("insert into lake.db.filled by name select 4 as id")
    spark.sql("insert into lake.db.filled values (5, 0, 0" + ", null" * 12 + ")")
    spark.sql("update lake.db.filled set i = default, s = default, b = default where id = 5")
    actual = {r["id"]: tuple(r)[1:] for r in spark.table("lake.db.filled").collect()}
    assert actual[4] == values
    assert (actual[5][0], actual[5][1], actual[5][2], actual[5][3]) == (-5, 0, "it's", None)
    third = lake.table("lake.db.filled").history()[2].snapshot_id
    past = spark.sql(f"select * from lake.db.filled version as of {third}").collect()
    assert {r["id"]: tuple(r)[1:] for r in past} == {
        1: values,
        2: values,
        3: (-5, values[1], None, *values[3:]),
    }


def test_defaults_that_only_other_writers_set(spark: SparkSession, lake: IcebergSession) -> None:
    spark.sql("create table lake.db.set_outside (id int) tblproperties ('format-version'='3')")
    spark.sql("insert into lake.db.set_outside values (1)")
    change = lake.table("lake.db.set_outside").update_schema()
    change.add_column("u", "uuid", default="61f0c404-5cb3-11e7-907b-a6006ad3dba0")
    change.add_column("x", "fixed[2]", default=b"\x00\x01")
    change.add_column("t", "timestamptz", default="1960-01-02T03:04:05.000001+02:00")
    change.add_column("late", "int").update_default("late", 7)
    change.add_column("gone", "int", default=8).update_default("gone", None)
    change.commit()
    spark.sql("insert into lake.db.set_outside (id) values (2)")
    actual = sorted(spark.table("lake.db.set_outside").collect())
    outside = (
        "61f0c404-5cb3-11e7-907b-a6006ad3dba0",
        b"\x00\x01",
        datetime(1960, 1, 2, 1, 4, 5, 1),
    )
    assert [tuple(r) for r in actual] == [(1, *outside, None, 8), (2, *outside, 7, None)]


def test_the_columns_of_a_query_bring_no_defaults(
    spark: SparkSession, lake: IcebergSession
) -> None:
    version_3 = "tblproperties ('format-version'='3')"
    spark.sql(f"create table lake.db.source (id int, s string default 'it''s') {version_3}")
    spark.sql("create table lake.db.made as select * from lake.db.source")
    spark.sql(f"create or replace table lake.db.made {version_3} as select * from lake.db.source")
    spark.table("lake.db.source").writeTo("lake.db.made").createOrReplace()
    spark.sql("insert into lake.db.made (id) values (1)")
    assert [tuple(r) for r in spark.table("lake.db.made").collect()] == [(1, None)]
    spark.sql(f"replace table lake.db.made (id int, s string default 'y') {version_3}")
    spark.sql("insert into lake.db.made (id) values (2)")
    assert [tuple(r) for r in spark.table("lake.db.made").collect()] == [(2, "y")]


@pytest.mark.skipif(version("pyspark") < "4.3", reason="earlier releases ask no catalog")
def test_a_table_like_another_has_its_columns_and_partitions(
    spark: SparkSession, lake: IcebergSession
) -> None:
    spark.sql(
        "create table lake.db.like_source (id int not null comment 'key', t timestamp, "
        "s struct<a: int comment 'inner', b: array<string>>, d string default 'it''s', "
        "n decimal(6, 3) default -2.5, f double default 1.5, y date default date '2020-01-02') "
        "partitioned by (bucket(4, id), truncate(2, d), days(t)) "
        "tblproperties ('format-version'='3', 'k'='v')"
    )
    spark.sql("insert into lake.db.like_source (id) values (1)")
    statement = "create table lake.db.like_made like lake.db.like_source"
    with pytest.raises(PySparkException, match="default values need format version 3"):
        spark.sql(statement)
    spark.sql(f"{statement} using iceberg tblproperties ('format-version'='3', 'own'='x')")
    source, made = (lake.table(f"lake.db.like_{name}") for name in ("source", "made"))
    assert made.schema.fields == source.schema.fields
    assert made.spec.fields == source.spec.fields
    assert made.to_df().count() == 0
    assert made.properties["own"] == "x"
    assert "k" not in made.properties
    assert condition_of(spark, statement) == "TABLE_OR_VIEW_ALREADY_EXISTS"
    spark.sql(statement.replace("table", "table if not exists", 1))

    spark.sql(
        "create table like_plain (id int comment 'key', c char(3), v varchar(5), p string) "
        "using parquet partitioned by (p)"
    )
    spark.sql("create view like_view (x comment 'of a view') as select id from like_plain")
    for kind in ("plain", "view"):
        spark.sql(f"create table lake.db.of_{kind} like like_{kind}")
        described = spark.sql(f"describe like_{kind}").collect()
        # CHAR is a string, as in CREATE TABLE
        expected = [(r[0], r[1].replace("char(3)", "string"), r[2]) for r in described]
        assert spark.sql(f"describe lake.db.of_{kind}").collect() == expected
        assert spark.table(f"lake.db.of_{kind}").count() == 0
    [field] = lake.table("lake.db.of_plain").spec.fields
    assert (field.name, str(field.transform)) == ("p", "identity")
    assert (
        condition_of(spark, "create table lake.db.of_none like none") == "TABLE_OR_VIEW_NOT_FOUND"
    )
    with pytest.raises(PySparkException, match="csv"):
        spark.sql("create table lake.db.of_none like like_plain using csv")
    spark.sql("drop view like_view")
    spark.sql("drop table like_plain")


def test_a_table_of_the_session(spark: SparkSession, lake: IcebergSession, tmp_path: Path) -> None:
    spark.sql("create table lake.db.mine (id int)")
    table = lake.table("lake.db.mine")
    table.append(rows(1, 2))
    table.update_properties().set({"k": "v"}).commit()
    table.update_schema().add_column("late", "string").commit()
    assert table.name == "lake.db.mine"
    assert [e.snapshot_id for e in table.history()] == [table.current_snapshot.snapshot_id]  # type: ignore[union-attr]
    assert sorted(table.to_df().collect()) == [(1, None), (2, None)]
    spark.sql("alter table lake.db.mine unset tblproperties ('k')")
    assert "k" not in table.refresh().properties
    spark.sql("use lake.db")
    try:
        assert lake.table("mine").name == "lake.db.mine"
    finally:
        spark.sql("use spark_catalog.default")
    path = lake.table(table.location)
    assert path.to_df().count() == 2
    with pytest.raises(NoSuchTableError):
        lake.table("lake.db.nothing")


def test_one_statement_is_one_commit_or_none(spark: SparkSession, lake: IcebergSession) -> None:
    spark.sql("create table lake.db.altered (id int, gone int)")
    table = lake.table("lake.db.altered")
    spark.sql("alter table lake.db.altered add columns (a int, b int, c struct<d: int>)")
    before = len(table.refresh().metadata.metadata_log)
    assert before == 1
    with pytest.raises(PySparkException):
        spark.sql("alter table lake.db.altered drop columns (gone, nothing)")
    assert table.refresh().schema.find("gone").name == "gone"
    assert len(table.metadata.metadata_log) == before


def test_uninstall_restores_the_session(spark: SparkSession, lake: IcebergSession) -> None:
    other = spark.newSession()
    for key in ("", ".type", ".uri", ".warehouse"):
        other.conf.set(PREFIX + key, str(spark.conf.get(PREFIX + key)))
    spark.sql("create table lake.db.again (id int)")
    assert other.table("lake.db.again").count() == 0
    installed = install(other)
    installed.uninstall()
    methods = other._jsparkSession.experimental()
    assert methods.extraOptimizations().isEmpty()
    with pytest.raises(PySparkException, match=r"call iceberg_pyspark\.install"):
        other.table("lake.db.again")
    install(other)
    assert other.table("lake.db.again").count() == 0
    install(other).uninstall()
    assert spark.table("lake.db.again").count() == 0


def test_without_a_bridge_reads_are_portable(
    spark: SparkSession,
    lake: IcebergSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    class LockedDown:
        def __init__(self, spark: SparkSession) -> None:
            raise Py4JError("class loading is\nforbidden\n\tat frames")

    spark.sql("create table lake.db.portable (id int)")
    lake.table("lake.db.portable").append(rows(7))
    monkeypatch.setattr(jvm, "Bridge", LockedDown)
    with caplog.at_level(logging.INFO):
        session = install(spark)
    assert [r.getMessage() for r in caplog.records if r.name.startswith("iceberg_pyspark")] == [
        "no native scans in this session; Python reads and writes: class loading is forbidden"
    ]
    assert not session.is_native
    assert session.table("lake.db.portable").to_df().collect() == [(7,)]
    session.uninstall()
    assert spark.table("lake.db.portable").collect() == [(7,)]


def test_a_frame_sees_the_next_snapshot_as_spark_refreshes_it(
    spark: SparkSession, lake: IcebergSession
) -> None:
    spark.sql("create table lake.db.seen (id int)")
    table = lake.table("lake.db.seen")
    table.append(rows(1))
    frame = spark.table("lake.db.seen")
    first = table.current_snapshot
    assert first is not None
    assert frame.count() == 1
    table.append(rows(2))
    assert frame.count() == 2
    assert spark.table("lake.db.seen").count() == 2
    pinned = spark.sql(f"select * from lake.db.seen version as of {first.snapshot_id}")
    table.append(rows(3))
    assert pinned.count() == 1


def test_error_of_a_wrong_catalog_configuration_names_it(
    spark: SparkSession, lake: IcebergSession
) -> None:
    spark.conf.set("spark.sql.catalog.bad", "iceberg_pyspark")
    spark.conf.set("spark.sql.catalog.bad.type", "nonsense")
    try:
        with pytest.raises(PySparkException, match="type 'nonsense' is not known"):
            spark.sql("select * from bad.db.t")
    finally:
        spark.conf.unset("spark.sql.catalog.bad")
        spark.conf.unset("spark.sql.catalog.bad.type")
    with pytest.raises(InvalidRequestError):
        lake.table("")


def test_default_namespace_version_and_namespaces_that_tables_bring_along(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    prefix = "spark.sql.catalog.folders"
    settings = {
        prefix: "iceberg_pyspark",
        f"{prefix}.type": "hadoop",
        f"{prefix}.warehouse": str(tmp_path),
        f"{prefix}.default-namespace": "reports.daily",
    }
    with configured(spark, settings):
        spark.sql("CREATE TABLE folders.reports.daily.a (id INT)")
        spark.sql("CREATE TABLE folders.more.b AS SELECT 1 AS id")
        assert spark.sql("SHOW NAMESPACES IN folders").count() == 2
        current = spark.catalog.currentCatalog()
        spark.sql("USE folders")
        try:
            assert spark.catalog.currentDatabase() == "reports.daily"
            spark.sql("INSERT INTO a VALUES (7)")
            assert spark.table("a").first() == (7,)
        finally:
            spark.catalog.setCurrentCatalog(current)
        [changed] = spark.sql("CALL folders.system.rewrite_data_files('a')").collect()
        assert changed[0] == 0
        with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
            spark.sql("CREATE TABLE folders.reports.daily.a.below (id INT)")
        release = f"iceberg-pyspark {version('iceberg-pyspark')}"
        assert spark.sql("SELECT folders.system.iceberg_version()").first() == (release,)
        by_row = spark.sql("SELECT id, folders.system.Iceberg_Version() FROM folders.more.b")
        assert by_row.first() == (1, release)
        with pytest.raises(AnalysisException, match="takes no arguments"):
            spark.sql("SELECT folders.system.iceberg_version(1)")
        listed = spark.sql("SHOW USER FUNCTIONS IN folders.system").collect()
        assert ("folders.system.iceberg_version",) in listed
    wrong = {f"{prefix}x{k.removeprefix(prefix)}": v for k, v in settings.items()}
    with (
        configured(spark, {**wrong, f"{prefix}x.default-namespace": "a..b"}),
        pytest.raises(Exception, match="default-namespace"),
    ):
        spark.sql("SHOW NAMESPACES IN foldersx")
