"""Adds logical types to the schema in a Parquet footer that the writer could not write itself.

Parquet specification, "Logical Types". Only the elements of the schema change; nothing in a footer
depends on its own length.
"""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.formats.encoding.compact_encoding import (
    CompactReader,
    write_signed,
    write_unsigned,
)
from iceberg_pyspark.spec.types import EDGE_ALGORITHMS

_SCHEMA = 2
_FIELD_ID = 9
_LOGICAL_TYPE = 10
_NEXT_STRUCT = b"\x1c"
"""The head of a struct whose id follows that of the field before it."""
_MAGIC = b"PAR1"
_TAIL = 8

VARIANT = b"\x0c" + write_signed(16) + b"\x13\x01\x00" + b"\x00"
"""The logical type VARIANT, version 1."""


def geography(crs: str | None, algorithm: str) -> bytes:
    """Return the logical type GEOGRAPHY; without a CRS it has the default one."""
    text = b"" if crs is None else b"\x18" + write_unsigned(len(crs.encode())) + crs.encode()
    head = b"\x25" if crs is None else b"\x15"
    number = write_signed(EDGE_ALGORITHMS.index(algorithm))
    return b"\x0c" + write_signed(18) + text + head + number + b"\x00" + b"\x00"


def annotated(footer: bytes, logical_types: Mapping[int, bytes]) -> bytes:
    """Return the footer with logical types by field id, for columns and groups without one.

    Raise `ValueError` or `IndexError` for damaged bytes.
    """
    reader = CompactReader(footer)
    out: list[bytes] = []
    copied = 0
    for part, part_kind in reader.others({}):
        if part != _SCHEMA:
            reader.skip(part_kind)
            continue
        for _ in reader.structs():
            integers: dict[int, int] = {}
            is_bare = True
            for field, kind in reader.others(integers, (_FIELD_ID,)):
                is_bare = is_bare and field != _LOGICAL_TYPE
                reader.skip(kind)
            logical_type = logical_types.get(integers.get(_FIELD_ID, -1))
            if logical_type is not None and is_bare:
                # fields are in the order of their ids, and the id of the column is the last
                end = reader.at - 1
                out += (footer[copied:end], _NEXT_STRUCT, logical_type)
                copied = end
    return b"".join((*out, footer[copied:]))


def annotated_end(end: bytes, logical_types: Mapping[int, bytes]) -> bytes:
    """Return the last bytes of a file, which contain its whole footer, with these logical types."""
    length = int.from_bytes(end[-_TAIL:-4], "little")
    begin = len(end) - _TAIL - length
    if begin < 0 or end[-4:] != _MAGIC:
        raise ValueError("not the end of a Parquet file")
    footer = annotated(end[begin:-_TAIL], logical_types)
    return b"".join((end[:begin], footer, len(footer).to_bytes(4, "little"), _MAGIC))
