"""Damaged, hostile and future tables: one clear error names the file, and nothing changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructType

from iceberg_pyspark import Table
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.snapshot_changes import RowDelta
from iceberg_pyspark.errors import IcebergError, InvalidMetadataError, StorageError
from iceberg_pyspark.formats import manifest_lists
from iceberg_pyspark.formats.encoding.decoded_files import DecodedCache
from iceberg_pyspark.formats.puffin.deletion_vectors import write_deletion_vectors
from iceberg_pyspark.spark.data_source.write_job import prepare_write
from iceberg_pyspark.spark.data_source.writer import IcebergWriter, TaskFiles
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.table.commits.commit_files import commit_action
from tests.support.data_source_steps import read_by_steps
from tests.support.file_commits import commit_overwrite
from tests.support.frames import append_rows, create_path_table, load, path_table, refusal, save
from tests.support.read_paths import ReadPath
from tests.support.spark_settings import configured

IDS = StructType().add("id", LongType())
_IGNORE = {
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
}
"""Settings with which Spark leaves out files of its own tables, but never a table's files."""


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Create a table with three rows in one data file; a deletion vector deletes the middle row."""
    new_table = create_path_table(
        tmp_path / "t",
        "id BIGINT",
        [{"id": i} for i in range(3)],
        properties={"format-version": "3"},
    )
    (task,) = new_table.scan().plan_files()
    location = f"{new_table.location}/data/deletes.puffin"
    blob = write_deletion_vectors(new_table.io, location, {task.file_path: [1]})[task.file_path]
    vector = DataFile(
        content=FileContent.POSITION_DELETES,
        file_path=location,
        file_format="puffin",
        record_count=1,
        file_size_in_bytes=new_table.io.size(location),
        referenced_data_file=task.file_path,
        content_offset=blob.content_offset,
        content_size_in_bytes=blob.content_size_in_bytes,
    )
    checks = ConflictChecks(base_snapshot_id=new_table.metadata.current_snapshot_id)
    commit_action(
        new_table.catalog,
        new_table.loaded,
        new_table.io,
        RowDelta(delete_files=(vector,), checks=checks),
    )
    return path_table(tmp_path / "t")


def only(table: Table, pattern: str) -> Path:
    (file,) = Path(table.location).glob(pattern)
    return file


def metadata_file(table: Table) -> Path:
    return Path(table.loaded.metadata_location)


def manifest_list(table: Table) -> Path:
    snapshot = table.current_snapshot
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    return Path(snapshot.manifest_list)


def manifest(table: Table) -> Path:
    """Return the first manifest of data files; writers number manifests from 0."""
    return min(Path(table.location).glob("metadata/*-m0.avro"), key=lambda f: f.stat().st_mtime_ns)


def data_file(table: Table) -> Path:
    return only(table, "data/*.parquet")


def vector_file(table: Table) -> Path:
    return only(table, "data/deletes.puffin")


def cut(file: Path) -> None:
    """Truncate a file to its first 20 bytes."""
    file.write_bytes(file.read_bytes()[:20])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def remove(file: Path) -> None:
    file.unlink()


def flip_in_the_middle(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)


def flip_in_the_vector(file: Path) -> None:
    """Flip one bit of the bitmap, which a checksum protects."""
    data = bytearray(file.read_bytes())
    data[4 + 4 + 4 + 10] ^= 1
    file.write_bytes(data)


def test_the_undamaged_table_has_two_rows(table: Table) -> None:
    assert read_by_steps(table.location).rows == [(0,), (2,)]


@pytest.mark.parametrize("damage", [cut, empty, remove])
@pytest.mark.parametrize("part", [manifest_list, manifest, data_file, vector_file])
def test_a_file_that_is_short_or_gone_is_named(
    table: Table, part: Callable[[Table], Path], damage: Callable[[Path], None]
) -> None:
    file = part(table)
    damage(file)
    with pytest.raises((InvalidMetadataError, StorageError), match=file.name):
        read_by_steps(table.location)


@pytest.mark.parametrize("damage", [cut, empty])
def test_a_metadata_file_that_is_short_is_named(
    table: Table, damage: Callable[[Path], None]
) -> None:
    file = metadata_file(table)
    damage(file)
    with pytest.raises(InvalidMetadataError, match=file.name):
        read_by_steps(table.location)


def test_a_vector_with_a_wrong_bit_is_refused(table: Table) -> None:
    flip_in_the_vector(vector_file(table))
    with pytest.raises(InvalidMetadataError, match=r"deletes\.puffin.*(checksum|CRC)"):
        read_by_steps(table.location)


@pytest.mark.nightly
@pytest.mark.parametrize("part", [manifest_list, manifest, data_file])
def test_a_wrong_byte_is_an_error_of_ours_or_harmless(
    table: Table, part: Callable[[Table], Path]
) -> None:
    file = part(table)
    flip_in_the_middle(file)
    try:
        rows: object = read_by_steps(table.location).rows
    except IcebergError as e:
        rows = file.name in str(e)
    assert rows in (True, [(0,), (2,)])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format-version", 5, "format-version 5 is not supported"),
        ("format-version", "2", "format-version"),
        ("current-schema-id", 77, "current-schema-id"),
        ("default-spec-id", 77, "default-spec-id"),
        ("location", None, "location"),
        ("snapshots", {}, "snapshots"),
    ],
)
def test_metadata_that_breaks_the_specification_is_refused(
    table: Table, key: str, value: object, message: str
) -> None:
    file = metadata_file(table)
    content = json.loads(file.read_text())
    content[key] = value
    file.write_text(json.dumps(content))
    with pytest.raises(IcebergError, match=message) as caught:
        read_by_steps(table.location)
    assert file.name in str(caught.value)


@pytest.mark.parametrize("part", [metadata_file, manifest_list])
def test_an_append_to_a_damaged_table_changes_nothing(
    table: Table, part: Callable[[Table], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Empty the cache, as in a process that has not written the manifest list itself.
    monkeypatch.setattr(manifest_lists, "_WRITTEN_LISTS", DecodedCache(2**20, len))
    cut(part(table))
    files = {f: f.read_bytes() for f in Path(table.location).rglob("*") if f.is_file()}
    options = {"path": table.location}
    with pytest.raises(InvalidMetadataError, match=part(table).name):
        IcebergWriter(prepare_write(options, IDS, overwrite=False)).commit([TaskFiles(())])
    assert {f: f.read_bytes() for f in Path(table.location).rglob("*") if f.is_file()} == files


def test_an_append_after_damage_to_a_list_of_this_process_writes_it_whole(table: Table) -> None:
    """The commit takes the list from its process's memory, so the next list is complete."""
    cut(manifest_list(table))
    options = {"path": table.location}
    IcebergWriter(prepare_write(options, IDS, overwrite=False)).commit([TaskFiles(())])
    assert read_by_steps(table.location).rows == [(0,), (2,)]


