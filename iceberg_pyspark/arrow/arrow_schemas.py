"""Converts Iceberg schemas and single values to Arrow, and back.

Each Iceberg type has one canonical Arrow type for all readers and writers (specification,
"Primitive Types"; small offsets, microseconds, no dictionaries), because Spark accepts a batch only
with exactly the declared schema. Field ids are in the metadata of fields, as for Parquet. Single
values are those of constants in batches, partition values and defaults, as in `spec/values.py`.

Rows to be written have `stored_arrow_schema`: `to_arrow_schema` without the columns of type
`unknown`, which files do not store. `file_schema` adds what only the Parquet file needs: field ids,
and the annotation of `uuid`. Specification, Appendix A "Parquet".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa

from iceberg_pyspark.arrow.geo_columns import EDGES_OF_ARROW, geo_metadata, geo_type_of, wkb_type
from iceberg_pyspark.errors import (
    InvalidMetadataError,
    InvalidRequestError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.default_values import with_child_defaults
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    GeographyType,
    GeometryType,
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

FIELD_ID_KEY = b"PARQUET:field_id"
"""Arrow field metadata that holds a Parquet field id, as decimal text."""

DOC_KEY = b"doc"

VARIANT = pa.struct(
    [
        pa.field("metadata", pa.binary(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
    ]
)
"""The Arrow type of a variant: the metadata (names) and the value, both in Parquet's encoding."""

_ARROW_BY_CLASS: Mapping[type[types.PrimitiveType], pa.DataType] = {
    types.BooleanType: pa.bool_(),
    types.IntegerType: pa.int32(),
    types.LongType: pa.int64(),
    types.FloatType: pa.float32(),
    types.DoubleType: pa.float64(),
    types.DateType: pa.date32(),
    types.TimeType: pa.time64("us"),
    types.TimestampType: pa.timestamp("us"),
    types.TimestamptzType: pa.timestamp("us", tz="UTC"),
    types.TimestampNsType: pa.timestamp("ns"),
    types.TimestamptzNsType: pa.timestamp("ns", tz="UTC"),
    types.StringType: pa.string(),
    types.UUIDType: pa.binary(16),
    types.BinaryType: pa.binary(),
    types.UnknownType: pa.null(),
    types.VariantType: VARIANT,
    types.GeometryType: pa.binary(),
    types.GeographyType: pa.binary(),
}


def to_arrow_schema(schema: Schema, *, field_ids: bool = False) -> pa.Schema:
    """Return the Arrow schema of an Iceberg schema; with `field_ids`, ids and docs at every level.

    Geometries and geographies are WKB, which the metadata of their fields says.
    """
    return pa.schema([to_arrow_field(f, field_ids=field_ids) for f in schema.fields])


def to_arrow_field(
    field: types.NestedField, *, field_ids: bool = False, path: str = ""
) -> pa.Field:
    """Return the Arrow field of an Iceberg field and its children; `path` names its parent."""
    metadata = geo_metadata(field.type)
    if field_ids:
        metadata[FIELD_ID_KEY] = str(field.field_id).encode()
        if field.doc is not None:
            metadata[DOC_KEY] = field.doc.encode()
    name = f"{path}.{field.name}" if path else field.name
    return pa.field(
        field.name,
        _arrow_type(field.type, name, field_ids),
        # `unknown` holds only nulls, even if the schema says that the column is required
        nullable=field.optional or isinstance(field.type, types.UnknownType),
        metadata=metadata or None,
    )


def arrow_type(type_: types.Type) -> pa.DataType:
    """Return the Arrow type of an Iceberg type, without field ids."""
    return _arrow_type(type_, str(type_), field_ids=False)


