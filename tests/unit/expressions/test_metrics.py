"""Filters on metrics and summaries err on the safe side, whatever is missing or truncated."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.evaluation import evaluate
from iceberg_pyspark.expressions.file_filters import compile_manifest_filter, compile_metrics_filter
from iceberg_pyspark.expressions.predicates import (
    BoundColumn,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    LiteralPredicate,
    Not,
    Predicate,
    Test,
)
from iceberg_pyspark.spec.manifests import DataFile, PartitionFieldSummary
from iceberg_pyspark.spec.types import (
    BinaryType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    Type,
    UUIDType,
)
from iceberg_pyspark.spec.values import value_to_bytes
from tests.support.strategies import columns, nullable, one_column_predicates

NAN = float("nan")
INT, DOUBLE, TEXT = columns(IntegerType(), DoubleType(), StringType())


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


def truncated_lower(type_: Type, value: Any, width: int) -> Any:
    return value[:width] if isinstance(type_, StringType | BinaryType) else value


def truncated_upper(type_: Type, value: Any, width: int) -> Any:
    """Return the shortest truncated upper bound, or None if there is none."""
    if not isinstance(type_, StringType | BinaryType) or len(value) <= width:
        return value
    prefix = value[:width]
    while prefix:
        if isinstance(type_, BinaryType):
            if prefix[-1] < 255:
                return prefix[:-1] + bytes([prefix[-1] + 1])
        elif ord(prefix[-1]) < 0x10FFFF:
            following = ord(prefix[-1]) + 1
            return prefix[:-1] + chr(0xE000 if following == 0xD800 else following)
        prefix = prefix[:-1]
    return None


def some_of(draw: DrawFn, entries: dict[int, Any]) -> Mapping[int, Any] | None:
    """Draw the map, an empty map, or None instead of the map."""
    choices: list[Mapping[int, Any] | None] = [entries, entries, entries, {}, None]
    choice: Mapping[int, Any] | None = draw(st.sampled_from(choices))
    return choice


@st.composite
def files(draw: DrawFn) -> tuple[BoundColumn, Predicate, list[Any], DataFile]:
    column, predicate = draw(one_column_predicates())
    type_ = column.type
    values = draw(st.lists(nullable(type_), max_size=5) | st.lists(st.none(), max_size=2))
    if draw(st.booleans()):
        values = [v for v in values if v is not None]
    ordinary = [v for v in values if v is not None and not is_nan(v)]
    width = draw(st.integers(1, 3))
    lower = {1: truncated_lower(type_, min(ordinary), width)} if ordinary else {}
    upper = {1: truncated_upper(type_, max(ordinary), width)} if ordinary else {}
    if not ordinary and draw(st.booleans()) and isinstance(type_, DoubleType):
        lower = upper = {1: NAN}
    nans = {1: sum(map(is_nan, values))} if isinstance(type_, FloatType | DoubleType) else {}
    file = DataFile(
        file_path="f",
        record_count=len(values),
        file_size_in_bytes=1,
        value_counts=some_of(draw, {1: len(values)}),
        null_value_counts=some_of(draw, {1: sum(v is None for v in values)}),
        nan_value_counts=some_of(draw, nans),
        lower_bounds=some_of(draw, to_bytes(type_, lower)),
        upper_bounds=some_of(draw, to_bytes(type_, upper)),
    )
    if draw(st.booleans()):
        file = contradictory(draw, file)
    return column, predicate, values, file


def contradictory(draw: DrawFn, file: DataFile) -> DataFile:
    """Return a file with a sentinel, or with metrics of which one must be wrong."""
    rows = file.record_count
    nulls = (file.null_value_counts or {}).get(1, 0)
    more = st.integers(1, 9)
    changes: list[dict[str, Any]] = [
        {"record_count": draw(st.sampled_from([-1, -(2**63), 0]))},
        {"value_counts": {1: -1}},
        {"null_value_counts": {1: draw(st.sampled_from([-1, -rows - 1]))}},
        {"nan_value_counts": {1: -1}},
        # more nulls or NaNs than values, more values than rows
        {"value_counts": {1: rows}, "null_value_counts": {1: rows + draw(more)}},
        {"value_counts": {1: rows}, "nan_value_counts": {1: rows + draw(more)}},
        {"value_counts": {1: rows + draw(more)}},
        {"value_counts": {1: rows + 1}, "null_value_counts": {1: rows + 1}},
        {"null_value_counts": {1: rows + draw(more)}},
        # the values without nulls were counted
        {"value_counts": {1: rows - nulls}},
        # no value, but bounds of values
        *(
            [{"value_counts": {1: rows}, "null_value_counts": {1: rows}}]
            if file.lower_bounds
            else []
        ),
        {"lower_bounds": {1: b"\xff\xfe\xfd"}},
        {"upper_bounds": {1: b""}} if file.lower_bounds and file.lower_bounds.get(1) else {},
    ]
    if file.lower_bounds != file.upper_bounds:
        changes.append({"lower_bounds": file.upper_bounds, "upper_bounds": file.lower_bounds})
    return replace(file, **draw(st.sampled_from(changes)))


def to_bytes(type_: Type, bounds: dict[int, Any]) -> dict[int, Any]:
    return {k: value_to_bytes(type_, v) for k, v in bounds.items() if v is not None}


@given(files())
@settings(max_examples=settings().max_examples * 2)
def test_metrics_never_drop_a_matching_file_and_never_promise_too_much(
    case: tuple[BoundColumn, Predicate, list[Any], DataFile],
) -> None:
    _, predicate, values, file = case
    selected = [evaluate(predicate, {1: v}) is True for v in values]
    if any(selected):
        assert compile_metrics_filter(predicate)(file)
    if compile_metrics_filter(predicate, strict=True)(file):
        assert all(selected)


@st.composite
def manifests(draw: DrawFn) -> tuple[Predicate, BoundColumn, list[Any], PartitionFieldSummary]:
    column, predicate = draw(one_column_predicates())
    values = draw(st.lists(nullable(column.type), min_size=1, max_size=4))
    ordinary = [v for v in values if v is not None and not is_nan(v)]
    with_nan = any(map(is_nan, values))
    summary = PartitionFieldSummary(
        contains_null=None in values,
        contains_nan=draw(st.sampled_from([with_nan, None])),
        lower_bound=value_to_bytes(column.type, min(ordinary)) if ordinary else None,
        upper_bound=value_to_bytes(column.type, max(ordinary)) if ordinary else None,
    )
    return predicate, column, values, summary


def struct_of(column: BoundColumn) -> StructType:
    return StructType((NestedField(field_id=column.field_id, name=column.name, type=column.type),))


@given(manifests())
@settings(max_examples=settings().max_examples * 2)
def test_summaries_never_drop_a_manifest_with_a_matching_partition(
    case: tuple[Predicate, BoundColumn, list[Any], PartitionFieldSummary],
) -> None:
    predicate, column, values, summary = case
    may_match = compile_manifest_filter(predicate, struct_of(column))
    if any(evaluate(predicate, {1: v}) is True for v in values):
        assert may_match((summary,))
    assert may_match(None)


def file_of(
    *,
    values: int = 10,
    nulls: int | None = 0,
    nans: int | None = None,
    lower: bytes | None = None,
    upper: bytes | None = None,
    field_id: int = 1,
) -> DataFile:
    def entry(value: Any) -> dict[int, Any] | None:
        return None if value is None else {field_id: value}

    return DataFile(
        file_path="f",
        record_count=10,
        file_size_in_bytes=1,
        value_counts={field_id: values},
        null_value_counts=entry(nulls),
        nan_value_counts=entry(nans),
        lower_bounds=entry(lower),
        upper_bounds=entry(upper),
    )


def may(predicate: Predicate, file: DataFile) -> bool:
    return compile_metrics_filter(predicate)(file)


def must(predicate: Predicate, file: DataFile) -> bool:
    return compile_metrics_filter(predicate, strict=True)(file)


def int_bytes(value: int) -> bytes:
    return struct.pack("<i", value)


ONE_TO_NINE = file_of(lower=int_bytes(1), upper=int_bytes(9))


@pytest.mark.parametrize(
    ("op", "possible", "dropped", "proven", "open_"),
    [
        ("lt", 2, 1, 10, 9),
        ("lt_eq", 1, 0, 9, 8),
        ("gt", 8, 9, 0, 1),
        ("gt_eq", 9, 10, 1, 2),
        ("eq", 9, 10, None, 9),
        ("not_eq", 5, None, 10, 9),
    ],
)
def test_bounds_drop_and_prove(
    op: Any, possible: int, dropped: int | None, proven: int | None, open_: int
) -> None:
    assert may(BoundLiteral(op, INT, possible), ONE_TO_NINE)
    assert not must(BoundLiteral(op, INT, open_), ONE_TO_NINE)
    if dropped is not None:
        assert not may(BoundLiteral(op, INT, dropped), ONE_TO_NINE)
    if proven is not None:
        assert must(BoundLiteral(op, INT, proven), ONE_TO_NINE)


def test_sets_drop_and_prove() -> None:
    one = file_of(lower=int_bytes(5), upper=int_bytes(5))
    assert not may(BoundSet("in", INT, frozenset((0, 10))), ONE_TO_NINE)
    assert may(BoundSet("in", INT, frozenset((0, 5))), ONE_TO_NINE)
    assert must(BoundSet("in", INT, frozenset((5, 6))), one)
    assert not must(BoundSet("in", INT, frozenset((1, 9))), ONE_TO_NINE)
    assert must(BoundSet("not_in", INT, frozenset((0, 10))), ONE_TO_NINE)
    assert must(Not(BoundSet("in", INT, frozenset((0, 10)))), ONE_TO_NINE)
    # docs/conformance.md 48: bounds need not be values, so bounds never rule out != and NOT IN.
    assert may(BoundSet("not_in", INT, frozenset((5, 6))), one)
    assert may(BoundLiteral("not_eq", INT, 5), one)


def test_a_missing_count_is_unknown_not_zero() -> None:
    """docs/conformance.md 46."""
    unknown = file_of(nulls=None, lower=int_bytes(1), upper=int_bytes(9))
    assert may(BoundUnary("is_null", INT), unknown)
    assert not must(BoundUnary("not_null", INT), unknown)
    assert not must(BoundLiteral("gt", INT, 0), unknown)


@pytest.mark.parametrize(
    ("op", "file", "may_match", "must_match"),
    [
        ("is_null", file_of(nulls=0), False, False),
        ("is_null", file_of(nulls=10), True, True),
        ("is_null", file_of(nulls=3), True, False),
        ("not_null", file_of(nulls=10), False, False),
        ("not_null", file_of(nulls=0), True, True),
        ("is_nan", file_of(nans=0, field_id=2), False, False),
        ("is_nan", file_of(nans=10, field_id=2), True, True),
        ("is_nan", file_of(nulls=10, field_id=2), False, False),
        ("not_nan", file_of(nans=10, field_id=2), False, False),
        ("not_nan", file_of(nulls=5, nans=0, field_id=2), True, True),
        ("not_nan", file_of(nulls=5, nans=5, field_id=2), True, False),
    ],
)
def test_tests_use_counts(op: Test, file: DataFile, may_match: bool, must_match: bool) -> None:
    """docs/conformance.md 48."""
    leaf = BoundUnary(op, DOUBLE if op.endswith("nan") else INT)
    assert may(leaf, file) is may_match
    assert must(leaf, file) is must_match


def test_a_column_of_nulls_matches_no_comparison() -> None:
    """docs/conformance.md 48."""
    empty = file_of(nulls=10)
    for op in ("eq", "not_eq", "lt"):
        assert not may(BoundLiteral(op, INT, 5), empty)
    assert not may(BoundSet("not_in", INT, frozenset((1, 2))), empty)


def test_nan_rows_are_above_the_upper_bound() -> None:
    bounds = {"lower": struct.pack("<d", 1.0), "upper": struct.pack("<d", 9.0)}
    above = BoundLiteral("gt", DOUBLE, 9.0)
    assert may(above, file_of(nans=None, field_id=2, **bounds))  # type: ignore[arg-type]
    assert may(above, file_of(nans=1, field_id=2, **bounds))  # type: ignore[arg-type]
    assert not may(above, file_of(nans=0, field_id=2, **bounds))  # type: ignore[arg-type]
    below = BoundLiteral("lt", DOUBLE, 10.0)
    assert not must(below, file_of(nans=1, field_id=2, **bounds))  # type: ignore[arg-type]
    assert must(below, file_of(nans=0, field_id=2, **bounds))  # type: ignore[arg-type]


def test_bounds_that_read_as_nan_are_unknown() -> None:
    """docs/conformance.md 42."""
    nan = struct.pack("<d", NAN)
    file = file_of(nans=0, lower=nan, upper=nan, field_id=2)
    for op in ("lt", "gt", "eq", "not_eq"):
        leaf = BoundLiteral(op, DOUBLE, 5.0)
        assert may(leaf, file)
        assert not must(leaf, file)
    assert may(BoundSet("in", DOUBLE, frozenset((1.0, 2.0))), file)
    assert not must(BoundSet("not_in", DOUBLE, frozenset((1.0, 2.0))), file)


def test_a_lower_bound_of_positive_zero_holds_negative_zero() -> None:
    """docs/conformance.md 43."""
    file = file_of(nans=0, lower=struct.pack("<d", 0.0), upper=struct.pack("<d", 1.0), field_id=2)
    assert may(BoundLiteral("eq", DOUBLE, -0.0), file)
    assert may(BoundLiteral("lt_eq", DOUBLE, -0.0), file)


@pytest.mark.parametrize(
    ("type_", "bound", "literal"),
    [
        (LongType(), int_bytes(5), 6),
        (DoubleType(), struct.pack("<f", 5.0), math.inf),
        (TimestampType(), int_bytes(5), 6 * 86_400_000_000),
    ],
)
def test_bounds_written_before_a_promotion_are_read_by_length(
    type_: Any, bound: bytes, literal: Any
) -> None:
    """docs/conformance.md 41."""
    [column] = columns(type_)
    file = file_of(nans=0, lower=bound, upper=bound)
    assert not may(BoundLiteral("gt_eq", column, literal), file)
    assert may(BoundLiteral("lt", column, literal), file)


def test_uuid_bounds_are_right_in_javas_order_and_in_the_specifications() -> None:
    low, middle, high = (bytes([first]) + bytes(15) for first in (0x07, 0x79, 0xF7))
    [column] = columns(UUIDType())
    # In Java's order, the UUID with the highest bit set is the smallest of these three.
    for lower, upper in ((low, high), (high, middle)):
        file = file_of(lower=lower, upper=upper)
        for value in (low, middle, high):
            assert may(BoundLiteral("eq", column, value), file)
            assert not must(BoundLiteral("not_eq", column, value), file)
        assert may(BoundSet("in", column, frozenset((low, middle))), file)
    file = file_of(lower=low, upper=low)
    for op in ("eq", "gt"):
        assert not may(BoundLiteral(op, column, middle), file)
    assert may(BoundLiteral("lt", column, middle), file)
    assert must(BoundLiteral("lt", column, middle), file)
    # Between the bounds in one order and outside in the other: possible, but not proven.
    assert may(BoundLiteral("gt", column, high), file)
    assert not must(BoundLiteral("lt", column, high), file)


def test_a_bound_that_cannot_be_read_is_unknown() -> None:
    [unsized] = columns(UUIDType())
    assert may(BoundLiteral("eq", unsized, bytes(16)), file_of(lower=b"\xff", upper=b"\xff"))
    file = file_of(lower=b"\xff\xfe", upper=b"\xc3", field_id=3)
    assert may(BoundLiteral("eq", TEXT, "a"), file)
    assert not must(BoundLiteral("not_eq", TEXT, "a"), file)


@pytest.mark.parametrize(
    ("lower", "upper", "prefix", "may_start", "may_not", "must_start", "must_not"),
    [
        (b"ab", b"ad", "abc", True, True, False, False),
        (b"a", b"b", "abcdef", True, True, False, False),
        (b"abcd", b"abcz", "abc", True, False, True, False),
        (b"b", b"c", "abc", False, True, False, True),
        (b"a", b"ab", "abc", False, True, False, True),
        (b"abc", b"abc", "abc", True, False, True, False),
    ],
)
def test_prefixes_against_shorter_and_longer_bounds(
    lower: bytes,
    upper: bytes,
    prefix: str,
    may_start: bool,
    may_not: bool,
    must_start: bool,
    must_not: bool,
) -> None:
    """docs/conformance.md 48."""
    file = file_of(lower=lower, upper=upper, field_id=3)
    starts, starts_not = (
        BoundLiteral("starts_with", TEXT, prefix),
        BoundLiteral("not_starts_with", TEXT, prefix),
    )
    assert (may(starts, file), may(starts_not, file)) == (may_start, may_not)
    assert (must(starts, file), must(starts_not, file)) == (must_start, must_not)


@pytest.mark.parametrize("record_count", [0, -1])
def test_record_count_zero_is_unknown_unless_a_column_confirms_it(
    record_count: int,
) -> None:
    """A scan without a filter reads such a file, so a filter must not hide its rows."""
    leaf = BoundLiteral("eq", INT, 5)
    file = DataFile(file_path="f", record_count=record_count, file_size_in_bytes=1)
    assert may(leaf, file)
    assert not must(leaf, file)
    empty = replace(file, value_counts={1: 0}, null_value_counts={1: 0})
    assert not may(leaf, empty)
    assert must(leaf, empty)


IN_BOUNDS = DataFile(
    file_path="f",
    record_count=10,
    file_size_in_bytes=1,
    value_counts={1: 10},
    null_value_counts={1: 0},
    lower_bounds={1: int_bytes(1)},
    upper_bounds={1: int_bytes(9)},
)


@pytest.mark.parametrize(
    "changes",
    [
        {"value_counts": {1: -1}},
        {"null_value_counts": {1: -1}},
        {"null_value_counts": {1: 11}},
        {"value_counts": {1: 11}},
        {"value_counts": {1: 0}},
        # the writer has counted the values without nulls: half of the rows
        {"value_counts": {1: 5}, "null_value_counts": {1: 5}, "lower_bounds": {}},
        {"null_value_counts": {1: 10}},
        {"lower_bounds": {1: int_bytes(9)}, "upper_bounds": {1: int_bytes(1)}},
        {"record_count": -1, "value_counts": {1: -1}},
        {"record_count": 0},
    ],
)
def test_metrics_that_contradict_each_other_are_unknown(changes: dict[str, Any]) -> None:
    file = replace(IN_BOUNDS, **changes)
    assert may(BoundLiteral("eq", INT, 5), file)
    assert may(BoundUnary("not_null", INT), file)
    assert not must(BoundLiteral("eq", INT, 5), file)
    if "null_value_counts" in changes:
        assert may(BoundUnary("is_null", INT), file)
        assert not must(BoundLiteral("gt", INT, 0), file)


def test_rows_that_a_nested_column_does_not_count_may_be_null() -> None:
    # Some writers do not count the rows whose enclosing struct is null.
    file = file_of(values=8, nulls=0, lower=int_bytes(1), upper=int_bytes(9))
    assert may(BoundUnary("is_null", INT), file)
    assert not must(BoundLiteral("gt", INT, 0), file)


def test_an_unbound_predicate_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="'x' is not bound"):
        compile_metrics_filter(LiteralPredicate("eq", "x", 1))


def summary_matches(leaf: Predicate, column: BoundColumn, summary: PartitionFieldSummary) -> bool:
    return compile_manifest_filter(leaf, struct_of(column))((summary,))


def test_no_bounds_mean_only_nulls_or_nans() -> None:
    """docs/conformance.md 47."""
    nulls = PartitionFieldSummary(contains_null=True, contains_nan=False)
    assert not summary_matches(BoundLiteral("eq", INT, 5), INT, nulls)
    assert not summary_matches(BoundUnary("not_null", INT), INT, nulls)
    assert summary_matches(BoundUnary("is_null", INT), INT, nulls)
    nans = PartitionFieldSummary(contains_null=False, contains_nan=True)
    assert not summary_matches(BoundLiteral("lt", DOUBLE, 5.0), DOUBLE, nans)
    assert summary_matches(BoundLiteral("gt", DOUBLE, 5.0), DOUBLE, nans)
    assert summary_matches(BoundUnary("is_nan", DOUBLE), DOUBLE, nans)


def test_interop_a_summary_without_bounds_nulls_and_nans_is_unknown() -> None:
    quirk = PartitionFieldSummary(contains_null=False)
    for leaf in (BoundLiteral("eq", INT, 5), BoundUnary("is_null", INT)):
        assert summary_matches(leaf, INT, quirk)


def test_nan_bounds_in_summaries_are_unknown() -> None:
    """docs/conformance.md 42."""
    nan = struct.pack("<d", NAN)
    summary = PartitionFieldSummary(
        contains_null=False, contains_nan=False, lower_bound=nan, upper_bound=nan
    )
    assert summary_matches(BoundLiteral("eq", DOUBLE, 5.0), DOUBLE, summary)


def test_day_summaries_are_read_as_dates() -> None:
    [day] = columns(DateType())
    summary = PartitionFieldSummary(
        contains_null=False, lower_bound=int_bytes(10), upper_bound=int_bytes(20)
    )
    assert summary_matches(BoundLiteral("gt_eq", day, 20), day, summary)
    assert not summary_matches(BoundLiteral("gt", day, 20), day, summary)


def test_summaries_of_another_length_are_not_used() -> None:
    may_match = compile_manifest_filter(BoundLiteral("eq", INT, 5), struct_of(INT))
    assert may_match(())
