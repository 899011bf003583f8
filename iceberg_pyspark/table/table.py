"""A table: its metadata as of the last load or refresh, and all operations on it.

Connects the layers below for Python users: `table/reading/table_scan.py` reads,
`table/commits/commit_files.py` commits files, `table/commits/transaction.py` changes metadata.
`load_table` returns a table; a table can also be created from the result of a catalog.

Methods import what they call: most programs call few of them.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from iceberg_pyspark.arrow.row_sources import Rows
from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier, newest_version
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.predicates import Filter
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.manifests import DataFileFormat
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.clock import SYSTEM_CLOCK, Clock
from iceberg_pyspark.table.commits.editable_table import EditableTable
from iceberg_pyspark.table.metadata_tables.inspection import Inspection
from iceberg_pyspark.table.metadata_tables.rows import MetadataTable
from iceberg_pyspark.table.progress import Progress, no_progress
from iceberg_pyspark.table.reading.row_stream import RowStream
from iceberg_pyspark.table.reading.snapshot_selection import (
    Beginning,
    Moment,
    SnapshotSelector,
    Version,
    selector_of,
)
from iceberg_pyspark.table.row_level.row_level_table import RowLevelTable
from iceberg_pyspark.table.table_storage import table_io

if TYPE_CHECKING:
    from iceberg_pyspark.changes.snapshot_changes import SnapshotAction
    from iceberg_pyspark.table.change_feed.table_changes import TableChanges
    from iceberg_pyspark.table.commits.add_files import AddedFiles
    from iceberg_pyspark.table.commits.commit import CommitStep, Start
    from iceberg_pyspark.table.commits.commit_files import OverwriteMode
    from iceberg_pyspark.table.commits.commit_options import CommitOptions
    from iceberg_pyspark.table.commits.transaction import Transaction
    from iceberg_pyspark.table.commits.written_files import WrittenFiles
    from iceberg_pyspark.table.health.health_report import TableHealth
    from iceberg_pyspark.table.maintenance.table_maintenance import TableMaintenance
    from iceberg_pyspark.table.reading.table_scan import TableScan
    from iceberg_pyspark.table.verify.findings import TableVerification

_OWN_MS = 500
"""How long after its own commit a lone writer commits again without reloading the table."""


def load_table(
    catalog: Catalog, identifier: TableIdentifier, *, case_sensitive: bool | None = None
) -> Table:
    """Load the table with this name; raises `NoSuchTableError`."""
    return Table(catalog, catalog.load_table(identifier), case_sensitive=case_sensitive)


@checked_methods
class Table(RowLevelTable, EditableTable, RowStream):
    """A table of a catalog; after a method that changes it, it has the committed metadata.

    As a stream of rows, it is the scan of its current snapshot: `table.to_pandas()`.
    """

    def __init__(
        self,
        catalog: Catalog,
        loaded_table: LoadedTable,
        *,
        io: FileIO | None = None,
        clock: Clock = SYSTEM_CLOCK,
        case_sensitive: bool | None = None,
    ) -> None:
        """Use `io` as the storage; None: the storage is chosen by location.

        `case_sensitive` says whether names of columns in filters, orders and terms are: in a Spark
        session that is `spark.sql.caseSensitive`. None: names in filters are, and names in orders
        and terms may be in another case, if no column has that name exactly.
        """
        self._case_sensitive = case_sensitive
        self._catalog = catalog
        self._loaded_table = loaded_table
        self._io = io
        self._clock = clock
        self._own: tuple[LoadedTable, int] | None = None

    @property
    def io(self) -> FileIO:
        """The storage of the table's files."""
        return self._io if self._io is not None else table_io(self._loaded_table, self._catalog)

    @property
    def inspect(self) -> Inspection:
        """The metadata tables as Arrow tables: `table.inspect.files()`."""
        return Inspection(self.metadata_table)

    def refresh(self) -> Table:
        """Load the current metadata.

        Raises `TableRecreatedError` if another table has the name now, and `NoSuchTableError`.
        """
        self._loaded_table = newest_version(self._catalog, self._loaded_table)
        return self

    def scan(
        self,
        filter: Filter | None = None,
        *,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        snapshot_id: int | None = None,
        branch: str | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        selector: SnapshotSelector | None = None,
        case_sensitive: bool | None = None,
    ) -> TableScan:
        """Return a scan of one snapshot, by default the current one.

        `filter` is as in `"id > 5"`, `limit` the most rows to read. At most one of `snapshot_id`,
        `branch`, `tag` and `as_of` chooses the snapshot; `as_of` is a datetime (UTC if it has no
        time zone), text such as `"2026-01-31 12:00"`, or milliseconds since 1970. A `selector` may
        ask for the rows appended between two snapshots instead. `case_sensitive` None: names are
        as the table's `case_sensitive` says. Raises `NoSuchSnapshotError`, and
        `InvalidRequestError` for arguments that contradict each other or do not fit the table.
        """
        from iceberg_pyspark.table.reading.table_scan import scan_table

        if limit is not None and limit < 0:
            raise InvalidRequestError(f"scan: limit: expected 0 or more rows, not {limit}")
        if case_sensitive is None:
            case_sensitive = self.case_sensitive is not False
        return scan_table(
            str(self.identifier),
            self.metadata,
            self.io,
            selector=selector_of(
                selector=selector, snapshot_id=snapshot_id, branch=branch, tag=tag, as_of=as_of
            ),
            columns=columns,
            filter=filter,
            limit=limit,
            case_sensitive=case_sensitive,
            report=self._loaded_table.report_scan,
            planner=self._loaded_table.plan_scan,
        )

    def to_batches(self) -> pa.RecordBatchReader:
        """Return the current rows as a stream, which is read file by file, in bounded memory."""
        return self.scan().to_batches()

    def to_arrow(self) -> pa.Table:
        """Return the current rows as one table in memory."""
        return self.scan().to_arrow()

    def changes(
        self,
        start: Version | None = None,
        end: Version | None = None,
        *,
        branch: str | None = None,
    ) -> TableChanges:
        """Return the rows that snapshots of main or of a branch added and removed, in order.

        The snapshots are those after `start` up to and including `end`: ids of snapshots, names of
        branches or tags, or datetimes (UTC if they have no time zone). By default they are all, up
        to the newest. The columns are those of the current schema, and `_change_type` (`INSERT` or
        `DELETE`), `_change_ordinal` (the number of the snapshot in this read),
        `_commit_snapshot_id`, `_commit_sequence_number` and `_commit_timestamp`. An updated row is
        one of each type. Rows that copy-on-write only copied are left out: since version 3 by row
        lineage, before by their values. Raises `NoSuchSnapshotError`.
        """
        from iceberg_pyspark.table.change_feed.table_changes import changes_between

        return changes_between(self._loaded_table, self.io, start=start, end=end, branch=branch)

    def follow(
        self,
        start: Beginning = "latest",
        *,
        branch: str | None = None,
        poll_interval: float = 10.0,
        timeout: float | None = None,
    ) -> Iterator[TableChanges]:
        """Return an iterator over the changes of each snapshot, which waits for new ones.

        It begins after `start`: the id of a snapshot, the name of a branch or tag, `latest` (the
        current snapshot), or `earliest` (all snapshots that are left); with `current`, all rows of
        the current snapshot come first, as `INSERT`. Each item has the changes of one `snapshot`,
        whose id is the start to go on from later; a compaction comes without rows. The table is
        loaded every `poll_interval` seconds, and the iterator ends when there was no new snapshot
        for `timeout` seconds; None: never. This table object is not refreshed. Raises
        `NoSuchSnapshotError`, with the start to use instead, if the branch has lost the snapshot
        that was read last, by a rollback or by expiry.
        """
        from iceberg_pyspark.table.change_feed.follower import follow

        return follow(
            self._loaded_table,
            lambda: newest_version(self._catalog, self._loaded_table),
            lambda loaded: self._io if self._io is not None else table_io(loaded, self._catalog),
            start=start,
            branch=branch,
            poll_interval=poll_interval,
            timeout=timeout,
            clock=self._clock,
        )

    def partition_statistics(self, *, snapshot_id: int | None = None) -> pa.Table | None:
        """Return the partition statistics of a snapshot from its statistics file, or None.

        There is a row per partition, with the columns of the specification ("Partition Statistics
        File"): sizes in bytes, `last_updated_at` in milliseconds since 1970. Files are written by
        `maintenance().compute_partition_stats()`.
        """
        from iceberg_pyspark.table.statistics.partition_statistics import read_partition_statistics

        return read_partition_statistics(self.io, str(self.identifier), self.metadata, snapshot_id)

    def metadata_table(
        self, name: str, *, selector: SnapshotSelector | None = None
    ) -> MetadataTable:
        """Return a metadata table by its name in Java: `files`, `snapshots`, `partitions`, ...

        `selector` chooses the snapshot for tables that show one snapshot.
        """
        from iceberg_pyspark.table.metadata_tables.lookup import metadata_table

        return metadata_table(self._loaded_table, self.io, name, selector=selector)

    def append(
        self,
        rows: Rows,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> Snapshot:
        """Write and append Arrow rows; return the snapshot, whose `summary` counts them."""
        return self._write(rows, None, branch, snapshot_properties)

    def overwrite(
        self,
        rows: Rows,
        filter: Filter | None = None,
        *,
        dynamic: bool = False,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> Snapshot:
        """Replace all rows, the rows that match, or the rows' partitions by Arrow rows.

        With a filter, files of which all rows match are removed unread; rows of other files are
        deleted as `delete` does, after this table object is refreshed. `dynamic` replaces the
        partitions that the new rows are in. Returns the snapshot, as `append` does.
        """
        mode: OverwriteMode = "dynamic" if dynamic else "static"
        if filter is not None:
            if dynamic:
                raise InvalidRequestError(
                    "overwrite: a filter and dynamic=True say different things about what is "
                    "replaced; keep one"
                )
            from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
            from iceberg_pyspark.arrow.row_sources import KeptRows
            from iceberg_pyspark.expressions.binding import bind
            from iceberg_pyspark.sql_text.lazy_parser import as_predicate
            from iceberg_pyspark.table.reading.whole_files import select_files
            from iceberg_pyspark.table.row_level.filtered_rows import ReplacedRows

            if self._start() == "newest":
                self.refresh()
            case_sensitive = self.case_sensitive is not False
            mode = bind(as_predicate(filter), self.schema, case_sensitive=case_sensitive)
            if self._loaded_table.plan_scan is None and branch in self.refs:
                selection = select_files(self.scan(branch=branch).pruned_by(mode))
                if selection.partial:
                    kept = KeptRows(rows, to_arrow_schema(self.schema))
                    replaced = ReplacedRows(filter=filter, rows=kept)
                    changes = self._change_rows(replaced, branch, snapshot_properties)
                    assert changes.snapshot_id is not None, "new rows make a snapshot"
                    return self.metadata.snapshot(changes.snapshot_id)
        return self._write(rows, mode, branch, snapshot_properties)

    def _write(
        self,
        rows: Rows,
        mode: OverwriteMode | None,
        branch: str,
        snapshot_properties: Mapping[str, str] | None,
    ) -> Snapshot:
        from iceberg_pyspark.storage.files.syncs import syncs_together
        from iceberg_pyspark.table.commits.commit_files import snapshot_of_write, write_action
        from iceberg_pyspark.table.commits.new_data import write_rows
        from iceberg_pyspark.table.commits.written_files import WrittenFiles

        # wrong options are refused before files are written
        options = _options(branch, snapshot_properties)
        with syncs_together():
            write_id, files = write_rows(self.identifier, self.metadata, self.io, rows)
            options = replace(options, write_id=write_id)
            with WrittenFiles(self.io, files) as written_files:
                action = write_action(self._loaded_table, files, mode, branch=branch)
                self._commit(action, options, written_files)
        return snapshot_of_write(self.metadata, branch, write_id)

    def _commit(
        self,
        action: SnapshotAction,
        options: CommitOptions,
        written_files: WrittenFiles | None = None,
    ) -> None:
        from iceberg_pyspark.table.commits.commit import builds_on
        from iceberg_pyspark.table.commits.commit_files import commit_action

        before = self._loaded_table
        self._loaded_table = commit_action(
            self._catalog,
            before,
            self.io,
            action,
            options,
            written_files=written_files,
            start=self._start(),
            clock=self._clock,
        )
        came_between = not builds_on(self._loaded_table.metadata, before.metadata, options.branch)
        self._own = None if came_between else (self._loaded_table, self._clock.now_ms())

    def _start(self) -> Start:
        """Return where the next commit starts; a lone writer need not reload the table."""
        if self._own is None:
            return "newest"
        loaded_table, at_ms = self._own
        is_own = loaded_table is self._loaded_table and self._clock.now_ms() - at_ms < _OWN_MS
        return "own" if is_own else "newest"

    def _newest(self) -> tuple[LoadedTable, FileIO]:
        return self.refresh().loaded, self.io

    def add_files(
        self,
        source: str,
        *,
        file_format: DataFileFormat = "parquet",
        partition_filter: Mapping[str, str] | None = None,
        partitions: Collection[Mapping[str, str | None]] | None = None,
        nested_folders: bool = True,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> AddedFiles:
        """Add existing files to the table, without copying them.

        `source` is a folder, with all files below it, or one file; without `nested_folders`, files
        in folders that name no partition are skipped. Folders such as `day=2026-01-01` name the
        partition, and the table needs a partition spec with exactly these fields;
        `partition_filter` selects partitions by some values; `partitions` lists the partitions to
        add, and may match no file. Columns without field ids are found by name. `progress` is
        called for each file, as in `maintenance`. Raises
        `InvalidRequestError` for a file that does not fit or that the table has already, and then
        adds nothing. The table owns the added files from then on: expiry may delete the files in
        the table's own folder. `dry_run` examines and counts the files, with the same errors, and
        adds none.
        """
        from iceberg_pyspark.table.commits.add_files import FileImport

        file_import = FileImport(
            catalog=self._catalog,
            table=self._loaded_table,
            io=self.io,
            source=source,
            file_format=file_format,
            options=_options(branch, snapshot_properties),
            clock=self._clock,
            partition_filter=partition_filter or {},
            partitions=partitions,
            may_be_empty=partitions is not None,
            nested_folders=nested_folders,
            progress=progress,
        )
        if dry_run:
            return file_import.plan()
        self._loaded_table, add_files_result = file_import.run()
        return add_files_result

    def transaction(self) -> Transaction:
        """Start a transaction: several changes, one commit; `refresh()` this table afterwards."""
        from iceberg_pyspark.table.commits.transaction import Transaction

        return Transaction(self._catalog, self._loaded_table, self.io, clock=self._clock)

    def maintenance(self, *, progress: Progress = no_progress) -> TableMaintenance:
        """Return the maintenance: expire snapshots, remove orphan files, rewrite files, and more.

        `progress(phase, done, total)` is called while a procedure runs: `done` of `total` steps are
        done; `total` is None if it is unknown. It must not raise.
        """
        from iceberg_pyspark.table.commits.maintained_table import MaintainedTable

        table = MaintainedTable(
            catalog=self._catalog,
            loaded=self._loaded_table,
            io=self.io,
            clock=self._clock,
            progress=progress,
            case_sensitive=self.case_sensitive,
        )
        from iceberg_pyspark.table.maintenance.table_maintenance import (
            TableMaintenance,
        )

        return TableMaintenance(table, after_commit=self._is_now)

    def health(self, *, top: int = 20, list_storage: bool = False) -> TableHealth:
        """Return a health report from metadata and manifests, with the gains of maintenance.

        The report has files by size, deletes, the `top` partitions by bytes and by files, snapshots
        and metadata, and for each procedure its effect and its command. No row is read, and the
        storage is listed for orphan files only with `list_storage`. Memory holds only a few
        integers per file.
        """
        from iceberg_pyspark.table.health.health_report import examine

        return examine(
            self._catalog,
            self._loaded_table,
            self.io,
            self.maintenance(),
            now_ms=self._clock.now_ms(),
            top=top,
            list_storage=list_storage,
        )

    def verify(self, *, check_files: bool = False) -> TableVerification:
        """Check the table against the specification; return the broken rules by name.

        The newest version of the table is checked, with all snapshots: references, sequence numbers
        and row ids; that manifests exist and match the manifest list; that files are listed once,
        with at most one deletion vector each; for root manifests, the rules of their entries and of
        their changes. With `check_files`, the existence and size of every live file are checked
        and deletion vectors are read, but no rows. Damage is not an error: an unreadable file is a
        finding. Raises `StorageError` if the store does not answer.
        """
        from iceberg_pyspark.table.verify.verification import verify_table

        newest = newest_version(self._catalog, self._loaded_table)
        return verify_table(self.io, newest, check_files=check_files)

    def _is_now(self, loaded_table: LoadedTable) -> None:
        self._loaded_table = loaded_table

    def _commit_steps(self, steps: Sequence[CommitStep]) -> None:
        from iceberg_pyspark.table.commits.commit import commit_steps

        self._loaded_table = commit_steps(
            self._catalog, self._loaded_table, steps, clock=self._clock
        )


def _options(branch: str, snapshot_properties: Mapping[str, str] | None) -> CommitOptions:
    from iceberg_pyspark.table.commits.commit_options import CommitOptions

    return CommitOptions(branch=branch, snapshot_properties=snapshot_properties or {})
