"""Nothing outside a table's folders is read or written. faults.md 43, 51."""

from __future__ import annotations

import pytest

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.memory import MemoryFileIO
from iceberg_pyspark.storage.restricted import (
    ALLOW_OUTSIDE_LOCATIONS,
    RestrictedFileIO,
)

BUCKET = RestrictedFileIO(MemoryFileIO(), ("s3://b/wh/t", "s3://b2/data/"), "table db.t")
LOCAL = RestrictedFileIO(MemoryFileIO(), ("file:/wh/t",), "table db.t")


@pytest.mark.parametrize(
    "location",
    [
        "s3://b/wh/t/data/f",
        "s3a://b/wh/t/data/f",
        "s3n://b/wh/t/data/f",
        "S3://b/wh/t/data/f",
        "s3://b/wh/t",
        "s3://b/wh/t/",
        "s3://b/wh/t/x/../f",
        "s3://b/wh/./t/f",
        "s3://b2/data/f",
        "s3://b/wh/t/a..b/...",
    ],
)
def test_inside_is_allowed(location: str) -> None:
    BUCKET.check(location)


@pytest.mark.parametrize(
    "location",
    [
        "s3://b/wh/t2/f",
        "s3://b/wh/t.bak",
        "s3://b/wh/tt",
        "s3://b/wh",
        "s3://b/wh/t/../t2/f",
        "s3://b/wh/t/data/../../../secret",
        "s3://b/wh/t//../../u",
        "s3://B/wh/t/f",
        "s3://b.evil/wh/t/f",
        "s3://b@evil/wh/t/f",
        "s3://other/b/wh/t/f",
        "gs://b/wh/t/f",
        "/wh/t/f",
        "file:/wh/t/f",
        "wh/t/f",
        "http://169.254.169.254/latest",
        "s3://b2/database/f",
    ],
)
def test_outside_is_refused_by_every_method(location: str) -> None:
    for use in (
        BUCKET.check,
        BUCKET.open_input,
        BUCKET.read_bytes,
        BUCKET.size,
        BUCKET.exists,
        BUCKET.open_output,
        BUCKET.delete,
        BUCKET.list_files,
        lambda place: BUCKET.read_range(place, 0, 1),
        lambda place: BUCKET.create_exclusive(place, b""),
        lambda place: BUCKET.write_bytes(place, b""),
    ):
        with pytest.raises(StorageError):
            use(location)


def test_the_message_names_location_table_and_option() -> None:
    with pytest.raises(StorageError) as caught:
        BUCKET.read_bytes("file:///etc/passwd")
    for word in ("file:///etc/passwd", "table db.t", ALLOW_OUTSIDE_LOCATIONS):
        assert word in str(caught.value)


@pytest.mark.parametrize("location", ["/wh/t/f", "file:/wh/t/f", "file:///wh/t/f", "//wh//t/f"])
def test_local_spellings_are_equal(location: str) -> None:
    LOCAL.check(location)


@pytest.mark.parametrize("location", ["/wh/t/../u", "/wh/t2", "file:/etc/passwd", "/wh/%74/f"])
def test_local_outside_is_refused(location: str) -> None:
    with pytest.raises(StorageError, match="refused"):
        LOCAL.check(location)


def test_the_whole_file_system_can_be_allowed() -> None:
    RestrictedFileIO(MemoryFileIO(), ("/",), "t").check("/any/file")
    RestrictedFileIO(MemoryFileIO(), ("s3://b",), "t").check("s3a://b/any/file")
