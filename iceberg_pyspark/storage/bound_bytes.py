"""Bounds of columns in their own types, as the single values that older manifests have.

Specification, Appendix D "Binary Single-Value Serialization".
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.spec.types import DecimalType
from iceberg_pyspark.spec.values import value_to_bytes


def bound_bytes(bounds: pa.Array) -> pa.Array:
    """The bounds as binary single values; raises `TypeError` for a type that has none."""
    if isinstance(bounds, pa.ExtensionArray):
        bounds = bounds.storage
    type_ = bounds.type
    if pa.types.is_binary(type_) or pa.types.is_string(type_):
        return bounds.cast(pa.binary())
    if pa.types.is_fixed_size_binary(type_):
        return bounds.cast(pa.binary())
    if pa.types.is_boolean(type_):
        return pc.if_else(bounds, pa.scalar(b"\x01"), pa.scalar(b"\x00"))
    if pa.types.is_decimal(type_):
        decimal = DecimalType(precision=type_.precision, scale=type_.scale)
        return pa.array(
            [None if v is None else value_to_bytes(decimal, v) for v in bounds.to_pylist()],
            pa.binary(),
        )
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_temporal(type_):
        if pa.types.is_time32(type_):
            bounds = bounds.cast(pa.time64("us"))
        # Arrow's numbers are little-endian, as single values are
        return bounds.view(pa.binary(bounds.type.bit_width // 8)).cast(pa.binary())
    raise TypeError(f"bounds of type {type_} have no binary form")
