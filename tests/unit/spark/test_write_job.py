"""A write job without Spark: checked, written task by task, committed or aborted."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from iceberg_pyspark import load_catalog
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.catalogs.hadoop import path_tables
from iceberg_pyspark.changes.outcomes import Refused, Unknown
from iceberg_pyspark.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    ConcurrentChangeError,
    InvalidRequestError,
    NoSuchSnapshotError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spark.data_source.pinned_table import PreparedWrite
from iceberg_pyspark.spark.data_source.table_access import open_table
from iceberg_pyspark.spark.data_source.write_job import prepare_write
from iceberg_pyspark.spark.data_source.writer import IcebergWriter, TaskFiles
from tests.support.encrypted_tables import files_with, key_properties

FRAME = StructType().add("id", "long").add("name", "string")


def prepared(
    table: Path, options: Mapping[str, str] | None = None, *, overwrite: bool = False
) -> PreparedWrite:
    """Return the job as the driver sends it to the tasks."""
    all_options = {"path": str(table), **(options or {})}
    job = prepare_write(all_options, FRAME, overwrite=overwrite)
    return pickle.loads(pickle.dumps(job))  # type: ignore[no-any-return]


def task(job: PreparedWrite, *ids: int, task_id: int = 0) -> TaskFiles:
    """Write rows as one task of the job."""
    names = pa.array([f"n{i}" for i in ids], pa.string())
    batch = pa.record_batch({"id": pa.array(ids, pa.int64()), "name": names})
    files = write_data_files(job.context, [batch], job.io, partition_id=0, task_id=task_id)
    return TaskFiles(tuple(files))


def append(table: Path, *ids: int, options: Mapping[str, str] | None = None) -> None:
    """Run a whole write job."""
    job = prepared(table, options)
    IcebergWriter(job).commit([task(job, *ids)])


def ids_of(table: Path) -> list[int]:
    ids: list[int] = open_table(str(table), {}).scan().to_arrow().column("id").to_pylist()
    return sorted(ids)


def data_files(table: Path) -> list[Path]:
    return sorted(table.rglob("*.parquet"))


def test_tasks_write_and_the_commit_makes_the_table(tmp_path: Path) -> None:
    table = tmp_path / "t"
    job = prepared(table)
    messages = [task(job, 1, 2, task_id=0), task(job, 3, task_id=1)]
    with pytest.raises(NoSuchTableError):
        open_table(str(table), {})
    IcebergWriter(job).commit(messages)
    assert ids_of(table) == [1, 2, 3]


def test_two_first_writers_of_the_same_layout_both_land(tmp_path: Path) -> None:
    table = tmp_path / "t"
    one, two = prepared(table), prepared(table)
    written = [task(one, 1)], [task(two, 2)]
    IcebergWriter(one).commit(written[0])
    IcebergWriter(two).commit(written[1])
    assert ids_of(table) == [1, 2]


def test_a_first_writer_of_another_layout_is_refused_and_cleaned_up(tmp_path: Path) -> None:
    table = tmp_path / "t"
    one, two = prepared(table), prepared(table, {"partitioned-by": "bucket(2, id)"})
    written = [task(one, 1)], [task(two, 2)]
    IcebergWriter(one).commit(written[0])
    with pytest.raises(ConcurrentChangeError, match="created by another writer"):
        IcebergWriter(two).commit(written[1])
    assert ids_of(table) == [1]
    assert len(data_files(table)) == 1


def test_a_table_dropped_and_made_again_is_not_written_to(tmp_path: Path) -> None:
    table = tmp_path / "t"
    append(table, 1)
    job = prepared(table)
    shutil.rmtree(table)
    append(table, 2)
    with pytest.raises(ConcurrentChangeError, match="created again"):
        IcebergWriter(job).commit([task(job, 3)])
    assert ids_of(table) == [2]
    assert len(data_files(table)) == 1


def test_write_to_a_dropped_table_is_refused_and_cleaned_up(tmp_path: Path) -> None:
    table = tmp_path / "t"
    append(table, 1)
    job = prepared(table)
    shutil.rmtree(table)
    with pytest.raises(NoSuchTableError):
        IcebergWriter(job).commit([task(job, 3)])
    assert data_files(table) == []


def test_a_writer_that_is_overtaken_each_time_gives_up_and_cleans_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "t"
    append(table, 1, options={"table-property.commit.retry.num-retries": "1"})
    job = prepared(table)
    messages = [task(job, 2)]
    tries = []

    def overtaken(*_: object) -> Refused:
        tries.append(1)
        return Refused(CommitConflictError("the metadata moved"))

    with monkeypatch.context() as patch:
        patch.setattr(path_tables, "commit_next_version", overtaken)
        with pytest.raises(CommitConflictError, match="gave up after 2 attempts"):
            IcebergWriter(job).commit(messages)
    assert len(tries) == 2
    assert ids_of(table) == [1]
    assert len(data_files(table)) == 1
    assert len(list(table.glob("metadata/*.avro"))) == 2


def test_appends_that_meet_both_land(tmp_path: Path) -> None:
    table = tmp_path / "t"
    append(table, 1)
    one, two = prepared(table), prepared(table, {"overwrite-mode": "dynamic"})
    written = [task(one, 2)], [task(two, 3)]
    IcebergWriter(two).commit(written[1])
    IcebergWriter(one).commit(written[0])
    assert ids_of(table) == [1, 2, 3]


def test_an_unknown_outcome_keeps_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "t"
    append(table, 1, options={"table-property.commit.status-check.num-retries": "0"})
    job = prepared(table)
    messages = [task(job, 2)]

    def unknown(*_: object) -> Unknown:
        return Unknown(CommitStateUnknownError("the reply was lost"))

    monkeypatch.setattr(path_tables, "commit_next_version", unknown)
    with pytest.raises(CommitStateUnknownError):
        IcebergWriter(job).commit(messages)
    # Spark aborts after a failed commit too, with all messages.
    IcebergWriter(job).abort(messages)
    assert len(data_files(table)) == 2


def test_an_abort_before_the_commit_removes_what_the_other_tasks_wrote(tmp_path: Path) -> None:
    job = prepared(tmp_path / "t")
    IcebergWriter(job).abort([task(job, 1), None])
    assert data_files(tmp_path) == []


def test_a_job_without_rows_makes_the_table(tmp_path: Path) -> None:
    job = prepared(tmp_path / "t")
    IcebergWriter(job).commit([TaskFiles(())])
    assert ids_of(tmp_path / "t") == []


@pytest.mark.parametrize(
    ("overwrite", "options", "message"),
    [
        (False, {"format-version": "3"}, "has format version 2, not 3"),
        (False, {"partitioned-by": "id"}, "partitioned by nothing, not by id"),
        (False, {"branch": "b"}, "has no branch or tag 'b'"),
        (False, {"write-format": "csv"}, "none of parquet, orc, avro"),
        (True, {"overwrite-filter": "nam = 'a'"}, "nam"),
        (True, {"overwrite-filter": "name = "}, "cannot be parsed"),
    ],
)
def test_write_that_the_table_cannot_take_is_refused_before_any_row(
    tmp_path: Path, overwrite: bool, options: dict[str, str], message: str
) -> None:
    append(tmp_path / "t", 1)
    refusals = (InvalidRequestError, NoSuchSnapshotError, UnsupportedFeatureError)
    with pytest.raises(refusals, match=message):
        prepared(tmp_path / "t", options, overwrite=overwrite)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format-version": "4"}, "file-system-tables.enabled to true"),
        ({"format-version": "5"}, "format version 5: 1 to 4 are"),
        ({"table-property.write.metadata.path": "/elsewhere"}, "'write.metadata.path' cannot"),
        ({"location": "/elsewhere"}, "its location cannot be /elsewhere"),
    ],
)
def test_option_that_no_new_table_can_have_is_refused_before_any_row(
    tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises((InvalidRequestError, UnsupportedFeatureError), match=message):
        prepared(tmp_path / "t", options)
    assert not (tmp_path / "t").exists()


def test_options_of_a_new_table_may_be_given_again(tmp_path: Path) -> None:
    options = {"format-version": "3", "partitioned-by": "bucket(4, id)"}
    for i in (1, 2):
        job = prepared(tmp_path / "t", options)
        IcebergWriter(job).commit([task(job, i)])
    assert ids_of(tmp_path / "t") == [1, 2]


def sql_options(tmp_path: Path, **more: str) -> dict[str, str]:
    return {
        "path": "db.t",
        "catalog": "lake",
        "catalog.uri": f"sqlite:///{tmp_path}/catalog.db",
        "catalog.warehouse": str(tmp_path / "warehouse"),
        **more,
    }


def prepared_sql(options: dict[str, str]) -> PreparedWrite:
    return prepare_write(options, FRAME, overwrite=False)


def test_a_new_table_takes_the_defaults_and_overrides_of_its_catalog(tmp_path: Path) -> None:
    options = sql_options(
        tmp_path,
        **{
            "catalog.table-default.a": "default",
            "catalog.table-default.b": "default",
            "catalog.table-override.c": "override",
            "table-property.b": "mine",
            "table-property.c": "mine",
        },
    )
    new = prepared_sql(options).new_table
    assert new is not None
    assert {k: new.properties[k] for k in "abc"} == {"a": "default", "b": "mine", "c": "override"}


def test_files_of_a_new_table_are_written_with_the_credentials_of_its_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage_properties: dict[str, str] = {}

    def watch(location: str, properties: dict[str, str]) -> object:
        storage_properties.update(properties)
        return None

    monkeypatch.setattr("iceberg_pyspark.table.table_storage.open_storage", watch)
    prepared_sql(sql_options(tmp_path, **{"catalog.s3.endpoint": "e", "s3.region": "r"}))
    assert (storage_properties["s3.endpoint"], storage_properties["s3.region"]) == ("e", "r")


def test_writer_of_tasks_has_no_catalog_and_cannot_commit(tmp_path: Path) -> None:
    writer = IcebergWriter(prepared(tmp_path / "t"))
    for_tasks, for_commit = (pickle.loads(pickle.dumps(writer)) for _ in range(2))
    with pytest.raises(UnsupportedFeatureError, match="nothing was committed"):
        for_tasks.commit([task(for_tasks._prepared, 1)])
    for_commit.commit([task(for_tasks._prepared, 1, task_id=1)])
    assert ids_of(tmp_path / "t") == [1]


@pytest.mark.parametrize("exists", [True, False])
def test_the_commit_asks_for_the_keys_of_an_encrypted_table(tmp_path: Path, exists: bool) -> None:
    """Tasks get no access to the key management, but the first commit needs a new key."""
    table = tmp_path / "t"
    keys = key_properties(tmp_path)
    new = {"table-property.format-version": "3", "table-property.encryption.key-id": "keyA"}
    if exists:
        properties = {k.removeprefix("table-property."): v for k, v in new.items()}
        catalog = load_catalog("c", type="hadoop", warehouse=str(tmp_path), **keys)
        catalog.create_table("t", "id BIGINT, name STRING", properties=properties)
    for number in (1, 2):
        append(table, number, options={**keys, **({} if exists else new)})
    rows = open_table(str(table), keys).scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == [1, 2]
    assert files_with(table, ["PAR1", "Obj\x01", "iceberg.schema"]) == []
