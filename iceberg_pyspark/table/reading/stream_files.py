"""The data files of one snapshot in the order of a stream, with their positions.

The positions are Java's: the added files of a manifest come after as many positions as the
manifests before it have added and existing files. So positions have gaps after a commit that merged
manifests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.spec.manifests import EntryStatus, ManifestContent, ManifestFile
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFile:
    """A data file of a stream; its rows are counted by the manifest, deleted rows too."""

    position: int
    path: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """The entries of a manifest by status, and the rows of the added ones."""

    added: int
    existing: int
    deleted: int
    added_rows: int


@dataclass(frozen=True, kw_only=True)
class SnapshotFiles:
    """The data files that a snapshot has added; with `all_files`, all its live data files."""

    metadata: TableMetadata
    io: FileIO
    snapshot: Snapshot
    all_files: bool = False

    def end(self) -> int:
        """Return the position after the last file, as Java computes it."""
        *before, last = (_Counts(added=0, existing=0, deleted=0, added_rows=0), *self._counts)
        positions = sum(c.added + c.existing for c in before) + last.added
        return positions + last.existing + last.deleted if self.all_files else positions

    def added(self) -> tuple[int, int]:
        """Return the number of files that the snapshot has added, and the number of their rows."""
        return sum(c.added for c in self._counts), sum(c.added_rows for c in self._counts)

    def after(self, position: int) -> Iterator[StreamFile]:
        """Yield the files at this position and after it; manifests before it are not read."""
        begin = 0
        for manifest, counts in zip(self._manifests, self._counts, strict=True):
            if begin + counts.added + counts.existing > position:
                entries = self._files_of(manifest)
                columns = (entries[c] for c in ("file_path", "record_count", "file_size_in_bytes"))
                of_files = zip(*(c.to_pylist() for c in columns), strict=True)
                for number, (path, rows, size) in enumerate(of_files, begin):
                    if number >= position:
                        yield StreamFile(position=number, path=path, rows=max(rows, 0), size=size)
            begin += counts.added + counts.existing

    @cached_property
    def _manifests(self) -> Sequence[ManifestFile]:
        # lists of version 1 may omit the snapshot id, which the entries contain too
        own = (self.snapshot.snapshot_id, None)
        return [
            m
            for m in read_snapshot_manifests(self.io, self.snapshot)
            if m.content is ManifestContent.DATA and (self.all_files or m.added_snapshot_id in own)
        ]

    @cached_property
    def _counts(self) -> Sequence[_Counts]:
        return [self._counts_of(m) for m in self._manifests]

    def _counts_of(self, manifest: ManifestFile) -> _Counts:
        added, existing = manifest.added_files_count, manifest.existing_files_count
        deleted, added_rows = manifest.deleted_files_count, manifest.added_rows_count
        if added is None or existing is None or deleted is None or added_rows is None:
            return self._counted(manifest)
        if manifest.added_snapshot_id is None:
            return self._counted(manifest)
        return _Counts(added=added, existing=existing, deleted=deleted, added_rows=added_rows)

    def _counted(self, manifest: ManifestFile) -> _Counts:
        entries = self._entries(manifest, drop_deleted=False)
        own = entries.filter(self._is_added(entries))
        status = entries["status"].to_pylist()
        live = len(status) - status.count(EntryStatus.DELETED)
        return _Counts(
            added=own.num_rows,
            existing=live - own.num_rows,
            deleted=len(status) - live,
            added_rows=max(pc.sum(own["record_count"]).as_py() or 0, 0),
        )

    def _files_of(self, manifest: ManifestFile) -> pa.Table:
        entries = self._entries(manifest, drop_deleted=True)
        return entries if self.all_files else entries.filter(self._is_added(entries))

    def _is_added(self, entries: pa.Table) -> pa.ChunkedArray:
        return pc.and_(
            pc.equal(entries["status"], int(EntryStatus.ADDED)),
            pc.equal(entries["snapshot_id"], self.snapshot.snapshot_id),
        )

    def _entries(self, manifest: ManifestFile, *, drop_deleted: bool) -> pa.Table:
        spec = self.metadata.spec_by_id[manifest.partition_spec_id]
        type_ = partition_type(spec, self.metadata.schemas_newest_first)
        return read_entries(self.io, manifest, type_, drop_deleted=drop_deleted)
