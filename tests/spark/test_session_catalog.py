"""Spark's own catalog with Iceberg in it: `spark.sql.catalog.spark_catalog` is `iceberg_pyspark`.

Sessions of one application share Spark's tables, so each test uses its own namespaces.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import install, load_catalog
from tests.support.native_lake import session_catalog, with_session_catalog

pytestmark = pytest.mark.release("Spark's session catalog asks its extension differently")

PREFIX = "spark.sql.catalog.spark_catalog"
BESIDE_JAVA = pytest.mark.once("tests/interop/test_session_catalog.py has such statements on 4.1")
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


def is_iceberg(session: SparkSession, table: str) -> bool:
    described = {r[0]: r[1] for r in session.sql(f"DESCRIBE EXTENDED {table}").collect()}
    return bool(described["Provider"] == "iceberg")


@BESIDE_JAVA
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


@BESIDE_JAVA
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


@pytest.mark.once("tests/interop/test_session_catalog.py runs on 4.1")
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


def test_no_table_hides_another(session: SparkSession, db: str) -> None:
    session.sql(f"CREATE TABLE {db}.plain (id INT) USING parquet")
    session.sql(f"CREATE TABLE {db}.ice (id INT) USING iceberg")
    for statement in (
        f"CREATE TABLE {db}.plain (id INT) USING iceberg",
        f"CREATE TABLE {db}.plain USING iceberg AS SELECT 1 AS id",
        f"ALTER TABLE {db}.ice RENAME TO {db}.plain",
    ):
        with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
            session.sql(statement)
    with pytest.raises(PySparkException, match="no Iceberg table"):
        session.sql(f"CREATE OR REPLACE TABLE {db}.plain (id INT) USING iceberg")
    assert tables(session, db) == ["ice", "plain"]


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


@BESIDE_JAVA
def test_what_is_not_about_tables_stays_sparks(session: SparkSession, db: str) -> None:
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


@pytest.mark.once("4.1 installs and uninstalls in test_sql_catalog.py")
def test_before_install_and_after_uninstall_the_session_says_what_is_missing(
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
