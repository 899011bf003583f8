"""Theta sketches: bytes written by Apache DataSketches 5.2.0, and the content of a sketch."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from iceberg_pyspark.arrow.value_hashes import value_hashes
from iceberg_pyspark.errors import IcebergError, InvalidMetadataError, UnsupportedFeatureError
from iceberg_pyspark.formats.puffin.theta_sketches import NOMINAL_ENTRIES, ThetaSketch
from iceberg_pyspark.spec.types import StringType

EMPTY = bytes.fromhex("01030300001ecc93")
ONE = bytes.fromhex("01030300001acc9317c11d528507017b")  # 'a'
THREE = bytes.fromhex(  # 'a', 'b', 'c'
    "02030300001acc930300000000000000b70c6ee5a8af4008857f40b689c7e53417c11d528507017b"
)


def sketch_of(*texts: str) -> ThetaSketch:
    sketch = ThetaSketch()
    sketch.add(value_hashes(StringType(), pa.array(texts, pa.string())))
    return sketch


def some_hashes(count: int) -> list[int]:
    return random.Random(7).sample(range(1, 2**63 - 1), count)


def sketch_of_hashes(hashes: list[int]) -> ThetaSketch:
    sketch = ThetaSketch()
    sketch.add(np.array(hashes, np.uint64))
    return sketch


@pytest.mark.parametrize(("data", "texts"), [(EMPTY, ""), (ONE, "a"), (THREE, "abc")])
def test_sketches_of_the_library(data: bytes, texts: str) -> None:
    theirs, ours = ThetaSketch.from_bytes(data, "here"), sketch_of(*texts)
    assert theirs.distinct_count == ours.distinct_count == len(texts)
    assert theirs.to_bytes() == ours.to_bytes()
    # For one value, ours sets the single-item flag, as Java does; for several values it writes the
    # sampling probability 1.0.
    start = slice(16, None) if len(texts) > 1 else slice(8, None)
    assert ours.to_bytes()[start] == data[start]
    assert ours.to_bytes()[:5] == data[:5]
    theirs.unite(ours)
    assert theirs.distinct_count == len(texts)


def test_sketch_does_not_depend_on_the_order_of_values() -> None:
    hashes = some_hashes(50_000)
    whole = sketch_of_hashes(hashes)
    assert whole.is_estimate
    assert whole.distinct_count == pytest.approx(50_000, rel=0.06)
    parts = [sketch_of_hashes(hashes[i::7]) for i in range(7)]
    for order in (parts, parts[::-1]):
        union = ThetaSketch()
        for part in order:
            union.unite(part)
        assert union.to_bytes() == whole.to_bytes()
    again = ThetaSketch.from_bytes(whole.to_bytes(), "here")
    again.unite(whole)
    assert again.to_bytes() == whole.to_bytes()
    assert len(whole.to_bytes()) == 8 * (3 + NOMINAL_ENTRIES)


@pytest.mark.parametrize("count", [NOMINAL_ENTRIES, NOMINAL_ENTRIES + 1])
def test_counts_are_exact_up_to_its_size(count: int) -> None:
    sketch = sketch_of_hashes(some_hashes(count) * 2)
    assert sketch.is_estimate == (count > NOMINAL_ENTRIES)
    if count <= NOMINAL_ENTRIES:
        assert sketch.distinct_count == count


def test_damaged_sketches_are_refused() -> None:
    whole = sketch_of_hashes(some_hashes(5_000)).to_bytes()
    for size in range(len(THREE)):
        with pytest.raises(IcebergError, match=r"x\.stats"):
            ThetaSketch.from_bytes(THREE[:size], "x.stats")
    for wrong, error in (
        (THREE[:6] + b"\x00\x00" + THREE[8:], UnsupportedFeatureError),  # another seed
        (THREE[:1] + b"\x04" + THREE[2:], UnsupportedFeatureError),  # compressed
        (THREE[:2] + b"\x02" + THREE[3:], UnsupportedFeatureError),  # an update sketch
        (THREE[:8] + b"\xff\xff\xff\xff" + THREE[12:], InvalidMetadataError),
        (THREE[:16] + bytes(8) + THREE[24:], InvalidMetadataError),
        (whole[:16] + bytes(8) + whole[24:], InvalidMetadataError),
        (whole[:16] + b"\x01" + bytes(7) + whole[24:], InvalidMetadataError),
    ):
        with pytest.raises(error, match=r"x\.stats"):
            ThetaSketch.from_bytes(wrong, "x.stats")
