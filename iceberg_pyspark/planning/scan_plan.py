"""Plans a scan: from the manifests of a snapshot to the files to read.

Specification, "Scan Planning". Manifests are pruned and read a few at a time; their entries are
filtered as columns and matched with deletes, and only the remaining entries become objects. The
caller supplies `read_entries`, which reads a manifest.

Runs functions that create many objects with Python's cyclic garbage collector disabled.
"""

from __future__ import annotations

import gc
import inspect
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from itertools import chain, repeat
from sys import intern
from time import monotonic_ns
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.expressions.predicates import AlwaysFalse, AlwaysTrue, BoundColumn, Predicate
from iceberg_pyspark.expressions.rewriting import columns_of
from iceberg_pyspark.planning.bound_values import Numbers
from iceberg_pyspark.planning.delete_index import (
    DELETE_METRICS,
    DeleteEntries,
    DeleteIndex,
    equality_field_ids,
)
from iceberg_pyspark.planning.entry_filter import (
    Mask,
    matching_deletes,
    matching_metrics,
    matching_partitions,
)
from iceberg_pyspark.planning.manifest_pruning import (
    SpecFilter,
    SpecFilters,
    prune_manifests,
    without_needless_deletes,
)
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef, RowChange, ScanTask
from iceberg_pyspark.planning.split_pack import (
    DEFAULT_SPLIT,
    MAX_RANGES_OF_A_FILE,
    SplitOptions,
    Splitter,
)
from iceberg_pyspark.spec.entry_columns import FILTER_METRICS, MetricMap, metric_column
from iceberg_pyspark.spec.manifests import EntryStatus, ManifestContent, ManifestFile
from iceberg_pyspark.spec.metadata_columns import PARTITION_ID
from iceberg_pyspark.spec.partitioning import PartitionSpec, identity_source_ids
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import DoubleType, FloatType, PrimitiveType, StructType, UUIDType
from iceberg_pyspark.storage.files.local import is_local
from iceberg_pyspark.storage.threaded_map import threaded_map

if TYPE_CHECKING:
    from iceberg_pyspark.planning.entry_blocks import BlocksOfEntries

_P = ParamSpec("_P")
_R = TypeVar("_R")


