"""Spark tables migrated to Iceberg by us and by Java become the same tables.

Both sessions belong to one application and share Spark's tables. Each session's `spark_catalog`
keeps its Iceberg tables in the same SQLite file, so each session reads the other's tables.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import Table, install, load_catalog
from iceberg_pyspark.spec.partitioning import partition_key
from tests.support.oracle import Oracle
from tests.support.parameters import cases
from tests.support.readings import INTERPRETED

CATALOG = "spark.sql.catalog.spark_catalog"
DB = "migrated"
COUNTS = ("operation", "added-data-files", "total-data-files", "total-records")
_numbers = itertools.count()


@pytest.fixture(scope="module")
def sides(
    oracle: Oracle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, SparkSession]]:
    folder = tmp_path_factory.mktemp("migrated-tables")
    ours, java = oracle.spark.newSession(), oracle.spark.newSession()
    common = {"warehouse": str(folder / "warehouse"), "cache-enabled": "false"}
    for session, settings in (
        (ours, {"": "iceberg_pyspark", ".type": "sql", ".uri": f"sqlite:///{folder}/both.db"}),
        (
            java,
            {
                "": "org.apache.iceberg.spark.SparkSessionCatalog",
                ".type": "jdbc",
                ".uri": f"jdbc:sqlite:{folder}/both.db",
                ".jdbc.schema-version": "V1",
            },
        ),
    ):
        for key, value in (settings | {f".{k}": v for k, v in common.items()}).items():
            session.conf.set(f"{CATALOG}{key}", value)
    for key, value in INTERPRETED.items():
        java.conf.set(key, value)
    catalog = load_catalog(
        "spark_catalog", type="sql", uri=f"sqlite:///{folder}/both.db", warehouse=str(folder)
    )
    catalog.create_namespace(DB)
    installed = install(ours)
    ours.sql(f"CREATE NAMESPACE {DB}_spark LOCATION '{folder}/spark'")
    java.sql(f"CREATE NAMESPACE IF NOT EXISTS {DB} LOCATION '{folder}/db'")
    yield {"ours": ours, "java": java}
    ours.sql(f"DROP NAMESPACE {DB} CASCADE")
    ours.sql(f"DROP NAMESPACE {DB}_spark CASCADE")
    installed.uninstall()


def pair(sides: dict[str, SparkSession], place: Path, columns: str, tail: str, rows: str) -> str:
    """Create two EXTERNAL tables with the same files in a folder per side; return their name."""
    name = f"Table{next(_numbers)}"
    spark = sides["java"]
    for side in ("java", "ours"):
        spark.sql(
            f"CREATE TABLE {DB}.{name}_{side} ({columns}) {tail} LOCATION '{place}/{side}/{name}' "
            "TBLPROPERTIES ('owned.by' = 'us')"
        )
        if side == "java":
            spark.sql(f"INSERT INTO {DB}.{name}_java VALUES {rows}")
    shutil.copytree(place / "java" / name, place / "ours" / name)
    if "PARTITIONED" in tail:
        spark.sql(f"MSCK REPAIR TABLE {DB}.{name}_ours")
    return name


def migrate(sides: dict[str, SparkSession], name: str, arguments: str = "") -> list[Any]:
    """Migrate both tables and return the rows of the two calls."""
    results = [
        sides[side].sql(
            f"CALL spark_catalog.system.migrate('{DB}.{name}_{side}'{arguments.format(side)})"
        )
        for side in ("ours", "java")
    ]
    assert results[0].schema == results[1].schema
    return [result.collect() for result in results]


def facts(sides: dict[str, SparkSession], name: str, side: str, place: Path) -> dict[str, Any]:
    """Return everything that the two migrated tables must have in common."""
    uri = str(sides["ours"].conf.get(f"{CATALOG}.uri"))
    warehouse = str(sides["ours"].conf.get(f"{CATALOG}.warehouse"))
    table: Table = load_catalog(
        "spark_catalog", type="sql", uri=uri, warehouse=warehouse
    ).load_table(f"{DB}.{name}_{side}")
    properties = dict(table.properties)
    mapping = json.loads(properties.pop("schema.name-mapping.default"))
    for key in ("owner", "write.parquet.compression-codec"):
        properties.pop(key, None)

    def below(location: str) -> str:
        return location.removeprefix("file:").replace(f"{place}/{side}/", "").removesuffix("/")

    snapshot = table.current_snapshot
    files = {}
    for task in table.scan().plan_files():
        files[below(task.file_path)] = (
            task.file_format,
            task.record_count,
            task.file_size_in_bytes,
            partition_key(task.partition),
        )
    return {
        "schema": table.schema,
        "spec": table.metadata.default_spec,
        "format": table.metadata.format_version,
        "location": below(table.location),
        "properties": properties,
        "mapping": mapping,
        "counts": None if snapshot is None else {k: snapshot.summary.get(k) for k in COUNTS},
        "files": files,
    }


def rows_of(session: SparkSession, table: str) -> list[str]:
    session.sql(f"REFRESH TABLE {table}")
    return sorted(map(str, session.table(table).collect()))


COLUMNS = (
    "Id BIGINT COMMENT 'a number', c CHAR(3), L ARRAY<INT>, r STRUCT<X: INT, y: STRING>, "
    "m MAP<STRING, INT>, price DECIMAL(10, 2), raw BINARY, Day DATE, n INT"
)
ROWS = (
    "(1, 'abc', array(1, null), struct(1, 'y'), map('k', 1), 1.5, X'01', DATE'2026-01-01', 1), "
    "(2, 'd', null, null, null, null, null, null, 2), "
    "(3, 'é', array(), struct(null, null), map(), -1, X'', DATE'1999-12-31', null)"
)


@cases(
    ("file_format", "is_partitioned", "arguments"),
    fast=[("parquet", True, ", map('p', 'q', 'format-version', '3')")],
    nightly=[
        ("parquet", False, ""),
        ("orc", True, ", drop_backup => true"),
        ("orc", False, ", backup_table_name => 'kept_{}'"),
    ],
)
def test_equal_tables_become_equal_tables(
    sides: dict[str, SparkSession],
    tmp_path: Path,
    file_format: str,
    is_partitioned: bool,
    arguments: str,
) -> None:
    tail = f"USING {file_format}" + (" PARTITIONED BY (Day, n)" if is_partitioned else "")
    name = pair(sides, tmp_path, COLUMNS, tail, ROWS)
    sources = {side: rows_of(sides["java"], f"{DB}.{name}_{side}") for side in sides}
    rows = sources["java"]
    assert len(rows) == 3
    assert sources["ours"] == rows
    ours, java = migrate(sides, name, arguments)
    assert ours == java
    assert facts(sides, name, "ours", tmp_path) == facts(sides, name, "java", tmp_path)
    for made_by in ("ours", "java"):
        for reader in ("ours", "java"):
            assert rows_of(sides[reader], f"{DB}.{name}_{made_by}") == rows, (made_by, reader)
    shown = {row.tableName for row in sides["java"].sql(f"SHOW TABLES IN {DB}").collect()}
    backups = {f"{name}_{side}_backup_".lower() for side in sides}
    if "backup" in arguments:
        assert not backups & shown
        assert {f"kept_{side}" for side in sides} <= shown or "drop" in arguments
    else:
        assert backups <= shown
        for backup in backups:
            assert rows_of(sides["java"], f"{DB}.{backup}") == rows
    # Java changes our table, and we change Java's table.
    sides["java"].sql(f"DELETE FROM {DB}.{name}_ours WHERE Id = 1")
    sides["ours"].sql(f"DELETE FROM {DB}.{name}_java WHERE Id = 1")
    for made_by, reader in (("ours", "ours"), ("java", "java")):
        remaining_rows = rows_of(sides[reader], f"{DB}.{name}_{made_by}")
        assert remaining_rows == [row for row in rows if "Id=1," not in row]


@pytest.mark.nightly
def test_tables_without_rows(sides: dict[str, SparkSession], tmp_path: Path) -> None:
    name = f"Table{next(_numbers)}"
    for side in sides:
        (tmp_path / side / name).mkdir(parents=True)
        sides["java"].sql(
            f"CREATE TABLE {DB}.{name}_{side} (id INT, N INT) USING parquet PARTITIONED BY (N) "
            f"LOCATION '{tmp_path}/{side}/{name}'"
        )
    ours, java = migrate(sides, name)
    assert ours == java
    ours_facts, java_facts = (facts(sides, name, side, tmp_path) for side in ("ours", "java"))
    # Java creates a snapshot only if there are partitions.
    for actual in (ours_facts, java_facts):
        actual.pop("counts")
    assert ours_facts == java_facts


@pytest.mark.nightly
def test_table_that_java_does_not_migrate_is_refused(
    sides: dict[str, SparkSession], tmp_path: Path
) -> None:
    spark = sides["java"]
    spark.sql(f"CREATE TABLE {DB}.text (id INT) USING csv")
    spark.sql(f"CREATE TABLE {DB}.buckets (id INT) USING parquet CLUSTERED BY (id) INTO 2 BUCKETS")
    spark.sql(f"CREATE TABLE {DB}.gone (id INT) USING parquet LOCATION '{tmp_path}/gone'")
    spark.sql(f"CREATE TABLE {DB}.gone_backup_ (id INT) USING parquet")
    spark.sql(f"CREATE TABLE {DB}.folderless (id INT) USING parquet LOCATION '{tmp_path}/none'")
    spark.sql(f"CREATE TABLE {DB}.ice (id INT) USING iceberg")
    before = spark.sql(f"SHOW TABLES IN {DB}").collect()
    for arguments, message in (
        (f"'{DB}.text'", "of the format csv|source provider: 'csv'"),
        (f"'{DB}.buckets'", "bucketed"),
        (f"'{DB}.gone'", "already exists|already exists"),
        (f"'{DB}.folderless'", "none is not there|Unable to list files"),
        (f"'{DB}.ice'", "is already an Iceberg table|non-v1 table"),
        (f"'{DB}.missing'", "there is no table|Cannot find source table"),
        ("''", "must name a table|empty identifier"),
        (f"'{DB}.folderless', parallelism => 0", "(?i)parallelism .* be larger than 0"),
    ):
        for session in sides.values():
            with pytest.raises((PySparkException, Py4JJavaError), match=message):
                session.sql(f"CALL spark_catalog.system.migrate({arguments})").collect()
            assert spark.sql(f"SHOW TABLES IN {DB}").collect() == before, arguments
