"""Verifies a table: its metadata, every snapshot's manifests, and the live files.

Snapshots are checked from old to new, leaf by leaf. Parts that several snapshots share are checked
once, so a finding names the oldest snapshot that has the problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.formats.manifest_files.open_manifest import open_manifest
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.spec.content_entries import ContentStatus
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.verify.findings import Report, TableVerification, read_anew
from iceberg_pyspark.table.verify.live_files import (
    FileChecks,
    Numbers,
    concat_files,
    live_file_problems,
    numbers_of,
    total_problems,
)
from iceberg_pyspark.table.verify.manifest_rules import metric_fields
from iceberg_pyspark.table.verify.metadata_rules import (
    entries_of_manifest,
    manifest_problems,
    metadata_problems,
)
from iceberg_pyspark.table.verify.roots.bound_checks import leaf_column_problems
from iceberg_pyspark.table.verify.roots.entry_rules import StoredEntry, stored_entries
from iceberg_pyspark.table.verify.roots.root_changes import (
    RootChange,
    known_row_ids,
    row_id_problems,
)
from iceberg_pyspark.table.verify.roots.root_rules import Root, RootRules


def verify_table(io: FileIO, table: LoadedTable, *, check_files: bool = False) -> TableVerification:
    """Return the problems of a table; raise an error only if the store does not answer."""
    return _Verification(read_anew(io), table, check_files).run()


@dataclass
class _Verification:
    """One verification of a table."""

    io: FileIO
    table: LoadedTable
    check_files: bool
    report: Report = field(init=False)
    roots: RootRules = field(init=False)
    files: FileChecks = field(init=False)
    fields: Mapping[int, NestedField] = field(init=False)
    checked_keys: set[int] = field(default_factory=set)
    manifests: set[str] = field(default_factory=set)
    numbers: dict[ManifestFile, Numbers] = field(default_factory=dict)
    """The live files of the snapshot that is checked and of the one before it, which share most
    manifests."""

    def __post_init__(self) -> None:
        self.report = Report(self.io)
        self.roots = RootRules(self.io, self.table.metadata, self.report)
        self.files = FileChecks(self.io, self.report)
        self.fields = metric_fields(self.table.metadata)

    def run(self) -> TableVerification:
        """Check everything and return the result."""
        metadata = self.table.metadata
        location = self.table.metadata_location
        for rule, snapshot_id, problem in metadata_problems(metadata):
            self.report.add(rule, snapshot_id, location, problem)
        snapshots = sorted(metadata.snapshots, key=lambda s: (s.sequence_number, s.timestamp_ms))
        for snapshot in snapshots:
            self._snapshot(snapshot)
        for file in metadata.statistics:
            self._length(file.snapshot_id, file.statistics_path, file.file_size_in_bytes)
        for partitions in metadata.partition_statistics:
            self._length(
                partitions.snapshot_id, partitions.statistics_path, partitions.file_size_in_bytes
            )
        return TableVerification(
            table=str(self.table.identifier),
            metadata_location=location,
            snapshots=len(snapshots),
            manifests=len(self.manifests),
            files_were_checked=self.check_files,
            findings=tuple(self.report.findings.values()),
        )

    def _length(self, snapshot_id: int, location: str, stated_length: int) -> None:
        with self.report.reading(snapshot_id, location):
            length = self.io.size(location)
            if length != stated_length:
                problem = f"{length} bytes, and {stated_length} are said"
                self.report.add("file-length", snapshot_id, location, problem)

    def _snapshot(self, snapshot: Snapshot) -> None:
        here = snapshot.snapshot_id
        root = None
        if snapshot.root_manifest is not None:
            earlier_count = self.report.count
            root = self.roots.root(snapshot)
            if root is None:
                return
            try:
                manifests = read_snapshot_manifests(self.io, snapshot)
            except IcebergError as e:
                # the error is usually about a problem that is already reported
                if self.report.count == earlier_count:
                    self.report.add("readable", here, root.location, str(e))
                return
        else:
            is_readable = False
            with self.report.reading(here, snapshot.manifest_list or self.table.metadata_location):
                manifests = read_snapshot_manifests(self.io, snapshot)
                is_readable = True
            if not is_readable:
                return
        readable = [m for m in manifests if self._manifest(m, snapshot)]
        self.numbers = {m: self.numbers[m] for m in readable}
        if len(readable) < len(manifests):
            return
        if root is not None:
            self._beside_parent(root, manifests)
        self._live(snapshot, manifests)

    def _manifest(self, manifest: ManifestFile, snapshot: Snapshot) -> bool:
        """Check a manifest, apart from the rules of `RootRules`; return whether it is readable."""
        here, path = snapshot.snapshot_id, manifest.manifest_path
        if manifest.partition_spec_id not in self.table.metadata.spec_by_id:
            problem = f"there is no partition spec {manifest.partition_spec_id}"
            self.report.add("known-partition-spec", here, path, problem)
            return False
        number = snapshot.sequence_number
        if manifest.sequence_number > number:
            problem = f"manifest of {manifest.sequence_number} in a snapshot of {number}"
            self.report.add("sequence-number-range", here, path, problem)
        # new if any value in its list or root entry is new
        is_new = hash(manifest) not in self.checked_keys
        self.checked_keys.add(hash(manifest))
        is_readable = False
        with self.report.reading(here, path):
            if is_new and snapshot.root_manifest is None:
                # leaves of a root manifest were compared with their entries by RootRules
                problems = manifest_problems(
                    self.io,
                    self.table.metadata,
                    manifest,
                    counts_rule="manifest-counts",
                    fields=self.fields,
                )
                self.report.add_problems(problems, here, path)
            if is_new and manifest.columns:
                problems = leaf_column_problems(self.io, self.table.metadata, manifest)
                self.report.add_problems(problems, here, path)
            if manifest not in self.numbers:
                self.numbers[manifest] = numbers_of(self._read(manifest))
            is_readable = True
            self.manifests.add(path)
        return is_readable

    def _read(self, manifest: ManifestFile) -> pa.Table:
        return entries_of_manifest(self.io, self.table.metadata, manifest, drop_deleted=True)

    def _live(self, snapshot: Snapshot, manifests: Sequence[ManifestFile]) -> None:
        files = concat_files((m, self.numbers[m]) for m in manifests)
        problems = live_file_problems(
            files,
            self._read,
            has_row_ids=snapshot.first_row_id is not None,
            next_row_id=self.table.metadata.next_row_id,
            summary=snapshot.summary if snapshot.root_manifest is None else None,
        )
        for rule, manifest, problem in problems:
            self.report.add(rule, snapshot.snapshot_id, manifest.manifest_path, problem)
        place = snapshot.manifest_list or self.table.metadata_location
        totals = total_problems(files, snapshot.summary)
        self.report.add_problems(totals, snapshot.snapshot_id, snapshot.root_manifest or place)
        if self.check_files:
            self.files.check(snapshot.snapshot_id, manifests, self._read, files)

    # --- beside the parent ---

    def _beside_parent(self, root: Root, manifests: Sequence[ManifestFile]) -> None:
        if not root.is_own:
            # It is not settled how entries of the other form change.
            return
        snapshot = root.snapshot
        parent = self._parent(snapshot)
        if parent is None and snapshot.parent_snapshot_id is not None:
            return
        parent_root, parent_manifests = None, list[ManifestFile]()
        if parent is not None:
            try:
                parent_manifests = read_snapshot_manifests(self.io, parent)
                for m in parent_manifests:
                    self._read(m)
                if parent.root_manifest is not None:
                    parent_root = RootRules(
                        self.io, self.table.metadata, Report(self.io)
                    ).entries_of(parent)
            except IcebergError:
                # reported as the parent's own problem
                return
            if parent_root is not None and not parent_root.is_own:
                return
        RootChange(
            root=root,
            manifests=manifests,
            parent=parent_root,
            parent_manifests=parent_manifests,
            read=self._read,
            report=self.report,
        ).check()
        metadata = self.table.metadata
        is_last = snapshot.sequence_number == metadata.last_sequence_number
        for entry, problem in row_id_problems(
            root,
            known_row_ids(parent_manifests),
            all_have_ids=lambda e: self._all_have_ids(e, snapshot),
            next_row_id=metadata.next_row_id if is_last else None,
        ):
            self.report.add(
                "first-row-id-walk", snapshot.snapshot_id, root.location, problem, entry
            )

    def _parent(self, snapshot: Snapshot) -> Snapshot | None:
        if snapshot.parent_snapshot_id is None:
            return None
        return self.table.metadata.snapshot_by_id.get(snapshot.parent_snapshot_id)

    def _all_have_ids(self, leaf: StoredEntry, snapshot: Snapshot) -> bool:
        manifest_file = open_manifest(self.io, leaf["location"])
        entries_as_stored = stored_entries(manifest_file, snapshot.table_location)
        return entries_as_stored is not None and all(
            e["first_row_id"] is not None
            for e in entries_as_stored
            if e.status is not ContentStatus.DELETED
        )
