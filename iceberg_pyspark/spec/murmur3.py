"""Murmur3 x86 32-bit with seed 0, over single values (Appendix B).

This module hashes few values: literals of a filter, one partition tuple, one file name. Whole
columns are hashed by `arrow/write/partition_batches.py` with numpy and mmh3.
"""

_MASK = 0xFFFFFFFF


def _mix(k: int) -> int:
    k = (k * 0xCC9E2D51) & _MASK
    k = ((k << 15) | (k >> 17)) & _MASK
    return (k * 0x1B873593) & _MASK


def murmur3_32(data: bytes) -> int:
    """Return the hash as a signed 32-bit integer.

    >>> murmur3_32("iceberg".encode())
    1210000089
    """
    h = 0
    tail_start = len(data) & ~3
    for i in range(0, tail_start, 4):
        h ^= _mix(int.from_bytes(data[i : i + 4], "little"))
        h = ((h << 13) | (h >> 19)) & _MASK
        h = (h * 5 + 0xE6546B64) & _MASK
    if tail := data[tail_start:]:
        h ^= _mix(int.from_bytes(tail, "little"))
    h ^= len(data)
    h ^= h >> 16
    h = (h * 0x85EBCA6B) & _MASK
    h ^= h >> 13
    h = (h * 0xC2B2AE35) & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h & 0x80000000 else h
