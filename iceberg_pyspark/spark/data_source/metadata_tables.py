"""Metadata tables in Spark: reads by the data source, and plans over the tables' tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.spark.data_source.pinned_table import PinnedTable
from iceberg_pyspark.spark.data_source.read_options import ReadOptions, TableOptions
from iceberg_pyspark.spark.rows.batches import compile_to_spark
from iceberg_pyspark.spark.rows.python_tasks import python_tasks
from iceberg_pyspark.spark.rows.spark_types import project_like, to_spark_schema
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.metadata_tables.lookup import metadata_table
from iceberg_pyspark.table.metadata_tables.rows import KnownRows, MetadataTable, MetadataTableReader
from iceberg_pyspark.table.table_storage import table_io

if TYPE_CHECKING:
    # Executors import this module and have no bridge.
    from iceberg_pyspark.spark.bridge.jvm import Bridge


@dataclass(frozen=True, kw_only=True)
class MetadataTableReadJob:
    """A read of a metadata table, of the table's state when the DataFrame was made."""

    table: TableOptions
    options: ReadOptions
    loaded_table: LoadedTable
    name: str

    @property
    def pinned_table(self) -> PinnedTable:
        """The table's state for the next step of the read."""
        return PinnedTable.of(self.loaded_table, self.name)

    def schema(self) -> StructType:
        """Return the schema of the rows that will be read."""
        return to_spark_schema(self._open().schema)

    def reader(self, schema: StructType) -> MetadataTableSourceReader:
        """Return a reader; with a user-given schema, a reader of only its columns."""
        self.options.require_batch()
        table = self._open()
        if to_spark_schema(table.schema) != schema:
            table = table.select(project_like(_all_columns(table), schema))
        return MetadataTableSourceReader(table)

    def _open(self) -> MetadataTable:
        table = metadata_table(
            self.loaded_table,
            table_io(self.loaded_table),
            self.name,
            selector=self.options.selector,
        )
        if self.options.filter is not None:
            raise InvalidRequestError(
                f"the option filter is not for metadata tables like {table.name}; "
                "use .filter(...) on the DataFrame"
            )
        if self.options.columns is None:
            return table
        return table.select(_with_columns(table, self.options))


def _with_columns(table: MetadataTable, options: ReadOptions) -> Schema:
    projection = []
    for name in options.columns or ():
        fields = [
            f
            for f in _all_columns(table).fields
            if f.name == name or (not options.case_sensitive and f.name.lower() == name.lower())
        ]
        if not fields:
            names = ", ".join(f.name for f in table.schema.fields)
            raise InvalidRequestError(
                f"{table.name} has no column '{name}'; it has: {names}. To read fields of "
                "structs, use .select(...) on the DataFrame"
            )
        projection.extend(fields)
    return Schema(fields=tuple(dict.fromkeys(projection)))


@dataclass(frozen=True)
class MetadataTablePartition(InputPartition):
    """A Spark partition that has one task."""

    task: Any


class MetadataTableSourceReader(DataSourceReader):
    """A reader of a metadata table; each task is one Spark partition."""

    def __init__(self, table: MetadataTable) -> None:
        self._table: MetadataTable | None = table
        self._read = ReadTasks(reader=table.reader, io=table.io, projection=table.schema)

    def __getstate__(self) -> dict[str, Any]:
        # Executors need no metadata.
        return {**self.__dict__, "_table": None}

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the tasks, on the driver; for an empty list Spark calls `read(None)` once."""
        assert self._table is not None, "partitions() runs where the reader was made"
        return [MetadataTablePartition(task) for task in self._table.plan()]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task, on an executor."""
        if isinstance(partition, MetadataTablePartition):
            yield from self._read.rows(partition.task)


@dataclass(frozen=True, kw_only=True)
class ReadTasks:
    """The function that reads the tasks of a metadata table, with rows in Spark's types."""

    reader: MetadataTableReader
    io: FileIO = field(repr=False)
    projection: Schema

    def rows(self, task: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        to_spark = compile_to_spark(self.projection)
        for batch in self.reader.read(self.io, task, self.projection):
            yield to_spark(batch)


def _all_columns(table: MetadataTable) -> Schema:
    return Schema(fields=(*table.schema.fields, *table.hidden.fields))


def metadata_table_frame(
    bridge: Bridge, table: MetadataTable, required_schema: StructType
) -> DataFrame:
    """Return the required columns of a metadata table; any one column if none is required."""
    projection = project_like(_all_columns(table), required_schema)
    if not projection.fields:
        # Rows without any column could not be counted.
        projection = replace(projection, fields=table.schema.fields[:1])
    schema = to_spark_schema(projection)
    tasks = table.plan()
    read_tasks = ReadTasks(reader=table.reader, io=table.io, projection=projection)
    if isinstance(table.reader, KnownRows) or _is_little(table.io, tasks):
        batches = [batch for task in tasks for batch in read_tasks.rows(task)]
        if batches:
            return bridge.spark.createDataFrame(pa.Table.from_batches(batches), schema)
    cores = bridge.spark.sparkContext.defaultParallelism
    partitions = min(max(len(tasks) // _TASKS_OF_A_PARTITION, cores), _MAX_PARTITIONS)
    return python_tasks(bridge, tasks, read_tasks.rows, schema, max_partitions=partitions)


# A Spark task takes 0.1 seconds in Python before it reads; a small manifest takes 5 ms.
_TASKS_OF_A_PARTITION = 16
_MAX_PARTITIONS = 200
_MAX_MANIFESTS_HERE = 16
_MAX_BYTES_HERE = 256 * 1024


def _is_little(io: FileIO, tasks: Sequence[Any]) -> bool:
    """Return whether the driver reads the rows of tasks in less time than tasks of Spark start."""
    manifests: list[ManifestFile] = []
    for task in tasks:
        match task:
            case ManifestFile():
                manifests.append(task)
            case Snapshot():
                manifests += read_snapshot_manifests(io, task)
            case _:
                return False
        if len(manifests) > _MAX_MANIFESTS_HERE:
            return False
    return sum(m.manifest_length for m in manifests) <= _MAX_BYTES_HERE
