"""The files that the rows of a read of a row-level operation come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.spark.row_level.target import TargetRead
from iceberg_pyspark.spark.table_states import TargetReads
from iceberg_pyspark.sql_text.schema_text import parse_schema
from iceberg_pyspark.table.commits.create_table import create_table

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
