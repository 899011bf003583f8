"""The table that a row-level operation changes: one snapshot of one branch, pinned.

Its rows have the columns `_file` and `_pos` and, since format version 3, the columns of row
lineage. A target records the scans of an operation: a concurrent commit must not have changed what
they read.

A statement may change a table and read it too, such as DELETE with a subquery on the table. The
rows to change and the rows that the statement reads must come from one snapshot: with two, it would
delete rows that another writer has added in the meantime, because the older snapshot does not have
them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import ConcurrentChangeError
from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.planning.scan_tasks import ScanTask, by_path
from iceberg_pyspark.spark.bridge.features import ROW_CHANGES
from iceberg_pyspark.spark.native_read.filter_conditions import columns_for_skipping
from iceberg_pyspark.spark.native_read.scan_definition import UNKNOWN_TOTAL, relation_definition
from iceberg_pyspark.spark.rows.spark_types import shown_spark_schema
from iceberg_pyspark.spark.table_states import TableState, TableStates, TargetReads, predicate_of
from iceberg_pyspark.spark.write.resolved_write import ResolvedWrite
from iceberg_pyspark.spec.metadata_columns import FILE, POS, lineage_columns
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector, branch_selector
from iceberg_pyspark.table.reading.table_scan import TableScan, scan_table
from iceberg_pyspark.table.reading.whole_files import FileSelection, files_are_alike
from iceberg_pyspark.table.row_level.row_target import check_rows_may_change

ALIAS = "t"
"""The alias of the table in conditions."""

_MAX_COMPARED_FILES = 1000
"""A table with more files is always filtered by the keys of the other side of a join."""

_FILES_OF_A_TASK = 16
_BYTES_OF_A_TASK = 4 * 1024 * 1024
"""One task reads a table with at most so many files and bytes: changed rows need no shuffle to get
into one file.
"""

_LATE_FILTERS_OF_BROADCASTS = "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly"


@dataclass(frozen=True, kw_only=True)
class RowLevelSession:
    """The objects that row-level operations need from a session; `bridge` calls the JVM.

    `state_of` returns the state of a table in any session's query, by its handle.
    """

    spark: SparkSession
    bridge: Any
    states: TableStates
    state_of: Callable[[str], TableState]

    def check(self) -> None:
        """Raise `UnsupportedFeatureError` if row-level changes do not work on this release of
        Spark.
        """
        self.bridge.check(ROW_CHANGES)


class OperationReads:
    """The reads of one operation on its table."""

    def __init__(self, states: TableStates) -> None:
        self._states = states
        self._handles: list[str] = []
        self._reads: list[TargetReads] = []
        self._other_reads: dict[tuple[str, object], str] = {}
        self.reads_itself = False
        """Whether the operation reads its table also as a source, or in a subquery."""

    def register(self, state: TableState, reads: TargetReads) -> str:
        """Register a state for queries, whose scans `reads` records, and return its handle."""
        self._reads.append(reads)
        handle = self._states.register(replace(state, reads=reads))
        self._handles.append(handle)
        return handle

    def predicate(self) -> Predicate:
        """Return a bound predicate that all rows read so far match, except in reads of chosen
        files.
        """
        return predicate_of([s for r in self._reads if r.only_files is None for s in r.scans])

    def others(self, handles: Iterable[str]) -> list[str]:
        """Return the handles that are not of the operation's own scans."""
        return [handle for handle in handles if handle not in self._handles]

    def check_others(self, states: Iterable[TableState]) -> None:
        """Raise `ConcurrentChangeError` if a table was read in another state before."""
        for state in states:
            table = state.loaded_table
            key = f"{state.catalog}/{table.identifier}", state.selector
            if self._other_reads.setdefault(key, table.metadata_location) != (
                table.metadata_location
            ):
                raise ConcurrentChangeError(
                    f"table {table.identifier} was changed between two reads of one operation, "
                    "which must see one snapshot of it; run the operation again"
                )

    def release(self) -> None:
        """Release the handles of all reads."""
        for handle in self._handles:
            self._states.release(handle)


@dataclass(frozen=True, kw_only=True)
class TargetRead:
    """The rows of one read of a target, and the files that they come from.

    `scan` is a scan of the whole target; `reads` records how Spark plans the read.
    """

    rows: DataFrame
    scan: TableScan
    reads: TargetReads

    def files(self, paths: Collection[str]) -> dict[str, ScanTask]:
        """Return the scan tasks, by path, of data files that this read's rows come from.

        They are planned with the filters that Spark has planned the read with, if it is planned.
        """
        if not paths:
            return {}
        scan = self.scan.of_files(frozenset(paths)).pruned_by(self.reads.predicate())
        return by_path(scan.plan().tasks(split=None))


