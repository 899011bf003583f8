"""Hypothesis strategies for types, values, schemas, rows and predicates.

Values have the representation of `spec/values.py`. Small ranges are mixed with extremes, so that
literals, rows and bounds coincide often.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundColumn,
    BoundLeaf,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    Comparison,
    Membership,
    Not,
    Or,
    Predicate,
    Test,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
    VariantType,
)
from iceberg_pyspark.spec.values import decimal_of
from iceberg_pyspark.spec.variant_encoding import variant_of

PRIMITIVE_TYPES: tuple[PrimitiveType, ...] = (
    BooleanType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DecimalType(9, 2),
    DecimalType(38, 10),
    DateType(),
    TimeType(),
    TimestampType(),
    TimestamptzType(),
    TimestampNsType(),
    TimestamptzNsType(),
    StringType(),
    UUIDType(),
    FixedType(2),
    BinaryType(),
)
"""Every primitive type whose values have an order."""

STORED_TYPES: tuple[PrimitiveType, ...] = (
    *PRIMITIVE_TYPES,
    VariantType(),
    GeometryType("EPSG:3857"),
    GeographyType(),
    GeographyType("OGC:CRS84", "karney"),
)
"""Every primitive type that files of Parquet and Avro store."""

_HOUR_US = 3_600_000_000
_TESTS: Sequence[Test] = ("is_null", "not_null", "is_nan", "not_nan")
_COMPARISONS: Sequence[Comparison] = ("lt", "lt_eq", "gt", "gt_eq", "eq", "not_eq")
_PREFIXES: Sequence[Comparison] = ("starts_with", "not_starts_with")
_MEMBERSHIPS: Sequence[Membership] = ("in", "not_in")


def _around(*centres: int, spread: int, low: int, high: int) -> SearchStrategy[int]:
    near = [
        st.integers(max(low, centre - spread), min(high, centre + spread)) for centre in centres
    ]
    return st.one_of(*near, st.integers(low, high))


def _timestamps(per_micro: int) -> SearchStrategy[int]:
    hours = st.integers(-60, 60).map(lambda h: h * _HOUR_US * per_micro)
    years = st.integers(-3, 3).map(lambda y: y * 8766 * _HOUR_US * per_micro)
    return st.one_of(
        st.builds(lambda a, b: a + b, hours, st.integers(-2, 2)),
        st.builds(lambda a, b: a + b, years, hours),
        st.integers(-(2**62), 2**62),
    )


def _as_float32(value: float) -> float:
    try:
        result: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return result


_VARIANT_SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=70)
_VARIANTS = st.recursive(
    _VARIANT_SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=5,
)


_COORDINATES = st.sampled_from([0.0, -0.0, 1.5, -7.0, float("nan"), 179.0]) | st.floats()
_POINTS = st.lists(st.tuples(*[_COORDINATES] * 4), max_size=3)


def _wkb(order: str, layout: int, points: list[tuple[float, ...]]) -> bytes:
    """Return a point, or else a line, in a byte order, with X, Y and what the layout adds."""
    taken = {0: (0, 1), 1000: (0, 1, 2), 2000: (0, 1, 3), 3000: (0, 1, 2, 3)}[layout]
    numbers = [p[i] for p in points for i in taken]
    count = () if len(points) == 1 else (len(points),)
    kind = layout + (1 if len(points) == 1 else 2)
    head = struct.pack(f"{order}BI{'I' * len(count)}", order == "<", kind, *count)
    return head + struct.pack(f"{order}{len(numbers)}d", *numbers)


def values(type_: Type) -> SearchStrategy[Any]:
    """Return non-null values of a primitive type; float and double include NaN and -0.0."""
    small_floats = st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.1, 2.5, float("inf"), float("-inf")])
    match type_:
        case BooleanType():
            return st.booleans()
        case IntegerType():
            return _around(0, -(2**31), 2**31 - 1, spread=25, low=-(2**31), high=2**31 - 1)
        case LongType():
            return _around(0, -(2**63), 2**63 - 1, spread=25, low=-(2**63), high=2**63 - 1)
        case FloatType():
            floats = st.one_of(small_floats, st.just(float("nan")), st.floats(width=32))
            return floats.map(_as_float32)
        case DoubleType():
            return st.one_of(small_floats, st.just(float("nan")), st.floats())
        case DecimalType(precision=precision, scale=scale):
            limit = 10**precision - 1
            unscaled = _around(0, -limit, limit, spread=300, low=-limit, high=limit)
            return unscaled.map(lambda u: decimal_of(u, scale))
        case DateType():
            return _around(0, 18_262, spread=800, low=-(2**31), high=2**31 - 1)
        case TimeType():
            return _around(0, 12 * _HOUR_US, spread=5, low=0, high=24 * _HOUR_US - 1)
        case TimestampType() | TimestamptzType():
            return _timestamps(1)
        case TimestampNsType() | TimestamptzNsType():
            return _timestamps(1000)
        case StringType():
            return st.one_of(
                st.text("ab\u00e9\ud7ff\uffff\U0001f600\U0010ffff", max_size=6),
                st.text(st.characters(codec="utf-8"), max_size=6),
            )
        case UUIDType():
            few = st.sampled_from([b"\x00", b"\x7f", b"\x80", b"\xff"])
            return few.map(lambda b: b * 16) | st.binary(min_size=16, max_size=16)
        case FixedType(length=length):
            return st.binary(min_size=length, max_size=length)
        case BinaryType():
            octets = st.lists(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]), max_size=6)
            return octets.map(bytes) | st.binary(max_size=6)
        case GeometryType() | GeographyType():
            return st.builds(
                _wkb, st.sampled_from("<>"), st.sampled_from((0, 1000, 2000, 3000)), _POINTS
            )
        case VariantType():
            return _VARIANTS.map(
                lambda v: dict(zip(("metadata", "value"), variant_of(v), strict=True))
            )
        case _:
            raise NotImplementedError(f"values of {type_}")


def nullable(type_: Type) -> SearchStrategy[Any]:
    """Return values of the type, or None."""
    return st.none() | values(type_)


def literals(type_: Type) -> SearchStrategy[Any]:
    """Return the values that a bound predicate may hold: all but NaN."""
    return values(type_).filter(lambda v: v == v)


def columns(*types: PrimitiveType) -> list[BoundColumn]:
    """Return optional columns c1, c2, ... with ids 1, 2, ..."""
    return [
        BoundColumn(field_id=i, name=f"c{i}", type=type_, required=False)
        for i, type_ in enumerate(types, start=1)
    ]


def schema_of(bound: Sequence[BoundColumn]) -> Schema:
    """Return a schema with these columns at top level."""
    return Schema(
        fields=tuple(
            NestedField(field_id=c.field_id, name=c.name, type=c.type, required=c.required)
            for c in bound
        )
    )


def rows(bound: Sequence[BoundColumn]) -> SearchStrategy[Mapping[int, Any]]:
    """Return rows as dicts from field id to value."""
    return st.fixed_dictionaries({c.field_id: nullable(c.type) for c in bound})


def leaves(column: BoundColumn) -> SearchStrategy[BoundLeaf]:
    """Return bound predicates without children on one column."""
    literal = literals(column.type)
    few: SearchStrategy[frozenset[Any]] = st.frozensets(literal, min_size=2, max_size=4)
    if isinstance(column.type, BooleanType):
        few = st.just(frozenset((False, True)))
    comparisons = st.builds(BoundLiteral, st.sampled_from(_COMPARISONS), st.just(column), literal)
    results: SearchStrategy[BoundLeaf] = st.one_of(
        st.builds(BoundUnary, st.sampled_from(_TESTS), st.just(column)),
        comparisons,
        comparisons,
        st.builds(BoundSet, st.sampled_from(_MEMBERSHIPS), st.just(column), few),
    )
    if isinstance(column.type, StringType | BinaryType):
        prefix = literal.filter(len)
        results |= st.builds(BoundLiteral, st.sampled_from(_PREFIXES), st.just(column), prefix)
    return results


def predicates(bound: Sequence[BoundColumn]) -> SearchStrategy[Predicate]:
    """Return bound predicates over these columns, including constants and `Not`."""
    leaf: SearchStrategy[Predicate] = st.sampled_from(bound).flatmap(leaves)
    base = st.one_of(leaf, leaf, leaf, st.just(AlwaysTrue()), st.just(AlwaysFalse()))
    return st.recursive(
        base,
        lambda inner: (
            st.builds(And, inner, inner) | st.builds(Or, inner, inner) | st.builds(Not, inner)
        ),
        max_leaves=6,
    )


def one_column_predicates() -> SearchStrategy[tuple[BoundColumn, Predicate]]:
    """Return pairs of a column of any type and a predicate on it."""
    return (
        st.sampled_from(PRIMITIVE_TYPES)
        .map(lambda type_: columns(type_)[0])
        .flatmap(lambda c: st.tuples(st.just(c), predicates([c])))
    )
