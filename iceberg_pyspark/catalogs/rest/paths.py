"""Paths and queries of requests to the server; names are percent-encoded.

Open API specification of the REST catalog, "parameters": namespace levels are joined by a
separator, which the server may set in its configuration.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from iceberg_pyspark.catalogs.catalog import Namespace, TableIdentifier
from iceberg_pyspark.errors import InvalidRequestError

DEFAULT_SEPARATOR = "%1F"
_NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """The paths of a catalog's resources, relative to its URI; `separator` is percent-encoded."""

    prefix: str = ""
    separator: str = DEFAULT_SEPARATOR

    @property
    def _root(self) -> str:
        # a prefix may contain slashes, and escapes: S3 Tables sends an ARN that is encoded already
        prefix = quote(_NO_ESCAPE.sub("%25", self.prefix.strip("/")), safe="/%")
        return f"v1/{prefix}/" if prefix else "v1/"

    @property
    def namespaces(self) -> str:
        """The path of the list of namespaces."""
        return f"{self._root}namespaces"

    def namespace(self, namespace: Namespace) -> str:
        """Return the path of a namespace."""
        self._check(namespace)
        levels = self.separator.join(quote(level, safe="") for level in namespace)
        return f"{self._root}namespaces/{levels}"

    def parent(self, namespace: Namespace) -> str:
        """Return a namespace as the value of the query parameter `parent`."""
        self._check(namespace)
        return unquote(self.separator).join(namespace)

    def tables(self, namespace: Namespace) -> str:
        """Return the path of the tables of a namespace."""
        return f"{self.namespace(namespace)}/tables"

    def table(self, identifier: TableIdentifier) -> str:
        """Return the path of a table."""
        return f"{self.tables(identifier.namespace)}/{quote(identifier.name, safe='')}"

    def credentials(self, identifier: TableIdentifier) -> str:
        """Return the path of a table's credentials."""
        return f"{self.table(identifier)}/credentials"

    def sign(self, identifier: TableIdentifier) -> str:
        """Return the path where requests to a table's store are signed."""
        return f"{self.table(identifier)}/sign"

    def metrics(self, identifier: TableIdentifier) -> str:
        """Return the path where a table's metrics are reported."""
        return f"{self.table(identifier)}/metrics"

    def plan(self, identifier: TableIdentifier) -> str:
        """Return the path where scans of a table are planned."""
        return f"{self.table(identifier)}/plan"

    def plan_of(self, identifier: TableIdentifier, plan_id: str) -> str:
        """Return the path of a scan plan."""
        return f"{self.plan(identifier)}/{quote(plan_id, safe='')}"

    def scan_tasks(self, identifier: TableIdentifier) -> str:
        """Return the path where the tasks of a plan are fetched."""
        return f"{self.table(identifier)}/tasks"

    def views(self, namespace: Namespace) -> str:
        """Return the path of the views of a namespace."""
        return f"{self.namespace(namespace)}/views"

    def view(self, identifier: TableIdentifier) -> str:
        """Return the path of a view."""
        return f"{self.views(identifier.namespace)}/{quote(identifier.name, safe='')}"

    def register(self, namespace: Namespace) -> str:
        """Return the path where a table is registered."""
        return f"{self.namespace(namespace)}/register"

    def register_view(self, namespace: Namespace) -> str:
        """Return the path where a view is registered."""
        return f"{self.namespace(namespace)}/register-view"

    @property
    def rename_table(self) -> str:
        """The path where tables are renamed."""
        return f"{self._root}tables/rename"

    @property
    def rename_view(self) -> str:
        """The path where views are renamed."""
        return f"{self._root}views/rename"

    @property
    def transaction(self) -> str:
        """The path where several tables are committed at once."""
        return f"{self._root}transactions/commit"

    def _check(self, namespace: Namespace) -> None:
        separator = unquote(self.separator)
        for level in namespace:
            if separator in level:
                raise InvalidRequestError(
                    f"namespace {namespace}: the level {level!r} holds {separator!r}, which the "
                    "catalog's server treats as the end of a level; choose another name"
                )
