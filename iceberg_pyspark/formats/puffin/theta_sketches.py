"""Theta sketches, which estimate the number of distinct values in at most 32 KiB.

The format is Apache DataSketches' compact sketch (serial version 3), which the Puffin specification
names `apache-datasketches-theta-v1`. A sketch keeps the hashes below theta. If there are more than
`NOMINAL_ENTRIES` hashes, theta is the smallest hash that is left out. The content of a sketch
therefore depends only on the values, not on their order or their distribution over sketches.
`arrow/value_hashes.py` defines which bytes are hashed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from iceberg_pyspark.errors import InvalidMetadataError, UnsupportedFeatureError

THETA_SKETCH = "apache-datasketches-theta-v1"
"""The blob type of theta sketches."""

DISTINCT_COUNT = "ndv"
"""The blob property with the estimate, which table metadata repeats."""

NOMINAL_ENTRIES = 4096
"""The default of DataSketches in every language; the relative error is 1/sqrt of it: 1.6 %."""

SEED = 9001
"""The hash seed; sketches with another seed cannot be united with sketches of this package."""

_SEED_HASH = 0x93CC
_MAX_THETA = 2**63 - 1
_SERIAL_VERSION, _COMPACT = 3, 3
_READ_ONLY, _EMPTY, _COMPACT_FLAG, _ORDERED, _SINGLE = 2, 4, 8, 16, 32
_MAX_ENTRIES = 1 << 26
"""The most entries that DataSketches allows."""

Hashes = npt.NDArray[np.uint64]


class ThetaSketch:
    """The smallest hashes of a set of values."""

    def __init__(self) -> None:
        self._hashes: Hashes = np.empty(0, np.uint64)
        self._theta = _MAX_THETA

    def add(self, hashes: Hashes) -> None:
        """Add values by their 63-bit hashes, in any order, also repeated; zeros are skipped."""
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
        """Whether there were more values than the sketch can hold."""
        return self._theta < _MAX_THETA

    @property
    def distinct_count(self) -> int:
        """The estimated number of distinct values, rounded down as in Java."""
        return int(len(self._hashes) / (self._theta / _MAX_THETA))

    def to_bytes(self) -> bytes:
        """Return the compact sketch with sorted hashes."""
        count = len(self._hashes)
        flags = _READ_ONLY | _COMPACT_FLAG | _ORDERED
        longs = 3
        if not self.is_estimate:
            longs = 1 if count < 2 else 2
            flags |= (_EMPTY, _SINGLE, 0)[min(count, 2)]
        out = bytes([longs, _SERIAL_VERSION, _COMPACT, 0, 0, flags])
        out += _SEED_HASH.to_bytes(2, "little")
        if longs > 1:
            # the sampling probability 1.0 as a float follows the count
            out += count.to_bytes(4, "little") + b"\x00\x00\x80\x3f"
        if longs > 2:
            out += self._theta.to_bytes(8, "little")
        return out + self._hashes.astype("<u8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> ThetaSketch:
        """Parse a compact sketch of any writer; `where` begins the message of every error.

        Raises `InvalidMetadataError` for damaged bytes, `UnsupportedFeatureError` for a compressed
        sketch or a sketch with another seed.
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
