"""Filtering columns of entries agrees with the evaluators for single files."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from decimal import Context
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from iceberg_pyspark.expressions.evaluation import decode_bound, evaluate, java_uuid_key
from iceberg_pyspark.expressions.file_filters import compile_metrics_filter
from iceberg_pyspark.expressions.predicates import (
    BoundColumn,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    LiteralPredicate,
    Predicate,
)
from iceberg_pyspark.formats import known_manifests
from iceberg_pyspark.formats.encoding.physical_types import physical_type
from iceberg_pyspark.formats.known_manifests import in_blocks
from iceberg_pyspark.planning import entry_blocks, entry_filter
from iceberg_pyspark.planning.bound_values import decode_bounds
from iceberg_pyspark.planning.entry_blocks import matching_blocks
from iceberg_pyspark.planning.entry_filter import matching_metrics, matching_partitions
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.types import (
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestampType,
    UUIDType,
    VariantType,
)
from iceberg_pyspark.spec.values import value_to_bytes
from tests.support.manifests import metrics_table
from tests.support.strategies import (
    PRIMITIVE_TYPES,
    columns,
    nullable,
    one_column_predicates,
    predicates,
    values,
)


@st.composite
def files(draw: DrawFn, column: BoundColumn) -> DataFile:
    """Draw a file with metrics of the column: right, missing, contradictory or unreadable."""
    count = st.none() | st.integers(-2, 4)
    bound = st.one_of(
        st.none(),
        values(column.type).map(lambda v: value_to_bytes(column.type, v)),
        st.binary(max_size=9),
    )
    low, high = draw(bound), draw(bound)
    counts = [draw(count) for _ in range(3)]
    value_counts, nulls, nans = ({} if c is None else {column.field_id: c} for c in counts)
    return DataFile(
        file_path="f",
        record_count=draw(st.sampled_from([-1, 0, 1, 2, 3])),
        file_size_in_bytes=1,
        value_counts=value_counts,
        null_value_counts=nulls,
        nan_value_counts=nans,
        lower_bounds=None if low is None else {column.field_id: low},
        upper_bounds=None if high is None else {column.field_id: high},
    )


@st.composite
def files_of_rows(draw: DrawFn, column: BoundColumn) -> DataFile:
    """Draw a file with the metrics of drawn values."""
    rows = draw(st.lists(nullable(column.type), min_size=1, max_size=3))
    some = [v for v in rows if v is not None and v == v]
    key = draw(st.sampled_from([None, java_uuid_key])) if column.type == UUIDType() else None
    some.sort(key=key)
    bounds = [{column.field_id: value_to_bytes(column.type, v)} for v in some]
    return DataFile(
        file_path="f",
        record_count=len(rows),
        file_size_in_bytes=1,
        value_counts={column.field_id: len(rows)},
        null_value_counts={column.field_id: rows.count(None)},
        nan_value_counts={column.field_id: len(rows) - rows.count(None) - len(some)},
        lower_bounds=bounds[0] if bounds else None,
        upper_bounds=bounds[-1] if bounds else None,
    )


@given(st.data())
def test_metrics_of_columns_filter_like_metrics_of_one_file(data: st.DataObject) -> None:
    column, predicate = data.draw(one_column_predicates())
    some = data.draw(st.lists(files(column), max_size=5))
    one_by_one = compile_metrics_filter(predicate)
    mask = matching_metrics(metrics_table(some, column.field_id), predicate)
    assert mask.tolist() == [one_by_one(f) for f in some]


@pytest.fixture(scope="module")
def block_entries() -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_manifests, "BLOCK_ENTRIES", 3)
        patch.setattr(entry_blocks, "_FEW", 0)
        yield 3


@given(st.data())
def test_only_blocks_without_a_matching_file_are_ruled_out(
    block_entries: int, data: st.DataObject
) -> None:
    bound = columns(*data.draw(st.lists(st.sampled_from(PRIMITIVE_TYPES), min_size=1, max_size=2)))
    tables = []
    count = data.draw(st.integers(0, 8))
    for column in bound:
        file = data.draw(st.sampled_from([files(column), files_of_rows(column)]))
        some = data.draw(st.lists(file, min_size=count, max_size=count))
        tables.append(metrics_table(some, column.field_id))
    first, *others = tables
    for other in others:
        for name in other.column_names[1:]:
            first = first.append_column(name, other[name])
    known = in_blocks(first, np.zeros(0, np.int64))
    constant_ids = data.draw(st.sets(st.sampled_from([c.field_id for c in bound])))
    for predicate in data.draw(st.lists(predicates(bound), min_size=1, max_size=3)):
        blocks = matching_blocks(known, predicate, constant_ids)
        matching = matching_metrics(first, predicate)
        assert len(blocks) == len(known.block_starts)
        is_left = np.repeat(blocks, block_entries)[:count]
        assert not (matching & ~is_left).any()
        left = known.table(None, blocks)
        assert left.num_rows == is_left.sum()
        assert matching_metrics(left, predicate).sum() == matching.sum()
        # the ranges of entries that are gone may stay
        removed = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), "?")
        rest = known.without(removed, 1)
        assert rest.table().equals(first.filter(pa.array(~removed, pa.bool_())))
        blocks = matching_blocks(rest, predicate, constant_ids)
        matching_left = matching_metrics(rest.table(None, blocks), predicate)
        assert matching_left.sum() == matching[~removed].sum()


@given(st.data())
def test_a_block_of_one_file_is_ruled_out_like_the_file(
    block_entries: int, data: st.DataObject
) -> None:
    column, predicate = data.draw(one_column_predicates())
    file = data.draw(files(column) | files_of_rows(column))
    table = metrics_table([file], column.field_id)
    known = in_blocks(table, np.zeros(0, np.int64))
    if not isinstance(column.type, UUIDType):
        matching = matching_metrics(table, predicate)
        assert matching_blocks(known, predicate, ()).tolist() == matching.tolist()
    if isinstance(predicate, BoundUnary | BoundLiteral | BoundSet):
        # the metrics of a source of an identity partition field say nothing
        assert matching_blocks(known, predicate, {column.field_id}).tolist() == [True]


@pytest.mark.usefixtures("block_entries")
def test_one_file_of_a_block_may_match() -> None:
    """The others do not, whatever is first and last."""

    def file(type_: PrimitiveType, low: Any, high: Any, nulls: int = 0, nans: int = 0) -> DataFile:
        return DataFile(
            file_path="f",
            record_count=3,
            file_size_in_bytes=1,
            value_counts={1: 3},
            null_value_counts={1: nulls},
            nan_value_counts={1: nans},
            lower_bounds=None if low is None else {1: value_to_bytes(type_, low)},
            upper_bounds=None if high is None else {1: value_to_bytes(type_, high)},
        )

    double, uuid = DoubleType(), UUIDType()
    low_first, high_first = bytes(16), b"\xff" * 16
    others_of_uuids = file(uuid, b"\x10" * 16, b"\x20" * 16)
    cases: list[tuple[PrimitiveType, Any, DataFile, DataFile]] = [
        (double, ("is_nan",), file(double, 1.0, 2.0), file(double, 1.0, 2.0, nans=1)),
        (double, ("is_null",), file(double, 1.0, 2.0), file(double, 1.0, 2.0, nulls=1)),
        (double, ("not_null",), file(double, None, None, nulls=3), file(double, 1.0, 2.0)),
        (double, ("gt", 5.0), file(double, 1.0, 2.0), file(double, 1.0, None)),
        (double, ("gt", 5.0), file(double, 1.0, 2.0), file(double, 4.0, 6.0)),
        (double, ("lt", 5.0), file(double, 8.0, 9.0), file(double, None, 9.0)),
        (double, ("lt", 5.0), file(double, 8.0, 9.0), file(double, 4.0, 6.0)),
        # in Java's order, bytes from 0x80 on are the least
        (uuid, ("eq", b"\xf0" * 16), others_of_uuids, file(uuid, b"\x80" * 16, low_first)),
        (uuid, ("eq", b"\xf0" * 16), others_of_uuids, file(uuid, low_first, high_first)),
    ]
    for type_, (op, *literal), other, match in cases:
        column = BoundColumn(field_id=1, name="c", type=type_, required=False)
        leaf = BoundLiteral(op, column, *literal) if literal else BoundUnary(op, column)
        for some in ([match, other, other], [other, other, match], [other, other, other]):
            table = metrics_table(some, 1)
            mask = matching_metrics(table, leaf)
            blocks = matching_blocks(in_blocks(table, np.zeros(0, np.int64)), leaf, ())
            assert mask.any() == (match in some), (leaf, some)
            assert blocks.tolist() == [type_ == uuid or mask.any()], (leaf, some)


def test_conditions_on_nulls_decode_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark adds one for each column that a join or a comparison uses."""
    column = BoundColumn(field_id=1, name="c", type=LongType(), required=False)
    bound = {1: value_to_bytes(LongType(), 3)}
    file = DataFile(
        file_path="f",
        record_count=3,
        file_size_in_bytes=1,
        value_counts={1: 3},
        null_value_counts={1: 0},
        lower_bounds=bound,
        upper_bounds=bound,
    )
    monkeypatch.setattr(entry_filter, "decode_bounds", None)
    table = metrics_table([file], 1)
    assert matching_metrics(table, BoundUnary("not_null", column)).tolist() == [True]
    assert matching_metrics(table, BoundUnary("is_null", column)).tolist() == [False]
    with pytest.raises(TypeError):
        matching_metrics(table, BoundLiteral("eq", column, 3))


