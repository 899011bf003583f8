"""Bitmaps of deleted rows for executors: chunks, and the packed form."""

import struct
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from iceberg_pyspark.spark.native_read.deleted_rows import chunks, serialized_bitmaps


@given(st.lists(st.integers(0, 9)), st.integers(1, 20))
def test_portions_keep_order_and_fit_except_for_single_files(sizes: list[int], most: int) -> None:
    portions = list(chunks(sizes, lambda size: size, most))
    assert [size for portion in portions for size in portion] == sizes
    assert all(portion and (sum(portion) <= most or len(portion) == 1) for portion in portions)
    for one, following in pairwise(portions):
        assert sum(one) + following[0] > most


def test_positions_of_small_files_are_packed_as_32_bit_bitmaps() -> None:
    blob, wide = serialized_bitmaps([BitMap64([1, 70_000]), BitMap64()])
    assert not wide
    (size,) = struct.unpack_from(">i", blob)
    assert BitMap.deserialize(blob[4 : 4 + size]) == BitMap([1, 70_000])
    assert blob[4 + size :] == struct.pack(">i", 0)


def test_one_far_position_makes_all_64_bit_bitmaps() -> None:
    blob, wide = serialized_bitmaps([BitMap64([2**40])])
    assert wide
    assert BitMap64.deserialize(blob[4:]) == BitMap64([2**40])
