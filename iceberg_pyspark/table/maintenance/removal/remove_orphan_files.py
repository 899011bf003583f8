"""Removes old files in a table's folder that the table does not need.

The folder is listed first; then the needed files are read from the newest metadata, and again if
the table has changed meanwhile. Only files in the table's own folders are deleted, and none that
another table needs there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.catalogs.table_folders import own_folders
from iceberg_pyspark.errors import InvalidRequestError, StorageError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.storage.files.places import is_below
from iceberg_pyspark.storage.own_folders import OwnFolders
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable
from iceberg_pyspark.table.maintenance.procedures import PrefixMismatchMode
from iceberg_pyspark.table.maintenance.removal.candidate_files import CandidateFiles
from iceberg_pyspark.table.maintenance.removal.deleted_files import DeletedFile, FileDeletion
from iceberg_pyspark.table.maintenance.removal.expire_snapshots import check_clock, check_may_delete
from iceberg_pyspark.table.maintenance.removal.orphan_files import (
    FolderListing,
    Inventory,
    StoreNames,
    referenced_files,
)
from iceberg_pyspark.table.maintenance.removal.other_tables import files_of_others
from iceberg_pyspark.table.progress import with_progress

DEFAULT_AGE_MS = 3 * 86_400_000
_MIN_AGE_MS = 86_400_000
_MAX_EXAMPLES = 5
_MAX_FAILURES = 5
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanFiles:
    """The files that a table does not need; they were deleted, except in a `dry_run`.

    `failed_files_count` of them could not be deleted.
    """

    orphan_file_locations: tuple[str, ...] = ()
    deleted_files_count: int = 0
    failed_files_count: int = 0


@dataclass(frozen=True, kw_only=True)
class OrphanRemoval:
    """One removal of orphan files of one table; times are in milliseconds since 1970.

    `location` None: the table's own folders. `inventory` None: the files are listed from the store.
    """

    table: MaintainedTable
    older_than_ms: int | None = None
    location: str | None = None
    inventory: Inventory | None = None
    store_names: StoreNames = field(default_factory=StoreNames)
    prefix_mismatch_mode: PrefixMismatchMode = "error"
    threads: int
    is_forced: bool = False

    def run(self, *, dry_run: bool) -> OrphanFiles:
        """Find the files, and delete them unless `dry_run` is true."""
        io = self.table.io
        current = self._newest()
        older_than_ms = self._older_than_ms()
        own = own_folders(self.table.catalog, current)
        orphans: list[str] = []
        counts: Counter[DeletedFile] = Counter()
        for folder in self._folders(own):
            with CandidateFiles() as files, FileDeletion(io, own, self.threads) as deletion:
                self._find(files, FolderListing(io, folder, older_than_ms, current, self.inventory))
                total, deleted_count = files.counts().total(), 0
                if dry_run:
                    orphans += _own_files(files, own)
                    continue
                if total:
                    if not self.is_forced:
                        check_clock(self.table, own, "set force if nobody writes to the table")
                    self.table.progress("orphan files deleted", deleted_count, total)
                for outcomes in deletion.delete(_with_record(_own_files(files, own), orphans)):
                    counts += outcomes
                    deleted_count += outcomes.total()
                    self.table.progress("orphan files deleted", deleted_count, total)
        return OrphanFiles(
            orphan_file_locations=tuple(orphans),
            deleted_files_count=counts["deleted"],
            failed_files_count=counts["failed"],
        )

    def _newest(self) -> LoadedTable:
        newest = self.table.newest()
        check_may_delete(self.table.loaded, newest.metadata, "remove orphan files")
        return newest

    def _older_than_ms(self) -> int:
        now_ms = self.table.clock.now_ms()
        if self.older_than_ms is None:
            return now_ms - DEFAULT_AGE_MS
        if now_ms - self.older_than_ms < _MIN_AGE_MS and not self.is_forced:
            raise InvalidRequestError(
                f"table {self.table.name}: files of the last 24 hours may belong to a writer "
                "that has not committed yet, and deleting them would lose its rows; give an "
                "earlier older_than, or set force if nobody writes to the table"
            )
        return self.older_than_ms

    def _folders(self, own: OwnFolders) -> Sequence[str]:
        if self.location is not None:
            location = self.location.rstrip("/")
            if not own.owns(f"{location}/x"):
                raise InvalidRequestError(
                    f"table {self.table.name}: {self.location} is not in its own folder "
                    f"({', '.join(own.folders) or 'none that its catalog knows'}), so its files "
                    "may belong to other tables; leave location out"
                )
            return [location]
        if not any(own.owns(f"{folder}/x") for folder in own.folders):
            raise InvalidRequestError(
                f"table {self.table.name}: its catalog knows no folder of its own for it, "
                "so its orphan files cannot be determined"
            )
        return [
            folder
            for i, folder in enumerate(own.folders)
            if own.owns(f"{folder}/x")
            and not any(is_below(folder, other) for other in own.folders[:i])
        ]

    def _find(self, files: CandidateFiles, listing: FolderListing) -> None:
        files.add(with_progress(self.table.progress, "files listed", listing.files(), None))
        files.need(listing.link_targets)
        for folder in listing.foreign_folders:
            _log.warning("%s belongs to another table, and is kept", folder)
            files.drop_below(folder)
        read_manifests: set[Hashable] = set()
        location, failures = None, 0
        while (newest := self._newest()).metadata_location != location:
            location = newest.metadata_location
            references = chain(
                referenced_files(self.table.io, newest, read_manifests),
                self._files_of_others(newest, listing),
            )
            try:
                # the locations arrive in batches, one per manifest
                for locations in with_progress(
                    self.table.progress, "lists of needed files", references, None
                ):
                    files.need_in_store(
                        locations, lambda x: self.store_names.is_same(x, listing.folder)
                    )
            except StorageError:
                # an expiry meanwhile deletes files that the newest metadata does not need
                failures += 1
                if failures > _MAX_FAILURES or self._newest().metadata_location == location:
                    raise
        match self.prefix_mismatch_mode:
            case "error":
                self._check_one_store(files)
            case "ignore":
                files.drop_elsewhere()

    def _files_of_others(self, newest: LoadedTable, listing: FolderListing) -> Iterator[list[str]]:
        return files_of_others(
            self.table.catalog,
            self.table.io,
            newest,
            listed=listing.metadata_files,
            with_tables_above=True,
        )

    def _check_one_store(self, files: CandidateFiles) -> None:
        pairs = list(islice(files.elsewhere(), _MAX_EXAMPLES))
        if pairs:
            examples = "; ".join(
                f"{listed_prefix} and {referenced_prefix}"
                for listed_prefix, referenced_prefix in pairs
            )
            raise InvalidRequestError(
                f"table {self.table.name}: the table needs files with the paths of listed "
                f"files, but in another store ({examples}); if the stores are the same, declare "
                "them in equal_schemes or equal_authorities; otherwise set prefix_mismatch_mode "
                "to ignore (keeps the listed files) or delete"
            )


def _own_files(files: CandidateFiles, own: OwnFolders) -> Iterator[str]:
    for _, locations in files.batches():
        yield from filter(own.owns, locations)


def _with_record(locations: Iterator[str], record: list[str]) -> Iterator[str]:
    """Yield the locations, each after it was added to the record."""
    for location in locations:
        record.append(location)
        yield location
