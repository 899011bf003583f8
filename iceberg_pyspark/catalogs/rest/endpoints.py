"""The endpoints that a server supports: those of its configuration, or the standard ones.

Open API specification of the REST catalog, `GET /v1/config`: `endpoints`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iceberg_pyspark.errors import UnsupportedFeatureError

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
