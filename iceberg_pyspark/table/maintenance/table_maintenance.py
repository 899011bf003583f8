"""Maintains a table: expiry, orphan file removal, rewrites, and statistics."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.snapshot_retention import Retention
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.predicates import Filter
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.sql_text.lazy_parser import as_predicate
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable
from iceberg_pyspark.table.maintenance.copy.path_mapping import MovedPaths
from iceberg_pyspark.table.maintenance.copy.rewrite_table_path import (
    RewrittenTablePath,
    TablePathRewrite,
)
from iceberg_pyspark.table.maintenance.procedures import PrefixMismatchMode
from iceberg_pyspark.table.maintenance.removal.deleted_files import deleting_threads
from iceberg_pyspark.table.maintenance.removal.expire_snapshots import (
    ExpiredSnapshots,
    SnapshotExpiry,
)
from iceberg_pyspark.table.maintenance.removal.orphan_files import Inventory, StoreNames
from iceberg_pyspark.table.maintenance.removal.remove_orphan_files import (
    OrphanFiles,
    OrphanRemoval,
)
from iceberg_pyspark.table.maintenance.rewrites.group_writer import GroupRunner
from iceberg_pyspark.table.maintenance.rewrites.rewrite_data_files import (
    DataFileRewrite,
    RewrittenDataFiles,
)
from iceberg_pyspark.table.maintenance.rewrites.rewrite_deletes import (
    DeleteFileRewrite,
    RewrittenDeleteFiles,
)
from iceberg_pyspark.table.maintenance.rewrites.rewrite_manifests import (
    ManifestRewrite,
    RewrittenManifests,
)
from iceberg_pyspark.table.maintenance.rewrites.rewrite_options import DeleteFileOptions
from iceberg_pyspark.table.maintenance.rewrites.written_groups import WrittenGroups
from iceberg_pyspark.table.reading.snapshot_selection import milliseconds_of
from iceberg_pyspark.table.statistics.partition_statistics import (
    ComputedPartitionStatistics,
    PartitionStatisticsComputation,
)
from iceberg_pyspark.table.statistics.table_statistics import (
    ComputedTableStatistics,
    SketchScan,
    TableStatisticsComputation,
    sketches_of_scan,
)


@checked_methods
class TableMaintenance:
    """The maintenance of one table, with names and arguments as in the JVM connector's procedures.

    Each method works on the newest version of the table, whatever version was loaded.
    """

    def __init__(
        self, table: MaintainedTable, *, after_commit: Callable[[LoadedTable], None]
    ) -> None:
        """Call `after_commit` with the table after each commit."""
        self._table = table
        self._after_commit = after_commit

    def expire_snapshots(
        self,
        *,
        older_than: datetime | int | None = None,
        retain_last: int | None = None,
        max_concurrent_deletes: int | None = None,
        snapshot_ids: Collection[int] = (),
        clean_expired_metadata: bool = False,
        dry_run: bool = False,
    ) -> ExpiredSnapshots:
        """Remove old snapshots, branches and tags, and the files that only they need.

        Specification, "Snapshot Retention Policy": each branch keeps its last `retain_last`
        snapshots and the snapshots not older than `older_than`, a datetime (UTC if it has no time
        zone) or milliseconds since 1970. A branch's own settings take precedence; the properties
        `history.expire.*` replace arguments that are None. `snapshot_ids` expire at any age.
        `clean_expired_metadata` also removes unused schemas and partition specs.

        `dry_run` only counts what would be removed. A second run changes nothing. Raises
        `InvalidRequestError` if `gc.enabled` is false or a branch or tag points at one of
        `snapshot_ids`, `CommitConflictError`, and `CommitStateUnknownError`, after which nothing
        was deleted.
        """
        expiry = SnapshotExpiry(
            self._table,
            Retention(
                older_than_ms=_milliseconds(older_than),
                retain_last=retain_last,
                snapshot_ids=frozenset(snapshot_ids),
            ),
            clean_expired_metadata=clean_expired_metadata,
            threads=deleting_threads(max_concurrent_deletes),
        )
        if dry_run:
            return expiry.plan()
        table, result = expiry.run()
        self._after_commit(table)
        return result

    def rewrite_data_files(
        self,
        *,
        strategy: str | None = None,
        sort_order: str | None = None,
        where: Filter | None = None,
        options: Mapping[str, object] | None = None,
        branch: str = MAIN,
        runner: GroupRunner | None = None,
        dry_run: bool = False,
    ) -> RewrittenDataFiles:
        """Rewrite small files, and files with many deleted rows; the rows stay the same.

        Specification, "Snapshots" (operation `replace`). `options` are those of the JVM connector,
        such as `target-file-size-bytes` and `min-input-files`. `where` selects the files that may
        have matching rows; selected files are rewritten whole. Several groups of files are read and
        written at a time. Memory does not grow with the table: rows that are sorted and do not fit
        are kept in temporary files. A second run changes nothing.

        `strategy` is `binpack`, which keeps rows in the order of their files, or `sort`: by
        `sort_order` (`'day, id DESC NULLS LAST'`), by the table's own order if it is None, or along
        a curve through several columns (`'zorder(a, b)'`, `'hilbert(a, b)'`), so that filters on
        any of them skip files. Rows are sorted within each partition and group of files. `runner`
        decides where the groups are written: in threads of this process if it is None, or by
        Spark's executors (`iceberg_pyspark.spark.write.executors.Executors`).

        Rows of version 3 keep their row ids. An equality delete that is committed meanwhile still
        applies. A row delete committed meanwhile for one of the files raises
        `ConcurrentChangeError` or, with `partial-progress.enabled`, leaves the files of one commit
        unchanged. `dry_run` only counts what would be rewritten, and lists the groups of files with
        the reasons. Raises `InvalidRequestError` for an invalid option or order.
        """
        rewrite = DataFileRewrite(
            self._table,
            options=_texts(options),
            strategy=strategy,
            sort_order=sort_order,
            where=where,
            branch=branch,
            runner=runner,
        )
        try:
            table, result = rewrite.run(dry_run=dry_run)
        finally:
            if isinstance(runner, WrittenGroups):
                runner.remove_unused(rewrite.writer, self._table.io)
        self._after_commit(table)
        return result

    def planned_rewrite(
        self,
        *,
        strategy: str | None = None,
        sort_order: str | None = None,
        where: Filter | None = None,
        options: Mapping[str, object] | None = None,
        branch: str = MAIN,
    ) -> DataFileRewrite:
        """Return a rewrite of the version as loaded, whose groups are written elsewhere.

        Call `rewrite_data_files` of this version with the same arguments and `WrittenGroups`.
        """
        return DataFileRewrite(
            self._table,
            options=_texts(options),
            strategy=strategy,
            sort_order=sort_order,
            where=where,
            branch=branch,
            pinned=True,
        )

    def remove_orphan_files(
        self,
        *,
        older_than: datetime | int | None = None,
        location: str | None = None,
        dry_run: bool = False,
        max_concurrent_deletes: int | None = None,
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
        prefix_mismatch_mode: PrefixMismatchMode = "error",
        inventory: Inventory | None = None,
        force: bool = False,
    ) -> OrphanFiles:
        """Delete old files in the table's folder that the table does not need.

        The folder is the table's own, or with `location` one inside it.
        The table needs its metadata files and those of its log, the version hint, statistics files,
        manifest lists, manifests, and the data and delete files of all its snapshots. All other
        files that were last changed before `older_than` (as in `expire_snapshots`; three days ago
        if it is None) are orphan files, except hidden files (`_x`, `.x`), links, the files behind
        links, and folders of other tables. A time within the last 24 hours is refused without
        `force`.

        A file in the folder may have the path of a needed file, but in another store:
        `equal_schemes` and `equal_authorities` (`{"s3a,s3n": "s3"}`) declare stores as equal, and
        `prefix_mismatch_mode` is the treatment of other such files: `error`, `ignore` (keep) or
        `delete`. `dry_run` deletes nothing.

        Files are listed from the store, unless `inventory` is set: a function without arguments
        that returns locations and times (milliseconds since 1970; None means new). It must return
        all files of the folder, because folders of other tables are recognized by their metadata
        files.

        Raises `InvalidRequestError` for different stores, for a location that is not the table's
        own, and if `gc.enabled` is false.
        """
        return OrphanRemoval(
            table=self._table,
            older_than_ms=_milliseconds(older_than),
            location=location,
            inventory=inventory,
            store_names=StoreNames(equal_schemes or {}, equal_authorities or {}),
            prefix_mismatch_mode=prefix_mismatch_mode,
            threads=deleting_threads(max_concurrent_deletes),
            is_forced=force,
        ).run(dry_run=dry_run)

    def rewrite_manifests(
        self,
        *,
        spec_id: int | None = None,
        sort_by: Sequence[str] = (),
        dry_run: bool = False,
    ) -> RewrittenManifests:
        """Rewrite manifests, so that each has the files of few partitions.

        These are the manifests of one partition spec. The new manifests have about
        `commit.manifest.target-size-bytes`. `spec_id` None means the table's current spec.
        `sort_by` names partition fields, by whose values the files are sorted; empty means all
        fields of the spec in their order. Every file keeps its snapshot, its sequence numbers and
        its row ids. `dry_run` only counts what would be written. Manifests that are already sorted
        stay, so a second run changes nothing. Raises `InvalidRequestError` for an unknown spec or
        field, `ConcurrentChangeError` if another commit replaced manifests meanwhile (appends do
        not), `CommitConflictError` and `CommitStateUnknownError`.
        """
        rewrite = ManifestRewrite(self._table, spec_id=spec_id, sort_by=sort_by)
        table, result = rewrite.run(dry_run=dry_run)
        if not dry_run:
            self._after_commit(table)
        return result

    def rewrite_table_path(
        self,
        *,
        source_prefix: str,
        target_prefix: str,
        start_version: str | None = None,
        end_version: str | None = None,
        staging_location: str | None = None,
        create_file_list: bool = True,
        dry_run: bool = False,
    ) -> RewrittenTablePath:
        """Write metadata for a copy of the table elsewhere, and a list of files to copy.

        Specification, "Table Metadata". Metadata files, manifest lists, manifests, position delete
        files and deletion vectors are written to `staging_location` (by default a new folder beside
        the table's metadata), and `target_prefix` replaces `source_prefix` at the start of their
        paths. Relative paths of version 4 stay; files that have only such paths, and no size of a
        rewritten file, are copied as they are. A comma-separated list says which file to copy
        where: the written files, and the unchanged data files, equality delete files and statistics
        files. Copy the files, then use `register_table` with the `latest_version` at the target.
        The table itself does not change. Each run writes all its files again.

        `start_version` and `end_version` are names of metadata files in the table's history: files
        of the start version, which an earlier copy had as its end version, are left out. Raises
        `InvalidRequestError` for an unknown version and for a path outside the source prefix; files
        that are already staged then remain unused. Raises `UnsupportedFeatureError` for metadata
        that may have paths of unknown meaning. `dry_run` counts and writes nothing.
        """
        return TablePathRewrite(
            self._table,
            MovedPaths(source_prefix, target_prefix),
            start_version=start_version,
            end_version=end_version,
            staging_location=staging_location,
            staging_id=str(uuid.uuid4()),
            dry_run=dry_run,
        ).run(create_file_list=create_file_list)

    def rewrite_position_delete_files(
        self,
        *,
        options: Mapping[str, object] | None = None,
        where: Filter | None = None,
        dry_run: bool = False,
    ) -> RewrittenDeleteFiles:
        """Rewrite position delete files, from version 3 on as deletion vectors.

        Those that no longer delete anything are removed. In version 3 all become deletion vectors,
        one for each data file (specification, "Deletion Vectors"). In version 2 the files of a
        partition are combined, according to `options`: `rewrite-all`, `min-input-files` (5),
        `target-file-size-bytes` (64 MiB), `min-file-size-bytes` (75 % of it), `max-file-size-bytes`
        (180 %). `where` selects only deletes of data files that may hold matching rows. A data file
        without remaining rows is removed.

        `dry_run` counts what would be written; it writes files, and removes them. A second run
        changes nothing. Raises `InvalidRequestError` for an unknown option, `ConcurrentChangeError`
        if another commit meanwhile deleted rows of the same data files or replaced these files,
        `CommitConflictError` and `CommitStateUnknownError`.
        """
        delete_options = DeleteFileOptions.of(_texts(options))
        predicate = None if where is None else as_predicate(where)
        rewrite = DeleteFileRewrite(self._table, dry_run=dry_run)
        table, result = rewrite.position_deletes(
            None
            if predicate is None
            else lambda m: bind(
                predicate,
                m.current_schema,
                case_sensitive=self._table.case_sensitive is not False,
            ),
            delete_options,
        )
        if not dry_run:
            self._after_commit(table)
        return result

    def rewrite_equality_deletes(self, *, dry_run: bool = False) -> RewrittenDeleteFiles:
        """Replace equality deletes by position deletes of the same rows.

        Scans then no longer need to compare values. This process reads the data files that the
        deletes apply to and writes deletion vectors, which include the rows deleted before, or
        position delete files in version 2. Rows that are appended meanwhile are not deleted. A data
        file without remaining rows is removed.

        `dry_run` and the errors are as in `rewrite_position_delete_files`.
        """
        table, result = DeleteFileRewrite(self._table, dry_run=dry_run).equality_deletes()
        if not dry_run:
            self._after_commit(table)
        return result

    def compute_table_stats(
        self,
        *,
        snapshot_id: int | None = None,
        columns: Sequence[str] | None = None,
        dry_run: bool = False,
        sketch_scan: SketchScan | None = None,
    ) -> ComputedTableStatistics:
        """Count the distinct values of columns, which helps to plan joins.

        Specification, "Table Statistics": a new statistics file has the counts. They are of the
        current snapshot, or of `snapshot_id`, and of all columns that are not structs, lists or
        maps, or of `columns`, which may name fields of structs (`s.a`). They replace other
        statistics of the snapshot; a file that this package wrote of the same columns is kept, and
        no row is read. Counts of more than 4,096 values are estimates, with a standard deviation of
        1.6 %. As in Java, empty strings are not counted. Rows are read a batch at a time; deleted
        rows are not counted.

        `dry_run` counts and writes nothing. `sketch_scan` reads the rows, in this process or on
        Spark's executors. Raises `NoSuchSnapshotError`, `InvalidRequestError` for a column that is
        unknown or has no values to count, `ConcurrentChangeError` if the snapshot expired
        meanwhile, `CommitConflictError`, `CommitStateUnknownError`.
        """
        table, result = TableStatisticsComputation(
            self._table,
            snapshot_id=snapshot_id,
            columns=columns,
            sketch_scan=sketch_scan or partial(sketches_of_scan, progress=self._table.progress),
        ).run(dry_run=dry_run)
        self._after_commit(table)
        return result

    def compute_partition_stats(
        self, *, snapshot_id: int | None = None, dry_run: bool = False
    ) -> ComputedPartitionStatistics:
        """Count rows, files and deletes of each partition.

        Specification, "Partition Statistics": a new file has the counts. They are of the current
        snapshot, or of `snapshot_id`. If an ancestor has such a file, only later commits are
        counted; a snapshot that already has a file keeps it. The file is in the table's format
        (`write.format.default`), and `Table.partition_statistics` reads it.

        `dry_run` counts and writes nothing. Raises `NoSuchSnapshotError`, `InvalidRequestError` for
        a table that is not partitioned, and the errors of `compute_table_stats`.
        """
        computation = PartitionStatisticsComputation(self._table, snapshot_id=snapshot_id)
        table, result = computation.run(dry_run=dry_run)
        self._after_commit(table)
        return result


def _texts(options: Mapping[str, object] | None) -> dict[str, str]:
    """Convert option values to text, in the form that SQL passes them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (options or {}).items()
    }


def _milliseconds(moment: datetime | int | None) -> int | None:
    return milliseconds_of(moment) if isinstance(moment, datetime) else moment
