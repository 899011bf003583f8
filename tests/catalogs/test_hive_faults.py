"""The Hive catalog when answers are lost and other writers act, and when its locks are lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hive import locks as hive_locks
from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog
from iceberg_pyspark.catalogs.hive.locks import LockSettings, TableLock
from iceberg_pyspark.catalogs.hive.metastore_client import HiveClient
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitStateUnknownError,
)
from tests.support.catalog_contract import set_property
from tests.support.hive_catalogs import (
    ALTER,
    NO_ANSWER,
    calling,
    create_events,
    locks_of,
    lost,
    metadata_files,
    open_catalog,
    open_with,
)

pytestmark = pytest.mark.nightly

WITHOUT_LOCKS = {"iceberg.engine.hive.lock-enabled": "false"}


@pytest.fixture
def events(hive_uri: str, tmp_path: Path) -> TableIdentifier:
    """Create a table whose first commit is done."""
    catalog = open_catalog(hive_uri, tmp_path)
    identifier = create_events(catalog)
    set_property(catalog, identifier, "first", "1")
    return identifier


def test_a_commit_with_a_lost_answer_is_found_below_a_later_one(
    each_catalog: HiveCatalog,
    events: TableIdentifier,
    hive_uri: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = open_with(hive_uri, tmp_path, "false")

    def overtaken(make: Callable[[], Any]) -> Any:
        make()
        set_property(other, events, "later", "1")
        raise NO_ANSWER

    calling(monkeypatch, ALTER, overtaken)
    set_property(each_catalog, events, "a", "1")
    properties = each_catalog.load_table(events).metadata.properties
    assert (properties["a"], properties["later"]) == ("1", "1")
    assert metadata_files(tmp_path) == 4
    assert locks_of(each_catalog, events) == []


def test_a_commit_that_is_applied_after_the_check_finds_its_files(
    each_catalog: HiveCatalog, events: TableIdentifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[Callable[[], Any]] = []

    def delayed(make: Callable[[], Any]) -> Any:
        requests.append(make)
        raise CatalogUnavailableError("the connection broke")

    calling(monkeypatch, ALTER, delayed)
    with pytest.raises(CommitStateUnknownError, match="delete no file"):
        set_property(each_catalog, events, "a", "1")
    assert "a" not in each_catalog.load_table(events).metadata.properties
    requests[0]()
    assert each_catalog.load_table(events).metadata.properties["a"] == "1"


def test_a_commit_that_cannot_be_looked_up_keeps_its_files(
    each_catalog: HiveCatalog, events: TableIdentifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = HiveClient.call
    broken = threading.Event()

    def failing(self: HiveClient, name: str, /, **arguments: Any) -> Any:
        if broken.is_set():
            raise CatalogUnavailableError("no metastore can be reached")
        answer = call(self, name, **arguments)
        if name == ALTER:
            broken.set()
            raise NO_ANSWER
        return answer

    monkeypatch.setattr(HiveClient, "call", failing)
    with pytest.raises(CommitStateUnknownError, match="delete no file"):
        set_property(each_catalog, events, "a", "1")
    monkeypatch.undo()
    assert each_catalog.load_table(events).metadata.properties["a"] == "1"
    for lock in locks_of(each_catalog, events):
        each_catalog._hive.call("unlock", rqst={"lockid": lock["lockid"]})


def test_a_lock_lost_after_the_swap_fails_nothing(
    hive_uri: str, events: TableIdentifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = open_with(hive_uri, tmp_path, "true")
    check = TableLock.check
    swapped = threading.Event()

    def losing(self: TableLock) -> None:
        if swapped.is_set():
            self._loss = CatalogError("no such lock")
        check(self)

    def noted(make: Callable[[], Any]) -> Any:
        make()
        swapped.set()

    monkeypatch.setattr(TableLock, "check", losing)
    calling(monkeypatch, ALTER, noted)
    done = set_property(catalog, events, "a", "1")
    assert catalog.load_table(events) == done
    assert metadata_files(tmp_path) == 3


def test_a_lock_that_expired_while_the_process_was_stopped_refuses_the_commit(
    hive_uri: str, events: TableIdentifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No heartbeat has failed: the thread that sends heartbeats was stopped too."""
    catalog = open_with(hive_uri, tmp_path, "true")
    other = open_with(hive_uri, tmp_path, "false")
    call, now = HiveClient.call, hive_locks._now
    stopped_s = 0.0

    def stopped(self: HiveClient, name: str, /, **arguments: Any) -> Any:
        nonlocal stopped_s
        assert name != ALTER, "it commits without its lock"
        answer = call(self, name, **arguments)
        if name == "get_table_req" and (own := locks_of(other, events)) and not stopped_s:
            call(self, "unlock", rqst={"lockid": own[0]["lockid"]})
            stopped_s = 600
        return answer

    monkeypatch.setattr(hive_locks, "_now", lambda: now() + stopped_s)
    monkeypatch.setattr(HiveClient, "call", stopped)
    with pytest.raises(CatalogError, match="was lost"):
        set_property(catalog, events, "a", "1")
    monkeypatch.undo()
    assert "a" not in catalog.load_table(events).metadata.properties
    assert metadata_files(tmp_path) == 2


