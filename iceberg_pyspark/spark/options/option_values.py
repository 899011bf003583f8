"""Declares options of reads and writes, with name, default and values; and session settings.

An invalid value is an error that names the option. An unknown option is an error too, because a
misspelt option must not be ignored. The names of read options that select a range of snapshots are
Iceberg's (`SparkReadOptions`), and all kinds of reads accept them.

The session settings are `spark.sql.iceberg.read.allow-outside-locations` and
`spark.sql.iceberg.read.restrict-locations`. The session's setting takes precedence over the
catalog's property, and an option of a read takes precedence over both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark.sql import SparkSession

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.property_types import LONG_MAX, whole_number
from iceberg_pyspark.sql_text.lazy_parser import term_tokens
from iceberg_pyspark.storage.store_properties import LOCATION_OPTIONS

if TYPE_CHECKING:
    # Tasks import this module and need no catalog.
    from iceberg_pyspark.catalogs.catalog import LoadedTable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """An option of a read or a write; `parse` returns None for a text that is not as the
    `expectation` says.
    """

    name: str
    default: T
    parse: Callable[[str], T | None]
    expectation: str

    def of(self, options: Mapping[str, str]) -> T:
        """Return the option's value or its default; raise `InvalidRequestError` for an invalid
        value.
        """
        text = options.get(self.name)
        if text is None:
            return self.default
        value = self.parse(text)
        if value is None:
            raise InvalidRequestError(f"option {self.name} is {self.expectation}, got '{text}'")
        return value


def number_option(
    name: str, minimum: int | None = None, largest: int = LONG_MAX
) -> Option[int | None]:
    """Return an option whose value is a whole number, or None if the option is left out."""

    def parse(text: str) -> int | None:
        value = whole_number(text.strip(), largest)
        return None if value is None or (minimum is not None and value < minimum) else value

    bounds = "" if minimum is None else f" of at least {minimum} and at most {largest}"
    return Option(name, None, parse, f"a whole number{bounds}")


def flag_option(name: str, default: bool) -> Option[bool]:
    """Return an option whose value is `true` or `false`, in any case."""
    values = {"true": True, "false": False}
    return Option(name, default, lambda text: values.get(text.lower()), "true or false")


def choice_option(name: str, *choices: str) -> Option[str | None]:
    """Return an option whose value is one of some words, in any case, or None if it is left out."""
    values = {word: word for word in choices}
    return Option(name, None, lambda text: values.get(text.lower()), " or ".join(choices))


def is_case_sensitive(spark: SparkSession) -> bool:
    """Return whether names of columns are case-sensitive in the session: the one rule for texts."""
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def lower_names(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options with their names in lower case, because option names ignore case."""
    return {name.lower(): value for name, value in options.items()}


def with_prefix(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the options whose names begin with a prefix, keyed by the rest of the name in its own
    case.
    """
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
    """Raise `InvalidRequestError` for an option that is not accepted; the error lists the known
    options.

    `problem` is the beginning of the error message. Names in `silent` are accepted but not listed.
    A prefix accepts every name that begins with it.
    """
    for name in options:
        if name not in accepted_names and name not in silent:
            if name.startswith((*prefixes, *silent_prefixes)):
                continue
            raise InvalidRequestError(
                f"{problem} '{name}'; known: {', '.join(sorted(accepted_names))}"
                + "".join(f", {p}<key>" for p in prefixes)
                + meant_option(name, {*accepted_names, *silent})
            )


def meant_option(name: str, known_names: Collection[str]) -> str:
    """Return the end of an error message that asks for the option that a name is like, if any.

    >>> meant_option("max_rows", ["max-rows", "min-rows"]), meant_option("other", ["max-rows"])
    ('; did you mean max-rows?', '')
    """
    alike = get_close_matches(name.replace("_", "-"), sorted(known_names), 1, 0.8)
    return f"; did you mean {alike[0]}?" if alike else ""


def list_items(text: str | None) -> tuple[str, ...] | None:
    """Return the comma-separated items; commas in parentheses or backticks do not separate."""
    if text is None:
        return None
    # Names without parentheses or backticks do not need the parser, which takes time to load.
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


_START_SNAPSHOT_ID = number_option("start-snapshot-id")
_END_SNAPSHOT_ID = number_option("end-snapshot-id")
_START_TIMESTAMP = number_option("start-timestamp")
_END_TIMESTAMP = number_option("end-timestamp")
_FIELDS = {
    "start_snapshot_id": _START_SNAPSHOT_ID,
    "end_snapshot_id": _END_SNAPSHOT_ID,
    "start_timestamp_ms": _START_TIMESTAMP,
    "end_timestamp_ms": _END_TIMESTAMP,
}

BETWEEN_SNAPSHOTS = frozenset(option.name for option in _FIELDS.values())
"""The names of the options."""


def snapshot_bounds(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the bounds in the options as fields of a `SnapshotSelector`; names are in lower case.

    Raise `InvalidRequestError` for a value that is not a whole number.
    """
    bounds = {name: option.of(values) for name, option in _FIELDS.items()}
    return {name: bound for name, bound in bounds.items() if bound is not None}


_SESSION = "spark.sql.iceberg."


def with_location_settings(
    loaded_table: LoadedTable, session: Mapping[str, str], options: Mapping[str, str] | None = None
) -> LoadedTable:
    """Return the table with its configuration completed by session settings and by read options."""
    settings = {o: session[_SESSION + o] for o in LOCATION_OPTIONS if _SESSION + o in session}
    settings |= {o: options[o] for o in LOCATION_OPTIONS if options and o in options}
    return (
        replace(loaded_table, config={**loaded_table.config, **settings})
        if settings
        else loaded_table
    )
