"""Expires snapshots: first the commit, then the deletion of files that only they referenced.

Specification, "Snapshot Retention Policy". The files to delete are computed from the metadata after
the commit, so that a branch, tag or append that was committed meanwhile keeps its files. If the
commit is refused or its outcome is unknown, nothing is deleted; if the process is killed, the
remaining files are orphan files.

This machine's clock is compared with the time of the store first. With a clock that is days ahead,
everything seems older than it is: files of writers that have not committed yet, and snapshots that
are to be kept for some days.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import itemgetter

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.catalogs.table_folders import own_folders
from iceberg_pyspark.changes.changes import Changes
from iceberg_pyspark.changes.compatibility import check_may_change
from iceberg_pyspark.changes.outcomes import after_commit
from iceberg_pyspark.changes.snapshot_retention import (
    Expiry,
    Retention,
    expiry,
    expiry_changes,
    unused_schemas,
    unused_specs,
)
from iceberg_pyspark.errors import IcebergError, InvalidRequestError, StorageError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.manifests import ManifestContent
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import GC_ENABLED
from iceberg_pyspark.storage.files.file_io import FileIO, temporary_name
from iceberg_pyspark.storage.own_folders import OwnFolders
from iceberg_pyspark.table.commits.commit import MetadataStep, commit_steps, with_changes
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable
from iceberg_pyspark.table.commits.stream_epochs import expired_epochs_changes
from iceberg_pyspark.table.maintenance.removal.candidate_files import CandidateFiles
from iceberg_pyspark.table.maintenance.removal.deleted_files import FileDeletion
from iceberg_pyspark.table.maintenance.removal.expired_files import (
    FileKind,
    add_expired_files,
    manifests_of,
)
from iceberg_pyspark.table.maintenance.removal.other_tables import files_of_others
from iceberg_pyspark.table.progress import Progress

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredSnapshots:
    """The numbers of files that an expiry deleted or, with `dry_run`, would delete.

    The names are Java's. `outside_files_count` files are outside the table's own folders and are
    kept; `failed_files_count` files could not be deleted and are now orphan files.
    """

    deleted_data_files_count: int = 0
    deleted_position_delete_files_count: int = 0
    deleted_equality_delete_files_count: int = 0
    deleted_manifest_files_count: int = 0
    deleted_manifest_lists_count: int = 0
    deleted_statistics_files_count: int = 0
    expired_snapshots_count: int = 0
    expired_refs: tuple[str, ...] = ()
    outside_files_count: int = 0
    failed_files_count: int = 0


_COUNTS = {
    FileKind.DATA: "deleted_data_files_count",
    FileKind.POSITION_DELETES: "deleted_position_delete_files_count",
    FileKind.EQUALITY_DELETES: "deleted_equality_delete_files_count",
    FileKind.MANIFEST: "deleted_manifest_files_count",
    FileKind.MANIFEST_LIST: "deleted_manifest_lists_count",
    FileKind.STATISTICS: "deleted_statistics_files_count",
}


class SnapshotExpiry:
    """One expiry of one table."""

    def __init__(
        self,
        table: MaintainedTable,
        retention: Retention,
        *,
        clean_expired_metadata: bool,
        threads: int,
    ) -> None:
        self._table = table
        self._retention = retention
        self._clean = clean_expired_metadata
        self._threads = threads
        self._now_ms = table.clock.now_ms()
        # the metadata that the last attempt was based on
        self._before = table.loaded.metadata

    def plan(self) -> ExpiredSnapshots:
        """Return what an expiry would delete, without changing anything."""
        current = self._table.newest()
        changes = self._changes(current.metadata)
        after = with_changes(current.metadata, changes, self._table.clock)
        own = own_folders(self._table.catalog, current)
        counts: Counter[str] = Counter()
        with CandidateFiles() as files:
            self._add_expired_files(files, current.metadata, current, after)
            for kind, locations in files.batches():
                owned_count = sum(map(own.owns, locations))
                counts[_COUNTS[FileKind(kind)]] += owned_count
                counts["outside_files_count"] += len(locations) - owned_count
        return self._result(after, counts)

    def run(self) -> tuple[LoadedTable, ExpiredSnapshots]:
        """Expire snapshots; return the table and the counts. Raises errors of `commit_steps`."""
        step = MetadataStep(self._changes)
        t = self._table
        by_age = self._retention.older_than_ms is None
        if by_age and expiry(t.loaded.metadata, self._retention, self._now_ms).snapshot_ids:
            check_clock(t, own_folders(t.catalog, t.loaded), "give older_than")
        new_table = commit_steps(t.catalog, t.loaded, [step], start="newest", clock=t.clock)
        counts: Counter[str] = Counter()
        if _has_files_less(self._before, new_table.metadata):
            deletion = (
                f"deleting the files of expired snapshots of {new_table.identifier}; those that "
                "are left are orphan files, which remove_orphan_files removes"
            )
            with after_commit(deletion):
                self._delete_files(new_table, counts)
        return new_table, self._result(new_table.metadata, counts)

    def _add_expired_files(
        self,
        files: CandidateFiles,
        before: TableMetadata,
        newest: LoadedTable,
        after: TableMetadata,
    ) -> None:
        t = self._table
        add_expired_files(files, t.io, before, after, t.progress)
        if files.counts():
            for locations in files_of_others(t.catalog, t.io, newest):
                files.need(locations)

    def _changes(self, metadata: TableMetadata) -> Changes:
        check_may_delete(self._table.loaded, metadata, "expire snapshots")
        self._before = metadata
        expired_parts = expiry(metadata, self._retention, self._now_ms)
        epochs = expired_epochs_changes(metadata, set(expired_parts.snapshot_ids))
        changes = self._removal(metadata, expired_parts)
        return replace(changes, updates=(*changes.updates, *epochs.updates))

    def _removal(self, metadata: TableMetadata, expired_parts: Expiry) -> Changes:
        if not self._clean:
            return expiry_changes(metadata, expired_parts)
        ids = set(expired_parts.snapshot_ids)
        remaining = [s for s in metadata.snapshots if s.snapshot_id not in ids]
        manifests = manifests_of(self._table.io, remaining).values()
        spec_ids = {m.partition_spec_id for m in manifests} | {metadata.default_spec_id}
        return expiry_changes(
            metadata,
            expired_parts,
            spec_ids=unused_specs(metadata, spec_ids),
            schema_ids=unused_schemas(
                metadata,
                expired_parts,
                spec_ids,
                has_deletes=any(m.content is ManifestContent.DELETES for m in manifests),
            ),
        )

    def _delete_files(self, new_table: LoadedTable, counts: Counter[str]) -> None:
        # A later commit may need files that our commit no longer references.
        t = self._table
        newest = t.newest()
        own = own_folders(t.catalog, newest)
        while True:
            check_may_delete(t.loaded, newest.metadata, "delete files of expired snapshots")
            with CandidateFiles() as files:
                try:
                    self._add_expired_files(files, self._before, newest, newest.metadata)
                except IcebergError:
                    # Another expiry may have deleted a manifest that was to be read.
                    earlier, newest = newest, t.newest()
                    if newest.metadata_location == earlier.metadata_location:
                        raise
                    continue
                _delete(t.io, own, files, self._threads, counts, t.progress)
                break
        if counts["outside_files_count"] or counts["failed_files_count"]:
            _log.warning(
                "table %s: of the files of expired snapshots %d outside its own folders (%s) "
                "stay, %d could not be deleted",
                new_table.identifier,
                counts["outside_files_count"],
                ", ".join(own.folders) or "none that its catalog knows",
                counts["failed_files_count"],
            )

    def _result(self, after: TableMetadata, counts: Counter[str]) -> ExpiredSnapshots:
        expired_snapshots = [
            s for s in self._before.snapshots if s.snapshot_id not in after.snapshot_by_id
        ]
        return ExpiredSnapshots(
            expired_snapshots_count=len(expired_snapshots),
            expired_refs=tuple(name for name in self._before.refs if name not in after.refs),
            **counts,
        )


def check_may_delete(table: LoadedTable, metadata: TableMetadata, operation: str) -> None:
    """Refuse a table that may share its files (`gc.enabled` false) or must not be changed here."""
    check_may_change(metadata)
    if not GC_ENABLED.of(metadata.properties):
        raise InvalidRequestError(
            f"table {table.identifier}: cannot {operation}, because its property {GC_ENABLED.name} "
            "is false: its files may belong to other tables; set the property to true only if "
            "they do not"
        )


def _has_files_less(before: TableMetadata, after: TableMetadata) -> bool:
    return any(s.snapshot_id not in after.snapshot_by_id for s in before.snapshots)


def _delete(
    io: FileIO,
    own: OwnFolders,
    files: CandidateFiles,
    threads: int,
    counts: Counter[str],
    progress: Progress,
) -> None:
    total, deleted_count = files.counts().total(), 0
    with FileDeletion(io, own, threads) as deletion:
        # all files of one kind are deleted before the first file of the next kind
        for kind, batches in groupby(files.batches(), key=itemgetter(0)):
            progress("files deleted", deleted_count, total)
            locations = chain.from_iterable(batch for _, batch in batches)
            for outcomes in deletion.delete(locations):
                counts[_COUNTS[FileKind(kind)]] += outcomes["deleted"]
                counts["outside_files_count"] += outcomes["outside"]
                counts["failed_files_count"] += outcomes["failed"]
                deleted_count += outcomes.total()
                progress("files deleted", deleted_count, total)


_MAX_AHEAD_MS = 3_600_000


def check_clock(table: MaintainedTable, own: OwnFolders, remedy: str) -> None:
    """Raise `InvalidRequestError` if this machine's clock is more than an hour ahead.

    The store's time is that of a file just written, which is deleted again. A store that does not
    tell times is not asked.
    """
    if not own.folders:
        return
    io, folder = table.io, f"{own.folders[0].rstrip('/')}/metadata"
    location = f"{folder}/{temporary_name()}"
    now_ms = table.clock.now_ms()
    io.write_bytes(location, b"-")
    try:
        store_ms = next(
            (f.modified_ms for f in io.list_files(folder) if f.location == location), None
        )
    finally:
        try:
            own.delete(io, location)
        except StorageError as e:
            _log.info("a file to ask for the store's time was not deleted: %s", e)
    if store_ms is not None and now_ms - store_ms > _MAX_AHEAD_MS:
        raise InvalidRequestError(
            f"table {table.name}: nothing is deleted, because this machine's clock is "
            f"{(now_ms - store_ms) / 3_600_000:.1f} hours ahead of the store's time, so files and "
            f"snapshots seem older than they are; correct the clock, or {remedy}"
        )
