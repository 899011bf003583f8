"""Checks the rules of table metadata, and that manifests match their manifest list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceberg_pyspark.changes.compatibility import check_schema
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_reader import read_partition_types
from iceberg_pyspark.spec.encryption import TABLE_KEY_ID
from iceberg_pyspark.spec.manifests import EntryStatus, ManifestFile
from iceberg_pyspark.spec.partitioning import declared_partition_type, partition_type
from iceberg_pyspark.spec.relative_paths import RELATIVE_PATHS_VERSION
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import NestedField, StructType
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.verify.findings import Problem
from iceberg_pyspark.table.verify.manifest_rules import entry_problems, metric_problems

MetadataProblem = tuple[str, int | None, str]
"""A rule's name, a snapshot id, and a description of the problem."""


def metadata_problems(metadata: TableMetadata) -> Iterator[MetadataProblem]:
    """Yield the problems of the metadata, without reading other files."""
    yield from _unknown_snapshots(metadata)
    counts = Counter(s.snapshot_id for s in metadata.snapshots)
    for snapshot_id, count in counts.items():
        if count > 1:
            yield "unique-snapshot-id", snapshot_id, f"{count} snapshots have this id"
    for snapshot in metadata.snapshots:
        yield from (
            (rule, snapshot.snapshot_id, problem) for rule, problem in _of(snapshot, metadata)
        )
    yield from _row_ids(metadata)
    yield from _schemas(metadata)
    yield from _refs(metadata)
    yield from _statistics(metadata)
    yield from _history(metadata)


def _unknown_snapshots(metadata: TableMetadata) -> Iterator[MetadataProblem]:
    snapshot_by_id = metadata.snapshot_by_id
    rule = "known-snapshot"
    if (
        metadata.current_snapshot_id is not None
        and metadata.current_snapshot_id not in snapshot_by_id
    ):
        yield rule, metadata.current_snapshot_id, "the current snapshot is not there"
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in snapshot_by_id:
            yield (
                rule,
                ref.snapshot_id,
                f"the {ref.type} '{name}' is of a snapshot that is not there",
            )
    for entry in metadata.snapshot_log:
        if entry.snapshot_id not in snapshot_by_id:
            yield rule, entry.snapshot_id, "the snapshot log names a snapshot that is not there"


def _of(snapshot: Snapshot, metadata: TableMetadata) -> Iterator[tuple[str, str]]:
    roots = snapshot.root_manifest is not None
    if TABLE_KEY_ID in metadata.properties and not roots and snapshot.list_key is None:
        yield "encrypted", "the manifest list has no key"
    if roots and metadata.format_version < RELATIVE_PATHS_VERSION:
        yield (
            "root-manifest-xor-manifest-list",
            f"a root manifest in a table of version {metadata.format_version}",
        )
    if roots and (snapshot.manifest_list is not None or snapshot.manifests is not None):
        yield "root-manifest-xor-manifest-list", "a root manifest beside a list of manifests"
    if snapshot.schema_id is not None and snapshot.schema_id not in metadata.schema_by_id:
        yield "known-schema", f"there is no schema {snapshot.schema_id}"
    number = snapshot.sequence_number
    if metadata.format_version > 1 and number > metadata.last_sequence_number:
        yield (
            "snapshot-sequence-number",
            f"sequence number {number} is above the table's last, {metadata.last_sequence_number}",
        )
    parent = metadata.snapshot_by_id.get(snapshot.parent_snapshot_id or -1)
    if parent is None or parent is snapshot:
        return
    # snapshots of version 1 have sequence number 0
    if number and number <= parent.sequence_number:
        yield (
            "snapshot-sequence-number",
            f"sequence number {number} is not above the parent's, {parent.sequence_number}",
        )
    if roots and snapshot.timestamp_ms <= parent.timestamp_ms:
        yield (
            "timestamp-after-parent",
            f"committed at {snapshot.timestamp_ms}, its parent at {parent.timestamp_ms}",
        )


def _row_ids(metadata: TableMetadata) -> Iterator[MetadataProblem]:
    """Check row id ranges in commit order, since branches may be committed to in turn."""
    end = 0
    for snapshot in sorted(metadata.snapshots, key=lambda s: s.sequence_number):
        first, added_rows = snapshot.first_row_id, snapshot.added_rows
        if first is None:
            continue
        if first < end:
            yield (
                "snapshot-row-ids",
                snapshot.snapshot_id,
                f"row ids begin at {first}, those of snapshots before end at {end}",
            )
        end = max(end, first + (added_rows or 0))
        if end > metadata.next_row_id:
            yield (
                "snapshot-row-ids",
                snapshot.snapshot_id,
                f"row ids end at {end}, above the table's next-row-id {metadata.next_row_id}",
            )
            return


def _schemas(metadata: TableMetadata) -> Iterator[MetadataProblem]:
    for schema in metadata.schemas:
        try:
            check_schema(schema, metadata.format_version)
        except InvalidRequestError as e:
            yield "valid-schema", None, f"schema {schema.schema_id}: {e}"


