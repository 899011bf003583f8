"""Shreds the variants of a column for a Parquet file: their parts go to typed columns.

Parquet specification, "Variant Shredding". `arrow/read/variants.py` puts the parts together again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import VARIANT
from iceberg_pyspark.arrow.variant_types import typed_column_type
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.variant_encoding import (
    ARRAY,
    OBJECT,
    FieldNames,
    array_elements,
    encode_object,
    object_fields,
    stored_value,
    type_of,
)
from iceberg_pyspark.spec.variant_shredding import (
    Shredding,
    TypedArray,
    TypedObject,
    TypedValue,
    shredding_of,
)

_DAMAGED = (IndexError, KeyError, ValueError, struct.error, RecursionError)


def column_shredding(column: pa.ChunkedArray, rows: int, name: str) -> Shredding | None:
    """Return how a column of `VARIANT` is shredded, to judge by its first rows; None for not.

    Raises `InvalidRequestError` for a damaged variant.
    """
    try:
        return shredding_of(_variants(column.slice(0, rows)), _variants(column.slice(rows)))
    except _DAMAGED as e:
        raise _damaged(name, e) from e


def shredded_type(shredding: Shredding) -> pa.StructType:
    """Return the type of a column of shredded variants."""
    return pa.struct([VARIANT.field("metadata"), *_group(shredding)])


def typed_paths(shredding: Shredding, path: str) -> Iterator[str]:
    """Yield the Parquet paths of the leaves of `typed_value` in the group at a path."""
    path += ".typed_value"
    match shredding:
        case TypedValue():
            yield path
        case TypedArray(element):
            inner = {f"{path}.list.element": element}
        case TypedObject(fields):
            inner = {f"{path}.{name}": field for name, field in fields.items()}
    if not isinstance(shredding, TypedValue):
        for below, part in inner.items():
            yield f"{below}.value"
            yield from typed_paths(part, below)


def shredded_array(array: pa.StructArray, shredding: Shredding, name: str) -> pa.StructArray:
    """Return an array of `VARIANT` as `shredded_type`; errors name the column."""
    type_ = shredded_type(shredding)
    try:
        variants = list(_variants(pa.chunked_array([array])))
        present = iter(variants)
        values: list[bytes | None] = []
        names: list[FieldNames] = []
        for is_valid in array.is_valid().to_pylist():
            field_names, value = next(present) if is_valid else (_NO_NAMES, None)
            values.append(value)
            names.append(field_names)
        parts = _split(values, names, shredding)
    except _DAMAGED as e:
        raise _damaged(name, e) from e
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(
        [array.field("metadata"), *parts], fields=list(type_), mask=mask
    )


_NO_NAMES = FieldNames.sorted([])


def _damaged(name: str, error: BaseException) -> InvalidRequestError:
    return InvalidRequestError(
        f"column '{name}' holds a damaged variant ({type(error).__name__}: {error}): correct it, "
        "or write null"
    )


def _variants(column: pa.ChunkedArray) -> Iterator[tuple[FieldNames, bytes]]:
    """Yield names and value of the variants that are not null."""
    names: dict[bytes, FieldNames] = {}
    for chunk in column.chunks:
        present = chunk.drop_null() if chunk.null_count else chunk
        parts = (present.field(part).to_pylist() for part in VARIANT.names)
        for metadata, value in zip(*parts, strict=True):
            known = names.get(metadata)
            if known is None:
                known = names[metadata] = FieldNames.of(metadata)
            yield known, value


def _group(shredding: Shredding) -> list[pa.Field]:
    """Return the fields of a group: what is stored whole, and what is typed."""
    match shredding:
        case TypedValue():
            type_ = typed_column_type(shredding)
        case TypedArray(element):
            type_ = pa.list_(pa.field("element", pa.struct(_group(element)), nullable=False))
        case TypedObject(fields):
            type_ = pa.struct(
                [pa.field(n, pa.struct(_group(f)), nullable=False) for n, f in fields.items()]
            )
    return [pa.field("value", pa.binary()), pa.field("typed_value", type_)]


def _split(
    values: Sequence[bytes | None], names: Sequence[FieldNames], shredding: Shredding
) -> list[pa.Array]:
    """Return the arrays of a group for encoded values, of which None are missing."""
    type_ = _group(shredding)[1].type
    match shredding:
        case TypedValue():
            fitting = [v if v is not None and shredding.takes(v) else None for v in values]
            typed = [None if v is None else stored_value(v) for v in fitting]
            rest = [v if f is None else None for v, f in zip(values, fitting, strict=True)]
            return [pa.array(rest, pa.binary()), _typed_array(typed, type_)]
        case TypedArray(element):
            return _split_lists(values, names, element, type_)
        case TypedObject():
            return _split_objects(values, names, shredding, type_)


def _typed_array(values: list[object], type_: pa.DataType) -> pa.Array:
    if isinstance(type_, pa.BaseExtensionType):
        return type_.wrap_array(pa.array(values, type_.storage_type))
    return pa.array(values, type_)


def _split_lists(
    values: Sequence[bytes | None],
    names: Sequence[FieldNames],
    element: Shredding,
    type_: pa.ListType,
) -> list[pa.Array]:
    rest: list[bytes | None] = []
    ends: list[int | None] = []
    elements: list[bytes] = []
    names_of_elements: list[FieldNames] = []
    for value, field_names in zip(values, names, strict=True):
        is_list = value is not None and type_of(value) == ARRAY
        rest.append(None if is_list else value)
        ends.append(len(elements) if is_list else None)
        if is_list and value is not None:
            before = len(elements)
            elements += array_elements(value)
            names_of_elements += [field_names] * (len(elements) - before)
    fields = list(type_.value_type)
    parts = _split(elements, names_of_elements, element)
    inner = pa.StructArray.from_arrays(parts, fields=fields)
    offsets = pa.array([*ends, len(elements)], pa.int32())
    return [pa.array(rest, pa.binary()), pa.ListArray.from_arrays(offsets, inner, type=type_)]


def _split_objects(
    values: Sequence[bytes | None],
    names: Sequence[FieldNames],
    shredding: TypedObject,
    type_: pa.StructType,
) -> list[pa.Array]:
    rest: list[bytes | None] = []
    absent: list[bool] = []
    columns: dict[bytes, list[bytes | None]] = {n.encode(): [] for n in shredding.fields}
    for value, field_names in zip(values, names, strict=True):
        is_object = value is not None and type_of(value) == OBJECT
        fields = {}
        if is_object and value is not None:
            fields = dict(object_fields(value, field_names))
        for name, column in columns.items():
            column.append(fields.pop(name, None))
        others = encode_object(fields, field_names) if fields else None
        rest.append(others if is_object else value)
        absent.append(not is_object)
    groups = []
    for column, f in zip(columns.values(), shredding.fields.values(), strict=True):
        parts = _split(column, names, f)
        groups.append(pa.StructArray.from_arrays(parts, fields=_group(f)))
    typed = pa.StructArray.from_arrays(
        groups, fields=list(type_), mask=pa.array(absent, pa.bool_())
    )
    return [pa.array(rest, pa.binary()), typed]
