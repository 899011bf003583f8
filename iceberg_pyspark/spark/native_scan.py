"""A scan as a plan of Spark's own: its Parquet reader reads, our deletes are conditions on rows.

Planned files fall into parts by what they need: nothing, bitmaps of deleted rows, or the portable
reader. Each part is a relation of its own, so that only files with deletes pay for them (design
section 5). What Spark's reader might get wrong goes to the portable part.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from iceberg_pyspark.arrow.position_deletes import read_deleted_rows
from iceberg_pyspark.arrow.read_task import read_group
from iceberg_pyspark.planning.scan_plan import tasks_of
from iceberg_pyspark.planning.scan_tasks import ScanContext, ScanTask, ScanTaskGroup
from iceberg_pyspark.planning.split_pack import pack_tasks
from iceberg_pyspark.spark.batches import compile_to_spark
from iceberg_pyspark.spark.native_columns import (
    FACT_FILE,
    FACT_FIRST_ROW_ID,
    FACT_SEQUENCE,
    FACT_SPEC_ID,
    ROW_INDEX,
    native_columns,
)
from iceberg_pyspark.spark.types import to_spark_schema
from iceberg_pyspark.spec.manifests import FileContent
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.table.scan import TableScan

ORDINAL = "__ice_ord"
POSITION = "__ice_pos"
MAX_BITMAP_BYTES = 64 * 1024 * 1024
"""Beyond this, bitmaps do not travel in one broadcast: their files are read portably."""

_FACT_TYPES = {
    ORDINAL: spark_types.IntegerType(),
    FACT_FILE: spark_types.StringType(),
    FACT_SPEC_ID: spark_types.IntegerType(),
    FACT_FIRST_ROW_ID: spark_types.LongType(),
    FACT_SEQUENCE: spark_types.LongType(),
}
_WHOLE = 2**62


@dataclass(frozen=True, kw_only=True)
class Part:
    """One group of files as an analysed plan; `live` is the condition that deletes leave.

    `joined` says that the plan holds a join, which the optimizer must see.
    """

    plan: Any
    live: Any = None
    joined: bool = False


@dataclass(kw_only=True)
class _Files:
    plain: list[ScanTask] = field(default_factory=list)
    with_positions: list[tuple[ScanTask, BitMap64]] = field(default_factory=list)
    portable: list[ScanTask] = field(default_factory=list)


class NativeScan:
    """Turns one scan into parts."""

    def __init__(self, spark: SparkSession, bridge: Any, scan: TableScan, key: str) -> None:
        """`bridge` makes the JVM's side of it; `key` is equal for equal scans."""
        self._spark = spark
        self._bridge = bridge
        self._scan = scan
        self._key = key
        self._columns = native_columns(scan)

    def parts(self) -> list[Part]:
        """At least one part, without a file if none survives."""
        files = self._sorted_files()
        parts = []
        if files.plain or not (files.with_positions or files.portable):
            parts.append(self._plain(files.plain))
        if files.with_positions:
            parts.append(self._with_bitmaps(files.with_positions))
        if files.portable:
            parts.append(self._portable(files.portable))
        return parts

    def _sorted_files(self) -> _Files:
        files = _Files()
        bitmap_bytes = 0
        for planned in self._scan.plan().files():
            for task in tasks_of(planned, _WHOLE):
                if self._columns is None or task.file_format != "parquet":
                    files.portable.append(task)
                elif not task.deletes:
                    files.plain.append(task)
                elif bitmap_bytes > MAX_BITMAP_BYTES or any(
                    d.content is not FileContent.POSITION_DELETES for d in task.deletes
                ):
                    files.portable.append(task)
                else:
                    rows = read_deleted_rows(self._scan.io, task, self._scan.context.table)
                    if rows is None:
                        files.plain.append(task)
                    else:
                        bitmap = rows.bitmap()
                        bitmap_bytes += len(bitmap.serialize())
                        files.with_positions.append((task, bitmap))
        return files

    def _plain(self, tasks: Sequence[ScanTask]) -> Part:
        if self._columns is None:
            return self._portable(tasks)
        frame = self._relation(tasks, self._columns.facts, "plain")
        return Part(plan=_analysed(frame.selectExpr(*self._columns.expressions)))

    def _with_bitmaps(self, files: Sequence[tuple[ScanTask, BitMap64]]) -> Part:
        assert self._columns is not None, "files went to the portable part"
        tasks = [task for task, _ in files]
        frame = self._relation(tasks, (ORDINAL, *self._columns.facts), "bitmaps")
        made = frame.selectExpr(*self._columns.expressions, ORDINAL, f"{ROW_INDEX} AS {POSITION}")
        plan = _analysed(made)
        blob, wide = packed_bitmaps(bitmap for _, bitmap in files)
        live = self._bridge.live_rows(plan, blob, wide)
        return Part(plan=plan, live=live)

    def _relation(self, tasks: Sequence[ScanTask], facts: Sequence[str], part: str) -> DataFrame:
        assert self._columns is not None, "the columns are native"
        schema = spark_types.StructType(
            [spark_types.StructField(name, _FACT_TYPES[name]) for name in facts]
        )
        lines = "\n".join(
            "\t".join((_cell(t.file_path), str(t.file_size_in_bytes), *_facts(i, t, facts)))
            for i, t in enumerate(tasks)
        )
        relation: DataFrame = self._bridge.parquet_relation(
            key=f"{self._key}#{part}",
            root=self._scan.metadata.location,
            files=lines,
            facts=schema,
            columns=self._columns.read_schema,
        )
        return relation

    def _portable(self, tasks: Sequence[ScanTask]) -> Part:
        context = self._scan.context
        schema = to_spark_schema(context.projection)
        groups = pack_tasks(tasks, self._scan.split)
        if not groups:
            return Part(plan=_analysed(self._spark.createDataFrame([], schema)))
        rows = [(pickle.dumps(group),) for group in groups]
        shipped = self._spark.sparkContext.parallelize(rows, len(rows))
        frame = self._spark.createDataFrame(shipped, "task binary")
        read = _ReadGroups(context, self._scan.io)
        return Part(plan=_analysed(frame.mapInArrow(read, schema)))


