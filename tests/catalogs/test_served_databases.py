"""The SQL catalog on servers: connections that break at a COMMIT, refused users, old schemas."""

from __future__ import annotations

import contextlib
import pickle
import select
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest
import sqlalchemy as sa

from iceberg_pyspark import TableCatalog
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from iceberg_pyspark.errors import (
    CatalogUnavailableError,
    CommitStateUnknownError,
    NotAuthorizedError,
    UnsupportedFeatureError,
)
from tests.services.databases import PASSWORD, PASSWORD_IN_URL, USER, DatabaseServer, new_database
from tests.services.toxiproxy import Toxiproxy
from tests.support.catalog_contract import create, new_name, set_property
from tests.support.cut_commits import CommitCutter, check_lost_answers, check_lost_requests
from tests.support.ports import LOOPBACK
from tests.support.sql_catalogs import V0_TABLES
from tests.support.table_integrity import table_problems
from tests.support.threads import at_once, until
from tests.support.view_contract import first_view

When = Literal["before", "after", "silent"]
# Match the whole protocol message of PostgreSQL or MySQL: file names contain the word COMMIT too.
_COMMITS = (b"\x0bCOMMIT\0", b"\x03COMMIT")


class CuttingProxy:
    """A proxy that forwards bytes until the next COMMIT after `cut_next`."""

    def __init__(self, upstream: tuple[str, int], listener: socket.socket) -> None:
        self._upstream = upstream
        self._listener = listener
        self.port: int = listener.getsockname()[1]
        self._cut: When | None = None
        self._closed = threading.Event()

    @property
    def is_armed(self) -> bool:
        """Whether a requested cut has not happened yet."""
        return self._cut is not None

    def cut_next(self, when: When) -> None:
        """Cut the connection that sends the next COMMIT; "silent" runs it and says nothing more."""
        self._cut = when

    def close(self) -> None:
        """End the silent connections."""
        self._closed.set()

    def serve(self) -> None:
        """Serve each connection in a separate thread until the listener is closed."""
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._hand_on, args=(client,), daemon=True).start()

    def _hand_on(self, client: socket.socket) -> None:
        with (
            client,
            socket.create_connection(self._upstream) as server,
            contextlib.suppress(OSError),
        ):
            while True:
                for source in select.select((client, server), (), ())[0]:
                    data = source.recv(65536)
                    if not data:
                        return
                    if source is client and self._cut and data.endswith(_COMMITS):
                        when, self._cut = self._cut, None
                        if when != "before":
                            server.sendall(data)
                            # The server answers once it has run the COMMIT.
                            server.recv(65536)
                        if when == "silent":
                            self._closed.wait(60)
                        return
                    (server if source is client else client).sendall(data)


@contextlib.contextmanager
def cutting_proxy(host: str, port: int) -> Iterator[CuttingProxy]:
    """Yield a running proxy on a free port."""
    with socket.create_server((host, 0)) as listener:
        proxy = CuttingProxy((host, port), listener)
        threading.Thread(target=proxy.serve, daemon=True).start()
        try:
            yield proxy
        finally:
            proxy.close()


pytestmark = pytest.mark.nightly

EVENTS = TableIdentifier(namespace=("db",), name="events")

SLOW_FUNCTION = (
    "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$"
)
SLOW_TRIGGER = (
    "CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON iceberg_tables DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION slow()"
)
TERMINATED_COMMITS = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
    "WHERE wait_event = 'PgSleep' AND query = 'COMMIT' AND datname = current_database()"
)


