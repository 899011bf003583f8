"""Spark's own catalog with Iceberg in it, compared with Java's `SparkSessionCatalog`.

Both sessions belong to one application and share Spark's tables; each has its own Iceberg tables.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import install
from tests.support.oracle import Oracle
from tests.support.readings import INTERPRETED

pytestmark = pytest.mark.nightly

CATALOG = "spark.sql.catalog.spark_catalog"
_numbers = itertools.count()


def session_of(spark: SparkSession, implementation: str, warehouse: Path) -> SparkSession:
    new_session = spark.newSession()
    new_session.conf.set(CATALOG, implementation)
    new_session.conf.set(f"{CATALOG}.type", "hadoop")
    new_session.conf.set(f"{CATALOG}.warehouse", str(warehouse))
    return new_session


@pytest.fixture(scope="module")
def sessions(
    oracle: Oracle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SparkSession, SparkSession]]:
    """Yield our session and Java's."""
    folder = tmp_path_factory.mktemp("session-catalogs")
    ours = session_of(oracle.spark, "iceberg_pyspark", folder / "ours")
    java = session_of(oracle.spark, "org.apache.iceberg.spark.SparkSessionCatalog", folder / "java")
    for key, value in INTERPRETED.items():
        java.conf.set(key, value)
    installed = install(ours)
    yield ours, java
    installed.uninstall()


def outcome(session: SparkSession, statement: str) -> object:
    """Return the rows of a statement, or the kind of its error."""
    try:
        return sorted(tuple(row) for row in session.sql(statement).collect())
    except PySparkException as e:
        return e.getCondition()
    except Py4JJavaError as e:
        return str(e.java_exception.getClass().getSimpleName())