def test_inverted_bounds_contradict_a_count_of_no_values() -> None:
    column = columns(IntegerType())[0]
    wrong = DataFile(
        file_path="f",
        record_count=-1,
        file_size_in_bytes=1,
        value_counts={column.field_id: 0},
        lower_bounds={column.field_id: value_to_bytes(column.type, 2)},
        upper_bounds={column.field_id: value_to_bytes(column.type, 1)},
    )
    predicate = BoundUnary("not_null", column)
    assert compile_metrics_filter(predicate)(wrong)
    assert matching_metrics(metrics_table([wrong], column.field_id), predicate).tolist() == [True]


def partition_table(column: BoundColumn, some: Sequence[Any]) -> pa.Table:
    array = pa.array(list(some), physical_type(column.type))
    names = [str(column.field_id)]
    return pa.table({"partition": pa.StructArray.from_arrays([array], names)})


@given(st.data())
def test_partition_columns_filter_like_one_partition_tuple(data: st.DataObject) -> None:
    column, predicate = data.draw(one_column_predicates())
    some = data.draw(st.lists(nullable(column.type), max_size=6))
    mask = matching_partitions(partition_table(column, some), predicate)
    expected = [evaluate(predicate, {column.field_id: v}) is True for v in some]
    assert mask.tolist() == expected


