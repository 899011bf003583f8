"""The REST client's behaviour if responses are wrong, lost or never sent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from iceberg_pyspark import TableCatalog
from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.changes.changes import SetProperties
from iceberg_pyspark.changes.outcomes import Done, Outcome, Refused, Unknown
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitConflictError,
    CommitStateUnknownError,
    InvalidMetadataError,
    InvalidRequestError,
    NoSuchTableError,
    NotAuthorizedError,
    UnsupportedFeatureError,
)
from tests.support.catalog_contract import first_metadata
from tests.support.http_server import (
    BreakConnection,
    Reply,
    Request,
    RequestHandler,
    TestServer,
    http_server,
)
from tests.support.ports import free_port
from tests.support.rest_answers import EVENTS, LOCATION, TABLE, configured, error, table_reply

CHANGE = (SetProperties({"a": "1"}),)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []
    monkeypatch.setattr("iceberg_pyspark.catalogs.rest.rest_session._sleep", waits.append)
    return waits


@contextmanager
def catalog_of(
    answer: RequestHandler,
    config: Mapping[str, object] | None = None,
    properties: Mapping[str, str] | None = None,
) -> Iterator[tuple[RestCatalog, TestServer]]:
    with http_server(configured(answer, config)) as server:
        yield RestCatalog("rest", {"uri": server.uri, **(properties or {})}), server


def commit(
    answer: RequestHandler, config: Mapping[str, object] | None = None
) -> Outcome[LoadedTable]:
    with catalog_of(answer, config) as (catalog, _):
        return catalog.commit_table(EVENTS, (), CHANGE)


def one_after_another(replies: Iterator[Reply | BreakConnection]) -> RequestHandler:
    def answer(_: Request) -> Reply:
        reply = next(replies)
        if isinstance(reply, BreakConnection):
            raise reply
        return reply

    return answer


def broken(_: Request) -> Reply:
    raise BreakConnection


# Outcomes of commits.


def test_a_conflict_is_a_refusal_to_be_tried_again() -> None:
    outcome = commit(lambda _: error(409, "CommitFailedException", "moved"))
    assert isinstance(outcome, Refused)
    assert isinstance(outcome.error, CommitConflictError)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (error(400, "ValidationException", "wrong"), InvalidRequestError),
        (error(401), NotAuthorizedError),
        (error(403), NotAuthorizedError),
        (error(404, "NoSuchTableException"), NoSuchTableError),
        (error(406, "UnsupportedOperationException"), UnsupportedFeatureError),
        (error(429), CatalogUnavailableError),
    ],
)
def test_an_error_of_the_client_is_a_refusal(reply: Reply, expected: type) -> None:
    outcome = commit(lambda _: reply)
    assert isinstance(outcome, Refused)
    assert type(outcome.error) is expected


@pytest.mark.parametrize(
    "reply",
    [
        error(500, "CommitFailedException", "the words of a refusal, and none"),
        error(500),
        error(502),
        error(503, "SlowDownException", **{"Retry-After": "1"}),
        error(504),
        error(408),
        Reply(200, b"<html>a proxy's page</html>"),
        Reply(200, {"metadata-location": "x"}),
        Reply(204),
        Reply(302, None, {"Location": "http://127.0.0.1:1/elsewhere"}),
        Reply(599),
    ],
)
def test_an_answer_that_leaves_it_open_is_unknown_and_sent_once(reply: Reply) -> None:
    with catalog_of(lambda _: reply) as (catalog, server):
        outcome = catalog.commit_table(EVENTS, (), CHANGE)
        assert isinstance(outcome, Unknown), outcome
        assert server.paths("POST") == [TABLE]


def test_a_connection_that_breaks_is_unknown_and_the_commit_is_sent_once() -> None:
    with catalog_of(broken) as (catalog, server):
        outcome = catalog.commit_table(EVENTS, (), CHANGE)
        assert isinstance(outcome, Unknown)
        assert server.paths("POST") == [TABLE]


def test_a_commit_that_never_left_is_refused() -> None:
    with catalog_of(lambda _: table_reply(headers={"Connection": "close"})) as (catalog, _):
        catalog.load_table(EVENTS)
    outcome = catalog.commit_table(EVENTS, (), CHANGE)
    assert isinstance(outcome, Refused)
    assert isinstance(outcome.error, CatalogUnavailableError)


def test_server_with_idempotency_gets_the_same_key_again() -> None:
    replies = iter([error(503), error(500), table_reply()])
    config: dict[str, object] = {"idempotency-key-lifetime": "PT30M"}

    def answer(request: Request) -> Reply:
        return next(replies) if request.method == "POST" else table_reply()

    with catalog_of(answer, config) as (catalog, server):
        assert isinstance(catalog.commit_table(EVENTS, (), CHANGE), Done)
        keys = {r.headers["idempotency-key"] for r in server.requests if r.method == "POST"}
        assert len(keys) == 1
        assert len(server.paths("POST")) == 3


def test_a_refused_repetition_is_unknown() -> None:
    # The first attempt may have been carried out, and then the second finds the table changed.
    replies = iter([error(500), error(409, "CommitFailedException")])
    outcome = commit(lambda _: next(replies), {"idempotency-key-lifetime": "PT30M"})
    assert isinstance(outcome, Unknown)


def test_a_creation_whose_answer_is_lost_is_unknown() -> None:
    with catalog_of(broken) as (catalog, server):
        with pytest.raises(CommitStateUnknownError):
            catalog.create_table(EVENTS, first_metadata(LOCATION))
        assert len(server.paths("POST")) == 1


# Requests that can be repeated.


def test_a_load_is_tried_again(no_waiting: list[float]) -> None:
    replies: Iterator[Reply | BreakConnection] = iter(
        [BreakConnection(), error(503), error(429), table_reply()]
    )
    with catalog_of(one_after_another(replies)) as (catalog, server):
        assert catalog.load_table(EVENTS).identifier == EVENTS
        assert server.paths("GET") == ["/v1/config", *[TABLE] * 4]
    assert len(no_waiting) == 3
    assert no_waiting == sorted(no_waiting)


def test_server_sets_the_wait_up_to_a_limit(no_waiting: list[float]) -> None:
    waits = iter(["7", "86400", "soon"])

    def answer(_: Request) -> Reply:
        wait = next(waits, None)
        return table_reply() if wait is None else error(503, **{"Retry-After": wait})

    with catalog_of(answer) as (catalog, _):
        catalog.load_table(EVENTS)
    assert no_waiting[:2] == [7, 60]
    assert no_waiting[2] < 2


def test_attempts_end(no_waiting: list[float]) -> None:
    few = {"rest.client.max-retries": "2"}
    with (
        catalog_of(lambda _: error(503), properties=few) as (catalog, server),
        pytest.raises(CatalogUnavailableError, match="try again"),
    ):
        catalog.load_table(EVENTS)
    assert len(server.paths("GET")) == 4
    assert len(no_waiting) == 2


def test_a_drop_whose_answer_was_lost_is_done_where_the_table_is_gone() -> None:
    replies: Iterator[Reply | BreakConnection] = iter(
        [BreakConnection(), error(404, "NoSuchTableException")]
    )
    with catalog_of(one_after_another(replies)) as (catalog, _):
        catalog.drop_table(EVENTS)


@pytest.mark.parametrize("lost", [BreakConnection(), error(503)])
def test_a_drop_without_an_answer_is_not_sent_again(lost: Reply | BreakConnection) -> None:
    """The table under the name may be one that another client has created meanwhile."""
    replies = one_after_another(iter([lost, table_reply()]))
    with catalog_of(replies) as (catalog, server):
        with pytest.raises(CommitStateUnknownError, match="drop of table"):
            catalog.drop_table(EVENTS)
        assert server.paths("DELETE") == [TABLE]


def test_a_drop_is_sent_again_to_a_server_that_recognizes_repetitions() -> None:
    replies = one_after_another(iter([BreakConnection(), Reply(204)]))
    with catalog_of(replies, {"idempotency-key-lifetime": "PT30M"}) as (catalog, server):
        assert catalog.drop_table(EVENTS) is True
        keys = [r.headers["idempotency-key"] for r in server.requests if r.method == "DELETE"]
        assert len(keys) == 2
        assert len(set(keys)) == 1


@pytest.mark.parametrize("is_renamed", [True, False])
def test_a_rename_without_an_answer_is_looked_up(is_renamed: bool) -> None:
    renamed = TableIdentifier(namespace=EVENTS.namespace, name="renamed")

    def answer(request: Request) -> Reply:
        if request.method == "POST":
            raise BreakConnection
        is_old = request.path.endswith(TABLE)
        return error(404, "NoSuchTableException") if is_old == is_renamed else table_reply()

    with catalog_of(answer) as (catalog, server):
        if is_renamed:
            catalog.rename_table(EVENTS, renamed)
        else:
            with pytest.raises(CommitStateUnknownError, match="rename of table"):
                catalog.rename_table(EVENTS, renamed)
        assert len(server.paths("POST")) == 1


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_drop_of_a_namespace_without_an_answer_is_looked_up(is_gone: bool) -> None:
    def answer(request: Request) -> Reply:
        if request.method == "DELETE":
            raise BreakConnection
        return error(404, "NoSuchNamespaceException") if is_gone else Reply(200, {})

    with catalog_of(answer) as (catalog, server):
        if is_gone:
            catalog.drop_namespace(("db",))
        else:
            with pytest.raises(CommitStateUnknownError, match="drop of namespace"):
                catalog.drop_namespace(("db",))
        assert len(server.paths("DELETE")) == 1


@pytest.mark.parametrize("by_server", ["false", "true"])
def test_drop_without_purge_sends_no_purge(by_server: str) -> None:
    properties = {"rest-catalog-purge": by_server}
    with catalog_of(lambda _: Reply(204), properties=properties) as (catalog, server):
        TableCatalog(catalog).drop_table(str(EVENTS))
        assert server.requests[-1].query["purgeRequested"] == ["false"]
        assert catalog.purges_tables == (by_server == "true")


def test_a_drop_of_a_missing_table_is_an_error() -> None:
    with (
        catalog_of(lambda _: error(404, "NoSuchTableException")) as (catalog, _),
        pytest.raises(NoSuchTableError),
    ):
        catalog.drop_table(EVENTS)


def test_no_server_is_an_error_that_names_it() -> None:
    catalog = RestCatalog("rest", {"uri": f"http://127.0.0.1:{free_port()}"})
    with pytest.raises(CatalogUnavailableError, match=r"rest.*127\.0\.0\.1.*uri"):
        catalog.list_namespaces()


def test_silent_server_is_abandoned_after_the_time_limit() -> None:
    def late(_: Request) -> Reply:
        time.sleep(0.5)
        return table_reply()

    limits = {"rest.client.socket-timeout-ms": "50", "rest.client.max-retries": "0"}
    with (
        catalog_of(late, properties=limits) as (catalog, _),
        pytest.raises(CatalogUnavailableError, match="Timeout"),
    ):
        catalog.load_table(EVENTS)


# Redirects.


def test_a_redirect_gets_no_credentials() -> None:
    with http_server(lambda _: table_reply()) as other:
        elsewhere = Reply(307, None, {"Location": f"{other.uri}{TABLE}"})
        with (
            catalog_of(lambda _: elsewhere, properties={"token": "a-secret-token"}) as (
                catalog,
                server,
            ),
            pytest.raises(CatalogError, match="redirects are not followed"),
        ):
            catalog.load_table(EVENTS)
        assert server.requests[-1].headers["authorization"] == "Bearer a-secret-token"
        assert other.requests == []


# Invalid responses.


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>", [], {"metadata": {}}, {**table_reply().content, "metadata-location": 5}],
)
def test_malformed_answer_is_an_error_that_names_the_request(content: object) -> None:
    with (
        catalog_of(lambda _: Reply(200, content)) as (catalog, _),
        pytest.raises(InvalidMetadataError, match=r"GET v1/namespaces/db/tables/events"),
    ):
        catalog.load_table(EVENTS)


# Lists.


def test_lists_come_in_pages() -> None:
    pages = {"": (["a"], "1"), "1": (["b", "c"], "2"), "2": (["d"], None)}

    def answer(request: Request) -> Reply:
        assert request.query["pageSize"] == ["2"]
        names, following = pages[request.query["pageToken"][0]]
        items = [{"namespace": ["db"], "name": name} for name in names]
        return Reply(200, {"identifiers": items, "next-page-token": following})

    with catalog_of(answer, properties={"rest-page-size": "2"}) as (catalog, _):
        assert [i.name for i in catalog.list_tables(("db",))] == ["a", "b", "c", "d"]


def test_a_list_without_end_is_an_error() -> None:
    page = Reply(200, {"namespaces": [["a"]], "next-page-token": "again"})
    with (
        catalog_of(lambda _: page) as (catalog, _),
        pytest.raises(CatalogError, match="same next page"),
    ):
        catalog.list_namespaces()


# The cache of loaded tables.


def test_a_table_that_has_not_changed_is_not_sent_again() -> None:
    def answer(request: Request) -> Reply:
        if request.headers.get("if-none-match") == '"1"':
            return Reply(304)
        return table_reply(headers={"ETag": '"1"'})

    with catalog_of(answer) as (catalog, server):
        first = catalog.load_table(EVENTS)
        assert catalog.load_table(EVENTS) is first
        assert "if-none-match" not in server.requests[1].headers
        assert server.requests[2].headers["if-none-match"] == '"1"'


@pytest.mark.parametrize(
    ("properties", "asks_anew"),
    [
        ({}, False),
        ({"rest-table-cache.max-entries": "1"}, True),
        ({"rest-table-cache.expire-after-write-ms": "0"}, True),
    ],
)
def test_the_cache_has_a_size_and_an_end(properties: dict[str, str], asks_anew: bool) -> None:
    other = TableIdentifier(namespace=EVENTS.namespace, name="other")
    with catalog_of(lambda _: table_reply(headers={"ETag": '"1"'}), properties=properties) as (
        catalog,
        server,
    ):
        for identifier in (EVENTS, other, EVENTS):
            catalog.load_table(identifier)
        assert ("if-none-match" not in server.requests[-1].headers) == asks_anew


def test_a_table_with_credentials_that_expire_soon_is_sent_again() -> None:
    expiry = {"s3.session-token-expires-at-ms": str(int(time.time() * 1000) + 1000)}

    def answer(request: Request) -> Reply:
        assert "if-none-match" not in request.headers
        return table_reply(headers={"ETag": '"1"'}, more={"config": expiry})

    with catalog_of(answer) as (catalog, server):
        catalog.load_table(EVENTS)
        catalog.load_table(EVENTS)
        assert server.paths("GET")[1:] == [TABLE, TABLE]


def test_dropped_table_is_requested_without_its_etag() -> None:
    def answer(request: Request) -> Reply:
        if request.method == "DELETE":
            return Reply(204)
        assert "if-none-match" not in request.headers
        return table_reply(headers={"ETag": '"1"'})

    with catalog_of(answer) as (catalog, _):
        catalog.load_table(EVENTS)
        catalog.drop_table(EVENTS)
        catalog.load_table(EVENTS)
