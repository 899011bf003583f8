"""Paths and queries of requests to the server; names in them are percent-encoded.

Open API specification of the REST catalog, "parameters": namespace levels are joined by a
separator, which the server may set in its configuration.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from iceberg_pyspark.catalogs.catalog import Namespace, TableIdentifier
from iceberg_pyspark.errors import InvalidRequestError

DEFAULT_SEPARATOR = "%1F"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Where a catalog's resources are below its URI; `separator` is percent-encoded."""

    prefix: str = ""
    separator: str = DEFAULT_SEPARATOR

    @property
    def _root(self) -> str:
        # a prefix may have slashes of its own
        return f"v1/{quote(self.prefix.strip('/'))}/" if self.prefix.strip("/") else "v1/"

    @property
    def namespaces(self) -> str:
        """All namespaces."""
        return f"{self._root}namespaces"

    def namespace(self, namespace: Namespace) -> str:
        """One namespace."""
        self._check(namespace)
        levels = self.separator.join(quote(level, safe="") for level in namespace)
        return f"{self._root}namespaces/{levels}"

    def parent(self, namespace: Namespace) -> str:
        """A namespace as the value of the query's `parent`."""
        self._check(namespace)
        return unquote(self.separator).join(namespace)

    def tables(self, namespace: Namespace) -> str:
        """The tables of a namespace."""
        return f"{self.namespace(namespace)}/tables"

    def table(self, identifier: TableIdentifier) -> str:
        """One table."""
        return f"{self.tables(identifier.namespace)}/{quote(identifier.name, safe='')}"

    def credentials(self, identifier: TableIdentifier) -> str:
        """A table's credentials."""
        return f"{self.table(identifier)}/credentials"

    def sign(self, identifier: TableIdentifier) -> str:
        """Where requests to a table's store are signed."""
        return f"{self.table(identifier)}/sign"

    def metrics(self, identifier: TableIdentifier) -> str:
        """Where a table's metrics are reported."""
        return f"{self.table(identifier)}/metrics"

    def plan(self, identifier: TableIdentifier) -> str:
        """Where scans of a table are planned."""
        return f"{self.table(identifier)}/plan"

    def plan_of(self, identifier: TableIdentifier, plan_id: str) -> str:
        """One plan of a scan."""
        return f"{self.plan(identifier)}/{quote(plan_id, safe='')}"

    def scan_tasks(self, identifier: TableIdentifier) -> str:
        """Where the tasks of a plan are fetched."""
        return f"{self.table(identifier)}/tasks"

    def views(self, namespace: Namespace) -> str:
        """The views of a namespace."""
        return f"{self.namespace(namespace)}/views"

    def view(self, identifier: TableIdentifier) -> str:
        """One view."""
        return f"{self.views(identifier.namespace)}/{quote(identifier.name, safe='')}"

    def register(self, namespace: Namespace) -> str:
        """Where a table is registered."""
        return f"{self.namespace(namespace)}/register"

    @property
    def rename_table(self) -> str:
        """Where tables are renamed."""
        return f"{self._root}tables/rename"

    @property
    def rename_view(self) -> str:
        """Where views are renamed."""
        return f"{self._root}views/rename"

    @property
    def transaction(self) -> str:
        """Where several tables are committed to at once."""
        return f"{self._root}transactions/commit"

    def _check(self, namespace: Namespace) -> None:
        separator = unquote(self.separator)
        for level in namespace:
            if separator in level:
                raise InvalidRequestError(
                    f"namespace {namespace}: the level {level!r} holds {separator!r}, which the "
                    "catalog's server treats as the end of a level; choose another name"
                )
