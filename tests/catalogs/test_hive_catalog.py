"""The Hive catalog: its entries in the metastore, locks, lost answers, tables of other tools."""

from __future__ import annotations

import getpass
import pickle
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hive import metastore_client as hive_client
from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog
from iceberg_pyspark.catalogs.hive.locks import LockSettings, TableLock
from iceberg_pyspark.catalogs.hive.metastore_client import HiveClient
from iceberg_pyspark.catalogs.hive.metastore_entries import alter_table
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitConflictError,
    CommitStateUnknownError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from tests.services.server import Server
from tests.services.toxiproxy import Proxy, Toxiproxy
from tests.support.catalog_contract import create, new_name, set_property
from tests.support.hive_catalogs import (
    ALTER,
    calling,
    hold_lock,
    locks_of,
    metadata_files,
    open_catalog,
)

pytestmark = pytest.mark.nightly

WITHOUT_LOCKS = {"engine.hive.lock-enabled": "false"}


@pytest.fixture
def catalog(hive_uri: str, tmp_path: Path) -> HiveCatalog:
    return open_catalog(hive_uri, tmp_path)


@pytest.fixture
def events(catalog: HiveCatalog) -> TableIdentifier:
    db = new_name("db")
    catalog.create_namespace((db,))
    return TableIdentifier(namespace=(db,), name="events")


@pytest.fixture
def proxy(proxies: Toxiproxy, hive_server: Server) -> Proxy:
    return proxies.proxy(new_name("hive"), hive_server.endpoint)


CUT = {"limit_data": {"bytes": 1}, "timeout": {"timeout": 0}}
"""Toxics that break the connection, or let nothing pass until the client's time is over."""


def cut(
    monkeypatch: pytest.MonkeyPatch,
    proxy: Proxy,
    operation: str,
    moment: str,
    toxic: str = "limit_data",
) -> None:
    """Break the connection at the next call, before the request or before the answer arrives."""

    def broken(make: Callable[[], Any]) -> Any:
        stream: Any = "upstream" if moment == "request" else "downstream"
        with proxy.toxic(toxic, stream, **CUT[toxic]):
            return make()

    calling(monkeypatch, operation, broken)


# Entries in the metastore.


def test_hive_table_has_the_fields_that_other_tools_read(
    catalog: HiveCatalog, events: TableIdentifier, tmp_path: Path
) -> None:
    first = create(catalog, events, {"comment": "all events", "k": "v", "EXTERNAL": "FALSE"})
    second = set_property(catalog, events, "a", "1")
    table = catalog._table(events)
    assert table is not None
    assert table["tableType"] == "EXTERNAL_TABLE"
    parameters = table["parameters"]
    assert parameters["table_type"] == "ICEBERG"
    assert parameters["metadata_location"] == second.metadata_location
    assert parameters["previous_metadata_location"] == first.metadata_location
    assert (parameters["comment"], parameters["k"]) == ("all events", "v")
    # A table property must not make Hive the owner of the files.
    assert parameters["EXTERNAL"] == "TRUE"
    assert table["sd"]["location"] == f"file:{tmp_path}/{events.namespace[0]}.db/events"
    assert [(c["name"], c["type"]) for c in table["sd"]["cols"]] == [
        ("id", "bigint"),
        ("v", "string"),
    ]
    assert "storage_handler" not in parameters
    set_property(catalog, events, "engine.hive.enabled", "true")
    table = catalog._table(events)
    assert table is not None
    assert table["parameters"]["storage_handler"].endswith("HiveIcebergStorageHandler")


def test_long_texts_are_not_repeated(
    hive_uri: str, catalog: HiveCatalog, events: TableIdentifier, tmp_path: Path
) -> None:
    create(catalog, events)
    limited = open_catalog(
        hive_uri, tmp_path, **{"hadoop.iceberg.hive.table-property-max-size": "20"}
    )
    set_property(limited, events, "a", "1")
    table = catalog._table(events)
    assert table is not None
    assert "current-schema" not in table["parameters"]


def test_fields_of_other_tools_are_kept(catalog: HiveCatalog, events: TableIdentifier) -> None:
    create(catalog, events)
    table = catalog._table(events)
    assert table is not None
    changed = {**table, "owner": "them"}
    changed["parameters"] = {**table["parameters"], "classification": "events"}
    # The bucket columns, a field that the catalog does not know.
    changed["sd"] = {**table["sd"], 8: (15, (11, ["id"]))}
    alter_table(catalog._hive, events, changed, None)
    set_property(catalog, events, "a", "1")
    after = catalog._table(events)
    assert after is not None
    assert (after["owner"], after["parameters"]["classification"]) == ("them", "events")
    assert after["sd"][8] == (15, (11, ["id"]))