@pytest.fixture(params=["postgres", "mariadb"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    server = request.getfixturevalue(f"{request.param}_server")
    assert isinstance(server, DatabaseServer)
    return server


@pytest.fixture
def uri(server: DatabaseServer) -> str:
    return new_database(server)


@pytest.fixture
def proxy(server: DatabaseServer) -> Iterator[CuttingProxy]:
    with cutting_proxy(LOOPBACK, server.server.port) as proxy:
        yield proxy


def open_catalog(uri: str, folder: Path, **properties: str) -> SqlCatalog:
    catalog = load_catalog("lake", uri=uri, warehouse=f"{folder}/warehouse", **properties)
    assert isinstance(catalog, SqlCatalog)
    return catalog


def catalog_of_proxy(
    server: DatabaseServer, uri: str, proxy: CuttingProxy, folder: Path, **properties: str
) -> tuple[SqlCatalog, SqlCatalog]:
    """Return a catalog that uses the database through the proxy, and one that uses it directly."""
    direct = open_catalog(uri, folder)
    direct.create_namespace(EVENTS.namespace)
    through = open_catalog(server.url(uri.rpartition("/")[2], proxy.port), folder, **properties)
    return through, direct


def test_a_commit_whose_answer_is_lost_is_done(
    server: DatabaseServer, uri: str, proxy: CuttingProxy, tmp_path: Path
) -> None:
    through, direct = catalog_of_proxy(server, uri, proxy, tmp_path)
    proxy.cut_next("after")
    created = create(through, EVENTS)
    assert not proxy.is_armed
    assert direct.load_table(EVENTS) == created
    proxy.cut_next("after")
    done = set_property(through, EVENTS, "a", "1")
    assert not proxy.is_armed
    assert direct.load_table(EVENTS) == done
    assert len(done.metadata.metadata_log) == 1


def test_commit_that_may_still_arrive_is_unknown_and_keeps_its_file(
    server: DatabaseServer, uri: str, proxy: CuttingProxy, tmp_path: Path
) -> None:
    through, direct = catalog_of_proxy(server, uri, proxy, tmp_path)
    created = create(through, EVENTS)
    proxy.cut_next("before")
    with pytest.raises(CommitStateUnknownError, match="delete no file"):
        set_property(through, EVENTS, "a", "1")
    assert direct.load_table(EVENTS) == created
    assert len(list((tmp_path / "warehouse").rglob("*.metadata.json"))) == 2
    # The catalog opens a new connection, and the table is intact.
    assert set_property(through, EVENTS, "b", "2") == direct.load_table(EVENTS)


@pytest.mark.parametrize(
    ("server", "driver"),
    [
        ("postgres", "psycopg"),
        ("postgres", "psycopg2"),
        ("mariadb", "pymysql"),
        ("mariadb", "mysqldb"),
    ],
    indirect=["server"],
)
def test_a_commit_without_an_answer_ends_and_is_looked_up(
    server: DatabaseServer, driver: str, uri: str, proxy: CuttingProxy, tmp_path: Path
) -> None:
    pytest.importorskip("MySQLdb" if driver == "mysqldb" else driver)
    limit = {"jdbc.socketTimeout": "1" if server.dialect.startswith("postgres") else "1000"}
    served = replace(server, dialect=f"{server.dialect.partition('+')[0]}+{driver}")
    through, direct = catalog_of_proxy(served, uri, proxy, tmp_path, **limit)
    create(through, EVENTS)
    proxy.cut_next("silent")
    done = set_property(through, EVENTS, "a", "1")
    assert not proxy.is_armed
    assert direct.load_table(EVENTS) == done
    # a silent statement before the COMMIT has changed nothing
    sleep = "pg_sleep(60)" if server.dialect.startswith("postgres") else "sleep(60)"
    named = rf"{LOOPBACK}:{proxy.port}.*higher jdbc\.socketTimeout"
    with pytest.raises(CatalogUnavailableError, match=named):
        through._database.write(lambda connection: connection.execute(sa.text(f"SELECT {sleep}")))
    assert through.load_table(EVENTS) == done


@pytest.mark.parametrize("check", [check_lost_answers, check_lost_requests])
def test_appends_whose_connections_break(
    postgres_server: DatabaseServer,
    proxies: Toxiproxy,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    check: Callable[[TableCatalog, TableCatalog, CommitCutter], None],
) -> None:
    """As above, by toxiproxy: half of a COMMIT, a reset, nothing at all."""
    uri = new_database(postgres_server)
    proxy = proxies.proxy(new_name("postgres"), postgres_server.server.endpoint)
    direct = TableCatalog(open_catalog(uri, tmp_path))
    through = open_catalog(postgres_server.url(uri.rpartition("/")[2], proxy.port), tmp_path)
    cutter = CommitCutter(proxy)
    dialect = through._database._engine_here().dialect
    monkeypatch.setattr(dialect, "do_commit", cutter.around(dialect.do_commit))
    check(TableCatalog(through), direct, cutter)


def test_a_server_process_that_dies_in_its_commit_leaves_the_table_intact(
    postgres_server: DatabaseServer, tmp_path: Path
) -> None:
    """A deferred trigger holds the COMMIT of PostgreSQL until the process is terminated."""
    uri = new_database(postgres_server)
    catalog = open_catalog(uri, tmp_path)
    catalog.create_namespace(EVENTS.namespace)
    soon = {"commit.status-check.min-wait-ms": "20", "commit.status-check.num-retries": "2"}
    table = TableCatalog(catalog).create_table(str(EVENTS), "id BIGINT", properties=soon)
    table.append(pa.table({"id": [1]}))
    owner = sa.create_engine(uri, isolation_level="AUTOCOMMIT")
    with owner.connect() as connection, ThreadPoolExecutor(1) as pool:
        connection.execute(sa.text(SLOW_FUNCTION))
        connection.execute(sa.text(SLOW_TRIGGER))
        appending = pool.submit(table.append, pa.table({"id": [2]}))
        until(lambda: connection.execute(sa.text(TERMINATED_COMMITS)).scalar() == 1)
        connection.execute(sa.text("DROP TRIGGER slow ON iceberg_tables"))
        with pytest.raises(CommitStateUnknownError, match="delete no file"):
            appending.result(60)
    owner.dispose()
    after = TableCatalog(open_catalog(uri, tmp_path)).load_table(str(EVENTS))
    assert after.scan().to_arrow()["id"].to_pylist() == [1]
    assert len(list((tmp_path / "warehouse").rglob("*.parquet"))) == 2
    after.append(pa.table({"id": [3]}))
    assert sorted(after.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 3]
    assert table_problems(after.refresh()) == []


def test_a_server_that_is_away_refuses_and_changes_nothing(
    server: DatabaseServer, tmp_path: Path
) -> None:
    with pytest.raises(CatalogUnavailableError) as raised:
        open_catalog(f"{server.dialect}://{USER}:{PASSWORD_IN_URL}@{LOOPBACK}:1/db", tmp_path)
    assert PASSWORD not in repr(raised.value)
    assert PASSWORD_IN_URL not in repr(raised.value)


def test_a_wrong_password_is_not_authorized_and_not_shown(uri: str, tmp_path: Path) -> None:
    with pytest.raises(NotAuthorizedError) as raised:
        open_catalog(uri.replace(PASSWORD_IN_URL, "wr0ng-word"), tmp_path)
    chain: BaseException | None = raised.value
    while chain is not None:
        assert "wr0ng-word" not in f"{chain!r} {chain}"
        chain = chain.__cause__


def test_a_jdbc_url_with_user_and_password_apart(
    server: DatabaseServer, uri: str, tmp_path: Path
) -> None:
    jdbc = server.jdbc_url(uri.rpartition("/")[2])
    login = {"jdbc.user": USER, "jdbc.password": PASSWORD}
    catalog = open_catalog(jdbc, tmp_path, **login)
    catalog.create_namespace(EVENTS.namespace)
    created = create(catalog, EVENTS)
    copy = pickle.loads(pickle.dumps(catalog))
    assert copy.load_table(EVENTS) == created
    assert PASSWORD not in f"{catalog!r} {catalog.properties!r}"


def test_a_v0_database_is_used_as_it_is_and_raised_on_request(uri: str, tmp_path: Path) -> None:
    engine = sa.create_engine(uri.replace("mysql:", "mysql+pymysql:"))
    with engine.begin() as connection:
        for statement in V0_TABLES:
            connection.execute(sa.text(statement))
    old = open_catalog(uri, tmp_path)
    old.create_namespace(EVENTS.namespace)
    create(old, EVENTS)
    set_property(old, EVENTS, "a", "1")
    assert old.list_views(EVENTS.namespace) == []
    with ThreadPoolExecutor(8) as pool:
        raised = [
            pool.submit(open_catalog, uri, tmp_path, **{"jdbc.schema-version": "V1"})
            for _ in range(8)
        ]
        new = [r.result() for r in raised][-1]
    assert new.list_tables(EVENTS.namespace) == [EVENTS]
    assert set_property(new, EVENTS, "b", "2").metadata.properties["a"] == "1"
    with engine.connect() as connection:
        row = connection.execute(sa.text("SELECT * FROM iceberg_tables")).mappings().one()
    assert row["iceberg_type"] is None
    engine.dispose()


def test_properties_of_a_namespace_set_by_many_at_once(uri: str, tmp_path: Path) -> None:
    catalog = open_catalog(uri, tmp_path)
    catalog.create_namespace(EVENTS.namespace)

    def update(n: int) -> None:
        for i in range(20):
            catalog.update_namespace_properties(
                EVENTS.namespace, removals=(), updates={"shared": str(i), f"own-{n}": str(i)}
            )

    at_once(6, update)
    properties = catalog.load_namespace_properties(EVENTS.namespace)
    assert properties == {"shared": "19", **{f"own-{n}": "19" for n in range(6)}}
    # A property can also be set to the value that it has.
    catalog.update_namespace_properties(EVENTS.namespace, removals=["own-0"], updates=properties)
    assert catalog.load_namespace_properties(EVENTS.namespace) == properties


def test_views_need_schema_v1(uri: str, tmp_path: Path) -> None:
    engine = sa.create_engine(uri.replace("mysql:", "mysql+pymysql:"))
    with engine.begin() as connection:
        for statement in V0_TABLES:
            connection.execute(sa.text(statement))
    engine.dispose()
    catalog = open_catalog(uri, tmp_path)
    assert not catalog.view_exists(EVENTS)
    with pytest.raises(UnsupportedFeatureError, match="schema-version"):
        catalog.create_view(EVENTS, first_view(catalog, EVENTS, "SELECT 1"))


def test_drops_and_renames_without_an_answer_are_looked_up(
    server: DatabaseServer, uri: str, proxy: CuttingProxy, tmp_path: Path
) -> None:
    through, direct = catalog_of_proxy(server, uri, proxy, tmp_path)
    renamed = TableIdentifier(namespace=("db",), name="renamed")
    create(through, EVENTS)
    proxy.cut_next("before")
    with pytest.raises(CommitStateUnknownError, match="rename of table"):
        through.rename_table(EVENTS, renamed)
    proxy.cut_next("after")
    through.rename_table(EVENTS, renamed)
    assert direct.list_tables(("db",)) == [renamed]
    proxy.cut_next("before")
    with pytest.raises(CommitStateUnknownError, match="drop of table"):
        through.drop_table(renamed)
    proxy.cut_next("after")
    assert through.drop_table(renamed) is False
    assert direct.list_tables(("db",)) == []


def test_namespaces_without_an_answer_are_looked_up(
    server: DatabaseServer, uri: str, proxy: CuttingProxy, tmp_path: Path
) -> None:
    through, direct = catalog_of_proxy(server, uri, proxy, tmp_path)
    proxy.cut_next("before")
    with pytest.raises(CommitStateUnknownError, match="creation of namespace"):
        through.create_namespace(("n",), {"a": "1"})
    proxy.cut_next("after")
    through.create_namespace(("n",), {"a": "1", "b": "1"})
    proxy.cut_next("before")
    with pytest.raises(CommitStateUnknownError, match="change of the properties"):
        through.update_namespace_properties(("n",), removals=["b"], updates={"a": "2"})
    proxy.cut_next("after")
    through.update_namespace_properties(("n",), removals=["b"], updates={"a": "2"})
    assert direct.load_namespace_properties(("n",)) == {"a": "2"}
    proxy.cut_next("before")
    with pytest.raises(CommitStateUnknownError, match="drop of namespace"):
        through.drop_namespace(("n",))
    proxy.cut_next("after")
    through.drop_namespace(("n",))
    assert not direct.namespace_exists(("n",))
