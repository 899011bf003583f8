"""Evaluates a bound predicate on one tuple of values, or on a summary of many values.

`predicates.py` defines the semantics. Tuples are those of partitions; `arrow/read/row_filter.py`
evaluates predicates on columns of rows.

Summaries are those of data files and manifests (`expressions/file_filters.py`) and of row groups,
by one rule: the values of a column are split into nulls, NaNs and the rest, and the rule decides
for each part whether some, or all, of its values are selected. Unknown facts count as possible, so
a filter errs to one side only: an inclusive filter is false only if no row can match, a strict
filter is true only if every row matches.

Bounds of uuids are interpreted in both existing orders: as unsigned bytes, and in Java's order of
its UUID class, which Java's writer uses (apache/iceberg #14216).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.expressions import predicates
from iceberg_pyspark.expressions.rewriting import not_bound, push_not
from iceberg_pyspark.spec.bounding_boxes import bounds_may_meet, wkb_meets
from iceberg_pyspark.spec.types import DoubleType, FloatType, Type, UUIDType
from iceberg_pyspark.spec.values import value_from_bytes


def evaluate(predicate: predicates.Predicate, values: Mapping[int, Any]) -> bool | None:
    """Return True, False or None (unknown); `values` has a value or None by field id."""
    match predicate:
        case predicates.AlwaysTrue():
            return True
        case predicates.AlwaysFalse():
            return False
        case predicates.And(left, right):
            first = evaluate(left, values)
            if first is False:
                return False
            second = evaluate(right, values)
            return second if first or second is False else None
        case predicates.Or(left, right):
            first = evaluate(left, values)
            if first is True:
                return True
            second = evaluate(right, values)
            return second if first is False or second is True else None
        case predicates.Not(child):
            inner = evaluate(child, values)
            return None if inner is None else not inner
        case predicates.BoundUnary() | predicates.BoundLiteral() | predicates.BoundSet():
            return evaluate_leaf(predicate, values[predicate.column.field_id])
        case _:
            raise not_bound(predicate)


def evaluate_leaf(leaf: predicates.BoundLeaf, value: Any) -> bool | None:
    """Return the result of the leaf for one value of its column; None for unknown."""
    is_nan = isinstance(value, float) and value != value
    match leaf:
        case predicates.BoundUnary(op="is_null"):
            return value is None
        case predicates.BoundUnary(op="not_null"):
            return value is not None
        case predicates.BoundUnary(op="is_nan"):
            return is_nan
        case predicates.BoundUnary():
            return not is_nan
    if value is None:
        return None
    if is_nan:
        # NaN is greater than every literal, because a literal is never NaN
        return leaf.op in ("gt", "gt_eq", "not_eq", "not_in")
    if isinstance(leaf, predicates.BoundSet):
        return (value in leaf.literals) == (leaf.op == "in")
    literal = leaf.literal
    result: bool
    match leaf.op:
        case "lt":
            result = value < literal
        case "lt_eq":
            result = value <= literal
        case "gt":
            result = value > literal
        case "gt_eq":
            result = value >= literal
        case "eq":
            result = value == literal
        case "not_eq":
            result = value != literal
        case "starts_with":
            result = value.startswith(literal)
        case "not_starts_with":
            result = not value.startswith(literal)
        case "intersects":
            result = wkb_meets(value, literal)
        case "not_intersects":
            result = not wkb_meets(value, literal)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRange:
    """The known range, nulls and NaNs of a column in a set of rows.

    `lower` and `upper` bound the values that are neither null nor NaN; the bounds need not be
    actual values, and None is unknown. `may_be_value` tells whether such values may exist.
    """

    lower: Any = None
    upper: Any = None
    may_be_null: bool = True
    may_be_nan: bool = True
    may_be_value: bool = True


RangeOf: TypeAlias = Callable[[predicates.BoundColumn], ValueRange]
RangeFilter: TypeAlias = Callable[[RangeOf], bool]


def compile_range_filter(predicate: predicates.Predicate, *, strict: bool = False) -> RangeFilter:
    """Return a function from ranges to "may some row match" or, if strict, "does every row"."""
    match predicate:
        case predicates.AlwaysTrue():
            return lambda range_of: True
        case predicates.AlwaysFalse():
            return lambda range_of: False
        case predicates.And(left, right):
            first = compile_range_filter(left, strict=strict)
            second = compile_range_filter(right, strict=strict)
            return lambda range_of: first(range_of) and second(range_of)
        case predicates.Or(left, right):
            first = compile_range_filter(left, strict=strict)
            second = compile_range_filter(right, strict=strict)
            return lambda range_of: first(range_of) or second(range_of)
        case predicates.Not():
            return compile_range_filter(push_not(predicate), strict=strict)
        case predicates.BoundUnary() | predicates.BoundLiteral() | predicates.BoundSet():
            return _strict_leaf(predicate) if strict else _inclusive_leaf(predicate)
        case _:
            raise not_bound(predicate)


def decode_bound(type_: Type, data: bytes | None) -> Any:
    """Return a stored bound as a value of the type, whatever its width after a promotion.

    None means unknown; it is also returned for NaN, which some writers stored, and for unreadable
    bytes.
    """
    if data is None:
        return None
    try:
        value = value_from_bytes(type_, data)
    except InvalidMetadataError:
        return None
    return value if value == value else None


def _inclusive_leaf(leaf: predicates.BoundLeaf) -> RangeFilter:
    column = leaf.column
    null_matches, nan_matches = _special_matches(leaf)

    def some_row_may_match(range_of: RangeOf) -> bool:
        range_ = range_of(column)
        return (
            (null_matches and range_.may_be_null)
            or (nan_matches and range_.may_be_nan)
            or (
                range_.may_be_value
                and any(_some_value_may_match(*read) for read in _readings(leaf, range_))
            )
        )

    return some_row_may_match


def _strict_leaf(leaf: predicates.BoundLeaf) -> RangeFilter:
    column = leaf.column
    null_matches, nan_matches = _special_matches(leaf)
    has_nan = isinstance(column.type, FloatType | DoubleType)

    def every_row_matches(range_of: RangeOf) -> bool:
        range_ = range_of(column)
        return (
            (null_matches or not range_.may_be_null)
            and (nan_matches or not (has_nan and range_.may_be_nan))
            and (
                not range_.may_be_value
                or all(_every_value_matches(*read) for read in _readings(leaf, range_))
            )
        )

    return every_row_matches


def _readings(
    leaf: predicates.BoundLeaf, range_: ValueRange
) -> Iterator[tuple[predicates.BoundLeaf, Any, Any]]:
    """Yield the leaf and the bounds in every order that a writer may have used.

    If the lower bound is above the upper one in each order, one of them is wrong: both are unknown.
    """
    readings = [(leaf, range_.lower, range_.upper)]
    if isinstance(leaf.column.type, UUIDType):
        lower, upper = (
            None if b is None else java_uuid_key(b) for b in (range_.lower, range_.upper)
        )
        readings.append((in_java_uuid_order(leaf), lower, upper))
    if all(
        lower is not None and upper is not None and lower > upper for _, lower, upper in readings
    ):
        yield leaf, None, None
    else:
        yield from readings


def in_java_uuid_order(leaf: predicates.BoundLeaf) -> predicates.BoundLeaf:
    """Return the leaf with its literals as keys of Java's uuid order."""
    match leaf:
        case predicates.BoundLiteral():
            return replace(leaf, literal=java_uuid_key(leaf.literal))
        case predicates.BoundSet():
            return replace(leaf, literals=frozenset(map(java_uuid_key, leaf.literals)))
        case _:
            return leaf


