"""Hashes the values of a column for theta sketches.

A value is hashed in its binary single-value form (specification, Appendix D) by the first half of
MurmurHash3_x64_128 without its lowest bit. Java's `UpdateSketch.update` computes the same hash, so
sketches of both libraries can be merged. An empty value, such as an empty string, has no hash.

The package `datasketches` cannot serve: its Python sketches take integers of 8 bytes, floats and
texts, but no bytes, so decimals, UUIDs, binary values, dates and integers of 4 bytes would have
other hashes than in Java.
"""

from __future__ import annotations

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrays import buffer_values
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.formats.puffin.theta_sketches import SEED, Hashes
from iceberg_pyspark.spec import types

_BLOCK = 16
_LONG_BYTES = 512
"""Longer values are hashed one by one."""

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)

_FOUR_BYTES = (types.IntegerType, types.DateType, types.FloatType)
_EIGHT_BYTES = (
    types.LongType,
    types.DoubleType,
    types.TimeType,
    types.TimestampType,
    types.TimestamptzType,
    types.TimestampNsType,
    types.TimestamptzNsType,
)
_BYTES = (types.StringType, types.BinaryType, types.FixedType, types.UUIDType)

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]


def is_hashable(type_: types.Type) -> bool:
    """Return whether values of the type have hashes."""
    return isinstance(
        type_, (types.BooleanType, types.DecimalType, *_FOUR_BYTES, *_EIGHT_BYTES, *_BYTES)
    )


def value_hashes(type_: types.Type, values: pa.Array) -> Hashes:
    """Return the hashes of the non-null values of an `arrow_type(type_)` array, with duplicates."""
    values = values.drop_null()
    match type_:
        case types.BooleanType():
            return _hashes_of_width(np.asarray(values.cast(pa.uint8())))
        case types.DecimalType():
            return _decimal_hashes(values)
    if isinstance(type_, _FOUR_BYTES):
        return _hashes_of_width(np.asarray(values.view(pa.uint32())))
    if isinstance(type_, _EIGHT_BYTES):
        return _hashes_of_width(np.asarray(values.view(pa.uint64())))
    if isinstance(type_, _BYTES):
        storage = values.storage if isinstance(values, pa.ExtensionArray) else values
        # texts often repeat, and comparing texts is cheaper than hashing them
        return _bytes_hashes(pc.unique(storage).cast(pa.large_binary()))
    raise UnsupportedFeatureError(f"values of {type_} have no hash")


def _hashes_of_width(values: npt.NDArray[np.unsignedinteger]) -> Hashes:
    """Return the hashes of unsigned integers, as little-endian bytes of their width."""
    h1 = _mixed1(values.astype(np.uint64)) ^ np.uint64(SEED)
    width = np.uint64(values.dtype.itemsize)
    return _with_final_mix(h1 ^ width, np.full(len(values), SEED, np.uint64) ^ width)


def _decimal_hashes(values: pa.Array) -> Hashes:
    """Hash the shortest two's complement of each decimal, the most significant byte first."""
    values = pc.unique(values).cast(pa.decimal128(38, values.type.scale))
    size = 16
    data = buffer_values(values.buffers()[1], np.uint8, values.offset * size, len(values) * size)
    big_endian = data.reshape(-1, size)[:, ::-1]
    sign = np.where(big_endian[:, 0] >> 7, 0xFF, 0).astype(np.uint8)
    differs = big_endian != sign[:, None]
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), size - 1)
    # the highest bit of the first byte must be the sign
    top = big_endian[np.arange(len(big_endian)), first] >> 7
    first = np.where(differs.any(axis=1) & (top != sign >> 7), first - 1, first).astype(np.int64)
    starts = np.arange(len(big_endian), dtype=np.int64) * size + first
    return _hashes(np.ascontiguousarray(big_endian).reshape(-1), starts, size - first)


def _bytes_hashes(values: pa.Array) -> Hashes:
    buffers = values.buffers()
    if not len(values) or buffers[2] is None:
        return np.empty(0, np.uint64)
    offsets = buffer_values(buffers[1], np.int64, values.offset, len(values) + 1)
    lengths = np.diff(offsets)
    starts, data = offsets[:-1], np.frombuffer(buffers[2], np.uint8)
    has_bytes = (lengths > 0) & (lengths <= _LONG_BYTES)
    hashes = _hashes(data, starts[has_bytes], lengths[has_bytes])
    long = np.flatnonzero(lengths > _LONG_BYTES)
    if not len(long):
        return hashes
    one_by_one = [
        mmh3.hash64(data[offsets[i] : offsets[i + 1]].tobytes(), SEED, signed=False)[0] >> 1
        for i in long
    ]
    return np.concatenate([hashes, np.array(one_by_one, np.uint64)])


def _hashes(data: Bytes, starts: Integers, lengths: Integers) -> Hashes:
    """Return the hashes of many values at once, computed block by block."""
    h1 = np.full(len(starts), SEED, np.uint64)
    h2 = h1.copy()
    if not len(starts):
        return h1
    blocks = lengths // _BLOCK
    for i in range(int(blocks.max())):
        at = np.flatnonzero(blocks > i)
        k1, k2 = _words(data, starts[at] + i * _BLOCK, None)
        a, b = h1[at] ^ _mixed1(k1), h2[at]
        a = (_rotate(a, 27) + b) * np.uint64(5) + np.uint64(0x52DCE729)
        b = b ^ _mixed2(k2)
        b = (_rotate(b, 31) + a) * np.uint64(5) + np.uint64(0x38495AB5)
        h1[at], h2[at] = a, b
    # missing bytes are zeros, and a zero word leaves the hash unchanged
    k1, k2 = _words(data, starts + blocks * _BLOCK, lengths % _BLOCK)
    h1 ^= _mixed1(k1)
    h2 ^= _mixed2(k2)
    return _with_final_mix(h1 ^ lengths.astype(np.uint64), h2 ^ lengths.astype(np.uint64))


def _with_final_mix(h1: Hashes, h2: Hashes) -> Hashes:
    """Return the hashes of values from the state after their last bytes and lengths."""
    h1 = h1 + h2
    h2 = h2 + h1
    hashes: Hashes = (_final_mix(h1) + _final_mix(h2)) >> np.uint64(1)
    return hashes


def _words(data: Bytes, starts: Integers, lengths: Integers | None) -> tuple[Hashes, Hashes]:
    """Return two little-endian words of 16 bytes from each start; bytes after a length are zero."""
    places = starts[:, None] + np.arange(_BLOCK)
    if lengths is None:
        block = data[places]
    else:
        inside = np.arange(_BLOCK) < lengths[:, None]
        block = np.where(inside, data[np.where(inside, places, 0)], 0).astype(np.uint8)
    words = block.view("<u8")
    return words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)


def _rotate(values: Hashes, bits: int) -> Hashes:
    result: Hashes = (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
    return result


def _mixed1(k1: Hashes) -> Hashes:
    result: Hashes = _rotate(k1 * _C1, 31) * _C2
    return result


def _mixed2(k2: Hashes) -> Hashes:
    result: Hashes = _rotate(k2 * _C2, 33) * _C1
    return result


def _final_mix(h: Hashes) -> Hashes:
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    result: Hashes = h ^ (h >> np.uint64(33))
    return result
