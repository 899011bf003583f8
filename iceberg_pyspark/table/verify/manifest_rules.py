"""Checks that manifests of all versions match the statements of their manifest list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_reader import read_partition_types
from iceberg_pyspark.spec.manifests import EntryStatus, ManifestFile
from iceberg_pyspark.spec.partitioning import declared_partition_type, partition_type
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.verify.findings import Problem

Numbers = npt.NDArray[np.int64]
_COUNTS = [f"{s.name.lower()}_{unit}_count" for s in EntryStatus for unit in ("files", "rows")]


def entries_of_manifest(
    io: FileIO, metadata: TableMetadata, manifest: ManifestFile, *, drop_deleted: bool
) -> pa.Table:
    """Return the entries of a manifest with inherited values; removed positions are left out."""
    spec = metadata.spec_by_id[manifest.partition_spec_id]
    type_ = partition_type(spec, metadata.schemas_newest_first)
    if not manifest.is_root:
        # manifests from before the table was replaced may have columns of other types
        type_ = declared_partition_type(type_, read_partition_types(io, manifest.manifest_path))
    return read_entries(io, manifest, type_, drop_deleted=drop_deleted)


def manifest_problems(
    io: FileIO, metadata: TableMetadata, manifest: ManifestFile, *, counts_rule: str
) -> Iterator[Problem]:
    """Yield the differences between a manifest and its manifest list or root manifest.

    `counts_rule` is the rule for wrong counts. Unknown counts are no problem.
    """
    length = io.size(manifest.manifest_path)
    if length != manifest.manifest_length:
        yield "file-length", f"{length} bytes, and {manifest.manifest_length} are said"
    # without the counts, which reading would check too
    no_counts: dict[str, Any] = dict.fromkeys(_COUNTS)
    entries = entries_of_manifest(
        io, metadata, replace(manifest, dead_positions=None, **no_counts), drop_deleted=False
    )
    status = np.asarray(entries["status"])
    records: Numbers = np.asarray(entries["record_count"])
    for s in EntryStatus:
        has_status = status == s
        word = s.name.lower()
        counts = int(has_status.sum()), int(records[has_status].sum())
        for name, count in zip((f"{word}_files_count", f"{word}_rows_count"), counts, strict=True):
            manifest_count = getattr(manifest, name)
            if manifest_count is not None and manifest_count != count:
                yield counts_rule, f"{name} is {manifest_count}, and its entries have {count}"
    yield from _sequence_numbers(entries, status, manifest)


def _sequence_numbers(
    entries: pa.Table, status: npt.NDArray[np.int32], manifest: ManifestFile
) -> Iterator[Problem]:
    rule = "sequence-number-range"
    least, most = manifest.min_sequence_number, manifest.sequence_number
    for name in ("sequence_number", "file_sequence_number"):
        numbers: Numbers = np.asarray(entries[name])
        above = np.flatnonzero(numbers > most)
        if len(above):
            yield (
                rule,
                f"{name} {int(numbers[above[0]])} of {entries['file_path'][int(above[0])]} is "
                f"above that of its manifest, {most}",
            )
    numbers = np.asarray(entries["sequence_number"])
    below = np.flatnonzero((numbers < least) & (status != EntryStatus.DELETED))
    if len(below):
        yield (
            rule,
            f"{entries['file_path'][int(below[0])]} has sequence number "
            f"{int(numbers[below[0]])}, below the manifest's least one, {least}",
        )
