"""Inject a fault at call number N of a storage, a database, a Hive metastore or a clock.

A fault comes before or after the call takes effect, and is any kind of error: the layer's own error
or an unexpected one. Calls of all layers are counted together, so that a loop over N stops an
operation at every place where it can stop.
"""

from __future__ import annotations

import contextlib
import io
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any, BinaryIO, Literal, TypeVar

import pytest
import sqlalchemy as sa

from iceberg_pyspark.catalogs import committing_catalog
from iceberg_pyspark.catalogs.hive import metastore_client as hive_client
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.files.file_io import FileInfo, FileIO
from iceberg_pyspark.table.commits import clock
from tests.support.hooked_storage import HookedFileIO, Moment

T = TypeVar("T")
Layer = Literal["storage", "database", "metastore", "clock"]
LAYERS: tuple[Layer, ...] = ("storage", "database", "metastore", "clock")
ErrorKind = Literal["own", "runtime", "memory", "interrupt"]
ERROR_KINDS: tuple[ErrorKind, ...] = ("own", "runtime", "memory", "interrupt")


class FaultPoint:
    """A counter of calls of some layers that, while it is armed, makes one call fail, once."""

    def __init__(self, layers: Collection[Layer] = LAYERS) -> None:
        self.layers = layers
        self._lock = threading.Lock()
        self._armed = False
        self.calls = 0
        self.names: list[str] = []
        self.fired: str | None = None

    @contextlib.contextmanager
    def armed(self, at: int | None, moment: Moment, kind: ErrorKind) -> Iterator[None]:
        """Make call number `at` in the block fail (counted from 1; with None, only count)."""
        self.calls, self.names, self.fired = 0, [], None
        self._at, self._moment, self._kind = at, moment, kind
        self._armed = True
        try:
            yield
        finally:
            self._armed = False

    @contextlib.contextmanager
    def call(self, layer: Layer, name: str) -> Iterator[None]:
        """Count one call, and fail before or after it if it is the chosen call."""
        mine = False
        if self._armed and layer in self.layers:
            with self._lock:
                self.calls += 1
                self.names.append(f"{layer}.{name}")
                mine = self.calls == self._at
        if mine and self._moment == "before":
            self._fail(layer, name)
        yield
        if mine and self._moment == "after":
            self._fail(layer, name)

    def _fail(self, layer: Layer, name: str) -> None:
        self.fired = f"{self._kind} error {self._moment} {layer}.{name} (call {self._at})"
        raise _error(layer, self._kind, self.fired)


def _error(layer: Layer, kind: ErrorKind, text: str) -> BaseException:
    match kind:
        case "runtime":
            return RuntimeError(text)
        case "memory":
            return MemoryError(text)
        case "interrupt":
            return KeyboardInterrupt(text)
    match layer:
        case "storage":
            return StorageError(text)
        case "database":
            return sa.exc.OperationalError("?", {}, sqlite3.OperationalError("disk I/O error"))
        case "metastore":
            return ConnectionResetError(text)
        case "clock":
            return OSError(text)


class FaultyFileIO(HookedFileIO):
    """A wrapper of another store; each operation is a call that may fail."""

    def __init__(self, store: FileIO, faults: FaultPoint) -> None:
        super().__init__(store, lambda *_: None)
        self._faults = faults

    def around(self, name: str, location: str, call: Callable[[], T]) -> T:
        """Run an operation as a call that may fail; a stream that it has opened is then closed."""
        with contextlib.ExitStack() as opened:
            with self._faults.call("storage", name):
                result = call()
                if isinstance(result, io.IOBase):
                    opened.callback(result.close)
            opened.pop_all()
        return result

    def open_output(self, location: str) -> BinaryIO:
        stream = super().open_output(location)
        close = stream.close

        def closing() -> None:
            if stream.closed:
                return
            try:
                with self._faults.call("storage", "close"):
                    close()
            finally:
                # Close the file in any case: leaking open files is not under test.
                close()

        stream.close = closing  # type: ignore[method-assign]
        return stream

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        listed = self.around("list_files", prefix, lambda: list(self._io.list_files(prefix)))
        return iter(listed)


class _FaultyTime:
    def __init__(self, faults: FaultPoint) -> None:
        self._faults = faults

    def time_ns(self) -> int:
        with self._faults.call("clock", "time_ns"):
            return time.time_ns()

    def sleep(self, seconds: float) -> None:
        with self._faults.call("clock", "sleep"):
            time.sleep(seconds)


def fail_databases_and_clocks(patch: pytest.MonkeyPatch, faults: FaultPoint) -> None:
    """Count every use of a database and of the commit clock as a call that may fail."""
    for kind, name in (
        (sa.Engine, "connect"),
        (sa.Connection, "execute"),
        (sa.Connection, "commit"),
        (sa.Connection, "close"),
    ):
        patch.setattr(kind, name, faulty("database", getattr(kind, name), name, faults))
    for module in (clock, committing_catalog):
        patch.setattr(module, "time", _FaultyTime(faults))


def fail_metastores(patch: pytest.MonkeyPatch, faults: FaultPoint) -> None:
    """Count every exchange with a Hive metastore as a call that may fail.

    A fault before the call is a broken connection before the request was sent; a fault after it is
    a lost answer.
    """
    exchange = hive_client._exchange

    def faulty_exchange(protocol: Any, operation: str, arguments: Any) -> Any:
        with faults.call("metastore", operation):
            return exchange(protocol, operation, arguments)

    patch.setattr(hive_client, "_exchange", faulty_exchange)


def faulty(
    layer: Layer, real: Callable[..., Any], name: str, faults: FaultPoint
) -> Callable[..., Any]:
    """Return the function wrapped so that each use is a call that may fail."""

    def call(*arguments: Any, **options: Any) -> Any:
        with faults.call(layer, name):
            return real(*arguments, **options)

    return call
