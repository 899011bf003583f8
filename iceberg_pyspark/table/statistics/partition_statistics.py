"""Computes and reads partition statistics: one file per snapshot.

Specification, "Partition Statistics" and "Partition Statistics File". If an ancestor of the
snapshot has such a file, only later commits are counted, from the manifests of their snapshots;
otherwise all manifests of the snapshot are read. No data file is opened. `total_record_count` is
null, as in Java, whose incremental updates of a file would keep an outdated number.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema, value_of
from iceberg_pyspark.arrow.formats.file_writers import file_writers
from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import (
    IcebergError,
    InvalidMetadataError,
    InvalidRequestError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.formats.locations import location_provider, partition_statistics_file_name
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.planning.scan_tasks import ScanContext, ScanTask
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.manifests import EntryStatus, FileContent, FileFormat, ManifestFile
from iceberg_pyspark.spec.partitioning import PartitionKey, PartitionSpec, partition_key
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.statistics import PartitionStatisticsFile
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import TARGET_FILE_SIZE
from iceberg_pyspark.spec.transforms import untyped_text
from iceberg_pyspark.spec.types import IntegerType, LongType, NestedField, PrimitiveType, StringType
from iceberg_pyspark.storage.encryption.encrypted_io import encryption_of
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable
from iceberg_pyspark.table.commits.new_data import data_format
from iceberg_pyspark.table.metadata_tables.entry_values import (
    WrittenTypes,
    partition_of_values,
    partition_tuples,
    partition_values,
)
from iceberg_pyspark.table.progress import with_progress
from iceberg_pyspark.table.statistics.commit_statistics import (
    commit_statistics,
    remove_unfinished_file,
)

_log = get_logger(__name__)


_FORMATS: tuple[FileFormat, ...] = ("parquet", "orc", "avro")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedPartitionStatistics:
    """The location of the statistics file, and the number of partitions.

    `partition_statistics_file` is None with `dry_run`, and if the table has no snapshot or no
    files.
    """

    partition_statistics_file: str | None = None
    partition_count: int = 0


class PartitionStatisticsComputation:
    """One computation of the partition statistics of one snapshot."""

    def __init__(self, table: MaintainedTable, *, snapshot_id: int | None) -> None:
        self._table = table
        self._newest = table.newest()
        metadata = self._metadata = self._newest.metadata
        self._snapshot = metadata.snapshot_or_current(snapshot_id)

    def run(self, *, dry_run: bool = False) -> tuple[LoadedTable, ComputedPartitionStatistics]:
        """Compute the statistics; return the table as committed, and the result."""
        snapshot = self._snapshot
        if snapshot is None:
            return self._newest, ComputedPartitionStatistics()
        if encryption_of(self._table.io) is not None:
            raise UnsupportedFeatureError(
                f"table {self._table.name}: it is encrypted, and the format has no place for the "
                "key of a file of partition statistics; read its metadata table partitions"
            )
        if not self._metadata.unified_partition_type.fields:
            raise InvalidRequestError(
                f"table {self._table.name} is not partitioned, so it has no partition statistics; "
                "partition it first"
            )
        counts, is_there = self._counts(snapshot)
        result = ComputedPartitionStatistics(partition_count=len(counts))
        if is_there is not None and not dry_run:
            return self._newest, replace(result, partition_statistics_file=is_there)
        if dry_run or not len(counts):
            return self._newest, result
        file = self._write(snapshot, counts.to_arrow())
        new_table = commit_statistics(self._table, self._newest, file)
        return new_table, replace(result, partition_statistics_file=file.statistics_path)

    def _counts(self, snapshot: Snapshot) -> tuple[PartitionCounts, str | None]:
        """Return the counts, and the snapshot's existing statistics file if it is up to date."""
        file, since = _newest_file(self._metadata, snapshot)
        # Files are removed from leaves of a root manifest without rewriting the leaves, so the
        # manifests do not show all changes.
        if file is not None and all(s.root_manifest is None for s in since):
            try:
                counts = self._counts_since(file, since)
            except IcebergError as e:
                # Statistics are informational: a damaged file must not make this fail.
                _log.warning(
                    "table %s: the partition statistics %s cannot be reused (%s); all manifests "
                    "are read instead",
                    self._table.name,
                    file.statistics_path,
                    e,
                )
            else:
                return counts, None if since else file.statistics_path
        counts = PartitionCounts(self._metadata)
        manifests = read_snapshot_manifests(self._table.io, snapshot)
        progress = self._table.progress
        for manifest in with_progress(progress, "manifests read", manifests, len(manifests)):
            counts.add_manifest(self._table.io, manifest, only_changes=False)
        return counts, None

    def _counts_since(
        self, file: PartitionStatisticsFile, since: Sequence[Snapshot]
    ) -> PartitionCounts:
        counts = PartitionCounts(self._metadata)
        _add_rows(counts, self._table.io, self._table.name, self._metadata, file)
        later = with_progress(self._table.progress, "later snapshots read", since, len(since))
        for snapshot in later:
            for manifest in read_snapshot_manifests(self._table.io, snapshot):
                if manifest.added_snapshot_id is None:
                    raise InvalidMetadataError(
                        f"{manifest.manifest_path}: the manifest list does not say which snapshot "
                        "added it"
                    )
                if manifest.added_snapshot_id == snapshot.snapshot_id:
                    counts.add_manifest(self._table.io, manifest, only_changes=True)
        return counts

    def _write(self, snapshot: Snapshot, rows: pa.Table) -> PartitionStatisticsFile:
        metadata = self._metadata
        file_format = data_format(metadata.properties)
        provider = location_provider(metadata.location, metadata.properties)
        location = provider.new_metadata_location(
            partition_statistics_file_name(snapshot.snapshot_id, str(uuid.uuid4()), file_format)
        )
        # The table's properties are for its own columns, which this file does not have.
        writers = file_writers(
            file_format,
            _partition_statistics_schema(metadata),
            {},
            target_file_size_in_bytes=TARGET_FILE_SIZE.default,
        )
        try:
            file = writers.create(self._table.io, location)
            try:
                file.write(rows)
                size = file.close().file_size_in_bytes
            except BaseException:
                file.abort()
                raise
        except BaseException:
            remove_unfinished_file(self._table.io, location)
            raise
        return PartitionStatisticsFile(
            snapshot_id=snapshot.snapshot_id,
            statistics_path=location,
            file_size_in_bytes=size,
        )


