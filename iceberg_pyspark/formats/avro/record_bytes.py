"""Replaces numbers in encoded Avro records, whose other bytes stay as they are.

Schemas are those of `formats/avro/renamed_schemas.py`. Once, a schema becomes nested functions,
which pass over a record in some microseconds and make no object of it. Damaged bytes raise
`IndexError` or `ValueError`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache, partial
from typing import Any, TypeAlias

from iceberg_pyspark.formats.encoding.compact_encoding import read_signed, write_signed

Skip: TypeAlias = Callable[[bytes, int], int]
"""Returns the position after the value at a position."""
Places: TypeAlias = dict[str, tuple[int, int, Callable[[int | None], bytes]]]
"""By name, in order: the position of a field, the position after it, and its encoder."""
Find: TypeAlias = Callable[[bytes, int, Places], int]
"""Notes the places of the fields of a record, and returns the position after the record."""
_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}


def compile_change(
    schema: Mapping[str, Any], names: Collection[str]
) -> Callable[[bytes, int, Mapping[str, int | None]], tuple[bytes, int]]:
    """Return a function that returns the record at a position, and the position after it.

    It takes new numbers of fields among `names`, which are in the record or in records inside it.
    """
    find = _compile_find(schema, names)

    def change(data: bytes, at: int, numbers: Mapping[str, int | None]) -> tuple[bytes, int]:
        places: Places = {}
        end = find(data, at, places)
        parts = []
        for name, (start, after, encode) in places.items():
            if name in numbers:
                parts += [data[at:start], encode(numbers[name])]
                at = after
        return b"".join([*parts, data[at:end]]), end

    return change


def _compile_find(schema: Mapping[str, Any], names: Collection[str]) -> Find:
    """Return the function for the fields of some names in a record, and in records inside it."""
    steps = [_step(f["name"], f["type"], names) for f in schema["fields"]]

    def find(data: bytes, at: int, places: Places) -> int:
        for step in steps:
            at = step(data, at, places)
        return at

    return find


def _step(name: str, schema: Any, names: Collection[str]) -> Find:
    skip = _compile_skip(schema)
    # most records of a file have the same numbers
    encode = lru_cache(maxsize=8)(partial(_encode, schema))

    def note(data: bytes, at: int, places: Places) -> int:
        end = skip(data, at)
        places[name] = at, end, encode
        return end

    if name in names:
        return note
    if isinstance(schema, Mapping) and schema["type"] == "record":
        return _compile_find(schema, names)
    return lambda data, at, places: skip(data, at)


def _compile_skip(schema: Any) -> Skip:
    """Return the function that skips a value of a schema."""
    match schema:
        case {"type": "record", "fields": fields}:
            return _skip_all([_compile_skip(f["type"]) for f in fields])
        case {"type": "array", "items": items}:
            return _skip_items(_compile_skip(items))
        case {"type": "map", "values": values}:
            return _skip_items(_skip_all([_skip_bytes, _compile_skip(values)]))
        case {"type": "fixed", "size": size}:
            return lambda data, at: at + size
        case {"type": type_}:
            return _compile_skip(type_)
        case [*branches]:
            skips = [_compile_skip(branch) for branch in branches]
            return lambda data, at: skips[data[at] >> 1](data, at + 1)
        case "int" | "long":
            return _skip_number
        case "string" | "bytes":
            return _skip_bytes
        case _:
            size = _SIZES[schema]
            return lambda data, at: at + size


def _skip_all(skips: list[Skip]) -> Skip:
    def skip(data: bytes, at: int) -> int:
        for skip_one in skips:
            at = skip_one(data, at)
        return at

    return skip


def _skip_items(skip_item: Skip) -> Skip:
    def skip(data: bytes, at: int) -> int:
        count, at = read_signed(data, at)
        while count:
            if count < 0:
                # the number of bytes follows
                size, at = read_signed(data, at)
                at += size
            for _ in range(count):
                at = skip_item(data, at)
            count, at = read_signed(data, at)
        return at

    return skip


def _skip_number(data: bytes, at: int) -> int:
    while data[at] >= 0x80:
        at += 1
    return at + 1


def _skip_bytes(data: bytes, at: int) -> int:
    size, at = read_signed(data, at)
    if size < 0:
        raise ValueError(f"a length of {size}")
    return at + size


def _encode(schema: Any, number: int | None) -> bytes:
    """Return a number as a value of `int` or `long`, or of a union of one of them and `null`."""
    encoded = b"" if number is None else write_signed(number)
    if not isinstance(schema, list):
        return encoded
    branch = next(i for i, b in enumerate(schema) if (b == "null") == (number is None))
    return write_signed(branch) + encoded