@dataclass(frozen=True, kw_only=True)
class Target:
    """A pinned table and the write to it, made by `pin_table`.

    `statement_columns` is Spark's plan of the statement, whose column ids the rows get. With a
    `selection`, only files that have selected rows are read.
    """

    session: RowLevelSession
    write: ResolvedWrite
    reads: OperationReads
    statement_columns: Any = None
    selection: FileSelection | None = None

    @property
    def loaded_table(self) -> LoadedTable:
        """The table in its pinned state."""
        return self.write.loaded_table

    @property
    def io(self) -> FileIO:
        """The store of the table's files."""
        return self.write.io

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata in the pinned state."""
        return self.loaded_table.metadata

    @property
    def name(self) -> str:
        """The table's name, for messages."""
        return self.write.table

    @property
    def schema(self) -> Schema:
        """The schema of the rows."""
        return self.metadata.current_schema

    @property
    def snapshot_id(self) -> int | None:
        """The id of the snapshot to read; None for a table without snapshots."""
        return None if self.write.base is None else self.write.base.snapshot_id

    @property
    def size_in_bytes(self) -> int:
        """The total size of the files; `UNKNOWN_TOTAL` if the snapshot's summary lacks it."""
        return self._total("total-files-size")

    @property
    def record_count(self) -> int:
        """The number of rows in the files; `UNKNOWN_TOTAL` if the summary lacks it."""
        return self._total("total-records")

    @property
    def file_count(self) -> int:
        """The number of data files; `UNKNOWN_TOTAL` if the summary lacks it."""
        return self._total("total-data-files")

    @property
    def is_read_by_one_task(self) -> bool:
        """Whether one task reads all rows, unless the session or the table sets another size."""
        return self.file_count <= _FILES_OF_A_TASK and self.size_in_bytes <= _BYTES_OF_A_TASK

    @property
    def partition_columns(self) -> frozenset[str]:
        """The columns that the table is partitioned by."""
        names = self.schema.name_by_id
        return frozenset(
            names[i] for f in self.metadata.default_spec.fields for i in f.source_ids if i in names
        )

    @cached_property
    def alike_columns(self) -> frozenset[str]:
        """The partition and sort columns whose values are spread over nearly all files.

        A filter on such a column skips no file: for example a random key that is bucketed.
        """
        if self.file_count > _MAX_COMPARED_FILES:
            return frozenset()
        scan, columns = self.scan(), columns_for_skipping(self.metadata)
        return frozenset(f.name for f in columns if files_are_alike(scan, f))

    @property
    def lineage(self) -> tuple[NestedField, ...]:
        """The columns of row lineage; empty before format version 3."""
        return lineage_columns(self.metadata.format_version)

    def narrow(self, selection: FileSelection | None) -> Target:
        """Return the same target, limited to files in which `selection` has rows."""
        return replace(self, selection=selection)

    def rows(self) -> DataFrame:
        """Return the rows of all files, with their positions and row lineage."""
        return self.read().rows

    def read(self, only_files: Collection[str] | None = None) -> TargetRead:
        """Read the rows of all files or of some files, with their positions and row lineage."""
        if only_files is None and self.selection is not None:
            only_files = self.selection.partial
        state = TableState(
            catalog=f"{self.session.bridge.session_handle}/{self.loaded_table.identifier}",
            loaded_table=self.loaded_table,
            selector=self._selector(),
            io=self.io,
        )
        reads = TargetReads(only_files=None if only_files is None else frozenset(only_files))
        handle = self.reads.register(state, reads)
        hidden = (FILE, POS, *self.lineage)
        row_schema = Schema(fields=(*self.schema.fields, *hidden))
        definition = relation_definition(
            handle,
            self.name,
            self.metadata,
            snapshot_id=self.snapshot_id,
            schema=row_schema,
            shown=lambda nanos: shown_spark_schema(row_schema, nanos=nanos),
            size_in_bytes=self.size_in_bytes,
        )
        splits = {k: v for k, v in self.metadata.properties.items() if k.startswith("read.split.")}
        if self.is_read_by_one_task:
            splits = {"read.split.adaptive-size.enabled": "false", **splits}
        definition = msgspec.structs.replace(
            definition, filter_columns=self._runtime_filter_columns(), properties=splits
        )
        frame: DataFrame = self.session.bridge.row_changes.table_frame(
            definition, self.statement_columns
        )
        rows = frame if self.statement_columns is not None else frame.alias(ALIAS)
        return TargetRead(rows=rows, scan=self.scan(), reads=reads)

    def pin(self, frame: DataFrame) -> DataFrame:
        """Return a frame of the operation whose jobs read each table in one state.

        Spark loads the tables of subqueries whenever it analyses or executes a plan. Raises
        `OtherStateError` if that is another state of this table, `ConcurrentChangeError` if it is
        another state of a table than in an earlier frame.
        """
        row_changes = self.session.bridge.row_changes
        # Spark has loaded and optimized the subqueries of a statement.
        is_statement = self.statement_columns is not None
        if is_statement or not self.reads.others(row_changes.referenced_tables(frame)):
            return frame
        frame = row_changes.pin(frame)
        handles = self.reads.others(row_changes.referenced_tables(frame))
        states = [self.session.state_of(handle) for handle in handles]
        own = state_read(self.loaded_table, states)
        self.reads.reads_itself |= own is not None
        if own is not None and own.metadata_location != self.loaded_table.metadata_location:
            raise OtherStateError(own)
        self.reads.check_others(states)
        return frame

    def scan(self) -> TableScan:
        """Return a scan of the table as the operation reads it."""
        return scan_table(self.name, self.metadata, self.io, selector=self._selector())

    def read_predicate(self) -> Predicate:
        """Return a bound predicate that all rows read so far match."""
        return self.reads.predicate() if self.selection is None else self.selection.predicate

    def _runtime_filter_columns(self) -> tuple[str, ...]:
        """Return the columns by which Spark may skip files with the join keys of the other side.

        This is done only with rows that Spark has broadcast for the join. To read the source again
        for the filter could return other rows, and takes time even if the filter skips no file.
        """
        conf = self.session.spark.conf
        if conf.get(_LATE_FILTERS_OF_BROADCASTS, "true") != "true":
            return ()
        names = (f.name for f in columns_for_skipping(self.metadata))
        return tuple(name for name in names if name not in self.alike_columns)

    def _total(self, name: str) -> int:
        total = 0 if self.write.base is None else self.write.base.number(name)
        return UNKNOWN_TOTAL if total is None else total

    def _selector(self) -> SnapshotSelector:
        return branch_selector(self.metadata, self.write.settings.branch)


