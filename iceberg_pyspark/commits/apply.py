"""Apply updates to table metadata: the one place where a change becomes the next metadata.

Specification, "Table Metadata" and its parts: `apply_schemas.py`, `apply_snapshots.py`. Every
update sees what the ones before it did. Whether the changes may be applied to this metadata at all
is `requirements.py`; which changes an operation needs is decided by its own module
(`schema_changes.py`, `snapshot_changes.py`, ...). Catalogs that own their metadata call
`apply_updates`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from iceberg_pyspark.commits.apply_schemas import (
    add_schema,
    add_sort_order,
    add_spec,
    remove_schemas,
    remove_specs,
    set_current_schema,
    set_default_sort_order,
    set_default_spec,
)
from iceberg_pyspark.commits.apply_snapshots import (
    add_snapshot,
    remove_partition_statistics,
    remove_snapshot_ref,
    remove_snapshots,
    remove_statistics,
    set_partition_statistics,
    set_snapshot_ref,
    set_statistics,
)
from iceberg_pyspark.commits.finished_metadata import finished_metadata
from iceberg_pyspark.commits.metadata_builder import MetadataBuilder, empty_metadata
from iceberg_pyspark.commits.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUUID,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    TableUpdate,
    UpgradeFormatVersion,
)
from iceberg_pyspark.errors import CommitConflictError, InvalidRequestError
from iceberg_pyspark.spec.properties import RESERVED_PROPERTIES
from iceberg_pyspark.spec.table_metadata import SUPPORTED_FORMAT_VERSIONS, TableMetadata


def apply_updates(
    metadata: TableMetadata | None,
    updates: Sequence[TableUpdate],
    *,
    now_ms: int,
    previous_metadata_location: str | None,
) -> TableMetadata:
    """The metadata after the updates; `metadata` itself when they change nothing.

    `metadata` None creates a table from its updates alone. `previous_metadata_location` is where
    `metadata` was read from and becomes an entry of the metadata log. What can never be
    applied is an `InvalidRequestError`; a snapshot overtaken by another commit is a
    `CommitConflictError`.
    """
    base = metadata if metadata is not None else empty_metadata(now_ms)
    builder = MetadataBuilder(metadata=base, now_ms=now_ms)
    for update in updates:
        _apply(builder, update)
    if builder.metadata is base and metadata is not None:
        return metadata
    return finished_metadata(builder, metadata, previous_metadata_location)


def _apply(builder: MetadataBuilder, update: TableUpdate) -> None:
    match update:
        case AssignUUID(uuid=uuid):
            _assign_uuid(builder, uuid)
        case UpgradeFormatVersion(format_version=version):
            _upgrade(builder, version)
        case AddSchema():
            add_schema(builder, update)
        case SetCurrentSchema(schema_id=schema_id):
            set_current_schema(builder, schema_id)
        case AddPartitionSpec(spec=spec):
            add_spec(builder, spec)
        case SetDefaultSpec(spec_id=spec_id):
            set_default_spec(builder, spec_id)
        case AddSortOrder(sort_order=order):
            add_sort_order(builder, order)
        case SetDefaultSortOrder(order_id=order_id):
            set_default_sort_order(builder, order_id)
        case RemoveSchemas(schema_ids=ids):
            remove_schemas(builder, ids)
        case RemovePartitionSpecs(spec_ids=ids):
            remove_specs(builder, ids)
        case AddSnapshot(snapshot=snapshot):
            add_snapshot(builder, snapshot)
        case SetSnapshotRef():
            set_snapshot_ref(builder, update)
        case RemoveSnapshotRef(name=name):
            remove_snapshot_ref(builder, name)
        case RemoveSnapshots(snapshot_ids=ids):
            remove_snapshots(builder, ids)
        case SetStatistics(statistics=statistics):
            set_statistics(builder, statistics)
        case RemoveStatistics(snapshot_id=snapshot_id):
            remove_statistics(builder, snapshot_id)
        case SetPartitionStatistics(partition_statistics=partition_statistics):
            set_partition_statistics(builder, partition_statistics)
        case RemovePartitionStatistics(snapshot_id=snapshot_id):
            remove_partition_statistics(builder, snapshot_id)
        case SetLocation(location=location):
            _set_location(builder, location)
        case SetProperties(updates=updates):
            _set_properties(builder, updates)
        case RemoveProperties(removals=removals):
            _remove_properties(builder, removals)
        case _:
            raise InvalidRequestError(f"unknown table update {type(update).__name__}")


def _assign_uuid(builder: MetadataBuilder, uuid: str) -> None:
    current = builder.metadata.table_uuid
    if current is not None and current.lower() != uuid.lower():
        raise CommitConflictError(
            f"the table has UUID {current} by now; it cannot become {uuid}; refresh and retry"
        )
    if current is None:
        builder.metadata = replace(builder.metadata, table_uuid=uuid)


def _upgrade(builder: MetadataBuilder, version: int) -> None:
    current = builder.metadata.format_version
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise InvalidRequestError(f"cannot upgrade to format version {version}: 1 to 3 are known")
    if version < current:
        raise InvalidRequestError(f"cannot lower the format version from {current} to {version}")
    if version == current:
        return
    # rows written before v3 have no ids; they are numbered by the first snapshot after the upgrade
    builder.metadata = replace(builder.metadata, format_version=version, next_row_id=0)


def _set_location(builder: MetadataBuilder, location: str) -> None:
    location = normal_location(location)
    if location != builder.metadata.location:
        builder.metadata = replace(builder.metadata, location=location)


def normal_location(location: str) -> str:
    """A location without trailing slashes, unless it is nothing else.

    >>> normal_location("s3://bucket/table/")
    's3://bucket/table'
    """
    stripped = location.rstrip("/")
    return location if not stripped or stripped.endswith(":") else stripped


def _set_properties(builder: MetadataBuilder, updates: Mapping[str, str]) -> None:
    settable = {k: v for k, v in updates.items() if k not in RESERVED_PROPERTIES}
    properties = {**builder.metadata.properties, **settable}
    if properties != builder.metadata.properties:
        builder.metadata = replace(builder.metadata, properties=properties)


def _remove_properties(builder: MetadataBuilder, removals: Collection[str]) -> None:
    properties = {k: v for k, v in builder.metadata.properties.items() if k not in removals}
    if properties != builder.metadata.properties:
        builder.metadata = replace(builder.metadata, properties=properties)
