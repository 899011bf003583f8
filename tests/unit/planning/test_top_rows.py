"""The files that may have the first rows of an order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from iceberg_pyspark.expressions.predicates import AlwaysTrue, BoundColumn
from iceberg_pyspark.formats.encoding.physical_types import physical_type
from iceberg_pyspark.planning.scan_plan import PlannedFiles
from iceberg_pyspark.planning.top_rows import TopRows
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.types import (
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    PrimitiveType,
    StringType,
    StructType,
)
from iceberg_pyspark.spec.values import value_to_bytes
from tests.support.manifests import UNPARTITIONED, identity_table, metrics_table
from tests.support.strategies import columns, nullable, values

TYPES = (LongType(), DoubleType(), StringType(), DateType(), DecimalType(9, 2))
COLUMN = columns(LongType())[0]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The values of a file's rows; the query takes the rows of the mask, and `sure` are known."""

    values: Sequence[Any]
    taken: Sequence[bool]
    sure: int
    file: DataFile

    def of_query(self) -> list[Any]:
        return [v for v, is_taken in zip(self.values, self.taken, strict=True) if is_taken]


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def file_of(
    column: BoundColumn,
    rows: Sequence[Any],
    *,
    wider: Sequence[Any] = (),
    names: Iterable[str] = ("value", "null", "nan", "lower", "upper"),
) -> DataFile:
    """Return a file with the metrics of these names; `wider` values widen the bounds."""
    bounded = [v for v in rows if v is not None and not is_nan(v)]
    beyond = [v for v in wider if not is_nan(v)]
    least, greatest = (
        None if not bounded else value_to_bytes(column.type, best([*bounded, *beyond]))
        for best in (min, max)
    )
    known = {
        "value_counts": len(rows),
        "null_value_counts": sum(v is None for v in rows),
        "nan_value_counts": sum(map(is_nan, rows)),
        "lower_bounds": least,
        "upper_bounds": greatest,
    }
    metrics: dict[str, Any] = {
        name: {column.field_id: metric}
        for name, metric in known.items()
        if metric is not None and name.partition("_")[0] in names
    }
    return DataFile(file_path="f", record_count=len(rows), file_size_in_bytes=1, **metrics)


@st.composite
def rows_of_files(draw: DrawFn, type_: PrimitiveType) -> Rows:
    column = columns(type_)[0]
    drawn = draw(st.lists(nullable(type_), max_size=5))
    taken = [draw(st.booleans()) for _ in drawn] if draw(st.booleans()) else [True] * len(drawn)
    every = {"value", "null", "nan", "lower", "upper"}
    absent = draw(st.just(set[str]()) | st.sets(st.sampled_from(sorted(every))))
    file = file_of(
        column, drawn, wider=draw(st.lists(values(type_), max_size=2)), names=every - absent
    )
    sure = draw(st.sampled_from([0, sum(taken)]))
    return Rows(values=drawn, taken=taken, sure=sure, file=file)


@st.composite
def rows_of_a_partition(draw: DrawFn, type_: PrimitiveType) -> Rows:
    """Draw a file whose rows have the partition's value, with metrics of any other rows."""
    of_file = draw(rows_of_files(type_))
    value = draw(nullable(type_))
    file = replace(of_file.file, partition=(value,))
    return replace(of_file, values=[value] * len(of_file.values), file=file)


def planned(
    column: BoundColumn, files: Sequence[DataFile], *, first: int = 0, by_column: bool = False
) -> PlannedFiles:
    """Return files with a further column `number`, from `first` on."""
    numbers = pa.array(range(first, first + len(files)), pa.int64())
    entries = metrics_table(files, column.field_id).append_column("number", numbers)
    spec = UNPARTITIONED
    if by_column:
        assert isinstance(column.type, PrimitiveType)
        _, spec = identity_table(column.type)
        partition = pa.array([f.partition[0] for f in files], physical_type(column.type))
        entries = entries.append_column(
            "partition", pa.StructArray.from_arrays([partition], [str(column.field_id)])
        )
    return PlannedFiles(
        spec=spec,
        partition_type=StructType(fields=()),
        entries=entries,
        deletes={},
        satisfies_filter=np.ones(len(files), np.bool_),
    )


def numbers_of(groups: Iterable[PlannedFiles]) -> list[int]:
    return [n for group in groups for n in group.entries["number"].to_pylist()]