@given(st.data())
def test_predicates_over_several_partition_fields_agree_too(data: st.DataObject) -> None:
    fields = columns(IntegerType(), StringType())
    predicate: Predicate = data.draw(predicates(fields))
    rows = data.draw(
        st.lists(st.tuples(nullable(IntegerType()), nullable(StringType())), max_size=6)
    )
    arrays = [pa.array([r[i] for r in rows], physical_type(c.type)) for i, c in enumerate(fields)]
    table = pa.table({"partition": pa.StructArray.from_arrays(arrays, ["1", "2"])})
    mask = matching_partitions(table, predicate)
    assert mask.tolist() == [
        evaluate(predicate, {1: first, 2: second}) is True for first, second in rows
    ]


@given(st.data())
def test_bounds_decode_like_one_bound(data: st.DataObject) -> None:
    type_: PrimitiveType = data.draw(st.sampled_from(PRIMITIVE_TYPES))
    known = values(type_).map(lambda v: value_to_bytes(type_, v))
    bounds = st.one_of(st.none(), known, st.binary(max_size=17))
    # bounds of one width and no others are read as they are
    some = data.draw(st.lists(bounds, max_size=6) | st.lists(known, max_size=6))
    others = data.draw(st.lists(bounds, max_size=2))
    array = pa.array([*others, *some, *others], pa.binary()).slice(len(others), len(some))
    decoded = decode_bounds(array, type_).to_pylist()
    for data_bytes, value in zip(some, decoded, strict=True):
        # An unknown bound is always safe; a decoded bound must be equal.
        if value is not None:
            assert value == decode_bound(type_, data_bytes)
        elif data_bytes and len(data_bytes) <= 16:
            alone = decode_bound(type_, data_bytes)
            # Microseconds of a promoted day may exceed 64 bits.
            beyond = isinstance(alone, int) and not -(2**63) <= alone < 2**63
            assert alone is None or beyond


