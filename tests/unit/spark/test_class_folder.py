"""Compiled classes are kept for the next session, whole or not at all."""

import os
from pathlib import Path

import pytest

from iceberg_pyspark.spark.bridge.class_folder import class_folder


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_the_same_source_is_compiled_once(tmp_path: Path) -> None:
    first = class_folder(str(tmp_path), "a", lambda: {"A": b"1"})
    assert files(first) == {"A.class": b"1"}
    assert class_folder(str(tmp_path), "a", lambda: pytest.fail("compiled again")) == first
    other = class_folder(str(tmp_path), "b", lambda: {"A": b"2"})
    assert files(other) == {"A.class": b"2"}


def test_nothing_is_kept_of_a_failure(tmp_path: Path) -> None:
    def fails() -> dict[str, bytes]:
        raise ValueError("no Janino")

    with pytest.raises(ValueError, match="no Janino"):
        class_folder(str(tmp_path), "a", fails)
    assert not list(tmp_path.iterdir())


def test_of_two_sessions_that_compile_at_once_one_folder_stays(tmp_path: Path) -> None:
    def slower() -> dict[str, bytes]:
        class_folder(str(tmp_path), "a", lambda: {"A": b"1", "B": b"2"})
        return {"A": b"1", "B": b"2"}

    folder = class_folder(str(tmp_path), "a", slower)
    assert files(folder) == {"A.class": b"1", "B.class": b"2"}
    assert os.listdir(tmp_path) == [folder.name]


def test_without_a_folder_of_the_user_classes_are_temporary() -> None:
    folder = class_folder(None, "a", lambda: {"A": b"1"})
    assert files(folder) == {"A.class": b"1"}
    assert class_folder(None, "a", lambda: {"A": b"1"}) != folder