def _arrow_type(type_: types.Type, name: str, field_ids: bool) -> pa.DataType:
    match type_:
        case types.DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case types.FixedType(length=length):
            return pa.binary(length)
        case types.StructType(fields=fields):
            return pa.struct([to_arrow_field(f, field_ids=field_ids, path=name) for f in fields])
        case types.ListType():
            return pa.list_(to_arrow_field(type_.element, field_ids=field_ids, path=name))
        case types.MapType():
            return pa.map_(
                to_arrow_field(type_.key, field_ids=field_ids, path=name),
                to_arrow_field(type_.value, field_ids=field_ids, path=name),
            )
        case types.PrimitiveType():
            return _ARROW_BY_CLASS[type(type_)]


def field_id_of(field: pa.Field) -> int | None:
    """Return the field id in an Arrow field's metadata, or None."""
    text = (field.metadata or {}).get(FIELD_ID_KEY)
    if text is None:
        return None
    try:
        field_id = int(text)
    except ValueError as e:
        raise InvalidMetadataError(
            f"column '{field.name}' has the field id {text!r}, which is not an integer; correct or "
            "remove it"
        ) from e
    # for Parquet files without ids, some readers report the id -1
    return field_id if field_id >= 0 else None


def from_arrow_schema(arrow_schema: pa.Schema) -> Schema:
    """Return the Iceberg schema of an Arrow schema.

    If every field has an id in its metadata, these ids are used; if no field has one, new ids start
    at 1, with the fields of a struct before nested fields, as Java assigns them. Types without an
    exact Iceberg counterpart are widened (int8 to int, uint32 to long). `InvalidRequestError` names
    a column that has no Iceberg type.
    """
    ids = [field_id_of(f) for f in _walk(arrow_schema)]
    with_ids = bool(ids) and None not in ids
    if not with_ids and any(i is not None for i in ids):
        raise InvalidRequestError(
            f"some columns of the Arrow schema have a field id and others have none; give "
            f"{FIELD_ID_KEY.decode()} to all fields, nested ones too, or to none"
        )
    fields = _Ids(with_ids=with_ids).struct_fields(list(arrow_schema), "")
    schema = Schema(fields=fields)
    try:
        _ = schema.field_by_id
    except InvalidMetadataError as e:
        raise InvalidRequestError(f"Arrow schema: {e}") from e
    return schema


def _walk(fields: pa.Schema | list[pa.Field]) -> list[pa.Field]:
    fields_below: list[pa.Field] = []
    for f in fields:
        fields_below.append(f)
        fields_below.extend(_walk(child_fields(f.type)))
    return fields_below


def child_fields(type_: pa.DataType) -> list[pa.Field]:
    """Return the fields directly below an Arrow type."""
    if pa.types.is_map(type_):
        return [type_.key_field, type_.item_field]
    if pa.types.is_struct(type_):
        return [type_.field(i) for i in range(type_.num_fields)]
    if is_list_like(type_):
        return [type_.value_field]
    return []


def is_list_like(type_: pa.DataType) -> bool:
    """Return whether the type is any Arrow list type (maps excluded)."""
    return bool(
        pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
        or pa.types.is_list_view(type_)
        or pa.types.is_large_list_view(type_)
    )


def is_text_like(type_: pa.DataType) -> bool:
    """Return whether the type is any Arrow text type."""
    t = pa.types
    return bool(t.is_string(type_) or t.is_large_string(type_) or t.is_string_view(type_))


def is_binary_like(type_: pa.DataType) -> bool:
    """Return whether the type is any Arrow binary type of variable length."""
    t = pa.types
    return bool(t.is_binary(type_) or t.is_large_binary(type_) or t.is_binary_view(type_))


def takable_type(type_: pa.DataType) -> pa.DataType:
    """Return a type with the same values, of which Arrow can take single rows."""
    types = pa.types
    if types.is_run_end_encoded(type_):
        return takable_type(type_.value_type)
    if types.is_string_view(type_):
        return pa.large_string()
    if types.is_binary_view(type_):
        return pa.large_binary()
    if types.is_dictionary(type_):
        value = takable_type(type_.value_type)
        return type_ if value == type_.value_type else value
    if types.is_struct(type_):
        return pa.struct([f.with_type(takable_type(f.type)) for f in type_])
    if types.is_map(type_):
        return pa.map_(
            takable_type(type_.key_type), type_.item_field.with_type(takable_type(type_.item_type))
        )
    if types.is_list(type_) or types.is_large_list(type_):
        field = type_.value_field.with_type(takable_type(type_.value_type))
        return pa.list_(field) if types.is_list(type_) else pa.large_list(field)
    return type_


