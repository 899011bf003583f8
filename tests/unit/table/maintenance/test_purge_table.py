"""A purge deletes the table's own files that any of its snapshots needs, and no other file."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import load_catalog
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NoSuchTableError,
    StorageError,
)
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.maintenance.removal.purge_table import PurgedFiles, purge_table
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import IDENTIFIER, CommitTable, commit_table, data_file
from tests.support.hooked_storage import HookedFileIO

pytestmark = pytest.mark.usefixtures("each_version")

LOCATION = "mem://wh/t"
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "part": ["a", "b"]})


def a_table(**properties: str) -> CommitTable:
    """Create a table with three snapshots, one of which removed all files of another."""
    t = commit_table(partitioned=True, properties=properties, location=LOCATION)
    users = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
    users.append(ROWS)
    users.delete("part = 'a'")
    users.overwrite(ROWS)
    return t


def files(t: CommitTable) -> set[str]:
    return {f.location for f in t.io.list_files("mem://")}


def test_all_files_of_all_snapshots_go() -> None:
    t = a_table()
    before = files(t)
    t.io.write_bytes("mem://other/f", b"another table's")
    t.io.write_bytes(f"{LOCATION}/data/unknown", b"nobody's")
    done = purge_table(t.catalog, IDENTIFIER, io=t.io)
    assert done == PurgedFiles(deleted=len(before), outside=0, failed=0)
    assert files(t) == {"mem://other/f", f"{LOCATION}/data/unknown"}
    with pytest.raises(NoSuchTableError):
        t.catalog.load_table(IDENTIFIER)


def test_metadata_files_known_only_to_older_ones_are_deleted() -> None:
    t = a_table(**{"write.metadata.previous-versions-max": "1"})
    assert len(t.metadata.metadata_log) == 1
    purge_table(t.catalog, IDENTIFIER, io=t.io)
    assert not files(t)


def test_a_file_that_came_from_another_table_stays(caplog: pytest.LogCaptureFixture) -> None:
    """Two tables share a file, as after `add_files` or a snapshot of a table."""
    t = a_table()
    shared = "mem://other/data/shared.parquet"
    t.io.write_bytes(shared, b"rows")
    action = AppendFiles(data_files=(replace(data_file("x", "a"), file_path=shared),))
    commit_action(t.catalog, t.loaded, t.io, action, CommitOptions(), clock=t.clock.clock)
    done = purge_table(t.catalog, IDENTIFIER, io=t.io)
    assert files(t) == {shared}
    assert (done.outside, done.failed) == (1, 0)
    assert f"1 outside its own folders ({LOCATION}) stay" in caplog.text


def test_purge_without_gc_is_refused() -> None:
    t = a_table(**{"gc.enabled": "False"})
    before = files(t)
    with pytest.raises(InvalidRequestError, match=r"gc\.enabled is false.*without purging"):
        purge_table(t.catalog, IDENTIFIER, io=t.io)
    assert files(t) == before
    assert t.catalog.table_exists(IDENTIFIER)


def test_nothing_is_dropped_while_the_files_are_not_known() -> None:
    t = a_table()
    lost = t.manifests()[0].manifest_path
    t.io.delete(lost)
    before = files(t)
    with pytest.raises(StorageError, match=r"was not dropped, because .*without purging"):
        purge_table(t.catalog, IDENTIFIER, io=t.io)
    assert files(t) == before
    assert t.catalog.table_exists(IDENTIFIER)


def test_purge_logs_files_it_cannot_delete_and_drops_the_table(
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
        done = purge_table(t.catalog, IDENTIFIER, io=HookedFileIO(t.io, hook))
    assert done == PurgedFiles(deleted=count - len(data), outside=0, failed=len(data))
    assert files(t) == data
    assert f"{len(data)} could not be deleted" in caplog.text


@pytest.mark.parametrize("kind", ["sql", "hadoop"])
def test_a_catalog_drops_with_purge(tmp_path: Path, kind: str) -> None:
    catalog = load_catalog("lake", type=kind, warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("db", if_not_exists=True)
    catalog.create_table("db.a", "id BIGINT", properties={"write.format.default": "parquet"})
    other = catalog.create_table("db.b", "id BIGINT")
    for name in ("db.a", "db.b"):
        catalog.load_table(name).append(ROWS.select(["id"]))
    folder = Path(catalog.load_table("db.a").location.removeprefix("file:"))
    catalog.drop_table("db.a", purge=True)
    assert not [p for p in folder.rglob("*") if p.suffix in (".json", ".avro", ".parquet")]
    assert catalog.list_tables("db") == ["db.b"]
    assert other.refresh().scan().count() == 2
    with pytest.raises(NoSuchTableError):
        catalog.drop_table("db.a", purge=True)


# metadata by another writer


def victim(tmp_path: Path) -> Table:
    """Create another table in the same warehouse, with a folder deep enough for deletions."""
    catalog = load_catalog("lake", type="sql", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.victim", "id BIGINT")
    table.append(ROWS.select(["id"]))
    table.append(ROWS.select(["id"]))
    return table


def changed(table: Table, **content: object) -> None:
    """Change content of the table's current metadata file."""
    file = Path(table.loaded.metadata_location)
    file.write_text(json.dumps({**json.loads(file.read_text()), **content}))