def java_uuid_key(uuid: bytes) -> bytes:
    """Return bytes that compare in Java's uuid order: by two halves, each a signed number."""
    return bytes((uuid[0] ^ 0x80, *uuid[1:8], uuid[8] ^ 0x80, *uuid[9:]))


def _special_matches(leaf: predicates.BoundLeaf) -> tuple[bool, bool]:
    """Return whether the leaf selects null, and NaN if the column can hold NaN."""
    has_nan = isinstance(leaf.column.type, FloatType | DoubleType)
    return (
        evaluate_leaf(leaf, None) is True,
        has_nan and evaluate_leaf(leaf, float("nan")) is True,
    )


def _some_value_may_match(leaf: predicates.BoundLeaf, lower: Any, upper: Any) -> bool:
    match leaf:
        case predicates.BoundUnary(op=op):
            return op in ("not_null", "not_nan")
        case predicates.BoundSet(op="in", literals=literals):
            return any(_contains(lower, upper, v) for v in literals)
        case predicates.BoundLiteral(op="lt", literal=literal):
            return lower is None or lower < literal
        case predicates.BoundLiteral(op="lt_eq", literal=literal):
            return lower is None or lower <= literal
        case predicates.BoundLiteral(op="gt", literal=literal):
            return upper is None or upper > literal
        case predicates.BoundLiteral(op="gt_eq", literal=literal):
            return upper is None or upper >= literal
        case predicates.BoundLiteral(op="eq", literal=literal):
            return _contains(lower, upper, literal)
        case predicates.BoundLiteral(op="starts_with", literal=prefix):
            # texts with the prefix are contiguous, and the prefix itself comes first
            return (lower is None or lower[: len(prefix)] <= prefix) and (
                upper is None or upper >= prefix
            )
        case predicates.BoundLiteral(op="not_starts_with", literal=prefix):
            return not _all_start_with(lower, upper, prefix)
        case predicates.BoundLiteral(op="intersects", literal=box):
            return bounds_may_meet(lower, upper, box)
        case _:
            # bounds need not be actual values, so bounds never rule out != and NOT IN
            return True


