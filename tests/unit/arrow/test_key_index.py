"""Keys that are equal in SQL are found, for every type and any number of columns."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from iceberg_pyspark.arrow import key_index
from iceberg_pyspark.arrow.key_index import KeyIndex, KeySample
from iceberg_pyspark.arrow.row_hashes import row_hashes

OTHER_NAN = float(np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0])


def pairs(source: pa.RecordBatch, keys: pa.RecordBatch) -> list[tuple[int, int]]:
    rows, source_rows = KeyIndex([source.slice(0, 1), source.slice(1)]).matches(keys)
    return list(zip(rows.tolist(), source_rows.tolist(), strict=True))


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.int32(), [5, 1, -7]),
        (pa.int64(), [2**62, -(2**63), 0]),
        (pa.date32(), [date(2026, 1, 1), date(1, 1, 1), date(1969, 1, 1)]),
        (
            pa.timestamp("us", "UTC"),
            [datetime(2026, 1, 1), datetime(1900, 1, 1), datetime(1, 1, 1)],
        ),
        (pa.string(), ["", "a\0", "a"]),
        (pa.binary(), [b"", b"a", b"a\0"]),
        (pa.binary(16), [b"a" * 16, b"b" * 16, b"\0" * 16]),
        (pa.decimal128(38, 2), [Decimal(1), Decimal("-0.01"), Decimal(10**30)]),
        (pa.bool_(), [True, False, True]),
        (pa.float64(), [1.5, -math.inf, 0.0]),
    ],
)
def test_each_row_finds_its_own_key(type_: pa.DataType, values: list[Any]) -> None:
    source = pa.record_batch({"k": pa.array([values[2], None, values[0], values[1]], type_)})
    keys = pa.record_batch({"k": pa.array([None, *values], type_)})
    expected = {(1, 2), (2, 3), (3, 0)}
    if pa.types.is_boolean(type_):
        expected |= {(1, 0), (3, 2)}
    assert set(pairs(source, keys)) == expected


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_zeros_are_equal_and_so_are_nans(type_: pa.DataType) -> None:
    source = pa.record_batch({"k": pa.array([-0.0, math.nan, None], type_)})
    keys = pa.record_batch({"k": pa.array([0.0, -0.0, OTHER_NAN, 1.0, None], type_)})
    assert pairs(source, keys) == [(0, 0), (1, 0), (2, 1)]


def test_keys_of_several_columns() -> None:
    source = pa.record_batch({"a": [1, 1, 2, None], "b": ["x", "y", "x", "x"]})
    keys = pa.record_batch({"a": [2, 1, 1, None, 2], "b": ["x", "y", "z", "x", None]})
    assert pairs(source, keys) == [(0, 2), (1, 1)]


def test_all_rows_with_one_key_are_found() -> None:
    source = pa.record_batch({"k": [3, 1, 3, 3, 2]})
    assert pairs(source, pa.record_batch({"k": [2, 3, 3, 4]})) == [
        (0, 4),
        *((row, of_source) for row in (1, 2) for of_source in (0, 2, 3)),
    ]
    assert KeyIndex([source]).duplicates() == (0, 2)
    assert KeyIndex([source.slice(3)]).duplicates() is None


def test_keys_are_told_apart_where_one_half_of_their_hashes_is_equal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashes = row_hashes
    half = np.array([[0], [1]], np.uint64)
    monkeypatch.setattr(key_index, "row_hashes", lambda batch: hashes(batch) * half)
    source = pa.record_batch({"k": ["c", "a", "b", "a"]})
    keys = pa.record_batch({"k": ["b", "d", "a"]})
    assert sorted(pairs(source, keys)) == [(0, 2), (2, 1), (2, 3)]
    assert KeyIndex([source]).duplicates() == (1, 3)
    assert KeyIndex([source.slice(0, 3)]).duplicates() is None


def test_an_empty_source_matches_nothing() -> None:
    empty = pa.record_batch({"k": pa.array([], pa.int64())})
    assert pairs(empty, pa.record_batch({"k": [1]})) == []
    assert len(KeyIndex([])) == 0


@pytest.mark.parametrize("type_", [pa.int64(), pa.string(), pa.float64(), pa.date32()])
def test_parts_of_keys_find_together_what_all_keys_find(type_: pa.DataType) -> None:
    random = np.random.default_rng(1)

    def some(count: int) -> pa.RecordBatch:
        numbers = pa.array(random.integers(-50, 50, count), mask=random.random(count) < 0.1)
        keys = numbers.cast(pa.int32()).cast(type_)
        return pa.RecordBatch.from_arrays([keys], ["k"])

    source, keys = [some(100), some(7), some(0), some(200)], some(150)
    sample = KeySample(307)
    for batch in source:
        sample.add(batch)
    parts = sample.parts(5)
    assert len(parts) == 5
    held = np.array([part.holds(keys) for part in parts])
    assert (held.sum(axis=0) == 1).all()
    assert (held[0] | keys.column(0).is_valid().to_numpy(zero_copy_only=False)).all()
    indexes = [KeyIndex(source, part) for part in parts]
    assert max(map(len, indexes)) < 100
    assert sum(map(len, indexes)) == len(KeyIndex(source))
    found: list[tuple[int, int]] = []
    for of_part, index in zip(held, indexes, strict=True):
        numbers, source_numbers = index.matches(keys)
        assert of_part[numbers].all()
        found += zip(numbers.tolist(), source_numbers.tolist(), strict=True)
    numbers, source_numbers = KeyIndex(source).matches(keys)
    assert sorted(found) == sorted(zip(numbers.tolist(), source_numbers.tolist(), strict=True))


def test_keys_that_are_all_null_are_one_part() -> None:
    sample = KeySample(2)
    sample.add(pa.record_batch({"k": pa.nulls(2, pa.int64())}))
    (part,) = sample.parts(3)
    assert part.holds(pa.record_batch({"k": pa.array([None, 1])})).all()
