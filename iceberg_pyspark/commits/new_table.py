"""The first metadata of a new table, and a snapshot-free table's metadata as updates.

Specification, "Column IDs" and "Partition Field IDs": whatever ids the given schema, spec and
order have, a new table numbers its columns from 1 and its partition fields from 1000. Columns get
ids level by level: all fields of a struct before anything nested in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from iceberg_pyspark.commits.apply import apply_updates
from iceberg_pyspark.commits.updates import (
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
from iceberg_pyspark.errors import InvalidRequestError
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
    check_commit_properties,
    int_property,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import UNSORTED, SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import ListType, MapType, StructType, Type


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
    """The metadata a table starts with; `spec` and `sort_order` refer to `schema` by its field ids.

    The format version is the argument, else property `format-version`, else 2. Raises
    `InvalidRequestError` for what that version cannot hold.
    """
    if format_version is None:
        format_version = int_property(properties, FORMAT_VERSION, DEFAULT_FORMAT_VERSION)
    check_commit_properties(properties)
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
    """Updates that make this first metadata out of nothing: what a create sends to a catalog.

    Schema, spec and sort order of `metadata` must be the only ones, as `new_table_metadata` makes
    it.
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


def fresh_ids(schema: Schema) -> dict[int, int]:
    """The id each field of the schema gets in a new table, by the id it has now."""
    _ = schema.field_by_id  # refuses ids used twice
    new_ids: dict[int, int] = {}
    _assign(schema.as_struct, count(1), new_ids)
    return new_ids


def _assign(type_: Type, counter: Iterator[int], new_ids: dict[int, int]) -> None:
    match type_:
        case StructType(fields=fields):
            for f in fields:
                new_ids[f.field_id] = next(counter)
            for f in fields:
                _assign(f.type, counter, new_ids)
        case ListType():
            new_ids[type_.element_id] = next(counter)
            _assign(type_.element_type, counter, new_ids)
        case MapType():
            new_ids[type_.key_id] = next(counter)
            new_ids[type_.value_id] = next(counter)
            _assign(type_.key_type, counter, new_ids)
            _assign(type_.value_type, counter, new_ids)
        case _:
            return


def with_ids(schema: Schema, new_ids: Mapping[int, int]) -> Schema:
    """The schema with every field id replaced, identifier fields and defaults included."""
    struct = type_with_ids(schema.as_struct, new_ids)
    assert isinstance(struct, StructType)
    return Schema(
        schema_id=0,
        fields=struct.fields,
        identifier_field_ids=tuple(_mapped_id(new_ids, i) for i in schema.identifier_field_ids),
    )


def _mapped_id(new_ids: Mapping[int, int], field_id: int) -> int:
    if field_id not in new_ids:
        raise InvalidRequestError(f"field id {field_id} is not in the schema")
    return new_ids[field_id]


def type_with_ids(type_: Type, new_ids: Mapping[int, int]) -> Type:
    """The type with every nested field id replaced."""
    match type_:
        case StructType(fields=fields):
            return StructType(
                tuple(
                    replace(
                        f,
                        field_id=new_ids[f.field_id],
                        type=type_with_ids(f.type, new_ids),
                    )
                    for f in fields
                )
            )
        case ListType():
            return replace(
                type_,
                element_id=new_ids[type_.element_id],
                element_type=type_with_ids(type_.element_type, new_ids),
            )
        case MapType():
            return replace(
                type_,
                key_id=new_ids[type_.key_id],
                key_type=type_with_ids(type_.key_type, new_ids),
                value_id=new_ids[type_.value_id],
                value_type=type_with_ids(type_.value_type, new_ids),
            )
        case _:
            return type_


def type_with_fresh_ids(type_: Type, counter: Iterator[int]) -> Type:
    """The type with new ids for everything nested in it, level by level."""
    numbered: dict[int, int] = {}
    # what users hand in may repeat ids or have none yet: make them distinct first
    distinct = _with_distinct_ids(type_, count(-1, -1))
    _assign(distinct, counter, numbered)
    return type_with_ids(distinct, numbered)


def _with_distinct_ids(type_: Type, counter: Iterator[int]) -> Type:
    match type_:
        case StructType(fields=fields):
            return StructType(
                tuple(
                    replace(f, field_id=next(counter), type=_with_distinct_ids(f.type, counter))
                    for f in fields
                )
            )
        case ListType():
            return replace(
                type_,
                element_id=next(counter),
                element_type=_with_distinct_ids(type_.element_type, counter),
            )
        case MapType():
            return replace(
                type_,
                key_id=next(counter),
                key_type=_with_distinct_ids(type_.key_type, counter),
                value_id=next(counter),
                value_type=_with_distinct_ids(type_.value_type, counter),
            )
        case _:
            return type_


def _fresh_spec(spec: PartitionSpec, new_ids: Mapping[int, int]) -> PartitionSpec:
    check_writable(spec)
    return PartitionSpec(
        spec_id=0,
        fields=tuple(
            replace(
                f,
                field_id=FIRST_PARTITION_FIELD_ID + i,
                source_ids=tuple(_mapped_id(new_ids, s) for s in f.source_ids),
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
            replace(f, source_ids=tuple(_mapped_id(new_ids, s) for s in f.source_ids))
            for f in order.fields
        ),
    )