class _Ids:
    """A converter of Arrow fields that reads or assigns field ids in Java's order."""

    def __init__(self, *, with_ids: bool) -> None:
        self._fresh = None if with_ids else count(1)

    def struct_fields(self, fields: list[pa.Field], path: str) -> tuple[types.NestedField, ...]:
        ids = [self._id(f) for f in fields]
        return tuple(
            types.NestedField(
                field_id=field_id,
                name=f.name,
                type=geo_type_of(f) or self._type(f.type, f"{path}{f.name}"),
                required=not f.nullable,
                doc=_doc(f),
            )
            for field_id, f in zip(ids, fields, strict=True)
        )

    def _id(self, field: pa.Field) -> int:
        if self._fresh is not None:
            return next(self._fresh)
        field_id = field_id_of(field)
        assert field_id is not None
        return field_id

    def _type(self, type_: pa.DataType, name: str) -> types.Type:
        if pa.types.is_struct(type_):
            return types.StructType(self.struct_fields(child_fields(type_), f"{name}."))
        if pa.types.is_map(type_):
            key, value = child_fields(type_)
            key_id, value_id = self._id(key), self._id(value)
            return types.MapType(
                key_id=key_id,
                key_type=self._type(key.type, f"{name}.key"),
                value_id=value_id,
                value_type=self._type(value.type, f"{name}.value"),
                value_required=not value.nullable,
            )
        if is_list_like(type_):
            element = type_.value_field
            return types.ListType(
                element_id=self._id(element),
                element_type=self._type(element.type, f"{name}.element"),
                element_required=not element.nullable,
            )
        return primitive_of_arrow(type_, name)


def _doc(field: pa.Field) -> str | None:
    doc = (field.metadata or {}).get(DOC_KEY)
    return None if doc is None else doc.decode()


def primitive_of_arrow(type_: pa.DataType, name: str) -> types.PrimitiveType:
    """Return the Iceberg type that holds a primitive Arrow type's values; `name` is for errors."""
    t = pa.types
    if t.is_dictionary(type_) or t.is_run_end_encoded(type_):
        return primitive_of_arrow(type_.value_type, name)
    if isinstance(type_, pa.BaseExtensionType):
        if type_.extension_name == "arrow.uuid":
            return types.UUIDType()
        return primitive_of_arrow(type_.storage_type, name)
    if t.is_decimal(type_) and type_.precision <= 38 and 0 <= type_.scale <= type_.precision:
        return types.DecimalType(type_.precision, type_.scale)
    if t.is_fixed_size_binary(type_):
        return types.FixedType(type_.byte_width)
    if t.is_timestamp(type_):
        if type_.unit == "ns":
            return types.TimestampNsType() if type_.tz is None else types.TimestamptzNsType()
        return types.TimestampType() if type_.tz is None else types.TimestamptzType()
    for accepts, primitive in (
        (t.is_boolean, types.BooleanType()),
        (t.is_int64, types.LongType()),
        (t.is_uint32, types.LongType()),
        (t.is_float64, types.DoubleType()),
        (t.is_floating, types.FloatType()),
        (t.is_date, types.DateType()),
        (t.is_time, types.TimeType()),
        (t.is_string, types.StringType()),
        (t.is_large_string, types.StringType()),
        (t.is_string_view, types.StringType()),
        (t.is_binary, types.BinaryType()),
        (t.is_large_binary, types.BinaryType()),
        (t.is_binary_view, types.BinaryType()),
        (t.is_null, types.UnknownType()),
    ):
        if accepts(type_):
            return primitive
    if t.is_integer(type_) and type_.bit_width <= 32:
        return types.IntegerType()
    raise InvalidRequestError(
        f"column '{name}' has Arrow type {type_}, for which Iceberg has no type; cast it first"
    )


