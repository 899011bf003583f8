"""Inclusive projections keep every matching row's partition, strict ones only full matches."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.evaluation import evaluate
from iceberg_pyspark.expressions.file_filters import compile_residual
from iceberg_pyspark.expressions.literals import integer_range
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    BoundColumn,
    BoundLeaf,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    LiteralPredicate,
    Not,
    Predicate,
)
from iceberg_pyspark.expressions.projection import project_inclusive, project_strict
from iceberg_pyspark.expressions.rewriting import and_
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec, partition_type
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
    accepts,
    apply_transform,
)
from iceberg_pyspark.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    Type,
)
from iceberg_pyspark.spec.values import unscaled_value
from tests.support.strategies import (
    PRIMITIVE_TYPES,
    columns,
    leaves,
    nullable,
    predicates,
    schema_of,
)

TRANSFORMS: tuple[Transform, ...] = (
    IdentityTransform(),
    BucketTransform(3),
    TruncateTransform(1),
    TruncateTransform(2),
    TruncateTransform(7),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
)
DEFINED = [(t, p) for t in TRANSFORMS for p in PRIMITIVE_TYPES if accepts(t, p)]
TIMES = (YearTransform, MonthTransform, DayTransform, HourTransform)


def spec_of(*transforms: Transform, source_id: int = 1) -> PartitionSpec:
    return PartitionSpec(
        spec_id=0,
        fields=tuple(
            PartitionField(source_ids=(source_id,), field_id=1000 + i, name=f"p{i}", transform=t)
            for i, t in enumerate(transforms)
        ),
    )


def type_of(spec: PartitionSpec, column: BoundColumn) -> StructType:
    return partition_type(spec, [schema_of([column])])


def storable(type_: Type, value: Any) -> bool:
    match type_:
        case IntegerType() | DateType():
            return -(2**31) <= int(value) < 2**31
        case LongType():
            return -(2**63) <= int(value) < 2**63
        case DecimalType(precision=precision):
            unscaled: int = unscaled_value(value)
            return abs(unscaled) < int(10**precision)
        case _:
            return True


def partition_values(
    column: BoundColumn, transform: Transform, partition: StructType, value: Any
) -> list[Any] | None:
    """Return what writers may store for the value, or None if nothing (docs/conformance.md 53)."""
    t = apply_transform(transform, column.type, value)
    if t is None:
        return [None]
    if not storable(partition.fields[0].type, t):
        return None
    old = isinstance(transform, TIMES) and not (
        isinstance(transform, DayTransform) and isinstance(column.type, DateType)
    )
    return [t, t + 1] if old and t < 0 else [t]


@st.composite
def cases(draw: DrawFn) -> tuple[BoundColumn, Transform, Predicate, Any]:
    transform, type_ = draw(st.sampled_from(DEFINED))
    [column] = columns(type_)
    leaf = draw(leaves(column))
    predicate = draw(st.just(leaf) | st.just(Not(leaf)) | predicates([column]))
    return column, transform, predicate, draw(near(leaf) | nullable(type_))


def near(leaf: BoundLeaf) -> SearchStrategy[Any]:
    """Draw the leaf's literals and their neighbours, which show off-by-one errors."""
    match leaf:
        case BoundLiteral(literal=literal):
            values = [literal]
        case BoundSet(literals=members):
            values = list(members)
        case _:
            return st.none()
    if isinstance(leaf.column.type, IntegerType | LongType | DateType | TimestampType):
        low, high = integer_range(leaf.column.type)
        values = [v + step for v in values for step in (-1, 0, 1) if low <= v + step <= high]
    elif isinstance(leaf.column.type, StringType):
        values += [v + "a" for v in values] + [v[:-1] for v in values]
    return st.sampled_from(values)


@given(cases())
@settings(max_examples=settings().max_examples * 6)
def test_projections_never_drop_a_matching_row_and_never_promise_too_much(
    case: tuple[BoundColumn, Transform, Predicate, Any],
) -> None:
    column, transform, predicate, value = case
    spec = spec_of(transform)
    partition = type_of(spec, column)
    matches = evaluate(predicate, {1: value}) is True
    for stored in partition_values(column, transform, partition, value) or []:
        in_partition = {1000: stored}
        if matches:
            assert evaluate(project_inclusive(predicate, spec, partition), in_partition) is True
        if evaluate(project_strict(predicate, spec, partition), in_partition) is True:
            assert matches


@given(cases(), st.data())
@settings(max_examples=settings().max_examples * 3)
def test_a_residual_selects_the_same_rows_of_its_partition(
    case: tuple[BoundColumn, Transform, Predicate, Any], data: st.DataObject
) -> None:
    column, transform, predicate, value = case
    spec = spec_of(transform, VoidTransform())
    partition = type_of(spec, column)
    for stored in partition_values(column, transform, partition, value) or []:
        residual = compile_residual(predicate, spec, partition)((stored, None))
        row: Mapping[int, Any] = {1: value}
        assert (evaluate(residual, row) is True) == (evaluate(predicate, row) is True)


