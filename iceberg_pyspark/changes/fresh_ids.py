"""Assigns field ids to new columns. Specification, "Column IDs".

Ids are assigned level by level: all fields of a struct before anything nested in them, as in the
reference implementation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    children_of,
    with_children,
)


def fresh_ids(schema: Schema) -> dict[int, int]:
    """Map each field id of the schema to the id that the field gets in a new table."""
    _ = schema.field_by_id  # raises an error for an id that is used twice
    new_ids: dict[int, int] = {}
    _assign(schema.as_struct, count(1), new_ids)
    return new_ids


def _assign(type_: Type, counter: Iterator[int], new_ids: dict[int, int]) -> None:
    children = children_of(type_)
    for f in children:
        new_ids[f.field_id] = next(counter)
    for f in children:
        _assign(f.type, counter, new_ids)


def with_ids(schema: Schema, new_ids: Mapping[int, int]) -> Schema:
    """Return the schema with every field id replaced, also in identifier fields and defaults."""
    struct = type_with_ids(schema.as_struct, new_ids)
    assert isinstance(struct, StructType)
    return Schema(
        schema_id=0,
        fields=struct.fields,
        identifier_field_ids=mapped_ids(new_ids, schema.identifier_field_ids),
    )


def mapped_ids(new_ids: Mapping[int, int], field_ids: Iterable[int]) -> tuple[int, ...]:
    """Return the new ids of fields; raise `InvalidRequestError` for an unknown id."""
    ids = []
    for field_id in field_ids:
        if field_id not in new_ids:
            raise InvalidRequestError(f"field id {field_id} is not in the schema")
        ids.append(new_ids[field_id])
    return tuple(ids)


def type_with_ids(type_: Type, new_ids: Mapping[int, int]) -> Type:
    """Return the type with every nested field id replaced."""
    return with_children(
        type_, lambda f: _with_type(f, new_ids[f.field_id], type_with_ids(f.type, new_ids))
    )


def type_with_fresh_ids(type_: Type, counter: Iterator[int]) -> Type:
    """Return the type with new ids for all fields nested in it, assigned level by level."""
    new_ids: dict[int, int] = {}
    # Types from users may repeat ids or have none: make the ids distinct first.
    distinct = _with_distinct_ids(type_, count(-1, -1))
    _assign(distinct, counter, new_ids)
    return type_with_ids(distinct, new_ids)


def _with_distinct_ids(type_: Type, counter: Iterator[int]) -> Type:
    return with_children(
        type_, lambda f: _with_type(f, next(counter), _with_distinct_ids(f.type, counter))
    )


def _with_type(f: NestedField, field_id: int, type_: Type) -> NestedField:
    """Return the field with a new id and type; its default values use the new type's field ids."""
    return replace(
        f,
        field_id=field_id,
        type=type_,
        initial_default=renumber(f.initial_default, f.type, type_),
        write_default=renumber(f.write_default, f.type, type_),
    )


def renumber(value: Any, old: Type, new: Type) -> Any:
    """Convert a value between two types that differ in their field ids only."""
    if value is None:
        return None
    match old, new:
        case StructType(fields=before), StructType(fields=after) if isinstance(value, dict):
            return {
                b.field_id: renumber(value[a.field_id], a.type, b.type)
                for a, b in zip(before, after, strict=True)
                if a.field_id in value
            }
        case ListType(), ListType() if isinstance(value, list):
            return [renumber(v, old.element_type, new.element_type) for v in value]
        case MapType(), MapType() if isinstance(value, list):
            return [
                (
                    renumber(k, old.key_type, new.key_type),
                    renumber(v, old.value_type, new.value_type),
                )
                for k, v in value
            ]
        case _:
            return value
