"""Counts in texts that any writer may have put in metadata: summaries, properties of blobs."""

from __future__ import annotations

from iceberg_pyspark.spec.property_types import LONG_MAX

_MOST_DIGITS = len(str(LONG_MAX))


def count_in(text: str) -> int | None:
    """The count that a text is; None where it is none that fits 64 bits.

    >>> count_in("7"), count_in("-7"), count_in("many"), count_in("9223372036854775808")
    (7, None, None, None)
    """
    # of very many digits Python makes no number at all
    if not (text.isascii() and text.isdecimal()) or len(text) > _MOST_DIGITS:
        return None
    found = int(text)
    return found if found <= LONG_MAX else None