def test_tables_of_other_tools_are_left_alone(
    catalog: HiveCatalog, events: TableIdentifier
) -> None:
    theirs: dict[str, Any] = {
        "tableName": events.name,
        "dbName": events.namespace[0],
        "sd": {"cols": [], "serdeInfo": {}},
        "partitionKeys": [],
        "parameters": {},
        "tableType": "MANAGED_TABLE",
    }
    catalog._hive.call("create_table", tbl=theirs)
    assert catalog.list_tables(events.namespace) == []
    assert not catalog.table_exists(events)
    with pytest.raises(NoSuchTableError, match="not an Iceberg table"):
        catalog.load_table(events)
    with pytest.raises(NoSuchTableError):
        catalog.drop_table(events)
    with pytest.raises(TableAlreadyExistsError):
        create(catalog, events)
    with pytest.raises(NamespaceNotEmptyError, match="not only Iceberg"):
        catalog.drop_namespace(events.namespace)
    assert catalog._table(events) is not None


def test_a_new_name_may_start_with_the_catalogs(
    catalog: HiveCatalog, events: TableIdentifier
) -> None:
    # Spark passes the new name with the catalog in ALTER TABLE lake.db.events RENAME TO
    # lake.db.renamed.
    created = create(catalog, events)
    (db,) = events.namespace
    catalog.rename_table(events, TableIdentifier(namespace=("lake", db), name="renamed"))
    renamed = TableIdentifier(namespace=(db,), name="renamed")
    assert catalog.load_table(renamed).metadata == created.metadata


# Lost answers.


@pytest.mark.parametrize(
    ("locks", "toxic"), [("true", "limit_data"), ("false", "limit_data"), ("true", "timeout")]
)
def test_a_commit_whose_answer_is_lost_is_looked_up(
    catalog: HiveCatalog,
    events: TableIdentifier,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    locks: str,
    toxic: str,
) -> None:
    uri = f"thrift://127.0.0.1:{proxy.port}"
    short = {"hive.metastore.client.socket.timeout": "2s"} if toxic == "timeout" else {}
    settings = {"iceberg.engine.hive.lock-enabled": locks, **short}
    far = open_catalog(uri, tmp_path, **settings)
    cut(monkeypatch, proxy, "create_table", "answer", toxic)
    created = create(far, events)
    assert catalog.load_table(events) == created
    # Without locks, the first commit asks the metastore which checks it supports.
    set_property(far, events, "first", "1")
    cut(monkeypatch, proxy, ALTER, "answer", toxic)
    done = set_property(far, events, "a", "1")
    assert catalog.load_table(events) == done
    cut(monkeypatch, proxy, ALTER, "request", toxic)
    with pytest.raises(CommitStateUnknownError, match="delete no file"):
        set_property(far, events, "b", "1")
    assert catalog.load_table(events) == done
    assert metadata_files(tmp_path) == 4
    assert locks_of(catalog, events) == []


