"""A commit's files are on disk before the catalog is asked, and are synced in parallel."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import TableCatalog
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.changes.outcomes import Outcome
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.storage.files.syncs import finish_syncs, syncs_together


class Disk:
    """The names of synced files; syncs of files with an ending in `fails` fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: list[str] = []
        self.threads: set[int] = set()
        self.fails: tuple[str, ...] = ()
        real = os.fsync

        def fsync(descriptor: int) -> None:
            name = os.readlink(f"/proc/self/fd/{descriptor}")
            self.threads.add(threading.get_ident())
            if name.endswith(self.fails or ("no such ending",)):
                raise OSError(5, "Input/output error")
            real(descriptor)
            self.synced.append(name)

        monkeypatch.setattr(os, "fsync", fsync)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def write(location: Path) -> None:
    with LocalFileIO().open_output(str(location)) as stream:
        stream.write(b"x")


def test_a_file_alone_is_on_disk_once_closed(tmp_path: Path, disk: Disk) -> None:
    write(tmp_path / "a")
    assert disk.synced == [str(tmp_path / "a")]
    assert disk.threads == {threading.get_ident()}


def test_files_of_a_block_are_on_disk_once_finished(tmp_path: Path, disk: Disk) -> None:
    with syncs_together():
        write(tmp_path / "a")
        with syncs_together():
            write(tmp_path / "b")
        finish_syncs()
        assert sorted(disk.synced) == [str(tmp_path / "a"), str(tmp_path / "b")]
        assert threading.get_ident() not in disk.threads
        finish_syncs()
    finish_syncs()


def test_a_block_of_many_files_has_few_threads_and_open_files(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    fsync = os.fsync

    def slow(descriptor: int) -> None:
        counts.append(sum(t.name == "iceberg-sync" for t in threading.enumerate()))
        time.sleep(0.002)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    disk.fails = ("7",)
    with syncs_together():
        for n in range(100):
            write(tmp_path / str(n))
        with pytest.raises(StorageError, match=r"cannot write .*7: Input/output error"):
            finish_syncs()
    assert len(disk.synced) == 90
    assert max(counts) <= 16


def test_a_block_that_fails_leaves_no_sync_behind(tmp_path: Path, disk: Disk) -> None:
    def fail() -> None:
        with syncs_together():
            write(tmp_path / "a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert disk.synced == [str(tmp_path / "a")]


def test_a_file_that_cannot_be_synced_is_an_error(tmp_path: Path, disk: Disk) -> None:
    disk.fails = ("a", "b")
    with syncs_together():
        write(tmp_path / "a")
        write(tmp_path / "c")
        with pytest.raises(StorageError, match=r"cannot write .*a: Input/output error"):
            finish_syncs()
        # The other syncs are finished too.
        assert disk.synced == [str(tmp_path / "c")]
        finish_syncs()
    with pytest.raises(StorageError):
        write(tmp_path / "b")


def test_without_threads_a_file_is_synced_at_once(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with syncs_together():
        write(tmp_path / "a")
        assert disk.synced == [str(tmp_path / "a")]
        finish_syncs()


class AskedCatalog(MemoryCatalog):
    """A catalog that records which files were on disk when a commit was requested."""

    disk: Disk
    before: tuple[str, ...] = ()

    def commit_table(self, *arguments: object, **_: object) -> Outcome:  # type: ignore[type-arg]
        self.before = tuple(self.disk.synced)
        return super().commit_table(*arguments)  # type: ignore[arg-type]


def test_all_files_of_an_append_are_on_disk_before_the_catalog_is_asked(
    tmp_path: Path, disk: Disk
) -> None:
    catalog = AskedCatalog("lake", {"warehouse": str(tmp_path)})
    catalog.disk = disk
    catalog.create_namespace(("db",))
    table = TableCatalog(catalog).create_table("db.t", "id BIGINT")
    disk.synced.clear()
    table.append(pa.table({"id": [1]}))
    endings = sorted(Path(f).suffix for f in catalog.before)
    assert endings == [".avro", ".avro", ".parquet"]


@pytest.mark.parametrize("ending", [".parquet", ".avro"])
def test_an_append_that_is_not_on_disk_is_refused(tmp_path: Path, disk: Disk, ending: str) -> None:
    catalog = AskedCatalog("lake", {"warehouse": str(tmp_path)})
    catalog.disk = disk
    catalog.create_namespace(("db",))
    table = TableCatalog(catalog).create_table("db.t", "id BIGINT")
    before = table.loaded
    disk.fails = (ending,)
    with pytest.raises(StorageError, match="Input/output error"):
        table.append(pa.table({"id": [1]}))
    assert catalog.before == ()
    assert catalog.load_table(table.identifier) == before
    remaining_files = [f for f in tmp_path.rglob("*") if f.suffix in (".parquet", ".avro")]
    assert remaining_files == []