@contextmanager
def pin_table(
    session: RowLevelSession, write: ResolvedWrite, statement_columns: Any = None
) -> Iterator[Target]:
    """Yield the table of a write as a target, and release its reads at the end of the operation."""
    check_rows_may_change(write.loaded_table)
    reads = OperationReads(session.states)
    try:
        yield Target(session=session, write=write, reads=reads, statement_columns=statement_columns)
    finally:
        reads.release()


def table_to_pin(target: TableState, referenced_tables: Iterable[TableState]) -> LoadedTable | None:
    """Return the state in which a statement reads its own table, the `target`; None if it does not.

    Without a cache, Spark may have loaded the table once to change it and later once to read it. A
    version, a time and a metadata table select what is read whatever the state is. So does an older
    state than the target's: it is of a DataFrame in a temporary view, from before the statement.
    """
    own = target.loaded_table
    own_states = _own_states(own, (s for s in referenced_tables if s.catalog == target.catalog))
    if any(table.metadata_location == own.metadata_location for table in own_states):
        return own
    newer = [
        table
        for table in own_states
        if any(e.metadata_file == own.metadata_location for e in table.metadata.metadata_log)
    ]
    return min(newer, key=lambda table: len(table.metadata.snapshots), default=None)


class OtherStateError(ConcurrentChangeError):
    """What an operation reads is of another state of its table than the operation's own."""

    def __init__(self, state: LoadedTable) -> None:
        """`state` is the state that was read."""
        super().__init__(
            f"table {state.identifier} was changed between two reads of one operation, which must "
            "see one snapshot of it; run the operation again, or read the table VERSION AS OF a "
            "snapshot"
        )
        self.state = state


def state_read(own: LoadedTable, referenced_tables: Iterable[TableState]) -> LoadedTable | None:
    """Return the state in which a source or a subquery reads its operation's `own` table, or None.

    Unlike in SQL, it may be older than the table: then the operation begins there too, and what
    has been committed since is a conflict. Raises `OtherStateError` for two states.
    """
    states = {state.metadata_location: state for state in _own_states(own, referenced_tables)}
    if not states:
        return None
    state, *others = states.values()
    for other in others:
        raise OtherStateError(other)
    return replace(own, metadata=state.metadata, metadata_location=state.metadata_location)


def _own_states(own: LoadedTable, referenced_tables: Iterable[TableState]) -> list[LoadedTable]:
    return [
        state.loaded_table
        for state in referenced_tables
        if _table_key(state.loaded_table) == _table_key(own)
        and state.metadata_table is None
        and state.selector == SnapshotSelector(branch=state.selector.branch)
    ]


def _table_key(table: LoadedTable) -> str:
    return table.metadata.table_uuid or table.metadata.location
