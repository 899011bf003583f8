"""Short helpers to create, read and write tables with Spark and without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.spark.error_text import iceberg_error_in
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.table.commits.commit_files import commit_action
from tests.support.rows import PlainRow, spark_rows

Options = Mapping[str, str | int]


def create_path_table(
    path: Path,
    schema: str,
    rows: Sequence[Mapping[str, Any]] = (),
    *,
    partitioned_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
) -> Table:
    """Create a table in a folder without Spark, and append rows if there are any."""
    catalog = load_catalog("none", type="memory")
    table = catalog.create_table(
        str(path), schema, partitioned_by=partitioned_by, properties=properties
    )
    if rows:
        append_rows(table, rows)
    return table


def append_rows(table: Table, rows: Sequence[Mapping[str, Any]], **options: Any) -> None:
    """Append rows given as dicts, without Spark."""
    schema = to_arrow_schema(table.schema)
    table.append(pa.Table.from_pylist([dict(row) for row in rows], schema=schema), **options)


def append_empty_file(table: Table) -> None:
    """Append a data file without rows, as Spark writes them for empty partitions of a frame."""
    file = next(iter(table.scan().plan_files()))
    location = f"{table.location}/data/empty.parquet"
    with table.io.open_output(location) as stream:
        pq.write_table(pq.read_table(file.file_path.removeprefix("file:")).slice(0, 0), stream)
    empty = DataFile(file_path=location, record_count=0, file_size_in_bytes=table.io.size(location))
    commit_action(table.catalog, table.loaded, table.io, AppendFiles(data_files=(empty,)))
    table.refresh()


def path_table(path: Path) -> Table:
    """Load the current state of the table in a folder."""
    return load_catalog("none", type="memory").load_table(str(path))


def load(spark: SparkSession, table: Path | str, options: Options | None = None) -> DataFrame:
    """Load a table by path or name."""
    return spark.read.format("iceberg-py").options(**(options or {})).load(str(table))


def rows_of(
    spark: SparkSession, table: Path | str, options: Options | None = None
) -> list[PlainRow]:
    """Return all rows of a table in the form of tests.support.rows, sorted."""
    return spark_rows(load(spark, table, options).collect())


def save(
    frame: DataFrame, table: Path | str, options: Options | None = None, *, mode: str = "append"
) -> None:
    """Write a frame into a table by path or name."""
    frame.write.format("iceberg-py").options(**(options or {})).mode(mode).save(str(table))


def refusal(action: Callable[[], object]) -> tuple[str, str]:
    """Return class and message of our error inside the exception that Spark raises to the user."""
    with pytest.raises(PySparkException) as caught:
        action()
    result = iceberg_error_in(str(caught.value))
    assert result is not None, f"no error of ours in: {caught.value}"
    return result


def data_files(path: Path) -> list[Path]:
    """Return all Parquet files below a folder, committed or not."""
    return sorted(path.rglob("*.parquet"))
