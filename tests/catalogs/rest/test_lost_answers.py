"""Appends to a real server while requests or responses get lost, also by many writers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark import Table, TableCatalog
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.errors import CommitStateUnknownError
from tests.amounts import FULL_WORK, WORK
from tests.services.server import Server
from tests.services.toxiproxy import Toxiproxy
from tests.support.catalog_contract import new_name
from tests.support.catalog_processes import EVENTS, open_catalog, run_together
from tests.support.cut_commits import CommitCutter, check_lost_answers, check_lost_requests
from tests.support.http_server import BreakConnection, Reply, Request, TestServer, http_server
from tests.support.many_writers import SCHEMA, append_many
from tests.support.table_integrity import table_problems

pytestmark = pytest.mark.nightly

WRITERS, APPENDS = 16 if FULL_WORK else 4, 3 * WORK
QUICK = {
    "commit.status-check.min-wait-ms": "1",
    "commit.status-check.max-wait-ms": "2",
    "commit.status-check.num-retries": "2",
}


class Faults:
    """The number of next commits that get lost `before` or `after` the server carries them out."""

    def __init__(self) -> None:
        self.before = 0
        self.after = 0


@contextmanager
def relay(server: Server, faults: Faults) -> Iterator[TestServer]:
    """Relay all requests to the server, except commits that `faults` says to lose."""
    with httpx.Client(timeout=60) as client:

        def answer(request: Request) -> Reply:
            is_commit = request.method == "POST" and "/tables/" in request.path
            is_commit = is_commit and not request.path.endswith("/metrics")
            if is_commit and faults.before:
                faults.before -= 1
                raise BreakConnection
            sent = {k: v for k, v in request.headers.items() if k not in ("host", "connection")}
            query = {k: v[0] for k, v in request.query.items()}
            url = httpx.URL(f"{server.endpoint}{request.path}", params=query or None)
            response = client.request(request.method, url, headers=sent, content=request.body)
            if is_commit and faults.after:
                faults.after -= 1
                raise BreakConnection
            header_names = ("content-type", "etag")
            headers = {k: v for k, v in response.headers.items() if k in header_names}
            return Reply(response.status_code, response.content, headers)

        with http_server(answer) as relaying:
            yield relaying


@pytest.fixture
def name(server: Server) -> str:
    catalog = ice.load_catalog("ours", type="rest", uri=server.endpoint)
    namespace = new_name("lost")
    catalog.create_namespace(namespace)
    catalog.create_table(f"{namespace}.t", schema="id BIGINT", properties=QUICK)
    return f"{namespace}.t"


def row(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64())})


def ids(server: Server, name: str) -> list[int]:
    catalog = ice.load_catalog("other", type="rest", uri=server.endpoint)
    row_ids: list[int] = catalog.load_table(name).scan().to_arrow()["id"].to_pylist()
    return sorted(row_ids)


def test_an_append_whose_answer_is_lost_is_found_and_not_repeated(
    server: Server, name: str
) -> None:
    faults = Faults()
    with relay(server, faults) as between:
        table = TableCatalog(RestCatalog("ours", {"uri": between.uri})).load_table(name)
        for number in range(3):
            faults.after = 1
            table.append(row(number))
        assert faults.after == 0
    assert ids(server, name) == [0, 1, 2]


def test_append_that_never_arrives_is_unknown_and_keeps_its_files(
    server: Server, name: str
) -> None:
    faults = Faults()
    with relay(server, faults) as between:
        table = TableCatalog(RestCatalog("ours", {"uri": between.uri})).load_table(name)
        table.append(row(1))
        faults.before = 1
        with pytest.raises(CommitStateUnknownError):
            table.append(row(2))
        assert faults.before == 0
        table.refresh().append(row(3))
    assert ids(server, name) == [1, 3]


@pytest.mark.parametrize("check", [check_lost_answers, check_lost_requests])
def test_appends_whose_connections_break(
    server: Server,
    proxies: Toxiproxy,
    monkeypatch: pytest.MonkeyPatch,
    check: Callable[[TableCatalog, TableCatalog, CommitCutter], None],
) -> None:
    """As above, by real broken connections: half of a request, a reset, nothing at all."""
    proxy = proxies.proxy(new_name("rest"), server.endpoint)
    catalog, cutter = RestCatalog("ours", {"uri": proxy.endpoint}), CommitCutter(proxy)
    monkeypatch.setattr(catalog._connection, "send", cutter.around(catalog._connection.send))
    direct = TableCatalog(RestCatalog("ours", {"uri": server.endpoint}))
    check(TableCatalog(catalog), direct, cutter)


def test_many_writers_lose_nothing(server: Server) -> None:
    catalog = open_catalog("rest", server.endpoint)
    catalog.create_namespace(EVENTS.namespace)
    TableCatalog(catalog).create_table(str(EVENTS), SCHEMA)
    arguments = [("rest", server.endpoint, worker, APPENDS) for worker in range(WRITERS)]
    assert [len(took) for took in run_together(append_many, arguments)] == [APPENDS] * WRITERS
    table = Table(catalog, catalog.load_table(EVENTS))
    row_ids = table.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    assert sorted(row_ids) == [w * 10_000 + n for w in range(WRITERS) for n in range(APPENDS)]
    assert len(table.snapshots) == WRITERS * APPENDS
    assert table_problems(table) == []
