"""Evaluating a bound predicate on what is known of many values: their range, nulls and NaNs.

One rule serves data files (`expressions/metrics_filter.py`), manifests (`summaries.py`) and row
groups: the values of a column are split into nulls, NaNs and the rest, and each part is asked
whether some, or all, of it is selected. What is not known counts as possible, so a filter built
here errs to one side only: an inclusive one is false only when no row can match, a strict one is
true only when every row does.

Bounds of uuids are taken in both orders there are: unsigned bytes, and Java's, which writes what
its class for them calls least and greatest (apache/iceberg #14216).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.expressions import predicates
from iceberg_pyspark.expressions.partition_values import evaluate_leaf
from iceberg_pyspark.expressions.rewriting import not_bound, push_not
from iceberg_pyspark.spec.types import DoubleType, FloatType, Type, UUIDType
from iceberg_pyspark.spec.values import value_from_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRange:
    """The known range, nulls and NaNs of a column in some set of rows.

    `may_be_value` speaks of values that are neither null nor NaN; `lower` and `upper` bound those,
    and need not be reached; None is unknown.
    """

    lower: Any = None
    upper: Any = None
    may_be_null: bool = True
    may_be_nan: bool = True
    may_be_value: bool = True


RangeOf: TypeAlias = Callable[[predicates.BoundColumn], ValueRange]
RangeFilter: TypeAlias = Callable[[RangeOf], bool]


def compile_range_filter(predicate: predicates.Predicate, *, strict: bool = False) -> RangeFilter:
    """A function from ranges to "may some row match", or strictly "does every row match"."""
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
    """A stored bound as a value of the type, whatever width it has after a promotion.

    None, for unknown, also when it reads as NaN, which some writers stored, or cannot be read at
    all.
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
    """The leaf and the bounds in every order that the bounds may have been found in."""
    yield leaf, range_.lower, range_.upper
    if isinstance(leaf.column.type, UUIDType):
        lower, upper = (
            None if b is None else java_uuid_key(b) for b in (range_.lower, range_.upper)
        )
        yield in_java_uuid_order(leaf), lower, upper


def in_java_uuid_order(leaf: predicates.BoundLeaf) -> predicates.BoundLeaf:
    """The leaf with its literals as keys of Java's order of uuids."""
    match leaf:
        case predicates.BoundLiteral():
            return replace(leaf, literal=java_uuid_key(leaf.literal))
        case predicates.BoundSet():
            return replace(leaf, literals=frozenset(map(java_uuid_key, leaf.literals)))
        case _:
            return leaf


def java_uuid_key(uuid: bytes) -> bytes:
    """Bytes that compare as Java compares uuids: by two halves, each a signed number."""
    return bytes((uuid[0] ^ 0x80, *uuid[1:8], uuid[8] ^ 0x80, *uuid[9:]))


def _special_matches(leaf: predicates.BoundLeaf) -> tuple[bool, bool]:
    """Whether the leaf selects null, and NaN where the column can hold it."""
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
            # texts with the prefix are contiguous, and the prefix itself is the first of them
            return (lower is None or lower[: len(prefix)] <= prefix) and (
                upper is None or upper >= prefix
            )
        case predicates.BoundLiteral(op="not_starts_with", literal=prefix):
            return not _all_start_with(lower, upper, prefix)
        case _:
            # bounds need not be values, so they never rule out != and NOT IN
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
