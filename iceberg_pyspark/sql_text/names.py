"""Parses names in SQL text: levels separated by dots, quoted by backticks (two stand for one).

A name with a slash is a path and has no levels.
"""

from __future__ import annotations

from collections.abc import Sequence

from iceberg_pyspark.display import quoted as quoted
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.sql_text.lazy_parser import ClauseToken, term_tokens

MAX_LEVEL_LENGTH = 255


def is_path(name: str) -> bool:
    """Return whether a name is a path (with a slash outside backticks) and not an identifier.

    >>> is_path("/warehouse/db/events"), is_path("db.events"), is_path("db.`a/b`")
    (True, False, False)
    """
    return any("/" in part for part in name.split("`")[::2])


def parse_levels(text: str) -> tuple[str, ...]:
    """Return the levels of a dotted name; raise `InvalidRequestError` for an invalid name.

    >>> parse_levels("db.events"), parse_levels("`a.b`.`c``d`")
    (('db', 'events'), ('a.b', 'c`d'))
    """
    levels = _levels_in_backticks(text) if "`" in text else text.split(".")
    for level in levels:
        check_level(level, text)
    return tuple(levels)


def _levels_in_backticks(text: str) -> list[str]:
    """Return the levels of a name that has at least one level in backticks."""
    levels: list[str] = []
    start, in_backticks = 0, None
    for token in (*term_tokens(text), ClauseToken(".", len(text))):
        if token.is_quoted and in_backticks is None:
            in_backticks = token
        elif token.text == ".":
            levels.append(_level(text, start, token.start, in_backticks))
            start, in_backticks = token.end, None
    return levels


def _level(text: str, start: int, end: int, in_backticks: ClauseToken | None) -> str:
    """Return the level between two dots; a name in backticks must be the whole level."""
    if in_backticks is None:
        return text[start:end]
    begins = in_backticks.start == start
    level = unquote(in_backticks.text) if begins else text[start : in_backticks.start]
    if not begins or in_backticks.end != end:
        raise InvalidRequestError(
            f"name {text!r}: a dot must follow the level {level!r}; quote whole levels"
        )
    return level


def unquote(name: str) -> str:
    """Return a level or word without its backticks, if it has any."""
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def quoted_name(levels: Sequence[str]) -> str:
    """Return a dotted name with all levels in backticks, so that SQL accepts any levels.

    >>> quoted_name(("db", "a`b"))
    '`db`.`a``b`'
    """
    return ".".join(map(quoted, levels))


def readable_name(levels: Sequence[str]) -> str:
    """Return the shortest text that `parse_levels` parses to these levels.

    >>> readable_name(("db", "a.b"))
    'db.`a.b`'
    """
    return ".".join(quoted(v) if any(c in v for c in "./`") else v for v in levels)


def check_level(level: str, text: str | None = None) -> None:
    """Refuse a level that no catalog may hold: empty, too long, or with control characters."""
    whole_name = level if text is None else text
    if not level:
        raise InvalidRequestError(f"name {whole_name!r}: a level is empty")
    if len(level) > MAX_LEVEL_LENGTH:
        raise InvalidRequestError(
            f"name {whole_name[:40]!r}...: a level has {len(level)} characters, {MAX_LEVEL_LENGTH} "
            "are allowed"
        )
    if any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in level):
        raise InvalidRequestError(f"name {whole_name!r}: control characters are not allowed")
    if level in (".", ".."):
        raise InvalidRequestError(f"name {whole_name!r}: {level!r} is not allowed as a level")
