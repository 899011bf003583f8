"""A purge takes the table's own files, all that any of its snapshots reaches, and no other."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import load_catalog
from iceberg_pyspark.commits.snapshot_changes import AppendFiles
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NoSuchTableError,
    StorageError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.restricted import RestrictedFileIO
from iceberg_pyspark.table.commit_files import CommitOptions, commit_action
from iceberg_pyspark.table.purge_table import PurgedFiles, purge_table
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import IDENTIFIER, CommitTable, commit_table, data_file
from tests.support.hooked_storage import HookedFileIO

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "part": ["a", "b"]})


def a_table(**properties: str) -> CommitTable:
    """Three snapshots, one of which removed all files of another."""
    t = commit_table(partitioned=True, properties=properties)
    users = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
    users.append(ROWS)
    users.delete("part = 'a'")
    users.overwrite(ROWS)
    return t


def own(io: FileIO) -> RestrictedFileIO:
    return RestrictedFileIO(io=io, allowed=("mem://t",), hint="table db.t")


def files(t: CommitTable) -> set[str]:
    return {f.location for f in t.io.list_files("mem://")}


def test_all_files_of_all_snapshots_go() -> None:
    t = a_table()
    before = files(t)
    t.io.write_bytes("mem://other/f", b"another table's")
    t.io.write_bytes("mem://t/data/unknown", b"nobody's")
    done = purge_table(t.catalog, IDENTIFIER, io=own(t.io))
    assert done == PurgedFiles(deleted=len(before), outside=0, failed=0)
    assert files(t) == {"mem://other/f", "mem://t/data/unknown"}
    with pytest.raises(NoSuchTableError):
        t.catalog.load_table(IDENTIFIER)


def test_metadata_files_that_only_older_ones_name_go_too() -> None:
    t = a_table(**{"write.metadata.previous-versions-max": "1"})
    assert len(t.metadata.metadata_log) == 1
    purge_table(t.catalog, IDENTIFIER, io=own(t.io))
    assert not files(t)


def test_a_file_that_came_from_another_table_stays(caplog: pytest.LogCaptureFixture) -> None:
    """As `add_files` and snapshots of tables make them: two tables share a file."""
    t = a_table()
    shared = "mem://other/data/shared.parquet"
    t.io.write_bytes(shared, b"rows")
    action = AppendFiles(data_files=(replace(data_file("x", "a"), file_path=shared),))
    commit_action(t.catalog, t.loaded, t.io, action, CommitOptions(), clock=t.clock.clock)
    done = purge_table(t.catalog, IDENTIFIER, io=own(t.io))
    assert files(t) == {shared}
    assert (done.outside, done.failed) == (1, 0)
    assert "1 outside its own folders stay" in caplog.text


def test_whose_files_may_be_others_is_not_purged() -> None:
    t = a_table(**{"gc.enabled": "False"})
    before = files(t)
    with pytest.raises(InvalidRequestError, match=r"gc\.enabled is false.*without purging"):
        purge_table(t.catalog, IDENTIFIER, io=own(t.io))
    assert files(t) == before
    assert t.catalog.table_exists(IDENTIFIER)


def test_nothing_is_dropped_while_the_files_are_not_known() -> None:
    t = a_table()
    lost = t.manifests()[0].manifest_path
    t.io.delete(lost)
    before = files(t)
    with pytest.raises(StorageError, match=r"was not dropped, because .*without purging"):
        purge_table(t.catalog, IDENTIFIER, io=own(t.io))
    assert files(t) == before
    assert t.catalog.table_exists(IDENTIFIER)


def test_an_encrypted_table_is_not_purged() -> None:
    t = a_table(**{"encryption.key-id": "k"})
    with pytest.raises(UnsupportedFeatureError, match="was not dropped"):
        purge_table(t.catalog, IDENTIFIER)


def test_what_cannot_be_deleted_is_logged_and_the_table_is_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    t = a_table()
    count = len(files(t))

    def hook(operation: str, location: str, moment: str) -> None:
        if operation == "delete":
            with pytest.raises(NoSuchTableError):
                t.catalog.load_table(IDENTIFIER)
            if location.endswith(".parquet"):
                raise StorageError(f"{location}: refused")

    data = {f for f in files(t) if f.endswith(".parquet")}
    with caplog.at_level(logging.WARNING):
        done = purge_table(t.catalog, IDENTIFIER, io=own(HookedFileIO(t.io, hook)))
    assert done == PurgedFiles(deleted=count - len(data), outside=0, failed=len(data))
    assert files(t) == data
    assert f"{len(data)} could not be deleted" in caplog.text


@pytest.mark.parametrize("kind", ["sql", "hadoop"])
def test_a_catalog_drops_with_purge(tmp_path: Path, kind: str) -> None:
    catalog = load_catalog("lake", type=kind, warehouse=str(tmp_path / "warehouse"))
    catalog.create_table("db.a", "id BIGINT", properties={"write.format.default": "parquet"})
    kept = catalog.create_table("db.b", "id BIGINT")
    for name in ("db.a", "db.b"):
        catalog.load_table(name).append(ROWS.select(["id"]))
    folder = Path(catalog.load_table("db.a").location.removeprefix("file:"))
    catalog.drop_table("db.a", purge=True)
    assert not [p for p in folder.rglob("*") if p.suffix in (".json", ".avro", ".parquet")]
    assert catalog.list_tables("db") == ["db.b"]
    assert kept.refresh().scan().count() == 2
    with pytest.raises(NoSuchTableError):
        catalog.drop_table("db.a", purge=True)
