"""Reads variant columns of Parquet and Avro files as structs of metadata and value.

Parquet specification, "Variant Encoding" and "Variant Shredding". A shredded column stores parts of
its values in typed columns. This module merges the parts value by value, so the result always has
whole values. The field names of a value stay those of its metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrow_schemas import VARIANT
from iceberg_pyspark.arrow.variant_types import Encode, value_encoder
from iceberg_pyspark.errors import InvalidMetadataError, UnsupportedFeatureError
from iceberg_pyspark.spec.variant_encoding import (
    NULL,
    FieldNames,
    encode_array,
    encode_object,
    object_fields,
)


def check_variant(stored_type: pa.DataType, where: str) -> None:
    """Raise unless a file's column holds variants; `where` is the start of the message."""
    if isinstance(stored_type, pa.BaseExtensionType):
        stored_type = stored_type.storage_type
    names = {f.name for f in stored_type} if pa.types.is_struct(stored_type) else set()
    if "metadata" not in names or not names & {"value", "typed_value"}:
        raise InvalidMetadataError(f"{where} is stored as {stored_type}, the table has a variant")
    if "typed_value" in names:
        _VariantMerger.of(_plain(stored_type), where)


def variant_array(array: pa.Array) -> pa.Array:
    """Return a file's column as `VARIANT`; `check_variant` must have accepted its type."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    metadata = array.field("metadata")
    values = _whole_values(array) if _has(array.type, "typed_value") else array.field("value")
    mask = array.is_null() if array.null_count else None
    if mask is not None:
        metadata, values = (pc.fill_null(_binary(c), b"") for c in (metadata, values))
    return pa.StructArray.from_arrays(
        [_binary(metadata), _binary(values)], fields=list(VARIANT), mask=mask
    )


def _binary(array: pa.Array) -> pa.Array:
    return array if array.type == pa.binary() else array.cast(pa.binary())


def _has(type_: pa.DataType, name: str) -> bool:
    return bool(type_.get_field_index(name) >= 0)


def _plain(type_: pa.DataType) -> pa.StructType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _whole_values(array: pa.StructArray) -> pa.Array:
    merger = _VariantMerger.of(array.type, "a variant")
    array = array.cast(_with_numbers(array.type))
    names: dict[bytes, FieldNames] = {}
    values: list[bytes | None] = []
    for row in array.to_pylist():
        if row is None:
            values.append(None)
            continue
        metadata = row["metadata"]
        name_list = names.get(metadata)
        if name_list is None:
            name_list = names[metadata] = FieldNames.of(metadata)
        # a variant at the top must have a value, so a missing value is read as variant null
        values.append(merger.whole(row, name_list) or NULL)
    return pa.array(values, pa.binary())


@dataclass(frozen=True, slots=True)
class _VariantMerger:
    """A merger of a group's `value` and `typed_value` to one value; None for a missing value."""

    convert: Callable[[Any, bytes | None, FieldNames], bytes] | None

    @staticmethod
    def of(group: pa.StructType, where: str) -> _VariantMerger:
        if not _has(group, "typed_value"):
            return _VariantMerger(None)
        type_ = group.field("typed_value").type
        if pa.types.is_struct(type_):
            return _VariantMerger(
                _object_of({f.name: _VariantMerger.of(f.type, where) for f in type_})
            )
        if pa.types.is_list(type_):
            return _VariantMerger(_array_of(_VariantMerger.of(type_.value_type, where)))
        encode = _primitive_of(type_, where)
        return _VariantMerger(lambda value, _rest, _names: encode(value))

    def whole(self, group: Mapping[str, Any], names: FieldNames) -> bytes | None:
        """Return the merged value of a group, or None if the group has no value."""
        rest = group.get("value")
        typed_value = group.get("typed_value")
        if self.convert is None or typed_value is None:
            return rest
        return self.convert(typed_value, rest, names)


def _object_of(
    fields: Mapping[str, _VariantMerger],
) -> Callable[[Any, bytes | None, FieldNames], bytes]:
    keys = {name: name.encode() for name in fields}

    def whole(typed: Mapping[str, Any], rest: bytes | None, names: FieldNames) -> bytes:
        values: dict[bytes, bytes] = dict(object_fields(rest, names)) if rest is not None else {}
        for name, field in fields.items():
            value = None if typed[name] is None else field.whole(typed[name], names)
            if value is not None:
                values[keys[name]] = value
        return encode_object(values, names)

    return whole


def _array_of(element: _VariantMerger) -> Callable[[Any, bytes | None, FieldNames], bytes]:
    def whole(typed: list[Any], _rest: bytes | None, names: FieldNames) -> bytes:
        return encode_array([element.whole(e, names) or NULL for e in typed])

    return whole


def _primitive_of(type_: pa.DataType, where: str) -> Encode:
    """Return the encoder of a typed column's values, as `_with_numbers` has them."""
    encode = value_encoder(type_)
    if encode is None:
        raise UnsupportedFeatureError(
            f"{where} is shredded into a column of type {type_}, which cannot be read; select the "
            "other columns"
        )
    return encode


def _with_numbers(type_: pa.DataType) -> pa.DataType:
    """Return the type with numbers instead of dates and times, and with the bytes of UUIDs."""
    if pa.types.is_struct(type_):
        return pa.struct([f.with_type(_with_numbers(f.type)) for f in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_with_numbers(type_.value_type)))
    if pa.types.is_date32(type_):
        return pa.int32()
    if pa.types.is_timestamp(type_) or pa.types.is_time64(type_):
        return pa.int64()
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
