"""Builds the first metadata of a new table, and the updates that create it.

Specification, "Column IDs" and "Partition Field IDs": a new table numbers its columns from 1 and
its partition fields from 1000, whatever ids the schema, spec and sort order of the caller have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from iceberg_pyspark.changes.apply import apply_updates
from iceberg_pyspark.changes.fresh_ids import fresh_ids, mapped_ids, with_ids
from iceberg_pyspark.changes.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    AssignUUID,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    TableUpdate,
    UpgradeFormatVersion,
)
from iceberg_pyspark.spec.partitioning import (
    FIRST_PARTITION_FIELD_ID,
    PartitionSpec,
    check_writable,
)
from iceberg_pyspark.spec.properties import (
    DEFAULT_FORMAT_VERSION,
    FORMAT_VERSION,
    PARQUET_COMPRESSION,
    PARQUET_COMPRESSION_OF_NEW_TABLES,
    RESERVED_PROPERTIES,
    check_set_properties,
    int_property,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import UNSORTED, SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata


@dataclass(frozen=True, kw_only=True)
class NewTable:
    """The definition of a new table; `spec` and `sort_order` use the field ids of `schema`."""

    schema: Schema
    spec: PartitionSpec | None = None
    sort_order: SortOrder | None = None
    location: str | None = None
    """None: the catalog chooses the location."""

    properties: Mapping[str, str] = field(default_factory=dict)


def new_table_metadata(
    schema: Schema,
    spec: PartitionSpec | None,
    sort_order: SortOrder | None,
    location: str,
    properties: Mapping[str, str],
    *,
    format_version: int | None = None,
    table_uuid: str,
    now_ms: int,
) -> TableMetadata:
    """Return a table's first metadata; `spec` and `sort_order` use the field ids of `schema`.

    The format version is the argument, else property `format-version`, else 2. Raises
    `InvalidRequestError` for a definition that this version does not allow.
    """
    if format_version is None:
        format_version = int_property(properties, FORMAT_VERSION, DEFAULT_FORMAT_VERSION)
    check_set_properties(properties)
    ids = fresh_ids(schema)
    fresh = with_ids(schema, ids)
    updates = _creation_updates(
        format_version=format_version,
        table_uuid=table_uuid,
        schema=fresh,
        last_column_id=fresh.highest_field_id,
        spec=_fresh_spec(spec or PartitionSpec(spec_id=0), ids),
        sort_order=_fresh_sort_order(sort_order or UNSORTED, ids),
        location=location,
        properties={PARQUET_COMPRESSION.name: PARQUET_COMPRESSION_OF_NEW_TABLES, **properties},
    )
    return apply_updates(None, updates, now_ms=now_ms, previous_metadata_location=None)


def new_table_updates(metadata: TableMetadata) -> tuple[TableUpdate, ...]:
    """Return the updates that create a table with this metadata, to be sent to a catalog.

    `metadata` must have exactly one schema, spec and sort order, like the result of
    `new_table_metadata`.
    """
    return _creation_updates(
        format_version=metadata.format_version,
        table_uuid=metadata.table_uuid or "",
        schema=metadata.current_schema,
        last_column_id=metadata.last_column_id,
        spec=metadata.default_spec,
        sort_order=metadata.default_sort_order,
        location=metadata.location,
        properties=metadata.properties,
    )


def _creation_updates(
    *,
    format_version: int,
    table_uuid: str,
    schema: Schema,
    last_column_id: int,
    spec: PartitionSpec,
    sort_order: SortOrder,
    location: str,
    properties: Mapping[str, str],
) -> tuple[TableUpdate, ...]:
    return (
        AssignUUID(table_uuid),
        UpgradeFormatVersion(format_version),
        AddSchema(schema, last_column_id),
        SetCurrentSchema(-1),
        AddPartitionSpec(spec),
        SetDefaultSpec(-1),
        AddSortOrder(sort_order),
        SetDefaultSortOrder(-1),
        SetLocation(location),
        SetProperties({k: v for k, v in properties.items() if k not in RESERVED_PROPERTIES}),
    )


def _fresh_spec(spec: PartitionSpec, new_ids: Mapping[int, int]) -> PartitionSpec:
    check_writable(spec)
    return PartitionSpec(
        spec_id=0,
        fields=tuple(
            replace(
                f,
                field_id=FIRST_PARTITION_FIELD_ID + i,
                source_ids=mapped_ids(new_ids, f.source_ids),
            )
            for i, f in enumerate(spec.fields)
        ),
    )


def _fresh_sort_order(order: SortOrder, new_ids: Mapping[int, int]) -> SortOrder:
    if not order.fields:
        return UNSORTED
    return SortOrder(
        order_id=1,
        fields=tuple(
            replace(f, source_ids=mapped_ids(new_ids, f.source_ids)) for f in order.fields
        ),
    )
