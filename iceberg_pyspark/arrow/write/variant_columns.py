"""Variant columns for users: made of Python objects or JSON texts, and converted back.

An Arrow column of variants is a struct of `metadata` and `value`, in any order. A column of Arrow's
type JSON can be written to a variant column too. Plain texts cannot, because nobody knows whether
they are JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import VARIANT, is_binary_like
from iceberg_pyspark.arrow.read.variants import variant_array
from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec.variant_encoding import python_of, variant_of, variant_of_json


def variants_from_objects(values: Iterable[Any]) -> pa.Array:
    """Return a column of variants: of dicts, lists, texts, numbers, dates, times, bytes and UUIDs.

    None is a null of the column. `InvalidRequestError` names the first value that does not fit.

    >>> variants_to_objects(variants_from_objects([{"a": [1, "x"]}, None]))
    [{'a': [1, 'x']}, None]
    """
    return _column(values, variant_of)


def variants_from_json(texts: Iterable[str | None]) -> pa.Array:
    """Return a column of variants, one for each JSON text; None is a null of the column.

    >>> variants_to_objects(variants_from_json(['{"a": 1.50}', "null", None]))
    [{'a': Decimal('1.50')}, None, None]
    """
    return _column(texts, variant_of_json)


def variants_to_objects(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the Python objects of a column of variants; nulls of both kinds are None.

    Raises `InvalidRequestError` for another column, and `InvalidMetadataError` for damaged bytes.
    """
    storage = column.type.storage_type if _is_extension(column.type) else column.type
    if not _is_variant(storage):
        raise InvalidRequestError(
            f"a column of {column.type} holds no variants, which are structs of metadata and value"
        )
    return [
        None if row is None else python_of(row["metadata"], row["value"])
        for row in column.to_pylist()
    ]


def variant_cast(source: pa.DataType) -> Callable[[pa.Array, str], pa.Array] | None:
    """Return a function from arrays of a type, and the column's path, to `VARIANT`, or None."""
    if _is_extension(source) and source.extension_name == "arrow.json":
        return lambda array, path: _column(array.storage.to_pylist(), variant_of_json, path)
    if not _is_variant(source):
        return None

    def convert(array: pa.Array, path: str) -> pa.Array:
        present = array.drop_null() if array.null_count else array
        if present.field("metadata").null_count or present.field("value").null_count:
            raise InvalidRequestError(
                f"column '{path}' holds a variant without metadata or value: write null for the "
                "whole variant, or its value 0x00"
            )
        return variant_array(array)

    return convert


def _is_extension(type_: pa.DataType) -> bool:
    return isinstance(type_, pa.BaseExtensionType)


def _is_variant(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_struct(type_)
        and type_.num_fields == 2
        and {f.name for f in type_} == {"metadata", "value"}
        and all(is_binary_like(f.type) for f in type_)
    )


def _column(
    values: Iterable[Any], encode: Callable[[Any], tuple[bytes, bytes]], path: str = ""
) -> pa.Array:
    rows: list[dict[str, bytes] | None] = []
    for i, value in enumerate(values):
        try:
            encoded = None if value is None else encode(value)
        except (InvalidRequestError, InvalidMetadataError) as e:
            where = f"column '{path}', " if path else ""
            raise InvalidRequestError(f"{where}value {i}: {e}") from e
        rows.append(None if encoded is None else dict(zip(VARIANT.names, encoded, strict=True)))
    return pa.array(rows, VARIANT)
