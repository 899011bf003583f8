"""Table and partition statistics files that table metadata lists.

Specification, "Table Statistics" and "Partition Statistics".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from iceberg_pyspark.spec.json_fields import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobMetadata:
    """The metadata of a statistics blob, which table metadata repeats from the Puffin footer."""

    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsFile:
    """A Puffin file with statistics of one snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    blob_metadata: tuple[BlobMetadata, ...] = ()
    key_metadata: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatisticsFile:
    """A file with the partition statistics of one snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int


def statistics_to_json(s: StatisticsFile) -> dict[str, Any]:
    """Return a statistics file as metadata JSON."""
    out: dict[str, Any] = {
        "snapshot-id": s.snapshot_id,
        "statistics-path": s.statistics_path,
        "file-size-in-bytes": s.file_size_in_bytes,
        "file-footer-size-in-bytes": s.file_footer_size_in_bytes,
        "blob-metadata": [
            {
                "type": b.type,
                "snapshot-id": b.snapshot_id,
                "sequence-number": b.sequence_number,
                "fields": list(b.fields),
                **({"properties": dict(b.properties)} if b.properties else {}),
            }
            for b in s.blob_metadata
        ],
    }
    if s.key_metadata is not None:
        out["key-metadata"] = s.key_metadata
    return out


def statistics_from_json(data: JsonObject) -> StatisticsFile:
    """Parse a statistics file; errors name the JSON path."""
    return StatisticsFile(
        snapshot_id=data.int64("snapshot-id"),
        statistics_path=data.string("statistics-path"),
        file_size_in_bytes=data.int64("file-size-in-bytes", 0),
        file_footer_size_in_bytes=data.int64("file-footer-size-in-bytes", 0),
        blob_metadata=tuple(map(_blob_from_json, data.objects("blob-metadata"))),
        key_metadata=data.optional_string("key-metadata"),
    )


def _blob_from_json(data: JsonObject) -> BlobMetadata:
    return BlobMetadata(
        type=data.string("type"),
        snapshot_id=data.int64("snapshot-id"),
        sequence_number=data.int64("sequence-number"),
        fields=data.int32s("fields"),
        properties=data.string_map("properties"),
    )


def partition_statistics_to_json(s: PartitionStatisticsFile) -> dict[str, Any]:
    """Return a partition statistics file as metadata JSON."""
    return {
        "snapshot-id": s.snapshot_id,
        "statistics-path": s.statistics_path,
        "file-size-in-bytes": s.file_size_in_bytes,
    }


def partition_statistics_from_json(data: JsonObject) -> PartitionStatisticsFile:
    """Parse a partition statistics file; errors name the JSON path."""
    return PartitionStatisticsFile(
        snapshot_id=data.int64("snapshot-id"),
        statistics_path=data.string("statistics-path"),
        file_size_in_bytes=data.int64("file-size-in-bytes", 0),
    )
