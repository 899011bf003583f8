"""One location has many spellings."""

from __future__ import annotations

import pytest

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.files.places import depth, is_below, normalized_location, store_of


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("s3://b/x", "s3a://b/y"),
        ("s3n://b", "S3://b/y/z"),
        ("gs://b/x", "gcs://b/x"),
        ("abfs://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/y"),
        ("file:/x", "/y"),
        ("file:///x", "file://localhost/y"),
    ],
)
def test_one_store(a: str, b: str) -> None:
    assert store_of(a) == store_of(b)


@pytest.mark.parametrize(
    "other",
    [
        "s3://b2/x",
        "s3://B/x",
        "s3://b@evil/x",
        "s3://b\\@evil/x",
        "s3://b%2fx/x",
        "s3://b:80/x",
        "gs://b/x",
        "memory://b/x",
        "/b/x",
        "s3:///b/x",
    ],
)
def test_another_store(other: str) -> None:
    assert store_of(other) != store_of("s3://b/x")


@pytest.mark.parametrize("location", ["file://host/x", "file:x", "x/y", "", "s3:/b/x"])
def test_no_location(location: str) -> None:
    with pytest.raises(StorageError):
        store_of(location)


@pytest.mark.parametrize("hidden", ["%2e%2e/f", "%2E./f", "..%2ff", "..%5Cf", "..\\f"])
def test_a_server_gets_no_hidden_steps(hidden: str) -> None:
    with pytest.raises(StorageError, match="hides"):
        is_below(f"https://h/t/{hidden}", "https://h/t")
    # In other stores this text is part of the file's name.
    assert is_below(f"s3://b/t/{hidden}", "s3://b/t")


def test_empty_folder_names_do_not_stop_a_climb() -> None:
    """An object store counts empty folder names, Hadoop's file system for the store does not."""
    assert not is_below("s3://b/wh/t/a////../../../x", "s3://b/wh/t")
    assert is_below("s3://b/wh/t//data/f", "s3://b/wh/t/")


def test_leading_dots_cannot_climb_over_the_root() -> None:
    assert normalized_location("/../../a") == "file:///a"
    assert normalized_location("s3://b/../../a") == "s3://b/a"


@pytest.mark.parametrize(
    ("location", "expected"),
    [("/", 0), ("//", 0), ("/a/..", 0), ("/a", 1), ("s3://b", 1), ("s3://b/", 1), ("s3://b/.", 1)],
)
def test_depth_of_what_is_near_the_root(location: str, expected: int) -> None:
    assert depth(location) == expected
