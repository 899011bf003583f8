"""Check that a table is intact: its metadata must be true of itself and of its files.

`table_problems` checks every snapshot in the metadata without reading rows: sequence numbers grow,
every listed file exists, no data file has two deletion vectors, row id ranges do not overlap, the
totals of summaries add up, and root manifests follow their rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from iceberg_pyspark import Table
from iceberg_pyspark.changes.manifest_changes import DeleteFileId, delete_file_id
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.manifest_reader import read_manifest_entries
from iceberg_pyspark.formats.puffin.deletion_vectors import read_deletion_vector
from iceberg_pyspark.formats.roots.root_manifests import snapshot_files
from iceberg_pyspark.spec.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestEntry,
    ManifestFile,
)
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO


def table_problems(table: Table, *, since: TableMetadata | None = None) -> list[str]:
    """Return a sentence for each violation; an intact table has none.

    With `since`, an earlier state that was intact, the snapshots in it are not checked again, and
    the rules of root manifests, which concern all snapshots together, are not checked.
    """
    m, io = table.metadata, table.io
    result = metadata_problems(table)
    there: dict[str, bool] = {}
    manifests = _Manifests(m, io)
    checked = {} if since is None else since.snapshot_by_id
    for snapshot in (s for s in m.snapshots if s.snapshot_id not in checked):
        entries = [(f, manifests.entries(f)) for f in manifests.of(snapshot)]
        live = [e.data_file for _, of_one in entries for e in of_one if e.is_live]
        problems = [*_wrong_entries(snapshot, entries), *_wrong_vectors(io, live)]
        if m.format_version >= 3 and snapshot.first_row_id is not None:
            problems += _wrong_row_ids(m, live)
        problems += _wrong_totals(snapshot, live)
        result += [f"snapshot {snapshot.snapshot_id}: {p}" for p in problems]
        for path in {f.file_path for f in live}.difference(there):
            there[path] = io.exists(path)
            if not there[path]:
                result.append(f"live file {path} of {snapshot.snapshot_id} is not there")
    if m.format_version == 4 and since is None:
        result += map(repr, table.verify().findings)
    return result


def metadata_problems(table: Table) -> list[str]:
    """Return a sentence for each violation that shows without the files of snapshots."""
    m = table.metadata
    result = [*_wrong_numbers(m), *_wrong_log(m)]
    for entry in m.metadata_log:
        if not table.io.exists(entry.metadata_file):
            result.append(f"previous metadata {entry.metadata_file} is not there")
    return result


class _Manifests:
    """The manifests of a table's snapshots; a manifest of several snapshots is read once."""

    def __init__(self, m: TableMetadata, io: FileIO) -> None:
        self._metadata = m
        self._io = io
        self._read: dict[str, list[tuple[ManifestFile, list[ManifestEntry]]]] = {}

    def of(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
        return read_snapshot_manifests(self._io, snapshot)

    def entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        """Return all entries of a manifest, with what they inherit from its manifest list."""
        versions = self._read.setdefault(manifest.manifest_path, [])
        for version, entries in versions:
            if version == manifest:
                return entries
        m = self._metadata
        type_ = partition_type(m.spec_by_id[manifest.partition_spec_id], m.schemas_newest_first)
        entries = list(read_manifest_entries(self._io, manifest, type_))
        versions.append((manifest, entries))
        return entries


def live_entries(m: TableMetadata, io: FileIO, snapshot: Snapshot) -> Iterator[ManifestEntry]:
    """Yield the live entries of a snapshot, with inherited sequence numbers."""
    manifests = _Manifests(m, io)
    for manifest in manifests.of(snapshot):
        yield from (e for e in manifests.entries(manifest) if e.is_live)


def unreferenced_files(table: Table) -> set[str]:
    """Return the files in the table's folder that no snapshot or metadata log refers to."""
    m, io = table.metadata, table.io
    referenced_files = {e.metadata_file for e in m.metadata_log} | {table.loaded.metadata_location}
    referenced_files |= {f.statistics_path for f in m.statistics}
    referenced_files |= {f.statistics_path for f in m.partition_statistics}
    for snapshot in m.snapshots:
        referenced_files |= snapshot_files(io, snapshot)
        for manifest in read_snapshot_manifests(io, snapshot):
            referenced_files.add(manifest.manifest_path)
        referenced_files |= {e.data_file.file_path for e in live_entries(m, io, snapshot)}
    plain = {location.removeprefix("file:") for location in referenced_files}
    result = {f.location.removeprefix("file:") for f in io.list_files(table.location)}
    return {f for f in result - plain if not f.endswith(("version-hint.text", ".crc"))}


def _wrong_numbers(m: TableMetadata) -> Iterator[str]:
    if len(m.snapshot_by_id) != len(m.snapshots):
        yield "two snapshots have one id"
    numbers = [s.sequence_number for s in m.snapshots]
    if m.format_version >= 2:
        fresh = [n for n in numbers if n]
        if any(a >= b for a, b in pairwise(fresh)):
            yield f"sequence numbers do not grow: {numbers}"
        if numbers and max(numbers) > m.last_sequence_number:
            yield f"last sequence number {m.last_sequence_number} is below {max(numbers)}"
    if m.format_version >= 3:
        ends = 0
        for s in m.snapshots:
            if s.first_row_id is None:
                continue
            if s.first_row_id < ends:
                yield f"row ids of snapshot {s.snapshot_id} begin at {s.first_row_id} below {ends}"
            ends = s.first_row_id + (s.added_rows or 0)
        if ends > m.next_row_id:
            yield f"next row id {m.next_row_id} is below {ends}"
    for name, ref in m.refs.items():
        if ref.snapshot_id not in m.snapshot_by_id:
            yield f"reference {name} is to a snapshot {ref.snapshot_id} that is not there"


def _wrong_log(m: TableMetadata) -> Iterator[str]:
    times = [e.timestamp_ms for e in m.snapshot_log]
    if times != sorted(times):
        yield "the snapshot log goes back in time"
    if m.current_snapshot_id is not None and (
        not m.snapshot_log or m.snapshot_log[-1].snapshot_id != m.current_snapshot_id
    ):
        yield "the snapshot log does not end with the current snapshot"
    if any(e.snapshot_id not in m.snapshot_by_id for e in m.snapshot_log):
        yield "the snapshot log names snapshots that are not there"


def _wrong_entries(
    s: Snapshot, entries_of: Iterable[tuple[ManifestFile, list[ManifestEntry]]]
) -> Iterator[str]:
    counted = Counter[DeleteFileId]()
    for manifest, entries in entries_of:
        counts = Counter(e.status for e in entries)
        options = {
            EntryStatus.ADDED: manifest.added_files_count,
            EntryStatus.EXISTING: manifest.existing_files_count,
            EntryStatus.DELETED: manifest.deleted_files_count,
        }
        is_whole = manifest.dead_positions is None
        if is_whole and any(n not in (None, counts[status]) for status, n in options.items()):
            yield f"{manifest.manifest_path} holds {counts}, the list says {options}"
        if manifest.sequence_number > s.sequence_number:
            yield f"{manifest.manifest_path} is of a later commit"
        for e in entries:
            if e.sequence_number is None or e.sequence_number > manifest.sequence_number:
                yield f"{e.data_file.file_path} has sequence number {e.sequence_number}"
            if e.is_live:
                counted[delete_file_id(e.data_file)] += 1
    if any(n > 1 for n in counted.values()):
        yield f"files are listed twice: {[f for f, n in counted.items() if n > 1]}"


def _wrong_vectors(io: FileIO, files: list[DataFile]) -> Iterator[str]:
    data = {f.file_path: f for f in files if f.content is FileContent.DATA}
    vectors = [f for f in files if f.is_deletion_vector]
    targets = Counter(f.referenced_data_file for f in vectors)
    for path, n in targets.items():
        if n > 1:
            yield f"{path} has {n} deletion vectors"
    for f in vectors:
        target = data.get(f.referenced_data_file or "")
        if target is None:
            yield f"the vector of {f.referenced_data_file} is of no live file"
            continue
        assert f.content_offset is not None
        assert f.content_size_in_bytes is not None
        rows = read_deletion_vector(
            io, f.file_path, f.content_offset, f.content_size_in_bytes, f.record_count, "vector"
        )
        if len(rows) and rows.max() >= target.record_count:
            yield f"the vector of {target.file_path} goes beyond its end"


def _wrong_row_ids(m: TableMetadata, files: list[DataFile]) -> Iterator[str]:
    data = [f for f in files if f.content is FileContent.DATA]
    missing = [f.file_path for f in data if f.first_row_id is None]
    if missing:
        yield f"files without row ids: {missing}"
        return
    ranges = sorted((f.first_row_id or 0, (f.first_row_id or 0) + f.record_count) for f in data)
    if any(end > start for (_, end), (start, _) in pairwise(ranges)):
        yield f"ranges of row ids overlap: {ranges}"
    if ranges and ranges[-1][1] > m.next_row_id:
        yield f"row ids go up to {ranges[-1][1]}, the next one is {m.next_row_id}"


def _wrong_totals(s: Snapshot, files: list[DataFile]) -> Iterator[str]:
    data = [f for f in files if f.content is FileContent.DATA]
    positions = [f for f in files if f.content is FileContent.POSITION_DELETES]
    keys = [f for f in files if f.content is FileContent.EQUALITY_DELETES]
    counted = {
        "total-data-files": len(data),
        "total-records": sum(f.record_count for f in data),
        "total-delete-files": len(positions) + len(keys),
        "total-position-deletes": sum(f.record_count for f in positions),
        "total-equality-deletes": sum(f.record_count for f in keys),
    }
    for key, count in counted.items():
        text = s.summary.get(key)
        if text is not None and int(text) != count:
            yield f"{key} is {text}, there are {count}"
