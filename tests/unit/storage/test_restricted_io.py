"""No file outside the table's store is read, and none outside its folders is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from iceberg_pyspark.errors import InvalidRequestError, StorageError
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.storage.own_folders import OwnFolders
from iceberg_pyspark.storage.restricted_io import ReadRule, RestrictedFileIO, read_rule
from iceberg_pyspark.storage.store_properties import ALLOW_OUTSIDE_LOCATIONS, RESTRICT_LOCATIONS

BUCKET = RestrictedFileIO(
    io=MemoryFileIO(),
    known_location="s3://b/wh/t/metadata/v1.metadata.json",
    folders=("s3://b/wh/t", "s3://b/data/", "s3://b2/data", "/local"),
    hint="table db.t",
    own=OwnFolders(("s3://b/wh/t",)),
)
LOCAL = replace(
    BUCKET, known_location="file:/wh/t/metadata/v1.metadata.json", folders=("file:/wh/t",)
)


def read(io: RestrictedFileIO) -> list[Callable[[str], object]]:
    return [
        io.check_read,
        io.open_input,
        io.read_bytes,
        io.size,
        io.exists,
        io.list_files,
        lambda place: io.read_range(place, 0, 1),
    ]


def write(io: RestrictedFileIO) -> list[Callable[[str], object]]:
    return [
        io.check_write,
        io.open_output,
        lambda place: io.create_exclusive(place, b""),
        lambda place: io.write_bytes(place, b""),
    ]


def with_rule(rule: ReadRule) -> RestrictedFileIO:
    return replace(BUCKET, rule=rule)


INSIDE = [
    "s3://b/wh/t/data/f",
    "s3a://b/wh/t/data/f",
    "s3n://b/wh/t/data/f",
    "S3://b/wh/t/data/f",
    "s3://b/wh/t",
    "s3://b/wh/t/",
    "s3://b/wh/t//f",
    "s3://b/wh/t/x/../f",
    "s3://b/wh/./t/f",
    "s3://b/data/f",
    "s3://b/wh/t/a..b/...",
    "s3://b/wh/t/%2e%2e/f",
]
BESIDE = [
    "s3://b/wh/t2/f",
    "s3://b/wh/t.bak",
    "s3://b/wh/tt",
    "s3://b/wh",
    "s3://b",
    "s3a://b/wh/t/../t2/f",
    "s3://b/wh/t/data/../../../secret",
    "s3://b/wh/t//../../u",
    "s3://b/wh/t/a////../../../u",
    "s3://b/database/f",
]
ELSEWHERE = [
    "s3://B/wh/t/f",
    "s3://b.evil/wh/t/f",
    "s3://b@evil/wh/t/f",
    "s3://b\\@evil/wh/t/f",
    "s3://b2/data/f",
    "s3://other/b/wh/t/f",
    "gs://b/wh/t/f",
    "memory://b/wh/t/f",
    "/wh/t/f",
    "/local/f",
    "file:/wh/t/f",
    "file://host/wh/t/f",
    "wh/t/f",
    "s3:/b/wh/t/f",
    "http://169.254.169.254/latest",
    "",
]


@pytest.mark.parametrize("location", INSIDE)
@pytest.mark.parametrize("rule", ReadRule)
def test_location_inside_the_folders_is_read_and_written(location: str, rule: ReadRule) -> None:
    with_rule(rule).check_read(location)
    with_rule(rule).check_write(location)


@pytest.mark.parametrize("location", BESIDE)
def test_location_beside_the_table_is_read_and_not_written(location: str) -> None:
    """Such files were added by `add_files` or come from snapshots of other tables."""
    BUCKET.check_read(location)
    for use in [*read(with_rule(ReadRule.OWN_FOLDERS)), *write(BUCKET)]:
        with pytest.raises(StorageError, match="refused"):
            use(location)


@pytest.mark.parametrize("location", ELSEWHERE)
@pytest.mark.parametrize("rule", [ReadRule.OWN_STORE, ReadRule.OWN_FOLDERS])
def test_another_store_is_refused_by_every_method(location: str, rule: ReadRule) -> None:
    """The same holds if the metadata declares the folder as the table's own."""
    for use in [*read(with_rule(rule)), *write(with_rule(rule))]:
        with pytest.raises(StorageError):
            use(location)


