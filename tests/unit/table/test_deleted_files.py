"""Deleting many files: who deletes them, and what is counted."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.memory import MemoryFileIO
from iceberg_pyspark.storage.own_folders import OwnFolders
from iceberg_pyspark.table.changes import deleted_files
from iceberg_pyspark.table.changes.deleted_files import DeletedFile, FileDeletion

COUNT = 200


class Store(MemoryFileIO):
    """A store that records the deleting threads and takes `seconds` for each deletion."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.threads: list[str] = []

    def delete(self, location: str) -> None:
        self.threads.append(threading.current_thread().name)
        time.sleep(self.seconds)
        if location.endswith("/13"):
            raise StorageError(f"{location} cannot be deleted")
        super().delete(location)


def delete(store: Store) -> Counter[DeletedFile]:
    own = OwnFolders(("mem://lake/wh/db/t",))
    locations = [f"mem://lake/wh/db/t/data/{n}" for n in range(COUNT)]
    with FileDeletion(store, own, 4) as deletion:
        return deletion.delete([*locations, "mem://lake/elsewhere/x"])


def test_threads_delete_in_a_slow_store() -> None:
    store = Store(seconds=0.001)
    assert delete(store) == {"deleted": COUNT - 1, "failed": 1, "outside": 1}
    assert any(name.startswith("delete-files") for name in store.threads)


def test_the_caller_deletes_alone_in_a_quick_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleted_files, "_QUICK_SECONDS", 10.0)
    store = Store(seconds=0)
    assert delete(store) == {"deleted": COUNT - 1, "failed": 1, "outside": 1}
    assert set(store.threads) == {threading.current_thread().name}
