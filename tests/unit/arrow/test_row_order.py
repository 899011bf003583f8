"""Sorted rows, by the specification's order or along a curve, also with little memory."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.arrow.write.range_sort import RangeSort, SortMemory, sample_of, sorted_rows
from iceberg_pyspark.arrow.write.row_order import AlongCurve, RowOrder, SortedBy, hilbert, z_order
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import SortField
from iceberg_pyspark.spec.transforms import IdentityTransform
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from tests.support.parameters import cases
from tests.support.sort_orders import ascending

LITTLE = SortMemory(in_memory=2000, buffered=500)
VALUES: list[tuple[PrimitiveType, st.SearchStrategy[Any]]] = [
    (BooleanType(), st.booleans()),
    (IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    (LongType(), st.integers(-(2**63), 2**63 - 1)),
    (FloatType(), st.floats(width=32)),
    (DoubleType(), st.floats()),
    (DecimalType(38, 2), st.decimals(-(10**35), 10**35, places=2)),
    (DecimalType(9, 2), st.decimals(-1000, 1000, places=2)),
    (DateType(), st.dates()),
    (TimeType(), st.times()),
    (TimestamptzType(), st.integers(-(2**62), 2**62)),
    (TimestampNsType(), st.integers(-(2**62), 2**62)),
    (StringType(), st.text(st.sampled_from("aé\0\U0001f600"), max_size=20)),
    (StringType(), st.integers(0, 40).map(lambda n: "x" * 40 + "y" * n)),
    (BinaryType(), st.binary(max_size=20)),
    (FixedType(3), st.binary(min_size=3, max_size=3)),
    (UUIDType(), st.binary(min_size=16, max_size=16)),
]


def rank(value: Any) -> Any:
    """Return a sort key with the order of the specification."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return value.encode() if isinstance(value, str) else value


def compare(order: SortedBy, left: tuple[Any, ...], right: tuple[Any, ...]) -> int:
    for f, a, b in zip(order.fields, left, right, strict=True):
        if (a is None) != (b is None):
            return -1 if (a is None) == (f.null_order == "nulls-first") else 1
        if a is None or (isinstance(a, float) and math.isnan(a) and math.isnan(b)):
            continue
        if rank(a) != rank(b):
            return -1 if (rank(a) < rank(b)) == (f.direction == "asc") else 1
    return 0


def batches(rows: pa.Table, size: int = 7) -> Iterator[pa.RecordBatch]:
    yield from rows.to_batches(max_chunksize=size)


def plain(rows: pa.Table) -> str:
    """Return rows as text, because NaN does not equal itself, with timestamps as numbers."""
    columns = [
        c.combine_chunks().view(pa.int64()) if pa.types.is_timestamp(c.type) else c
        for c in rows.columns
    ]
    return str([c.to_pylist() for c in columns])


def in_order(order: RowOrder, rows: pa.Table, memory: SortMemory) -> list[pa.Table]:
    """Sort in one thread at once, and by ranges in several threads; return both results."""
    whole = list(sorted_rows(lambda: batches(rows), order, memory))
    with RangeSort(order, sample=lambda: batches(rows), count=3, memory=memory) as sort:
        sort.read([lambda i=i: batches(rows[i::2], 5) for i in range(2)], 2)  # type: ignore[misc]
        parts = [pa.Table.from_batches(part(), rows.schema) for part in sort.parts(3)]
    return [pa.Table.from_batches(whole, rows.schema), pa.concat_tables([rows[:0], *parts])]


