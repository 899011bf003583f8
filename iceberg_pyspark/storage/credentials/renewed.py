"""A value with an end, such as a token: it is obtained again shortly before it expires."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.redaction import get_logger

T = TypeVar("T")

WINDOW_S = 300.0
"""A value is renewed this long before it expires, but not before nine tenths of its lifetime."""

_PAUSE_S = 10.0
"""The pause after a failed attempt while the old value is still valid."""

_log = get_logger(__name__)


class Renewed(Generic[T]):
    """The latest value, with the second of the clock when it expires; thread-safe.

    If no new value can be obtained, the old one is used until it expires.
    """

    def __init__(self, name: str, now_s: Callable[[], float] = time.time) -> None:
        """`name` is for the log."""
        self._name = name
        self._now_s = now_s
        self._lock = threading.Lock()
        self._latest: tuple[T, float] | None = None
        self._next_s = 0.0

    def set(self, value: T, end_s: float | None) -> None:
        """Set the value that is used first; an `end_s` of None means that it does not expire."""
        with self._lock:
            self._keep(value, end_s, 0.0)

    def forget(self) -> None:
        """Forget a value that was refused; the next one is obtained at once."""
        with self._lock:
            self._latest = None

    def get(self, obtain: Callable[[T | None], tuple[T, float | None]]) -> T:
        """Return the value, after a renewal if it is due.

        `obtain` gets the old value and returns a new one with its end. Its `IcebergError` is raised
        if there is no old value or it has expired.
        """
        with self._lock:
            old = self._latest
            if old is not None and self._now_s() < self._next_s:
                return old[0]
            try:
                value, end_s = obtain(None if old is None else old[0])
            except IcebergError as e:
                now_s = self._now_s()
                if old is None or now_s >= old[1]:
                    raise
                self._next_s = min(now_s + _PAUSE_S, old[1])
                _log.warning("expiring %s could not be renewed: %s", self._name, e)
                return old[0]
            # a server may return the same value again
            self._keep(value, end_s, 1.0)
            return value

    def _keep(self, value: T, end_s: float | None, least_s: float) -> None:
        now_s = self._now_s()
        end_s = float("inf") if end_s is None else end_s
        window_s = min(max(end_s - now_s, 0.0) / 10, WINDOW_S)
        self._latest = value, end_s
        self._next_s = max(end_s - window_s, now_s + least_s)
