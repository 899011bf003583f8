"""Table and partition statistics files listed in table metadata. Specification, "Table Statistics"
and "Partition Statistics".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from iceberg_pyspark.errors import InvalidMetadataError


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobMetadata:
    """A statistics blob as table metadata repeats it from the Puffin footer."""

    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsFile:
    """A Puffin file of statistics for one snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    blob_metadata: tuple[BlobMetadata, ...] = ()
    key_metadata: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatisticsFile:
    """A file of per-partition statistics for one snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int


def statistics_to_json(s: StatisticsFile) -> dict[str, Any]:
    """A statistics file as metadata JSON."""
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


def statistics_from_json(data: Any, path: str) -> StatisticsFile:
    """Parse a statistics file; errors name the JSON path."""
    try:
        return StatisticsFile(
            snapshot_id=data["snapshot-id"],
            statistics_path=data["statistics-path"],
            file_size_in_bytes=data["file-size-in-bytes"],
            file_footer_size_in_bytes=data["file-footer-size-in-bytes"],
            blob_metadata=tuple(
                BlobMetadata(
                    type=b["type"],
                    snapshot_id=b["snapshot-id"],
                    sequence_number=b["sequence-number"],
                    fields=tuple(b["fields"]),
                    properties=b.get("properties") or {},
                )
                for b in data.get("blob-metadata") or ()
            ),
            key_metadata=data.get("key-metadata"),
        )
    except (KeyError, TypeError, AttributeError) as e:
        raise InvalidMetadataError(f"{path}: {e} is required") from e


def partition_statistics_to_json(s: PartitionStatisticsFile) -> dict[str, Any]:
    """A partition statistics file as metadata JSON."""
    return {
        "snapshot-id": s.snapshot_id,
        "statistics-path": s.statistics_path,
        "file-size-in-bytes": s.file_size_in_bytes,
    }


def partition_statistics_from_json(data: Any, path: str) -> PartitionStatisticsFile:
    """Parse a partition statistics file; errors name the JSON path."""
    try:
        return PartitionStatisticsFile(
            snapshot_id=data["snapshot-id"],
            statistics_path=data["statistics-path"],
            file_size_in_bytes=data["file-size-in-bytes"],
        )
    except (KeyError, TypeError) as e:
        raise InvalidMetadataError(f"{path}: {e} is required") from e
