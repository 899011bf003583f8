"""Files of another program are moved into a table's folder, or stay where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from iceberg_pyspark.errors import FileAlreadyExistsError, StorageError
from iceberg_pyspark.storage.files.local import (
    files_below,
    move_file,
    remove_folder,
    sync_file,
)


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
