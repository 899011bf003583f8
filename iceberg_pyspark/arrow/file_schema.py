"""Builds the Arrow schema of a Parquet data file from an Iceberg schema.

Rows to be written have `stored_arrow_schema`: `to_arrow_schema` without the columns of type
`unknown`, which files do not store. `file_schema` adds what only the file needs: field ids, and the
annotation of `uuid`. Specification, Appendix A "Parquet".
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from iceberg_pyspark.arrow.schemas import to_arrow_field, to_arrow_schema
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    UnknownType,
    UUIDType,
    VariantType,
    walk_fields,
)


def stored_schema(schema: Schema) -> Schema:
    """Return the schema without the `unknown` columns, which files do not store."""
    return replace(schema, fields=_stored_fields(schema.fields, ""))


def stored_arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of rows before they are written."""
    return to_arrow_schema(stored_schema(schema))


def file_schema(schema: Schema) -> pa.Schema:
    """Return the Parquet writer's schema; rows of `stored_arrow_schema` cast without a copy."""
    fields = stored_schema(schema).fields
    return pa.schema([_file_field(f, to_arrow_field(f, field_ids=True)) for f in fields])


def has_required_below(type_: Type) -> bool:
    """Return whether a field below the type is required."""
    return any(f.required for f in walk_fields(type_))


def _stored_fields(fields: tuple[NestedField, ...], path: str) -> tuple[NestedField, ...]:
    return tuple(
        replace(f, type=_stored_type(f.type, f"{path}{f.name}"))
        for f in fields
        if not isinstance(f.type, UnknownType)
    )


def _stored_type(type_: Type, path: str) -> Type:
    match type_:
        case StructType(fields=fields):
            children = _stored_fields(fields, f"{path}.")
            if not children:
                raise UnsupportedFeatureError(
                    f"column '{path}' is a struct without a field that Parquet can hold; "
                    "add a typed field before writing"
                )
            return StructType(children)
        case ListType(element_type=element):
            return replace(
                type_, element_type=_stored_type(_check_not_unknown(element, path), path)
            )
        case MapType(key_type=key, value_type=value):
            return replace(
                type_,
                key_type=_stored_type(_check_not_unknown(key, path), path),
                value_type=_stored_type(_check_not_unknown(value, path), path),
            )
        case VariantType():
            raise UnsupportedFeatureError(
                f"column '{path}' has type variant, which cannot be written yet; write the table "
                "with an engine that can"
            )
        case _:
            return type_


def _check_not_unknown(type_: Type, path: str) -> Type:
    if isinstance(type_, UnknownType):
        raise UnsupportedFeatureError(
            f"column '{path}' is a list or map of type unknown, which Parquet cannot hold; "
            "give its elements a type before writing"
        )
    return type_


def _file_field(field: NestedField, arrow: pa.Field) -> pa.Field:
    match field.type:
        case UUIDType():
            return arrow.with_type(pa.uuid())
        case StructType(fields=fields):
            return arrow.with_type(
                pa.struct([_file_field(f, arrow.type.field(i)) for i, f in enumerate(fields)])
            )
        case ListType():
            return arrow.with_type(
                pa.list_(_file_field(field.type.element, arrow.type.value_field))
            )
        case MapType():
            return arrow.with_type(
                pa.map_(
                    _file_field(field.type.key, arrow.type.key_field),
                    _file_field(field.type.value, arrow.type.item_field),
                )
            )
        case _:
            return arrow
