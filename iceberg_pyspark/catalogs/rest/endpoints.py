"""The endpoints that a server supports: those of its configuration, or the standard ones.

Open API specification of the REST catalog, `GET /v1/config`: `endpoints`.

Paths and queries of requests to the server; names are percent-encoded.

Open API specification of the REST catalog, "parameters": namespace levels are joined by a
separator, which the server may set in its configuration.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from iceberg_pyspark.catalogs.catalog import Namespace, TableIdentifier
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError

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


_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_VIEW = f"{_NAMESPACE}/views/{{view}}"

NAMESPACE_EXISTS = f"HEAD {_NAMESPACE}"
TABLE_EXISTS = f"HEAD {_TABLE}"
REGISTER_TABLE = f"POST {_NAMESPACE}/register"
RENAME_TABLE = "POST /v1/{prefix}/tables/rename"
REPORT_METRICS = f"POST {_TABLE}/metrics"
COMMIT_TRANSACTION = "POST /v1/{prefix}/transactions/commit"
UPDATE_NAMESPACE = f"POST {_NAMESPACE}/properties"
SIGN_REQUEST = f"POST {_TABLE}/sign"
LOAD_CREDENTIALS = f"GET {_TABLE}/credentials"
PLAN_SCAN = f"POST {_TABLE}/plan"
FETCH_PLAN = f"GET {_TABLE}/plan/{{plan-id}}"
CANCEL_PLAN = f"DELETE {_TABLE}/plan/{{plan-id}}"
FETCH_SCAN_TASKS = f"POST {_TABLE}/tasks"
REGISTER_VIEW = f"POST {_NAMESPACE}/register-view"
LIST_VIEWS = f"GET {_NAMESPACE}/views"
CREATE_VIEW = f"POST {_NAMESPACE}/views"
LOAD_VIEW = f"GET {_VIEW}"
REPLACE_VIEW = f"POST {_VIEW}"
DROP_VIEW = f"DELETE {_VIEW}"
VIEW_EXISTS = f"HEAD {_VIEW}"
RENAME_VIEW = "POST /v1/{prefix}/views/rename"

VIEW_ENDPOINTS = frozenset(
    (LIST_VIEWS, CREATE_VIEW, LOAD_VIEW, REPLACE_VIEW, DROP_VIEW, RENAME_VIEW)
)
_DEFAULT_ENDPOINTS = frozenset(
    (UPDATE_NAMESPACE, REGISTER_TABLE, RENAME_TABLE, REPORT_METRICS, COMMIT_TRANSACTION)
)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The endpoints that a server offers, besides the endpoints that every catalog must have."""

    available_endpoints: frozenset[str]

    def __contains__(self, endpoint: str) -> bool:
        return endpoint in self.available_endpoints

    def require(self, endpoint: str, catalog: str, feature: str) -> None:
        """Raise `UnsupportedFeatureError` if the server does not offer the endpoint."""
        if endpoint not in self.available_endpoints:
            raise UnsupportedFeatureError(
                f"catalog '{catalog}': its server does not offer {feature} ({endpoint})"
            )


def offered_endpoints(endpoint_list: Sequence[str] | None, *, views: bool) -> Endpoints:
    """Return what a server offers.

    If `endpoint_list` is None or empty, the server listed nothing, and `views` tells whether it has
    views.
    """
    if endpoint_list:
        return Endpoints(frozenset(endpoint_list))
    return Endpoints(_DEFAULT_ENDPOINTS | VIEW_ENDPOINTS if views else _DEFAULT_ENDPOINTS)