def stored_schema(schema: Schema) -> Schema:
    """Return the schema without the `unknown` columns, which files do not store."""
    fields = _stored_fields(schema.fields, "")
    return schema if fields == schema.fields else replace(schema, fields=fields)


def stored_arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of rows before they are written."""
    return to_arrow_schema(stored_schema(schema))


def file_schema(schema: Schema) -> pa.Schema:
    """Return the Parquet writer's schema; rows of `stored_arrow_schema` cast without a copy."""
    fields = stored_schema(schema).fields
    return pa.schema([_file_field(f, to_arrow_field(f, field_ids=True)) for f in fields])


def is_annotated(type_: Type) -> bool:
    """Return whether Arrow does not write the logical type of a column, so that we must."""
    return isinstance(type_, VariantType) or (
        isinstance(type_, GeographyType) and type_.algorithm != EDGES_OF_ARROW
    )


def has_required_below(type_: Type) -> bool:
    """Return whether a field below the type is required."""
    return any(f.required for f in walk_fields(type_))


def _stored_fields(fields: tuple[NestedField, ...], path: str) -> tuple[NestedField, ...]:
    types = [(f, _stored_type(f.type, f"{path}{f.name}")) for f in fields]
    return tuple(
        f if type_ is f.type else replace(f, type=type_)
        for f, type_ in types
        if not isinstance(type_, UnknownType)
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
        case GeometryType() | GeographyType():
            marked = arrow.with_metadata({FIELD_ID_KEY: str(field.field_id).encode()})
            return marked if is_annotated(field.type) else marked.with_type(wkb_type(field.type))
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


def scalar_of(type_: types.Type, value: Any) -> pa.Scalar:
    """Return the Arrow scalar of a value; missing children of a struct get initial defaults."""
    return pa.scalar(
        _to_python(type_, with_child_defaults(type_, value, "initial")), type=arrow_type(type_)
    )


def constant_array(scalar: pa.Scalar, length: int) -> pa.Array:
    """Return an array that repeats one value, of exactly the scalar's type."""
    if not scalar.is_valid or not length:
        return pa.nulls(length, scalar.type)
    if pa.types.is_nested(scalar.type):
        # pyarrow's `repeat` copies nested values one by one; `take` is faster
        return pa.repeat(scalar, 1).take(pa.repeat(pa.scalar(0, pa.int32()), length))
    return pa.repeat(scalar, length)


def _to_python(type_: types.Type, value: Any) -> Any:
    if value is None:
        return None
    match type_:
        case types.StructType(fields=fields):
            return {f.name: _to_python(f.type, value[f.field_id]) for f in fields}
        case types.ListType():
            return [_to_python(type_.element_type, v) for v in value]
        case types.MapType():
            return [
                (_to_python(type_.key_type, k), _to_python(type_.value_type, v)) for k, v in value
            ]
        case _:
            return value


def value_of(type_: types.Type, scalar: pa.Scalar) -> Any:
    """Return the Python value of an Arrow scalar of the type `arrow_type(type_)`; None for null."""
    if not scalar.is_valid:
        return None
    match type_:
        case types.StructType(fields=fields):
            return {f.field_id: value_of(f.type, scalar[f.name]) for f in fields}
        case types.ListType():
            return [value_of(type_.element_type, v) for v in scalar]
        case types.MapType():
            entries = scalar.values
            return [
                (value_of(type_.key_type, k), value_of(type_.value_type, v))
                for k, v in zip(entries.field(0), entries.field(1), strict=True)
            ]
        case (
            types.DateType()
            | types.TimeType()
            | types.TimestampType()
            | types.TimestamptzType()
            | types.TimestampNsType()
            | types.TimestamptzNsType()
        ):
            return scalar.value
        case _:
            return scalar.as_py()