def read_partition_statistics(
    io: FileIO, table: str, metadata: TableMetadata, snapshot_id: int | None
) -> pa.Table | None:
    """Return the partition statistics of a snapshot (default: the current one), or None.

    The table has a row per partition and the columns of the specification; columns that the file
    lacks are null.
    """
    snapshot = metadata.snapshot_or_current(snapshot_id)
    for file in metadata.partition_statistics:
        if snapshot is not None and file.snapshot_id == snapshot.snapshot_id:
            return _read(io, table, metadata, file)
    return None


def _newest_file(
    metadata: TableMetadata, snapshot: Snapshot
) -> tuple[PartitionStatisticsFile | None, list[Snapshot]]:
    """Return the file of the snapshot or nearest ancestor, and later snapshots, oldest first."""
    files = {f.snapshot_id: f for f in metadata.partition_statistics}
    since: list[Snapshot] = []
    current: Snapshot | None = snapshot
    while current is not None and len(since) <= len(metadata.snapshots):
        if current.snapshot_id in files:
            return files[current.snapshot_id], since[::-1]
        since.append(current)
        parent = current.parent_snapshot_id
        current = None if parent is None else metadata.snapshot_by_id.get(parent)
    return None, []


def _read(
    io: FileIO, table: str, metadata: TableMetadata, file: PartitionStatisticsFile
) -> pa.Table:
    schema = _partition_statistics_schema(metadata, for_reading=True)
    path = file.statistics_path
    formats = [f for f in _FORMATS if path.lower().endswith(f".{f}")]
    if not formats:
        raise InvalidMetadataError(
            f"table {table}: the partition statistics {path} have an unsupported file name "
            f"extension; supported are {', '.join(f'.{f}' for f in _FORMATS)}"
        )
    context = ScanContext(
        table=table,
        table_location=metadata.location,
        projection=schema,
        schemas=(schema,),
        specs={0: PartitionSpec(spec_id=0, fields=())},
    )
    task = ScanTask(
        file_path=path,
        file_format=formats[0],
        file_size_in_bytes=io.size(path),
        record_count=-1,
        start=0,
        length=io.size(path),
        spec_id=0,
        partition=(),
        data_sequence_number=0,
    )
    batches = list(read_task(context, task, io))
    if not batches:
        raise InvalidMetadataError(f"table {table}: the partition statistics {path} have no rows")
    return pa.Table.from_batches(batches)


