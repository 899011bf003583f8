"""Locks of the Hive metastore: one writer of a table at a time, including Java's and PyIceberg's.

A lock without heartbeats expires, so a thread sends heartbeats while the lock is held. If a
heartbeat is overdue, because the process was stopped for a while, the next check sends one: the
lock may have expired. A release is always tried; a failed release is only logged. Threads of one
process first wait for each other, and only one of them asks the metastore.

A metastore whose database is too busy answers with an internal error. It may have granted the lock
nevertheless, so the client looks for the lock before it makes another request.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hive.metastore_client import (
    INTERNAL_ERROR,
    UNKNOWN_CALL,
    HiveAnswerError,
    HiveClient,
    hive_property,
    user_name,
)
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitConflictError,
    InvalidRequestError,
)
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.property_types import LONG_MAX, whole_number

_log = get_logger(__name__)

_EXCLUSIVE, _OF_TABLE = 3, 2
_ACQUIRED, _WAITING = 1, 2
_BACK_OFF = 1.5
_UNLOCK_ATTEMPTS = 5
_WITHOUT_LOCKS = "where the metastore has no locks, set engine.hive.lock-enabled to false"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockSettings:
    """The times of a lock in seconds; the properties and their defaults are Java's."""

    timeout: float
    min_wait: float
    max_wait: float
    creation_timeout: float
    creation_min_wait: float
    creation_max_wait: float
    heartbeat_interval: float

    @staticmethod
    def of(properties: Mapping[str, str]) -> LockSettings:
        """Parse a catalog's settings; PyIceberg's two properties for waiting are accepted too."""
        seconds = _seconds(properties, "lock-check-min-wait-time")
        longest = _seconds(properties, "lock-check-max-wait-time")
        return LockSettings(
            timeout=_milliseconds(properties, "lock-timeout-ms", 180_000),
            min_wait=seconds or _milliseconds(properties, "lock-check-min-wait-ms", 50),
            max_wait=longest or _milliseconds(properties, "lock-check-max-wait-ms", 5_000),
            creation_timeout=_milliseconds(properties, "lock-creation-timeout-ms", 180_000),
            creation_min_wait=_milliseconds(properties, "lock-creation-min-wait-ms", 50),
            creation_max_wait=_milliseconds(properties, "lock-creation-max-wait-ms", 5_000),
            heartbeat_interval=_milliseconds(properties, "lock-heartbeat-interval-ms", 240_000),
        )


