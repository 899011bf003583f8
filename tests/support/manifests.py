"""Manifests in memory: handmade entries, written and listed as a commit would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from iceberg_pyspark.formats.manifest_lists import write_manifest_list
from iceberg_pyspark.formats.manifest_writer import write_manifest
from iceberg_pyspark.spec.entry_columns import FILTER_METRICS, metric_column
from iceberg_pyspark.spec.manifests import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec, partition_type
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import IdentityTransform
from iceberg_pyspark.spec.types import NestedField, PrimitiveType
from iceberg_pyspark.storage.files.file_io import FileIO

SNAPSHOT_ID = 77
SEQUENCE_NUMBER = 5
NO_COLUMNS = Schema(fields=())
UNPARTITIONED = PartitionSpec(spec_id=0)


def identity_table(*types: PrimitiveType, spec_id: int = 0) -> tuple[Schema, PartitionSpec]:
    """Return a schema with columns c1, c2, ... and an identity spec over all of them."""
    fields = tuple(
        NestedField(field_id=i, name=f"c{i}", type=type_) for i, type_ in enumerate(types, 1)
    )
    spec = PartitionSpec(
        spec_id=spec_id,
        fields=tuple(
            PartitionField(
                source_ids=(f.field_id,),
                field_id=999 + f.field_id,
                name=f.name,
                transform=IdentityTransform(),
            )
            for f in fields
        ),
    )
    return Schema(fields=fields), spec


def a_file(path: str = "data/a.parquet", **values: Any) -> DataFile:
    """Return a data file; every field has a default."""
    return DataFile(**{"file_path": path, "record_count": 10, "file_size_in_bytes": 100, **values})


def added(file: DataFile, **values: Any) -> ManifestEntry:
    return ManifestEntry(status=EntryStatus.ADDED, data_file=file, **values)


def existing(file: DataFile, sequence_number: int = 1, **values: Any) -> ManifestEntry:
    """Return an EXISTING entry of an older snapshot."""
    numbers = {
        "snapshot_id": 11,
        "sequence_number": sequence_number,
        "file_sequence_number": sequence_number,
    }
    return ManifestEntry(status=EntryStatus.EXISTING, data_file=file, **{**numbers, **values})


def deleted(file: DataFile, sequence_number: int = 1, **values: Any) -> ManifestEntry:
    numbers = {
        "snapshot_id": SNAPSHOT_ID,
        "sequence_number": sequence_number,
        "file_sequence_number": sequence_number,
    }
    return ManifestEntry(status=EntryStatus.DELETED, data_file=file, **{**numbers, **values})


def listed(
    io: FileIO,
    entries: Sequence[ManifestEntry],
    *,
    schema: Schema = NO_COLUMNS,
    spec: PartitionSpec = UNPARTITIONED,
    format_version: int = 2,
    content: ManifestContent = ManifestContent.DATA,
    first_row_id: int | None = 1000,
    name: str = "m0",
    codec: str = "gzip",
) -> ManifestFile:
    """Write and list a manifest; return it as a reader of the manifest list sees it."""
    written = write_manifest(
        io,
        f"metadata/{name}.avro",
        entries,
        spec=spec,
        schema=schema,
        partition_type=partition_type(spec, [schema]),
        format_version=format_version,
        content=content,
        snapshot_id=SNAPSHOT_ID,
        codec=codec,
    )
    manifest_list = write_manifest_list(
        io,
        f"metadata/snap-{name}.avro",
        [written],
        format_version=format_version,
        snapshot_id=SNAPSHOT_ID,
        parent_snapshot_id=None,
        sequence_number=SEQUENCE_NUMBER,
        first_row_id=first_row_id,
    )
    return manifest_list.manifests[0]


def metrics_table(files: Sequence[DataFile], field_id: int) -> pa.Table:
    """Return the columns of an entry table that a filter on one field needs."""
    columns: dict[str, Any] = {
        "record_count": pa.array([f.record_count for f in files], pa.int64())
    }
    for metric in FILTER_METRICS:
        type_ = pa.binary() if metric.endswith("bounds") else pa.int64()
        column = [(getattr(f, metric) or {}).get(field_id) for f in files]
        columns[metric_column(metric, field_id)] = pa.array(column, type_)
    return pa.table(columns)
