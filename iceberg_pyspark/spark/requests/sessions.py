"""The sessions with Iceberg in this process, and the objects behind the handles of requests.

A handle identifies its JVM. Objects that a session has opened are kept until its JVM can no longer
request them: the session was collected, or its context stopped. Only the most recently used
sessions are themselves kept alive, so an application may create one session per request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from weakref import ref

from pyspark.sql import SparkSession

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.options.option_values import with_location_settings
from iceberg_pyspark.spark.requests.open_streams import OpenStreams
from iceberg_pyspark.spark.row_level.target import RowLevelSession
from iceberg_pyspark.spark.sql_catalog.catalog_requests import CatalogCallbacks
from iceberg_pyspark.spark.table_states import TableState, catalog_of_handle
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.lru_map import LruMap
from iceberg_pyspark.table.table_storage import table_io

if TYPE_CHECKING:
    from pyspark import SparkContext

    from iceberg_pyspark.spark.bridge.java_classes import JvmSessions

MAX_RECENT_SESSIONS = 16
"""The number of recent sessions in memory; an older session is created again on demand."""

_MIN_SESSIONS_TO_CHECK = 32


class InstalledSession(Protocol):
    """A session in which Iceberg is installed."""

    @property
    def catalogs(self) -> CatalogCallbacks:
        """The catalogs and tables that the session has opened."""


Session = TypeVar("Session", bound=InstalledSession)


class _SessionEntry(Generic[Session]):
    """The state of one session; `lock` guards install and uninstall."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.catalogs = CatalogCallbacks()
        self.session: Callable[[], Session | None] = lambda: None


class Sessions(Generic[Session]):
    """The sessions with Iceberg; safe to use from several threads.

    No lock is held while the JVM may call Python.
    """

    def __init__(
        self,
        install: Callable[[SparkSession], Session],
        begin: Callable[[Bridge, CatalogCallbacks], Session],
        end: Callable[[Bridge], None],
    ) -> None:
        """`install` is called for unknown sessions that send a request.

        `begin` installs Iceberg in a session, and `end` removes it.
        """
        self._install = install
        self._begin = begin
        self._end = end
        self._lock = threading.Lock()
        self._entries: dict[str, _SessionEntry[Session]] = {}
        self._recent: LruMap[str, Session] = LruMap(MAX_RECENT_SESSIONS)
        self._jvms: dict[str, JvmSessions] = {}
        self._context: Callable[[], SparkContext | None] = lambda: None
        self._next_look = _MIN_SESSIONS_TO_CHECK

    def __len__(self) -> int:
        return len(self._entries)

    def install(self, bridge: Bridge) -> Session:
        """Install Iceberg in a session unless it is installed, and return the session."""
        handle = bridge.session_handle
        self._forget_abandoned_sessions(bridge)
        while True:
            with self._lock:
                entry = self._entries.setdefault(handle, _SessionEntry())
            with entry.lock:
                if self._entries.get(handle) is not entry:
                    continue  # uninstalled in the meantime
                session = entry.session()
                if session is None:
                    session = self._begin(bridge, entry.catalogs)
                    entry.session = ref(session)
                self._use(handle, session)
                return session

    def uninstall(self, bridge: Bridge) -> None:
        """Remove Iceberg from a session."""
        handle = bridge.session_handle
        with self._lock:
            entry = self._entries.setdefault(handle, _SessionEntry())
        with entry.lock:
            self._end(bridge)
            with self._lock:
                if self._entries.get(handle) is entry:
                    del self._entries[handle]
                self._recent.pop(handle)

    def session(self, handle: str) -> Session:
        """Return the session of a handle; install Iceberg in a session that is not known yet."""
        with self._lock:
            entry = self._entries.get(handle)
            jvm = self._jvms.get(_jvm_of(handle))
        session = None if entry is None else entry.session()
        if session is not None:
            self._use(handle, session)
            return session
        spark = None if jvm is None else jvm.session_of(handle)
        if spark is None:
            raise InvalidRequestError(
                "iceberg_pyspark is not installed in this session: call "
                "iceberg_pyspark.install(spark)"
            )
        return self._install(spark)

    def catalogs(self, handle: str) -> CatalogCallbacks:
        """Return the open catalogs of a session, which may already have been garbage-collected."""
        with self._lock:
            entry = self._entries.get(handle)
        return self.session(handle).catalogs if entry is None else entry.catalogs

    def _use(self, handle: str, session: Session) -> None:
        with self._lock:
            if handle in self._entries:
                self._recent.put(handle, session)

    def _forget_abandoned_sessions(self, bridge: Bridge) -> None:
        """Drop sessions that no JVM refers to any more: in a new context, and when sessions have
        doubled.
        """
        context = bridge.spark.sparkContext
        with self._lock:
            is_known = bridge.sessions.jvm in self._jvms and self._context() is context
            self._jvms[bridge.sessions.jvm] = bridge.sessions
            self._context = ref(context)
            if is_known and len(self._entries) < self._next_look:
                return
            jvms = list(self._jvms.items())
        for name, jvm in jvms:
            handles = jvm.abandoned_handles()
            with self._lock:
                if handles is None:
                    self._jvms.pop(name, None)
                    handles = [handle for handle in self._entries if _jvm_of(handle) == name]
                for handle in handles:
                    self._entries.pop(handle, None)
                    self._recent.pop(handle)
                self._next_look = max(_MIN_SESSIONS_TO_CHECK, 2 * len(self._entries))