class TableLock:
    """The lock of one table or view, for one acquisition."""

    def __init__(
        self,
        client: HiveClient,
        properties: Mapping[str, str],
        settings: LockSettings,
        identifier: TableIdentifier,
    ) -> None:
        self._client = client
        self._settings = settings
        self._user = user_name(properties)
        self._name = identifier
        self._agent = f"Iceberg-{uuid.uuid4()}"
        self._local = _local_lock(client.address, str(identifier))
        self._id: int | None = None
        # whether the metastore may hold a lock whose id is not known here
        self._is_unanswered = False
        self._end = threading.Event()
        self._loss: Exception | None = None
        self._confirmed_at = _now()

    def acquire(self, while_waiting: Callable[[], None]) -> None:
        """Wait for the lock.

        `while_waiting` is called repeatedly, and may end the wait by raising an error. Raise
        `CommitConflictError` if the lock is not free in time, or another `CatalogError`; after an
        error, no lock is held.
        """
        end = time.monotonic() + self._settings.timeout
        if not self._local.acquire(timeout=self._settings.timeout):
            raise self._too_late()
        try:
            while_waiting()
            self._take(end, while_waiting)
            name = f"lock of {self._name}"
            threading.Thread(target=self._send_heartbeats, name=name, daemon=True).start()
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """Raise a `CatalogError` if the lock was lost since it was acquired."""
        if self._loss is None and _now() - self._confirmed_at > self._settings.heartbeat_interval:
            # the process was stopped, or the thread waits for an answer
            self._heartbeat()
        if self._loss is not None:
            raise CatalogError(
                f"the lock of {self._name} in the Hive metastore was lost: {self._loss}; try again"
                ", with a smaller iceberg.hive.lock-heartbeat-interval-ms if it happens often"
            ) from self._loss

    def release(self) -> None:
        """Release the lock; an error is only logged, because the lock expires by itself."""
        self._end.set()
        try:
            if self._is_unanswered:
                self._id = self._find_id()
            if self._id is not None:
                self._unlock(self._id)
        except Exception as e:  # noqa: BLE001 - what was done under the lock is done
            _log.warning("lock %s of %s was not given back: %s", self._id, self._name, e)
        finally:
            self._id, self._is_unanswered = None, False
            self._local.release()

    def _unlock(self, lock_id: int) -> None:
        wait = self._settings.min_wait
        for attempt in range(1, _UNLOCK_ATTEMPTS + 1):
            try:
                self._client.call("unlock", rqst={"lockid": lock_id})
            except HiveAnswerError as e:
                if attempt > 1 and e.code == "NoSuchLockException":
                    # an attempt with an internal error has given the lock back
                    return
                if e.code != INTERNAL_ERROR or attempt == _UNLOCK_ATTEMPTS:
                    raise
                time.sleep(wait)
                wait *= _BACK_OFF
            else:
                return

    def _take(self, end: float, while_waiting: Callable[[], None]) -> None:
        state = self._request_until_answered(while_waiting)
        wait = self._settings.min_wait
        while state == _WAITING:
            if time.monotonic() + wait > end:
                raise self._too_late()
            time.sleep(wait)
            wait = min(wait * _BACK_OFF, self._settings.max_wait)
            while_waiting()
            state = self._state()
        if state != _ACQUIRED:
            raise CommitConflictError(
                f"the Hive metastore granted no lock of {self._name} (state {state}); try again"
            )

    def _state(self) -> int | None:
        """Ask for the state of the requested lock, which also counts as a heartbeat."""
        asked_at = _now()
        try:
            answer = self._client.call("check_lock", rqst={"lockid": self._id})
        except HiveAnswerError as e:
            if e.code != INTERNAL_ERROR:
                raise
            return _WAITING
        self._confirmed_at = asked_at
        state: int | None = answer.get("state")
        return state

    def _request_until_answered(self, while_waiting: Callable[[], None]) -> int | None:
        """Request the lock, again after each internal error, and return its state."""
        settings = self._settings
        end = time.monotonic() + settings.creation_timeout
        wait = settings.creation_min_wait
        while True:
            try:
                return self._request()
            except HiveAnswerError as e:
                if e.code == UNKNOWN_CALL:
                    self._is_unanswered = False
                if e.code != INTERNAL_ERROR:
                    raise CatalogError(f"{e}; {_WITHOUT_LOCKS}") from e
                if time.monotonic() + wait > end:
                    raise CatalogError(
                        f"the Hive metastore created no lock of {self._name} within "
                        f"{settings.creation_timeout:g} s (iceberg.hive.lock-creation-timeout-ms): "
                        f"{e}; see the metastore's log, try again when it is less busy, and "
                        f"{_WITHOUT_LOCKS}"
                    ) from e
                _log.warning("a lock of %s is requested again: %s", self._name, e)
            time.sleep(wait)
            wait = min(wait * _BACK_OFF, settings.creation_max_wait)
            while_waiting()

    def _request(self) -> int | None:
        """Find the lock if an earlier request may have created it, or else request it."""
        try:
            answer = self._find() if self._is_unanswered else None
            if answer is None:
                self._is_unanswered, self._confirmed_at = True, _now()
                answer = self._create()
        except CatalogUnavailableError as e:
            # the answer was lost, but the metastore may have granted the lock
            answer = self._find_after(e)
        self._id, self._is_unanswered = answer["lockid"], False
        state: int | None = answer.get("state")
        return state

    def _create(self) -> dict[str, Any]:
        component = {
            "type": _EXCLUSIVE,
            "level": _OF_TABLE,
            "dbname": self._name.namespace[0],
            "tablename": self._name.name,
        }
        request = {
            "component": [component],
            "user": self._user,
            "hostname": socket.gethostname(),
            "agentInfo": self._agent,
        }
        answer: dict[str, Any] = self._client.call("lock", rqst=request)
        return answer

    def _find_after(self, cause: CatalogUnavailableError) -> dict[str, Any]:
        try:
            lock = self._find()
        except CatalogError as e:
            # the release of the lock must not search once more, which can take minutes again
            self._is_unanswered = False
            raise cause from e
        self._is_unanswered = False
        if lock is None:
            raise cause
        return lock

    def _find(self) -> dict[str, Any] | None:
        """Return the lock that the metastore holds for this object, or None."""
        request = {"dbname": self._name.namespace[0], "tablename": self._name.name}
        answer = self._client.call("show_locks", rqst=request)
        for lock in answer.get("locks") or ():
            if lock.get("agentInfo") == self._agent:
                own_lock: dict[str, Any] = lock
                return own_lock
        return None

    def _find_id(self) -> int | None:
        lock = self._find()
        return None if lock is None else lock["lockid"]

    def _send_heartbeats(self) -> None:
        wait = self._settings.heartbeat_interval / 2
        while not self._end.wait(wait):
            self._heartbeat()
            if self._loss is not None:
                return
            wait = self._settings.heartbeat_interval

    def _heartbeat(self) -> None:
        sent_at = _now()
        try:
            self._client.call("heartbeat", ids={"lockid": self._id})
        except Exception as e:  # noqa: BLE001 - whatever it is, the lock may expire now
            if not self._end.is_set():
                self._loss = e
        else:
            self._confirmed_at = sent_at

    def _too_late(self) -> CommitConflictError:
        return CommitConflictError(
            f"the lock of {self._name} in the Hive metastore was not free within "
            f"{self._settings.timeout:g} s (iceberg.hive.lock-timeout-ms); try again, or list the "
            "locks with Hive's SHOW LOCKS"
        )


