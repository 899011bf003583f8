"""Writes a manifest: the entries of one partition spec and one kind of content.

Specification, "Manifests". The manifest list (`formats/manifest_lists.py`) assigns the values that
entries inherit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.avro.avro import parsed_schema, write_avro
from iceberg_pyspark.spec.avro_schemas import BLOCK_SIZE_IN_BYTES, manifest_entry_schema
from iceberg_pyspark.spec.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    summarise_partitions,
    with_counts,
)
from iceberg_pyspark.spec.partitioning import PartitionSpec, partition_field_to_json
from iceberg_pyspark.spec.schema import Schema, schema_to_json
from iceberg_pyspark.spec.types import StructType, UnknownType
from iceberg_pyspark.storage.files.file_io import FileIO


def write_manifest(
    file_io: FileIO,
    location: str,
    entries: Iterable[ManifestEntry],
    *,
    spec: PartitionSpec,
    schema: Schema,
    partition_type: StructType,
    format_version: int,
    content: ManifestContent,
    snapshot_id: int,
    codec: str = "gzip",
) -> ManifestFile:
    """Write a manifest of one partition spec; the manifest list assigns its sequence number.

    Added entries inherit their numbers, except an explicit older data sequence number. Existing and
    deleted entries must have the numbers with which they were read.
    """
    writing = _ManifestInWriting(location, format_version, content, snapshot_id, spec.spec_id)
    untyped_positions = [
        i for i, f in enumerate(partition_type.fields) if isinstance(f.type, UnknownType)
    ]
    avro_schema = _entry_schema(partition_type, format_version)
    partition_names = _partition_names(avro_schema)
    length, key_metadata = write_avro(
        file_io,
        location,
        avro_schema,
        (
            writing.record(e, partition_names)
            for e in _check_types(entries, spec, untyped_positions, location)
        ),
        metadata={
            "schema": json.dumps(schema_to_json(schema)),
            "schema-id": str(schema.schema_id),
            "partition-spec": json.dumps([partition_field_to_json(f) for f in spec.fields]),
            "partition-spec-id": str(spec.spec_id),
            "format-version": str(format_version),
            "content": content.name.lower(),
        },
        codec=codec,
    )
    manifest = ManifestFile(
        manifest_path=location,
        manifest_length=length,
        key_metadata=key_metadata,
        partition_spec_id=spec.spec_id,
        content=content,
        sequence_number=UNASSIGNED_SEQUENCE_NUMBER if format_version >= 2 else 0,
        min_sequence_number=(
            writing.min_sequence_number
            if writing.min_sequence_number is not None
            else UNASSIGNED_SEQUENCE_NUMBER
        )
        if format_version >= 2
        else 0,
        added_snapshot_id=snapshot_id,
        partitions=summarise_partitions(partition_type, writing.partitions),
    )
    return with_counts(manifest, writing.files, writing.rows)


@lru_cache(maxsize=64)
def _entry_schema(partition_type: StructType, format_version: int) -> Mapping[str, Any]:
    return parsed_schema(manifest_entry_schema(partition_type, format_version))


def _check_types(
    entries: Iterable[ManifestEntry],
    spec: PartitionSpec,
    untyped_positions: Sequence[int],
    location: str,
) -> Iterator[ManifestEntry]:
    """Yield the entries; raise `InvalidRequestError` for a partition value of unknown type."""
    for e in entries:
        for i in untyped_positions:
            if e.data_file.partition[i] is not None:
                raise InvalidRequestError(
                    f"{location}: {e.data_file.file_path} has a value of partition field "
                    f"'{spec.fields[i].name}', of unknown type: its transform is not known, or "
                    "its source column was dropped"
                )
        yield e


def _partition_names(avro_schema: Mapping[str, Any]) -> tuple[str, ...]:
    data_file = next(f for f in avro_schema["fields"] if f["field-id"] == 2)["type"]
    partition = next(f for f in data_file["fields"] if f["field-id"] == 102)["type"]
    return tuple(f["name"] for f in partition["fields"])


class _ManifestInWriting:
    """Converts entries to Avro records and counts the entries."""

    def __init__(
        self,
        location: str,
        format_version: int,
        content: ManifestContent,
        snapshot_id: int,
        spec_id: int,
    ) -> None:
        self._location = location
        self._format_version = format_version
        self._content = content
        self._snapshot_id = snapshot_id
        self._spec_id = spec_id
        self.files = dict.fromkeys(EntryStatus, 0)
        self.rows = dict.fromkeys(EntryStatus, 0)
        self.partitions: list[tuple[Any, ...]] = []
        self.min_sequence_number: int | None = None

    def record(self, entry: ManifestEntry, partition_names: tuple[str, ...]) -> dict[str, Any]:
        file = entry.data_file
        self._check(entry)
        self.files[entry.status] += 1
        self.rows[entry.status] += file.record_count
        self.partitions.append(file.partition)
        sequence_number = entry.sequence_number
        if entry.is_live and sequence_number is not None:
            least = self.min_sequence_number
            self.min_sequence_number = (
                sequence_number if least is None else min(least, sequence_number)
            )
        is_added = entry.status is EntryStatus.ADDED
        snapshot_id = entry.snapshot_id
        return {
            "status": int(entry.status),
            "snapshot_id": self._snapshot_id if snapshot_id is None else snapshot_id,
            "sequence_number": sequence_number,
            "file_sequence_number": None if is_added else entry.file_sequence_number,
            "data_file": _data_file_record(file, partition_names),
        }

    def _check(self, entry: ManifestEntry) -> None:
        file = entry.data_file
        content = (
            ManifestContent.DATA if file.content is FileContent.DATA else ManifestContent.DELETES
        )
        if content is not self._content:
            raise InvalidRequestError(
                f"{self._location}: {file.file_path} does not belong in a manifest of "
                f"{self._content.name.lower()}"
            )
        if file.spec_id != self._spec_id:
            raise InvalidRequestError(
                f"{self._location}: {file.file_path} is of partition spec {file.spec_id}, "
                f"the manifest of spec {self._spec_id}"
            )
        if self._format_version == 1 and content is ManifestContent.DELETES:
            raise InvalidRequestError(f"{self._location}: a v1 table cannot hold delete files")
        if entry.status is EntryStatus.ADDED:
            return
        numbers = (entry.sequence_number, entry.file_sequence_number)
        lacks_snapshot_id = entry.snapshot_id is None and entry.status is EntryStatus.EXISTING
        if lacks_snapshot_id or (self._format_version >= 2 and None in numbers):
            raise InvalidRequestError(
                f"{self._location}: {file.file_path} is {entry.status.name} and must bring its "
                "snapshot id and sequence numbers"
            )


def _data_file_record(file: DataFile, partition_names: tuple[str, ...]) -> dict[str, Any]:
    return {
        "content": int(file.content),
        "file_path": file.file_path,
        # Java writes upper case, and some readers compare the text
        "file_format": file.file_format.upper(),
        "partition": dict(zip(partition_names, file.partition, strict=True)),
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_in_bytes,
        "block_size_in_bytes": BLOCK_SIZE_IN_BYTES,
        "column_sizes": _map_record(file.column_sizes),
        "value_counts": _map_record(file.value_counts),
        "null_value_counts": _map_record(file.null_value_counts),
        "nan_value_counts": _map_record(file.nan_value_counts),
        "lower_bounds": _map_record(file.lower_bounds),
        "upper_bounds": _map_record(file.upper_bounds),
        "key_metadata": file.key_metadata,
        "split_offsets": None if file.split_offsets is None else list(file.split_offsets),
        "equality_ids": None if file.equality_ids is None else list(file.equality_ids),
        "sort_order_id": file.sort_order_id,
        "first_row_id": file.first_row_id if file.content is FileContent.DATA else None,
        "referenced_data_file": file.referenced_data_file,
        "content_offset": file.content_offset,
        "content_size_in_bytes": file.content_size_in_bytes,
    }


def _map_record(metrics: Mapping[int, Any] | None) -> list[dict[str, Any]] | None:
    if metrics is None:
        return None
    return [{"key": k, "value": v} for k, v in metrics.items()]