def without_collection(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Disable the cyclic garbage collector while the function runs.

    The new objects form no cycles, so the collector would examine all of them in vain, which took a
    fifth of the time of a first plan of 100,000 files. Raises `TypeError` for a generator function,
    whose body runs after the call.
    """
    if inspect.isgeneratorfunction(function):
        raise TypeError(f"{function.__qualname__} is a generator function: its call runs nothing")

    @wraps(function)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        enabled = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if enabled:
                gc.enable()

    return wrapped


_PART_BYTES = 128 * 1024
"""The most bytes of local manifests that one thread reads together: fewer are not worth one."""
_LEAST_BYTES = 2 * 1024
"""What a manifest counts at least, whatever its list says: all of a part are in memory at once."""


class ReadEntries(Protocol):
    """A function that reads live entries of manifests, as tables of `spec/entry_columns.py`."""

    def __call__(
        self, manifests: Sequence[tuple[ManifestFile, StructType]], *, metrics: Collection[int]
    ) -> Iterable[BlocksOfEntries]:
        """Read the entries with the metrics of these field ids, and maybe of others.

        Each manifest comes with the partition type of its spec.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStatistics:
    """The manifests and files of a snapshot that a plan read and kept.

    The counts are complete when all files were iterated. `data_files` adds the counts of the
    manifest list; for a manifest without counts, it adds the number of entries that were read.
    """

    manifests: int = 0
    manifests_kept: int = 0
    data_files: int = 0
    data_files_kept: int = 0
    delete_files: int = 0
    bytes_kept: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFiles:
    """The files of one manifest that must be read.

    `entries` has the columns of `spec/entry_columns.py`. `deletes` has the deletes by row, and
    `satisfies_filter` tells for each row whether the partition alone proves the predicate.
    `manifest_path` is None if the catalog's server has planned the scan.
    """

    spec: PartitionSpec
    partition_type: StructType
    entries: pa.Table
    deletes: Mapping[int, tuple[DeleteFileRef, ...]]
    satisfies_filter: Mask
    manifest_path: str | None = None
    residuals: Mapping[int, Predicate] = field(default_factory=dict)
    """A condition, by row, that rows must fulfil besides the scan's: `ScanTask.residual`."""

    change: RowChange | None = None
    """In a changelog, the change of all rows of the files; otherwise None."""

    retyped_ids: frozenset[int] = frozenset()
    """Columns whose partition values are of another type, from before the table was replaced."""

    def min_live_rows(self) -> Numbers:
        """Return the least number of rows of each file after its deletes and residuals."""
        rows: Numbers = np.maximum(self.entries["record_count"].to_numpy(), 0)
        rows[list(self.deletes)] = 0
        rows[list(self.residuals)] = 0
        return rows

    def first(self, count: int) -> PlannedFiles:
        """Return only the first `count` files."""
        return replace(
            self,
            entries=self.entries.slice(0, count),
            satisfies_filter=self.satisfies_filter[:count],
        )

    def only(self, mask: Mask) -> PlannedFiles:
        """Return only the files of a mask."""
        if mask.all():
            return self
        new_rows = {int(row): i for i, row in enumerate(np.flatnonzero(mask))}
        return replace(
            self,
            entries=self.entries.filter(pa.array(mask)),
            satisfies_filter=self.satisfies_filter[mask],
            deletes={new_rows[i]: d for i, d in self.deletes.items() if i in new_rows},
            residuals={new_rows[i]: r for i, r in self.residuals.items() if i in new_rows},
        )


class Plan(Protocol):
    """The files that one scan must read; computed during iteration, which is possible once."""

    @property
    def statistics(self) -> PlanStatistics:
        """The counts so far."""
        ...

    def files(self) -> Iterator[PlannedFiles]:
        """Yield the files, in groups of one spec."""
        ...

    def tasks(self, split: SplitOptions | None = DEFAULT_SPLIT) -> Iterator[ScanTask]:
        """Yield the files as tasks; large files are split, unless `split` is None."""
        ...


class ScanPlan:
    """The plan of one scan over manifests; computed during iteration, which is possible once."""

    def __init__(
        self,
        *,
        metadata: TableMetadata,
        manifests: Sequence[ManifestFile],
        predicate: Predicate,
        read_entries: ReadEntries,
        only_files: Collection[str] | None = None,
        only_added_by: Collection[int] | None = None,
        metrics: Collection[int] = (),
        on_end: Callable[[PlanStatistics, int], None] | None = None,
        schemas: Sequence[Schema] = (),
        snapshot: Snapshot | None = None,
        columns: Collection[int] = (),
    ) -> None:
        """Create a plan; `predicate` is a row predicate bound to the scan's schema.

        `schemas` are the scan's schema and then all other schemas; by default, the scan's schema is
        the current one.
        `only_files` are the locations of the data files to plan; None for all. `only_added_by` are
        the snapshots whose added data files are planned; None for all. `metrics` are additional
        column ids whose metrics the entries of data files must have. `on_end` receives the
        statistics and the planning time in nanoseconds when planning is complete. `snapshot` has
        the manifests. `columns` are the ids of the columns that will be read, also `_partition`:
        a file in which such a column has an unreadable type raises `InvalidRequestError`.
        """
        self._on_end = on_end
        self._schemas = schemas or metadata.schemas_newest_first
        self._filters = SpecFilters(metadata, predicate, self._schemas, snapshot)
        self._columns = frozenset(columns)
        self._predicate = predicate
        self._read_entries = read_entries
        self._manifests = list(manifests)
        self._only = None if only_files is None else pa.array(sorted(only_files), pa.string())
        self._added_by = None if only_added_by is None else pa.array(only_added_by, pa.int64())
        self._metrics = frozenset(metrics)
        self.statistics = PlanStatistics(manifests=len(self._manifests))

    def files(self) -> Iterator[PlannedFiles]:
        """Yield the remaining files, one manifest at a time, in the order of the manifest list."""
        if self._on_end is None:
            yield from self._files()
            return
        files, duration_ns = self._files(), 0
        while True:
            started_ns = monotonic_ns()
            planned_files = next(files, None)
            duration_ns += monotonic_ns() - started_ns
            if planned_files is None:
                break
            yield planned_files
        self._on_end(self.statistics, duration_ns)

    def _files(self) -> Iterator[PlannedFiles]:
        if isinstance(self._predicate, AlwaysFalse):
            return
        all_data = [m for m in self._manifests if m.content is ManifestContent.DATA]
        all_deletes = [m for m in self._manifests if m.content is ManifestContent.DELETES]
        data = prune_manifests(all_data, self._filters)
        deletes = without_needless_deletes(all_deletes, all_data, data) if data else []
        deletes = prune_manifests(deletes, self._filters)
        self._count(
            manifests_kept=len(data) + len(deletes),
            data_files=sum(_live_files(m) for m in all_data),
        )
        index, compared_columns, compared_ids = self._index(deletes)
        self._count(delete_files=index.count)
        metrics_ids = self._filter_columns() | self._metrics
        metrics = metrics_ids.union(c.field_id for c in compared_columns)
        for manifest, (table, live_count) in self._read(data, metrics):
            spec_filter = self._filters.of(manifest)
            if manifest.added_files_count is None or manifest.existing_files_count is None:
                self._count(data_files=live_count)
            if not table.num_rows:
                continue
            if self._only is not None:
                table = table.filter(pc.is_in(table["file_path"], value_set=self._only))
            if self._added_by is not None:
                is_added = pc.equal(table["status"], int(EntryStatus.ADDED))
                by_them = pc.is_in(table["snapshot_id"], value_set=self._added_by)
                table = table.filter(pc.and_(is_added, by_them))
            if table.num_rows:
                self._check_types(manifest, spec_filter.spec, compared_ids)
                retyped_ids = frozenset(self._filters.schemas_of_manifests.retyped_since(manifest))
                yield replace(
                    self._planned_files(table, spec_filter, index),
                    manifest_path=manifest.manifest_path,
                    retyped_ids=retyped_ids,
                )

    def _check_types(
        self, manifest: ManifestFile, spec: PartitionSpec, compared_ids: Collection[int]
    ) -> None:
        schemas_of_manifests = self._filters.schemas_of_manifests
        if schemas_of_manifests.retyped_since(manifest):
            schemas_of_manifests.check_columns(manifest, spec, self._columns.union(compared_ids))
            if PARTITION_ID in self._columns:
                schemas_of_manifests.check_partitions(manifest, spec)

    def tasks(self, split: SplitOptions | None = DEFAULT_SPLIT) -> Iterator[ScanTask]:
        """Yield the remaining files as tasks; large files are split, unless `split` is None."""
        return split_into_tasks(self.files(), split)

    def _filter_columns(self) -> frozenset[int]:
        return frozenset(columns_of(self._predicate))

    def _index(
        self, manifests: Sequence[ManifestFile]
    ) -> tuple[DeleteIndex, Sequence[BoundColumn], frozenset[int]]:
        """Return the index of deletes, the equality columns whose metrics it compares, and the ids
        of all equality columns.
        """
        metrics = self._filter_columns().union(DELETE_METRICS)
        tables = {m.part: table for m, (table, _) in self._read(manifests, metrics)}
        ids = {path: equality_field_ids(table) for path, table in tables.items()}
        compared_ids = frozenset[int]().union(*ids.values())
        compared_columns = self._comparable(compared_ids)
        if compared_columns:
            # the equality columns are known only now, so their metrics are read in a second pass
            more = metrics.union(c.field_id for c in compared_columns)
            again = [m for m in manifests if ids[m.part]]
            tables |= {m.part: table for m, (table, _) in self._read(again, more)}
        entries = [
            DeleteEntries(self._filters.of(m).spec, tables[m.part], m.manifest_path)
            for m in manifests
        ]
        return DeleteIndex(entries, compared_columns), compared_columns, compared_ids

    def _comparable(self, field_ids: Collection[int]) -> list[BoundColumn]:
        """Return the columns whose bounds tell which values can be equal.

        Bounds exclude NaN, and the bounds of uuids have two possible orders.
        """
        predicates = []
        for field_id in sorted(field_ids):
            field = next(
                (
                    schema.field_by_id[field_id]
                    for schema in self._schemas
                    if field_id in schema.field_by_id
                ),
                None,
            )
            if field is None or isinstance(field.type, FloatType | DoubleType | UUIDType):
                continue
            if isinstance(field.type, PrimitiveType):
                predicates.append(
                    BoundColumn(field_id=field_id, name=field.name, type=field.type, required=False)
                )
        return predicates

    def _read(
        self, manifests: Sequence[ManifestFile], metrics: frozenset[int]
    ) -> Iterator[tuple[ManifestFile, tuple[pa.Table, int]]]:
        """Yield each manifest with its entries that may match, and its number of live entries."""

        of_metrics = (metric_column(m, i) for m in FILTER_METRICS for i in metrics)
        filter_columns = frozenset(("partition", "record_count", *of_metrics))
        has_filter = self._predicate != AlwaysTrue()
        nothing = pa.table({})

        def read(part: Sequence[ManifestFile]) -> list[tuple[pa.Table, int]]:
            typed = [(m, self._filters.of(m).partition_type) for m in part]
            read_entries = self._read_entries(typed, metrics=metrics)
            return [match(m, entries) for m, entries in zip(part, read_entries, strict=True)]

        def match(manifest: ManifestFile, entries: BlocksOfEntries) -> tuple[pa.Table, int]:
            spec_filter = self._filters.of(manifest)
            retyped = self._filters.schemas_of_manifests.retyped_since(manifest)
            unreadable = [i for i, c in retyped.items() if i in metrics and not c.has_readable_rows]

            def table(columns: Collection[str] | None, blocks: Mask | None = None) -> pa.Table:
                table = entries.table(columns, blocks)
                for field_id in unreadable:
                    table = _without_bounds(table, field_id)
                return table

            if manifest.content is ManifestContent.DELETES or not has_filter:
                whole = table(None)
                matching = self._matching(whole, spec_filter, manifest.content)
                return whole.filter(pa.array(matching)), entries.num_rows
            # plans without a filter do not need it
            from iceberg_pyspark.planning.entry_blocks import matching_blocks  # noqa: PLC0415

            blocks = None
            if not retyped:
                blocks = matching_blocks(entries, self._predicate, spec_filter.leaves.constant_ids)
                if not blocks.any():
                    return nothing, entries.num_rows
            matching = self._matching(table(filter_columns, blocks), spec_filter, manifest.content)
            if not matching.any():
                return nothing, entries.num_rows
            return table(None, blocks).filter(pa.array(matching)), entries.num_rows

        results = threaded_map(read, list(_parts(manifests)), lambda part: part[0].manifest_path)
        return zip(manifests, chain.from_iterable(results), strict=True)

    def _matching(self, table: pa.Table, spec_filter: SpecFilter, content: ManifestContent) -> Mask:
        matching: Mask = matching_partitions(table, spec_filter.inclusive).copy()
        if isinstance(self._predicate, AlwaysTrue) or not matching.any():
            return matching
        if not matching.all():
            table = table.filter(pa.array(matching))
        if content is ManifestContent.DATA:
            matching[matching] = matching_metrics(table, self._predicate, spec_filter.leaves)
        else:
            matching[matching] = matching_deletes(table, self._predicate)
        return matching

    def _planned_files(
        self, table: pa.Table, spec_filter: SpecFilter, index: DeleteIndex
    ) -> PlannedFiles:
        # as floats, because wrong sizes must not overflow
        sizes = table["file_size_in_bytes"].cast(pa.float64(), safe=False)
        self._count(data_files_kept=table.num_rows, bytes_kept=int(pc.sum(sizes).as_py()))
        return PlannedFiles(
            spec=spec_filter.spec,
            partition_type=spec_filter.partition_type,
            entries=table,
            deletes=index.match(
                table, spec_filter.spec.spec_id, identity_source_ids(spec_filter.spec)
            ),
            satisfies_filter=self._satisfies_filter(table, spec_filter.strict),
        )

    def _satisfies_filter(self, table: pa.Table, strict: Predicate) -> Mask:
        match strict:
            case AlwaysTrue() | AlwaysFalse():
                return np.full(table.num_rows, isinstance(strict, AlwaysTrue))
            case _:
                return matching_partitions(table, strict)

    def _count(self, **more: int) -> None:
        counts = {name: getattr(self.statistics, name) + n for name, n in more.items()}
        self.statistics = replace(self.statistics, **counts)


def _parts(manifests: Iterable[ManifestFile]) -> Iterator[list[ManifestFile]]:
    """Yield the manifests in parts that are read together: one, or some small local ones."""
    part: list[ManifestFile] = []
    size = 0
    for manifest in manifests:
        length = max(manifest.manifest_length, _LEAST_BYTES)
        size += length
        if part and (size > _PART_BYTES or not is_local(manifest.manifest_path)):
            yield part
            part, size = [], length
        part.append(manifest)
    if part:
        yield part


def _without_bounds(table: pa.Table, field_id: int) -> pa.Table:
    metrics: tuple[MetricMap, ...] = ("lower_bounds", "upper_bounds")
    for metric in metrics:
        position = table.schema.get_field_index(metric_column(metric, field_id))
        field = table.schema.field(position)
        table = table.set_column(position, field, pa.nulls(table.num_rows, field.type))
    return table


def _live_files(manifest: ManifestFile) -> int:
    added_count, existing = manifest.added_files_count, manifest.existing_files_count
    if added_count is None or existing is None:
        return 0
    # some dead positions may belong to entries that were already DELETED
    return max(0, added_count + existing - manifest.dead_count)


def split_into_tasks(
    groups: Iterable[PlannedFiles], split: SplitOptions | None
) -> Iterator[ScanTask]:
    """Yield all files as tasks; large files are split, unless `split` is None."""
    splitter = None if split is None else Splitter(split.target_size)
    for planned_files in groups:
        yield from tasks_of(planned_files, splitter)


@without_collection
def tasks_of(planned_files: PlannedFiles, splitter: Splitter | None = None) -> list[ScanTask]:
    """Return planned files as tasks; without a splitter, each file is one task."""
    table = planned_files.entries
    satisfies_filter = planned_files.satisfies_filter
    rows: Sequence[int] = range(table.num_rows)
    starts: Iterable[int] = repeat(0)
    lengths = table["file_size_in_bytes"].to_pylist()
    if splitter is not None and max(lengths, default=0) > splitter.target_size:
        formats = table["file_format"].to_pylist()
        counts = table["record_count"].to_pylist()
        offsets = _split_offsets(table)
        cuts = list(map(splitter.ranges, lengths, formats, counts, offsets))
        rows = [row for row, ranges in enumerate(cuts) for _ in ranges]
        starts = [start for ranges in cuts for start, _ in ranges]
        lengths = [length for ranges in cuts for _, length in ranges]
        table = table.take(pa.array(rows, pa.int64()))
        satisfies_filter = satisfies_filter[rows]
    deletes, residuals = planned_files.deletes, planned_files.residuals
    return _tasks_from_columns(
        len(rows),
        {
            "file_path": table["file_path"].to_pylist(),
            "file_format": map(intern, table["file_format"].to_pylist()),
            "file_size_in_bytes": table["file_size_in_bytes"].to_pylist(),
            "record_count": table["record_count"].to_pylist(),
            "start": starts,
            "length": lengths,
            "spec_id": repeat(planned_files.spec.spec_id),
            "partition": partition_tuples(table),
            "data_sequence_number": table["sequence_number"].to_pylist(),
            "first_row_id": table["first_row_id"].to_pylist(),
            "deletes": map(deletes.get, rows, repeat(())) if deletes else repeat(()),
            "filter_satisfied": satisfies_filter.tolist(),
            "residual": map(residuals.get, rows) if residuals else repeat(None),
            "change": repeat(planned_files.change),
            "key_metadata": _key_metadata(table),
            "manifest_path": repeat(planned_files.manifest_path),
        },
    )


def _key_metadata(table: pa.Table) -> Iterable[bytes | None]:
    keys = table["key_metadata"]
    return repeat(None) if keys.null_count == len(keys) else keys.to_pylist()


def _split_offsets(table: pa.Table) -> list[list[int] | None]:
    """Return the split offsets of each file, or None for a file with too many offsets."""
    offsets = table["split_offsets"]
    many = pc.fill_null(pc.greater(pc.list_value_length(offsets), MAX_RANGES_OF_A_FILE), False)
    if pc.any(many).as_py():
        lists = zip(offsets, many.to_pylist(), strict=True)
        return [None if too_many else offset_list.as_py() for offset_list, too_many in lists]
    offset_lists: list[list[int] | None] = offsets.to_pylist()
    return offset_lists


def partition_tuples(table: pa.Table) -> Iterable[tuple[object, ...]]:
    """Return the partition tuple of each file; equal tuples are one object, which saves memory."""
    columns = table["partition"].combine_chunks().flatten()
    parts = [column.to_pylist() for column in columns]
    if not parts:
        return repeat(())
    if any(pa.types.is_floating(column.type) for column in columns):
        # 0.0 and -0.0 are equal, but different partition values
        return zip(*parts, strict=True)
    tuples: dict[tuple[object, ...], tuple[object, ...]] = {}
    return [tuples.setdefault(p, p) for p in zip(*parts, strict=True)]


def _tasks_from_columns(count: int, columns: Mapping[str, Iterable[object]]) -> list[ScanTask]:
    """Create tasks from one column of values per field.

    The fields are set column by column, without a Python frame per task: the constructor of a
    frozen class takes three times as long, which was half the time of planning a large table.
    """
    tasks = list(map(ScanTask.__new__, repeat(ScanTask, count)))
    for f in fields(ScanTask):
        set_field = getattr(ScanTask, f.name).__set__
        deque(map(set_field, tasks, columns[f.name]), maxlen=0)
    return tasks
