"""Finishes new table metadata: checks the whole, and sets its time and logs."""

from __future__ import annotations

from dataclasses import replace

from iceberg_pyspark.changes.compatibility import check_partition_source, check_sort_order
from iceberg_pyspark.changes.metadata_builder import NO_ID, UNSET_VERSION, MetadataBuilder
from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec.json_fields import MAX_INT32, MAX_INT64
from iceberg_pyspark.spec.properties import METADATA_PREVIOUS_VERSIONS_MAX
from iceberg_pyspark.spec.relative_paths import RELATIVE_PATHS_VERSION, older_path
from iceberg_pyspark.spec.snapshots import MetadataLogEntry, SnapshotLogEntry
from iceberg_pyspark.spec.table_metadata import TableMetadata


def finished_metadata(
    builder: MetadataBuilder, base: TableMetadata | None, previous_metadata_location: str | None
) -> TableMetadata:
    """Return the metadata after all updates; `base` is None if the updates create the table."""
    m = builder.metadata
    if base is None:
        _check_complete(m)
    elif base.table_uuid is None and m.table_uuid is None and m.format_version >= 2:
        raise InvalidRequestError("a table needs a UUID since format version 2: assign one")
    _check_defaults(m, base)
    _check_numbers(m)
    added_at_ms = [
        s.timestamp_ms for s in m.snapshots if s.snapshot_id in builder.added_snapshot_ids
    ]
    # The time never goes backwards: readers refuse metadata that is older than its own logs.
    updated_ms = max(
        [
            builder.now_ms if not added_at_ms else max(added_at_ms),
            base.last_updated_ms if base else 0,
            *(e.timestamp_ms for e in m.snapshot_log[-1:]),
        ]
    )
    return replace(
        m,
        last_updated_ms=updated_ms,
        snapshot_log=_without_intermediate(builder),
        metadata_log=_metadata_log(m, base, previous_metadata_location),
    )


def _check_complete(m: TableMetadata) -> None:
    missing = [
        name
        for name, absent in (
            ("format version", m.format_version == UNSET_VERSION),
            ("UUID", m.table_uuid is None),
            ("location", not m.location),
            ("current schema", m.current_schema_id == NO_ID),
            ("default partition spec", m.default_spec_id == NO_ID),
            ("default sort order", m.default_sort_order_id == NO_ID),
        )
        if absent
    ]
    if missing:
        raise InvalidRequestError(f"a new table needs a {', a '.join(missing)}")


def _check_numbers(m: TableMetadata) -> None:
    """Refuse a number above the highest possible one, which no reader could load.

    Only damaged metadata comes near these limits.
    """
    for name, number, highest in (
        ("last-sequence-number", m.last_sequence_number, MAX_INT64),
        ("next-row-id", m.next_row_id, MAX_INT64),
        ("last-column-id", m.last_column_id, MAX_INT32),
        ("last-partition-id", m.last_partition_id, MAX_INT32),
        ("schema-id", max((s.schema_id for s in m.schemas), default=0), MAX_INT32),
        ("spec-id", max((s.spec_id for s in m.partition_specs), default=0), MAX_INT32),
        ("order-id", max((o.order_id for o in m.sort_orders), default=0), MAX_INT32),
    ):
        if number > highest:
            raise InvalidMetadataError(
                f"table {m.location}: {name} would be {number}, and {highest} is the highest there "
                "is; the table's metadata is damaged"
            )


def _check_defaults(m: TableMetadata, base: TableMetadata | None) -> None:
    """Check that schema, spec and sort order fit together, if this commit changed one of them."""
    if base is not None and (
        m.current_schema_id == base.current_schema_id
        and m.default_spec_id == base.default_spec_id
        and m.default_sort_order_id == base.default_sort_order_id
        and m.format_version == base.format_version
    ):
        return
    for f in m.default_spec.fields:
        check_partition_source(f, m.current_schema)
    check_sort_order(m.default_sort_order, m.current_schema)


def _without_intermediate(builder: MetadataBuilder) -> tuple[SnapshotLogEntry, ...]:
    """Return the snapshot log without snapshots that were current only within this commit."""
    m = builder.metadata
    if len(builder.added_snapshot_ids) < 2:
        return m.snapshot_log
    return tuple(
        e
        for e in m.snapshot_log
        if e.snapshot_id not in builder.added_snapshot_ids or e.snapshot_id == m.current_snapshot_id
    )


def _metadata_log(
    m: TableMetadata, base: TableMetadata | None, previous_location: str | None
) -> tuple[MetadataLogEntry, ...]:
    if base is None or previous_location is None:
        return m.metadata_log
    if m.format_version >= RELATIVE_PATHS_VERSION:
        previous_location = older_path(previous_location, m.location)
    entry = MetadataLogEntry(metadata_file=previous_location, timestamp_ms=base.last_updated_ms)
    keep = max(1, METADATA_PREVIOUS_VERSIONS_MAX.of(m.properties))
    return (*m.metadata_log, entry)[-keep:]
