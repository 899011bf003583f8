"""Implements the metadata tables that need only table metadata.

These are `snapshots`, `history`, `refs` and `metadata_log_entries`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata, ancestors_of
from iceberg_pyspark.spec.types import (
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    NestedField,
    StringType,
    TimestamptzType,
)
from iceberg_pyspark.table.reading.snapshot_selection import snapshot_id_as_of

_STRINGS = MapType(
    key_id=7, key_type=StringType(), value_id=8, value_type=StringType(), value_required=True
)

SNAPSHOTS = Schema(
    fields=(
        NestedField(field_id=1, name="committed_at", type=TimestamptzType(), required=True),
        NestedField(field_id=2, name="snapshot_id", type=LongType(), required=True),
        NestedField(field_id=3, name="parent_id", type=LongType()),
        NestedField(field_id=4, name="operation", type=StringType()),
        NestedField(field_id=5, name="manifest_list", type=StringType()),
        NestedField(field_id=6, name="summary", type=_STRINGS),
    )
)

HISTORY = Schema(
    fields=(
        NestedField(field_id=1, name="made_current_at", type=TimestamptzType(), required=True),
        NestedField(field_id=2, name="snapshot_id", type=LongType(), required=True),
        NestedField(field_id=3, name="parent_id", type=LongType()),
        NestedField(field_id=4, name="is_current_ancestor", type=BooleanType(), required=True),
    )
)

REFS = Schema(
    fields=(
        NestedField(field_id=1, name="name", type=StringType(), required=True),
        NestedField(field_id=2, name="type", type=StringType(), required=True),
        NestedField(field_id=3, name="snapshot_id", type=LongType(), required=True),
        NestedField(field_id=4, name="max_reference_age_in_ms", type=LongType()),
        NestedField(field_id=5, name="min_snapshots_to_keep", type=IntegerType()),
        NestedField(field_id=6, name="max_snapshot_age_in_ms", type=LongType()),
    )
)

METADATA_LOG_ENTRIES = Schema(
    fields=(
        NestedField(field_id=1, name="timestamp", type=TimestamptzType(), required=True),
        NestedField(field_id=2, name="file", type=StringType(), required=True),
        NestedField(field_id=3, name="latest_snapshot_id", type=LongType()),
        NestedField(field_id=4, name="latest_schema_id", type=IntegerType()),
        NestedField(field_id=5, name="latest_sequence_number", type=LongType()),
    )
)


def snapshot_rows(metadata: TableMetadata) -> Iterator[dict[str, Any]]:
    """Yield one row per snapshot."""
    for s in metadata.snapshots:
        yield {
            "committed_at": s.timestamp_ms * 1000,
            "snapshot_id": s.snapshot_id,
            "parent_id": s.parent_snapshot_id,
            "operation": s.operation,
            "manifest_list": s.root_manifest or s.manifest_list,
            # the operation has a column of its own
            "summary": [(k, v) for k, v in s.summary.items() if k != "operation"]
            if s.summary
            else None,
        }


def history_rows(metadata: TableMetadata) -> Iterator[dict[str, Any]]:
    """Yield one row per time that a snapshot became current; expired snapshots have no parent."""
    current = metadata.current_snapshot
    ancestors = {s.snapshot_id for s in ancestors_of(metadata, current)}
    for entry in metadata.snapshot_log:
        snapshot = metadata.snapshot_by_id.get(entry.snapshot_id)
        yield {
            "made_current_at": entry.timestamp_ms * 1000,
            "snapshot_id": entry.snapshot_id,
            "parent_id": None if snapshot is None else snapshot.parent_snapshot_id,
            "is_current_ancestor": entry.snapshot_id in ancestors,
        }


def ref_rows(metadata: TableMetadata) -> Iterator[dict[str, Any]]:
    """Yield one row per branch and tag."""
    for name, ref in metadata.refs.items():
        yield {
            "name": name,
            "type": ref.type.upper(),
            "snapshot_id": ref.snapshot_id,
            "max_reference_age_in_ms": ref.max_ref_age_ms,
            "min_snapshots_to_keep": ref.min_snapshots_to_keep,
            "max_snapshot_age_in_ms": ref.max_snapshot_age_ms,
        }


def metadata_log_rows(loaded_table: LoadedTable) -> Iterator[dict[str, Any]]:
    """Yield one row per known metadata file, oldest first, with the snapshot current then."""
    metadata = loaded_table.metadata
    files = [(e.timestamp_ms, e.metadata_file) for e in metadata.metadata_log]
    files.append((metadata.last_updated_ms, loaded_table.metadata_location))
    for timestamp_ms, file in files:
        snapshot_id = snapshot_id_as_of(metadata, timestamp_ms)
        snapshot = None if snapshot_id is None else metadata.snapshot_by_id.get(snapshot_id)
        yield {
            "timestamp": timestamp_ms * 1000,
            "file": file,
            "latest_snapshot_id": snapshot_id,
            "latest_schema_id": None if snapshot is None else snapshot.schema_id,
            "latest_sequence_number": None if snapshot is None else snapshot.sequence_number,
        }
