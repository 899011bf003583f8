"""What keeps a table healthy: expiry, orphan removal, rewrites of manifests and delete files."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import get_args

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, check_same_table
from iceberg_pyspark.commits.snapshot_retention import Retention
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.maintenance.delete_file_choice import DeleteFileOptions
from iceberg_pyspark.maintenance.moved_paths import MovedPaths
from iceberg_pyspark.maintenance.orphan_files import Inventory, StoreNames
from iceberg_pyspark.maintenance.progress import Progress, no_progress
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.sql_text.on_demand import as_predicate
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.table.changes.commit import Clock
from iceberg_pyspark.table.changes.deleted_files import deleting_threads
from iceberg_pyspark.table.changes.expire_snapshots import ExpiredSnapshots, SnapshotExpiry
from iceberg_pyspark.table.changes.remove_orphan_files import (
    OrphanFiles,
    OrphanRemoval,
    PrefixMismatchMode,
)
from iceberg_pyspark.table.rewrites.group_writer import GroupRunner
from iceberg_pyspark.table.rewrites.rewrite_data_files import DataFileRewrite, RewrittenDataFiles
from iceberg_pyspark.table.rewrites.rewrite_deletes import (
    DeleteFileRewrite,
    RewrittenDeleteFiles,
)
from iceberg_pyspark.table.rewrites.rewrite_manifests import ManifestRewrite, RewrittenManifests
from iceberg_pyspark.table.rewrites.rewrite_table_path import RewrittenTablePath, TablePathRewrite
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

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class TableMaintenance:
    """The maintenance of one table, by the names and arguments of the JVM connector's procedures.

    Each method works on the table as it is when it is called, whatever was loaded.
    """

    def __init__(
        self,
        catalog: Catalog,
        table: LoadedTable,
        io: FileIO,
        *,
        clock: Clock,
        committed: Callable[[LoadedTable], None],
        progress: Progress = no_progress,
    ) -> None:
        """`committed` is told the table after each commit, `progress` how far a procedure is."""
        self._catalog = catalog
        self._table = table
        self._io = io
        self._clock = clock
        self._committed = committed
        self._progress = progress

    def expire_snapshots(
        self,
        *,
        older_than: datetime | int | None = None,
        retain_last: int | None = None,
        max_concurrent_deletes: int | None = None,
        stream_results: bool = True,
        snapshot_ids: Collection[int] = (),
        clean_expired_metadata: bool = False,
        dry_run: bool = False,
    ) -> ExpiredSnapshots:
        """Remove old snapshots, branches and tags, then the files that only they need.

        Specification, "Snapshot Retention Policy": each branch keeps its last `retain_last`
        snapshots and those not older than `older_than`, a datetime (UTC where it has no zone) or
        milliseconds from 1970; a branch's own settings come first, and what is None the properties
        `history.expire.*` say. `snapshot_ids` go whatever their age. `clean_expired_metadata` also
        removes schemas and partition specs that nothing uses. `stream_results` has no effect:
        files are never collected in memory.

        `dry_run` counts what would go. Run again, it does nothing. Raises `InvalidRequestError`
        where `gc.enabled` is false or a branch or tag points at one of `snapshot_ids`,
        `CommitConflictError`, and `CommitStateUnknownError`, after which nothing was deleted.
        """
        expiry = SnapshotExpiry(
            self._catalog,
            self._table,
            self._io,
            Retention(
                older_than_ms=_milliseconds(older_than),
                retain_last=retain_last,
                snapshot_ids=frozenset(snapshot_ids),
            ),
            clean_expired_metadata=clean_expired_metadata,
            threads=deleting_threads(max_concurrent_deletes),
            clock=self._clock,
            progress=self._progress,
        )
        if dry_run:
            return expiry.plan()
        table, result = expiry.run()
        self._committed(table)
        return result

    def rewrite_data_files(
        self,
        *,
        strategy: str | None = None,
        sort_order: str | None = None,
        where: str | Predicate | None = None,
        options: Mapping[str, object] | None = None,
        branch: str = MAIN,
        runner: GroupRunner | None = None,
        dry_run: bool = False,
    ) -> RewrittenDataFiles:
        """Write small files, and files with many deleted rows, anew; the rows stay the same.

        Specification, "Snapshots" (operation `replace`). `options` are those of the JVM
        connector's, such as `target-file-size-bytes` and `min-input-files`; `where` chooses the
        files that may have rows which match, which are then rewritten whole. Several groups of
        files are read and written at a time; memory does not grow with the table: rows that are
        sorted and do not fit wait in temporary files. Run again, it does nothing.

        `strategy` is `binpack`, which keeps rows in the order of their files, or `sort`: by
        `sort_order` (`'day, id DESC NULLS LAST'`), by the table's own if it is None, or along a
        curve through several columns (`'zorder(a, b)'`, `'hilbert(a, b)'`), so that filters on any
        of them skip files. Rows are in order within each partition and group of files.
        `runner` says where the groups are written: by threads of this process if it is None, or by
        Spark's executors (`iceberg_pyspark.spark.write.executors.Executors`).

        Rows of version 3 keep their ids. An equality delete that is committed meanwhile still
        applies; a row delete for one of the files makes it raise `ConcurrentChangeError`, or, with
        `partial-progress.enabled`, leaves the files of one commit as they were. `dry_run` counts
        what would be rewritten. Raises `InvalidRequestError` for a wrong option or order.
        """
        table, result = DataFileRewrite(
            self._catalog,
            self._table,
            self._io,
            options=_texts(options),
            strategy=strategy,
            sort_order=sort_order,
            where=where,
            branch=branch,
            runner=runner,
            clock=self._clock,
            progress=self._progress,
        ).run(dry_run=dry_run)
        self._committed(table)
        return result

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
        """Delete the files in the table's own folder, or in `location` there, that nothing needs.

        What the table needs: its metadata files and those of its log, the version hint, statistics
        files, manifest lists, manifests, and the data and delete files of all its snapshots.
        Everything else that was last changed before `older_than` (as in `expire_snapshots`; three
        days if it is None) is an orphan; hidden files (`_x`, `.x`), links and folders of other
        tables are not. Less than 24 hours is refused without `force`.

        A file that was found has the path of one that is needed, but in another store:
        `equal_schemes` and `equal_authorities` (`{"s3a,s3n": "s3"}`) name what is the same,
        `prefix_mismatch_mode` says what else becomes of it: `error`, `ignore` (it stays) or
        `delete`. `dry_run` deletes nothing.

        The store is asked what is there, unless `inventory`, which is called without arguments,
        gives locations and times (milliseconds from 1970; None is new). It must have all files of
        the folder: by their metadata files folders of other tables are known.

        Raises `InvalidRequestError` for stores that differ, for a location that is not the
        table's own and where `gc.enabled` is false.
        """
        if prefix_mismatch_mode not in get_args(PrefixMismatchMode):
            raise InvalidRequestError(
                f"prefix_mismatch_mode must be one of {', '.join(get_args(PrefixMismatchMode))}, "
                f"not '{prefix_mismatch_mode}'"
            )
        return OrphanRemoval(
            catalog=self._catalog,
            table=self._table,
            io=self._io,
            now_ms=self._clock.now_ms(),
            older_than_ms=_milliseconds(older_than),
            location=location,
            inventory=inventory,
            store_names=StoreNames(equal_schemes or {}, equal_authorities or {}),
            prefix_mismatch_mode=prefix_mismatch_mode,
            threads=deleting_threads(max_concurrent_deletes),
            is_forced=force,
            progress=self._progress,
        ).run(dry_run=dry_run)

    def rewrite_manifests(
        self,
        *,
        use_caching: bool = False,
        spec_id: int | None = None,
        sort_by: Sequence[str] = (),
        dry_run: bool = False,
    ) -> RewrittenManifests:
        """Write the manifests of one partition spec anew, each with the files of few partitions.

        They get about `commit.manifest.target-size-bytes`. `spec_id` is the table's current spec if
        it is None; `sort_by` names partition fields by whose values files lie side by side, all of
        the spec's in their order if it is empty. Every file keeps its snapshot, its sequence
        numbers and its row ids. `use_caching` has no effect: what is read waits on disk.

        `dry_run` counts what would be written. Manifests that are as they should be stay: run
        again, it does nothing. Raises `InvalidRequestError` for a spec or field that is not there,
        `ConcurrentChangeError` where another commit replaced manifests meanwhile (appends do not),
        `CommitConflictError` and `CommitStateUnknownError`.
        """
        rewrite = ManifestRewrite(
            self._catalog,
            self._table,
            self._io,
            spec_id=spec_id,
            sort_by=sort_by,
            clock=self._clock,
            progress=self._progress,
        )
        table, result = rewrite.run(dry_run=dry_run)
        if not dry_run:
            self._committed(table)
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
        """Write the table's metadata with other paths, for a copy of the table elsewhere.

        Specification, "Table Metadata". Metadata files, manifest lists, manifests, position delete
        files and deletion vectors are written to `staging_location` (by default a new folder beside
        the table's metadata), with `target_prefix` where their paths begin with `source_prefix`. A
        list, comma-separated, says which file is to be copied where: those, and data files, files
        of equality deletes and statistics as they are. Copy them, then `register_table` the
        `latest_version` at the target. The table itself does not change.

        `start_version` and `end_version` are names of metadata files in the table's history: what
        was copied with the start version as the end, by this method, is left out. Raises
        `InvalidRequestError` for a version that is not there and for a path outside the source
        prefix; what was staged until then is in nobody's way. `dry_run` counts, and writes nothing.
        """
        newest = check_same_table(self._table, self._catalog.load_table(self._table.identifier))
        return TablePathRewrite(
            newest,
            self._io,
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
        where: str | Predicate | None = None,
        dry_run: bool = False,
    ) -> RewrittenDeleteFiles:
        """Write position delete files anew, and remove those that delete nothing any more.

        In version 3 they all become deletion vectors, one for each data file (specification,
        "Deletion Vectors"). In version 2 those of a partition become fewer, as `options` say:
        `rewrite-all`, `min-input-files` (5), `target-file-size-bytes` (64 MiB),
        `min-file-size-bytes` (75 % of it), `max-file-size-bytes` (180 %). `where` takes only
        deletes of data files that may hold such rows. A data file with no row left goes.

        `dry_run` counts what would be written; it writes files, and removes them. Run again, it
        does nothing. Raises `InvalidRequestError` for an option that is not there,
        `ConcurrentChangeError` where another commit deleted rows of the same data files meanwhile
        or replaced them, `CommitConflictError` and `CommitStateUnknownError`.
        """
        delete_options = DeleteFileOptions.of(_texts(options))
        predicate = None if where is None else as_predicate(where)
        rewrite = self._delete_file_rewrite(dry_run=dry_run)
        table, result = rewrite.position_deletes(
            None if predicate is None else lambda m: bind(predicate, m.current_schema),
            delete_options,
        )
        if not dry_run:
            self._committed(table)
        return result

    def rewrite_equality_deletes(self, *, dry_run: bool = False) -> RewrittenDeleteFiles:
        """Delete by position what equality deletes delete, and remove them.

        Scans then need not compare values any more. The data files that they apply to are read
        here, and get deletion vectors, which hold also what was deleted of them before; in version
        2 position delete files. Rows that are appended meanwhile are not deleted by either. A data
        file with no row left goes.

        `dry_run` as in `rewrite_position_delete_files`, and the same errors.
        """
        table, result = self._delete_file_rewrite(dry_run=dry_run).equality_deletes()
        if not dry_run:
            self._committed(table)
        return result

    def compute_table_stats(
        self,
        *,
        snapshot_id: int | None = None,
        columns: Sequence[str] | None = None,
        dry_run: bool = False,
        sketch_scan: SketchScan = sketches_of_scan,
    ) -> ComputedTableStatistics:
        """Count the distinct values of columns, for plans of joins, in a new statistics file.

        Specification, "Table Statistics". Of the current snapshot, or of `snapshot_id`; of all
        columns that are not structs, lists or maps, or of `columns`, which may name children of
        structs (`s.a`). What the snapshot has of older statistics is replaced. Counts of more than
        4,096 values are estimates, off by 1.6 % (one standard deviation); empty texts are not
        counted, as Java does not. Rows are read a batch at a time, and deleted ones not counted.

        `dry_run` counts, and writes nothing; `sketch_scan` is who reads the rows, this process or
        Spark's executors. Raises `NoSuchSnapshotError`, `InvalidRequestError` for a column that is
        not there or has no values to count, `ConcurrentChangeError` where the snapshot expired
        meanwhile, `CommitConflictError`, `CommitStateUnknownError`.
        """
        table, result = TableStatisticsComputation(
            self._catalog,
            self._table,
            self._io,
            snapshot_id=snapshot_id,
            columns=columns,
            clock=self._clock,
            sketch_scan=sketch_scan,
        ).run(dry_run=dry_run)
        self._committed(table)
        return result

    def compute_partition_stats(
        self, *, snapshot_id: int | None = None, dry_run: bool = False
    ) -> ComputedPartitionStatistics:
        """Count rows, files and deletes of each partition, in a new partition statistics file.

        Specification, "Partition Statistics". Of the current snapshot, or of `snapshot_id`. Where
        an ancestor has such a file, only what was committed since is counted; a snapshot that has
        one keeps it. The file is in the table's format (`write.format.default`), and
        `Table.partition_statistics` reads it.

        `dry_run` counts, and writes nothing. Raises `NoSuchSnapshotError`, `InvalidRequestError`
        for a table that is not partitioned, and what `compute_table_stats` does.
        """
        table, result = PartitionStatisticsComputation(
            self._catalog,
            self._table,
            self._io,
            snapshot_id=snapshot_id,
            clock=self._clock,
        ).run(dry_run=dry_run)
        self._committed(table)
        return result

    def _delete_file_rewrite(self, *, dry_run: bool) -> DeleteFileRewrite:
        return DeleteFileRewrite(
            self._catalog,
            self._table,
            self._io,
            clock=self._clock,
            dry_run=dry_run,
            progress=self._progress,
        )


def _texts(options: Mapping[str, object] | None) -> dict[str, str]:
    """Options as SQL gives them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (options or {}).items()
    }


def _milliseconds(moment: datetime | int | None) -> int | None:
    if not isinstance(moment, datetime):
        return moment
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return (aware - _EPOCH) // timedelta(milliseconds=1)
