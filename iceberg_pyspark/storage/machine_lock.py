"""Locks between the processes of one user on one machine.

The locks save work but guarantee nothing: a process that cannot get the lock, because there is no
folder or another process holds it for long, continues without it. A lock ends with the process that
holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import time
import zlib
from collections.abc import Iterator

from iceberg_pyspark.storage.user_folder import user_folder

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
