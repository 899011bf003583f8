"""Theta sketches: how many distinct values there are, in 32 KiB at most, and without order.

The format is Apache DataSketches' compact sketch (serial version 3), which the Puffin specification
names `apache-datasketches-theta-v1`. A sketch keeps the hashes below theta; once there were more
than `NOMINAL_ENTRIES` of them, theta is the least hash that is left out, so that what a sketch
holds follows from the values alone, whatever their order and however they were shared out.
What is hashed, and how, is `arrow/value_hashes.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from iceberg_pyspark.errors import InvalidMetadataError, UnsupportedFeatureError

THETA_SKETCH = "apache-datasketches-theta-v1"
"""The type of its blobs."""

DISTINCT_COUNT = "ndv"
"""Their property with the estimate, which table metadata repeat."""

NOMINAL_ENTRIES = 4096
"""The estimate is off by 1/sqrt of it: 1.6 %; the default of DataSketches in every language."""

SEED = 9001
"""What values are hashed with; sketches of another seed cannot be united with these."""

_SEED_HASH = 0x93CC
_MAX_THETA = 2**63 - 1
_SERIAL_VERSION, _COMPACT = 3, 3
_READ_ONLY, _EMPTY, _COMPACT_FLAG, _ORDERED, _SINGLE = 2, 4, 8, 16, 32
_MAX_ENTRIES = 1 << 26
"""The most that DataSketches allows."""

Hashes = npt.NDArray[np.uint64]


class ThetaSketch:
    """The least hashes of some values."""

    def __init__(self) -> None:
        self._hashes: Hashes = np.empty(0, np.uint64)
        self._theta = _MAX_THETA

    @classmethod
    def united(cls, sketches: Iterable[ThetaSketch]) -> ThetaSketch:
        """The sketch of the values of all."""
        out = cls()
        for sketch in sketches:
            out.unite(sketch)
        return out

    def add(self, hashes: Hashes) -> None:
        """Add values by their hashes of 63 bits, zero excepted, in any order and often."""
        new_hashes = hashes[(hashes < self._theta) & (hashes > 0)]
        if len(new_hashes):
            self._hashes = np.union1d(self._hashes, new_hashes)
            self._shrink()

    def unite(self, other: ThetaSketch) -> None:
        """Add the values of another sketch."""
        self._theta = min(self._theta, other._theta)
        self._hashes = self._hashes[self._hashes < self._theta]
        self.add(other._hashes)

    def _shrink(self) -> None:
        if len(self._hashes) > NOMINAL_ENTRIES:
            self._theta = int(self._hashes[NOMINAL_ENTRIES])
            self._hashes = self._hashes[:NOMINAL_ENTRIES].copy()

    @property
    def is_estimate(self) -> bool:
        """Whether there were more values than the sketch holds."""
        return self._theta < _MAX_THETA

    @property
    def distinct_count(self) -> int:
        """How many values there are, rounded down as Java does."""
        return int(len(self._hashes) / (self._theta / _MAX_THETA))

    def to_bytes(self) -> bytes:
        """The compact sketch, ordered."""
        count = len(self._hashes)
        flags = _READ_ONLY | _COMPACT_FLAG | _ORDERED
        longs = 3
        if not self.is_estimate:
            longs = 1 if count < 2 else 2
            flags |= (_EMPTY, _SINGLE, 0)[min(count, 2)]
        out = bytes([longs, _SERIAL_VERSION, _COMPACT, 0, 0, flags])
        out += _SEED_HASH.to_bytes(2, "little")
        if longs > 1:
            # the sampling probability after it is 1.0 as a float
            out += count.to_bytes(4, "little") + b"\x00\x00\x80\x3f"
        if longs > 2:
            out += self._theta.to_bytes(8, "little")
        return out + self._hashes.astype("<u8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> ThetaSketch:
        """Read a compact sketch of any writer; `where` names it in errors.

        Raises `InvalidMetadataError` for damaged bytes, `UnsupportedFeatureError` for a sketch that
        is compressed or of another seed.
        """
        if len(data) < 8:
            raise InvalidMetadataError(f"{where}: {len(data)} bytes are too few for a theta sketch")
        longs, version, family, flags = data[0] & 0x3F, data[1], data[2], data[5]
        if (version, family) != (_SERIAL_VERSION, _COMPACT) or flags & 1:
            raise UnsupportedFeatureError(
                f"{where}: a theta sketch of serial version {version}, family {family} and flags "
                f"{flags:#x} is not supported; only compact sketches of version 3 are"
            )
        out = cls()
        if flags & _EMPTY:
            return out
        if int.from_bytes(data[6:8], "little") != _SEED_HASH:
            raise UnsupportedFeatureError(
                f"{where}: the theta sketch has another seed than {SEED}: it cannot be merged"
            )
        if not 1 <= longs <= 3 or len(data) < 8 * longs:
            raise InvalidMetadataError(f"{where}: a theta sketch of {longs} preamble longs")
        count = 1 if longs == 1 else int.from_bytes(data[8:12], "little")
        if count > _MAX_ENTRIES or len(data) < 8 * (longs + count):
            raise InvalidMetadataError(
                f"{where}: {len(data)} bytes are too few for a theta sketch of {count} hashes"
            )
        if longs == 3:
            out._theta = int.from_bytes(data[16:24], "little")
            if not 0 < out._theta <= _MAX_THETA:
                raise InvalidMetadataError(
                    f"{where}: theta {out._theta} is not valid in a theta sketch"
                )
        hashes = np.frombuffer(data, "<u8", count, 8 * longs).astype(np.uint64)
        if ((hashes == 0) | (hashes >= out._theta)).any():
            raise InvalidMetadataError(f"{where}: hashes of a theta sketch lie outside of theta")
        out._hashes = np.unique(hashes)
        return out