def every_file(folder: Path) -> set[Path]:
    return {p for p in folder.rglob("*") if p.is_file()}


def files_of(outside: Path, other: Table) -> set[Path]:
    return every_file(outside) | every_file(Path(other.location.removeprefix("file:")))


@pytest.mark.parametrize(
    ("how", "claim"),
    [("sql", "/"), ("sql", "{victim}"), ("sql", "x"), ("path", "/"), ("path", "{warehouse}")],
)
def test_a_location_that_metadata_claims_is_not_believed(
    tmp_path: Path, how: str, claim: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The metadata names files of other tables; only the table's own files are deleted."""
    other = victim(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "letter.txt").write_text("dear all")
    warehouse = tmp_path / "warehouse"
    catalog = load_catalog("lake", type="sql", warehouse=str(warehouse))
    name = "db.evil" if how == "sql" else str(tmp_path / "elsewhere/evil")
    table = catalog.create_table(name, "id BIGINT")
    table.append(ROWS.select(["id"]))
    own = Path(table.location.removeprefix("file:"))
    foreign = files_of(outside, other)
    action = AppendFiles(
        data_files=tuple(
            DataFile(file_path=str(f), record_count=1, file_size_in_bytes=1) for f in foreign
        )
    )
    commit_action(table.catalog, table.loaded, table.io, action, CommitOptions())
    table.refresh()
    entry = {"timestamp-ms": 0, "metadata-file": other.loaded.metadata_location}
    changed(
        table,
        **{
            "location": claim.format(warehouse=warehouse, victim=other.location),
            "metadata-log": [entry],
            "properties": {"write.data.path": str(outside), "write.metadata.path": str(outside)},
        },
    )
    # The first catalog holds the original metadata in memory.
    load_catalog("lake", type="sql", warehouse=str(warehouse)).drop_table(name, purge=True)
    assert files_of(outside, other) == foreign
    assert other.refresh().scan().count() == 4
    # The metadata log names one more file.
    assert f"{len(foreign) + 1} outside its own folders ({own})" in caplog.text
    assert not [p for p in every_file(own) if p.suffix == ".parquet"]


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    other = victim(tmp_path)
    data = Path(other.location.removeprefix("file:")) / "data"
    catalog = load_catalog("lake", type="sql", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.evil", "id BIGINT")
    link = Path(table.location.removeprefix("file:")) / "data"
    link.symlink_to(data)
    names = [p.name for p in data.iterdir()]
    action = AppendFiles(
        data_files=tuple(
            DataFile(file_path=f"{link}/{n}", record_count=1, file_size_in_bytes=1) for n in names
        )
    )
    commit_action(table.catalog, table.loaded, table.io, action, CommitOptions())
    catalog.drop_table("db.evil", purge=True)
    assert other.refresh().scan().count() == 4
