"""Builds the first metadata of a new table, and the updates that create it.

Specification, "Column IDs" and "Partition Field IDs": a new table numbers its columns from 1 and
its partition fields from 1000, whatever ids the schema, spec and sort order of the caller have.

Replaces a table by another of the same name: REPLACE TABLE, CREATE OR REPLACE TABLE.

The history, tags and branches other than `main` are kept. Schema, spec and sort order are replaced,
and `main` starts without a parent. Columns keep the field ids of existing columns of the same name,
and partition fields keep the ids of fields with the same source and transform, as in the reference
implementation. New properties are added to the existing ones. A name mapping gets the new columns;
the reference implementation leaves them out, so that files without field ids, if they are added
later, have nulls in these columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from iceberg_pyspark.changes.apply import apply_updates
from iceberg_pyspark.changes.changes import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    AssertRefSnapshotId,
    AssignUUID,
    Changes,
    RemoveProperties,
    RemoveSnapshotRef,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    TableUpdate,
    UpgradeFormatVersion,
    same_table,
)
from iceberg_pyspark.changes.compatibility import check_spec
from iceberg_pyspark.changes.fresh_ids import fresh_ids, mapped_ids, with_ids
from iceberg_pyspark.changes.property_changes import name_mapping_property
from iceberg_pyspark.spec.partitioning import (
    FIRST_PARTITION_FIELD_ID,
    PartitionField,
    PartitionSpec,
    check_writable,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.sorting import UNSORTED, SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import (
    CHARACTER_TYPE,
    DEFAULT_FORMAT_VERSION,
    FORMAT_VERSION,
    PARQUET_COMPRESSION,
    PARQUET_COMPRESSION_OF_NEW_TABLES,
    RESERVED_PROPERTIES,
    check_set_properties,
    int_property,
)
from iceberg_pyspark.spec.transforms import VoidTransform


@dataclass(frozen=True, kw_only=True)
class NewTable:
    """The definition of a new table; `spec` and `sort_order` use the field ids of `schema`."""

    schema: Schema
    spec: PartitionSpec | None = None
    sort_order: SortOrder | None = None
    location: str | None = None
    """None: the catalog chooses the location."""

    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the columns' ids (`CHARACTER_TYPE`) name the ids of `schema`."""


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
        properties={
            PARQUET_COMPRESSION.name: PARQUET_COMPRESSION_OF_NEW_TABLES,
            **_of_new_ids(properties, ids),
        },
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


def replace_table(
    metadata: TableMetadata,
    schema: Schema,
    spec: PartitionSpec | None,
    *,
    location: str | None,
    properties: Mapping[str, str],
) -> Changes:
    """Return the changes that replace a table; `spec` uses `schema`'s field ids; no sort order."""
    check_set_properties(properties)
    version = int_property(properties, FORMAT_VERSION, metadata.format_version)
    ids = _ids_of_the_same_names(schema, metadata)
    fresh = with_ids(schema, ids)
    fresh_spec = _spec(spec or PartitionSpec(spec_id=0), ids, metadata, version)
    check_spec(fresh_spec, fresh, version)
    updates: list[TableUpdate] = []
    if version != metadata.format_version:
        updates.append(UpgradeFormatVersion(version))
    updates += [
        AddSchema(fresh, max(metadata.last_column_id, fresh.highest_field_id)),
        SetCurrentSchema(LAST_ADDED),
        AddPartitionSpec(fresh_spec),
        SetDefaultSpec(LAST_ADDED),
        *_remove_sort_order(metadata),
    ]
    if MAIN in metadata.refs:
        updates.append(RemoveSnapshotRef(MAIN))
    if location is not None:
        updates.append(SetLocation(location))
    mapping = name_mapping_property(metadata.properties, metadata.current_schema, fresh)
    of_new_ids = _of_new_ids(properties, ids)
    new_properties = {k: v for k, v in of_new_ids.items() if k not in RESERVED_PROPERTIES}
    old = [k for k in metadata.properties if k.startswith(CHARACTER_TYPE) and k not in of_new_ids]
    if old:
        updates.append(RemoveProperties(tuple(old)))
    updates.append(SetProperties({**mapping, **new_properties}))
    stays = AssertRefSnapshotId(MAIN, metadata.current_snapshot_id)
    return Changes(updates=tuple(updates), requirements=(*same_table(metadata.table_uuid), stays))


def _of_new_ids(properties: Mapping[str, str], ids: Mapping[int, int]) -> dict[str, str]:
    """Return the properties with the new ids of the columns that some of them name."""
    new_keys = {f"{CHARACTER_TYPE}{old}": f"{CHARACTER_TYPE}{new}" for old, new in ids.items()}
    return {
        new_keys.get(key, key): value
        for key, value in properties.items()
        if key in new_keys or not key.startswith(CHARACTER_TYPE)
    }


def _ids_of_the_same_names(schema: Schema, metadata: TableMetadata) -> dict[int, int]:
    """Map each field id to the id of that name in the current schema, or else to a new id."""
    id_by_name = metadata.current_schema.id_by_name
    new = count(metadata.last_column_id + 1)
    ids: dict[int, int] = {}
    # the order in which a new table would number the fields
    for field_id in fresh_ids(schema):
        current_id = id_by_name.get(schema.name_by_id[field_id])
        ids[field_id] = next(new) if current_id is None else current_id
    return ids


def _spec(
    spec: PartitionSpec, ids: Mapping[int, int], metadata: TableMetadata, version: int
) -> PartitionSpec:
    check_writable(spec)
    new_fields = [replace(f, source_ids=mapped_ids(ids, f.source_ids)) for f in spec.fields]
    id_by_source: dict[tuple[tuple[int, ...], str], int] = {}
    new = count(metadata.last_partition_id + 1)
    if version > 1:
        for old in (f for s in metadata.partition_specs for f in s.fields):
            id_by_source.setdefault((old.source_ids, str(old.transform)), old.field_id)
        return PartitionSpec(
            spec_id=0, fields=tuple(_with_id(f, id_by_source, new) for f in new_fields)
        )
    # Version 1 identifies partition fields by their position: each stays in place or becomes void.
    by_value = {(f.source_ids, str(f.transform)): f for f in new_fields}
    names = {f.name for f in new_fields}
    fields: list[PartitionField] = []
    for old in metadata.default_spec.fields:
        same = by_value.pop((old.source_ids, str(old.transform)), None)
        if same is not None:
            fields.append(replace(same, field_id=old.field_id))
            continue
        name = f"{old.name}_{old.field_id}" if old.name in names else old.name
        fields.append(replace(old, name=name, transform=VoidTransform()))
    fields += [replace(f, field_id=next(new)) for f in by_value.values()]
    return PartitionSpec(spec_id=0, fields=tuple(fields))


def _with_id(
    field: PartitionField, id_by_source: dict[tuple[tuple[int, ...], str], int], new: count[int]
) -> PartitionField:
    key = (field.source_ids, str(field.transform))
    if key not in id_by_source:
        id_by_source[key] = next(new)
    return replace(field, field_id=id_by_source[key])


def _remove_sort_order(metadata: TableMetadata) -> tuple[TableUpdate, ...]:
    order: SortOrder = UNSORTED
    if metadata.default_sort_order_id == order.order_id:
        return ()
    return (AddSortOrder(order), SetDefaultSortOrder(LAST_ADDED))
