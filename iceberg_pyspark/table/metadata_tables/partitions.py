"""Implements the metadata table `partitions`: rows and files per partition of one snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.spec.manifests import FileContent, ManifestFile
from iceberg_pyspark.spec.partitioning import PartitionKey, partition_key
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import (
    IntegerType,
    LongType,
    NestedField,
    StructType,
    TimestamptzType,
    Type,
)
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.metadata_tables.entry_values import (
    WrittenTypes,
    partition_of_values,
    partition_tuples,
    partition_values,
)
from iceberg_pyspark.table.metadata_tables.rows import KnownRows

_SUMMED_COLUMNS = (
    "spec_id",
    "snapshot_id",
    "content",
    "record_count",
    "file_size_in_bytes",
)


def partitions_schema(metadata: TableMetadata) -> Schema:
    """Return the columns of `partitions`; unpartitioned tables lack `partition` and `spec_id`."""

    def column(field_id: int, name: str, type_: Type, doc: str) -> NestedField:
        return NestedField(field_id=field_id, name=name, type=type_, required=True, doc=doc)

    where = (
        NestedField(
            field_id=1, name="partition", type=metadata.unified_partition_type, required=True
        ),
        NestedField(field_id=4, name="spec_id", type=IntegerType(), required=True),
    )
    updated_at = column(
        9,
        "last_updated_at",
        TimestamptzType(),
        "Commit time of snapshot that last updated this partition",
    )
    updated_by = column(
        10,
        "last_updated_snapshot_id",
        LongType(),
        "Id of snapshot that last updated this partition",
    )
    return Schema(
        fields=(
            *(where if metadata.unified_partition_type.fields else ()),
            column(2, "record_count", LongType(), "Count of records in data files"),
            column(3, "file_count", IntegerType(), "Count of data files"),
            column(
                11, "total_data_file_size_in_bytes", LongType(), "Total size in bytes of data files"
            ),
            column(
                5,
                "position_delete_record_count",
                LongType(),
                "Count of records in position delete files",
            ),
            column(
                6, "position_delete_file_count", IntegerType(), "Count of position delete files"
            ),
            column(
                7,
                "equality_delete_record_count",
                LongType(),
                "Count of records in equality delete files",
            ),
            column(
                8, "equality_delete_file_count", IntegerType(), "Count of equality delete files"
            ),
            replace(updated_at, required=False),
            replace(updated_by, required=False),
        )
    )


@dataclass(slots=True, kw_only=True)
class _Partition:
    values: tuple[Any, ...]
    spec_id: int
    records: dict[int, int] = field(default_factory=lambda: dict.fromkeys(FileContent, 0))
    files: dict[int, int] = field(default_factory=lambda: dict.fromkeys(FileContent, 0))
    data_bytes: int = 0
    updated_at_ms: int | None = None
    updated_by: int | None = None


_Partitions: TypeAlias = dict[tuple[int, PartitionKey], _Partition]


@dataclass(frozen=True, kw_only=True)
class PartitionRows:
    """A reader of a snapshot; its memory is bounded by the number of partitions."""

    schema: Schema
    written_types: WrittenTypes
    committed_at_ms: Mapping[int, int]
    """The commit time of each known snapshot, in milliseconds since 1970."""

    def read(self, io: FileIO, task: Snapshot, projection: Schema) -> Iterator[pa.RecordBatch]:
        """Yield the partitions of one snapshot, in the order in which they first appear."""
        partitions: _Partitions = {}
        for manifest in read_snapshot_manifests(io, task):
            self._add(io, manifest, partitions)
        if partitions:
            table = self._table(list(partitions.values()))
            yield from KnownRows(schema=self.schema).read(io, table, projection)

    @property
    def _partition_type(self) -> StructType:
        partition = self.schema.as_struct.field_named("partition")
        if partition is None:
            return StructType(())
        assert isinstance(partition.type, StructType), "partition is a struct"
        return partition.type

    def _add(self, io: FileIO, manifest: ManifestFile, partitions: _Partitions) -> None:
        schemas = self.written_types.schemas_of(io, manifest)
        own = self.written_types.partition_type(manifest.partition_spec_id, schemas)
        # like Java, equal values under specs of different numbers of fields are two partitions
        shown_ids = {f.field_id for f in self._partition_type.fields}
        fields = sum(f.field_id in shown_ids for f in own.fields)
        entries = read_entries(io, manifest, own)
        for batch in entries.to_batches():
            tuples = partition_tuples(batch, own, self._partition_type)
            columns = zip(*(batch.column(c).to_pylist() for c in _SUMMED_COLUMNS), strict=True)
            for values, counts in zip(tuples, columns, strict=True):
                key = (fields, partition_key(values))
                partition = partitions.get(key)
                if partition is None:
                    partition = partitions[key] = _Partition(values=values, spec_id=0)
                self._count(partition, *counts)

    def _count(
        self,
        partition: _Partition,
        spec_id: int,
        snapshot_id: int,
        content: int,
        record_count: int,
        size: int,
    ) -> None:
        commit_time_ms = self.committed_at_ms.get(snapshot_id)
        latest = partition.updated_at_ms
        if commit_time_ms is not None and (latest is None or commit_time_ms > latest):
            partition.updated_at_ms, partition.updated_by = commit_time_ms, snapshot_id
            partition.spec_id = spec_id
        partition.records[content] += record_count
        partition.files[content] += 1
        if content == FileContent.DATA:
            partition.data_bytes += size

    def _table(self, partitions: Sequence[_Partition]) -> pa.Table:
        columns = {
            "spec_id": [p.spec_id for p in partitions],
            "record_count": [p.records[0] for p in partitions],
            "file_count": [p.files[0] for p in partitions],
            "total_data_file_size_in_bytes": [p.data_bytes for p in partitions],
            "position_delete_record_count": [p.records[1] for p in partitions],
            "position_delete_file_count": [p.files[1] for p in partitions],
            "equality_delete_record_count": [p.records[2] for p in partitions],
            "equality_delete_file_count": [p.files[2] for p in partitions],
            "last_updated_at": [
                None if p.updated_at_ms is None else p.updated_at_ms * 1000 for p in partitions
            ],
            "last_updated_snapshot_id": [p.updated_by for p in partitions],
        }
        schema = to_arrow_schema(self.schema)
        arrays = [
            self._partitions(partitions)
            if f.name == "partition"
            else pa.array(columns[f.name], f.type)
            for f in schema
        ]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _partitions(self, partitions: Sequence[_Partition]) -> pa.Array:
        tuples = partition_of_values(self._partition_type, [p.values for p in partitions])
        return partition_values(tuples, self._partition_type)
