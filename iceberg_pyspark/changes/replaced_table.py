"""Replaces a table by another of the same name: REPLACE TABLE, CREATE OR REPLACE TABLE.

The history, tags and branches other than `main` are kept. Schema, spec and sort order are replaced,
and `main` starts without a parent. Columns keep the field ids of existing columns of the same name,
and partition fields keep the ids of fields with the same source and transform, as in the reference
implementation. New properties are added to the existing ones. A name mapping gets the new columns;
the reference implementation leaves them out, so that files without field ids, if they are added
later, have nulls in these columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from iceberg_pyspark.changes.changes import Changes
from iceberg_pyspark.changes.column_properties import name_mapping_property
from iceberg_pyspark.changes.compatibility import check_spec
from iceberg_pyspark.changes.fresh_ids import fresh_ids, mapped_ids, with_ids
from iceberg_pyspark.changes.requirements import AssertRefSnapshotId, same_table
from iceberg_pyspark.changes.updates import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    RemoveSnapshotRef,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    TableUpdate,
    UpgradeFormatVersion,
)
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec, check_writable
from iceberg_pyspark.spec.properties import (
    FORMAT_VERSION,
    RESERVED_PROPERTIES,
    check_set_properties,
    int_property,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.sorting import UNSORTED, SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import VoidTransform


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
    new_properties = {k: v for k, v in properties.items() if k not in RESERVED_PROPERTIES}
    updates.append(SetProperties({**mapping, **new_properties}))
    stays = AssertRefSnapshotId(MAIN, metadata.current_snapshot_id)
    return Changes(updates=tuple(updates), requirements=(*same_table(metadata.table_uuid), stays))


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