def project(
    column_type: PrimitiveType, transform: Transform, op: Any, literal: Any, *, strict: bool = False
) -> tuple[Any, Any] | Predicate:
    """Return (op, literal) of the projection of a comparison, if the projection is a comparison."""
    [column] = columns(column_type)
    spec = spec_of(transform)
    bound = bind(LiteralPredicate(op, "c1", literal), schema_of([column]))
    result = (project_strict if strict else project_inclusive)(bound, spec, type_of(spec, column))
    match result:
        case BoundLiteral(op=found_op, literal=value):
            return found_op, value
        case BoundSet(op=found_op, literals=values):
            return found_op, values
        case BoundUnary(op=found_op):
            return found_op, None
    return result


DAY = 20_454  # 2026-01-01


def test_a_range_through_day_keeps_the_day_of_the_literal() -> None:
    """docs/conformance.md 58."""
    ts = datetime(2026, 1, 1, 12)
    assert project(TimestampType(), DayTransform(), "gt", ts) == ("gt_eq", DAY)
    assert project(TimestampType(), DayTransform(), "lt", ts) == ("lt_eq", DAY)
    assert project(TimestampType(), DayTransform(), "not_eq", ts) == ("not_null", None)
    midnight = date(2026, 1, 1)
    assert project(TimestampType(), DayTransform(), "lt", midnight) == ("lt_eq", DAY - 1)
    assert project(TimestampType(), DayTransform(), "gt_eq", midnight) == ("gt_eq", DAY)
    assert project(TimestampType(), DayTransform(), "lt", midnight, strict=True) == ("lt", DAY)
    assert project(TimestampType(), DayTransform(), "gt_eq", midnight, strict=True) == (
        "gt",
        DAY - 1,
    )


def test_day_results_are_dates_and_day_of_a_date_is_exact() -> None:
    [column] = columns(DateType())
    spec = spec_of(DayTransform())
    bound = bind(LiteralPredicate("eq", "c1", "2026-01-01"), schema_of([column]))
    for project_ in (project_inclusive, project_strict):
        result = project_(bound, spec, type_of(spec, column))
        assert isinstance(result, BoundLiteral)
        assert result.column == BoundColumn(
            field_id=1000, name="p0", type=DateType(), required=False
        )
        assert (result.op, result.literal) == ("eq", DAY)


@pytest.mark.parametrize("transform", [HourTransform(), DayTransform(), YearTransform()])
def test_files_that_stored_0_for_1969_are_kept(transform: Transform) -> None:
    """docs/conformance.md 55."""
    last_of_1969 = "1969-12-31 23:59:59.999999"
    assert project(TimestampType(), transform, "eq", last_of_1969) == ("in", {-1, 0})
    assert project(TimestampType(), transform, "lt_eq", last_of_1969) == ("lt_eq", 0)
    assert project(TimestampType(), transform, "not_eq", last_of_1969, strict=True) == (
        "not_in",
        {-1, 0},
    )
    # 0 may also be a time in 1969, so it does not prove ts >= 1970.
    assert project(TimestampType(), transform, "gt_eq", "1970-01-01", strict=True) == ("gt", 0)


def test_bucket_projects_only_equality() -> None:
    """docs/conformance.md 58."""
    bucket = BucketTransform(16)
    assert project(IntegerType(), bucket, "eq", 34) == ("eq", 3)
    assert project(IntegerType(), bucket, "lt", 34) == ("not_null", None)
    assert project(IntegerType(), bucket, "not_eq", 34) == ("not_null", None)
    assert project(IntegerType(), bucket, "not_eq", 34, strict=True) == ("not_eq", 3)
    assert project(IntegerType(), bucket, "eq", 34, strict=True) == AlwaysFalse()
    assert project(StringType(), bucket, "starts_with", "ice") == ("not_null", None)


