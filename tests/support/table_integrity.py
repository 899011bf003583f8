"""Check that a table is intact: its metadata must be true of itself and of its files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from iceberg_pyspark import Table
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.manifest_reader import read_manifest_entries
from iceberg_pyspark.formats.roots.root_manifests import snapshot_files
from iceberg_pyspark.spec.manifests import DataFile, FileContent, ManifestEntry
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO


def table_problems(table: Table) -> list[str]:
    """Return a sentence for each violation; an intact table has none.

    Beside the rules of `Table.verify`, commits of this package keep those of this module.
    """
    m, io = table.metadata, table.io
    result = [*map(str, table.verify(check_files=True).findings), *metadata_problems(table)]
    for snapshot in m.snapshots:
        live = [e.data_file for e in live_entries(m, io, snapshot)]
        problems = [*_vectors_of_no_file(live), *_wrong_totals(snapshot, live)]
        result += [f"snapshot {snapshot.snapshot_id}: {p}" for p in problems]
    return result


def metadata_problems(table: Table) -> Iterator[str]:
    """Yield the violations that show without the files of snapshots, beside those of `verify`."""
    m = table.metadata
    numbers = [s.sequence_number for s in m.snapshots if s.sequence_number]
    if any(a >= b for a, b in pairwise(numbers)):
        yield f"sequence numbers do not grow: {numbers}"
    times = [e.timestamp_ms for e in m.snapshot_log]
    if times != sorted(times):
        yield "the snapshot log goes back in time"
    last = m.snapshot_log[-1].snapshot_id if m.snapshot_log else None
    if m.current_snapshot_id not in (None, last):
        yield "the snapshot log does not end with the current snapshot"
    for entry in m.metadata_log:
        if not table.io.exists(entry.metadata_file):
            yield f"previous metadata {entry.metadata_file} is not there"


def live_entries(m: TableMetadata, io: FileIO, snapshot: Snapshot) -> Iterator[ManifestEntry]:
    """Yield the live entries of a snapshot, with inherited sequence numbers."""
    for manifest in read_snapshot_manifests(io, snapshot):
        spec = m.spec_by_id[manifest.partition_spec_id]
        entries = read_manifest_entries(io, manifest, partition_type(spec, m.schemas_newest_first))
        yield from (e for e in entries if e.is_live)


def unreferenced_files(table: Table) -> set[str]:
    """Return the files in the table's folder that no snapshot or metadata log refers to."""
    m, io = table.metadata, table.io
    referenced_files = {e.metadata_file for e in m.metadata_log} | {table.loaded.metadata_location}
    referenced_files |= {f.statistics_path for f in m.statistics}
    referenced_files |= {f.statistics_path for f in m.partition_statistics}
    for snapshot in m.snapshots:
        referenced_files |= snapshot_files(io, snapshot)
        referenced_files |= {f.manifest_path for f in read_snapshot_manifests(io, snapshot)}
        referenced_files |= {e.data_file.file_path for e in live_entries(m, io, snapshot)}
    plain = {location.removeprefix("file:") for location in referenced_files}
    result = {f.location.removeprefix("file:") for f in io.list_files(table.location)}
    return {f for f in result - plain if not f.endswith(("version-hint.text", ".crc"))}


def _vectors_of_no_file(files: list[DataFile]) -> Iterator[str]:
    data = {f.file_path for f in files if f.content is FileContent.DATA}
    for f in files:
        if f.is_deletion_vector and f.referenced_data_file not in data:
            yield f"the vector of {f.referenced_data_file} is of no live file"


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