def test_lock_is_kept_alive_after_a_stopped_process_continues(
    hive_uri: str, events: TableIdentifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = open_with(hive_uri, tmp_path, "true")
    now, heartbeats = hive_locks._now, []
    stopped_s = 0.0

    def late(make: Callable[[], Any]) -> Any:
        nonlocal stopped_s
        stopped_s = 600
        return make()

    def noted(make: Callable[[], Any]) -> Any:
        heartbeats.append(make())

    monkeypatch.setattr(hive_locks, "_now", lambda: now() + stopped_s)
    calling(monkeypatch, "lock", late)
    set_property(catalog, events, "a", "1")
    calling(monkeypatch, "heartbeat", noted)
    set_property(catalog, events, "b", "1")
    assert heartbeats == []
    lock = TableLock(catalog._hive, {}, LockSettings.of({}), events)
    lock.acquire(lambda: None)
    stopped_s = 1200
    lock.check()
    lock.check()
    assert heartbeats == [None]
    lock.release()
    assert catalog.load_table(events).metadata.properties["b"] == "1"


@pytest.mark.parametrize("error", [CatalogUnavailableError("gone"), RuntimeError("odd")])
def test_any_failed_heartbeat_is_a_lost_lock(
    hive_uri: str, events: TableIdentifier, tmp_path: Path, error: Exception
) -> None:
    settings = LockSettings.of({"iceberg.hive.lock-heartbeat-interval-ms": "50"})
    catalog = open_with(hive_uri, tmp_path, "true")
    lock = TableLock(catalog._hive, {}, settings, events)
    lock.acquire(lambda: None)
    failed = threading.Event()

    class Broken:
        def call(self, *_: Any, **__: Any) -> Any:
            failed.set()
            raise error

    lock._client = Broken()  # type: ignore[assignment]
    assert failed.wait(10)
    with pytest.raises(CatalogError, match=rf"was lost: {error}"):
        lock.check()
    lock._client = catalog._hive
    lock.release()
    assert locks_of(catalog, events) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_lock_whose_request_is_interrupted_is_given_back(
    hive_uri: str,
    events: TableIdentifier,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
) -> None:
    catalog = open_with(hive_uri, tmp_path, "true")

    def interrupted(make: Callable[[], Any]) -> Any:
        make()
        raise error("now")

    calling(monkeypatch, "lock", interrupted)
    lock = TableLock(catalog._hive, {}, LockSettings.of({}), events)
    with pytest.raises(error):
        lock.acquire(lambda: None)
    assert locks_of(catalog, events) == []
    assert set_property(catalog, events, "a", "1").metadata.properties["a"] == "1"


def test_a_lock_is_given_back_where_no_thread_can_start(
    hive_uri: str, events: TableIdentifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = open_with(hive_uri, tmp_path, "true")
    lock = TableLock(catalog._hive, {}, LockSettings.of({}), events)

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="new thread"):
            lock.acquire(lambda: None)
    assert locks_of(catalog, events) == []
    # The threads of this process wait for each other, so this one must be free too.
    assert lock._local.acquire(timeout=0)
    lock._local.release()


@pytest.mark.parametrize("operation", ["create_table", ALTER])
def test_the_view_that_tests_a_metastore_is_dropped_after_a_lost_answer(
    hive_uri: str,
    events: TableIdentifier,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
) -> None:
    catalog = open_catalog(hive_uri, tmp_path, **WITHOUT_LOCKS)
    calling(monkeypatch, operation, lost)
    if operation == "create_table":
        with pytest.raises(CatalogUnavailableError, match="the answer is lost"):
            set_property(catalog, events, "a", "1")
    else:
        # The metastore's answer was an error, which came through.
        set_property(catalog, events, "a", "1")
    (db,) = events.namespace
    assert catalog._hive.call("get_all_tables", db_name=db) == ["events"]


def test_a_view_that_tests_a_metastore_and_cannot_be_dropped_fails_nothing(
    hive_uri: str,
    events: TableIdentifier,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    catalog = open_catalog(hive_uri, tmp_path, **WITHOUT_LOCKS)
    calling(monkeypatch, "drop_table", lost)
    assert set_property(catalog, events, "a", "1").metadata.properties["a"] == "1"
    assert "was not dropped" in caplog.text
