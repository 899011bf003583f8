"""Computes the bounds of a variant column from the statistics of its shredded fields.

Specification, "Bounds for Variant, Geometry, and Geography". A field has bounds if every value of
it in the file is in one typed column; in lists none have. As in Java, texts and bytes are cut to 16
characters or bytes, whatever the column's metrics mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.arrow.arrow_schemas import is_list_like
from iceberg_pyspark.arrow.file_fields import FileField
from iceberg_pyspark.arrow.variant_types import value_encoder
from iceberg_pyspark.spec import variant_encoding as encoding
from iceberg_pyspark.spec.bound_cuts import high_cut
from iceberg_pyspark.spec.values import decimal_of
from iceberg_pyspark.spec.variant_encoding import FieldNames, encode_object
from iceberg_pyspark.spec.variant_paths import normalized_path

_LENGTH = 16

Chunks = Sequence[pq.ColumnChunkMetaData]
ChunksOf = Callable[[int], Chunks]
"""A function from a leaf's position in the file to its column chunks."""


def variant_bounds(column: FileField, chunks_of: ChunksOf) -> tuple[bytes, bytes] | None:
    """Return the serialized lower and upper bounds of a file's variants, or None if none are known.

    Each is the metadata and an object that has the fields' bounds by normalized path.
    """
    fields = list(_fields(column, (), chunks_of))
    if not fields:
        return None
    lower = {path.encode(): low for path, low, _ in fields}
    upper = {path.encode(): high for path, _, high in fields if high is not None}
    names = FieldNames.sorted([*lower])
    low_bytes, high_bytes = (names.encoded() + encode_object(b, names) for b in (lower, upper))
    return low_bytes, high_bytes


def _fields(
    group: FileField, path: tuple[str, ...], chunks_of: ChunksOf
) -> Iterator[tuple[str, bytes, bytes | None]]:
    """Yield path and encoded bounds of each field below a group of `value` and `typed_value`."""
    parts = {c.name: c for c in group.children}
    typed, value = parts.get("typed_value"), parts.get("value")
    if typed is None or is_list_like(typed.type):
        return
    if typed.children:
        # what is beside an object's typed fields has none of their names
        for f in typed.children:
            yield from _fields(f, (*path, f.name), chunks_of)
        return
    if value is not None and not all(map(_is_null, chunks_of(value.leaves[0]))):
        return
    bounds = _encoded_bounds(typed.type, chunks_of(typed.leaves[0]))
    if bounds is not None:
        yield normalized_path(path), *bounds


def _is_null(chunk: pq.ColumnChunkMetaData) -> bool:
    """Return whether all values of a chunk are missing or are the encoded null."""
    s = chunk.statistics
    if s is None or not s.has_null_count:
        return False
    if s.has_min_max:
        return bool(s.min_raw == s.max_raw == encoding.NULL)
    return bool(s.null_count == chunk.num_values)


def _encoded_bounds(type_: pa.DataType, chunks: Chunks) -> tuple[bytes, bytes | None] | None:
    encode = value_encoder(type_)
    if encode is None or isinstance(type_, pa.UuidType):
        return None
    lows, highs = [], []
    for chunk in chunks:
        s = chunk.statistics
        if s is not None and s.has_min_max:
            lows.append(_plain(type_, s.min_raw))
            highs.append(_plain(type_, s.max_raw))
        elif s is None or not s.has_null_count or s.null_count != chunk.num_values:
            return None
    if not lows or any(isinstance(v, float) and math.isnan(v) for v in (*lows, *highs)):
        return None
    low, high = min(lows), max(highs)
    if isinstance(low, str | bytes):
        low, high = low[:_LENGTH], high_cut(high, _LENGTH)
    return encode(low), None if high is None else encode(high)


def _plain(type_: pa.DataType, raw: Any) -> Any:
    if pa.types.is_string(type_):
        return raw if isinstance(raw, str) else raw.decode()
    if pa.types.is_decimal(type_):
        unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
        return decimal_of(unscaled, type_.scale)
    return raw