def _now() -> float:
    """Return a time in seconds that also passes while the computer sleeps, if it has such a clock.

    A metastore's lock expires in that time too.
    """
    if not hasattr(time, "clock_gettime"):
        # Windows has no choice of clocks
        return time.monotonic()
    # on Linux, the monotonic clock stops while the computer sleeps
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class _LocalLock:
    """A lock that a dictionary of weak references can hold."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.acquire, self.release = self._lock.acquire, self._lock.release


_local_locks: WeakValueDictionary[tuple[str, str], _LocalLock] = WeakValueDictionary()
_guard = threading.Lock()


def _local_lock(*key: str) -> _LocalLock:
    with _guard:
        return _local_locks.setdefault((key[0], key[1]), _LocalLock())


def _forget_locks() -> None:
    """Reset the locks in a forked child, which lacks the threads that would release them."""
    global _local_locks, _guard
    _local_locks, _guard = WeakValueDictionary(), threading.Lock()


if hasattr(os, "register_at_fork"):
    # Windows has no forks
    os.register_at_fork(after_in_child=_forget_locks)


def _milliseconds(properties: Mapping[str, str], name: str, default: int) -> float:
    """Return a property in milliseconds, converted to seconds."""
    name = f"iceberg.hive.{name}"
    text = hive_property(properties, name)
    number = default if text is None else whole_number(text, LONG_MAX)
    if number is None or number <= 0:
        raise InvalidRequestError(f"property '{name}': '{text}' is not a number of milliseconds")
    return number / 1000


def _seconds(properties: Mapping[str, str], name: str) -> float | None:
    text = properties.get(name)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds < float("inf"):
        raise InvalidRequestError(f"property '{name}': '{text}' is not a number of seconds")
    return seconds