@dataclass(frozen=True)
class _ReadGroups:
    """Reads pickled task groups on an executor."""

    context: ScanContext
    io: FileIO

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        to_spark = compile_to_spark(self.context.projection)
        for batch in batches:
            for data in batch.column(0).to_pylist():
                group: ScanTaskGroup = pickle.loads(data)
                for rows in read_group(self.context, group, self.io):
                    yield to_spark(rows)


def _facts(ordinal: int, task: ScanTask, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        match name:
            case "__ice_ord":
                yield str(ordinal)
            case "__ice_file":
                yield "=" + _cell(task.file_path)
            case "__ice_spec_id":
                yield str(task.spec_id)
            case "__ice_first_row_id":
                yield "" if task.first_row_id is None else str(task.first_row_id)
            case "__ice_seq":
                yield str(task.data_sequence_number)


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def packed_bitmaps(bitmaps: Iterable[BitMap64]) -> tuple[bytes, bool]:
    """All bitmaps as one blob of (length, bytes), and whether they are of the 64-bit form.

    The 32-bit form is probed faster; it is what the portable 64-bit form holds for key 0.
    """
    found = list(bitmaps)
    wide = any(len(b) and b.max() >= 2**31 for b in found)
    parts = []
    for bitmap in found:
        data = bitmap.serialize()
        if not wide:
            count = struct.unpack_from("<q", data)[0]
            data = data[12:] if count else b""
        parts.append(struct.pack(">i", len(data)) + data)
    return b"".join(parts), wide


def _analysed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()
