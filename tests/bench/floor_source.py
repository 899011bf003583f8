"""The floor of the portable path: a Python data source that only hands on Arrow batches.

It reads the data files of a table in the same tasks as `iceberg-py`, and writes rows to a Parquet
file for each task, with pyarrow alone: no deletes, no projection by id, no metrics, no commit.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from iceberg_pyspark import load_table

BATCH_ROWS = 65_536
ROW_GROUP_ROWS = 1_048_576


@dataclass(frozen=True)
class _Files(InputPartition):
    paths: tuple[str, ...]


class _Reader(DataSourceReader):
    def __init__(self, groups: Sequence[Sequence[str]], columns: list[str]) -> None:
        self._groups = groups
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        return [_Files(tuple(paths)) for paths in self._groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Files)
        for path in partition.paths:
            file = pq.ParquetFile(path)
            yield from file.iter_batches(BATCH_ROWS, columns=self._columns, use_threads=False)


class _Writer(DataSourceArrowWriter):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        writer, waiting, rows = None, list[pa.RecordBatch](), 0
        for batch in iterator:
            if writer is None:
                path = Path(self._folder, f"{uuid.uuid4()}.parquet")
                writer = pq.ParquetWriter(path, batch.schema, compression="zstd")
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= ROW_GROUP_ROWS:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting, rows = [], 0
        if writer is not None:
            if waiting:
                writer.write_table(pa.Table.from_batches(waiting))
            writer.close()
        return WriterCommitMessage()


class FloorSource(DataSource):
    """The format `floor`; its options are those that `read_floor` and `write_floor` give."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "floor"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the columns of a schema."""
        return _Reader(json.loads(self.options["groups"]), schema.names)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return a writer to a folder."""
        return _Writer(self.options["folder"])


def read_floor(spark: SparkSession, table: str, columns: str | None = None) -> DataFrame:
    """Return a table's rows, with the deleted ones, as pyarrow reads its files."""
    spark.dataSource.register(FloorSource)
    scan = load_table(table).scan()
    groups = [[t.file_path.removeprefix("file:") for t in g.tasks] for g in scan.plan_groups()]
    schema = spark.read.format("iceberg-py").load(table).schema
    if columns is not None:
        schema = StructType([schema[name] for name in columns.split(",")])
    reader = spark.read.format("floor").schema(schema).option("groups", json.dumps(groups))
    return reader.load()


def write_floor(rows: DataFrame, folder: Path) -> None:
    """Write rows to Parquet files in a new folder."""
    rows.sparkSession.dataSource.register(FloorSource)
    folder.mkdir()
    rows.write.format("floor").option("folder", str(folder)).mode("append").save()
