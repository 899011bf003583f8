"""Kinds of table properties: how the text of one is read, and which text may be set.

What is in a table is read as Java reads it, because other writers put it there: every boolean but
`true` is false, numbers have digits and a sign and nothing else. What Java refuses is an error that
names the property. What is set through this package must be right: `check` says no to a `yes`.
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
    """A property by its name, or by the prefix that its name has before a column's."""

    @property
    def name(self) -> str:
        """Its name or prefix."""
        ...

    def problem(self, text: str) -> str | None:
        """Why this text must not be set; None: it may."""
        ...


def whole_number(text: str, largest: int = LONG_MAX) -> int | None:
    """Text as Java's `Integer.parseInt` and `Long.parseLong` read it; None for what they refuse.

    >>> whole_number("+7"), whole_number("1_000"), whole_number(" 7"), whole_number("3x")
    (7, None, None, None)
    """
    if not _WHOLE.fullmatch(text):
        return None
    number = int(text)
    return number if -largest - 1 <= number <= largest else None


def count_in(text: str) -> int | None:
    """The count in a text of a snapshot summary or a blob's properties; None where it is none.

    >>> count_in("7"), count_in("-7"), count_in("many"), count_in("9223372036854775808")
    (7, None, None, None)
    """
    # Python refuses to parse a text of very many digits
    if not (text.isascii() and text.isdecimal()) or len(text) > _MAX_DIGITS:
        return None
    count = int(text)
    return count if count <= LONG_MAX else None


def fraction(text: str) -> float | None:
    """Text as Java's `Double.parseDouble` reads it, hexadecimal apart; None for what it refuses."""
    trimmed = text.strip("".join(map(chr, range(33))))
    if not _FRACTION.fullmatch(trimmed):
        return None
    return float(trimmed if trimmed[-1] not in "fFdD" else trimmed[:-1])


@dataclass(frozen=True, slots=True)
class IntProperty:
    """A whole number of at least `minimum`, as Java an `int` unless `largest` says otherwise.

    `below` says what Java does with a smaller number that is in a table.
    """

    name: str
    default: int
    minimum: int | None = None
    largest: int = INT_MAX
    below: Literal["refused", "minimum", "default"] = "refused"

    def of(self, properties: Mapping[str, str]) -> int:
        """Its value; raises `InvalidRequestError` naming the property."""
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
        """See `TableProperty`."""
        value = whole_number(text, self.largest)
        if value is None:
            return f"is no integer up to {self.largest}"
        if self.minimum is not None and value < self.minimum:
            return f"is less than {self.minimum}"
        return None


@dataclass(frozen=True, slots=True)
class FractionProperty:
    """A number between 0 and 1, neither of them."""

    name: str
    default: float

    def of(self, properties: Mapping[str, str]) -> float:
        """Its value; raises `InvalidRequestError` naming the property."""
        text = properties.get(self.name)
        if text is None:
            return self.default
        problem = self.problem(text)
        if problem is not None:
            raise _wrong(self.name, text, problem)
        return fraction(text) or 0.0

    def problem(self, text: str) -> str | None:
        """See `TableProperty`."""
        value = fraction(text)
        if value is None or not 0 < value < 1:
            return "is no number between 0 and 1"
        return None


@dataclass(frozen=True, slots=True)
class BoolProperty:
    """`true` or `false`; in a table all that is not `true`, in any case, is false."""

    name: str
    default: bool

    def of(self, properties: Mapping[str, str]) -> bool:
        """Its value."""
        text = properties.get(self.name)
        return self.default if text is None else text.lower() == "true"

    def problem(self, text: str) -> str | None:
        """See `TableProperty`."""
        return None if text.lower() in ("true", "false") else "is neither true nor false"


@dataclass(frozen=True, slots=True)
class ChoiceProperty:
    """One of some words, in any case."""

    name: str
    default: str
    choices: tuple[str, ...]

    def of(self, properties: Mapping[str, str]) -> str:
        """The word in lower case; raises `InvalidRequestError` naming the property."""
        text = properties.get(self.name)
        if text is None:
            return self.default
        problem = self.problem(text)
        if problem is not None:
            raise _wrong(self.name, text, problem)
        return text.lower()

    def problem(self, text: str) -> str | None:
        """See `TableProperty`."""
        if text.lower() in self.choices:
            return None
        if len(self.choices) == 2:
            return f"is neither {' nor '.join(self.choices)}"
        return f"is none of {', '.join(self.choices)}"


@dataclass(frozen=True, slots=True)
class PatternProperty:
    """Text of some form, which `expectation` describes; whoever reads it takes it apart."""

    name: str
    form: re.Pattern[str]
    expectation: str

    def problem(self, text: str) -> str | None:
        """See `TableProperty`."""
        return None if self.form.fullmatch(text) else f"is not {self.expectation}"


@dataclass(frozen=True, slots=True)
class ColumnProperties:
    """The properties of single columns, whose names come after a prefix; all are of one kind."""

    name: str
    kind: TableProperty

    def problem(self, text: str) -> str | None:
        """See `TableProperty`."""
        return self.kind.problem(text)


def check_settable(prop: TableProperty, text: str, label: str | None = None) -> None:
    """Refuse text that must not be set; `label` is what the user calls it."""
    problem = prop.problem(text)
    if problem is not None:
        raise _wrong(label or prop.name, text, problem)


def _wrong(name: str, text: str, problem: str) -> InvalidRequestError:
    return InvalidRequestError(f"property '{name}': '{text}' {problem}")
