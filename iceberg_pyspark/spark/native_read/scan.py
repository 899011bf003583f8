"""A scan as a plan of Spark's own: its readers read, our deletes are conditions on rows.

Planned files fall into parts by what they need: nothing, bitmaps of deleted rows, deleted keys
(`spark/native_read/equality_deletes.py`) with or without bitmaps, or the portable reader. Each part
is a relation of its own, of files of one format, so that only files with deletes pay for
them. What Spark's readers might get wrong goes to the portable part, and ORC files
with deleted positions too: Spark's reader tells none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import accumulate, islice
from time import monotonic
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.arrow.read.position_deletes import DeletionVector
from iceberg_pyspark.arrow.read.read_task import read_group
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.expressions.rewriting import columns_of
from iceberg_pyspark.planning.proven_conditions import never_null, proven_conditions
from iceberg_pyspark.planning.scan_plan import PlannedFiles, ScanPlan, tasks_of
from iceberg_pyspark.planning.scan_tasks import ScanContext, ScanTask, ScanTaskGroup
from iceberg_pyspark.planning.split_pack import pack_tasks
from iceberg_pyspark.spark.bridge.calls import ParquetRelation, SelectedColumn
from iceberg_pyspark.spark.bridge.features import (
    EXECUTOR_POSITIONS,
    EXECUTOR_VECTORS,
    NATIVE_SCAN,
    ORC_SCAN,
    ORC_ZONES,
)
from iceberg_pyspark.spark.native_read import position_deletes
from iceberg_pyspark.spark.native_read.columns import (
    CONSTANT_SEQUENCE,
    ROW_INDEX,
    NativeColumns,
    alias_column,
    native_columns,
)
from iceberg_pyspark.spark.native_read.constants import constant_ids
from iceberg_pyspark.spark.native_read.deletion_vectors import large_vectors, vector_places
from iceberg_pyspark.spark.native_read.equality_deletes import (
    DATA_SEQUENCE_NUMBER,
    PARTITION_ORDINAL,
    PartitionOrdinals,
    anti_join,
    equality_deletes,
    kept_name,
    key_ids,
    read_deleted_keys,
)
from iceberg_pyspark.spark.native_read.files import ORDINAL, FileFacts, files_table
from iceberg_pyspark.spark.native_read.filters import condition_of, is_exact
from iceberg_pyspark.spark.native_read.grouping import key_columns
from iceberg_pyspark.spark.native_read.misread_files import misread_files
from iceberg_pyspark.spark.native_read.misread_orc import (
    OrcFilesRead,
    files_with_old_dates,
    is_named_by_schemas,
)
from iceberg_pyspark.spark.native_read.ordering import sort_fields, sorted_by
from iceberg_pyspark.spark.native_read.position_delete_files import (
    PositionDeletes,
    large_positions,
    position_places,
)
from iceberg_pyspark.spark.native_read.position_deletes import (
    bitmap_bytes,
    chunks,
    read_bitmaps,
    serialized_bitmaps,
)
from iceberg_pyspark.spark.native_read.runtime_filters import telling_columns
from iceberg_pyspark.spark.native_read.storage import NativeStorage
from iceberg_pyspark.spark.rows.batches import compile_to_spark
from iceberg_pyspark.spark.rows.python_tasks import python_tasks
from iceberg_pyspark.spark.rows.types import to_spark_schema
from iceberg_pyspark.spec.manifests import FileContent, FileFormat
from iceberg_pyspark.spec.metadata_columns import DELETED
from iceberg_pyspark.spec.properties import DATA_FORMAT, VERIFY_CHECKSUMS
from iceberg_pyspark.spec.types import DateType, NestedField
from iceberg_pyspark.sql_text.names import quoted
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.restricted import check_read
from iceberg_pyspark.table.reading.scan import TableScan

T = TypeVar("T")

POSITION = "__ice_pos"
_AT = (alias_column(ORDINAL, ORDINAL), alias_column(ROW_INDEX, POSITION))
_EVERY_ROW = AlwaysTrue()
_MOST_BYTES = 2**48
"""Spark cuts files by the sizes that it is told, in memory: what is more is read portably."""
_MOST_ROWS = 2**40


@dataclass(frozen=True, kw_only=True)
class Part:
    """One group of files as an analysed plan; deletes leave what fulfils `live` and the joins.

    Each anti-join is an analysed join of the plan: its right side and condition are meant, to come
    above the query's own filter.
    """

    plan: Any
    live: Any = None
    anti_joins: tuple[Any, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RowCondition:
    """One of the conditions that a query has on the rows of a scan, all of which it evaluates."""

    predicate: Predicate | None
    """Bound, of just the rows that fulfil the condition; None where there is no such predicate."""

    columns: frozenset[str]
    """The columns of the scan that it needs."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a query asks of a scan besides its files and columns."""

    conditions: Sequence[RowCondition] = ()
    needed: frozenset[str] | None = None
    """The columns that are needed for more than conditions; None: all."""

    limit: int | None = None
    """Of so many rows any are as good."""

    grouped: bool = False
    """Whether files of equal partition values are wanted together."""


