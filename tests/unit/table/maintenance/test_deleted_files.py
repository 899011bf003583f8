"""Deleting many files: who deletes them, and what is counted."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.files.file_io import FileInfo
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.storage.own_folders import OwnFolders
from iceberg_pyspark.table.maintenance.removal import deleted_files
from iceberg_pyspark.table.maintenance.removal.deleted_files import DeletedFile, FileDeletion
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import commit_table

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
        return sum(deletion.delete([*locations, "mem://lake/elsewhere/x"]), Counter())


def test_threads_delete_in_a_slow_store() -> None:
    store = Store(seconds=0.001)
    assert delete(store) == {"deleted": COUNT - 1, "failed": 1, "outside": 1}
    assert any(name.startswith("delete-files") for name in store.threads)


def test_the_caller_deletes_alone_in_a_quick_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleted_files, "_QUICK_SECONDS", 10.0)
    store = Store(seconds=0)
    assert delete(store) == {"deleted": COUNT - 1, "failed": 1, "outside": 1}
    assert set(store.threads) == {threading.current_thread().name}


FOLDER = "s3://lake/wh/db/t"


class BulkStore(MemoryFileIO):
    """A store that deletes up to 1000 files per request, and records the requests.

    Files whose names end in `13` cannot be deleted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[list[str]] = []

    def files_per_request(self, location: str) -> int:
        return 1000 if location.startswith("s3:") else 1

    def delete_files(self, locations: Sequence[str]) -> dict[str, StorageError]:
        self.requests.append(list(locations))
        return {f: StorageError(f"{f}: refused") for f in locations if f.endswith("/13")}


def test_a_store_gets_requests_for_a_thousand_of_the_table_s_files(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = BulkStore()
    locations = [f"{FOLDER}/data/{n}" for n in range(4500)]
    # neither a file of another table nor one in another store is in a request
    foreign = ["s3://lake/wh/db/t2/x", "mem://lake/x", f"{FOLDER}/../t2/y"]
    with FileDeletion(store, OwnFolders((FOLDER,)), 4, "a stray file") as deletion:
        counts = sum(deletion.delete([*foreign, *locations, *foreign]), Counter())
    assert counts == {"deleted": 4499, "failed": 1, "outside": 6}
    assert sorted(f for request in store.requests for f in request) == sorted(locations)
    assert max(map(len, store.requests)) <= 1000
    assert len(store.requests) == 5
    assert f"a stray file could not be deleted: {FOLDER}/data/13: refused" in caplog.text


def test_locations_are_read_only_as_far_as_threads_need_them() -> None:
    read = 0

    def locations() -> Iterator[str]:
        nonlocal read
        for n in range(20_000):
            read += 1
            yield f"{FOLDER}/data/{n}"

    with FileDeletion(BulkStore(), OwnFolders((FOLDER,)), 2) as deletion:
        parts = deletion.delete(locations())
        assert read == 0
        assert next(parts) == Counter({"deleted": 999, "failed": 1})
        assert read <= 5000
        assert sum(parts, Counter()) == {"deleted": 19_000}


class Simultaneous:
    """A count of simultaneous deletions by threads; `most` is the maximum.

    The first `expected` deletions wait for each other, and shortly for one too many.
    """

    def __init__(self, expected: int) -> None:
        self.most = 0
        self._expected = expected
        self._active = 0
        self._has_waited = False
        self._changed = threading.Condition()

    def __enter__(self) -> None:
        with self._changed:
            self._active += 1
            if self._active > self.most:
                self.most = self._active
                self._changed.notify_all()
            self._changed.wait_for(lambda: self.most >= self._expected, timeout=30)
            if not self._has_waited:
                self._has_waited = True
                self._changed.wait_for(lambda: self.most > self._expected, timeout=0.2)

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._active -= 1


@pytest.mark.parametrize("count", [1, 3, 20])
@pytest.mark.parametrize("is_bulk", [False, True])
def test_at_most_max_concurrent_deletes_run_at_once(
    monkeypatch: pytest.MonkeyPatch, count: int, is_bulk: bool
) -> None:
    """As many as permitted do run at once, and never one more."""
    table = commit_table(location=FOLDER)
    orphans = [f"{FOLDER}/data/{n}" for n in range(1000)]
    simultaneous = Simultaneous(count)

    class Slow(MemoryFileIO):
        def list_files(self, prefix: str) -> Iterator[FileInfo]:
            for location in orphans:
                yield FileInfo(location=location, size=1, modified_ms=0)

        def read_bytes(self, location: str) -> bytes:
            return table.io.read_bytes(location)

        def delete(self, location: str) -> None:
            if threading.current_thread() is not threading.main_thread():
                with simultaneous:
                    pass

    class SlowBulk(Slow):
        def files_per_request(self, location: str) -> int:
            return 25

        def delete_files(self, locations: Sequence[str]) -> dict[str, StorageError]:
            with simultaneous:
                return {}

    # the caller deletes the first files, and threads the others
    monkeypatch.setattr(deleted_files, "_QUICK_SECONDS", 0)
    maintenance = Table(table.catalog, table.loaded, io=SlowBulk() if is_bulk else Slow())
    done = maintenance.maintenance().remove_orphan_files(max_concurrent_deletes=count)
    assert done.deleted_files_count == len(orphans)
    assert simultaneous.most == count
