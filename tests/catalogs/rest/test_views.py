"""Views of a REST catalog, on Iceberg's own server and on a server without views."""

from __future__ import annotations

import pytest

from iceberg_pyspark.catalogs.catalog import TableIdentifier, ViewCatalog
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.changes.outcomes import Refused, Unknown
from iceberg_pyspark.changes.view_changes import (
    AssertViewUUID,
    ViewUpdate,
    new_view_metadata,
    view_definition_updates,
)
from iceberg_pyspark.errors import (
    CommitConflictError,
    NoSuchNamespaceError,
    NoSuchViewError,
    UnsupportedFeatureError,
    ViewAlreadyExistsError,
)
from iceberg_pyspark.spec.views import SqlRepresentation, ViewMetadata, view_metadata_to_json
from tests.services.server import Server
from tests.support.catalog_contract import SCHEMA, create, new_name
from tests.support.http_server import BreakConnection, Reply, Request, http_server
from tests.support.rest_answers import EVENTS, configured, error


def definition(sql: str) -> tuple[ViewUpdate, ...]:
    return view_definition_updates(
        SCHEMA, (SqlRepresentation(sql, "spark"),), default_namespace=("db",), now_ms=1
    )


def first_view(location: str) -> ViewMetadata:
    return new_view_metadata(
        definition("SELECT 1"),
        location,
        {"owner": "me"},
        view_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
        now_ms=1,
    )


@pytest.fixture
def catalog(server: Server) -> RestCatalog:
    return RestCatalog("rest", {"uri": server.endpoint})


@pytest.fixture
def name(catalog: RestCatalog) -> TableIdentifier:
    namespace = (new_name("views"),)
    catalog.create_namespace(namespace)
    return TableIdentifier(namespace=namespace, name="v")


@pytest.mark.nightly
def test_a_view_has_a_life(catalog: RestCatalog, name: TableIdentifier) -> None:
    assert isinstance(catalog, ViewCatalog)
    view = first_view(catalog.default_view_location(name))
    created = catalog.create_view(name, view)
    assert created.metadata.location == view.location
    assert created.metadata.properties["owner"] == "me"
    assert catalog.load_view(name) == created
    assert catalog.view_exists(name)
    assert catalog.list_views(name.namespace) == [name]
    same = (AssertViewUUID(created.metadata.view_uuid),)
    # The schema is unchanged; only the query is new.
    done = catalog.commit_view(name, same, definition("SELECT 2")).result()
    assert done.metadata.current_version.sql("spark") == "SELECT 2"
    assert [v.version_id for v in done.metadata.versions] == [1, 2]
    assert catalog.commit_view(name, same, definition("SELECT 2")).result() == done
    other = (AssertViewUUID("00000000-03fe-4693-9a96-a0705ddf69c1"),)
    refused = catalog.commit_view(name, other, definition("SELECT 3"))
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, CommitConflictError)
    target = TableIdentifier(namespace=name.namespace, name="renamed")
    catalog.rename_view(name, target)
    assert catalog.load_view(target).metadata == done.metadata
    catalog.drop_view(target)
    assert not catalog.view_exists(target)


@pytest.mark.nightly
def test_names_of_views_that_are_taken_or_missing(
    catalog: RestCatalog, name: TableIdentifier
) -> None:
    view = first_view(catalog.default_view_location(name))
    catalog.create_view(name, view)
    table = TableIdentifier(namespace=name.namespace, name="t")
    create(catalog, table)
    for other in (name, table):
        with pytest.raises(ViewAlreadyExistsError):
            catalog.create_view(other, view)
    with pytest.raises(ViewAlreadyExistsError):
        catalog.rename_view(name, table)
    nowhere = TableIdentifier(namespace=(new_name("nope"),), name="v")
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_view(nowhere, view)
    missing = TableIdentifier(namespace=name.namespace, name="missing")
    with pytest.raises(NoSuchViewError):
        catalog.load_view(missing)
    with pytest.raises(NoSuchViewError):
        catalog.drop_view(missing)
    with pytest.raises(NoSuchViewError):
        catalog.rename_view(missing, name)
    refused = catalog.commit_view(missing, (), definition("SELECT 1"))
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, NoSuchViewError)


def test_a_server_without_views_lists_none_and_refuses_new_ones() -> None:
    with http_server(configured(lambda _: error(404))) as server:
        catalog = RestCatalog("rest", {"uri": server.uri})
        assert catalog.list_views(("db",)) == []
        assert not catalog.view_exists(EVENTS)
        with pytest.raises(NoSuchViewError):
            catalog.load_view(EVENTS)
        with pytest.raises(UnsupportedFeatureError, match="views"):
            catalog.create_view(EVENTS, first_view("/v"))
        assert server.paths("POST") == []


def test_a_change_of_a_view_whose_answer_is_lost_is_unknown() -> None:
    metadata = view_metadata_to_json(first_view("/v"))

    def answer(request: Request) -> Reply:
        if request.method == "POST":
            raise BreakConnection
        return Reply(200, {"metadata-location": "/v/x", "metadata": metadata})

    views = {"overrides": {"view-endpoints-supported": "true"}}
    with http_server(configured(answer, views)) as server:
        catalog = RestCatalog("rest", {"uri": server.uri})
        outcome = catalog.commit_view(EVENTS, (), definition("SELECT 2"))
        assert isinstance(outcome, Unknown)
        assert len(server.paths("POST")) == 1


def test_a_view_is_changed_with_the_token_that_the_server_sent_for_it() -> None:
    metadata = view_metadata_to_json(first_view("/v"))
    config = {"token": "of-the-view", "unrelated": "x"}
    body = {"metadata-location": "/v/x", "metadata": metadata, "config": config}
    views = {"overrides": {"view-endpoints-supported": "true"}}
    with http_server(configured(lambda _: Reply(200, body), views)) as server:
        catalog = RestCatalog("rest", {"uri": server.uri, "token": "of-the-catalog"})
        catalog.commit_view(EVENTS, (), definition("SELECT 2")).result()
        catalog.drop_view(EVENTS)
        sent = [(r.method, r.headers["authorization"]) for r in server.requests[1:]]
    assert sent == [
        ("GET", "Bearer of-the-catalog"),
        ("POST", "Bearer of-the-view"),
        ("DELETE", "Bearer of-the-catalog"),
    ]
