"""Files of the local file system."""

from __future__ import annotations

import errno
import os
import pickle
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iceberg_pyspark.errors import FileAlreadyExistsError, StorageError
from iceberg_pyspark.storage.files.local import (
    LocalFileIO,
    files_below,
    is_local,
    local_path,
    move_file,
    remove_folder,
    sync_file,
)

IO = LocalFileIO()


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("FILE:/a/b", "/a/b"),
        ("file:/a b/%20/ü?x#y", "/a b/%20/ü?x#y"),
        ("/a::b", "/a::b"),
        ("//a/b", "//a/b"),
    ],
)
def test_a_location_is_a_path_character_by_character(location: str, path: str) -> None:
    assert local_path(location) == path
    assert is_local(location)


@pytest.mark.parametrize("location", ["", "a/b", "file:a/b", "file:", "file://server/a", "file://"])
def test_relative_paths_and_other_hosts_are_refused(location: str) -> None:
    with pytest.raises(StorageError):
        local_path(location)


@pytest.mark.parametrize("location", ["s3://b/file:/x", "files://b/x", "memory://x", "a/b"])
def test_other_schemes_are_not_local(location: str) -> None:
    assert not is_local(location)


def test_file_uri_and_path_name_the_same_file(tmp_path: Path) -> None:
    IO.create_exclusive(f"file:{tmp_path}/p=%20/f", b"x")
    assert IO.read_bytes(f"{tmp_path}/p=%20/f") == b"x"
    assert IO.read_bytes(f"file://{tmp_path}/p=%20/f") == b"x"
    assert os.listdir(tmp_path) == ["p=%20"]


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "\ud800"])
def test_impossible_names_are_storage_errors(tmp_path: Path, name: str) -> None:
    for use in (IO.read_bytes, IO.size, IO.open_output, IO.delete):
        with pytest.raises(StorageError):
            use(f"{tmp_path}/{name}")
    with pytest.raises(StorageError):
        IO.create_exclusive(f"{tmp_path}/{name}", b"")


def test_a_file_among_the_parents_is_a_storage_error(tmp_path: Path) -> None:
    IO.create_exclusive(f"{tmp_path}/f", b"x")
    with pytest.raises(StorageError) as caught:
        IO.create_exclusive(f"{tmp_path}/f/g", b"y")
    assert not isinstance(caught.value, FileAlreadyExistsError)
    assert not IO.exists(f"{tmp_path}/f/g")
    IO.delete(f"{tmp_path}/f/g")
    assert list(IO.list_files(f"{tmp_path}/f")) == []


def test_a_folder_cannot_be_read_or_deleted(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"folder|directory"):
        IO.open_input(str(tmp_path))
    with pytest.raises(StorageError):
        IO.delete(str(tmp_path))
    assert tmp_path.is_dir()


def test_links_to_folders_are_not_followed_by_a_listing(tmp_path: Path) -> None:
    IO.create_exclusive(f"{tmp_path}/t/f", b"x")
    (tmp_path / "t" / "loop").symlink_to(tmp_path / "t")
    (tmp_path / "t" / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "t" / "link").symlink_to(tmp_path / "t" / "f")
    sizes = {f.location: f.size for f in IO.list_files(f"{tmp_path}/t")}
    assert sizes[f"{tmp_path}/t/f"] == 1
    assert sizes[f"{tmp_path}/t/link"] == 1
    assert f"{tmp_path}/t/dangling" not in sizes


def test_a_listing_tells_when_files_were_written(tmp_path: Path) -> None:
    IO.create_exclusive(f"{tmp_path}/f", b"x")
    os.utime(tmp_path / "f", ns=(0, 1_700_000_000_123_000_000))
    assert [f.modified_ms for f in IO.list_files(str(tmp_path))] == [1_700_000_000_123]


