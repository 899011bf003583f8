"""The sessions of a process: each is created once, despite races, and kept only while needed."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.requests.sessions import MAX_RECENT_SESSIONS, Sessions
from iceberg_pyspark.spark.sql_catalog.catalog_requests import CatalogCallbacks
from tests.support.threads import at_once

THREADS = 16


class Context:
    """A stand-in for a SparkContext."""


class Jvm:
    """A JVM whose sessions are identified by handles."""

    def __init__(self, jvm: str) -> None:
        self.jvm = jvm
        self.context = Context()
        self.there: set[str] = set()
        self.dead_handles: list[str] = []
        self.answers = True

    def session_of(self, handle: str) -> Any:
        return Bridge(self, handle) if handle in self.there else None

    def abandoned_handles(self) -> list[str] | None:
        if not self.answers:
            return None
        handles, self.dead_handles = self.dead_handles, []
        return handles


class Bridge:
    """The bridge to one session of the JVM, and also the session itself."""

    def __init__(self, jvm: Jvm, handle: str) -> None:
        jvm.there.add(handle)
        self.sessions = jvm
        self.session_handle = handle
        self.sparkContext = jvm.context

    @property
    def spark(self) -> Bridge:
        return self


class Installed:
    """A session with Iceberg installed."""

    def __init__(self, handle: str, catalogs: CatalogCallbacks) -> None:
        self.handle = handle
        self._catalogs = catalogs

    @property
    def catalogs(self) -> CatalogCallbacks:
        return self._catalogs


class Record:
    """The registry under test, and a record of the sessions that it began and ended."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.ended: list[str] = []
        self.sessions: Sessions[Installed] = Sessions(
            cast(Callable[[Any], Installed], self.install), self.begin, self.end
        )

    def install(self, bridge: Any) -> Installed:
        return self.sessions.install(bridge)

    def begin(self, bridge: Any, catalogs: CatalogCallbacks) -> Installed:
        # Other threads ask in the meantime.
        threading.Event().wait(0.01)
        self.began.append(bridge.session_handle)
        return Installed(bridge.session_handle, catalogs)

    def end(self, bridge: Any) -> None:
        self.ended.append(bridge.session_handle)
        bridge.sessions.there.discard(bridge.session_handle)


@pytest.fixture
def record() -> Record:
    return Record()


@pytest.fixture
def jvm() -> Jvm:
    return Jvm("a")


def test_one_session_begins_once_for_all_threads(record: Record, jvm: Jvm) -> None:
    sessions = at_once(THREADS, lambda _: record.install(Bridge(jvm, "a-1")))
    assert record.began == ["a-1"]
    assert len({id(session) for session in sessions}) == 1
    assert record.sessions.session("a-1") is sessions[0]
    assert record.sessions.catalogs("a-1") is sessions[0].catalogs


def test_sessions_of_their_own_begin_once_each(record: Record, jvm: Jvm) -> None:
    sessions = at_once(THREADS, lambda n: record.install(Bridge(jvm, f"a-{n}")))
    assert sorted(record.began) == sorted(f"a-{n}" for n in range(THREADS))
    assert [session.handle for session in sessions] == [f"a-{n}" for n in range(THREADS)]
    assert len({id(session.catalogs) for session in sessions}) == THREADS


def test_concurrent_requests_and_installs_get_the_same_session(record: Record, jvm: Jvm) -> None:
    bridge = Bridge(jvm, "a-1")
    first = record.install(Bridge(jvm, "a-0"))
    sessions = at_once(
        THREADS, lambda n: record.sessions.session("a-1") if n % 2 else record.install(bridge)
    )
    assert len({id(session) for session in sessions}) == 1
    assert record.began == ["a-0", "a-1"]
    assert sessions[0] is not first


def test_installing_and_uninstalling_at_once_ends_as_one_of_them(record: Record, jvm: Jvm) -> None:
    bridge = Bridge(jvm, "a-1")

    def change(number: int) -> None:
        if number % 2:
            record.sessions.uninstall(cast(Any, bridge))
        else:
            record.install(bridge)

    at_once(THREADS, change)
    assert len(record.sessions) in (0, 1)
    assert len(record.began) <= len(record.ended) + 1


def test_unknown_session_handle_is_refused(record: Record, jvm: Jvm) -> None:
    record.install(Bridge(jvm, "a-1"))
    for handle in ("a-2", "b-1", "neither"):
        with pytest.raises(InvalidRequestError, match=r"call iceberg_pyspark\.install"):
            record.sessions.session(handle)


def test_an_unknown_session_is_asked_of_its_own_jvm(record: Record, jvm: Jvm) -> None:
    other = Jvm("b")
    sessions = [record.install(Bridge(jvm, "a-1")), record.install(Bridge(other, "b-1"))]
    other.there.add("b-2")
    assert record.sessions.session("b-2").handle == "b-2"
    jvm.there.add("b-3")
    with pytest.raises(InvalidRequestError):
        record.sessions.session("b-3")
    assert len(sessions) == 2


def test_a_session_that_was_uninstalled_leaves_nothing(record: Record, jvm: Jvm) -> None:
    for _ in range(3):
        session = record.install(Bridge(jvm, "a-1"))
        session.catalogs.states._states.max_size = 7
        record.sessions.uninstall(cast(Any, Bridge(jvm, "a-1")))
        assert len(record.sessions) == 0
        with pytest.raises(InvalidRequestError):
            record.sessions.catalogs("a-1")
    assert record.install(Bridge(jvm, "a-1")).catalogs.states._states.max_size != 7


def test_collected_sessions_are_restored_with_their_catalogs(record: Record, jvm: Jvm) -> None:
    count = MAX_RECENT_SESSIONS + 3
    catalogs = [record.install(Bridge(jvm, f"a-{n}")).catalogs for n in range(count)]
    gc.collect()
    again = [record.sessions.session(f"a-{n}") for n in reversed(range(count))]
    assert [session.catalogs for session in reversed(again)] == catalogs
    # The most recently used sessions were still held.
    assert sorted(record.began) == sorted([f"a-{n}" for n in (*range(count), *range(3))])


def test_dead_sessions_are_forgotten_as_sessions_double(record: Record, jvm: Jvm) -> None:
    most = 0
    for n in range(200):
        record.install(Bridge(jvm, f"a-{n}"))
        jvm.there.discard(f"a-{n}")
        jvm.dead_handles.append(f"a-{n}")
        most = max(most, len(record.sessions))
    assert most <= 64
    assert len(record.began) == 200


def test_another_context_forgets_those_of_the_stopped_one(record: Record, jvm: Jvm) -> None:
    for context in range(5):
        jvm.context = Context()
        sessions = [record.install(Bridge(jvm, f"a-{context}-{n}")) for n in range(3)]
        assert len(record.sessions) == len(sessions)
        jvm.dead_handles = [session.handle for session in sessions]
        jvm.there.clear()


def test_ended_jvm_is_forgotten_when_another_starts(record: Record, jvm: Jvm) -> None:
    for n in range(3):
        record.install(Bridge(jvm, f"a-{n}"))
    jvm.answers = False
    record.install(Bridge(Jvm("b"), "b-1"))
    assert len(record.sessions) == 1
    with pytest.raises(InvalidRequestError):
        record.sessions.session("a-1")