@pytest.mark.parametrize(
    ("type_", "bound", "value"),
    [
        (LongType(), struct.pack("<i", -7), -7),
        (DoubleType(), struct.pack("<f", 1.5), 1.5),
        (TimestampType(), struct.pack("<i", 2), 2 * 86_400_000_000),
        (TimestampNsType(), struct.pack("<i", -1), -86_400_000_000_000),
    ],
)
def test_bounds_written_before_a_promotion_are_read(
    type_: PrimitiveType, bound: bytes, value: Any
) -> None:
    """docs/conformance.md 41."""
    assert decode_bounds(pa.array([bound, None]), type_).to_pylist() == [value, None]


def test_a_date_beyond_the_promoted_type_is_unknown() -> None:
    bounds = pa.array([struct.pack("<i", 2**31 - 1), struct.pack("<q", 5)])
    assert decode_bounds(bounds, TimestampNsType()).to_pylist() == [None, 5]


def test_decimal_bounds_have_any_width() -> None:
    """docs/conformance.md 45."""
    bounds = pa.array(
        [b"\x00", b"\x7f", b"\x00\x80", b"\x80", b"\xff" * 16, b"\x00" * 15 + b"\x05"]
    )
    values = decode_bounds(bounds, DecimalType(9, 2)).to_pylist()
    assert [str(d) for d in values] == ["0.00", "1.27", "1.28", "-1.28", "-0.01", "0.05"]


@pytest.mark.parametrize("precision", [9, 38])
def test_a_decimal_bound_of_too_many_digits_is_unknown(precision: int) -> None:
    limit = 10**precision
    numbers = [limit - 1, limit, 1 - limit, -limit, 2**127 - 1, -(2**127)]
    bounds = pa.array([n.to_bytes(16, "big", signed=True) for n in numbers])
    values = decode_bounds(bounds, DecimalType(precision, 2)).to_pylist()
    assert [d and d.scaleb(2, Context(prec=40)) for d in values] == [
        limit - 1,
        None,
        1 - limit,
        None,
        None,
        None,
    ]


def test_in_with_very_many_literals_is_asked_as_a_range() -> None:
    column = BoundColumn(field_id=1, name="c1", type=DateType(), required=False)
    literals = frozenset(range(0, 1000, 2))
    some = [
        DataFile(
            file_path="f",
            record_count=1,
            file_size_in_bytes=1,
            lower_bounds={1: value_to_bytes(DateType(), at)},
            upper_bounds={1: value_to_bytes(DateType(), at)},
            value_counts={1: 1},
            null_value_counts={1: 0},
        )
        for at in (-1, 3, 999)
    ]
    mask = matching_metrics(metrics_table(some, 1), BoundSet("in", column, literals))
    assert mask.tolist() == [False, True, False]


def test_slices_of_a_table_filter_like_the_table() -> None:
    column = BoundColumn(field_id=1, name="c1", type=LongType(), required=False)
    some = [
        DataFile(
            file_path="f",
            record_count=1,
            file_size_in_bytes=1,
            lower_bounds={1: struct.pack("<q", at)},
            upper_bounds={1: struct.pack("<q", at)},
            value_counts={1: 1},
            null_value_counts={1: 0},
        )
        for at in range(6)
    ]
    table = pa.concat_tables([metrics_table(some[:3], 1), metrics_table(some[3:], 1)])
    predicate = BoundLiteral("gt", column, 3)
    assert matching_metrics(table.slice(2, 4), predicate).tolist() == [False, False, True, True]


def test_an_unbound_predicate_is_refused() -> None:
    with pytest.raises(Exception, match="not bound"):
        matching_metrics(metrics_table([], 1), LiteralPredicate("eq", "a", 1))


def test_bounds_of_shredded_variants_bound_no_value_of_the_column() -> None:
    variant = BoundColumn(field_id=1, name="v", type=VariantType(), required=False)
    some = DataFile(
        file_path="f",
        record_count=2,
        file_size_in_bytes=1,
        value_counts={1: 2},
        null_value_counts={1: 0},
        lower_bounds={1: b"\x01\x00\x00\x02\x00"},
        upper_bounds={1: b"\x01\x00\x00\x02\x00"},
    )
    table = metrics_table([some], 1)
    assert matching_metrics(table, BoundUnary("not_null", variant)).tolist() == [True]
    assert matching_metrics(table, BoundUnary("is_null", variant)).tolist() == [False]