@pytest.mark.parametrize(("call", "code"), [("fsync", errno.EIO), ("link", errno.EACCES)])
def test_an_error_of_the_system_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(StorageError, match=os.strerror(code)) as caught:
        IO.create_exclusive(f"{tmp_path}/v1", b"x" * 100)
    monkeypatch.undo()
    assert str(tmp_path) in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_write_beyond_what_is_allowed_leaves_no_file(
    tmp_path: Path, small_files_only: None
) -> None:
    with pytest.raises(StorageError, match="File too large"):
        IO.create_exclusive(f"{tmp_path}/v1", b"x" * 5_000_000)
    assert os.listdir(tmp_path) == []
    IO.write_bytes(f"{tmp_path}/hint", b"1")
    with pytest.raises(StorageError, match="File too large"):
        IO.write_bytes(f"{tmp_path}/hint", b"x" * 5_000_000)
    assert IO.read_bytes(f"{tmp_path}/hint") == b"1"
    assert os.listdir(tmp_path) == ["hint"]


def test_failed_write_raises_in_the_stream(tmp_path: Path, small_files_only: None) -> None:
    stream = IO.open_output(f"{tmp_path}/data")
    with pytest.raises(StorageError, match=r"cannot write .*data: File too large"):
        stream.write(b"x" * 5_000_000)
    stream.close()


@pytest.fixture
def small_files_only() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_system_without_links_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(StorageError, match="no hard links"):
        IO.create_exclusive(f"{tmp_path}/v1", b"x")
    assert os.listdir(tmp_path) == []


def test_a_link_whose_answer_was_lost_counts_as_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_link = os.link

    def link_twice(source: str, target: str) -> None:
        real_link(source, target)
        real_link(source, target)

    monkeypatch.setattr(os, "link", link_twice)
    IO.create_exclusive(f"{tmp_path}/v1", b"x")
    assert os.listdir(tmp_path) == ["v1"]


def test_folders_that_may_not_be_entered_are_storage_errors(tmp_path: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("the superuser may enter every folder")
    (tmp_path / "shut").mkdir(mode=0o000)
    for use in (IO.read_bytes, IO.exists, IO.size):
        with pytest.raises(StorageError, match="Permission denied"):
            use(f"{tmp_path}/shut/f")


def test_local_file_io_pickles() -> None:
    assert pickle.loads(pickle.dumps(IO)) == IO


def test_of_racing_processes_one_creates_each_version(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from iceberg_pyspark.errors import FileAlreadyExistsError\n"
        "from iceberg_pyspark.storage.files.local import LocalFileIO\n"
        "sys.stdin.readline()\n"
        "for version in range(50):\n"
        "    try:\n"
        "        data = sys.argv[2].encode() * 1000\n"
        "        LocalFileIO().create_exclusive(f'{sys.argv[1]}/v{version}', data)\n"
        "        print(version)\n"
        "    except FileAlreadyExistsError:\n"
        "        pass\n"
    )
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(8)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = {
        version: number
        for number, racer in enumerate(racers)
        for version in racer.communicate(timeout=60)[0].split()
    }
    assert all(racer.returncode == 0 for racer in racers)
    assert sorted(map(int, won)) == list(range(50))
    for version, number in won.items():
        assert IO.read_bytes(f"{tmp_path}/v{version}") == str(number).encode() * 1000
    assert len(os.listdir(tmp_path)) == 50


def test_a_file_is_moved_into_folders_that_are_not_there_yet(tmp_path: Path) -> None:
    source, target = tmp_path / "a b%20", tmp_path / "p=1%2F" / "q" / "f"
    source.write_bytes(b"12345")
    assert sync_file(f"file:{source}") == 5
    move_file(f"file:{source}", str(target))
    assert target.read_bytes() == b"12345"
    assert not source.exists()


def test_no_file_is_replaced_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"new")
    (tmp_path / "b").write_bytes(b"old")
    with pytest.raises(FileAlreadyExistsError, match="it exists already"):
        move_file(str(tmp_path / "a"), str(tmp_path / "b"))
    assert (tmp_path / "b").read_bytes() == b"old"
    with pytest.raises(StorageError, match=r"cannot move .*/none to .*/c: No such file"):
        move_file(str(tmp_path / "none"), str(tmp_path / "c"))
    with pytest.raises(StorageError, match=r"cannot sync .*/none: No such file"):
        sync_file(str(tmp_path / "none"))


def test_a_folder_is_listed_and_removed_with_all_that_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    for name in ("b/2", "b/1", "a/x/3", "0"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    assert files_below(f"file:{folder}") == [(".", "0"), ("a/x", "3"), ("b", "1"), ("b", "2")]
    remove_folder(str(folder))
    assert files_below(str(folder)) == []
    remove_folder(str(folder))
