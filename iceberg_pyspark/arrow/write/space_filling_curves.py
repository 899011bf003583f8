"""Maps rows to positions on a space-filling curve over several columns.

Rows that are close on the curve are close in each column, so a file of neighbouring rows has a
narrow range of each column, and filters on any of the columns skip files. The z-order curve
interleaves the bits of all columns. The Hilbert curve (by Skilling's transformation) has no jumps,
but takes more time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Places: TypeAlias = NDArray[np.uint64]
Curve: TypeAlias = Literal["zorder", "hilbert"]

_ONE = np.uint64(1)


def bits_of_column(columns: int) -> int:
    """Return the number of bits per column, so that all columns fit 63 bits; at most 12."""
    return min(12, 63 // columns)


def z_order(columns: Sequence[Places], bits: int) -> Places:
    """Return the rows' positions on the z-order curve; the first column weighs most.

    Each column has numbers of `bits` bits.

    >>> z_order([np.array([0, 1], np.uint64), np.array([1, 0], np.uint64)], 1).tolist()
    [1, 2]
    """
    codes = np.zeros(len(columns[0]), np.uint64)
    for bit in reversed(range(bits)):
        for column in columns:
            codes = (codes << _ONE) | ((column >> np.uint64(bit)) & _ONE)
    return codes


def hilbert(columns: Sequence[Places], bits: int) -> Places:
    """Return the positions of rows on the Hilbert curve from columns of `bits` bits.

    >>> x, y = np.array([0, 1, 1, 0], np.uint64), np.array([0, 0, 1, 1], np.uint64)
    >>> hilbert([x, y], 1).tolist()
    [0, 3, 2, 1]
    """
    axes = [column.copy() for column in columns]
    for bit in reversed(range(1, bits)):
        high, low = np.uint64(1 << bit), np.uint64((1 << bit) - 1)
        for axis in axes:
            is_set = (axis & high) != 0
            # invert the first axis if the bit is set, else exchange the low bits of both axes
            exchange = np.where(is_set, np.uint64(0), (axes[0] ^ axis) & low)
            axes[0] ^= np.where(is_set, low, exchange)
            if axis is not axes[0]:
                axis ^= exchange
    for i in range(1, len(axes)):
        axes[i] ^= axes[i - 1]
    turn = np.zeros(len(axes[0]), np.uint64)
    for bit in reversed(range(1, bits)):
        turn ^= np.where((axes[-1] >> np.uint64(bit)) & _ONE, np.uint64((1 << bit) - 1), turn & 0)
    return z_order([axis ^ turn for axis in axes], bits)


CURVES: Mapping[Curve, Callable[[Sequence[Places], int], Places]] = {
    "zorder": z_order,
    "hilbert": hilbert,
}
