"""Names of tables and namespaces: how text becomes one, and which names are refused.

A name with a slash is a path, else levels separated by dots; backticks quote a level, two of them
stand for one. Which names a store cannot hold is that store's own check (`check_folder_name` for
those that make folders of them).
"""

from __future__ import annotations

from collections.abc import Sequence

from iceberg_pyspark.catalogs.catalog import Namespace, TableIdentifier
from iceberg_pyspark.errors import InvalidRequestError

_MAX_LEVEL_LENGTH = 255


def is_path(name: str) -> bool:
    """Whether a name is a path (it holds a slash outside backticks) and not an identifier.

    >>> is_path("/warehouse/db/events"), is_path("db.events"), is_path("db.`a/b`")
    (True, False, False)
    """
    return any("/" in part for part in name.split("`")[::2])


def parse_levels(text: str) -> tuple[str, ...]:
    """The levels of a dotted name; raises `InvalidRequestError` for what is no name.

    >>> parse_levels("db.events"), parse_levels("`a.b`.`c``d`")
    (('db', 'events'), ('a.b', 'c`d'))
    """
    levels: list[str] = []
    rest = text
    while True:
        if rest.startswith("`"):
            level, rest = _quoted_level(rest, text)
        else:
            end = min((i for i in (rest.find("."), rest.find("`")) if i >= 0), default=len(rest))
            level, rest = rest[:end], rest[end:]
        levels.append(level)
        if not rest:
            break
        if not rest.startswith("."):
            raise InvalidRequestError(
                f"name {text!r}: a dot must follow the level {level!r}; quote whole levels"
            )
        rest = rest[1:]
    for level in levels:
        check_level(level, text)
    return tuple(levels)


def _quoted_level(rest: str, text: str) -> tuple[str, str]:
    """The level between backticks that `rest` starts with, and what follows it."""
    level = ""
    at = 1
    while (end := rest.find("`", at)) >= 0:
        level += rest[at:end]
        if rest[end + 1 : end + 2] != "`":
            return level, rest[end + 1 :]
        level += "`"
        at = end + 2
    raise InvalidRequestError(f"name {text!r}: a backtick is not closed")


def quoted(levels: Sequence[str]) -> str:
    """A dotted name as SQL takes it, whatever its levels hold.

    >>> quoted(("db", "a`b"))
    '`db`.`a``b`'
    """
    return ".".join(f"`{level.replace('`', '``')}`" for level in levels)


def split_catalog(
    levels: tuple[str, ...], catalogs: tuple[str, ...]
) -> tuple[str | None, Namespace]:
    """The catalog a name starts with, if it is one of those known, and the levels after it.

    A name of one level never is a catalog's: it must name a table.

    >>> split_catalog(("lake", "db", "events"), ("lake",))
    ('lake', ('db', 'events'))
    """
    if len(levels) > 1 and levels[0] in catalogs:
        return levels[0], levels[1:]
    return None, levels


def check_level(level: str, text: str | None = None) -> None:
    """Refuse a level that no catalog may hold: empty, too long, or with control characters."""
    shown = level if text is None else text
    if not level:
        raise InvalidRequestError(f"name {shown!r}: a level is empty")
    if len(level) > _MAX_LEVEL_LENGTH:
        raise InvalidRequestError(
            f"name {shown[:40]!r}...: a level has {len(level)} characters, {_MAX_LEVEL_LENGTH} "
            "are allowed"
        )
    if any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in level):
        raise InvalidRequestError(f"name {shown!r}: control characters are not allowed")
    if level in (".", ".."):
        raise InvalidRequestError(f"name {shown!r}: {level!r} is not allowed as a level")


def check_folder_name(level: str) -> None:
    """Refuse a level that cannot be the name of one folder in the place it belongs to."""
    check_level(level)
    if "/" in level or "\\" in level:
        raise InvalidRequestError(
            f"name {level!r}: slashes are not allowed where levels are folders"
        )
    if level.startswith("."):
        raise InvalidRequestError(
            f"name {level!r}: a leading dot is not allowed where levels are folders; it hides them"
        )
    if len(level.encode("utf-8")) > _MAX_LEVEL_LENGTH:
        raise InvalidRequestError(
            f"name {level[:40]!r}...: it needs more than {_MAX_LEVEL_LENGTH} bytes as a folder"
        )


def check_namespace(namespace: Namespace) -> None:
    """Refuse the empty namespace, and levels that `check_level` refuses."""
    if not namespace:
        raise InvalidRequestError("a namespace needs at least one level")
    for level in namespace:
        check_level(level)


def check_identifier(identifier: TableIdentifier) -> None:
    """Refuse a table name with a level that `check_level` refuses."""
    for level in (*identifier.namespace, identifier.name):
        check_level(level)
