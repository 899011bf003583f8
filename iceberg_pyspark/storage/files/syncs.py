"""Syncs local files to disk, concurrently for files of one commit.

A file is synced before it is referenced. A disk handles many syncs in little more time than one: in
a block of `syncs_together` each closed file is synced in its own thread, and `finish_syncs` waits
for all of them.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextvars import ContextVar

from iceberg_pyspark.errors import StorageError

_AT_ONCE = 16
"""The most threads and open files in a block, because a commit may write thousands of manifests."""


class _Sync(threading.Thread):
    def __init__(self, descriptor: int, location: str) -> None:
        super().__init__(name="iceberg-sync", daemon=True)
        self._descriptor = descriptor
        self._location = location
        self._error: OSError | None = None

    def run(self) -> None:
        try:
            os.fsync(self._descriptor)
        except OSError as e:
            self._error = e
        finally:
            os.close(self._descriptor)

    @property
    def is_done(self) -> bool:
        """Whether the file is certainly on disk."""
        return not self.is_alive() and self._error is None

    def finish(self) -> None:
        """Wait for the sync; raise `StorageError` if the file may not be on disk."""
        if self.ident is not None:
            self.join()
        if self._error is not None:
            reason = self._error.strerror or self._error
            raise StorageError(f"cannot write {self._location}: {reason}") from self._error


_running_syncs: ContextVar[list[_Sync] | None] = ContextVar("begun", default=None)


@contextlib.contextmanager
def syncs_together() -> Iterator[None]:
    """Sync the files that are closed in the block in background threads, until `finish_syncs`.

    Call `finish_syncs` before anything refers to the files. A nested block is a part of the outer
    one.
    """
    if _running_syncs.get() is not None:
        yield
        return
    token = _running_syncs.set([])
    try:
        yield
    finally:
        # nothing refers to files that are not finished, so their errors do not matter
        with contextlib.suppress(StorageError):
            finish_syncs()
        _running_syncs.reset(token)


def finish_syncs() -> None:
    """Wait until all files of the block so far are on disk; raise `StorageError` on failure."""
    syncs = _running_syncs.get()
    if not syncs:
        return
    waiting = list(syncs)
    syncs.clear()
    failure: StorageError | None = None
    for sync in waiting:
        try:
            sync.finish()
        except StorageError as e:
            failure = failure or e
    if failure is not None:
        raise failure


def sync(descriptor: int, location: str) -> None:
    """Sync an open file now, or in the background of a block; the caller may then close it."""
    syncs = _running_syncs.get()
    if syncs is None:
        os.fsync(descriptor)
        return
    syncs[:] = [s for s in syncs if not s.is_done]
    running = [s for s in syncs if s.is_alive()]
    if len(running) >= _AT_ONCE:
        running[0].join()
    sync = _Sync(os.dup(descriptor), location)
    try:
        sync.start()
    except RuntimeError:  # no thread is available
        sync.run()
    syncs.append(sync)
