"""A small REST catalog with one table for client tests, and errors in the server's format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.spec.table_metadata import TableMetadata, metadata_to_json
from tests.support.catalog_contract import first_metadata
from tests.support.http_server import Reply, Request, RequestHandler

EVENTS = TableIdentifier(namespace=("db",), name="events")
TABLE = "/v1/namespaces/db/tables/events"
LOCATION = "/warehouse/db/events"


def table_reply(
    metadata: TableMetadata | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Reply:
    """Return a reply that holds a table's metadata."""
    content = {
        "metadata-location": f"{LOCATION}/metadata/00000-x.metadata.json",
        "metadata": metadata_to_json(metadata or first_metadata(LOCATION)),
        **(more or {}),
    }
    return Reply(200, content, headers or {})


def error(status: int, type_: str = "", message: str = "no", **headers: str) -> Reply:
    """Return an error reply in the format of a REST catalog server."""
    content = {"error": {"message": message, "type": type_, "code": status}}
    return Reply(status, content, headers)


def configured(answer: RequestHandler, config: Mapping[str, Any] | None = None) -> RequestHandler:
    """Return an answer function that serves `config` at /v1/config and otherwise calls `answer`."""

    def both(request: Request) -> Reply:
        if request.path == "/v1/config":
            return Reply(200, {"defaults": {}, "overrides": {}, **(config or {})})
        return answer(request)

    return both
