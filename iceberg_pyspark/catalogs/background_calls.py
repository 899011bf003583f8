"""Calls that no one waits for, such as reports, made by a background thread."""

from __future__ import annotations

import atexit
import queue
import threading
import time
from collections.abc import Callable
from typing import TypeAlias
from weakref import WeakSet

from iceberg_pyspark.redaction import get_logger

_LAST_WAIT_S = 1.0
_IDLE_S = 5.0
_log = get_logger(__name__)

Call: TypeAlias = Callable[[], object]


class BackgroundCalls:
    """A queue of calls that a background thread makes one after the other.

    A full queue drops new calls. A call may raise: that is logged without the error's text.
    """

    def __init__(self, max_waiting: int) -> None:
        self._waiting: queue.Queue[tuple[str, Call]] = queue.Queue(max_waiting)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, description: str, call: Call) -> None:
        """Queue a call; never raise. `description` is for the log."""
        try:
            self._waiting.put_nowait((description, call))
            self._start()
        except Exception as e:  # noqa: BLE001 - no one waits for the call, so it fails nothing
            _log.debug("%s is not sent: %s", description, type(e).__name__)

    def wait(self, seconds: float) -> None:
        """Wait until all queued calls are made, but at most `seconds`."""
        end = time.monotonic() + seconds
        while self._waiting.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.01)

    def _start(self) -> None:
        with self._lock:
            # after a fork, the child process has no thread
            if self._thread is None or not self._thread.is_alive():
                _busy.add(self)
                self._thread = threading.Thread(
                    target=self._run, name="iceberg-background-calls", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                description, call = self._waiting.get(timeout=_IDLE_S)
            except queue.Empty:
                with self._lock:
                    if self._waiting.empty():
                        # end the thread, so that an unused catalog can be garbage-collected
                        self._thread = None
                        return
                continue
            try:
                call()
            except Exception as e:  # noqa: BLE001 - no one waits for the call, so it fails nothing
                # the error's text may contain addresses; later calls fail the same way
                _log.debug("%s was not taken: %s", description, type(e).__name__)
            finally:
                # a waiting thread must not keep the last call's catalog
                del call
                self._waiting.task_done()


_busy: WeakSet[BackgroundCalls] = WeakSet()


@atexit.register
def _wait_for_the_last() -> None:
    """Wait up to a second at exit, so that a short program still makes its last calls."""
    end = time.monotonic() + _LAST_WAIT_S
    for calls in list(_busy):
        calls.wait(max(end - time.monotonic(), 0))
