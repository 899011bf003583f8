"""How often statements load a table from a cached catalog, and which version they see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark import load_catalog
from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from tests.support.native_lake import sqlite_lake

Loads = Callable[[str], int]
CATALOG = "spark.sql.catalog.cachedlake"


@pytest.fixture
def loads(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loads]:
    """Yield a function that runs a statement and returns the number of times it loaded a table."""
    count = 0
    load = SqlCatalog.load_table

    def counted(self: SqlCatalog, identifier: TableIdentifier) -> LoadedTable:
        nonlocal count
        count += 1
        return load(self, identifier)

    def run(statement: str) -> int:
        before = count
        spark.sql(statement).collect()
        return count - before

    spark.conf.set(f"{CATALOG}.cache-enabled", "true")
    monkeypatch.setattr(SqlCatalog, "load_table", counted)
    with sqlite_lake(spark, tmp_path, "cachedlake"):
        spark.sql("CREATE TABLE cachedlake.db.t (id INT, v STRING)")
        spark.sql("INSERT INTO cachedlake.db.t VALUES (1, 'a'), (2, 'b')")
        yield run
    spark.conf.unset(f"{CATALOG}.cache-enabled")


SELF_JOIN = "SELECT * FROM cachedlake.db.t a JOIN cachedlake.db.t b ON a.id = b.id"


def test_a_statement_loads_a_table_once(spark: SparkSession, loads: Loads) -> None:
    spark.sql("REFRESH TABLE cachedlake.db.t")
    assert loads(SELF_JOIN) == 1
    assert loads(SELF_JOIN) == 0
    assert loads("SELECT * FROM cachedlake.db.t.snapshots") <= 1


def test_own_writes_are_seen_and_others_after_refresh_table(
    spark: SparkSession, loads: Loads, tmp_path: Path
) -> None:
    def ids() -> list[int]:
        return sorted(row.id for row in spark.table("cachedlake.db.t").collect())

    spark.sql("INSERT INTO cachedlake.db.t VALUES (3, 'c')")
    spark.sql("DELETE FROM cachedlake.db.t WHERE id = 1")
    spark.sql("UPDATE cachedlake.db.t SET id = 4 WHERE id = 2")
    assert ids() == [3, 4]
    other = load_catalog(
        "cachedlake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path)
    )
    theirs = other.load_table("db.t")
    theirs.append(theirs.scan(filter="id = 3").to_arrow())
    assert ids() == [3, 4]
    spark.sql("REFRESH TABLE cachedlake.db.t")
    assert ids() == [3, 3, 4]
    # A commit starts from the catalog's current metadata, even if the cache has older metadata.
    theirs.append(theirs.scan(filter="id = 4").to_arrow())
    spark.sql("INSERT INTO cachedlake.db.t VALUES (5, 'e')")
    assert ids() == [3, 3, 4, 4, 5]
