"""Lets the commits of one table take turns: first come, first served within a process.

Optimistic commits of many writers are correct without turns, but each success makes all other
writers start again, and some writers are overtaken again and again. The processes of a machine take
turns too, as far as `storage/machine_lock.py` can arrange it; writers on other machines compete at
the catalog.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator

from iceberg_pyspark.storage.machine_lock import machine_lock

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