def test_a_lock_whose_answer_is_lost_is_found_and_given_back(
    catalog: HiveCatalog,
    events: TableIdentifier,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    created = create(catalog, events)
    far = open_catalog(f"thrift://127.0.0.1:{proxy.port}", tmp_path)
    cut(monkeypatch, proxy, "lock", "answer")
    done = set_property(far, events, "a", "1")
    assert catalog.load_table(events) == done
    assert locks_of(catalog, events) == []
    cut(monkeypatch, proxy, "lock", "request")
    with pytest.raises(CatalogUnavailableError):
        set_property(far, events, "b", "1")
    assert catalog.load_table(events) == done
    assert locks_of(catalog, events) == []
    # The refusal is certain, because no request about the table had been sent.
    assert metadata_files(tmp_path) == 2
    assert created != done


def test_a_lock_that_cannot_be_given_back_fails_nothing(
    catalog: HiveCatalog,
    events: TableIdentifier,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    create(catalog, events)
    far = open_catalog(f"thrift://127.0.0.1:{proxy.port}", tmp_path)
    cut(monkeypatch, proxy, "unlock", "request")
    done = set_property(far, events, "a", "1")
    assert catalog.load_table(events) == done
    assert "was not given back" in caplog.text
    (lock,) = locks_of(catalog, events)
    catalog._hive.call("unlock", rqst={"lockid": lock["lockid"]})


# Locks.


def test_a_commit_waits_for_the_lock_and_not_for_ever(
    hive_uri: str, catalog: HiveCatalog, events: TableIdentifier, tmp_path: Path
) -> None:
    created = create(catalog, events)
    lock = hold_lock(catalog, events)
    hasty = open_catalog(hive_uri, tmp_path, **{"iceberg.hive.lock-timeout-ms": "300"})
    with pytest.raises(CommitConflictError, match=r"was not free within 0\.3 s"):
        set_property(hasty, events, "a", "1")
    assert catalog.load_table(events) == created
    assert metadata_files(tmp_path) == 1
    # The client that gave up has withdrawn its own lock request.
    assert [lock_info["lockid"] for lock_info in locks_of(catalog, events)] == [lock]
    timer = threading.Timer(0.3, lambda: catalog._hive.call("unlock", rqst={"lockid": lock}))
    timer.start()
    assert set_property(catalog, events, "a", "1").metadata.properties["a"] == "1"
    timer.join()


def test_commit_that_waited_in_vain_gives_its_lock_back(
    hive_uri: str, catalog: HiveCatalog, events: TableIdentifier, tmp_path: Path
) -> None:
    create(catalog, events)
    lock = hold_lock(catalog, events)
    other = open_catalog(hive_uri, tmp_path, **{"iceberg.engine.hive.lock-enabled": "false"})
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(set_property, catalog, events, "loser", "1")
        while len(locks_of(other, events)) < 2:
            pass
        set_property(other, events, "winner", "1")
        with pytest.raises(CommitConflictError, match="another commit"):
            waiting.result(timeout=30)
    assert [lock_info["lockid"] for lock_info in locks_of(other, events)] == [lock]
    other._hive.call("unlock", rqst={"lockid": lock})


def test_a_commit_whose_lock_was_lost_is_refused(
    hive_uri: str,
    catalog: HiveCatalog,
    events: TableIdentifier,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    created = create(catalog, events)
    own = open_catalog(hive_uri, tmp_path, **{"iceberg.hive.lock-heartbeat-interval-ms": "100"})
    call, locked, beaten = HiveClient.call, threading.Event(), threading.Event()

    def losing(self: HiveClient, name: str, /, **arguments: Any) -> Any:
        assert name != ALTER, "it commits without its lock"
        try:
            answer = call(self, name, **arguments)
        finally:
            if name == "heartbeat":
                beaten.set()
        if name == "lock":
            call(self, "unlock", rqst={"lockid": answer["lockid"]})
            locked.set()
        elif name == "get_table_req" and locked.is_set():
            assert beaten.wait(10)
            time.sleep(0.2)
        return answer

    monkeypatch.setattr(HiveClient, "call", losing)
    with pytest.raises(CatalogError, match="was lost"):
        set_property(own, events, "a", "1")
    monkeypatch.undo()
    assert catalog.load_table(events) == created
    assert metadata_files(tmp_path) == 1


def test_a_lock_is_kept_alive_while_it_is_held(
    hive_uri: str, catalog: HiveCatalog, events: TableIdentifier, tmp_path: Path
) -> None:
    properties = {"iceberg.hive.lock-heartbeat-interval-ms": "100"}
    own = open_catalog(hive_uri, tmp_path, **properties)
    lock = TableLock(own._hive, {}, LockSettings.of(properties), events)
    lock.acquire(lambda: None)
    # The time of the last heartbeat, as in SHOW LOCKS.
    first = locks_of(catalog, events)[0][8]
    time.sleep(0.5)
    assert locks_of(catalog, events)[0][8] > first
    lock.check()
    lock.release()
    assert locks_of(catalog, events) == []


def test_a_metastore_that_does_not_compare_is_refused_without_locks(
    catalog: HiveCatalog,
    events: TableIdentifier,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    created = create(catalog, events, WITHOUT_LOCKS)
    call = HiveClient.call

    def old(self: HiveClient, name: str, /, **arguments: Any) -> Any:
        if name == ALTER:
            arguments["environment_context"] = {"properties": {}}
        return call(self, name, **arguments)

    monkeypatch.setattr(HiveClient, "call", old)
    with pytest.raises(UnsupportedFeatureError, match="does not check"):
        set_property(catalog, events, "a", "1")
    monkeypatch.undo()
    assert catalog.load_table(events) == created
    assert catalog._hive.call("get_all_tables", db_name=events.namespace[0]) == ["events"]


def test_without_locks_a_commit_that_another_came_before_is_refused(
    hive_uri: str,
    catalog: HiveCatalog,
    events: TableIdentifier,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    create(catalog, events, WITHOUT_LOCKS)
    set_property(catalog, events, "first", "1")
    other = open_catalog(hive_uri, tmp_path)

    def overtaken(make: Callable[[], Any]) -> Any:
        set_property(other, events, "winner", "1")
        return make()

    calling(monkeypatch, ALTER, overtaken)
    with pytest.raises(CommitConflictError):
        set_property(catalog, events, "loser", "1")
    properties = catalog.load_table(events).metadata.properties
    assert (properties.get("winner"), "loser" in properties) == ("1", False)
    assert metadata_files(tmp_path) == 3


@pytest.mark.parametrize("locks", ["true", "false"])
def test_sixteen_threads_lose_nothing(
    hive_uri: str, catalog: HiveCatalog, events: TableIdentifier, tmp_path: Path, locks: str
) -> None:
    create(catalog, events, {"engine.hive.lock-enabled": locks})

    def work(writer: int) -> None:
        own = open_catalog(hive_uri, tmp_path)
        table = Table(own, own.load_table(events))
        rows = pa.table({"id": pa.array([writer], pa.int64()), "v": ["x"]})
        table.append(rows.cast(pa.schema([pa.field("id", pa.int64(), False), ("v", "string")])))

    with ThreadPoolExecutor(16) as pool:
        for running in [pool.submit(work, w) for w in range(16)]:
            running.result()
    table = Table(catalog, catalog.load_table(events))
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == [*range(16)]
    assert locks_of(catalog, events) == []


# Settings.


def test_idle_connections_are_kept_up_to_a_number(
    hive_uri: str, events: TableIdentifier, tmp_path: Path
) -> None:
    for clients in (1, 3):
        catalog = open_catalog(hive_uri, tmp_path, clients=str(clients))
        connections = [catalog._hive._connection() for _ in range(4)]
        for connection in connections:
            catalog._hive._keep(connection)
        assert [c.trans.isOpen() for c in connections].count(True) == clients


@pytest.mark.parametrize(
    ("properties", "variable", "expected"),
    [
        ({"ugi": "ali:staff:admin"}, "eve", ("ali", ["staff", "admin"])),
        ({}, "eve", ("eve", [])),
        ({}, None, (getpass.getuser(), [])),
    ],
)
def test_the_user_is_told_to_the_metastore(
    hive_uri: str,
    events: TableIdentifier,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    properties: dict[str, str],
    variable: str | None,
    expected: tuple[str, list[str]],
) -> None:
    monkeypatch.delenv("HADOOP_USER_NAME", raising=False)
    if variable is not None:
        monkeypatch.setenv("HADOOP_USER_NAME", variable)
    told = []
    exchange = hive_client._exchange

    def noted(protocol: Any, operation: str, arguments: Mapping[str, Any]) -> Any:
        if operation == "set_ugi":
            told.append((arguments["user_name"], arguments["group_names"]))
        return exchange(protocol, operation, arguments)

    monkeypatch.setattr(hive_client, "_exchange", noted)
    catalog = open_catalog(hive_uri, tmp_path, **properties)
    create(catalog, events)
    assert set(map(str, told)) == {str(expected)}
    entry = catalog._table(events)
    assert entry is not None
    assert entry["owner"] == expected[0]


def test_a_pickled_catalog_reaches_the_same_tables(
    catalog: HiveCatalog, events: TableIdentifier
) -> None:
    created = create(catalog, events)
    assert pickle.loads(pickle.dumps(catalog)).load_table(events) == created


def test_of_several_metastores_one_that_answers_is_used(hive_uri: str, tmp_path: Path) -> None:
    catalog = open_catalog(f"thrift://127.0.0.1:1,{hive_uri}", tmp_path)
    assert ("default",) in catalog.list_namespaces()
    with pytest.raises(CatalogUnavailableError, match=r"127\.0\.0\.1:1 .*'uri'"):
        open_catalog("thrift://127.0.0.1:1", tmp_path).list_namespaces()
