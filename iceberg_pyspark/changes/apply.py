"""Applies updates to table metadata.

Specification, "Table Metadata" and its parts: `apply_schemas.py`, `apply_snapshots.py`. Each update
sees the result of the earlier ones. `requirements.py` checks whether the updates may be applied;
`schema_changes.py`, `snapshot_changes.py` and others create them. Catalogs that write metadata call
`apply_updates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iceberg_pyspark.changes import apply_schemas, apply_snapshots
from iceberg_pyspark.changes import updates as u
from iceberg_pyspark.changes.absolute_paths import set_location, with_schemes
from iceberg_pyspark.changes.compatibility import check_may_change
from iceberg_pyspark.changes.finished_metadata import finished_metadata
from iceberg_pyspark.changes.metadata_builder import MetadataBuilder, empty_metadata
from iceberg_pyspark.errors import CommitConflictError, InvalidRequestError
from iceberg_pyspark.spec.metadata_columns import ROW_LINEAGE_VERSION
from iceberg_pyspark.spec.properties import RESERVED_PROPERTIES, ROOT_MANIFESTS
from iceberg_pyspark.spec.relative_paths import RELATIVE_PATHS_VERSION
from iceberg_pyspark.spec.table_metadata import WRITABLE_FORMAT_VERSIONS, TableMetadata


def apply_updates(
    metadata: TableMetadata | None,
    updates: Sequence[u.TableUpdate],
    *,
    now_ms: int,
    previous_metadata_location: str | None,
) -> TableMetadata:
    """Return the metadata after the updates, or `metadata` itself when they change nothing.

    If `metadata` is None, the updates create a new table. `previous_metadata_location` is the file
    that `metadata` was read from; it becomes an entry of the metadata log. Raises
    `InvalidRequestError` for an update that can never be applied, and `CommitConflictError` for a
    snapshot that another commit has overtaken.
    """
    if metadata is not None:
        check_may_change(metadata)
    base = metadata if metadata is not None else empty_metadata(now_ms)
    builder = MetadataBuilder(metadata=base, now_ms=now_ms)
    for update in updates:
        _apply(builder, update)
    if builder.metadata is base and metadata is not None:
        return metadata
    return finished_metadata(builder, metadata, previous_metadata_location)


def _apply(builder: MetadataBuilder, update: u.TableUpdate) -> None:
    match update:
        case u.AssignUUID(uuid=uuid):
            _assign_uuid(builder, uuid)
        case u.UpgradeFormatVersion(format_version=version):
            _upgrade(builder, version)
        case u.AddSchema():
            apply_schemas.add_schema(builder, update)
        case u.SetCurrentSchema(schema_id=schema_id):
            apply_schemas.set_current_schema(builder, schema_id)
        case u.AddPartitionSpec(spec=spec):
            apply_schemas.add_spec(builder, spec)
        case u.SetDefaultSpec(spec_id=spec_id):
            apply_schemas.set_default_spec(builder, spec_id)
        case u.AddSortOrder(sort_order=order):
            apply_schemas.add_sort_order(builder, order)
        case u.SetDefaultSortOrder(order_id=order_id):
            apply_schemas.set_default_sort_order(builder, order_id)
        case u.RemoveSchemas(schema_ids=ids):
            apply_schemas.remove_schemas(builder, ids)
        case u.RemovePartitionSpecs(spec_ids=ids):
            apply_schemas.remove_specs(builder, ids)
        case u.AddSnapshot(snapshot=snapshot):
            apply_snapshots.add_snapshot(builder, snapshot)
        case u.SetSnapshotRef():
            apply_snapshots.set_snapshot_ref(builder, update)
        case u.RemoveSnapshotRef(name=name):
            apply_snapshots.remove_snapshot_ref(builder, name)
        case u.RemoveSnapshots(snapshot_ids=ids):
            apply_snapshots.remove_snapshots(builder, ids)
        case u.SetStatistics(statistics=statistics):
            apply_snapshots.set_statistics(builder, statistics)
        case u.RemoveStatistics(snapshot_id=snapshot_id):
            apply_snapshots.remove_statistics(builder, snapshot_id)
        case u.SetPartitionStatistics(partition_statistics=statistics):
            apply_snapshots.set_statistics(builder, statistics)
        case u.RemovePartitionStatistics(snapshot_id=snapshot_id):
            apply_snapshots.remove_partition_statistics(builder, snapshot_id)
        case u.SetLocation(location=location):
            set_location(builder, location)
        case u.SetProperties(updates=updates):
            settable = {k: v for k, v in updates.items() if k not in RESERVED_PROPERTIES}
            builder.change(properties={**builder.metadata.properties, **settable})
        case u.RemoveProperties(removals=removals):
            properties = builder.metadata.properties
            builder.change(properties={k: v for k, v in properties.items() if k not in removals})
        case _:
            raise InvalidRequestError(f"unknown table update {type(update).__name__}")


def _assign_uuid(builder: MetadataBuilder, uuid: str) -> None:
    current = builder.metadata.table_uuid
    if current is not None and current.lower() != uuid.lower():
        raise CommitConflictError(
            f"the table now has UUID {current} and cannot get {uuid}; refresh and retry"
        )
    if current is None:
        builder.metadata = replace(builder.metadata, table_uuid=uuid)


def _upgrade(builder: MetadataBuilder, version: int) -> None:
    current = builder.metadata.format_version
    if version not in WRITABLE_FORMAT_VERSIONS:
        raise InvalidRequestError(
            f"cannot write format version {version}: 1 to 4 are written here; choose one of these"
        )
    if version < current:
        raise InvalidRequestError(
            f"cannot lower the format version from {current} to {version}; an upgrade cannot be "
            "undone"
        )
    if version == current:
        return
    if current < ROW_LINEAGE_VERSION:
        # Existing rows have no row ids; the first snapshot after the upgrade assigns ids to them.
        builder.change(next_row_id=0)
    builder.change(format_version=version)
    if version >= RELATIVE_PATHS_VERSION:
        builder.metadata = with_schemes(builder.metadata)
        builder.change(properties={**builder.metadata.properties, ROOT_MANIFESTS.name: "true"})