_EVERY_COLUMN = Question()
_Deleted: TypeAlias = BitMap64 | DeletionVector | PositionDeletes
"""The deleted rows of a file: as the driver has read them, or where executors will."""


@dataclass(kw_only=True)
class _Files:
    plain: list[ScanTask] = field(default_factory=list)
    with_positions: list[tuple[ScanTask, _Deleted]] = field(default_factory=list)
    with_keys: list[tuple[ScanTask, _Deleted]] = field(default_factory=list)
    portable: list[ScanTask] = field(default_factory=list)


class NativeScan:
    """Turns one scan into parts."""

    def __init__(
        self,
        spark: SparkSession,
        bridge: Any,
        scan: TableScan,
        key: str,
        row_filter: Predicate = _EVERY_ROW,
        storage: Mapping[str, str] | None = None,
        question: Question = _EVERY_COLUMN,
    ) -> None:
        """`bridge` makes the JVM's side of it; `key` is equal for equal scans.

        Rows are selected by `row_filter`, whatever else the scan's predicate prunes files by;
        `storage` are Iceberg's properties of the table's store.
        """
        self._spark = spark
        self._bridge = bridge
        self._scan = scan
        self._key = key
        self._filter = row_filter
        self._question = question
        self._limit = question.limit if isinstance(row_filter, AlwaysTrue) else None
        self.proven: set[int] = set()
        """Which of the conditions all rows fulfil, so that nobody need evaluate them."""

        self._never_null: frozenset[int] = frozenset()
        self._dates = self._bounded_dates()
        self._known_columns: dict[Hashable, NativeColumns | None] = {}
        self._columns = self._columns_of(frozenset())
        self._orc_columns: dict[int, NativeColumns | None] = {}
        self._scopes = PartitionOrdinals()
        self._planned: Mapping[str, int] = {}
        self._keys: Mapping[str, pa.Array] | None = None
        self._sort_orders: set[int | None] = set()
        self._storage = NativeStorage(bridge.has_file_system, storage or {})
        projected = scan.context.projection.as_struct
        self._marks_deleted = projected.field(DELETED.field_id) is not None

    def parts(self) -> list[Part]:
        """At least one part, without a file if none survives."""
        files = self._sorted_files()
        if self._question.grouped:
            grouped = self._grouped(files)
            if grouped is not None:
                return [grouped]
        parts = []
        for name, files_with, part_of in (
            ("keys", files.with_keys, self._with_keys),
            ("bitmaps", files.with_positions, self._with_bitmaps),
        ):
            for constants, alike in self._by_constants(files_with, lambda file: file[0]):
                chunked = chunks(
                    alike,
                    lambda file: bitmap_bytes(file[1]),
                    position_deletes.MAX_BROADCAST_BYTES,
                )
                for number, chunk in enumerate(chunked):
                    parts.append(part_of(chunk, constants, f"{name}{number}"))
        if files.portable:
            parts.append(self._portable(files.portable))
        for constants, plain in self._by_constants(files.plain, lambda task: task):
            parts.insert(0, self._plain(plain, constants))
        return parts or [self._plain([], frozenset())]

    def _grouped(self, files: _Files) -> Part | None:
        """All files as one part that knows the key of each; None where it takes several."""
        if files.with_keys or files.portable:
            return None
        every: list[tuple[ScanTask, _Deleted]] = [(task, BitMap64()) for task in files.plain]
        every += files.with_positions
        kinds = self._by_constants(every, lambda file: file[0])
        size = sum(bitmap_bytes(bitmap) for _, bitmap in files.with_positions)
        if len(kinds) != 1 or size > position_deletes.MAX_BROADCAST_BYTES:
            return None
        self._keys = key_columns(self._scan.metadata, [task for task, _ in every])
        ((constants, _),) = kinds
        if files.with_positions:
            return self._with_bitmaps(every, constants, "grouped")
        return self._plain(files.plain, constants)

    def _by_constants(
        self, files: Sequence[T], task_of: Callable[[T], ScanTask]
    ) -> list[tuple[frozenset[int], list[T]]]:
        """The files by which columns are constants in them, those of a format by themselves: for
        each format as many groups as kinds of specs."""
        groups: dict[tuple[FileFormat, frozenset[int]], list[T]] = {}
        of_spec = {i: constant_ids(spec) for i, spec in self._scan.context.specs.items()}
        for file in files:
            task = task_of(file)
            groups.setdefault((task.file_format, of_spec[task.spec_id]), []).append(file)
        return [(constants, alike) for (_, constants), alike in groups.items()]

    def _columns_of(
        self,
        constants: frozenset[int],
        hidden: Collection[int] = (),
        file_format: FileFormat = "parquet",
    ) -> NativeColumns | None:
        key = (constants, frozenset(hidden), file_format)
        if key not in self._known_columns:
            self._known_columns[key] = self._columns_now(constants, hidden, file_format)
        return self._known_columns[key]

    def _columns_now(
        self, constants: frozenset[int], hidden: Collection[int], file_format: FileFormat
    ) -> NativeColumns | None:
        needed = ORC_SCAN if file_format == "orc" else NATIVE_SCAN
        if not (self._bridge.has(needed) and is_exact(self._filter)):
            return None
        further = {*hidden, *columns_of(self._filter)}
        orc = OrcFilesRead(
            bounded_dates=frozenset(f.field_id for f in self._dates),
            with_zones=self._bridge.has(ORC_ZONES),
        )
        return native_columns(self._scan, further, constants, file_format, orc)

    def _bounded_dates(self) -> tuple[NestedField, ...]:
        """The columns of dates whose bounds are planned with, for the sake of ORC files."""
        if self._scan.metadata.properties.get(DATA_FORMAT.name, "").lower() != "orc":
            return ()
        fields = self._scan.context.projection.fields
        return tuple(f for f in fields if isinstance(f.type, DateType))

    def _sorted_files(self) -> _Files:
        files = _Files()
        with_deletes: list[ScanTask] = []
        said = 0
        started = monotonic()
        plan = self._scan.plan([f.field_id for f in self._dates])
        needed = list(self._needed(plan))
        self._take_proven([planned for planned, _ in needed])
        for planned, tasks in needed:
            if self._question.grouped:
                self._sort_orders.update(planned.entries["sort_order_id"].unique().to_pylist())
            misread = misread_files(self._scan.io, planned.entries)
            misread |= files_with_old_dates(planned.entries, self._dates)
            for task in tasks:
                if task.file_path in misread or not self._is_readable(task):
                    files.portable.append(task)
                    continue
                said += task.file_size_in_bytes
                if said > _MOST_BYTES:
                    files.portable.append(task)
                elif not task.deletes:
                    files.plain.append(task)
                elif self._marks_deleted:
                    files.portable.append(task)
                else:
                    with_deletes.append(task)
        self._sort_by_deletes(files, with_deletes)
        found = plan.statistics
        self._planned = {
            "skippedDataFiles": found.data_files - found.data_files_kept,
            "scannedDataManifests": found.manifests_kept,
            "skippedDataManifests": found.manifests - found.manifests_kept,
            "indexedDeleteFiles": found.delete_files,
            "totalPlanningDuration": round((monotonic() - started) * 1000),
        }
        return files

    def _sort_by_deletes(self, files: _Files, tasks: Sequence[ScanTask]) -> None:
        """Read the position deletes that the driver reads; where there are many executors do."""
        io, context = self._scan.io, self._scan.context
        read_there = self._read_by_executors(tasks)
        read_here = [t for t in tasks if t.file_path not in read_there]
        read = read_bitmaps(io, read_here, context.table, context.verify_checksums)
        taken = 0
        for task in tasks:
            deleted = read_there.get(task.file_path)
            if deleted is None:
                if taken <= position_deletes.MAX_TOTAL_BYTES:
                    _, deleted = next(read)
                    taken += bitmap_bytes(deleted)
                if taken > position_deletes.MAX_TOTAL_BYTES:
                    files.portable.append(task)
                    continue
            if equality_deletes(task):
                files.with_keys.append((task, deleted or BitMap64()))
            elif deleted is None:
                files.plain.append(task)
            else:
                files.with_positions.append((task, deleted))

    def _read_by_executors(self, tasks: Sequence[ScanTask]) -> Mapping[str, _Deleted]:
        table = self._scan.context.table

        def is_reached(path: str) -> bool:
            return self._storage.location(path) is not None

        found: dict[str, _Deleted] = {}
        if self._bridge.has(EXECUTOR_VECTORS):
            found |= large_vectors(tasks, table, is_reached)
        if self._bridge.has(EXECUTOR_POSITIONS):
            found |= large_positions(tasks, table, is_reached)
        return found

    def _take_proven(self, files: Sequence[PlannedFiles]) -> None:
        """Find the conditions that need no evaluation, and read no column for them alone."""
        conditions = self._question.conditions
        known = [i for i, c in enumerate(conditions) if c.predicate is not None]
        predicates = [c.predicate for c in conditions if c.predicate is not None]
        found = proven_conditions(files, predicates)
        self.proven = {known[i] for i in found}
        self._never_null = never_null([predicates[i] for i in found])
        if self._question.needed is None or not self.proven:
            return
        left = [c.columns for i, c in enumerate(conditions) if i not in self.proven]
        read = self._question.needed.union(*left)
        projection = self._scan.context.projection
        fields = tuple(f for f in projection.fields if f.name in read)
        context = replace(self._scan.context, projection=replace(projection, fields=fields))
        self._scan = replace(self._scan, context=context)
        self._known_columns.clear()
        self._columns = self._columns_of(frozenset())
        self._orc_columns.clear()

    def _needed(self, plan: ScanPlan) -> Iterator[tuple[PlannedFiles, list[ScanTask]]]:
        """The files of each manifest, until there are rows enough for the limit."""
        rows = 0
        for planned in plan.files():
            tasks = tasks_of(planned)
            if self._limit is None:
                yield planned, tasks
                continue
            known = accumulate((_live_rows_said(t) for t in tasks), initial=rows)
            needed = sum(1 for before in islice(known, len(tasks)) if before < self._limit)
            rows += sum(map(_live_rows_said, tasks))
            yield planned, tasks[:needed]
            if rows >= self._limit:
                return

    def _is_readable(self, task: ScanTask) -> bool:
        """Whether Spark's reader reads the file, whatever its deletes are."""
        if self._storage.location(task.file_path) is None:
            return False
        match task.file_format:
            case "parquet":
                return self._columns is not None
            case "orc":
                return is_named_by_schemas(task) and self._is_orc_readable(task)
        return False

    def _is_orc_readable(self, task: ScanTask) -> bool:
        if any(d.content is not FileContent.EQUALITY_DELETES for d in task.deletes):
            return False
        if task.spec_id not in self._orc_columns:
            constants = constant_ids(self._scan.context.specs[task.spec_id])
            columns = self._columns_of(constants, file_format="orc")
            self._orc_columns[task.spec_id] = columns
        return self._orc_columns[task.spec_id] is not None

    def _plain(self, tasks: Sequence[ScanTask], constants: frozenset[int]) -> Part:
        columns = self._columns_of(constants, file_format=_format_of(tasks))
        if columns is None:
            return self._portable(tasks)
        return Part(plan=self._selected(columns, tasks, (), "plain", columns.outputs))

    def _with_bitmaps(
        self, files: Sequence[tuple[ScanTask, _Deleted]], constants: frozenset[int], name: str
    ) -> Part:
        columns = self._columns_of(constants)
        assert columns is not None, "files went to the portable part"
        tasks = [task for task, _ in files]
        plan = self._selected(columns, tasks, (ORDINAL,), name, (*columns.outputs, *_AT))
        return Part(plan=plan, live=self._live(plan, [deleted for _, deleted in files]))

    def _live(self, plan: Any, deleted: Sequence[_Deleted]) -> Any:
        """The condition on a plan's rows that they are not deleted; None where none is."""
        bitmaps = [d if isinstance(d, BitMap64) else BitMap64() for d in deleted]
        vectors = [d if isinstance(d, DeletionVector) else None for d in deleted]
        positions = [d if isinstance(d, PositionDeletes) else None for d in deleted]
        conditions = []
        if any(bitmaps):
            blob, wide = serialized_bitmaps(bitmaps)
            conditions.append(self._bridge.live_rows(plan, blob, wide))
        io, context = self._scan.io, self._scan.context

        def location_of(path: str) -> str:
            return self._storage.location(path) or path

        if any(vectors):
            places = vector_places(io, context.table, vectors, location_of, self._storage.options)
            conditions.append(self._bridge.unmarked_rows(plan, places))
        if any(positions):
            listed = position_places(io, context, positions, location_of, self._storage.options)
            conditions.append(self._bridge.unlisted_rows(plan, listed))
        return reduce(self._bridge.both, conditions) if conditions else None

    def _with_keys(
        self, files: Sequence[tuple[ScanTask, _Deleted]], constants: frozenset[int], name: str
    ) -> Part:
        """Files with equality deletes, which may have position deletes too."""
        tasks = [task for task, _ in files]
        deleted_rows = [deleted for _, deleted in files]
        ids = key_ids(tasks)
        columns = self._columns_of(constants, ids, _format_of(tasks))
        deleted = None if columns is None else read_deleted_keys(self._scan, tasks, self._scopes)
        if columns is None or deleted is None:
            return self._portable(tasks)
        extras = [alias_column(columns.hidden[i], kept_name(i)) for i in ids]
        file_constants: list[str] = []
        if any(not d.any_age for d in deleted):
            file_constants.append(CONSTANT_SEQUENCE)
            extras.append(alias_column(CONSTANT_SEQUENCE, DATA_SEQUENCE_NUMBER))
        if any(d.scoped for d in deleted):
            file_constants.append(PARTITION_ORDINAL)
            extras.append(alias_column(PARTITION_ORDINAL, PARTITION_ORDINAL))
        if any(deleted_rows):
            file_constants.append(ORDINAL)
            extras += _AT
        described, files = self._described(columns, tasks, file_constants, name)
        made = self._frame(columns, described, files, (*columns.outputs, *extras))
        plan = self._bridge.analysed(made)
        return Part(
            plan=plan,
            live=self._live(plan, deleted_rows),
            anti_joins=tuple(
                self._bridge.analysed(anti_join(self._spark, made, d)) for d in deleted
            ),
        )

    def _selected(
        self,
        columns: NativeColumns,
        tasks: Sequence[ScanTask],
        file_constants: Sequence[str],
        part: str,
        outputs: Sequence[SelectedColumn],
    ) -> Any:
        """The plan of the tasks' rows before deletes, those that the row filter selects."""
        described, files = self._described(columns, tasks, file_constants, part)
        if isinstance(self._filter, AlwaysTrue):
            return self._bridge.parquet_plan(described, files, outputs)
        return self._bridge.analysed(self._frame(columns, described, files, outputs))

    def _frame(
        self,
        columns: NativeColumns,
        described: ParquetRelation,
        files: pa.RecordBatch,
        outputs: Sequence[SelectedColumn],
    ) -> DataFrame:
        """The same rows, to build a further plan of."""
        frame: DataFrame = self._bridge.parquet_relation(described, files)
        if not isinstance(self._filter, AlwaysTrue):
            frame = frame.where(condition_of(self._filter, columns.hidden))
        expressions = [f"{o.value} AS {quoted(o.name)}" for o in outputs]
        selected: DataFrame = self._bridge.selected(frame, expressions)
        return selected

    def _described(
        self,
        columns: NativeColumns,
        tasks: Sequence[ScanTask],
        file_constants: Sequence[str],
        part: str,
    ) -> tuple[ParquetRelation, pa.RecordBatch]:
        """The relation over the tasks' files, and the table of them."""
        file_constants = tuple(dict.fromkeys((*file_constants, *columns.file_constants)))
        known = FileFacts(self._scan.context.specs, self._scopes, columns.constants)
        self._check_locations(tasks)
        files = files_table(
            tasks,
            [self._storage.location(t.file_path) or t.file_path for t in tasks],
            {name: known.column(name, tasks) for name in file_constants},
            self._keys or {},
        )
        file_format = _format_of(tasks)
        of_constants = sorted(c.field_id for c in columns.constants.values())
        described = ParquetRelation(
            table=self._scan.context.table,
            key=f"{self._key}#{file_format}#{part}#{of_constants}#{self._keys is not None}",
            file_format=file_format,
            columns=columns.schema(positions=ORDINAL in file_constants).json(),
            never_null=columns.told(self._never_null),
            file_constants=file_constants,
            keys=None if self._keys is None else tuple(self._keys),
            options={**self._storage.options, **self._verification()},
            rows=_rows_said(tasks),
            filtered=self._filtered(columns),
            planned=self._numbers(),
            sorted_by=self._sorted_by(columns),
        )
        return described, files

    def _sorted_by(self, columns: NativeColumns) -> list[list[str]]:
        constants = {c.field_id: name for name, c in columns.constants.items()}
        names = {**columns.names, **constants}
        return sorted_by(sort_fields(self._scan.metadata, self._sort_orders), names)

    def _numbers(self) -> Mapping[str, int]:
        """What planning found, once for all parts, by the names of Iceberg's own metrics."""
        found, self._planned = self._planned, {}
        return found

    def _filtered(self, columns: NativeColumns) -> Mapping[str, str]:
        """Columns read that tell files apart, each with the name that the selected schema has."""
        selected = self._scan.context.schemas[0].as_struct
        known = {
            f.field_id: selected.field(f.field_id) for f in telling_columns(self._scan.metadata)
        }
        return {
            columns.names[i]: f.name
            for i, f in known.items()
            if f is not None and i in columns.names and columns.names[i] not in columns.constants
        }

    def _verification(self) -> Mapping[str, str]:
        """Parquet's own property, for the reader of this relation alone.

        Only where the table asks for it: verifying took Spark's reader 6 % more processor time.
        """
        asked = VERIFY_CHECKSUMS.name in self._scan.metadata.properties
        verify = asked and self._scan.context.verify_checksums
        return {"parquet.page.verify-checksum.enabled": str(verify).lower()}

    def _check_locations(self, tasks: Sequence[ScanTask]) -> None:
        """Raise for a file that the table may not read, as the store does for what we open."""
        for task in tasks:
            check_read(self._scan.io, task.file_path)

    def _portable(self, tasks: Sequence[ScanTask]) -> Part:
        context = self._scan.context
        schema = to_spark_schema(context.projection)
        groups = pack_tasks(tasks, self._scan.split)
        read = _GroupRows(context, self._scan.io)
        plan = self._bridge.analysed(python_tasks(self._bridge, groups, read, schema))
        return Part(plan=self._bridge.with_statistics(plan, _rows_said(tasks)))


def _format_of(tasks: Sequence[ScanTask]) -> FileFormat:
    """The format of files that all have the same, Parquet where there are none."""
    return tasks[0].file_format if tasks else "parquet"


def _live_rows_said(task: ScanTask) -> int:
    """How many rows a file has at least after its deletes."""
    return 0 if task.deletes else max(task.record_count, 0)


def _rows_said(tasks: Sequence[ScanTask]) -> int:
    """How many rows the manifests say the files have, as a number the JVM can hold."""
    return min(sum(max(t.record_count, 0) for t in tasks), _MOST_ROWS)


@dataclass(frozen=True)
class _GroupRows:
    """The rows of a task group as Spark wants them, read on an executor."""

    context: ScanContext
    io: FileIO

    def __call__(self, group: ScanTaskGroup) -> Iterator[pa.RecordBatch]:
        to_spark = compile_to_spark(self.context.projection)
        for rows in read_group(self.context, group, self.io):
            yield to_spark(rows)