def ordered(rows: Iterable[Any], top: TopRows) -> list[Any]:
    """Return the first rows in Spark's order; zeros of either sign are equal."""
    every = list(rows)
    known = sorted(
        ((1, 0) if is_nan(v) else (0, v) for v in every if v is not None), reverse=top.descending
    )
    nulls = [None] * (len(every) - len(known))
    return ([*nulls, *known] if top.nulls_first else [*known, *nulls])[: top.limit]


@given(st.data())
def test_the_first_rows_of_the_files_are_the_first_rows_of_all_files(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from(TYPES))
    column = columns(type_)[0]
    of_partitions = data.draw(st.lists(st.booleans(), max_size=3))
    manifests = [
        data.draw(st.lists(rows_of_a_partition(type_) if by else rows_of_files(type_), max_size=4))
        for by in of_partitions
    ]
    top = TopRows(
        column=column,
        limit=data.draw(st.integers(1, 6)),
        descending=data.draw(st.booleans()),
        nulls_first=data.draw(st.booleans()),
    )
    every = [f for files in manifests for f in files]
    starts = [0, *accumulate(map(len, manifests))]
    groups = [
        planned(column, [f.file for f in files], first=start, by_column=by)
        for files, start, by in zip(manifests, starts, of_partitions, strict=False)
    ]
    counts = [np.array([f.sure for f in files], np.int64) for files in manifests]
    kept = [every[n] for n in numbers_of(top.files(groups, counts))]
    assert ordered((v for f in kept for v in f.of_query()), top) == ordered(
        (v for f in every for v in f.of_query()), top
    )


def kept(order: TopRows, files: Sequence[DataFile], by_column: bool = False) -> list[int]:
    counts = np.array([f.record_count for f in files], np.int64)
    return numbers_of(order.files([planned(COLUMN, files, by_column=by_column)], [counts]))


def top(limit: int, *, descending: bool = True, nulls_first: bool = False) -> TopRows:
    return TopRows(column=COLUMN, limit=limit, descending=descending, nulls_first=nulls_first)


FILES = [file_of(COLUMN, [10 * i, 10 * i + 9, *[None] * (i % 2)]) for i in range(6)]
"""Files of disjoint ranges; every second has a null."""


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (top(2), [5]),
        (top(3), [4, 5]),
        (top(2, descending=False), [0]),
        (top(3, descending=False), [0, 1]),
        (top(2, nulls_first=True), [1, 3, 5]),
        (top(2, descending=False, nulls_first=True), [0, 1, 3, 5]),
        (top(99), [0, 1, 2, 3, 4, 5]),
    ],
)
def test_other_files_are_skipped(order: TopRows, expected: list[int]) -> None:
    assert kept(order, FILES) == expected


def test_files_without_metrics_are_kept_and_count_for_nothing() -> None:
    unknown = file_of(COLUMN, [50, 59], names=())
    assert kept(top(2), [*FILES[:5], unknown]) == [4, 5]


def test_files_of_nulls_are_skipped_where_nulls_come_last() -> None:
    files = [file_of(COLUMN, [None, None]), *FILES[1:]]
    assert kept(top(2), files) == [5]


def test_rows_have_the_value_of_their_partition_whatever_the_metrics_say() -> None:
    values_of_files = (7, 8, None, 9, 9, 1)
    files = [replace(f, partition=(v,)) for f, v in zip(FILES, values_of_files, strict=True)]
    assert kept(top(2), files, by_column=True) == [3, 4]
    assert kept(top(6), files, by_column=True) == [1, 3, 4]
    assert kept(top(2, nulls_first=True), files, by_column=True) == [2, 3, 4]


def test_partition_values_of_another_type_say_nothing() -> None:
    group = replace(planned(COLUMN, FILES), retyped_ids=frozenset({COLUMN.field_id}))
    assert numbers_of(top(2).files([group], [np.full(6, 2)])) == [0, 1, 2, 3, 4, 5]


def test_kept_files_keep_their_deletes_and_residuals() -> None:
    group = planned(COLUMN, FILES)
    deletes: Any = {0: ("of 0",), 2: ("of 2",), 3: ("of 3",)}
    group = replace(group, deletes=deletes, residuals={3: AlwaysTrue(), 5: AlwaysTrue()})
    some = group.only(np.array([True, False, False, True, True, False]))
    assert numbers_of([some]) == [0, 3, 4]
    kept_deletes: Any = some.deletes
    assert kept_deletes == {0: ("of 0",), 1: ("of 3",)}
    assert list(some.residuals) == [1]
    assert len(some.satisfies_filter) == 3
