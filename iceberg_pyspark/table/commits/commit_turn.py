"""Lets the commits of one table take turns: first come, first served within a process.

Optimistic commits of many writers are correct without turns, but each success makes all other
writers start again, and some writers are overtaken again and again. The processes of one user on a
machine take turns too, by locks on files; writers on other machines compete at the catalog.

The locks save work but guarantee nothing: a process that cannot get the lock, because there is no
folder or another process holds it for long, continues without it. A lock ends with the process that
holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterator

from iceberg_pyspark.storage.files.cache import user_folder

_FOLDER = "iceberg-pyspark-locks"
# names share files to keep the folder small; names with the same file only wait for each other
_FILES = 64
_SHORTEST_WAIT_S = 0.001
_LONGEST_WAIT_S = 0.01


@contextlib.contextmanager
def machine_lock(name: str, *, timeout_s: float) -> Iterator[bool]:
    """Hold the named lock during the block; yield False if the block runs without the lock."""
    descriptor = _open(name)
    if descriptor is None:
        yield False
        return
    try:
        yield _acquire(descriptor, time.monotonic() + timeout_s)
    finally:
        os.close(descriptor)


def _open(name: str) -> int | None:
    folder = user_folder(_FOLDER)
    if folder is None:
        return None
    file = os.path.join(folder, f"{zlib.crc32(name.encode()) % _FILES}.lock")
    try:
        # links are not followed: no other user can create one in this folder, and none is needed
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None


def _acquire(descriptor: int, until: float) -> bool:
    wait = _SHORTEST_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
        except OSError:
            return False
        else:
            return True
        # random waits, so that no process always loses to the same other process
        time.sleep(wait * (0.5 + random.random()))
        wait = min(2 * wait, _LONGEST_WAIT_S)


_PATIENCE_S = 60.0
"""How long a commit waits for another one before it continues without a turn."""

_guard = threading.Lock()
_waiting: dict[str, deque[threading.Event]] = {}
_local = threading.local()


@contextlib.contextmanager
def commit_turn(table: str) -> Iterator[None]:
    """Hold this thread's turn to commit to a table, which a uuid or location identifies."""
    own_tables: set[str] = _local.__dict__.setdefault("own_tables", set())
    if table in own_tables or not _take(table):
        yield
        return
    own_tables.add(table)
    try:
        with machine_lock(table, timeout_s=_PATIENCE_S):
            yield
    finally:
        own_tables.discard(table)
        _give_up(table)


def _take(table: str) -> bool:
    with _guard:
        others = _waiting.get(table)
        if others is None:
            _waiting[table] = deque()
            return True
        turn = threading.Event()
        others.append(turn)
    try:
        turn.wait(_PATIENCE_S)
    except BaseException:
        if _has_come(turn, others):
            # The turn came in the same moment: pass it on to the next thread.
            _give_up(table)
        raise
    return _has_come(turn, others)


def _has_come(turn: threading.Event, others: deque[threading.Event]) -> bool:
    """Return whether the turn has come; if not, remove it from the queue."""
    with _guard:
        has_come = turn.is_set()
        if not has_come:
            others.remove(turn)
    return has_come


def _give_up(table: str) -> None:
    with _guard:
        others = _waiting[table]
        if others:
            others.popleft().set()
        else:
            del _waiting[table]
