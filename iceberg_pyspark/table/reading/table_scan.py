"""Plans and executes one read of one snapshot.

The snapshot is chosen when the scan is created. From then on `context` is complete: readers in
other processes need only the context and the tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Annotated, TypeVar

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.catalogs.catalog import ScanPlanner, ScanReport, ScanToPlan
from iceberg_pyspark.errors import (
    InvalidMetadataError,
    LocationRefusedError,
    StorageError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Filter, Predicate
from iceberg_pyspark.expressions.rewriting import and_, columns_of
from iceberg_pyspark.formats.known_manifests import KnownEntries
from iceberg_pyspark.formats.manifest_columns import TypedManifest, entries_of_manifests
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.planning.scan_plan import Plan, PlanStatistics, ScanPlan
from iceberg_pyspark.planning.scan_tasks import ScanContext, ScanTask, ScanTaskGroup
from iceberg_pyspark.planning.split_pack import SplitOptions, pack_tasks, split_options
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.manifests import FileContent, ManifestContent, ManifestFile
from iceberg_pyspark.spec.metadata_columns import (
    PARTITION_NAME,
    PLAIN_METADATA_COLUMNS,
    partition_column,
)
from iceberg_pyspark.spec.name_mapping import name_mapping_from_text
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import NAME_MAPPING, VERIFY_CHECKSUMS
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.sql_text.lazy_parser import as_predicate
from iceberg_pyspark.sql_text.names import parse_levels
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.open_storage import opened_for_scan
from iceberg_pyspark.storage.threaded_map import threaded_map
from iceberg_pyspark.table.reading.row_stream import RowStream
from iceberg_pyspark.table.reading.server_plan import ServerPlan
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector, select_snapshot

_R = TypeVar("_R")


@contextmanager
def _damage_of(table: str) -> Iterator[None]:
    """Add the table's name, and a hint, to errors about metadata files."""
    try:
        yield
    except LocationRefusedError as e:
        # no file is damaged, and the message contains its remedy
        raise LocationRefusedError(f"table {table}: {e}") from e
    except (InvalidMetadataError, StorageError) as e:
        raise type(e)(
            f"table {table}: {e}; if the file cannot be restored, an older snapshot may still be "
            "read by its id"
        ) from e


