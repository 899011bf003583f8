"""Manifests as objects: their headers and entries, for commits and metadata tables.

Specification, "Manifests". Scans read the entries as columns, see `formats/manifest_columns.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_files.open_manifest import EncodedManifest, open_manifest
from iceberg_pyspark.spec.entry_columns import METRIC_MAPS
from iceberg_pyspark.spec.json_fields import JsonObject, parse_json
from iceberg_pyspark.spec.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from iceberg_pyspark.spec.partitioning import PartitionSpec, fields_from_json
from iceberg_pyspark.spec.schema import Schema, schema_from_json
from iceberg_pyspark.spec.types import StructType, Type
from iceberg_pyspark.storage.encryption.encrypted_io import decrypted
from iceberg_pyspark.storage.files.file_io import FileIO

_ENTRIES_AT_ONCE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestHeader:
    """The key-value metadata of a manifest; a rewritten manifest keeps schema and spec."""

    schema: Schema
    spec: PartitionSpec
    format_version: int
    content: ManifestContent


def read_manifest_header(
    file_io: FileIO, location: str, key_metadata: bytes | None = None
) -> ManifestHeader:
    """Read the key-value metadata of a manifest; `key_metadata` is that of an encrypted one."""
    return _header_of(open_manifest(decrypted(file_io, key_metadata), location))


def read_partition_types(
    file_io: FileIO, location: str, key_metadata: bytes | None = None
) -> dict[int, Type]:
    """Return the types that a manifest declares for its partition fields, by field id.

    Only these types are known for values of an unknown transform or of a removed source column.
    """
    return open_manifest(decrypted(file_io, key_metadata), location).written_types()


def _header_of(manifest_file: EncodedManifest) -> ManifestHeader:
    try:
        schema_json = parse_json(manifest_file.metadata["schema"], "schema")
        fields_json = parse_json(manifest_file.metadata["partition-spec"], "partition-spec")
        schema_id = manifest_file.metadata.get("schema-id")
        schema = schema_from_json(JsonObject(schema_json, "schema"))
        content = manifest_file.metadata.get("content", "data")
        return ManifestHeader(
            schema=schema if schema_id is None else replace(schema, schema_id=int(schema_id)),
            spec=PartitionSpec(
                spec_id=int(manifest_file.metadata.get("partition-spec-id", 0)),
                fields=fields_from_json(
                    JsonObject({"partition-spec": fields_json}), "partition-spec"
                ),
            ),
            format_version=int(manifest_file.metadata.get("format-version", 1)),
            content={"data": ManifestContent.DATA, "deletes": ManifestContent.DELETES}[content],
        )
    except (KeyError, ValueError, InvalidMetadataError) as e:
        raise InvalidMetadataError(
            f"{manifest_file.location}: the manifest's metadata is damaged: {type(e).__name__}: {e}"
        ) from e


def read_manifest_entries(
    file_io: FileIO,
    manifest: ManifestFile,
    partition_type: StructType,
    *,
    drop_deleted: bool = False,
) -> Iterator[ManifestEntry]:
    """Yield the entries of a manifest in order, with all metrics and inherited values.

    `partition_type` belongs to the manifest's own spec.
    """
    yield from entries_of(
        read_entries(file_io, manifest, partition_type, drop_deleted=drop_deleted, metrics="all")
    )


def entries_of(table: pa.Table) -> Iterator[ManifestEntry]:
    """Yield the entries of an entry table with all metrics or none, converted in batches."""
    for batch in table.to_batches(max_chunksize=_ENTRIES_AT_ONCE):
        columns = {name: batch.column(name) for name in batch.schema.names}
        parts = [part.to_pylist() for part in columns.pop("partition").flatten()]
        partitions = zip(*parts, strict=True) if parts else [()] * batch.num_rows
        rows = zip(*(c.to_pylist() for c in columns.values()), strict=True)
        for row, partition in zip(rows, partitions, strict=True):
            yield _manifest_entry(dict(zip(columns, row, strict=True)), partition)


def _manifest_entry(row: dict[str, Any], partition: tuple[Any, ...]) -> ManifestEntry:
    for metric in METRIC_MAPS:
        if row.get(metric) is not None:
            row[metric] = dict(row[metric])
    for name in ("split_offsets", "equality_ids"):
        if row[name] is not None:
            row[name] = tuple(row[name])
    return ManifestEntry(
        status=EntryStatus(row.pop("status")),
        snapshot_id=row.pop("snapshot_id"),
        sequence_number=row.pop("sequence_number"),
        file_sequence_number=row.pop("file_sequence_number"),
        data_file=DataFile(content=FileContent(row.pop("content")), partition=partition, **row),
    )