def _add_rows(
    counts: PartitionCounts,
    io: FileIO,
    table: str,
    metadata: TableMetadata,
    file: PartitionStatisticsFile,
) -> None:
    type_ = metadata.unified_partition_type
    rows = _read(io, table, metadata, file)
    partitions = rows["partition"]
    for partition, row in zip(partitions, rows.drop(["partition"]).to_pylist(), strict=True):
        if not partition.is_valid or row["spec_id"] is None:
            raise InvalidMetadataError(f"{file.statistics_path}: a row has no partition")
        values = value_of(type_, partition)
        physical = [_physical(values[f.field_id]) for f in type_.fields]
        counts.add_row(row["spec_id"], physical, row)


def _physical(value: Any) -> Any:
    return value.bytes if isinstance(value, uuid.UUID) else value


_COUNTS: tuple[tuple[int, str, PrimitiveType], ...] = (
    (3, "data_record_count", LongType()),
    (4, "data_file_count", IntegerType()),
    (5, "total_data_file_size_in_bytes", LongType()),
    (6, "position_delete_record_count", LongType()),
    (7, "position_delete_file_count", IntegerType()),
    (8, "equality_delete_record_count", LongType()),
    (9, "equality_delete_file_count", IntegerType()),
    (13, "dv_count", IntegerType()),
)
_NAMES = tuple(name for _, name, _ in _COUNTS)
_DATA = (0, 1, 2)
_POSITION, _EQUALITY, _VECTORS = (3, 4), (5, 6), (3, 7)
"""The positions in the counts of the records and files of each content."""

_FIRST_OPTIONAL = 6
"""The first field id whose count is optional in version 2 (counts of deletes)."""

_ENTRY = ("status", "snapshot_id", "content", "file_format", "record_count", "file_size_in_bytes")


def _partition_statistics_schema(metadata: TableMetadata, *, for_reading: bool = False) -> Schema:
    """Return the columns of a partition statistics file, according to the format version.

    With `for_reading`, all counts are optional, since a file may be of an older version.
    """
    version = metadata.format_version
    counts = [
        NestedField(
            field_id=field_id,
            name=name,
            type=type_,
            required=not for_reading and (version >= 3 or field_id < _FIRST_OPTIONAL),
        )
        for field_id, name, type_ in _COUNTS
    ]
    *counts, vectors = counts
    return Schema(
        fields=(
            NestedField(
                field_id=1, name="partition", type=metadata.unified_partition_type, required=True
            ),
            NestedField(field_id=2, name="spec_id", type=IntegerType(), required=True),
            *counts,
            NestedField(field_id=10, name="total_record_count", type=LongType()),
            NestedField(field_id=11, name="last_updated_at", type=LongType()),
            NestedField(field_id=12, name="last_updated_snapshot_id", type=LongType()),
            *([vectors] if version >= 3 or for_reading else []),
        )
    )


@dataclass(slots=True, kw_only=True)
class _Partition:
    spec_id: int
    values: tuple[Any, ...]
    counts: list[int]
    updated_at_ms: int | None = None
    updated_by: int | None = None

    def add(self, places: Sequence[int], numbers: Sequence[int], sign: int) -> None:
        for place, number in zip(places, numbers, strict=True):
            self.counts[place] += sign * number

    def touch(self, snapshot_id: int | None, committed_at_ms: int | None) -> None:
        if committed_at_ms is None:
            return  # unknown for an expired snapshot
        if self.updated_at_ms is None or self.updated_at_ms < committed_at_ms:
            self.updated_at_ms, self.updated_by = committed_at_ms, snapshot_id


