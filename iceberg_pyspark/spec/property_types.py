"""The kinds of table properties: how a stored value is read, and which values may be set.

A stored value is read with the rules of Java, because other writers may have stored it: every
boolean except `true` is false, an integer has an optional sign and digits only. A value that Java
refuses raises an error that names the property. A value that is set through this package must be
valid: `check_settable` refuses `yes` for a boolean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from iceberg_pyspark.errors import InvalidRequestError

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
_MAX_DIGITS = len(str(LONG_MAX))

_WHOLE = re.compile(r"[+-]?\d{1,40}")
_FRACTION = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)"
)


class TableProperty(Protocol):
    """A property, identified by its name or by the prefix before the name of a column."""

    @property
    def name(self) -> str:
        """The property's name or prefix."""
        ...

    def problem(self, text: str) -> str | None:
        """Return why the text must not be set, or None if it may be set."""
        ...


def whole_number(text: str, largest: int = LONG_MAX) -> int | None:
    """Parse text like Java's `Integer.parseInt` and `Long.parseLong`; return None for invalid text.

    >>> whole_number("+7"), whole_number("1_000"), whole_number(" 7"), whole_number("3x")
    (7, None, None, None)
    """
    if not _WHOLE.fullmatch(text):
        return None
    number = int(text)
    return number if -largest - 1 <= number <= largest else None


def count_in(text: str) -> int | None:
    """Return the non-negative count in a summary value or blob property, or None if invalid.

    >>> count_in("7"), count_in("-7"), count_in("many"), count_in("9223372036854775808")
    (7, None, None, None)
    """
    # Python raises an error for very many digits
    if not (text.isascii() and text.isdecimal()) or len(text) > _MAX_DIGITS:
        return None
    count = int(text)
    return count if count <= LONG_MAX else None


def fraction(text: str) -> float | None:
    """Parse decimal text like Java's `Double.parseDouble`; return None for invalid text."""
    trimmed_text = text.strip("".join(map(chr, range(33))))
    if not _FRACTION.fullmatch(trimmed_text):
        return None
    return float(trimmed_text if trimmed_text[-1] not in "fFdD" else trimmed_text[:-1])


@dataclass(frozen=True, slots=True)
class IntProperty:
    """An integer of at least `minimum`, a Java `int` unless `largest` is larger.

    `below` says what Java does with a stored number that is smaller than `minimum`.
    """

    name: str
    default: int
    minimum: int | None = None
    largest: int = INT_MAX
    below: Literal["refused", "minimum", "default"] = "refused"

    def of(self, properties: Mapping[str, str]) -> int:
        """Return the value in `properties`; raise `InvalidRequestError` naming the property."""
        text = properties.get(self.name)
        if text is None:
            return self.default
        value, problem = whole_number(text, self.largest), self.problem(text)
        if value is None or (problem is not None and self.below == "refused"):
            raise _wrong(self.name, text, str(problem))
        if self.minimum is not None and value < self.minimum:
            return self.minimum if self.below == "minimum" else self.default
        return value

    def problem(self, text: str) -> str | None:
        """Return why the text must not be set (see `TableProperty`)."""
        value = whole_number(text, self.largest)
        if value is None:
            return f"is not an integer up to {self.largest}"
        if self.minimum is not None and value < self.minimum:
            return f"is less than {self.minimum}"
        return None


@dataclass(frozen=True, slots=True)
class FractionProperty:
    """A number strictly between 0 and 1, or also 1."""

    name: str
    default: float
    may_be_one: bool = False

    def of(self, properties: Mapping[str, str]) -> float:
        """Return the value in `properties`; raise `InvalidRequestError` naming the property."""
        text = properties.get(self.name)
        if text is None:
            return self.default
        check_settable(self, text)
        return fraction(text) or 0.0

    def problem(self, text: str) -> str | None:
        """Return why the text must not be set (see `TableProperty`)."""
        value = fraction(text)
        if value is None or not (0 < value < 1 or (self.may_be_one and value == 1)):
            return "is not a number between 0 and 1"
        return None


@dataclass(frozen=True, slots=True)
class BoolProperty:
    """A boolean; a stored value is true only if it is `true` in any case."""

    name: str
    default: bool

    def of(self, properties: Mapping[str, str]) -> bool:
        """Return the value in `properties`."""
        text = properties.get(self.name)
        return self.default if text is None else text.lower() == "true"

    def problem(self, text: str) -> str | None:
        """Return why the text must not be set (see `TableProperty`)."""
        return None if text.lower() in ("true", "false") else "is neither true nor false"


@dataclass(frozen=True, slots=True)
class ChoiceProperty:
    """One of several words, in any case."""

    name: str
    default: str
    choices: tuple[str, ...]

    def of(self, properties: Mapping[str, str]) -> str:
        """Return the value in lower case; raise `InvalidRequestError` naming the property."""
        text = properties.get(self.name)
        if text is None:
            return self.default
        check_settable(self, text)
        return text.lower()

    def problem(self, text: str) -> str | None:
        """Return why the text must not be set (see `TableProperty`)."""
        if text.lower() in self.choices:
            return None
        if len(self.choices) == 2:
            return f"is neither {' nor '.join(self.choices)}"
        return f"is none of {', '.join(self.choices)}"


@dataclass(frozen=True, slots=True)
class PatternProperty:
    """Text that matches a pattern, which `expectation` describes; the text is not parsed here."""

    name: str
    form: re.Pattern[str]
    expectation: str

    def problem(self, text: str) -> str | None:
        """Return why the text must not be set (see `TableProperty`)."""
        return None if self.form.fullmatch(text) else f"is not {self.expectation}"


@dataclass(frozen=True, slots=True)
class ColumnProperties:
    """Properties of one kind for single columns; each name is a prefix and the name of a column."""

    name: str
    kind: TableProperty

    def problem(self, text: str) -> str | None:
        """Return why the text must not be set (see `TableProperty`)."""
        return self.kind.problem(text)


def check_settable(prop: TableProperty, text: str, label: str | None = None) -> None:
    """Raise `InvalidRequestError` if the text must not be set; `label` replaces the name."""
    problem = prop.problem(text)
    if problem is not None:
        raise _wrong(label or prop.name, text, problem)


def _wrong(name: str, text: str, problem: str) -> InvalidRequestError:
    return InvalidRequestError(f"property '{name}': '{text}' {problem}")