def _read_entries(
    table: str, io: FileIO, manifests: Sequence[TypedManifest], *, metrics: Collection[int]
) -> Iterator[KnownEntries]:
    with _damage_of(table):
        yield from entries_of_manifests(io, manifests, metrics=metrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanDescription:
    """The numbers of a scan's plan; its text says how much was skipped."""

    table: str
    snapshot_id: int | None
    statistics: PlanStatistics

    def __str__(self) -> str:
        s = self.statistics
        return (
            f"{s.data_files_kept:,} of {s.data_files:,} files ({s.bytes_kept / 1e6:,.1f} MB), "
            f"{s.manifests_kept:,} of {s.manifests:,} manifests, {s.delete_files:,} delete files"
        )


@checked_methods
@dataclass(frozen=True, kw_only=True)
class TableScan(RowStream):
    """A read of one snapshot; created by `Table.scan`."""

    context: ScanContext
    metadata: TableMetadata
    snapshot: Snapshot | None
    split: SplitOptions
    io: FileIO = field(repr=False)
    only_files: frozenset[str] | None = None
    """The only data files to read; None: all files that may hold matching rows."""

    report: Callable[[ScanReport], None] | None = field(default=None, repr=False, compare=False)
    """Receives a report of the kept files after each plan."""

    planner: ScanPlanner | None = field(default=None, repr=False, compare=False)
    """The catalog's server if it must plan the scan; None: planned here, from manifests."""

    appends: tuple[Snapshot, ...] | None = None
    """The snapshots whose appended rows are read; None: all rows of `snapshot`."""

    credentials: str | None = field(default=None, repr=False)
    """The storage property with credentials for this scan only, which `io` uses."""

    limit: int | None = None
    """The most rows to return; None: all. The plan is that of all rows."""

    def pruned_by(self, predicate: Annotated[Predicate, "a predicate"]) -> TableScan:
        """Return the scan with an additional bound predicate, which prunes files and rows."""
        both = and_(self.context.predicate, predicate)
        return replace(self, context=replace(self.context, predicate=both))

    def of_files(self, paths: frozenset[str]) -> TableScan:
        """Return the scan of these data files only."""
        return replace(self, only_files=paths)

    def plan(self, metrics: Collection[int] = (), *, reads_columns: bool = True) -> Plan:
        """Return the plan, computed during iteration from manifests or by the catalog's server.

        Its entries have the metrics of the columns with these ids, and of the predicate's columns.
        Without `reads_columns`, only the predicate's columns of the rows are read.
        """
        if self.planner is not None:
            return self._plan_by_server(self.planner, metrics)
        only_added_by = None if self.appends is None else [s.snapshot_id for s in self.appends]
        return ScanPlan(
            metadata=self.metadata,
            manifests=self._manifests(),
            only_added_by=only_added_by,
            predicate=self.context.predicate,
            read_entries=partial(_read_entries, self.context.table, self.io),
            only_files=self.only_files,
            metrics=metrics,
            on_end=None if self.report is None else self._report_plan,
            schemas=self.context.schemas,
            snapshot=self.snapshot,
            columns=self.context.projection.field_by_id if reads_columns else (),
        )

    def _manifests(self) -> list[ManifestFile]:
        if self.snapshot is None:
            return []
        with _damage_of(self.context.table):
            if self.appends is None:
                return read_snapshot_manifests(self.io, self.snapshot)
            return self._manifests_of(self.appends)

    def _manifests_of(self, appends: Sequence[Snapshot]) -> list[ManifestFile]:
        """Return the manifests that the snapshots have added, each once, the oldest first.

        Each manifest is as the newest list has it: since version 3, that list may contain a first
        row id that was not assigned yet when the manifest was added.
        """
        # lists of version 1 may omit the snapshot id, which the entries contain too
        ids = {None, *(s.snapshot_id for s in appends)}
        manifest_by_part: dict[Hashable, ManifestFile] = {}
        read = threaded_map(
            partial(read_snapshot_manifests, self.io), appends, lambda s: s.list_location
        )
        for snapshot, manifests in zip(appends, read, strict=True):
            if snapshot.root_manifest is not None:
                # Entries of a root have their ids, and later roots lack the entries removed by
                # then.
                ids_here: Collection[int | None] = (snapshot.snapshot_id,)
            else:
                ids_here = ids
            for manifest in manifests:
                added_by = manifest.added_snapshot_id
                if manifest.content is ManifestContent.DATA and added_by in ids_here:
                    manifest_by_part.setdefault(manifest.part, manifest)
        return list(reversed(manifest_by_part.values()))

    def scan_and_plan(
        self, metrics: Collection[int] = (), *, reads_columns: bool = True
    ) -> tuple[TableScan, Plan]:
        """Return the scan and its plan; the scan has the credentials that a server may return."""
        plan = self.plan(metrics, reads_columns=reads_columns)
        if not isinstance(plan, ServerPlan):
            return self, plan
        plan.start()
        if plan.credentials is None:
            return self, plan
        io = opened_for_scan(self.io, plan.credentials)
        return replace(self, io=io, credentials=plan.credentials), plan

    def _plan_by_server(self, planner: ScanPlanner, metrics: Collection[int]) -> ServerPlan:
        if self.snapshot is None:
            return ServerPlan(planner, None, self.only_files)
        scan = partial(
            ScanToPlan,
            metadata=self.metadata,
            snapshot_id=self.snapshot.snapshot_id,
            schema=self.context.schemas[0],
            projection=self.context.projection,
            predicate=self.context.predicate,
            metrics=frozenset(metrics).union(columns_of(self.context.predicate)),
        )
        return ServerPlan(planner, lambda take: scan(take_credentials=take), self.only_files)

    def _report_plan(self, statistics: PlanStatistics, duration_ns: int) -> None:
        if self.report is not None:
            self.report(
                ScanReport(
                    snapshot_id=None if self.snapshot is None else self.snapshot.snapshot_id,
                    predicate=self.context.predicate,
                    projection=self.context.projection,
                    data_files=statistics.data_files,
                    data_files_kept=statistics.data_files_kept,
                    delete_files=statistics.delete_files,
                    bytes_kept=statistics.bytes_kept,
                    duration_ns=duration_ns,
                )
            )

    def plan_files(self) -> Iterator[ScanTask]:
        """Yield one task per data file that must be read, or several for a large file."""
        return self.plan().tasks(self.split)

    def plan_groups(self, plan: Plan | None = None) -> list[ScanTaskGroup]:
        """Pack the tasks into groups of about the target split size; uses `plan` if it is given."""
        return pack_tasks((plan or self.plan()).tasks(self.split), self.split)

    def describe(self) -> ScanDescription:
        """Plan without reading data files, and return the numbers of the plan."""
        plan = self.plan()
        for _ in plan.files():
            pass
        return ScanDescription(
            table=self.context.table,
            snapshot_id=None if self.snapshot is None else self.snapshot.snapshot_id,
            statistics=plan.statistics,
        )

    def to_batches(self) -> pa.RecordBatchReader:
        """Return the rows as a stream: files are read one after another, in bounded memory.

        With a limit, no file is read after the last row.
        """
        return pa.RecordBatchReader.from_batches(
            to_arrow_schema(self.context.projection), _first_rows(self._batches(), self.limit)
        )

    def _batches(self) -> Iterator[pa.RecordBatch]:
        scan, plan = self.scan_and_plan()
        for task in plan.tasks(self.split):
            yield from read_task(scan.context, task, scan.io, threads=True)

    def to_arrow(self) -> pa.Table:
        """Return all rows as one table in memory; several files are read at a time."""
        if self.limit is not None:
            return super().to_arrow()
        scan, plan = self.scan_and_plan()
        tasks = list(plan.tasks(self.split))
        batches = chain.from_iterable(scan._in_threads(list, tasks))
        return pa.Table.from_batches(batches, to_arrow_schema(self.context.projection))

    def _in_threads(
        self, function: Callable[[Iterator[pa.RecordBatch]], _R], tasks: Sequence[ScanTask]
    ) -> Iterator[_R]:
        """Yield the function's results for the rows of each task; several are read at a time."""
        read_rows = partial(read_task, threads=len(tasks) == 1, is_stream=False)

        def read(task: ScanTask) -> _R:
            return function(read_rows(self.context, task, self.io))

        return threaded_map(read, tasks, lambda t: t.file_path)

    def count(self) -> int:
        """Return the number of rows; data files are read only if their values matter."""
        limit = math.inf if self.limit is None else self.limit
        rows = 0
        not_countable = []
        scan, plan = self.scan_and_plan(reads_columns=False)
        for task in plan.tasks(split=None):
            if rows >= limit:
                return int(limit)
            if scan._is_countable(task):
                rows += task.record_count - scan._deleted_row_count(task)
            else:
                not_countable.append(task)
        counting = replace(scan, context=replace(scan.context, projection=Schema(fields=())))
        for count in counting._in_threads(_row_count, not_countable):
            if rows >= limit:
                break
            rows += count
        return int(min(rows, limit))

    def known_count(self) -> int | None:
        """Return the number of rows, or None if values of data files would have to be read."""
        rows = 0
        with_deletes = []
        scan, plan = self.scan_and_plan(reads_columns=False)
        for task in plan.tasks(split=None):
            if not self._is_countable(task):
                return None
            rows += task.record_count
            if task.deletes:
                with_deletes.append(task)
        # Deletes are read last: otherwise a table that cannot be counted reads them twice.
        rows -= sum(threaded_map(scan._deleted_row_count, with_deletes, lambda t: t.file_path))
        return rows if self.limit is None else min(rows, self.limit)

    def _is_countable(self, task: ScanTask) -> bool:
        selects_all = isinstance(self.context.predicate, AlwaysTrue) or task.filter_satisfied
        # files imported by old writers have a count of -1
        has_count = selects_all and task.record_count >= 0 and task.residual is None
        return has_count and all(
            d.content is not FileContent.EQUALITY_DELETES for d in task.deletes
        )

    def _deleted_row_count(self, task: ScanTask) -> int:
        if not task.deletes:
            return 0
        # with the writers of delete files
        from iceberg_pyspark.table.commits.row_deletes import deleted_before  # noqa: PLC0415

        return deleted_before(
            self.io, task, self.context.table, verify_checksums=self.context.verify_checksums
        )


def scan_table(
    table: str,
    metadata: TableMetadata,
    io: FileIO,
    *,
    selector: SnapshotSelector | None = None,
    columns: Sequence[str] | None = None,
    projection: Callable[[Schema], Schema] | None = None,
    filter: Filter | None = None,
    limit: int | None = None,
    case_sensitive: bool = True,
    overrides: Mapping[str, str] | None = None,
    report: Callable[[ScanReport], None] | None = None,
    planner: ScanPlanner | None = None,
) -> TableScan:
    """Choose a snapshot, and bind columns and filter to its schema.

    `columns` are names; `projection` instead derives the columns from the schema. `overrides` are
    `read.*` properties for this scan; `report` receives a report of each plan; `planner` plans the
    scan if only the catalog's server may do so. Raises `InvalidRequestError` or
    `NoSuchSnapshotError`.
    """
    selected_snapshot = select_snapshot(
        metadata, SnapshotSelector() if selector is None else selector
    )
    if selected_snapshot.appends is not None and planner is not None:
        raise UnsupportedFeatureError(
            f"table {table}: its catalog's server plans its scans, and only for whole snapshots; "
            "read a whole snapshot, or set scan-planning-mode to client on the server or for the "
            "catalog"
        )
    schema = selected_snapshot.schema
    projection_schema = schema
    if projection is not None:
        projection_schema = projection(schema)
    elif columns is not None:
        projection_schema = projection_of(schema, metadata, columns, case_sensitive=case_sensitive)
    mapping = metadata.properties.get(NAME_MAPPING)
    properties = {**metadata.properties, **(overrides or {})}
    return TableScan(
        context=ScanContext(
            table=table,
            table_location=metadata.location,
            projection=projection_schema,
            schemas=(schema, *(s for s in metadata.schemas_newest_first if s is not schema)),
            specs=metadata.spec_by_id,
            predicate=AlwaysTrue()
            if filter is None
            else bind(as_predicate(filter), schema, case_sensitive=case_sensitive),
            name_mapping=None if mapping is None else name_mapping_from_text(mapping),
            verify_checksums=VERIFY_CHECKSUMS.of(properties),
        ),
        metadata=metadata,
        snapshot=selected_snapshot.snapshot,
        appends=selected_snapshot.appends,
        io=io,
        limit=limit,
        split=split_options(properties),
        report=report,
        planner=planner,
    )


def _row_count(batches: Iterator[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)


def _first_rows(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    if limit is None:
        yield from batches
        return
    for batch in batches if limit > 0 else ():
        yield batch.slice(0, limit)
        limit -= batch.num_rows
        if limit <= 0:
            return


def projection_of(
    schema: Schema, metadata: TableMetadata, columns: Sequence[str], *, case_sensitive: bool
) -> Schema:
    """Return the requested columns, in order; metadata columns by name, nested fields by path."""
    by_name = {f.name: f for f in schema.fields}
    names = [".".join(parse_levels(column)) for column in columns]
    fields: list[NestedField] = []
    for name in names:
        metadata_column = _metadata_column(name, metadata)
        if metadata_column is not None and name not in by_name:
            fields.append(metadata_column)
            continue
        f = schema.find(name, case_sensitive=case_sensitive)
        if f.field_id in schema.parent_by_id:
            (f,) = schema.select([name], case_sensitive=case_sensitive).fields
        fields.append(f)
    field_by_id: dict[int, NestedField] = {}
    for f in fields:
        if f.field_id in field_by_id and field_by_id[f.field_id] != f:
            # two fields of one struct: select both at once
            own = [n for n in names if n in by_name or _metadata_column(n, metadata) is None]
            both = schema.select(own, case_sensitive=case_sensitive)
            f = both.as_struct.field(f.field_id) or f
        field_by_id[f.field_id] = f
    return Schema(fields=tuple(field_by_id.values()), schema_id=schema.schema_id)


def _metadata_column(name: str, metadata: TableMetadata) -> NestedField | None:
    if name == PARTITION_NAME:
        return partition_column(metadata.unified_partition_type)
    return PLAIN_METADATA_COLUMNS.get(name)


def partition_of(metadata: TableMetadata) -> NestedField | None:
    """Return the column `_partition` of a table, or None if all its specs are unpartitioned."""
    type_ = metadata.unified_partition_type
    return partition_column(type_) if type_.fields else None
