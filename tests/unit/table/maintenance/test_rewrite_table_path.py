"""A table copied by the file list has the same rows and does not need the original."""

from __future__ import annotations

import csv
import json
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pytest

from iceberg_pyspark import Table, TableCatalog, load_catalog
from iceberg_pyspark.errors import (
    FileAlreadyExistsError,
    InvalidRequestError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.puffin.puffin import read_puffin_footer
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from tests.support.deleted_rows import delete_keys, delete_positions, list_positions
from tests.support.hooked_storage import HookedFileIO
from tests.support.table_integrity import table_problems

LINEAGE = ("_row_id", "_last_updated_sequence_number")
IN_LEAVES: Mapping[str, str] = {
    "write.root.max-data-entries": "0",
    "write.root.max-delete-entries": "0",
}
VERSIONS = pytest.mark.parametrize(
    ("version", "properties"), [(1, {}), (2, {}), (3, {}), (4, {}), (4, IN_LEAVES)]
)


@pytest.fixture
def catalog(tmp_path: Path) -> TableCatalog:
    result = load_catalog(
        "local", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh")
    )
    result.create_namespace("db")
    return result


def append(table: Table, *ids: int) -> None:
    table.append(pa.table({"id": pa.array(ids, pa.int64()), "v": [f"v{i}" for i in ids]}))


def paths_of(table: Table) -> list[str]:
    tasks = table.scan().plan_files()
    return [t.file_path for t in sorted(tasks, key=lambda t: t.data_sequence_number)]


def a_table(catalog: TableCatalog, version: int, **properties: str) -> Table:
    """Create a table of six rows in two files; each available kind of delete deletes one row."""
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table(
        "db.t",
        schema="id BIGINT, v STRING",
        properties={"format-version": str(version), **properties},
    )
    append(table, 1, 2, 3)
    append(table, 4, 5, 6)
    if version > 1:
        delete(table, version, 0, 0)
        delete_keys(table, "id", [5])
    return table


def delete(table: Table, version: int, file: int, position: int) -> None:
    path = paths_of(table)[file]
    if version > 2:
        delete_positions(table, {path: [position]})
    else:
        list_positions(table, pa.table({"file_path": [path], "pos": [position]}), {})


def rows(table: Table, version: int) -> list[dict[str, Any]]:
    columns = ("id", "v", *(LINEAGE if version > 2 else ()))
    result: list[dict[str, Any]] = table.scan(columns=list(columns)).to_arrow().to_pylist()
    return sorted(result, key=lambda row: row["id"])


def rewrite(table: Table, target: Path, **more: Any) -> Any:
    return table.maintenance().rewrite_table_path(
        source_prefix=table.location, target_prefix=str(target), **more
    )


def copies_of(done: Any) -> list[tuple[str, str]]:
    with local(done.file_list_location).open(newline="") as lines:
        return [(source, target) for source, target in csv.reader(lines)]


def local(location: str) -> Path:
    return Path(location.removeprefix("file:"))


def carry_out(done: Any) -> list[str]:
    """Copy the files as the list says, and return the targets."""
    for source, target in copies_of(done):
        local(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(local(source), local(target))
    return [target for _, target in copies_of(done)]


def registered(catalog: TableCatalog, name: str, target: Path, done: Any) -> Table:
    return catalog.register_table(name, f"{target}/metadata/{done.latest_version}")


@VERSIONS
def test_a_copy_needs_nothing_of_the_original(
    catalog: TableCatalog, tmp_path: Path, version: int, properties: Mapping[str, str]
) -> None:
    table = a_table(catalog, version, **properties)
    before, expected = table.loaded.metadata_location, rows(table, version)
    history = [s.snapshot_id for s in table.metadata.snapshots]
    target = tmp_path / "elsewhere, and further" / "copy"
    done = rewrite(table, target)
    # Leaves with data files have only relative paths. The sizes of deletion vectors change.
    count = 2 + 2 * (version > 1) if version < 4 else bool(properties)
    assert done.rewritten_manifest_file_paths_count == count
    assert done.rewritten_delete_file_paths_count == (version > 1)
    targets = carry_out(done)
    # The original table has not changed.
    table.refresh()
    assert table.loaded.metadata_location == before
    assert table_problems(table) == []
    local(table.location).rename(tmp_path / "gone")
    copy = registered(catalog, "db.copy", target, done)
    assert table_problems(copy) == []
    assert rows(copy, version) == expected
    assert [s.snapshot_id for s in copy.metadata.snapshots] == history
    for snapshot_id in history:
        assert copy.scan(selector=SnapshotSelector(snapshot_id=snapshot_id)).to_arrow().num_rows
    for path in targets:
        if path.endswith((".avro", ".json", ".puffin")):
            assert str(local(table.location)).encode() not in local(path).read_bytes()
        if path.endswith(".puffin"):
            [blob] = read_puffin_footer(copy.io, path).blobs
            assert local(blob.properties["referenced-data-file"]).is_relative_to(target)
    append(copy, 7)
    delete(copy, version, 1, 0) if version > 1 else None
    assert table_problems(copy) == []


@VERSIONS
def test_a_later_copy_builds_on_an_earlier_one(
    catalog: TableCatalog, tmp_path: Path, version: int, properties: Mapping[str, str]
) -> None:
    table = a_table(catalog, version, **properties)
    target = tmp_path / "copy"
    first = rewrite(table, target)
    carried = set(carry_out(first))
    append(table, 7)
    if version > 1:
        delete(table, version, 1, 2)
    # One rewritten manifest replaces the old manifests; its files are at the target already.
    table.maintenance().rewrite_manifests()
    append(table, 8)
    second = rewrite(table, target, start_version=first.latest_version)
    again = carry_out(second)
    assert not carried & set(again)
    data = [t for t in again if "/data/" in t and t.endswith(".parquet") and "deletes" not in t]
    assert len(data) == 2 + (version == 2)
    expected = rows(table, version)
    local(table.location).rename(tmp_path / "gone")
    copy = registered(catalog, "db.copy", target, second)
    assert table_problems(copy) == []
    assert rows(copy, version) == expected
    for snapshot in copy.metadata.snapshots:
        for manifest in read_snapshot_manifests(copy.io, snapshot):
            assert manifest.manifest_length == local(manifest.manifest_path).stat().st_size


def test_an_older_version(catalog: TableCatalog, tmp_path: Path) -> None:
    table = a_table(catalog, 2)
    versions = [e.metadata_file.rpartition("/")[2] for e in table.metadata.metadata_log]
    target = tmp_path / "copy"
    done = rewrite(table, target, end_version=versions[1], staging_location=f"{tmp_path}/stage/")
    assert done.latest_version == versions[1]
    assert done.file_list_location == f"{tmp_path}/stage/file-list"
    carry_out(done)
    assert [r["id"] for r in rows(registered(catalog, "db.c", target, done), 2)] == [1, 2, 3]
    # Staged files are never overwritten.
    with pytest.raises(FileAlreadyExistsError, match=r"already; .*give another staging_location"):
        rewrite(table, target, staging_location=f"{tmp_path}/stage")
    assert rewrite(table, target, create_file_list=False).file_list_location is None


class Killed(BaseException):
    """The end of the process."""


def test_folder_of_a_killed_run_can_be_deleted(catalog: TableCatalog, tmp_path: Path) -> None:
    """Each run writes a new folder, and no run needs the folder of an earlier run."""
    table = a_table(catalog, 2)
    needed = set(local(table.location).rglob("*"))

    def die(operation: str, location: str, moment: str) -> None:
        if location.endswith("/file-list"):
            raise Killed

    killed_table = Table(table.catalog, table.loaded, io=HookedFileIO(table.io, die))
    with pytest.raises(Killed):
        rewrite(killed_table, tmp_path / "copy")
    [killed] = local(table.location).glob("metadata/copy-table-staging-*")
    assert list(killed.glob("metadata/*.metadata.json"))
    done = rewrite(table, tmp_path / "copy")
    complete = local(done.file_list_location).parent
    assert {killed, complete} == set(local(table.location).glob("metadata/copy-table-staging-*"))

    def remove(**arguments: Any) -> set[Path]:
        done = table.maintenance().remove_orphan_files(
            older_than=time.time_ns() // 10**6 + 1000, force=True, **arguments
        )
        return {local(location) for location in done.orphan_file_locations}

    # without the folder's location, its files are taken for those of another table
    assert remove() == set()
    staged = {file for file in killed.rglob("*") if file.is_file()}
    assert remove(location=f"{table.location}/metadata/{killed.name}") == staged
    assert not any(file.is_file() for file in killed.rglob("*"))
    assert needed <= set(local(table.location).rglob("*"))
    carry_out(done)
    assert [r["id"] for r in rows(registered(catalog, "db.c", tmp_path / "copy", done), 2)]
    assert [r["id"] for r in rows(table, 2)] == [2, 3, 4, 6]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_no_staged_file_is_replaced(
    catalog: TableCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Staged files have the names of the table's files, and an object store replaces files."""
    table = a_table(catalog, version)
    staging = tmp_path / "stage"

    def stage() -> None:
        rewrite(table, tmp_path / "copy", staging_location=str(staging))

    def open_output(_: LocalFileIO, location: str) -> BinaryIO:
        local(location).parent.mkdir(parents=True, exist_ok=True)
        return local(location).open("wb")

    stage()
    staged = [file for file in staging.rglob("*") if file.is_file()]
    assert {file.parent.name for file in staged} == {"stage", "data", "metadata"}
    monkeypatch.setattr(LocalFileIO, "open_output", open_output)
    for file in staged:
        shutil.rmtree(staging)
        file.parent.mkdir(parents=True)
        file.write_bytes(b"of an earlier run")
        with pytest.raises(FileAlreadyExistsError, match=re.escape(file.name)):
            stage()
        assert file.read_bytes() == b"of an earlier run"


def test_position_delete_files_keep_rows_and_get_true_sizes(
    catalog: TableCatalog, tmp_path: Path
) -> None:
    table = a_table(catalog, 2)
    first, second = paths_of(table)
    # Rows that are unsorted and repeated stay unchanged.
    listed = {"file_path": [second, first, first], "pos": [2, 1, 1]}
    list_positions(table, pa.table(listed), {"compression": "gzip"})
    done = rewrite(table, tmp_path / "copy")
    carry_out(done)
    copy = registered(catalog, "db.copy", tmp_path / "copy", done)
    assert [r["id"] for r in rows(copy, 2)] == [3, 4]
    files = copy.metadata_table("delete_files").to_arrow().to_pylist()
    assert sorted(f["record_count"] for f in files) == [1, 1, 3]
    for file in files:
        assert file["file_size_in_bytes"] == Path(file["file_path"]).stat().st_size
        for metric in ("lower_bounds", "upper_bounds"):
            bounds = dict(file[metric] or ())
            if file["content"] == 1:
                assert bounds[2147483546].decode().startswith(str(tmp_path / "copy"))


def test_paths_outside_the_prefix_are_refused(catalog: TableCatalog, tmp_path: Path) -> None:
    table = a_table(catalog, 2, **{"write.data.path": str(tmp_path / "wh" / "aside")})
    with pytest.raises(InvalidRequestError, match=r"aside.* is not below the source prefix"):
        rewrite(table, tmp_path / "copy")
    done = table.maintenance().rewrite_table_path(
        source_prefix=str(tmp_path / "wh"), target_prefix=str(tmp_path / "copy")
    )
    carry_out(done)
    inside = Path(table.location).relative_to(tmp_path / "wh")
    (tmp_path / "wh").rename(tmp_path / "gone")
    copy = registered(catalog, "db.copy", tmp_path / "copy" / inside, done)
    assert [r["id"] for r in rows(copy, 2)] == [2, 3, 4, 6]
    assert copy.properties["write.data.path"] == str(tmp_path / "copy" / "aside")


def test_steps_out_of_the_prefix_are_refused(catalog: TableCatalog, tmp_path: Path) -> None:
    """Otherwise the list would make someone overwrite a file beside the copy."""
    table = a_table(catalog, 2)
    path = f"{table.location}/../x/deletes.parquet"
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(paths_of(table)[0], path)
    delete_keys(table, "id", [6])
    entry = next(iter(table.metadata_table("delete_files").to_arrow().to_pylist()))
    list_positions(
        table,
        pa.table({"file_path": [path], "pos": [0]}),
        {},
        record_count=1,
        partition=tuple(entry.get("partition") or ()),
    )
    with pytest.raises(InvalidRequestError, match=r"\.\./x/deletes.* is not below"):
        rewrite(table, tmp_path / "copy")


def test_wrong_requests(catalog: TableCatalog, tmp_path: Path) -> None:
    table = a_table(catalog, 2)
    versions = [e.metadata_file.rpartition("/")[2] for e in table.metadata.metadata_log]
    latest = table.loaded.metadata_location.rpartition("/")[2]
    for more, message in (
        ({"start_version": "no"}, "start_version no is not among the metadata files up to"),
        ({"end_version": "no"}, "end_version no is not among"),
        ({"start_version": latest}, "is the start and the end version"),
        ({"start_version": versions[2], "end_version": versions[1]}, "is not among"),
    ):
        with pytest.raises(InvalidRequestError, match=message):
            rewrite(table, tmp_path / "copy", **more)
    maintenance = table.maintenance()
    for source, target, message in (
        (" ", "/x", "source_prefix must not be empty"),
        ("/x", "", "target_prefix must not be empty"),
        ("/x/", "/x", "are both /x"),
        (table.location + "/data", "/x", "is not below the source prefix"),
        ("file:" + table.location, "/x", "is not below the source prefix"),
    ):
        with pytest.raises(InvalidRequestError, match=message):
            maintenance.rewrite_table_path(source_prefix=source, target_prefix=target)
    assert not list(Path(table.location).rglob("copy-table-staging-*"))


def test_an_unknown_key_with_a_path_is_refused(catalog: TableCatalog, tmp_path: Path) -> None:
    table = a_table(catalog, 2)
    file = Path(table.loaded.metadata_location)
    content = json.loads(file.read_bytes())
    content["more"] = {"kept": "as it is"}
    file.write_text(json.dumps(content))
    done = rewrite(table, tmp_path / "copy")
    staged = {target: source for source, target in copies_of(done)}
    latest = f"{tmp_path}/copy/metadata/{done.latest_version}"
    assert json.loads(Path(staged[latest]).read_bytes())["more"] == {"kept": "as it is"}
    content["more"] = {"index": [f"{table.location}/metadata/index"]}
    file.write_text(json.dumps(content))
    with pytest.raises(UnsupportedFeatureError, match=r"more .*path whose meaning is unknown"):
        rewrite(table, tmp_path / "copy")


@pytest.mark.parametrize("version", [2, 3])
def test_a_plan_writes_nothing(catalog: TableCatalog, tmp_path: Path, version: int) -> None:
    table = a_table(catalog, version)
    before = set(tmp_path.rglob("*"))
    plan = rewrite(table, tmp_path / "copy", dry_run=True)
    assert set(tmp_path.rglob("*")) == before
    done = rewrite(table, tmp_path / "copy")
    assert plan == replace(done, file_list_location=None)
