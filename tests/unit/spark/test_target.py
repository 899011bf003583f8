"""The table that a row-level operation changes, and what it reads of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.spark.row_level.target import (
    OtherStateError,
    TargetRead,
    state_read,
    table_to_pin,
)
from iceberg_pyspark.spark.table_states import TableState, TargetReads
from iceberg_pyspark.sql_text.schema_text import parse_schema
from iceberg_pyspark.table.commits.create_table import create_table
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector

T = TableIdentifier(namespace=("db",), name="t")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace(("db",))
    create_table(catalog, T, NewTable(schema=parse_schema("id INT")))
    return catalog


def changed(catalog: Catalog, value: str) -> LoadedTable:
    Table(catalog, catalog.load_table(T)).update_properties().set({"k": value}).commit()
    return catalog.load_table(T)


def state(loaded_table: LoadedTable) -> TableState:
    return TableState(catalog="s/lake", loaded_table=loaded_table)


def test_the_state_that_is_read_is_the_state_that_is_changed(catalog: Catalog) -> None:
    first = catalog.load_table(T)
    second, third = changed(catalog, "2"), changed(catalog, "3")
    assert table_to_pin(state(second), [state(second)]) is second
    # Spark has loaded the table again after its target.
    assert table_to_pin(state(second), [state(third)]) is third
    # A DataFrame in a temporary view has its own, earlier state.
    assert table_to_pin(state(second), [state(first)]) is None
    assert table_to_pin(state(second), [state(first), state(second)]) is second


def test_read_of_another_table_or_snapshot_is_not_pinned(catalog: Catalog) -> None:
    own = state(catalog.load_table(T))
    other = TableIdentifier(namespace=("db",), name="other")
    others = create_table(catalog, other, NewTable(schema=parse_schema("id INT")))
    referenced_tables = [
        state(others),
        replace(own, catalog="s/elsewhere"),
        replace(own, metadata_table="files"),
        replace(own, selector=SnapshotSelector(version="1")),
        replace(own, selector=SnapshotSelector(as_of_timestamp_ms=1)),
    ]
    assert table_to_pin(own, referenced_tables) is None
    assert table_to_pin(own, []) is None
    branch = replace(own, selector=SnapshotSelector(branch="audit"))
    assert table_to_pin(own, [branch]) is own.loaded_table


def test_a_merge_begins_at_the_state_of_its_source(catalog: Catalog) -> None:
    first = catalog.load_table(T)
    second = changed(catalog, "2")
    read = state_read(second, [state(first)])
    assert read is not None
    assert read.metadata_location == first.metadata_location
    assert read.config == second.config
    # The same table by another catalog, as `format("iceberg-py")` names it.
    elsewhere = replace(state(first), catalog="s/elsewhere")
    assert state_read(second, [elsewhere, state(first)]) == read
    assert state_read(second, [replace(state(first), metadata_table="files")]) is None
    with pytest.raises(OtherStateError, match="must see one snapshot") as caught:
        state_read(second, [state(first), state(second)])
    assert caught.value.state is second


NO_ROWS: Any = None


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return a table of two files, one with the id 1 and one with the id 9."""
    catalog = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace(("db",))
    identifier = TableIdentifier(namespace=("db",), name="t")
    table = Table(
        catalog, create_table(catalog, identifier, NewTable(schema=parse_schema("id INT")))
    )
    for id_ in (1, 9):
        table.append(pa.table({"id": pa.array([id_], pa.int32())}))
    return table


def files_of(table: Table, filter: str | None = None) -> frozenset[str]:
    return frozenset(task.file_path for task in table.scan(filter=filter).plan_files())


def read(table: Table, *filters: str | None) -> TargetRead:
    """Return a read that Spark has planned with these filters, one after the other."""
    reads = TargetReads()
    for filter in filters:
        reads.record_scan(table.scan(filter=filter))
    return TargetRead(rows=NO_ROWS, scan=table.scan(), reads=reads)


def test_a_later_read_does_not_hide_files_of_an_earlier_read(table: Table) -> None:
    every_file = files_of(table)
    whole, part = read(table, None), read(table, "id > 5")
    assert part.files(every_file).keys() == files_of(table, "id > 5")
    assert whole.files(every_file).keys() == every_file
    assert whole.files([]) == {}


def test_the_files_of_a_read_have_rows_of_any_of_its_scans(table: Table) -> None:
    every_file = files_of(table)
    assert read(table, "id > 5", "id < 5").files(every_file).keys() == every_file
    assert read(table).files(every_file).keys() == every_file
