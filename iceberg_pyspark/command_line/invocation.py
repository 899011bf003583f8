"""Provides the catalog and the output, which all commands share.

The catalog of a name is the catalog of `--catalog`, else the configured catalog that is the name's
first level, else the default catalog. A path needs no catalog.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from iceberg_pyspark.catalogs.catalog_properties import (
    configured_names,
    configured_properties,
    default_name,
)
from iceberg_pyspark.command_line.output import Output
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.sql_text.names import is_path, parse_levels, readable_name

if TYPE_CHECKING:
    from iceberg_pyspark.table.table import Table
    from iceberg_pyspark.table.table_catalog import TableCatalog

_EMBEDDED_WAREHOUSE = "iceberg-warehouse"
_BOOLEANS = {
    **dict.fromkeys(("true", "t", "1", "yes", "y", "on"), True),
    **dict.fromkeys(("false", "f", "0", "no", "n", "off"), False),
}


def _nothing() -> None:
    pass


before_open: Callable[[], None] = _nothing
"""What a process that only runs the command does before it opens a catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """The parsed options of `iceberg-py` itself."""

    catalog: str | None
    properties: Mapping[str, str] = field(repr=False)
    output: Output

    @property
    def is_default(self) -> bool:
        """Whether the options determine no catalog."""
        return self.catalog is None and not self.properties

    def locate(self, name: str) -> tuple[TableCatalog, str]:
        """Return the catalog of a table or namespace, and the name in the catalog."""
        if is_path(name):
            return self._paths(name), name
        catalog, rest = self.split(name)
        return self.open(catalog), rest

    def split(self, name: str) -> tuple[str | None, str]:
        """Return the catalog's name, if the options or `name` have one, and the name within it."""
        levels = parse_levels(name)
        if self.is_default and len(levels) > 1 and levels[0] in configured_names(os.environ):
            return levels[0], readable_name(levels[1:])
        return self.catalog, name

    def table(self, name: str) -> Table:
        """Return the table with that name or path; raise `NoSuchTableError`."""
        catalog, rest = self.locate(name)
        return catalog.load_table(rest)

    def open(self, name: str | None) -> TableCatalog:
        """Open a catalog by name, with the properties of the options; None: the default catalog."""
        before_open()
        # this import takes a second, which `--help` and completion save
        from iceberg_pyspark.table.table_catalog import load_catalog  # noqa: PLC0415

        if name is None and not self.properties:
            _check_default()
        return load_catalog(name, **self.properties)

    def _paths(self, path: str) -> TableCatalog:
        before_open()
        from iceberg_pyspark.catalogs.hadoop.path_tables import PathCatalog  # noqa: PLC0415 - as above
        from iceberg_pyspark.table.table_catalog import TableCatalog  # noqa: PLC0415

        if self.catalog is not None:
            raise InvalidRequestError(
                f"'{path}' is a path, which belongs to no catalog; leave out --catalog, or name "
                "the table as db.table"
            )
        return TableCatalog(PathCatalog(self.properties))


def invocation_of(context: typer.Context) -> Invocation:
    """Return the parsed options before the command."""
    invocation = context.find_object(Invocation)
    assert invocation is not None, "the group's callback runs before its commands"
    return invocation


def _check_default() -> None:
    """Refuse to create an embedded catalog in a folder without a configured default catalog."""
    environment = os.environ
    name = default_name(environment)
    if configured_properties(name, environment) or os.path.isdir(_EMBEDDED_WAREHOUSE):
        return
    names = ", ".join(configured_names(environment)) or "none"
    raise InvalidRequestError(
        f"no catalog is named, and '{name}' is not configured (configured are: {names}); give "
        "--catalog, --uri, or --warehouse with a folder, which becomes a catalog of its own"
    )


def parse_property(text: str) -> tuple[str, str]:
    """Split `key=value`; raise `typer.BadParameter`."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        # the message leaves out the text, which may be a secret
        raise typer.BadParameter("expected key=value")
    return key, value


def parse_boolean(text: str) -> bool:
    """Parse `true` or `false`, or another word that PyIceberg's command accepts for one of them.

    Raise `typer.BadParameter`.
    """
    lower_text = text.strip().lower()
    if lower_text not in _BOOLEANS:
        raise typer.BadParameter(f"'{text}' is neither true nor false")
    return _BOOLEANS[lower_text]