def test_a_write_does_not_begin_on_counters_that_lag(table: Table) -> None:
    data = json.loads(metadata_file(table).read_text())
    metadata_file(table).write_text(json.dumps({**data, "last-sequence-number": 1}))
    assert read_by_steps(table.location).rows == [(0,), (2,)]
    with pytest.raises(InvalidMetadataError, match="last-sequence-number is 1, but snapshot"):
        prepare_write({"path": table.location}, IDS, overwrite=False)


# Errors as a user of Spark sees them.


def file_refusal(frame: DataFrame, read_path: ReadPath) -> tuple[str | None, str]:
    """Return class (natively None) and message of the error for a damaged data file."""
    if read_path == "portable":
        return refusal(frame.collect)
    with (
        configured(frame.sparkSession, _IGNORE),
        pytest.raises(Py4JJavaError, match="FAILED_READ_FILE") as caught,
    ):
        frame.collect()
    return None, str(caught.value)


def test_users_see_our_message_for_damage_on_driver_and_executor(
    spark: SparkSession, read_path: ReadPath, table: Table
) -> None:
    file = data_file(table)
    whole = file.read_bytes()
    cut(file)
    error, text = file_refusal(load(spark, table.location), read_path)
    assert error in ("StorageError", "InvalidMetadataError", None)
    assert file.name in text
    file.write_bytes(whole)
    assert load(spark, table.location).count() == 2

    flip_in_the_vector(vector_file(table))
    assert "deletes.puffin" in refusal(load(spark, table.location).collect)[1]

    damaged = manifest(table)
    cut(damaged)
    error, text = refusal(load(spark, table.location).collect)
    assert error == "InvalidMetadataError"
    assert damaged.name in text
    assert text.startswith(f"table {table.location}: ")
    assert text.endswith("an older snapshot may still be read by its id")

    content = json.loads(metadata_file(table).read_text())
    metadata_file(table).write_text(json.dumps({**content, "format-version": 5}))
    error, text = refusal(lambda: load(spark, table.location))
    assert "format-version 5 is not supported" in text
    before = sorted(Path(table.location).rglob("*"))
    # Where the bridge writes, Spark raises its own exception class with our message.
    with pytest.raises(PySparkException, match="format-version 5 is not supp"):
        save(spark.range(1), table.location)
    assert sorted(Path(table.location).rglob("*")) == before


@pytest.mark.nightly
def test_a_table_keeps_working_after_a_read_failed(
    spark: SparkSession, read_path: ReadPath, tmp_path: Path
) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT", [{"id": 1}])
    append_rows(table, [{"id": 2}])
    one, two = sorted(Path(table.location).glob("data/*.parquet"))
    hidden = one.rename(one.with_suffix(".hidden"))
    frame = load(spark, table.location)
    assert one.name in file_refusal(frame, read_path)[1]
    hidden.rename(one)
    assert sorted(frame.collect()) == [(1,), (2,)]
    assert two.exists()


@pytest.mark.nightly
@pytest.mark.parametrize("size", [-1, 10, 20, 2**62])
def test_wrong_file_size_hides_no_row(
    spark: SparkSession, read_path: ReadPath, tmp_path: Path, size: int
) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT", [{"id": i} for i in range(3)])
    [task] = table.scan().plan_files()
    wrong = DataFile(
        file_path=task.file_path, record_count=3, file_size_in_bytes=size, split_offsets=(4,)
    )
    commit_overwrite(table.catalog, table.loaded, table.io, [wrong], "static")
    assert sorted(row.id for row in load(spark, tmp_path / "t").collect()) == [0, 1, 2]


@pytest.mark.parametrize("count", [-1, 0, 1, 2**62])
def test_wrong_row_count_hides_no_row(
    spark: SparkSession, read_path: ReadPath, tmp_path: Path, count: int
) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT", [{"id": i} for i in range(300)])
    [task] = table.scan().plan_files()
    wrong = DataFile(
        file_path=task.file_path,
        record_count=count,
        file_size_in_bytes=task.file_size_in_bytes,
        split_offsets=(4,),
    )
    commit_overwrite(table.catalog, table.loaded, table.io, [wrong], "static")
    assert sorted(r.id for r in load(spark, tmp_path / "t").collect()) == list(range(300))
