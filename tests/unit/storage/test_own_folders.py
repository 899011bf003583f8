"""Which files may be deleted with a table: files in its own folders, after resolving links."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.storage.own_folders import OwnFolders
from iceberg_pyspark.storage.restricted_io import RestrictedFileIO

REMOTE = OwnFolders(("s3://b/wh/t",))


@pytest.mark.parametrize(
    "location",
    ["s3://b/wh/t/data/f", "s3a://b/wh/t/f", "s3://b/wh/t//f", "s3://b/wh/t/a/../f"],
)
def test_a_file_in_the_folder_is_own(location: str) -> None:
    assert REMOTE.owns(location)


@pytest.mark.parametrize(
    "location",
    [
        "s3://b/wh/t",
        "s3://b/wh/t/",
        "s3://b/wh/t2/f",
        "s3://b/wh/t/../u/f",
        "s3://b/wh/t//../../u/f",
        "s3://other/wh/t/f",
        "/wh/t/f",
        "file://host/wh/t/f",
        "f",
        "",
        "/\0",
    ],
)
def test_location_outside_is_not_owned(location: str) -> None:
    assert not REMOTE.owns(location)


@pytest.mark.parametrize(
    "folder", ["/", "file:///", "/a", "/a/..", "s3://b", "s3://b/", "hdfs://nn/", "hdfs://nn/user"]
)
def test_folder_near_the_root_belongs_to_no_table(folder: str) -> None:
    assert not OwnFolders((folder,)).owns(f"{folder.rstrip('/')}/x/y/f")


def test_no_folder_owns_nothing() -> None:
    assert not OwnFolders().owns("/a/b/c")


def test_shared_metadata_folder_owns_metadata_files_only() -> None:
    folders = OwnFolders(metadata_folder="s3://b/meta/all")
    assert folders.owns("s3://b/meta/all/00001-x.metadata.json")
    assert folders.owns("s3a://b/meta/all/00001-x.metadata.json.gz")
    for other in ("x.parquet", "m0.avro", "below/00001-x.metadata.json", "../x.metadata.json"):
        assert not folders.owns(f"s3://b/meta/all/{other}")
    assert not OwnFolders(metadata_folder="s3://b").owns("s3://b/x.metadata.json")


def test_links_are_followed(tmp_path: Path) -> None:
    table, other, alias = tmp_path / "wh/t", tmp_path / "other", tmp_path / "alias"
    (table / "data").mkdir(parents=True)
    other.mkdir()
    (other / "f").touch()
    alias.symlink_to(tmp_path / "wh")
    (table / "out").symlink_to(other)
    (table / "data/near").symlink_to(table)
    (table / "data/link").symlink_to(other / "f")
    own = OwnFolders((str(table),))
    assert own.owns(f"file:{table}/data/f")
    assert own.owns(f"{alias}/t/data/f")
    assert own.owns(f"{table}/data/near/data/f")
    assert OwnFolders((f"{alias}/t",)).owns(f"{table}/data/f")
    # Deleting a link removes the link, not its target.
    assert own.owns(f"{table}/data/link")
    assert not own.owns(f"{table}/out/f")
    assert not own.owns(f"{table}/out/../f")
    assert not own.owns(f"{table}/data/near/../../f")
    assert not own.owns(f"{table}/data/..")


def test_link_to_the_root_belongs_to_no_table(tmp_path: Path) -> None:
    (tmp_path / "t").symlink_to("/")
    assert not OwnFolders((str(tmp_path / "t"),)).owns("/etc/passwd")


def test_folder_replaced_by_a_link_is_not_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: moment)
    table, elsewhere = tmp_path / "warehouse" / "t", tmp_path / "elsewhere"
    (table / "data").mkdir(parents=True)
    elsewhere.mkdir()
    folders = OwnFolders((str(table),))
    assert folders.owns(f"{table}/data/a")
    (table / "data").rmdir()
    (table / "data").symlink_to(elsewhere)
    moment += 1
    assert not folders.owns(f"{table}/data/a")


def test_links_are_looked_up_once_for_the_files_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: moment)
    looked_up: list[str] = []
    real = os.path.realpath

    def looks_up(path: str) -> str:
        looked_up.append(path)
        return real(path)

    monkeypatch.setattr(os.path, "realpath", looks_up)
    folders = OwnFolders((str(tmp_path / "warehouse" / "t"),))
    for _ in range(3):
        for i in range(100):
            assert folders.owns(f"{tmp_path}/warehouse/t/data/{i:05}.parquet")
    assert len(looked_up) == 2
    # Another spelling of the folder is not a file in the folder.
    assert not folders.owns(f"{tmp_path}/warehouse/t/data/..")
    assert not folders.owns(f"{tmp_path}/warehouse/t/../u/a")


@pytest.mark.parametrize("swapped", ["data", ".", ".."])
def test_a_folder_that_became_a_link_after_the_look_loses_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    table, elsewhere = tmp_path / "warehouse/db/t", tmp_path / "elsewhere"
    for folder in (table / "data", elsewhere, elsewhere / "data", elsewhere / "t/data"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("a", "b"):
            (folder / name).touch()
    (table / "data/folder").mkdir()
    (table / "data/link").symlink_to(elsewhere / "a")
    own = OwnFolders((str(table),))
    io = RestrictedFileIO(
        io=open_storage(str(table), {}), known_location=str(table), folders=(), hint="t", own=own
    )
    io.delete(f"file:{table}/data/a")
    io.delete(f"{table}/data/missing")
    io.delete(f"{table}/data/link")
    with pytest.raises(StorageError, match="cannot delete"):
        io.delete(f"{table}/data/folder")
    assert sorted(f.name for f in (table / "data").iterdir()) == ["b", "folder"]
    folder = Path(os.path.normpath(table / swapped))
    folder.rename(tmp_path / "moved")
    folder.symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    assert own.owns(f"{table}/data/b")
    with pytest.raises(StorageError, match="cannot delete"):
        io.delete(f"{table}/data/b")
    assert sorted(elsewhere.rglob("*")) == before
