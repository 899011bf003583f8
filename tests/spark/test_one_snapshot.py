"""A statement sees one snapshot of a table that it names twice, whoever commits meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import TableCatalog, install, load_catalog
from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from tests.support.native_lake import sqlite_lake

CATALOG = "spark.sql.catalog.busy"
SETTINGS = {
    "cached": {"cache-enabled": "true"},
    "not cached": {"cache-enabled": "false"},
    "expires at once": {"cache-enabled": "true", "cache.expiration-interval-ms": "0"},
}
ISOLATION = ("write.delete.isolation-level", "write.update.isolation-level",
             "write.merge.isolation-level")  # fmt: skip


@dataclass
class BusyTable:
    """The table `busy.db.t`, to which another writer appends a row after each of two loads."""

    spark: SparkSession
    monkeypatch: pytest.MonkeyPatch
    other: TableCatalog
    is_cached: bool
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    def append(self) -> None:
        """Append a row as the other writer."""
        row = {"id": pa.array([next(self.ids)], pa.int32()), "v": ["other"]}
        self.other.load_table("db.t").append(pa.table(row))

    def run(self, statement: str) -> tuple[list[tuple[object, ...]], int]:
        """Run a statement while the other writer commits; return its rows and its loads."""
        self.spark.sql("REFRESH TABLE busy.db.t")
        with self.interrupted() as loads:
            rows = [tuple(row) for row in self.spark.sql(statement).collect()]
        return rows, len(loads)

    @contextmanager
    def interrupted(self) -> Iterator[list[None]]:
        """Let the other writer commit after each of two loads; yield a list with our loads."""
        loads: list[None] = []
        is_ours = True
        load = SqlCatalog.load_table

        def then_append(catalog: SqlCatalog, identifier: TableIdentifier) -> LoadedTable:
            nonlocal is_ours
            loaded = load(catalog, identifier)
            if is_ours:
                loads.append(None)
                if len(loads) < 3:
                    is_ours = False
                    self.append()
                    is_ours = True
            return loaded

        with self.monkeypatch.context() as patch:
            patch.setattr(SqlCatalog, "load_table", then_append)
            yield loads

    def rows(self) -> list[tuple[object, ...]]:
        """Return all rows, as the other writer reads them."""
        rows = self.other.load_table("db.t").scan().to_arrow().to_pylist()
        return sorted(tuple(row.values()) for row in rows)


@pytest.fixture(
    scope="module",
    params=[
        "cached",
        pytest.param("not cached", marks=pytest.mark.nightly),
        pytest.param("expires at once", marks=pytest.mark.nightly),
    ],
)
def busy(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BusyTable]:
    folder: Path = tmp_path_factory.mktemp("busy")
    settings = {f"{CATALOG}.{key}": value for key, value in SETTINGS[request.param].items()}
    for key, value in settings.items():
        spark.conf.set(key, value)
    with sqlite_lake(spark, folder, "busy"), pytest.MonkeyPatch.context() as patch:
        other = load_catalog("busy", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
        # Otherwise every commit of the other writer would be a conflict.
        properties = ", ".join(f"'{name}' = 'snapshot'" for name in ISOLATION)
        spark.sql(f"CREATE TABLE busy.db.t (id INT, v STRING) TBLPROPERTIES ({properties})")
        yield BusyTable(spark, patch, other, request.param == "cached")
    for key in settings:
        spark.conf.unset(key)


def test_both_sides_of_a_read_are_of_one_snapshot(busy: BusyTable) -> None:
    busy.append()
    joined = "SELECT a.id, b.id FROM busy.db.t a FULL JOIN busy.db.t b ON a.id = b.id"
    rows, loads = busy.run(joined)
    assert rows
    assert all(left == right for left, right in rows)
    # Without a cache, Spark may load the table again when it executes what it has analysed.
    assert loads == 1 if busy.is_cached else loads <= 2
    rows, loads = busy.run("SELECT id, (SELECT count(concat(id, v)) FROM busy.db.t) FROM busy.db.t")
    assert {n for _, n in rows} == {len(rows)}
    assert loads == 1 if busy.is_cached else loads <= 2


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO busy.db.t SELECT a.id, 'alone' FROM busy.db.t a "
        "LEFT ANTI JOIN busy.db.t b ON a.id = b.id",
        "MERGE INTO busy.db.t t USING busy.db.t s ON t.id = s.id "
        "WHEN MATCHED AND t.v <> s.v THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) "
        "VALUES (s.id, 'alone') WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'alone'",
        "DELETE FROM busy.db.t WHERE id NOT IN (SELECT id FROM busy.db.t)",
        "DELETE FROM busy.db.t t WHERE (SELECT count(*) FROM busy.db.t s WHERE s.id = t.id) = 0",
        # Metadata answer the subquery, so that the optimized plan does not name the table.
        "UPDATE busy.db.t SET v = 'alone' WHERE id > (SELECT max(id) FROM busy.db.t)",
    ],
    ids=["insert", "merge", "delete", "correlated", "update"],
)
def test_no_change_is_of_rows_that_the_statement_has_not_read(
    busy: BusyTable, statement: str
) -> None:
    busy.append()
    _, loads = busy.run(statement)
    rows = busy.rows()
    assert [row[1] for row in rows] == ["other"] * len(rows)
    assert [row[0] for row in rows] == list(range(1, next(busy.ids)))
    busy.ids = count(len(rows) + 1)
    if busy.is_cached and statement.startswith(("DELETE", "UPDATE")):
        assert loads == 1


def test_the_source_of_merge_into_is_of_the_state_that_is_changed(busy: BusyTable) -> None:
    busy.append()
    table = install(busy.spark).table("busy.db.t")
    source = busy.spark.table("busy.db.t")
    # Spark loads the table of a DataFrame again when it executes it.
    busy.append()
    with busy.interrupted():
        merge = table.merge_into(source.alias("u"), "t.id = u.id")
        merge = merge.whenNotMatched().insert({"id": "u.id", "v": "'alone'"})
        merge = merge.whenMatched("t.v <> u.v").delete()
        merge.whenNotMatchedBySource().update({"v": "'alone'"}).merge()
    rows = busy.rows()
    assert [row[1] for row in rows] == ["other"] * len(rows)
    assert [row[0] for row in rows] == list(range(1, next(busy.ids)))
    busy.ids = count(len(rows) + 1)


def test_a_subquery_of_a_python_update_is_of_the_state_that_is_changed(busy: BusyTable) -> None:
    busy.append()
    table = install(busy.spark).table("busy.db.t")
    own = "FROM busy.db.t"
    with busy.interrupted():
        table.update({"v": f"(SELECT concat('of ', count(v)) {own})"}, f"id IN (SELECT id {own})")
    values = [v for _, v in busy.rows() if v != "other"]
    assert values
    assert set(values) == {f"of {len(values)}"}


def test_a_merge_from_rows_that_spark_has_cached_changes_no_newer_row(busy: BusyTable) -> None:
    busy.append()
    table = install(busy.spark).table("busy.db.t")
    source = busy.spark.table("busy.db.t").cache()
    ids = [row.id for row in source.collect()]
    busy.append()
    merge = table.merge_into(source.alias("u"), "t.id = u.id").whenNotMatchedBySource().delete()
    try:
        merge.whenMatched().update({"v": "'cached'"}).merge()
    finally:
        # `unpersist` does not find the rows that Spark has cached anew after the merge.
        busy.spark.catalog.clearCache()
    rows = busy.rows()
    assert {i for i, v in rows if v == "cached"} == set(ids)
    assert len(rows) == len(ids) + 1


def test_a_change_that_has_read_less_than_there_is_now_is_a_conflict(busy: BusyTable) -> None:
    table = busy.other.load_table("db.t")
    table.update_properties().remove(*ISOLATION).commit()
    busy.append()
    cached_rows = busy.spark.table("busy.db.t").cache()
    cached_rows.count()
    statement = "UPDATE busy.db.t SET v = (SELECT concat('of ', count(*)) FROM busy.db.t)"
    before = busy.rows()
    with pytest.raises(PySparkException, match="run the operation again"):
        busy.run(statement)
    assert set(before) < set(busy.rows())
    # No cache, the catalog's or Spark's, has a state left that the statement could read again.
    busy.spark.sql(statement)
    rows = busy.rows()
    assert {v for _, v in rows} == {f"of {len(rows)}"}
    busy.spark.catalog.clearCache()
    properties = busy.other.load_table("db.t").update_properties()
    properties.set(dict.fromkeys(ISOLATION, "snapshot")).commit()