STATEMENTS = (
    "CREATE TABLE {db}.ice (id INT, v STRING) USING iceberg",
    "CREATE TABLE {db}.plain (id INT, v STRING) USING parquet",
    "CREATE TABLE {db}.bare (id INT)",
    "CREATE TABLE {db}.ice (id INT) USING iceberg",
    "CREATE TABLE IF NOT EXISTS {db}.ice (id INT) USING iceberg",
    "CREATE TABLE {db}.nothing (id INT) USING no_such_format",
    "CREATE TABLE nowhere.t (id INT) USING parquet",
    "INSERT INTO {db}.ice VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT INTO {db}.plain SELECT * FROM {db}.ice",
    "INSERT OVERWRITE {db}.plain SELECT id, upper(v) FROM {db}.ice",
    "SELECT p.v, i.v FROM {db}.plain p JOIN {db}.ice i USING (id)",
    "SELECT count(*) > 0 FROM spark_catalog.{db}.ice.files",
    "SELECT * FROM {db}.plain.files",
    "SELECT * FROM {db}.nothing",
    "DELETE FROM {db}.ice WHERE id = 1",
    "DELETE FROM {db}.plain WHERE id = 1",
    "UPDATE {db}.ice SET v = 'z' WHERE id = 2",
    "SELECT * FROM {db}.ice",
    "SELECT * FROM {db}.plain VERSION AS OF 1",
    "ALTER TABLE {db}.ice ADD COLUMN w INT",
    "ALTER TABLE {db}.plain ADD COLUMN w INT",
    "SELECT * FROM {db}.ice",
    "SELECT * FROM {db}.plain",
    "SHOW COLUMNS IN {db}.ice",
    "SHOW COLUMNS IN {db}.plain",
    "SHOW PARTITIONS {db}.plain",
    "ANALYZE TABLE {db}.plain COMPUTE STATISTICS",
    "REFRESH TABLE {db}.ice",
    "REFRESH TABLE {db}.plain",
    "SHOW TABLE EXTENDED IN {db} LIKE 'ice' PARTITION (id = 1)",
    "SHOW PARTITIONS {db}.ice",
    "SHOW CREATE TABLE {db}.ice AS SERDE",
    "SHOW COLUMNS IN ice IN {db}",
    "DESCRIBE TABLE {db}.ice",
    "DESCRIBE TABLE {db}.ice id",
    "DESCRIBE TABLE {db}.ice PARTITION (id = 1)",
    "ANALYZE TABLE {db}.ice COMPUTE STATISTICS",
    "ANALYZE TABLES IN {db} COMPUTE STATISTICS",
    "ANALYZE TABLES IN spark_catalog.{db} COMPUTE STATISTICS",
    "ALTER TABLE {db}.ice ADD CONSTRAINT positive CHECK (id > 0)",
    "ALTER TABLE {db}.ice ADD CONSTRAINT key PRIMARY KEY (id)",
    "SHOW TBLPROPERTIES {db}.ice ('none')",
    "DESCRIBE TABLE EXTENDED {db}.ice AS JSON",
    "COMMENT ON TABLE {db}.ice IS 'about'",
    "SHOW TBLPROPERTIES {db}.ice ('comment')",
    "LOAD DATA INPATH '/nothing' INTO TABLE {db}.ice",
    "MSCK REPAIR TABLE {db}.ice",
    "ALTER TABLE {db}.ice RECOVER PARTITIONS",
    "ALTER TABLE {db}.ice ADD PARTITION (id = 1)",
    "ALTER TABLE {db}.ice DROP PARTITION (id = 1)",
    "TRUNCATE TABLE {db}.ice PARTITION (id = 1)",
    "DROP VIEW IF EXISTS {db}.ice",
    "ALTER VIEW {db}.ice RENAME TO {db}.other",
    "ALTER VIEW {db}.ice AS SELECT 1",
    "CACHE TABLE {db}.ice",
    "UNCACHE TABLE {db}.ice",
    "CREATE TABLE {db}.chosen USING iceberg AS SELECT * FROM {db}.plain",
    "CREATE TABLE {db}.copied USING parquet AS SELECT * FROM {db}.ice",
    "REPLACE TABLE {db}.chosen USING iceberg AS SELECT id FROM {db}.plain",
    "SELECT * FROM {db}.chosen",
    "SELECT * FROM {db}.copied",
    "CREATE VIEW {db}.seen AS SELECT id FROM {db}.plain",
    "SELECT * FROM {db}.seen",
    "SHOW VIEWS IN {db}",
    "DROP VIEW {db}.seen",
    "CREATE TEMPORARY VIEW {db}_temporary AS SELECT id FROM {db}.ice",
    "SELECT * FROM {db}_temporary",
    "CREATE FUNCTION {db}.plus_one(x INT) RETURNS INT RETURN x + 1",
    "SELECT {db}.plus_one(id) FROM {db}.ice",
    "DROP FUNCTION {db}.plus_one",
    "TRUNCATE TABLE {db}.plain",
    "TRUNCATE TABLE {db}.chosen",
    "SELECT count(*) FROM {db}.plain",
    "SELECT count(*) FROM {db}.chosen",
    "USE {db}",
    "SELECT current_catalog()",
    "SELECT count(*) FROM ice",
    "USE default",
    "DROP TABLE {db}.plain",
    "DROP TABLE {db}.ice",
    "DROP TABLE {db}.ice",
    "DROP TABLE IF EXISTS {db}.ice",
    "DROP TABLE {db}.copied PURGE",
)

BETTER_HERE = {
    "SELECT * FROM {db}.plain.files": "TABLE_OR_VIEW_NOT_FOUND",
    # Java's session catalog hides Spark's own views.
    "CREATE VIEW {db}.seen AS SELECT id FROM {db}.plain": [],
    "SELECT * FROM {db}.seen": [(1,), (2,), (3,)],
    "SHOW VIEWS IN {db}": [("{db}", "seen", False)],
    "DROP VIEW {db}.seen": [],
}


def test_statements_have_the_outcomes_that_they_have_in_java(
    sessions: tuple[SparkSession, SparkSession],
) -> None:
    differing = {}
    prefix = f"beside{next(_numbers)}"
    names = [f"{prefix}_ours", f"{prefix}_java"]
    for session, name in zip(sessions, names, strict=True):
        session.sql(f"CREATE NAMESPACE {name}")
    for statement in STATEMENTS:
        ours, java = (
            str(outcome(session, statement.format(db=name))).replace(name, "{db}")
            for session, name in zip(sessions, names, strict=True)
        )
        if ours != java:
            differing[statement] = ours
    assert differing == {k: str(v) for k, v in BETTER_HERE.items()}
