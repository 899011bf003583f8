"""Checks the types of arguments that programs give, so that a wrong one is one sentence.

Only values that go on into names, texts and metadata are checked: a number that is written where
the specification has text makes a table unreadable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError


def wrong_type(what: str, expected: str, value: object) -> InvalidRequestError:
    """Return the error for an argument of a wrong type; the value may be large or secret."""
    kind = "None" if value is None else type(value).__name__
    return InvalidRequestError(f"{what}: expected {expected}, not {kind}")


def check_text(what: str, value: object) -> None:
    """Refuse anything but text."""
    if not isinstance(value, str):
        raise wrong_type(what, "text", value)


def check_whole_number(what: str, value: object) -> None:
    """Refuse anything but an integer; True and False are none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type(what, "a whole number", value)


def check_texts(what: str, values: object) -> None:
    """Refuse anything but a list, tuple or other collection of texts; one text is none."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise wrong_type(what, "a list of texts", values)
    for value in values:
        if not isinstance(value, str):
            raise wrong_type(what, "a list of texts", value)


def check_properties(what: str, properties: Any) -> None:
    """Refuse anything but a mapping of texts to texts."""
    if not isinstance(properties, Mapping):
        raise wrong_type(what, "a dict of texts", properties)
    for name, value in properties.items():
        if not isinstance(name, str):
            raise wrong_type(what, "names that are text", name)
        if not isinstance(value, str):
            raise wrong_type(f"{what}: '{name}'", "text", value)
