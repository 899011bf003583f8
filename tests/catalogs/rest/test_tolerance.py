"""Answers that Java's client accepts, in every operation: unknown fields, nulls, other statuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.changes.changes import AssertTableUUID, SetProperties
from iceberg_pyspark.changes.outcomes import Done, Refused
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitConflictError,
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotAuthorizedError,
)
from iceberg_pyspark.spec.table_metadata import metadata_to_json
from iceberg_pyspark.spec.views import view_metadata_to_json
from tests.catalogs.rest.test_views import definition, first_view
from tests.support.catalog_contract import first_metadata
from tests.support.http_server import Reply, Request, http_server
from tests.support.rest_answers import EVENTS, LOCATION

VIEWS = {"overrides": {"view-endpoints-supported": "true"}}
RENAMED = TableIdentifier(namespace=("db",), name="renamed")
UNKNOWN: dict[str, Any] = {"x-new": {"deep": [1, None, {"a": True}]}, "x-null": None, "x-list": []}


def with_unknown(value: Any) -> Any:
    """Return JSON in which each object has more fields than the specification gives it."""
    if isinstance(value, list):
        return [with_unknown(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {**{key: with_unknown(item) for key, item in value.items()}, **UNKNOWN}


def only_answers(content: dict[str, Any]) -> dict[str, Any]:
    """Return an answer with unknown fields; maps of texts and what is kept stay as they are."""
    kept = ("properties", "config", "defaults", "overrides", "metadata")
    return {k: v if k in kept else with_unknown(v) for k, v in content.items()} | UNKNOWN


def with_nulls(content: dict[str, Any]) -> dict[str, Any]:
    """Return an answer in which null stands for each optional field."""
    optional = ("config", "storage-credentials", "remote-signing-config", "next-page-token")
    nulls: dict[str, Any] = dict.fromkeys((*optional, "endpoints", "idempotency-key-lifetime"))
    return {**nulls, **{k: v for k, v in content.items() if v}}


class Catalog:
    """A server with a namespace, a table and a view, whose answers are `changed`."""

    def __init__(
        self,
        config: dict[str, Any] | None = None,
        changed: Callable[[dict[str, Any]], dict[str, Any]] = dict,
        statuses: dict[str, int] | None = None,
    ) -> None:
        self.config = {"defaults": {}, "overrides": {}, **(config or {})}
        self.changed = changed
        self.statuses = statuses or {}
        self.more: dict[str, Any] = {}
        self.metadata: dict[str, Any] = metadata_to_json(first_metadata(LOCATION))

    def __call__(self, request: Request) -> Reply:
        content = self.content(request)
        status = self.statuses.get(request.method, 200)
        if status == 204 or content is None:
            return Reply(status)
        return Reply(status, self.changed({**content, **self.more}))

    def content(self, request: Request) -> dict[str, Any] | None:
        path = request.path.removeprefix("/v1/")
        names = [{"namespace": ["db"], "name": "events"}]
        if path == "config":
            return self.config
        if request.method in ("HEAD", "DELETE") or path.endswith("/rename"):
            return {}
        if path == "namespaces":
            return {"namespaces": [["db"]]} if request.method == "GET" else {"namespace": ["db"]}
        if path == "namespaces/db/tables" and request.method == "GET":
            return {"identifiers": names}
        if path == "namespaces/db/views" and request.method == "GET":
            return {"identifiers": names}
        if "/views" in path:
            metadata = view_metadata_to_json(first_view("/v"))
            return {"metadata-location": "/v/metadata/1.json", "metadata": metadata}
        if "/tables" in path:
            location = f"{LOCATION}/metadata/1.metadata.json"
            return {"metadata-location": location, "metadata": self.metadata, "config": {}}
        if path.endswith("/properties"):
            return {"updated": ["a"], "removed": [], "missing": []}
        return {"namespace": ["db"], "properties": {"a": "1"}}


def operate(catalog: RestCatalog) -> None:
    """Make each request of the protocol but plans and signatures."""
    assert catalog.list_namespaces() == [("db",)]
    catalog.create_namespace(("db",))
    assert catalog.namespace_exists(("db",))
    assert catalog.load_namespace_properties(("db",)) == {"a": "1"}
    catalog.update_namespace_properties(("db",), removals=["b"], updates={"a": "1"})
    assert catalog.list_tables(("db",)) == [EVENTS]
    assert catalog.table_exists(EVENTS)
    assert catalog.load_table(EVENTS).metadata.location == LOCATION
    assert catalog.create_table(RENAMED, first_metadata(LOCATION)).identifier == RENAMED
    assert isinstance(catalog.commit_table(EVENTS, (), (SetProperties({"a": "1"}),)), Done)
    assert isinstance(catalog.commit_transaction([(EVENTS, (), ())]), Done)
    catalog.rename_table(EVENTS, RENAMED)
    assert catalog.drop_table(EVENTS) is True
    catalog.purge_table(EVENTS)
    assert catalog.list_views(("db",)) == [EVENTS]
    assert catalog.view_exists(EVENTS)
    assert catalog.load_view(EVENTS).metadata.location == "/v"
    assert catalog.create_view(EVENTS, first_view("/v")).identifier == EVENTS
    catalog.commit_view(EVENTS, (), definition("SELECT 2")).result()
    catalog.rename_view(EVENTS, RENAMED)
    catalog.drop_view(EVENTS)
    catalog.drop_namespace(("db",))


@pytest.mark.parametrize("changed", [dict, only_answers, with_nulls])
@pytest.mark.parametrize("statuses", [{}, {"HEAD": 204, "DELETE": 204}, {"POST": 201}])
def test_unknown_fields_and_other_statuses_of_success(
    changed: Callable[[dict[str, Any]], dict[str, Any]], statuses: dict[str, int]
) -> None:
    with http_server(Catalog(VIEWS, changed, statuses)) as server:
        operate(RestCatalog("rest", {"uri": server.uri}))


def test_changes_without_content_in_the_answer() -> None:
    """Only a table or a view is needed, of all that answers to changes have."""

    def answer(request: Request) -> Reply:
        is_change = request.method in ("POST", "DELETE") and not request.path.endswith("/tables")
        return Reply(204) if is_change else Catalog(VIEWS)(request)

    with http_server(answer) as server:
        catalog = RestCatalog("rest", {"uri": server.uri})
        catalog.create_namespace(("db",))
        catalog.update_namespace_properties(("db",), removals=["b"], updates={"a": "1"})
        assert isinstance(catalog.commit_transaction([(EVENTS, (), ())]), Done)
        catalog.rename_table(EVENTS, RENAMED)
        catalog.rename_view(EVENTS, RENAMED)
        catalog.drop_namespace(("db",))


@pytest.mark.parametrize(
    ("config", "has_views"),
    [
        ({}, False),
        ({"endpoints": None}, False),
        ({"endpoints": []}, False),
        ({"endpoints": ["PATCH /v9/{prefix}/things", "QUERY", "", "GET /v1/config"]}, False),
        ({"endpoints": None, "defaults": None, **VIEWS}, True),
        (
            {"endpoints": ["PATCH /v9/things", "GET /v1/{prefix}/namespaces/{namespace}/views"]},
            True,
        ),
    ],
)
def test_endpoints_that_are_absent_or_unknown(config: dict[str, Any], has_views: bool) -> None:
    with http_server(Catalog(config)) as server:
        catalog = RestCatalog("rest", {"uri": server.uri})
        assert catalog.list_views(("db",)) == ([EVENTS] if has_views else [])
        assert catalog.load_table(EVENTS).identifier == EVENTS
        assert catalog.namespace_exists(("db",))


@pytest.mark.parametrize("last", [{}, {"next-page-token": None}, {"next-page-token": ""}])
def test_the_last_page_of_a_list(last: dict[str, Any]) -> None:
    pages = Catalog(VIEWS)
    pages.more = last
    with http_server(pages) as server:
        catalog = RestCatalog("rest", {"uri": server.uri})
        assert catalog.list_namespaces() == [("db",)]
        assert catalog.list_tables(("db",)) == [EVENTS]
        assert catalog.list_views(("db",)) == [EVENTS]
        assert len(server.requests) == 4


@pytest.mark.parametrize(
    "body",
    [
        None,
        b"",
        b"<html><body>no</body></html>",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'"no"',
        {},
        {"error": None},
        {"error": "no"},
        {"error": {"message": None, "type": None, "code": None}},
        {"error": {"message": 5, "type": 5, "code": "404"}},
        {"error": {"message": "no", "code": "not a number", "stack": ["a"], "x": {}}, "y": 1},
        {"message": "no", "code": 404},
    ],
)
def test_errors_are_recognized_by_their_status(body: Any) -> None:
    status = 0

    def answer(request: Request) -> Reply:
        return Catalog(VIEWS)(request) if request.path == "/v1/config" else Reply(status, body)

    expected: list[tuple[int, Callable[[RestCatalog], object], type[Exception]]] = [
        (404, lambda c: c.load_table(EVENTS), NoSuchTableError),
        (404, lambda c: c.list_tables(("db",)), NoSuchNamespaceError),
        (409, lambda c: c.create_namespace(("db",)), NamespaceAlreadyExistsError),
        (409, lambda c: c.drop_namespace(("db",)), NamespaceNotEmptyError),
        (400, lambda c: c.load_table(EVENTS), InvalidRequestError),
        (422, lambda c: c.load_table(EVENTS), InvalidRequestError),
        (403, lambda c: c.load_table(EVENTS), NotAuthorizedError),
        (500, lambda c: c.load_table(EVENTS), CatalogUnavailableError),
        (302, lambda c: c.load_table(EVENTS), CatalogError),
    ]
    with http_server(answer) as server:
        catalog = RestCatalog("rest", {"uri": server.uri, "rest.client.max-retries": "0"})
        for status, ask, error_type in expected:
            with pytest.raises(error_type, match=str(status)) as caught:
                ask(catalog)
            assert type(caught.value) is error_type
        status = 409
        outcome = catalog.commit_table(EVENTS, (), ())
        assert isinstance(outcome, Refused)
        assert isinstance(outcome.error, CommitConflictError)


def test_uuids_in_upper_case() -> None:
    shouting = Catalog()
    shouting.metadata["table-uuid"] = shouting.metadata["table-uuid"].upper()
    with http_server(shouting) as server:
        catalog = RestCatalog("rest", {"uri": server.uri})
        uuid = catalog.load_table(EVENTS).metadata.table_uuid or ""
        shouting.metadata["table-uuid"] = uuid.lower()
        catalog.load_table(EVENTS)
        outcome = catalog.commit_table(EVENTS, (AssertTableUUID(uuid),), ())
        assert isinstance(outcome, Done)


@pytest.mark.parametrize("expires_in", ["3599", 3599.0, 3599, "3599.5", None, "", "soon", []])
def test_the_lifetime_of_a_token_in_any_form(expires_in: Any) -> None:
    def answer(request: Request) -> Reply:
        if request.path == "/v1/oauth/tokens":
            token = {"access_token": "t", "token_type": "bearer", "expires_in": expires_in}
            return Reply(200, {**token, **UNKNOWN})
        assert request.headers["authorization"] == "Bearer t"
        return Catalog()(request)

    with http_server(answer) as server:
        catalog = RestCatalog("rest", {"uri": server.uri, "credential": "id:secret"})
        catalog.load_table(EVENTS)
        catalog.load_table(EVENTS)
        assert len(server.paths("POST")) == 1
