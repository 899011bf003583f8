"""Declares options of reads and writes, with name, default and values.

An invalid value is an error that names the option. An unknown option is an error too, because a
misspelt option must not be ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.property_types import LONG_MAX, whole_number
from iceberg_pyspark.sql_text.on_demand import term_tokens

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """`read` gives None for text that is not `expected`."""

    name: str
    default: T
    read: Callable[[str], T | None]
    expected: str

    def of(self, options: Mapping[str, str]) -> T:
        """Its value; raises `InvalidRequestError` naming the option."""
        text = options.get(self.name)
        if text is None:
            return self.default
        value = self.read(text)
        if value is None:
            raise InvalidRequestError(f"option {self.name} is {self.expected}, got '{text}'")
        return value


def number_option(
    name: str, minimum: int | None = None, largest: int = LONG_MAX
) -> Option[int | None]:
    """A whole number; None where it is left out."""

    def read(text: str) -> int | None:
        value = whole_number(text.strip(), largest)
        return None if value is None or (minimum is not None and value < minimum) else value

    bounds = "" if minimum is None else f" of at least {minimum} and at most {largest}"
    return Option(name, None, read, f"a whole number{bounds}")


def flag_option(name: str, default: bool) -> Option[bool]:
    """`true` or `false`, in any case."""
    values = {"true": True, "false": False}
    return Option(name, default, lambda text: values.get(text.lower()), "true or false")


def choice_option(name: str, *choices: str) -> Option[str | None]:
    """One of some words, in any case; None where it is left out."""
    values = {word: word for word in choices}
    return Option(name, None, lambda text: values.get(text.lower()), " or ".join(choices))


def lower_names(options: Mapping[str, str]) -> dict[str, str]:
    """The options by their names in lower case: names ignore case."""
    return {name.lower(): value for name, value in options.items()}


def with_prefix(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The options that begin with a prefix, by the rest of their names, whose case stays."""
    return {k[len(prefix) :]: v for k, v in options.items() if k.lower().startswith(prefix)}


def refuse_unknown(
    options: Mapping[str, str],
    problem: str,
    accepted_names: Collection[str],
    prefixes: Sequence[str],
    *,
    silent: Collection[str] = (),
    silent_prefixes: Sequence[str] = (),
) -> None:
    """Refuse an option that is not among the known ones, which the error lists.

    `problem` is what the error begins with. `silent` are accepted too and not listed; a prefix
    allows every name that begins with it.
    """
    for name in options:
        if name not in accepted_names and name not in silent:
            if name.startswith((*prefixes, *silent_prefixes)):
                continue
            raise InvalidRequestError(
                f"{problem} '{name}'; known: {', '.join(sorted(accepted_names))}"
                + "".join(f", {p}<key>" for p in prefixes)
            )


def list_items(text: str | None) -> tuple[str, ...] | None:
    """Comma-separated items; commas in parentheses or backticks do not separate."""
    if text is None:
        return None
    # names without either need no parser, which takes time to load
    marks = term_tokens(text) if "(" in text or "`" in text else ()
    items: list[str] = []
    depth = start = 0
    for token in marks:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            items.append(text[start : token.start])
            start = token.end
    items += [text[start:]] if marks else text.split(",")
    names = tuple(item.strip() for item in items)
    if not all(names):
        raise InvalidRequestError(f"'{text}' has an empty item; write a,b,c")
    return names
