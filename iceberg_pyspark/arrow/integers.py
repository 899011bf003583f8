"""Columns as the integers that their values are in memory: dates, times, and floats by bits."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Longs: TypeAlias = npt.NDArray[np.int64]


def as_integers(column: pa.Array) -> pa.Array | None:
    """Return the column as integers with its nulls, or None for other types.

    All NaNs become one value, and -0.0 differs from 0.0.
    """
    type_ = column.type
    if pa.types.is_integer(type_):
        return column
    if pa.types.is_floating(type_):
        column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), type_), column)
    elif not pa.types.is_temporal(type_):
        return None
    # pyarrow cannot cast every 64-bit temporal type to integers, but its bits are the integers
    return column.view(pa.int32() if type_.bit_width == 32 else pa.int64())


def as_longs(column: pa.Array) -> Longs:
    """Return the values of a number, date or time column as 64-bit integers; 0 for null."""
    integers = as_integers(column)
    assert integers is not None, "numbers, dates and times are integers"
    if integers.null_count:
        integers = integers.fill_null(0)
    longs: Longs = integers.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return longs
