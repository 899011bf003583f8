"""Cuts upper bounds of texts and bytes to a length: the result is not less than the value.

Lower bounds are cut as they are. Specification, "Data File Fields", leaves the length to writers.
"""

from __future__ import annotations


def high_cut(value: str | bytes, length: int) -> str | bytes | None:
    """Return an upper bound of at most `length` code points or bytes, or None if there is none.

    >>> high_cut("abcdef", 3), high_cut("ab", 3), high_cut(b"\\xff\\xff\\x00", 2)
    ('abd', 'ab', None)
    """
    if len(value) <= length:
        return value
    return _next_text(value[:length]) if isinstance(value, str) else _next_bytes(value[:length])


def _next_text(prefix: str) -> str | None:
    while prefix:
        code = ord(prefix[-1]) + 1
        if code == 0xD800:
            code = 0xE000  # surrogates are not characters
        if code <= 0x10FFFF:
            return prefix[:-1] + chr(code)
        prefix = prefix[:-1]
    return None


def _next_bytes(prefix: bytes) -> bytes | None:
    incrementable = prefix.rstrip(b"\xff")
    return incrementable[:-1] + bytes([incrementable[-1] + 1]) if incrementable else None
