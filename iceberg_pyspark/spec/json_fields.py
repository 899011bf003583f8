"""Reads fields of untrusted JSON objects with the type and range that the specification requires.

Callers can rely on the types of returned values: integers have 32 or 64 bits and are not booleans,
strings can be encoded in UTF-8, lists hold items of one type. A wrong value raises
`InvalidMetadataError` with its JSON path. An optional field that is null counts as missing, as in
Java. Values of column types are in `values.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from iceberg_pyspark.errors import InvalidMetadataError

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
MAX_TIME_MS = MAX_INT64 // 1000
"""The largest time in milliseconds whose microseconds, in which times are shown, still fit 64 bits.
"""

_SHOWN_CHARACTERS = 80


compact_json = json.JSONEncoder(separators=(",", ":")).encode
"""Encode a value as JSON without spaces; the encoder is shared because creating one is expensive.
"""


def parse_json(text: str | bytes, where: str) -> Any:
    """Parse a JSON text; `where` begins the error message.

    NaN and Infinity are refused: Python would accept them, but they are not JSON.
    """
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as e:
        raise InvalidMetadataError(f"{where}: not valid JSON ({e})") from e


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def short_text(value: Any) -> str:
    """Return a short text of a JSON value for messages; lists and objects are not written out."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def is_text(value: Any) -> bool:
    """Return whether a value is a string that UTF-8 can encode: JSON can escape lone surrogates."""
    if not isinstance(value, str):
        return False
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)


def is_deeper(value: Any, levels: int) -> bool:
    """Return whether lists and objects nest deeper than `levels` levels."""
    level = [value]
    for _ in range(levels + 1):
        level = [
            child
            for v in level
            if isinstance(v, list | dict)
            for child in (v.values() if isinstance(v, dict) else v)
        ]
        if not level:
            return False
    return True


def _is_plain(data: dict[str, Any]) -> bool:
    """Return whether all keys and values of an object are ASCII strings.

    The test is fast, because a table may have many snapshot summaries.
    """
    try:
        return "".join(data).isascii() and "".join(data.values()).isascii()
    except TypeError:
        return False


class JsonObject:
    """A JSON object at a path; each method reads one key and checks its value.

    >>> JsonObject({"snapshot-id": "3"}, "snapshots[0]").int64("snapshot-id")
    Traceback (most recent call last):
        ...
    iceberg_pyspark.errors.InvalidMetadataError: snapshots[0].snapshot-id: required integer, got '3'
    """

    __slots__ = ("_data", "path")

    def __init__(self, data: Any, path: str = "") -> None:
        if not isinstance(data, dict):
            where = f"{path}: " if path else ""
            raise InvalidMetadataError(f"{where}expected a JSON object, got {short_text(data)}")
        self._data = data
        self.path = path

    def path_of(self, key: str) -> str:
        """Return the path of one field of the object."""
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        """Return whether the field exists and is not null."""
        return self._data.get(key) is not None

    def value(self, key: str) -> Any:
        """Return the field unchecked, or None if it is missing."""
        return self._data.get(key)

    def names(self) -> Sequence[str]:
        """Return the field names; raise `InvalidMetadataError` if UTF-8 cannot encode a name."""
        for key in self._data:
            if not is_text(key):
                raise InvalidMetadataError(f"{self.path_of(short_text(key))}: not a name in UTF-8")
        return tuple(self._data)

    def string(self, key: str) -> str:
        """Return a required string."""
        value = self._data.get(key)
        if not isinstance(value, str) or not (value.isascii() or is_text(value)):
            raise self.wrong(key, "required string")
        return value

    def optional_string(self, key: str) -> str | None:
        """Return a string, or None if the field is missing."""
        return self.string(key) if self._data.get(key) is not None else None

    def boolean(self, key: str) -> bool:
        """Return a required boolean."""
        value = self._data.get(key)
        if not isinstance(value, bool):
            raise self.wrong(key, "required boolean")
        return value

    def int32(self, key: str, minimum: int = -MAX_INT32 - 1) -> int:
        """Return a required 32-bit integer that is at least `minimum`."""
        return self._integer(key, minimum, MAX_INT32)

    def optional_int32(self, key: str, minimum: int = -MAX_INT32 - 1) -> int | None:
        """Return a 32-bit integer, or None if the field is missing."""
        return self.int32(key, minimum) if self._data.get(key) is not None else None

    def int64(self, key: str, minimum: int = -MAX_INT64 - 1) -> int:
        """Return a required 64-bit integer that is at least `minimum`."""
        return self._integer(key, minimum, MAX_INT64)

    def optional_int64(self, key: str, minimum: int = -MAX_INT64 - 1) -> int | None:
        """Return a 64-bit integer, or None if the field is missing."""
        return self.int64(key, minimum) if self._data.get(key) is not None else None

    def time_ms(self, key: str) -> int:
        """Return a required time in milliseconds from 1970-01-01 UTC."""
        return self._integer(key, -MAX_TIME_MS, MAX_TIME_MS)

    def object(self, key: str) -> JsonObject:
        """Return a required object."""
        return JsonObject(self._data.get(key), self.path_of(key))

    def optional_object(self, key: str) -> JsonObject | None:
        """Return an object, or None if the field is missing."""
        return self.object(key) if self._data.get(key) is not None else None

    def array(self, key: str) -> list[Any]:
        """Return a required list; its items are not checked."""
        value = self._data.get(key)
        if not isinstance(value, list):
            raise self.wrong(key, "required list")
        return value

    def objects(self, key: str) -> list[JsonObject]:
        """Return a list of objects; a missing field gives an empty list."""
        if self._data.get(key) is None:
            return []
        path = self.path_of(key)
        return [JsonObject(v, f"{path}[{i}]") for i, v in enumerate(self.array(key))]

    def strings(self, key: str) -> tuple[str, ...]:
        """Return a required list of strings."""
        for i, value in enumerate(self.array(key)):
            if not is_text(value):
                raise self.wrong(key, "expected a string", i)
        return tuple(self._data[key])

    def int32s(self, key: str, minimum: int = -MAX_INT32 - 1) -> tuple[int, ...]:
        """Return a list of 32-bit integers; a missing field gives an empty one."""
        if self._data.get(key) is None:
            return ()
        for i, value in enumerate(self.array(key)):
            if type(value) is not int or not minimum <= value <= MAX_INT32:
                raise self.wrong(key, "expected an integer of 32 bits", i)
        return tuple(self._data[key])

    def string_map(self, key: str) -> dict[str, str]:
        """Return an object whose values are strings; a missing field gives an empty one."""
        value = self._data.get(key)
        if value is None:
            return {}
        if isinstance(value, dict) and _is_plain(value):
            return value
        entries = self.object(key)
        return {name: entries.string(name) for name in entries.names()}

    def wrong(self, key: str, rule: str, index: int | None = None) -> InvalidMetadataError:
        """Return the error for a field, or for one item of it, that breaks a rule."""
        value, path = self._data.get(key), self.path_of(key)
        if index is not None and isinstance(value, list):
            value, path = value[index], f"{path}[{index}]"
        return InvalidMetadataError(f"{path}: {rule}, got {short_text(value)}")

    def _integer(self, key: str, minimum: int, maximum: int) -> int:
        value = self._data.get(key)
        if type(value) is int and minimum <= value <= maximum:
            return value
        if type(value) is not int:
            raise self.wrong(key, "required integer")
        raise InvalidMetadataError(
            f"{self.path_of(key)}: must be {minimum} to {maximum}, got {short_text(value)}"
        )