def _jvm_of(handle: str) -> str:
    return handle.partition("-")[0]


@dataclass(frozen=True, kw_only=True)
class BridgeSession:
    """A session in which Iceberg is installed; only such sessions send requests."""

    spark: SparkSession
    bridge: Bridge
    catalogs: CatalogCallbacks

    def open_catalog(self, name: str) -> Catalog:
        """Return one of this package's catalogs by its name in the session; raise
        `InvalidRequestError`.
        """
        self.bridge.open_catalog(name)
        return self.catalogs.catalog(f"{self.bridge.session_handle}/{name}")

    def row_level(self, state_of: Callable[[str], TableState]) -> RowLevelSession:
        """Return the session's objects for row-level operations."""
        states = self.catalogs.states
        return RowLevelSession(
            spark=self.spark, bridge=self.bridge, states=states, state_of=state_of
        )

    def io_of(self, state: TableState, locations: Mapping[str, str]) -> FileIO:
        """Return the store of a table's files, as the session may read it.

        `locations` are the session's settings that restrict where tables may be read; they come
        with each request.
        """
        return state.io or table_io(with_location_settings(state.loaded_table, locations))


class BridgeSessions:
    """The sessions by their handles in requests; a table's handle begins with its session's
    handle.
    """

    def __init__(
        self,
        of_handle: Callable[[str], BridgeSession],
        opened_by: Callable[[str], CatalogCallbacks],
    ) -> None:
        """`of_handle` returns the session of a handle, and `opened_by` what that session has
        opened.

        `opened_by` is also called after the session has ended. Both raise `InvalidRequestError`.
        """
        self.of_handle = of_handle
        self.opened_by = opened_by
        self.streams = OpenStreams()

    def of_catalog(self, handle: str) -> CatalogCallbacks:
        """Return what the session that opened a catalog has opened."""
        return self.opened_by(handle.partition("/")[0])

    def of_table(self, handle: str) -> CatalogCallbacks:
        """Return what the session that loaded a table has opened; its clone may be the session that
        sends the request.
        """
        return self.of_catalog(catalog_of_handle(handle))

    def state(self, handle: str) -> TableState:
        """Return the state of a table that a query refers to."""
        return self.of_table(handle).state(handle)

    def catalog_of(self, state: TableState) -> Catalog:
        """Return the catalog that a table was loaded from."""
        return self.of_catalog(state.catalog).catalog(state.catalog)