def _every_value_matches(leaf: predicates.BoundLeaf, lower: Any, upper: Any) -> bool:
    match leaf:
        case predicates.BoundUnary(op=op):
            return op in ("not_null", "not_nan")
        case predicates.BoundSet(op="in", literals=literals):
            return lower is not None and lower == upper and lower in literals
        case predicates.BoundSet(op="not_in", literals=literals):
            return not any(_contains(lower, upper, v) for v in literals)
        case predicates.BoundLiteral(op="lt", literal=literal):
            return upper is not None and upper < literal
        case predicates.BoundLiteral(op="lt_eq", literal=literal):
            return upper is not None and upper <= literal
        case predicates.BoundLiteral(op="gt", literal=literal):
            return lower is not None and lower > literal
        case predicates.BoundLiteral(op="gt_eq", literal=literal):
            return lower is not None and lower >= literal
        case predicates.BoundLiteral(op="eq", literal=literal):
            return lower is not None and lower == upper == literal
        case predicates.BoundLiteral(op="not_eq", literal=literal):
            return not _contains(lower, upper, literal)
        case predicates.BoundLiteral(op="starts_with", literal=prefix):
            return _all_start_with(lower, upper, prefix)
        case predicates.BoundLiteral(op="not_starts_with", literal=prefix):
            return (upper is not None and upper < prefix) or (
                lower is not None and lower[: len(prefix)] > prefix
            )
        case _:
            return False


def _contains(lower: Any, upper: Any, value: Any) -> bool:
    return (lower is None or lower <= value) and (upper is None or upper >= value)


def _all_start_with(lower: Any, upper: Any, prefix: Any) -> bool:
    return (
        lower is not None
        and upper is not None
        and lower[: len(prefix)] == prefix
        and upper[: len(prefix)] == prefix
    )