class PartitionCounts:
    """The counts so far, in memory that is bounded by the number of partitions."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        self._type = metadata.unified_partition_type
        self._written_types = WrittenTypes.of(metadata)
        self._partitions: dict[tuple[int, PartitionKey], _Partition] = {}
        self._commit_times_ms: Mapping[int, int] = {
            s.snapshot_id: s.timestamp_ms for s in metadata.snapshots
        }

    def __len__(self) -> int:
        return len(self._partitions)

    def add_manifest(self, io: FileIO, manifest: ManifestFile, *, only_changes: bool) -> None:
        """Count the files of a manifest.

        All live files count or, with `only_changes`, the files that the manifest's own snapshot
        added, minus those that it removed.
        """
        spec_id = manifest.partition_spec_id
        own = self._written_types.partition_type(
            spec_id, self._written_types.schemas_of(io, manifest)
        )
        for batch in read_entries(io, manifest, own, drop_deleted=False).to_batches():
            columns = (batch.column(c).to_pylist() for c in _ENTRY)
            rows = zip(
                partition_tuples(batch, own, self._type), zip(*columns, strict=True), strict=True
            )
            for values, entry in rows:
                self._add_entry(self._of(spec_id, values), entry, only_changes)

    def _add_entry(self, partition: _Partition, entry: Sequence[Any], only_changes: bool) -> None:
        status, snapshot_id, content, file_format, records, size = entry
        if only_changes and status == EntryStatus.EXISTING:
            return
        partition.touch(snapshot_id, self._commit_times_ms.get(snapshot_id))
        sign = 1
        if status == EntryStatus.DELETED:
            if not only_changes:
                return
            sign = -1
        match content:
            case FileContent.DATA:
                partition.add(_DATA, (records, 1, size), sign)
            case FileContent.POSITION_DELETES:
                places = _VECTORS if file_format.lower() == "puffin" else _POSITION
                partition.add(places, (records, 1), sign)
            case _:
                partition.add(_EQUALITY, (records, 1), sign)

    def _of(self, spec_id: int, values: Sequence[Any]) -> _Partition:
        # values of an unknown transform are text, also in existing statistics files
        values = tuple(
            untyped_text(v) if v is not None and isinstance(f.type, StringType) else v
            for f, v in zip(self._type.fields, values, strict=True)
        )
        key = (spec_id, partition_key(values))
        partition = self._partitions.get(key)
        if partition is None:
            partition = _Partition(spec_id=spec_id, values=values, counts=[0] * len(_COUNTS))
            self._partitions[key] = partition
        return partition

    def add_row(self, spec_id: int, values: Sequence[Any], row: Mapping[str, Any]) -> None:
        """Add a row of an older file: physical values of today's partition type, and counts."""
        partition = self._of(spec_id, values)
        partition.add(range(len(_NAMES)), [row.get(name) or 0 for name in _NAMES], 1)
        partition.touch(row["last_updated_snapshot_id"], row["last_updated_at"])

    def to_arrow(self) -> pa.Table:
        """Return the rows as they are written: sorted by partition, nulls first."""
        partitions = sorted(
            self._partitions.values(), key=lambda p: (list(_sort_key(p.values)), p.spec_id)
        )
        tuples = partition_of_values(self._type, [p.values for p in partitions])
        columns: dict[str, Any] = {
            "partition": partition_values(tuples, self._type),
            "spec_id": [p.spec_id for p in partitions],
            "total_record_count": [None] * len(partitions),
            "last_updated_at": [p.updated_at_ms for p in partitions],
            "last_updated_snapshot_id": [p.updated_by for p in partitions],
        }
        for i, name in enumerate(_NAMES):
            columns[name] = [p.counts[i] for p in partitions]
        schema = to_arrow_schema(_partition_statistics_schema(self._metadata))
        arrays = [
            columns[f.name] if f.name == "partition" else pa.array(columns[f.name], f.type)
            for f in schema
        ]
        return pa.Table.from_arrays(arrays, schema=schema)


def _sort_key(values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for value in values:
        if value is None:
            yield (0,)
        elif isinstance(value, float):
            is_nan = math.isnan(value)
            # -0.0 before 0.0, NaN last
            yield (1, is_nan, 0.0 if is_nan else value, math.copysign(1.0, value))
        else:
            yield (1, value)
