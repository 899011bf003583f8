"""Row groups that a predicate prunes at read time, by the statistics in the file's footer."""

import io as streams
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceberg_pyspark.arrow.arrow_schemas import arrow_type, scalar_of
from iceberg_pyspark.arrow.formats.row_group_filter import compile_row_group_filter
from iceberg_pyspark.arrow.read.row_filter import compile_row_mask
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundColumn,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    Not,
    Or,
    Predicate,
)
from iceberg_pyspark.spec.types import (
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestamptzType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.scan_tasks import (
    context_of,
    optional,
    read_rows,
    schema_of,
    task_of,
    write_rows,
)
from tests.support.strategies import PRIMITIVE_TYPES, columns, leaves, nullable


def row_groups(predicate: Predicate, groups: list[pa.Array], **options: Any) -> list[int]:
    """Return the indexes of the row groups of column 1 that the predicate keeps."""
    numbers = []
    for i, values in enumerate(groups):
        stream = streams.BytesIO()
        pq.write_table(pa.table({"c": values}), stream, **options)
        group = pq.read_metadata(stream).row_group(0)
        if compile_row_group_filter(predicate, {1: 0})(group):
            numbers.append(i)
    return numbers


def column(type_: PrimitiveType) -> BoundColumn:
    return BoundColumn(field_id=1, name="c", type=type_, required=False)


LONG = column(LongType())
GROUPS = [pa.array(v, pa.int64()) for v in ([1, 5], [6, 9], [None, None], [10, None])]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (BoundLiteral("lt", LONG, 6), [0]),
        (BoundLiteral("lt_eq", LONG, 6), [0, 1]),
        (BoundLiteral("gt", LONG, 9), [3]),
        (BoundLiteral("gt_eq", LONG, 9), [1, 3]),
        (BoundLiteral("eq", LONG, 5), [0]),
        (BoundLiteral("not_eq", LONG, 5), [0, 1, 3]),
        (BoundSet("in", LONG, frozenset((5, 7))), [0, 1]),
        (BoundSet("not_in", LONG, frozenset((5, 7))), [0, 1, 3]),
        (BoundUnary("is_null", LONG), [2, 3]),
        (BoundUnary("not_null", LONG), [0, 1, 3]),
        (And(BoundLiteral("gt", LONG, 1), BoundLiteral("lt", LONG, 7)), [0, 1]),
        (Or(BoundLiteral("lt", LONG, 2), BoundLiteral("eq", LONG, 10)), [0, 3]),
        (Not(BoundLiteral("lt", LONG, 6)), [0, 1, 2, 3]),
        (AlwaysFalse(), []),
        (AlwaysTrue(), [0, 1, 2, 3]),
    ],
)
def test_row_groups_without_a_matching_row_are_left_out(
    predicate: Predicate, expected: list[int]
) -> None:
    assert row_groups(predicate, GROUPS) == expected


def test_missing_statistics_keep_the_row_group() -> None:
    assert row_groups(BoundLiteral("lt", LONG, 0), GROUPS, write_statistics=False) == [
        0,
        1,
        2,
        3,
    ]


def test_columns_whose_statistics_are_not_trusted_keep_the_row_group() -> None:
    stream = streams.BytesIO()
    pq.write_table(pa.table({"c": [1]}), stream)
    group = pq.read_metadata(stream).row_group(0)
    assert compile_row_group_filter(BoundLiteral("lt", LONG, 0), {})(group)


def test_nan_is_above_every_bound() -> None:
    groups = [pa.array([1.0, float("nan")]), pa.array([float("nan")]), pa.array([1.0])]
    double = column(DoubleType())
    assert row_groups(BoundLiteral("gt", double, 5.0), groups) == [0, 1, 2]
    assert row_groups(BoundLiteral("lt", double, 0.5), groups) == [1]
    assert row_groups(BoundUnary("is_nan", double), groups) == [0, 1, 2]


@pytest.mark.parametrize(("prefix", "expected"), [("b", [0]), ("bb", [0]), ("c", [1]), ("d", [])])
def test_prefixes_meet_bounds_of_any_length(prefix: str, expected: list[int]) -> None:
    groups = [pa.array(["a", "bbb"]), pa.array(["ca", "cz"])]
    assert row_groups(BoundLiteral("starts_with", column(StringType()), prefix), groups) == expected


@pytest.mark.parametrize(
    ("type_", "low", "high"),
    [
        (DateType(), -5, 5),
        (TimestamptzType(), -1, 10**15),
        (StringType(), "a", "\u00e9"),
        (IntegerType(), -(2**31), 2**31 - 1),
    ],
)
def test_raw_statistics_compare_as_values(type_: PrimitiveType, low: Any, high: Any) -> None:
    groups = [pa.array([scalar_of(type_, v).as_py()], arrow_type(type_)) for v in (low, high)]
    assert row_groups(BoundLiteral("eq", column(type_), high), groups) == [1]
    assert row_groups(BoundLiteral("lt", column(type_), high), groups) == [0]


@settings(max_examples=settings().max_examples * 3 // 2)
@given(st.data())
def test_pruning_never_drops_a_matching_row(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from(PRIMITIVE_TYPES))
    (bound,) = columns(type_)
    predicate = data.draw(leaves(bound))
    values = data.draw(st.lists(nullable(type_), min_size=1, max_size=4))
    array = pa.concat_arrays([pa.array([scalar_of(type_, v)]) for v in values])
    mask = compile_row_mask(predicate)(len(array), lambda _: array)
    if pa.compute.any(mask).as_py():
        assert row_groups(predicate, [array]) == [0]


def test_promoted_columns_are_not_pruned_and_still_filtered() -> None:
    io = MemoryFileIO()
    before, after = (schema_of(optional(1, "c", t)) for t in (IntegerType(), LongType()))
    write_rows(io, "/f", before, [{"c": i} for i in range(10)], row_group_size=2)
    context = context_of(after, predicate=BoundLiteral("gt", LONG, 7))
    assert read_rows(context, task_of(io, "/f"), io) == [{"c": 8}, {"c": 9}]


def test_a_filter_the_partition_proves_is_not_asked() -> None:
    io = MemoryFileIO()
    schema = schema_of(optional(1, "c", LongType()))
    write_rows(io, "/f", schema, [{"c": 1}])
    context = context_of(schema, predicate=BoundLiteral("gt", LONG, 7))
    assert read_rows(context, task_of(io, "/f", filter_satisfied=True), io) == [{"c": 1}]
    assert read_rows(context, task_of(io, "/f"), io) == []
