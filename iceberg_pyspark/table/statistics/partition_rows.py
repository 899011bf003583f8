"""Builds the rows of a partition statistics file: counts per partition, summed and sorted.

Specification, "Partition Statistics File". `total_record_count` is null, as in Java, whose
incremental updates of a file would keep an outdated number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.spec.manifests import EntryStatus, FileContent, ManifestFile
from iceberg_pyspark.spec.partitioning import (
    PartitionKey,
    partition_key,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import untyped_text
from iceberg_pyspark.spec.types import (
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
)
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.metadata_tables.entry_values import (
    WrittenTypes,
    partition_of_values,
    partition_tuples,
    partition_values,
)

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


def partition_statistics_schema(metadata: TableMetadata, *, for_reading: bool = False) -> Schema:
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
        schema = to_arrow_schema(partition_statistics_schema(self._metadata))
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