@pytest.mark.parametrize("location", ["s3://b2/data/f", "gs://b/f", "/etc/f", "https://h/f"])
def test_user_can_allow_reads_of_every_store(location: str) -> None:
    with_rule(ReadRule.ANY_STORE).check_read(location)


def test_written_is_what_metadata_calls_the_tables_own_also_then() -> None:
    anywhere = with_rule(ReadRule.ANY_STORE)
    for location in ("s3://b2/data/f", "/local/f"):
        anywhere.check_write(location)
    for location in BESIDE:
        with pytest.raises(StorageError, match="may only write"):
            anywhere.check_write(location)


@pytest.mark.parametrize("rule", ReadRule)
def test_deleted_is_what_the_catalog_calls_the_tables_own(rule: ReadRule) -> None:
    io = with_rule(rule)
    io.delete("s3a://b/wh/t/data/f")
    for location in ("s3://b/data/f", *BESIDE, *ELSEWHERE):
        with pytest.raises(StorageError, match=r"outside of the folder of table db\.t"):
            io.delete(location)
    with pytest.raises(StorageError, match="none that its catalog knows"):
        replace(io, own=OwnFolders()).delete("s3://b/wh/t/data/f")


def test_the_message_names_location_table_rule_and_options() -> None:
    for use, rule, place in (
        (BUCKET.read_bytes, "its own store, s3://b ", "file:///etc/passwd"),
        (with_rule(ReadRule.OWN_FOLDERS).size, "under s3://b/wh/t, s3://b/data/;", "s3://b/x"),
        (BUCKET.open_output, "write files under s3://b/wh/t, s3://b/data/;", "s3://b/x"),
    ):
        with pytest.raises(StorageError) as caught:
            use(place)
        words = (place, "table db.t", rule, ALLOW_OUTSIDE_LOCATIONS, RESTRICT_LOCATIONS)
        assert [w for w in words if w not in str(caught.value)] == []


@pytest.mark.parametrize("location", ["/wh/t/f", "file:/wh/t/f", "file:///wh/t/f", "//wh//t/f"])
def test_local_spellings_are_equal(location: str) -> None:
    replace(LOCAL, rule=ReadRule.OWN_FOLDERS).check_read(location)
    LOCAL.check_write(location)


@pytest.mark.parametrize("location", ["/wh/t/../u", "/wh/t2", "file:/etc/passwd", "/wh/%74/f"])
def test_local_tables_read_local_files(location: str) -> None:
    LOCAL.check_read(location)
    for refused in (LOCAL.check_write, replace(LOCAL, rule=ReadRule.OWN_FOLDERS).check_read):
        with pytest.raises(StorageError, match="refused"):
            refused(location)


@pytest.mark.parametrize("location", ["s3://b/f", "file://host/f", "f", "hdfs:///wh/t/f"])
@pytest.mark.parametrize("table_location", ["/wh/t/metadata/f", "file:/wh/t/f", "file:///wh/t/f"])
def test_local_table_cannot_read_another_location(location: str, table_location: str) -> None:
    with pytest.raises(StorageError):
        replace(LOCAL, known_location=table_location).check_read(location)


def test_malformed_own_folder_does_not_affect_reads() -> None:
    replace(BUCKET, folders=("x",)).check_read("s3://b/wh/t/f")


def test_the_rule_is_what_the_user_asked_for() -> None:
    assert read_rule({}) is ReadRule.OWN_STORE
    assert read_rule({ALLOW_OUTSIDE_LOCATIONS: "true"}) is ReadRule.ANY_STORE
    assert read_rule({RESTRICT_LOCATIONS: "true"}) is ReadRule.OWN_FOLDERS
    both = {RESTRICT_LOCATIONS: "true", ALLOW_OUTSIDE_LOCATIONS: "true"}
    assert read_rule({**both, RESTRICT_LOCATIONS: "false"}) is ReadRule.ANY_STORE
    with pytest.raises(InvalidRequestError, match="both true"):
        read_rule(both)
    with pytest.raises(InvalidRequestError, match="neither true nor false"):
        read_rule({RESTRICT_LOCATIONS: "1"})


def test_the_whole_file_system_can_be_the_folder() -> None:
    replace(LOCAL, folders=("/",), rule=ReadRule.OWN_FOLDERS).check_read("/any/file")
    replace(BUCKET, folders=("s3://b",)).check_write("s3a://b/any/file")
