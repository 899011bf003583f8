"""Writes a leaf of a root manifest: the content entries of one partition spec, in Parquet.

Proposal "Single-file commits". The root manifest (`changes/root_entries.py`) assigns the
values that added entries inherit, so a retry keeps its leaves byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from iceberg_pyspark.formats.roots.content_writer import write_content_entries
from iceberg_pyspark.spec.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    with_counts,
)
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO


def write_leaf_manifest(
    file_io: FileIO,
    location: str,
    entries: Iterable[ManifestEntry],
    *,
    spec: PartitionSpec,
    schema: Schema,
    partition_type: StructType,
    table_location: str,
    content: ManifestContent,
    snapshot_id: int,
) -> ManifestFile:
    """Write a leaf; the root manifest assigns its sequence number and those of ADDED entries."""
    counting = _Counting()
    manifest_file = write_content_entries(
        file_io,
        location,
        counting.through(entries),
        content="data" if content is ManifestContent.DATA else "delete",
        schema=schema,
        partition_types={spec.spec_id: partition_type},
        table_location=table_location,
    )
    least = counting.min_sequence_number
    manifest = ManifestFile(
        manifest_path=location,
        manifest_length=manifest_file.length,
        partition_spec_id=spec.spec_id,
        content=content,
        sequence_number=UNASSIGNED_SEQUENCE_NUMBER,
        min_sequence_number=UNASSIGNED_SEQUENCE_NUMBER if least is None else least,
        added_snapshot_id=snapshot_id,
        table_location=table_location,
        columns=manifest_file.columns,
    )
    return with_counts(manifest, counting.files, counting.rows)


class _Counting:
    """Counts the files and rows of entries that pass through it."""

    def __init__(self) -> None:
        self.files = dict.fromkeys(EntryStatus, 0)
        self.rows = dict.fromkeys(EntryStatus, 0)
        self.min_sequence_number: int | None = None

    def through(self, entries: Iterable[ManifestEntry]) -> Iterator[ManifestEntry]:
        for e in entries:
            self.files[e.status] += 1
            self.rows[e.status] += e.data_file.record_count
            number = e.sequence_number
            if number is not None and e.is_live:
                least = self.min_sequence_number
                self.min_sequence_number = number if least is None else min(least, number)
            yield replace(e, snapshot_id=None) if e.status is EntryStatus.ADDED else e