def _refs(metadata: TableMetadata) -> Iterator[MetadataProblem]:
    rule = "retention-of-refs"
    for name, ref in metadata.refs.items():
        of_branches = (ref.min_snapshots_to_keep, ref.max_snapshot_age_ms)
        if ref.type == "tag" and of_branches != (None, None):
            yield rule, ref.snapshot_id, f"tag '{name}' has the retention of a branch"
        if name == MAIN and ref.max_ref_age_ms is not None:
            yield rule, ref.snapshot_id, f"branch '{name}' has max-ref-age-ms, and never expires"


def _statistics(metadata: TableMetadata) -> Iterator[MetadataProblem]:
    rule = "statistics-of-snapshot"
    for kind, files in (
        ("statistics", metadata.statistics),
        ("partition statistics", metadata.partition_statistics),
    ):
        counts = Counter(f.snapshot_id for f in files)
        for snapshot_id, count in counts.items():
            if snapshot_id not in metadata.snapshot_by_id:
                yield rule, snapshot_id, f"{kind} of a snapshot that is not there"
            elif count > 1:
                yield rule, snapshot_id, f"{count} files of {kind}"


def _history(metadata: TableMetadata) -> Iterator[MetadataProblem]:
    """Java refuses tables whose logs go back in time by more than the clocks of writers may."""
    for name, times in (
        ("snapshot log", [e.timestamp_ms for e in metadata.snapshot_log]),
        ("metadata log", [e.timestamp_ms for e in metadata.metadata_log]),
    ):
        ends = [*times[1:], metadata.last_updated_ms]
        for before, after in zip(times, ends, strict=False):
            if after < before - _CLOCK_SKEW_MS:
                yield "history-order", None, f"the {name} has {before} before {after}"


_CLOCK_SKEW_MS = 60_000
Numbers = npt.NDArray[np.int64]
_COUNTS = [f"{s.name.lower()}_{unit}_count" for s in EntryStatus for unit in ("files", "rows")]


def entries_of_manifest(
    io: FileIO, metadata: TableMetadata, manifest: ManifestFile, *, drop_deleted: bool
) -> pa.Table:
    """Return the entries of a manifest with inherited values; removed positions are left out."""
    type_ = _partition_type(io, metadata, manifest)
    return read_entries(io, manifest, type_, drop_deleted=drop_deleted)


def _partition_type(io: FileIO, metadata: TableMetadata, manifest: ManifestFile) -> StructType:
    spec = metadata.spec_by_id[manifest.partition_spec_id]
    type_ = partition_type(spec, metadata.schemas_newest_first)
    if manifest.is_root:
        return type_
    # manifests from before the table was replaced may have columns of other types
    types = read_partition_types(io, manifest.manifest_path, manifest.key_metadata)
    return declared_partition_type(type_, types)


def manifest_problems(
    io: FileIO,
    metadata: TableMetadata,
    manifest: ManifestFile,
    *,
    counts_rule: str,
    fields: Mapping[int, NestedField] | None = None,
) -> Iterator[Problem]:
    """Yield the differences between a manifest and its manifest list or root manifest.

    `counts_rule` is the rule for wrong counts. Unknown counts are no problem. `fields` are those of
    `metric_fields`, None if the rules of entries are checked elsewhere.
    """
    length = io.size(manifest.manifest_path)
    if length != manifest.manifest_length:
        yield "file-length", f"{length} bytes, and {manifest.manifest_length} are said"
    # without the counts, which reading would check too
    no_counts: dict[str, Any] = dict.fromkeys(_COUNTS)
    type_ = _partition_type(io, metadata, manifest)
    whole = replace(manifest, dead_positions=None, **no_counts)
    first, *others = _groups(manifest, list(fields or ()))
    entries = read_entries(io, whole, type_, drop_deleted=False, metrics=first)
    if fields is not None:
        yield from entry_problems(entries, metadata, manifest, type_, fields)
        yield from metric_problems(entries, map(fields.__getitem__, first))
        for ids in others:
            more = read_entries(io, whole, type_, drop_deleted=False, metrics=ids)
            yield from metric_problems(more, map(fields.__getitem__, ids))
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


def _groups(manifest: ManifestFile, ids: Sequence[int]) -> list[Sequence[int]]:
    """Return the columns in groups of a bounded number of metrics; there is at least one group."""
    counts = (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
    )
    entries = sum(_MOST_ENTRIES if count is None else count for count in counts)
    size = max(_MOST_METRICS // max(entries, 1), 1)
    return [ids[at : at + size] for at in range(0, len(ids), size)] or [()]


_MOST_METRICS = 1_000_000
"""The most pairs of an entry and a column whose metrics are in memory at once."""
_MOST_ENTRIES = 10_000
"""The number of entries that is assumed where version 1 does not state it."""


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
