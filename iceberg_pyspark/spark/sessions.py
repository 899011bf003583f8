"""The sessions with Iceberg in this process: each once, by the handle that its JVM asks with.

A handle says which JVM it is of. What a session has opened is kept until its JVM can ask for it no
more: the session is collected, or its context stopped. The session itself is not held, but for the
few used last, so that an application may make one for each request.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from weakref import ref

from pyspark import SparkContext
from pyspark.sql import SparkSession

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.sql_catalog.catalog import CatalogCallbacks

if TYPE_CHECKING:
    from iceberg_pyspark.spark.bridge.jvm import Bridge
    from iceberg_pyspark.spark.bridge.jvm_sessions import JvmSessions

HELD = 16
"""Sessions that are used in turn stay as they are; others are made anew when they ask again."""

_FEW = 32


class Installed(Protocol):
    """A session with Iceberg."""

    @property
    def catalogs(self) -> CatalogCallbacks:
        """What it has opened."""


Session = TypeVar("Session", bound=Installed)


class _Place(Generic[Session]):
    """What is kept of one session; `lock` is taken by who installs or uninstalls."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.catalogs = CatalogCallbacks()
        self.session: Callable[[], Session | None] = lambda: None


class Sessions(Generic[Session]):
    """Safe to use from several threads; no lock is held where the JVM may ask Python."""

    def __init__(
        self,
        install: Callable[[SparkSession], Session],
        begin: Callable[[Bridge, CatalogCallbacks], Session],
        end: Callable[[Bridge], None],
    ) -> None:
        """`install` is for sessions that ask and are not known, `begin` puts all into one.

        `end` takes it out again.
        """
        self._install = install
        self._begin = begin
        self._end = end
        self._lock = threading.Lock()
        self._places: dict[str, _Place[Session]] = {}
        self._used: OrderedDict[str, Session] = OrderedDict()
        self._jvms: dict[str, JvmSessions] = {}
        self._context: Callable[[], SparkContext | None] = lambda: None
        self._next_look = _FEW

    def __len__(self) -> int:
        return len(self._places)

    def install(self, bridge: Bridge) -> Session:
        """Have a session begin, unless it has."""
        handle = bridge.session_handle
        self._forget_the_left(bridge)
        while True:
            with self._lock:
                place = self._places.setdefault(handle, _Place())
            with place.lock:
                if self._places.get(handle) is not place:
                    continue  # uninstalled meanwhile
                found = place.session()
                if found is None:
                    found = self._begin(bridge, place.catalogs)
                    place.session = ref(found)
                self._use(handle, found)
                return found

    def uninstall(self, bridge: Bridge) -> None:
        """Have a session end."""
        handle = bridge.session_handle
        with self._lock:
            place = self._places.setdefault(handle, _Place())
        with place.lock:
            self._end(bridge)
            with self._lock:
                if self._places.get(handle) is place:
                    del self._places[handle]
                self._used.pop(handle, None)

    def session(self, handle: str) -> Session:
        """The session of a handle; one that is not known yet gets Iceberg as it asks."""
        with self._lock:
            place = self._places.get(handle)
            jvm = self._jvms.get(_jvm_of(handle))
        found = None if place is None else place.session()
        if found is not None:
            self._use(handle, found)
            return found
        spark = None if jvm is None else jvm.named(handle)
        if spark is None:
            raise InvalidRequestError(
                "iceberg_pyspark is not installed in this session: call "
                "iceberg_pyspark.install(spark)"
            )
        return self._install(spark)

    def catalogs(self, handle: str) -> CatalogCallbacks:
        """What a session has opened, which may be asked for when the session is not any more."""
        with self._lock:
            place = self._places.get(handle)
        return self.session(handle).catalogs if place is None else place.catalogs

    def _use(self, handle: str, session: Session) -> None:
        with self._lock:
            if handle in self._places:
                self._used[handle] = session
                self._used.move_to_end(handle)
            while len(self._used) > HELD:
                self._used.popitem(last=False)

    def _forget_the_left(self, bridge: Bridge) -> None:
        """What no JVM asks for any more: looked for in a new context, and as sessions double."""
        context = bridge.spark.sparkContext
        with self._lock:
            known = bridge.sessions.jvm in self._jvms and self._context() is context
            self._jvms[bridge.sessions.jvm] = bridge.sessions
            self._context = ref(context)
            if known and len(self._places) < self._next_look:
                return
            jvms = list(self._jvms.items())
        for name, jvm in jvms:
            left = jvm.left()
            with self._lock:
                if left is None:
                    self._jvms.pop(name, None)
                    left = [handle for handle in self._places if _jvm_of(handle) == name]
                for handle in left:
                    self._places.pop(handle, None)
                    self._used.pop(handle, None)
                self._next_look = max(_FEW, 2 * len(self._places))


def _jvm_of(handle: str) -> str:
    return handle.partition("-")[0]