@given(data=st.data())
def test_rows_are_sorted_as_the_specification_says(data: st.DataObject) -> None:
    """docs/conformance.md 87."""
    columns = data.draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3))
    schema = Schema(
        fields=tuple(
            NestedField(field_id=i + 1, name=f"c{i}", type=t) for i, (t, _) in enumerate(columns)
        )
    )
    order = SortedBy(
        schema=schema,
        fields=tuple(
            SortField(
                source_ids=(f.field_id,),
                transform=IdentityTransform(),
                direction=data.draw(st.sampled_from(["asc", "desc"])),
                null_order=data.draw(st.sampled_from(["nulls-first", "nulls-last"])),
            )
            for f in schema.fields
        ),
    )
    # few values, so that rows are often equal in the first columns
    pools = [data.draw(st.lists(v | st.none(), min_size=1, max_size=6)) for _, v in columns]
    row_values = data.draw(
        st.lists(st.tuples(*(st.sampled_from(pool) for pool in pools)), max_size=60)
    )
    arrow = to_arrow_schema(schema)
    rows = pa.table(
        [pa.array([r[i] for r in row_values], f.type) for i, f in enumerate(arrow)], schema=arrow
    ).append_column("n", pa.array(range(len(row_values)), pa.int64()))
    memory = data.draw(st.sampled_from([SortMemory(), LITTLE]))
    for actual in in_order(order, rows, memory):
        numbers = actual["n"].to_pylist()
        assert sorted(numbers) == list(range(len(row_values)))
        assert plain(actual) == plain(rows.take(pa.array(numbers, pa.int64())))
        values = [row_values[n] for n in numbers]
        key = functools.cmp_to_key(functools.partial(compare, order))
        assert [key(v) for v in values] == sorted(map(key, values))


def test_long_equal_beginnings_are_told_apart_in_little_memory() -> None:
    schema = Schema(fields=(NestedField(field_id=1, name="c", type=StringType()),))
    order = SortedBy(
        schema=schema,
        fields=(ascending(1),),
    )
    texts = ["x" * 300 + f"{n:03}" for n in range(200)] + ["y" * 9000] * 5
    rows = pa.table({"c": list(reversed(texts))})
    for actual in in_order(order, rows, LITTLE):
        assert actual["c"].to_pylist() == texts


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_curves_visit_each_place_once(axes: int) -> None:
    bits = 3
    grid = np.indices((1 << bits,) * axes).reshape(axes, -1).astype(np.uint64)
    for curve in (z_order, hilbert):
        places = curve(list(grid), bits)
        assert sorted(places.tolist()) == list(range(1 << bits * axes))
    steps = np.abs(np.diff(grid[:, np.argsort(hilbert(list(grid), bits))].astype(np.int64)))
    # The Hilbert curve never jumps.
    assert set(steps.sum(axis=0).tolist()) == {1}


@cases("curve", fast=["zorder"], nightly=["hilbert"])
def test_each_part_of_a_curve_is_narrow_in_all_columns(curve: Any) -> None:
    schema = Schema(
        fields=(
            NestedField(field_id=1, name="key", type=LongType()),
            NestedField(field_id=2, name="price", type=DecimalType(9, 2)),
            NestedField(field_id=3, name="name", type=StringType()),
        )
    )
    random = np.random.default_rng(1)
    keys, prices = random.permutation(1024), random.permutation(1024)
    rows = pa.table(
        {
            # The ranges differ, because the bits of larger numbers must not decide alone.
            "key": pa.array(keys * 10**9),
            "price": pa.array([Decimal(int(p)) / 100 for p in prices], pa.decimal128(9, 2)),
            "name": [f"Customer#{n:09}" for n in random.permutation(1024)],
        }
    )
    order = AlongCurve(schema=schema, source_ids=(1, 2), curve=curve)
    for actual in in_order(order, rows, SortMemory(in_memory=10_000, buffered=5_000)):
        assert actual.sort_by("key").equals(rows.sort_by("key"))
        for name in ("key", "price"):
            values = np.array([float(v) for v in actual[name].to_pylist()]).reshape(16, -1)
            widths = (values.max(axis=1) - values.min(axis=1)) / (values.max() - values.min())
            # A curve cuts the square into 16 parts with sides of a quarter.
            assert widths.mean() < 0.4


def test_no_rows_and_samples() -> None:
    schema = Schema(fields=(NestedField(field_id=1, name="c", type=LongType()),))
    order = AlongCurve(schema=schema, source_ids=(1,), curve="zorder")
    rows = pa.table({"c": pa.array([], pa.int64())})
    assert [t.num_rows for t in in_order(order, rows, LITTLE)] == [0, 0]
    assert sample_of(batches(rows)) is None
    many = pa.table({"c": pa.array(range(1_000_000))})
    sample = sample_of(batches(many, 1000))
    assert sample is not None
    assert sample.num_rows <= 200_000
    assert abs(np.mean(sample["c"].to_numpy()) - 500_000) < 20_000
