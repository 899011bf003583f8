"""A scan as a Spark plan: Spark's readers read the files, and deletes are conditions on rows.

Each group of files (`spark/native_read/reader_groups.py`) becomes parts: relations of files of one
format with the same constants. Only files with deletes need the conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from time import monotonic
from typing import Any, TypeVar

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.arrow.read.position_deletes import DeletionVector
from iceberg_pyspark.arrow.read.read_task import read_group
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.planning.scan_plan import Plan, PlannedFiles, tasks_of
from iceberg_pyspark.planning.scan_tasks import ScanContext, ScanTask, ScanTaskGroup
from iceberg_pyspark.planning.split_pack import pack_tasks
from iceberg_pyspark.spark.bridge.call_arguments import ParquetRelation, SelectedColumn
from iceberg_pyspark.spark.bridge.scan_relations import PlanRequest
from iceberg_pyspark.spark.native_read import deleted_rows
from iceberg_pyspark.spark.native_read.columns import (
    CONSTANT_SEQUENCE,
    ROW_INDEX,
    NativeColumns,
    alias_column,
    constant_ids,
)
from iceberg_pyspark.spark.native_read.deleted_rows import (
    PositionDeletes,
    bitmap_bytes,
    chunks,
    position_places,
    serialized_bitmaps,
    vector_places,
)
from iceberg_pyspark.spark.native_read.equality_joins import (
    DATA_SEQUENCE_NUMBER,
    PARTITION_ORDINAL,
    PartitionOrdinals,
    anti_join,
    kept_name,
    key_ids,
    read_deleted_keys,
)
from iceberg_pyspark.spark.native_read.file_layout import key_columns
from iceberg_pyspark.spark.native_read.filter_conditions import condition_of
from iceberg_pyspark.spark.native_read.reader_groups import (
    DeletedRows,
    FileGroups,
    ReadColumns,
    bounded_dates,
    group_files,
)
from iceberg_pyspark.spark.native_read.relations import (
    ORDINAL,
    RelationFiles,
    Relations,
    SplitOffsets,
    format_of,
    row_count,
)
from iceberg_pyspark.spark.native_read.scan_request import (
    ScanRequest,
    never_null,
    proven_conditions,
)
from iceberg_pyspark.spark.rows.batches import compile_to_spark
from iceberg_pyspark.spark.rows.python_tasks import python_tasks
from iceberg_pyspark.spark.rows.spark_types import to_spark_schema
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage
from iceberg_pyspark.spec.manifests import FileFormat
from iceberg_pyspark.spec.metadata_columns import DELETED
from iceberg_pyspark.sql_text.names import quoted
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.open_storage import with_scan_credentials
from iceberg_pyspark.table.reading.table_scan import TableScan

_EVERY_COLUMN = ScanRequest()


T = TypeVar("T")

POSITION = "__ice_pos"
_PLACE_OF_ROW = (alias_column(ORDINAL, ORDINAL), alias_column(ROW_INDEX, POSITION))
_EVERY_ROW = AlwaysTrue()


@dataclass(frozen=True, kw_only=True)
class Part:
    """One group of files as an analysed plan, with conditions and anti-joins that keep its live
    rows.

    `plan` is a JVM plan, or a `PlanRequest` for one.

    Each anti-join is an analysed join of the plan, of which only the right side and the condition
    are used: the optimizer rule puts them above the query's own filter.
    """

    plan: Any
    not_deleted: Any = None
    anti_joins: tuple[Any, ...] = ()


class NativeScan:
    """One scan, with its files planned."""

    def __init__(
        self,
        spark: SparkSession,
        bridge: Any,
        scan: TableScan,
        row_filter: Predicate = _EVERY_ROW,
        storage: Mapping[str, str] | None = None,
        request: ScanRequest = _EVERY_COLUMN,
    ) -> None:
        """`bridge` makes the JVM's side of the scan.

        `row_filter` selects the rows, even if the scan's predicate prunes files by more conditions.
        `storage` has Iceberg's properties of the table's store.
        """
        self._spark = spark
        self._bridge = bridge
        dates = bounded_dates(scan)
        start = monotonic()
        top_ids = () if request.top is None else (request.top.column.field_id,)
        scan, plan = scan.scan_and_plan([*(f.field_id for f in dates), *top_ids])
        if scan.credentials is not None:
            storage = with_scan_credentials(storage or {}, scan.credentials)
        self._scan = scan
        self._filter = row_filter
        self._request = request
        self.proven_numbers: set[int] = set()
        """The positions of the conditions that all rows fulfil and that need no evaluation."""

        self._ordinals = PartitionOrdinals()
        self._storage = NativeStorage(
            bridge.file_system,
            storage or {},
            open_in_tasks=bridge.open_in_tasks,
            local_files=lambda: bridge.local_files,
        )
        needed = request.files(plan) if isinstance(row_filter, AlwaysTrue) else plan.files()
        files = list(needed)
        never_null_ids = self._prove_conditions(files)
        self._columns = ReadColumns(bridge, self._scan, row_filter, dates)
        self._groups = group_files(
            bridge,
            self._scan,
            self._storage,
            self._columns,
            files,
            marks_deleted=scan.context.projection.as_struct.field(DELETED.field_id) is not None,
        )
        self._split_offsets = SplitOffsets(files)
        sort_orders: set[int | None] = set()
        if request.grouped:
            for planned_files in files:
                sort_orders.update(planned_files.entries["sort_order_id"].unique().to_pylist())
        self._relations = Relations(
            scan=self._scan,
            storage=self._storage,
            ordinals=self._ordinals,
            never_null=never_null_ids,
            sort_orders=sort_orders,
            metrics=_metrics(plan, start),
        )

    def parts(self) -> list[Part]:
        """Return at least one part; the part has no files if all files are pruned."""
        files = self._groups
        if self._request.grouped:
            part = self._group(files)
            if part is not None:
                return [part]
        parts = []
        for files_with, part_of in (
            (files.with_keys, self._with_keys),
            (files.with_positions, self._with_bitmaps),
        ):
            for constants, alike in self._by_constants(files_with, _kind_of_task):
                file_chunks = chunks(
                    alike,
                    lambda file: bitmap_bytes(file[1]),
                    deleted_rows.MAX_BROADCAST_BYTES,
                )
                parts += [part_of(chunk, constants) for chunk in file_chunks]
        if files.portable:
            parts.append(self._portable(files.portable))
        for constants, plain in self._by_constants(files.plain, _kind_of_plain):
            parts.insert(0, self._plain(plain, constants))
        return parts or [self._plain([], frozenset())]

    def _group(self, files: FileGroups) -> Part | None:
        """Return all files as one part with a key for each file; None if it takes several parts."""
        if files.with_keys or files.portable:
            return None
        plain = [task for group in files.plain for task in tasks_of(group)]
        every: list[tuple[ScanTask, DeletedRows]] = [(task, BitMap64()) for task in plain]
        every += files.with_positions
        kinds = self._by_constants(every, _kind_of_task)
        size = sum(bitmap_bytes(bitmap) for _, bitmap in files.with_positions)
        if len(kinds) != 1 or size > deleted_rows.MAX_BROADCAST_BYTES:
            return None
        self._relations.group_keys = key_columns(self._scan.metadata, [task for task, _ in every])
        ((constants, _),) = kinds
        if files.with_positions:
            return self._with_bitmaps(every, constants)
        return self._plain(files.plain, constants)

    def _by_constants(
        self, files: Sequence[T], kind_of: Callable[[T], tuple[FileFormat, int]]
    ) -> list[tuple[frozenset[int], list[T]]]:
        """Return the files grouped by their format and by the columns that are constant in them.

        `kind_of` returns the format and the id of the partition spec.
        Each format has at most as many groups as the table has kinds of partition specs.
        """
        groups: dict[tuple[FileFormat, frozenset[int]], list[T]] = {}
        of_spec = {i: constant_ids(spec) for i, spec in self._scan.context.specs.items()}
        for file in files:
            file_format, spec_id = kind_of(file)
            groups.setdefault((file_format, of_spec[spec_id]), []).append(file)
        return [(constants, alike) for (_, constants), alike in groups.items()]

    def _prove_conditions(self, files: Sequence[PlannedFiles]) -> frozenset[int]:
        """Find the conditions that need no evaluation, and drop the columns that only they need.

        Return the ids of the columns that have no null in any row, by these conditions.
        """
        conditions = self._request.conditions
        numbers = [i for i, c in enumerate(conditions) if c.predicate is not None]
        predicates = [c.predicate for c in conditions if c.predicate is not None]
        proven_indexes = proven_conditions(files, predicates)
        self.proven_numbers = {numbers[i] for i in proven_indexes}
        if self._request.required_columns is not None and self.proven_numbers:
            others = [c.columns for i, c in enumerate(conditions) if i not in self.proven_numbers]
            names = self._request.required_columns.union(*others)
            projection = self._scan.context.projection
            fields = tuple(f for f in projection.fields if f.name in names)
            context = replace(self._scan.context, projection=replace(projection, fields=fields))
            self._scan = replace(self._scan, context=context)
        return never_null([predicates[i] for i in proven_indexes])

    def _plain(self, groups: Sequence[PlannedFiles], constants: frozenset[int]) -> Part:
        columns = self._columns.of(constants, file_format=format_of(groups))
        if columns is None:
            return self._portable([task for group in groups for task in tasks_of(group)])
        files = RelationFiles.of_plan(groups)
        if isinstance(self._filter, AlwaysTrue):
            relation, table = self._relations.describe(columns, files, ())
            return Part(plan=PlanRequest(relation, table, columns.outputs))
        return Part(plan=self._select(columns, files, (), columns.outputs))

    def _files(self, tasks: Sequence[ScanTask]) -> RelationFiles:
        return RelationFiles.of_tasks(tasks, self._storage, self._split_offsets)

    def _with_bitmaps(
        self, files: Sequence[tuple[ScanTask, DeletedRows]], constants: frozenset[int]
    ) -> Part:
        columns = self._columns.of(constants)
        assert columns is not None, "files went to the portable part"
        tasks = [task for task, _ in files]
        outputs = (*columns.outputs, *_PLACE_OF_ROW)
        plan = self._select(columns, self._files(tasks), (ORDINAL,), outputs)
        return Part(
            plan=plan, not_deleted=self._not_deleted(plan, [deleted for _, deleted in files])
        )

    def _not_deleted(self, plan: Any, deletes: Sequence[DeletedRows]) -> Any:
        """Return the condition that a plan's rows are not deleted, or None if no row is deleted."""
        bitmaps = [d if isinstance(d, BitMap64) else BitMap64() for d in deletes]
        vectors = [d if isinstance(d, DeletionVector) else None for d in deletes]
        positions = [d if isinstance(d, PositionDeletes) else None for d in deletes]
        conditions = []
        if any(bitmaps):
            blob, wide = serialized_bitmaps(bitmaps)
            conditions.append(self._bridge.scans.not_in_bitmaps(plan, blob, wide))
        io, context = self._scan.io, self._scan.context

        def location_of(path: str) -> str:
            return self._storage.location(path) or path

        if any(vectors):
            places = vector_places(io, context.table, vectors, location_of, self._storage.options)
            conditions.append(self._bridge.scans.not_in_vectors(plan, places))
        if any(positions):
            files = position_places(io, context, positions, location_of, self._storage.options)
            conditions.append(self._bridge.scans.not_in_position_deletes(plan, files))
        return reduce(self._bridge.scans.conjunction, conditions) if conditions else None

    def _with_keys(
        self, files: Sequence[tuple[ScanTask, DeletedRows]], constants: frozenset[int]
    ) -> Part:
        """Return the part of files with equality deletes, which may have position deletes too."""
        tasks = [task for task, _ in files]
        deletes = [deleted for _, deleted in files]
        ids = key_ids(tasks)
        columns = self._columns.of(constants, ids, tasks[0].file_format)
        deleted_keys = (
            None if columns is None else read_deleted_keys(self._scan, tasks, self._ordinals)
        )
        if columns is None or deleted_keys is None:
            return self._portable(tasks)
        extras = [alias_column(columns.further_names[i], kept_name(i)) for i in ids]
        file_constants: list[str] = []
        if any(not d.is_newer_than_all_rows for d in deleted_keys):
            file_constants.append(CONSTANT_SEQUENCE)
            extras.append(alias_column(CONSTANT_SEQUENCE, DATA_SEQUENCE_NUMBER))
        if any(d.scoped for d in deleted_keys):
            file_constants.append(PARTITION_ORDINAL)
            extras.append(alias_column(PARTITION_ORDINAL, PARTITION_ORDINAL))
        if any(deletes):
            file_constants.append(ORDINAL)
            extras += _PLACE_OF_ROW
        relation, table = self._relations.describe(columns, self._files(tasks), file_constants)
        frame = self._frame(columns, relation, table, (*columns.outputs, *extras))
        plan = self._bridge.analyse(frame)
        return Part(
            plan=plan,
            not_deleted=self._not_deleted(plan, deletes),
            anti_joins=tuple(
                self._bridge.analyse(anti_join(self._spark, frame, d)) for d in deleted_keys
            ),
        )

    def _select(
        self,
        columns: NativeColumns,
        files: RelationFiles,
        file_constants: Sequence[str],
        outputs: Sequence[SelectedColumn],
    ) -> Any:
        """Return the plan of the rows that the row filter selects, before deletes."""
        relation, table = self._relations.describe(columns, files, file_constants)
        if isinstance(self._filter, AlwaysTrue):
            return self._bridge.scans.plan(PlanRequest(relation, table, outputs))
        return self._bridge.analyse(self._frame(columns, relation, table, outputs))

    def _frame(
        self,
        columns: NativeColumns,
        relation: ParquetRelation,
        files: pa.RecordBatch,
        outputs: Sequence[SelectedColumn],
    ) -> DataFrame:
        """Return the rows of `_select` as a DataFrame, for building a further plan."""
        frame: DataFrame = self._bridge.scans.relation(relation, files)
        if not isinstance(self._filter, AlwaysTrue):
            frame = frame.where(condition_of(self._filter, columns.further_names))
        expressions = [f"{o.value} AS {quoted(o.name)}" for o in outputs]
        outputs_only: DataFrame = self._bridge.select(frame, expressions)
        return outputs_only

    def _portable(self, tasks: Sequence[ScanTask]) -> Part:
        context = self._scan.context
        schema = to_spark_schema(context.projection)
        groups = pack_tasks(tasks, self._scan.split)
        rows = _GroupRows(context, self._scan.io)
        plan = self._bridge.analyse(python_tasks(self._bridge, groups, rows, schema))
        return Part(plan=self._bridge.scans.with_statistics(plan, row_count(tasks)))


def _kind_of_plain(group: PlannedFiles) -> tuple[FileFormat, int]:
    return format_of([group]), group.spec.spec_id


def _kind_of_task(file: tuple[ScanTask, DeletedRows]) -> tuple[FileFormat, int]:
    return file[0].file_format, file[0].spec_id


def _metrics(plan: Plan, start: float) -> Mapping[str, int]:
    """Return planning metrics by Iceberg's names; `start` is a monotonic time in seconds."""
    statistics = plan.statistics
    return {
        "skippedDataFiles": statistics.data_files - statistics.data_files_kept,
        "scannedDataManifests": statistics.manifests_kept,
        "skippedDataManifests": statistics.manifests - statistics.manifests_kept,
        "indexedDeleteFiles": statistics.delete_files,
        "totalPlanningDuration": round((monotonic() - start) * 1000),
    }


@dataclass(frozen=True)
class _GroupRows:
    """The function that reads a task group's rows on an executor, in Spark's types."""

    context: ScanContext
    io: FileIO

    def __call__(self, group: ScanTaskGroup) -> Iterator[pa.RecordBatch]:
        to_spark = compile_to_spark(self.context.projection)
        for rows in read_group(self.context, group, self.io):
            yield to_spark(rows)
