"""The sessions with Iceberg in this process, by the handle in the JVM's requests.

A handle identifies its JVM. Objects that a session has opened are kept until its JVM can no longer
request them: the session was collected, or its context stopped. Only the most recently used
sessions are themselves kept alive, so an application may create one session per request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from weakref import ref

from pyspark.sql import SparkSession

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.sql_catalog.catalog_requests import CatalogCallbacks
from iceberg_pyspark.storage.lru_map import LruMap

if TYPE_CHECKING:
    from pyspark import SparkContext

    from iceberg_pyspark.spark.bridge.java_classes import JvmSessions
    from iceberg_pyspark.spark.bridge.jvm import Bridge

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
