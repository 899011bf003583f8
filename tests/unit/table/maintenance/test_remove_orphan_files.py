"""Orphan removal deletes old files that nothing references, and no other file."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.errors import IcebergError, InvalidRequestError, StorageError
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.files.file_io import FileInfo, temporary_name, writing_folder_name
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.table.commits.clock import SYSTEM_CLOCK
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.maintenance.removal.candidate_files import CandidateFiles
from iceberg_pyspark.table.maintenance.removal.orphan_files import StoreNames
from iceberg_pyspark.table.maintenance.removal.remove_orphan_files import OrphanFiles
from tests.support.hooked_storage import HookedFileIO
from tests.support.table_integrity import table_problems

DAY = 86_400
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "part": ["a", "b"]})


def a_table(folder: Path, type_: str = "memory", name: str = "db.t", **properties: str) -> Table:
    uri = {"uri": f"sqlite:///{folder}/c.db"} if type_ == "sql" else {}
    catalog = load_catalog("test", type=type_, warehouse=str(folder), **uri)
    catalog.create_namespace(name.rpartition(".")[0], if_not_exists=True)
    table = catalog.create_table(
        name, "id BIGINT, part STRING", partitioned_by=["part"], properties=properties
    )
    table.append(ROWS)
    table.delete("part = 'a'")
    with table.manage_snapshots() as refs:
        refs.create_branch("side")
    table.append(ROWS, branch="side")
    return table


def stray(table: Table, name: str, *, days: float = 4) -> str:
    file = Path(table.location.removeprefix("file:")) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"nobody's")
    made_older(file, days)
    return str(file)


def made_older(path: Path, days: float = 4) -> None:
    for file in [path, *path.rglob("*")] if path.is_dir() else [path]:
        if file.is_file():
            os.utime(file, (time.time() - days * DAY,) * 2)


def files_of(table: Table) -> set[str]:
    folder = Path(table.location.removeprefix("file:"))
    return {str(f) for f in folder.rglob("*") if not f.is_dir()}


def remove(table: Table, **arguments: Any) -> OrphanFiles:
    return table.maintenance().remove_orphan_files(**arguments)


@pytest.mark.parametrize("type_", ["memory", "hadoop", "sql"])
def test_old_files_that_nothing_needs_go(tmp_path: Path, type_: str) -> None:
    table = a_table(tmp_path, type_, **{"write.metadata.previous-versions-max": "1"})
    needed = files_of(table)
    made_older(tmp_path)
    assert remove(table) == OrphanFiles()
    old = {stray(table, n) for n in ("data/x.parquet", "metadata/x.avro", "z/y", "data/part=a/f")}
    young = {stray(table, "data/young.parquet", days=2.9), stray(table, "data/new", days=0)}
    assert set(remove(table, dry_run=True).orphan_file_locations) == old
    assert files_of(table) == needed | old | young
    done = remove(table)
    assert set(done.orphan_file_locations) == old
    assert (done.deleted_files_count, done.failed_files_count) == (4, 0)
    assert files_of(table) == needed | young
    assert remove(table) == OrphanFiles()
    assert table_problems(table.refresh()) == []
    table.append(ROWS)


def test_files_left_by_a_killed_expiry_are_orphans(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.overwrite(ROWS)

    def killed(operation: str, location: str, moment: str) -> None:
        if operation == "delete":
            raise KeyboardInterrupt

    io = HookedFileIO(table.io, killed)
    killed_table = Table(table.catalog, table.loaded, io=io)
    with pytest.raises(KeyboardInterrupt):
        killed_table.maintenance().expire_snapshots(older_than=int(time.time() * 1000) + 1)
    made_older(tmp_path)
    table.refresh()
    before = files_of(table)
    done = remove(table)
    assert done.deleted_files_count > 2
    assert before - files_of(table) == set(done.orphan_file_locations)
    assert table_problems(table) == []
    assert table.scan().to_arrow().num_rows == 2


def test_beside_writers_nothing_that_they_need_goes(tmp_path: Path) -> None:
    """Two writers append while a third client expires snapshots and removes orphan files."""
    catalog = load_catalog("test", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db", if_not_exists=True)
    catalog.create_table(
        "db.t", "id BIGINT, part STRING", properties={"commit.manifest.min-count-to-merge": "3"}
    )
    acknowledged, writing = list[int](), threading.Event()

    def append(start: int) -> None:
        for number in range(start, start + 12):
            rows = pa.table({"id": pa.array([number], pa.int64()), "part": ["a"]})
            # A commit that is overtaken too often is refused and leaves no files.
            with contextlib.suppress(IcebergError):
                catalog.load_table("db.t").append(rows)
                acknowledged.append(number)

    def clean() -> None:
        while not writing.is_set():
            maintenance = catalog.load_table("db.t").maintenance()
            with contextlib.suppress(IcebergError):
                maintenance.expire_snapshots(older_than=int(time.time() * 1000), retain_last=4)
            with contextlib.suppress(IcebergError):
                maintenance.remove_orphan_files()

    with ThreadPoolExecutor(3) as pool:
        cleaning = pool.submit(clean)
        appends = [pool.submit(append, start) for start in (0, 100)]
        try:
            for done in appends:
                done.result()
        finally:
            writing.set()
        cleaning.result()
    table = catalog.load_table("db.t")
    assert acknowledged
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == sorted(acknowledged)
    table.maintenance().expire_snapshots(older_than=int(time.time() * 1000) + 1)
    assert table_problems(table) == []
    assert len(table.snapshots) == 1
    made_older(tmp_path)
    remove(table)
    assert table.scan().to_arrow().num_rows == len(acknowledged)


def test_hidden_files_links_and_folders_of_other_tables_stay(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    a_table(Path(table.location), name="inner.t")
    stray(table, "_temporary/0/x")
    stray(table, "data/.x.crc")
    stray(table, "elsewhere/v1.metadata.json")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"")
    (Path(table.location) / "data" / "link").symlink_to(outside)
    (Path(table.location) / "data" / "file").symlink_to(outside / "f")
    made_older(tmp_path)
    before = files_of(table)
    assert remove(table) == OrphanFiles()
    assert files_of(table) == before


def test_links_are_kept_if_the_listing_does_not_show_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_files = LocalFileIO.list_files

    def without_links(self: LocalFileIO, prefix: str) -> Iterator[FileInfo]:
        return (replace(file, is_link=None) for file in list_files(self, prefix))

    monkeypatch.setattr(LocalFileIO, "list_files", without_links)
    table = a_table(tmp_path)
    (tmp_path / "outside").write_bytes(b"")
    link = Path(table.location) / "data" / "file"
    link.symlink_to(tmp_path / "outside")
    strays = [stray(table, "data/x.parquet")]
    made_older(tmp_path)
    assert list(remove(table).orphan_file_locations) == strays
    assert link.is_symlink()


def test_hidden_files_of_a_killed_write_are_orphans(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    temporary_files = [
        stray(table, f"metadata/{temporary_name()}"),
        stray(table, f"data/{writing_folder_name()}/_temporary/0/part-0.parquet"),
    ]
    stray(table, "metadata/.1.tmp")
    stray(table, "data/writing-1/_temporary/0/part-0.parquet")
    stray(table, f"_other/{temporary_name()}")
    assert set(remove(table).orphan_file_locations) == set(temporary_files)


def test_partitions_of_a_hidden_name_are_looked_at(tmp_path: Path) -> None:
    catalog = load_catalog("test", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.t", "_p STRING", partitioned_by=["_p"])
    actual = stray(table, "data/_p=a/x")
    stray(table, "data/_q=a/x")
    assert remove(table).orphan_file_locations == (actual,)


def test_file_committed_after_the_listing_is_kept(tmp_path: Path) -> None:
    """The file of a slow writer is already old when the writer commits."""
    table = a_table(tmp_path)
    location = stray(table, "data/part=a/slow.parquet")
    slow = DataFile(file_path=location, partition=("a",), record_count=1, file_size_in_bytes=8)
    real, committed = table.io, list[int]()

    class SlowListing(HookedFileIO):
        def list_files(self, prefix: str) -> Any:
            result = list(real.list_files(prefix))
            if not committed:
                action = AppendFiles(data_files=(slow,))
                commit_action(table.catalog, table.loaded, real, action, CommitOptions())
                committed.append(1)
            return iter(result)

    io = SlowListing(real, lambda *_: None)
    assert remove(Table(table.catalog, table.loaded, io=io)) == OrphanFiles()
    assert committed
    assert Path(location).exists()


def test_concurrent_expiry_does_not_fail_the_removal(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    orphan = stray(table, "data/x")
    expired = list[int]()

    def hook(operation: str, location: str, moment: str) -> None:
        if not expired and location.rpartition("/")[2].startswith("snap-"):
            expired.append(1)
            done = table.maintenance().expire_snapshots(
                older_than=time.time_ns() // 1_000_000 + 1, retain_last=1
            )
            assert done.deleted_manifest_lists_count == 1

    done = remove(Table(table.catalog, table.loaded, io=HookedFileIO(table.io, hook)))
    assert expired
    assert done.orphan_file_locations == (orphan,)
    assert table_problems(table.refresh()) == []


def test_a_file_that_another_table_brought_in_and_odd_names(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    odd = Path(table.location) / "data" / "a b%20c\udc80"
    odd.write_bytes(b"")
    made_older(odd)
    spelled = f"file:{table.location}/data/../data//mine.parquet"
    mine = stray(table, "data/mine.parquet")
    action = AppendFiles(
        data_files=(
            DataFile(file_path=spelled, partition=("a",), record_count=1, file_size_in_bytes=8),
        )
    )
    commit_action(table.catalog, table.loaded, table.io, action, CommitOptions())
    made_older(tmp_path)
    assert remove(table).orphan_file_locations == (str(odd),)
    assert Path(mine).exists()
    assert not odd.exists()


def test_only_one_folder(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    here, there = stray(table, "data/part=a/x"), stray(table, "data/part=b/x")
    assert remove(table, location=f"{table.location}/data/part=a").orphan_file_locations == (here,)
    assert Path(there).exists()
    for location in (str(tmp_path), "/", f"{table.location}/..", "s3://b/t"):
        with pytest.raises(InvalidRequestError, match="is not in its own folder"):
            remove(table, location=location)


def test_unsafe_removal_is_refused(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    actual = stray(table, "data/x", days=0.5)
    now = int(time.time() * 1000)
    with pytest.raises(InvalidRequestError, match="files of the last 24 hours"):
        remove(table, older_than=now, dry_run=True)
    with pytest.raises(
        InvalidRequestError, match="prefix_mismatch_mode: expected one of 'error', "
    ):
        remove(table, prefix_mismatch_mode="drop")
    assert remove(table, older_than=now - DAY * 750, force=True) == OrphanFiles()
    made_older(tmp_path, 1)
    assert remove(table, older_than=now, force=True).orphan_file_locations == (actual,)
    table.update_properties().set({"gc.enabled": "false"}).commit()
    with pytest.raises(InvalidRequestError, match=r"cannot remove orphan files.*gc\.enabled"):
        remove(table)


def test_unreadable_manifest_removes_no_file(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    actual = stray(table, "data/x")
    before = files_of(table)

    def hook(operation: str, location: str, moment: str) -> None:
        if operation == "read_bytes" and location.endswith("-m0.avro"):
            raise StorageError(f"{location}: not today")

    with pytest.raises(StorageError, match="not today"):
        remove(Table(table.catalog, table.loaded, io=HookedFileIO(table.io, hook)))
    assert files_of(table) == before
    assert Path(actual).exists()


def test_file_of_unknown_age_is_not_an_orphan(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    stray(table, "data/x")

    class Timeless(HookedFileIO):
        def list_files(self, prefix: str) -> Any:
            return (replace(f, modified_ms=None) for f in LocalFileIO().list_files(prefix))

    io = Timeless(table.io, lambda *_: None)
    assert remove(Table(table.catalog, table.loaded, io=io)) == OrphanFiles()


def test_a_file_that_cannot_be_deleted_is_counted(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    stray(table, "data/x")

    def hook(operation: str, location: str, moment: str) -> None:
        if operation == "delete":
            raise StorageError(f"{location}: not today")

    done = remove(Table(table.catalog, table.loaded, io=HookedFileIO(table.io, hook)))
    assert (len(done.orphan_file_locations), done.failed_files_count) == (1, 1)


def mismatched(files: CandidateFiles, names: StoreNames) -> list[str]:
    files.add(["s3://b/wh/f", "s3://b/wh/g"])
    files.need_in_store(["s3a://c/wh/f"], lambda x: names.is_same(x, "s3://b/wh"))
    return [result for result, _ in files.elsewhere()]


def test_one_path_in_two_stores() -> None:
    with CandidateFiles() as files:
        assert mismatched(files, StoreNames()) == ["s3://b/wh/f"]
        files.drop_elsewhere()
        assert list(files.batches()) == [(0, ["s3://b/wh/g"])]
    with CandidateFiles() as files:
        assert mismatched(files, StoreNames({}, {"c": "b"})) == []
        assert list(files.batches()) == [(0, ["s3://b/wh/g"])]
    names = StoreNames({"x,y": "z"})
    assert names.is_same("x://b/f", "y://b/g")
    assert not names.is_same("x://b/f", "s3://b/g")


@pytest.mark.parametrize("mode", ["error", "ignore", "delete"])
def test_a_file_with_the_path_of_a_needed_file_of_another_store(tmp_path: Path, mode: Any) -> None:
    table = a_table(tmp_path)
    here = stray(table, "data/part=a/both.parquet")
    needed = DataFile(
        file_path=f"s3://bucket{here}", partition=("a",), record_count=1, file_size_in_bytes=8
    )
    action = AppendFiles(data_files=(needed,))
    commit_action(table.catalog, table.loaded, table.io, action, CommitOptions())
    if mode == "error":
        with pytest.raises(InvalidRequestError, match=r"another store .*s3://bucket"):
            remove(table)
        assert Path(here).exists()
        # declared to be one store
        assert remove(table, equal_schemes={"s3": "file"}, equal_authorities={"bucket": ""}) == (
            OrphanFiles()
        )
    else:
        orphans = (here,) if mode == "delete" else ()
        assert remove(table, prefix_mismatch_mode=mode).orphan_file_locations == orphans
    assert Path(here).exists() == (mode != "delete")


def test_the_target_of_a_link_stays(tmp_path: Path) -> None:
    """The table may need a file by the name of a link to it."""
    table = a_table(tmp_path)
    target = stray(table, "data/part=a/target.parquet")
    link = Path(table.location.removeprefix("file:")) / "data/part=a/link.parquet"
    link.symlink_to(target)
    linked = DataFile(file_path=str(link), partition=("a",), record_count=1, file_size_in_bytes=8)
    action = AppendFiles(data_files=(linked,))
    commit_action(table.catalog, table.loaded, table.io, action, CommitOptions())
    assert remove(table) == OrphanFiles()
    assert Path(target).exists()


def test_a_clock_far_ahead_of_the_store_deletes_nothing(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    in_flight = stray(table, "data/part=a/in_flight.parquet", days=0.1)
    before = files_of(table)

    def ahead(hours: float) -> Table:
        clock = replace(SYSTEM_CLOCK, now_ms=lambda: SYSTEM_CLOCK.now_ms() + int(hours * 3_600_000))
        return Table(table.catalog, table.loaded, clock=clock)

    with pytest.raises(InvalidRequestError, match=r"clock is 96\.0 hours ahead of the store"):
        remove(ahead(96))
    assert remove(ahead(96), dry_run=True).orphan_file_locations
    assert files_of(table) == before
    old = stray(table, "data/part=a/old.parquet")
    assert remove(ahead(0.9)).orphan_file_locations == (old,)
    assert files_of(table) == before
    assert in_flight in remove(ahead(96), force=True).orphan_file_locations
    table.refresh()
    with pytest.raises(InvalidRequestError, match=r"144\.0 hours ahead .*give older_than"):
        ahead(144).maintenance().expire_snapshots()
    expired = ahead(144).maintenance().expire_snapshots(older_than=SYSTEM_CLOCK.now_ms() + 1)
    assert expired.expired_snapshots_count