def test_truncate_projects_numbers_and_prefixes() -> None:
    assert project(IntegerType(), TruncateTransform(10), "lt", 20) == ("lt_eq", 10)
    assert project(IntegerType(), TruncateTransform(10), "lt", 20, strict=True) == ("lt", 20)
    assert project(IntegerType(), TruncateTransform(10), "gt_eq", -1) == ("gt_eq", -10)
    for literal, first_doubtful in {18: 10, 19: 20}.items():
        assert project(IntegerType(), TruncateTransform(10), "lt_eq", literal, strict=True) == (
            "lt",
            first_doubtful,
        )
    for literal, last_doubtful in {10: 0, 11: 10}.items():
        assert project(IntegerType(), TruncateTransform(10), "gt_eq", literal, strict=True) == (
            "gt",
            last_doubtful,
        )
    assert project(IntegerType(), TruncateTransform(1), "eq", 5, strict=True) == ("eq", 5)
    assert project(IntegerType(), TruncateTransform(2), "eq", 4, strict=True) == AlwaysFalse()
    assert project(
        DecimalType(9, 2), TruncateTransform(100), "lt_eq", Decimal("1.99"), strict=True
    ) == ("lt", Decimal("2.00"))
    width = TruncateTransform(3)
    assert project(StringType(), width, "starts_with", "ab") == ("starts_with", "ab")
    assert project(StringType(), width, "starts_with", "abc") == ("eq", "abc")
    assert project(StringType(), width, "starts_with", "abcd") == ("eq", "abc")
    assert project(StringType(), width, "starts_with", "abcd", strict=True) == AlwaysFalse()
    assert project(StringType(), width, "not_starts_with", "abc") == ("not_eq", "abc")
    assert project(StringType(), width, "not_starts_with", "abcd") == ("not_null", None)
    assert project(StringType(), width, "eq", "\U0001f600bcd") == ("eq", "\U0001f600bc")
    assert project(BinaryType(), width, "gt", b"\xff\xff\xff\xff") == ("gt_eq", b"\xff\xff\xff")


def test_truncating_next_to_the_smallest_int_says_only_not_null() -> None:
    """docs/conformance.md 53."""
    smallest = -(2**31)
    assert project(IntegerType(), TruncateTransform(10), "eq", smallest) == ("not_null", None)
    result = project(IntegerType(), TruncateTransform(10), "lt", smallest + 1, strict=True)
    assert result == AlwaysFalse()


@pytest.mark.parametrize("transform", [VoidTransform(), UnknownTransform("zorder")])
def test_void_and_unknown_transforms_say_nothing(transform: Transform) -> None:
    assert project(IntegerType(), transform, "eq", 3) == AlwaysTrue()
    assert project(IntegerType(), transform, "eq", 3, strict=True) == AlwaysFalse()


def test_transform_of_several_columns_prunes_nothing() -> None:
    [column] = columns(IntegerType())
    spec = PartitionSpec(
        spec_id=0,
        fields=(
            PartitionField(
                source_ids=(1, 2), field_id=1000, name="p", transform=BucketTransform(4)
            ),
        ),
    )
    leaf = BoundLiteral("eq", column, 3)
    assert project_inclusive(leaf, spec, type_of(spec, column)) == AlwaysTrue()
    assert project_strict(leaf, spec, type_of(spec, column)) == AlwaysFalse()


def test_several_fields_of_one_column_are_all_used() -> None:
    [column] = columns(TimestampType())
    spec = spec_of(DayTransform(), HourTransform())
    bound = bind(LiteralPredicate("gt_eq", "c1", "2026-01-01 01:00:00"), schema_of([column]))
    result = project_inclusive(bound, spec, type_of(spec, column))
    day = BoundColumn(field_id=1000, name="p0", type=DateType(), required=False)
    hour = BoundColumn(field_id=1001, name="p1", type=IntegerType(), required=False)
    assert result == and_(
        BoundLiteral("gt_eq", day, DAY), BoundLiteral("gt_eq", hour, DAY * 24 + 1)
    )


def test_a_promoted_source_is_projected_with_its_current_type() -> None:
    """docs/conformance.md 57."""
    # written as int, read as long: literals beyond int still compare
    assert project(LongType(), TruncateTransform(100), "lt_eq", 2**40) == (
        "lt_eq",
        2**40 - 2**40 % 100,
    )
    assert project(LongType(), BucketTransform(16), "eq", 34) == ("eq", 3)


def test_a_partition_predicate_on_other_columns_is_left_alone() -> None:
    other = columns(IntegerType(), IntegerType())[1]
    spec = spec_of(IdentityTransform())
    partition = type_of(spec, columns(IntegerType())[0])
    leaf = BoundLiteral("eq", other, 1)
    assert project_inclusive(leaf, spec, partition) == AlwaysTrue()
    assert project_strict(leaf, spec, partition) == AlwaysFalse()
    assert compile_residual(leaf, spec, partition)((5,)) == leaf


def test_residual_drops_what_identity_decides() -> None:
    region, amount = columns(StringType(), IntegerType())
    spec = spec_of(IdentityTransform())
    partition = type_of(spec, region)
    request = and_(BoundLiteral("eq", region, "eu"), BoundLiteral("gt", amount, 5))
    assert compile_residual(request, spec, partition)(("eu",)) == BoundLiteral("gt", amount, 5)
    assert compile_residual(request, spec, partition)(("us",)) == AlwaysFalse()
    assert compile_residual(request, spec, partition)((None,)) == AlwaysFalse()
