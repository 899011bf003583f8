"""Spark's own catalog with Iceberg in it: `spark.sql.catalog.spark_catalog` is `iceberg_pyspark`.

Sessions of one application share Spark's tables, so each test uses its own namespaces.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import install, load_catalog
from tests.support.native_lake import session_catalog, with_session_catalog

PREFIX = "spark.sql.catalog.spark_catalog"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """Yield a new session whose catalog was configured before Iceberg was installed."""
    with session_catalog(spark, tmp_path_factory.mktemp("session-catalog")) as new_session:
        yield new_session


@pytest.fixture
def db(session: SparkSession) -> Iterator[str]:
    name = f"both{next(_numbers)}"
    session.sql(f"CREATE NAMESPACE {name}")
    yield name
    session.sql("USE default")
    session.sql(f"DROP NAMESPACE IF EXISTS {name} CASCADE")


def rows(session: SparkSession, statement: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in session.sql(statement).collect())


def tables(session: SparkSession, db: str) -> list[str]:
    return sorted(row.tableName for row in session.sql(f"SHOW TABLES IN {db}").collect())


@contextmanager
def active(session: SparkSession) -> Iterator[None]:
    """Make a session the active one, by whose settings Spark finds the catalog of saveAsTable."""
    jvm = session._jvm
    assert jvm is not None
    sessions = jvm.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    yield
    if before.isDefined():
        sessions.setActiveSession(before.get())
    else:
        sessions.clearActiveSession()


def is_iceberg(session: SparkSession, table: str) -> bool:
    described = {r[0]: r[1] for r in session.sql(f"DESCRIBE EXTENDED {table}").collect()}
    return bool(described["Provider"] == "iceberg")


def test_names_without_a_catalog_find_both_kinds(session: SparkSession, db: str) -> None:
    session.sql(f"CREATE TABLE {db}.ice (id INT, v STRING) USING iceberg PARTITIONED BY (id)")
    session.sql(f"CREATE TABLE {db}.plain (id INT, w STRING) USING parquet")
    session.sql(f"INSERT INTO {db}.ice VALUES (1, 'a'), (2, 'b')")
    session.sql(f"INSERT INTO {db}.plain VALUES (2, 'c')")
    assert (is_iceberg(session, f"{db}.ice"), is_iceberg(session, f"{db}.plain")) == (True, False)
    joined = f"SELECT v, w FROM {db}.ice JOIN spark_catalog.{db}.plain USING (id)"
    assert rows(session, joined) == [("b", "c")]
    assert tables(session, db) == ["ice", "plain"]
    session.sql(f"DELETE FROM {db}.ice WHERE id = 1")
    session.sql(
        f"MERGE INTO {db}.ice t USING {db}.plain s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.w"
    )
    assert rows(session, f"SELECT * FROM {db}.ice") == [(2, "c")]
    assert len(rows(session, f"SELECT * FROM {db}.ice.snapshots")) == 3
    first = session.sql(f"SELECT snapshot_id FROM {db}.ice.history").first()
    assert first is not None
    assert session.sql(f"SELECT * FROM {db}.ice VERSION AS OF {first[0]}").count() == 2
    session.sql(f"USE {db}")
    assert session.table("ice").count() == session.table("plain").count() == 1
    assert install(session).table("ice").scan().count() == 1


def test_each_kind_is_altered_renamed_and_dropped_where_it_is(
    session: SparkSession, db: str
) -> None:
    for name, provider in (("ice", "iceberg"), ("plain", "parquet")):
        table = f"{db}.{name}"
        session.sql(f"CREATE TABLE {table} (id INT) USING {provider}")
        session.sql(f"ALTER TABLE {table} ADD COLUMN v STRING")
        session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('k' = '1')")
        assert session.table(table).columns == ["id", "v"]
        properties = {r[0]: r[1] for r in session.sql(f"SHOW TBLPROPERTIES {table}").collect()}
        assert properties["k"] == "1"
        session.sql(f"ALTER TABLE {table} RENAME TO {db}.{name}2")
        session.sql(f"INSERT INTO {table}2 VALUES (1, 'a')")
        session.sql(f"REFRESH TABLE {table}2")
        assert rows(session, f"SELECT * FROM {table}2") == [(1, "a")]
        session.sql(f"TRUNCATE TABLE {table}2")
        assert session.table(f"{table}2").count() == 0
    assert tables(session, db) == ["ice2", "plain2"]
    session.sql(f"DROP TABLE {db}.plain2")
    assert tables(session, db) == ["ice2"]
    session.sql(f"DROP TABLE {db}.ice2 PURGE")
    session.sql(f"DROP TABLE IF EXISTS {db}.ice2")
    assert tables(session, db) == []
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.table(f"{db}.ice2")


@pytest.mark.nightly
def test_tables_of_queries_and_of_writers(session: SparkSession, db: str) -> None:
    session.sql(f"CREATE TABLE {db}.ice USING iceberg AS SELECT 1 AS id")
    session.sql(f"CREATE TABLE {db}.plain USING parquet AS SELECT 2 AS id")
    session.sql(f"CREATE OR REPLACE TABLE {db}.ice USING iceberg AS SELECT 3 AS id")
    frame = session.range(4, 5).selectExpr("CAST(id AS INT) AS id")
    frame.writeTo(f"{db}.ice").append()
    frame.writeTo(f"{db}.written").using("iceberg").create()
    frame.write.saveAsTable(f"{db}.saved")
    frame.write.format("iceberg-py").saveAsTable(f"{db}.saved_ice")
    frame.write.insertInto(f"{db}.plain")
    assert rows(session, f"SELECT id FROM {db}.ice") == [(3,), (4,)]
    assert rows(session, f"SELECT id FROM {db}.plain") == [(2,), (4,)]
    kinds = {name: is_iceberg(session, f"{db}.{name}") for name in tables(session, db)}
    assert kinds == {
        "ice": True,
        "plain": False,
        "written": True,
        "saved": False,
        "saved_ice": True,
    }


def test_no_table_or_view_hides_another(session: SparkSession, db: str) -> None:
    session.sql(f"CREATE TABLE {db}.plain (id INT) USING parquet")
    session.sql(f"CREATE TABLE {db}.ice (id INT) USING iceberg")
    session.sql(f"CREATE VIEW {db}.seen AS SELECT 1 AS id")
    for statement in (
        f"CREATE TABLE {db}.plain (id INT) USING iceberg",
        f"CREATE TABLE {db}.plain USING iceberg AS SELECT 1 AS id",
        f"ALTER TABLE {db}.ice RENAME TO {db}.plain",
        f"CREATE TABLE {db}.ice (id INT) USING parquet",
        f"CREATE TABLE {db}.ice USING parquet AS SELECT 1 AS id",
        f"CREATE TABLE {db}.ice LIKE {db}.plain",
        f"CREATE VIEW {db}.ice AS SELECT 1 AS id",
        f"CREATE OR REPLACE VIEW {db}.ice AS SELECT 1 AS id",
        f"ALTER TABLE {db}.plain RENAME TO {db}.ice",
        f"ALTER TABLE {db}.plain RENAME TO ice",
        f"ALTER VIEW {db}.seen RENAME TO {db}.ice",
    ):
        with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
            session.sql(statement)
    for accepted in (
        f"CREATE TABLE IF NOT EXISTS {db}.ice (id INT) USING parquet",
        f"CREATE TABLE IF NOT EXISTS {db}.ice USING parquet AS SELECT 1 AS id",
        f"CREATE TABLE IF NOT EXISTS {db}.ice LIKE {db}.plain",
        f"CREATE VIEW IF NOT EXISTS {db}.ice AS SELECT 1 AS id",
    ):
        session.sql(accepted)
    with pytest.raises(PySparkException, match="not an Iceberg table"):
        session.sql(f"CREATE OR REPLACE TABLE {db}.plain (id INT) USING iceberg")
    session.sql(f"CREATE TEMPORARY VIEW {db}_ice AS SELECT 1 AS id")
    session.catalog.dropTempView(f"{db}_ice")
    assert tables(session, db) == ["ice", "plain", "seen"]
    session.sql(f"DROP TABLE {db}.ice")
    assert tables(session, db) == ["plain", "seen"], "and none was behind it"


def test_rows_are_not_saved_where_an_iceberg_table_hides_them(
    session: SparkSession, db: str
) -> None:
    session.sql(f"CREATE TABLE {db}.ice (id INT) USING iceberg")
    frame = session.sql("SELECT 1 AS id")
    with active(session):
        for mode in ("append", "overwrite"):
            with pytest.raises(PySparkException, match=r'is an Iceberg table.*format\("iceberg"\)'):
                frame.write.mode(mode).saveAsTable(f"{db}.ice")
        with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
            frame.write.saveAsTable(f"{db}.ice")
        frame.write.mode("ignore").saveAsTable(f"{db}.ice")
        assert session.table(f"{db}.ice").count() == 0
        frame.write.format("iceberg").mode("append").saveAsTable(f"{db}.ice")
    assert rows(session, f"SELECT * FROM {db}.ice") == [(1,)]
    session.sql(f"DROP TABLE {db}.ice")
    assert tables(session, db) == []


@pytest.mark.nightly
def test_show_table_extended_has_both_kinds(session: SparkSession, db: str) -> None:
    """dbt and SQLMesh learn from this statement alone which tables exist."""
    session.sql(f"CREATE TABLE {db}.ice (id INT, s STRUCT<a: STRING NOT NULL>) USING iceberg")
    session.sql(f"CREATE TABLE {db}.plain (id INT, v STRING) USING parquet PARTITIONED BY (v)")
    session.sql(f"INSERT INTO {db}.plain VALUES (1, 'a')")
    session.sql(f"CREATE VIEW {db}.seen AS SELECT id FROM {db}.plain")
    session.sql(f"CREATE TEMPORARY VIEW {db}_temporary AS SELECT 1 AS id")
    extended = f"SHOW TABLE EXTENDED IN {db} LIKE"
    listed = session.sql(f"{extended} '*'").collect()
    found = {row.tableName: row for row in listed if row.tableName != f"{db}_temporary"}
    assert sorted(found) == ["ice", "plain", "seen"]
    assert len(listed) == 4
    assert {row.namespace for row in found.values()} == {db}
    assert not any(row.isTemporary for row in found.values())
    lines = found["ice"].information.splitlines()
    described = {r[0]: r[1] for r in session.sql(f"DESCRIBE EXTENDED {db}.ice").collect()}
    for key in ("Type", "Provider", "Owner", "Location"):
        assert f"{key}: {described[key]}" in lines
    assert f"Namespace: {db}" in lines
    assert lines[lines.index("Schema: root") + 1 :] == [
        " |-- id: integer (nullable = true)",
        " |-- s: struct (nullable = true)",
        " |    |-- a: string (nullable = false)",
        "",
    ]
    assert "Provider: parquet" in found["plain"].information
    assert "Type: VIEW" in found["seen"].information
    session.sql(f"USE {db}")
    assert [
        row.tableName for row in session.sql("SHOW TABLE EXTENDED LIKE 'ice|s*'").collect()
    ] == [
        "seen",
        "ice",
    ]
    assert session.sql(f"{extended} 'none'").collect() == []
    partition = session.sql(f"{extended} 'plain' PARTITION (v = 'a')").collect()
    assert "Partition Values: [v=a]" in partition[0].information
    with pytest.raises(AnalysisException, match="PARTITION_MANAGEMENT_IS_UNSUPPORTED"):
        session.sql(f"{extended} 'ice' PARTITION (id = 1)")
    for setting, statement, name in (
        ("keepCommandOutputSchema", f"{extended} 'ice'", "database"),
        ("useV1Command", f"SHOW TABLES IN {db} LIKE 'ice'", "namespace"),
    ):
        session.conf.set(f"spark.sql.legacy.{setting}", "true")
        old = session.sql(statement)
        assert (old.columns[0], old.collect()[0].tableName) == (name, "ice")
        session.conf.unset(f"spark.sql.legacy.{setting}")
    session.catalog.dropTempView(f"{db}_temporary")


@pytest.mark.nightly
def test_iceberg_table_takes_precedence_over_a_table_of_another_session(
    spark: SparkSession, session: SparkSession, db: str
) -> None:
    session.sql(f"CREATE TABLE {db}.ice (id INT) USING iceberg")
    spark.sql(f"CREATE TABLE {db}.ice (id INT) USING parquet")
    [found] = session.sql(f"SHOW TABLE EXTENDED IN {db} LIKE 'ice'").collect()
    assert "Provider: iceberg" in found.information
    assert [r.name for r in session.catalog.listTables(db)] == ["ice"]


def test_a_table_like_an_iceberg_table(session: SparkSession, db: str) -> None:
    session.sql(f"CREATE TABLE {db}.ice (id INT) USING iceberg")
    session.sql(f"CREATE TABLE {db}.plain (id INT) USING parquet")
    refused = [f"{db}.plain USING iceberg"]
    own = [f"{db}.ice", f"{db}.ice USING iceberg"]
    if session.version < "4.3":
        refused, own = [*refused, *own], []
    for like in refused:
        with pytest.raises(PySparkException, match=r"CREATE TABLE.* LIKE"):
            session.sql(f"CREATE TABLE {db}.copied LIKE {like}")
    assert tables(session, db) == ["ice", "plain"]
    for like in own:
        session.sql(f"CREATE TABLE {db}.copied LIKE {like}")
        assert is_iceberg(session, f"{db}.copied")
        session.sql(f"DROP TABLE {db}.copied")
    if own:
        session.sql(f"CREATE TABLE {db}.copied LIKE {db}.ice USING parquet")
        assert not is_iceberg(session, f"{db}.copied")


def test_sparks_own_catalog_keeps_no_iceberg_table(spark: SparkSession) -> None:
    """Such a table would be a name alone: every use of it is an error."""
    installed = install(spark.newSession())
    session = installed.spark
    frame = session.sql("SELECT 1 AS id")
    before = tables(session, "default")
    for use in (
        lambda: session.sql("CREATE TABLE spark_catalog.default.x (id INT) USING iceberg"),
        lambda: session.sql("CREATE TABLE IF NOT EXISTS x (id INT) USING ICEBERG"),
        lambda: session.sql("CREATE TABLE x USING `iceberg-py` AS SELECT 1 AS id"),
        lambda: session.sql("CREATE OR REPLACE TABLE default.x (id INT) USING iceberg"),
        lambda: session.sql("CREATE OR REPLACE TABLE default.x USING iceberg AS SELECT 1 AS id"),
        lambda: frame.write.format("iceberg").saveAsTable("x"),
        lambda: frame.write.format("iceberg-py").mode("append").saveAsTable("x"),
        lambda: frame.write.format("iceberg").mode("overwrite").saveAsTable("x"),
        lambda: frame.writeTo("x").using("iceberg").create(),
        lambda: session.catalog.createTable("x", source="iceberg", schema=frame.schema),
    ):
        with pytest.raises(PySparkException, match=r"spark\.sql\.catalog\.spark_catalog"):
            use()
    assert tables(session, "default") == before
    installed.uninstall()


@pytest.mark.nightly
def test_a_namespace_may_be_in_one_or_in_both(
    session: SparkSession, db: str, tmp_path: Path
) -> None:
    conf = session.conf
    ours = load_catalog(
        "spark_catalog",
        **{key: str(conf.get(f"{PREFIX}.{key}")) for key in ("uri", "warehouse")},
    )
    assert not ours.namespace_exists(db)
    session.sql(f"CREATE TABLE {db}.ice (id INT) USING iceberg")
    assert ours.list_tables(db) == [f"{db}.ice"]
    elsewhere = f"{db}_elsewhere"
    ours.create_namespace(elsewhere)
    ours.create_table(f"{elsewhere}.t", "id INT")
    namespaces = {row[0] for row in session.sql("SHOW NAMESPACES").collect()}
    assert {db, elsewhere, "default"} <= namespaces
    assert session.table(f"{elsewhere}.t").count() == 0
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        session.sql(f"CREATE NAMESPACE {elsewhere}")
    for name in (db, elsewhere):
        with pytest.raises(AnalysisException, match=r"SCHEMA_NOT_EMPTY|not empty"):
            session.sql(f"DROP NAMESPACE {name}")
        session.sql(f"DROP NAMESPACE {name} CASCADE")
        assert not ours.namespace_exists(name)
        with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
            session.sql(f"SHOW TABLES IN {name}")
    session.sql(f"CREATE NAMESPACE {db} COMMENT 'mine'")
    described = rows(session, f"DESCRIBE NAMESPACE {db}")
    assert ("Comment", "mine") in described


@pytest.mark.nightly
def test_views_and_functions_of_the_session_catalog_are_those_of_spark(
    session: SparkSession, db: str
) -> None:
    session.sql(f"CREATE TABLE {db}.ice (id INT) USING iceberg")
    session.sql(f"INSERT INTO {db}.ice VALUES (1)")
    session.sql(f"CREATE TEMPORARY VIEW {db}_view AS SELECT id + 1 AS id FROM {db}.ice")
    assert rows(session, f"SELECT * FROM {db}_view") == [(2,)]
    session.sql(f"CREATE FUNCTION {db}.plus_one(x INT) RETURNS INT RETURN x + 1")
    assert rows(session, f"SELECT {db}.plus_one(id) FROM {db}.ice") == [(2,)]
    session.catalog.dropTempView(f"{db}_view")
    assert session.catalog.tableExists(f"{db}.ice")
    session.sql(f"CACHE TABLE {db}.ice")
    session.sql(f"INSERT INTO {db}.ice VALUES (2)")
    assert session.table(f"{db}.ice").count() == 2
    session.sql(f"UNCACHE TABLE {db}.ice")


def test_session_catalog_before_install_and_after_uninstall(
    spark: SparkSession, tmp_path: Path
) -> None:
    new_session = with_session_catalog(spark.newSession(), tmp_path)
    assert new_session.range(3).count() == 3
    installed = install(new_session)
    new_session.sql("CREATE TABLE default.early (id INT) USING iceberg")
    assert new_session.table("early").count() == 0
    installed.uninstall()
    with pytest.raises(Exception, match=r"iceberg_pyspark is not installed|PLUGIN"):
        new_session.table("default.early").count()
    new_session.conf.unset(PREFIX)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        new_session.table("default.early")
