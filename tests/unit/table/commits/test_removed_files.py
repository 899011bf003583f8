"""A commit looks for the files that it removes only in manifests that may list them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

import iceberg_pyspark
from iceberg_pyspark import Table
from iceberg_pyspark.changes.manifest_changes import merged_manifest
from iceberg_pyspark.changes.removals import Origin, RemoveFiles
from iceberg_pyspark.changes.snapshot_changes import AppendFiles, OverwriteFiles
from iceberg_pyspark.errors import ConcurrentChangeError
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.manifest_reader import read_manifest_entries
from iceberg_pyspark.spec.manifests import DataFile, ManifestFile
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.table.commits import commit_snapshot
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_snapshot import SnapshotStep
from iceberg_pyspark.table.commits.written_files import WrittenFiles

Change = Callable[[Table], object]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(["x"] * len(ids))})


def table_of(manifests: int, mode: str, **properties: str) -> Table:
    """Return a table with a file of two rows in each manifest."""
    catalog = iceberg_pyspark.load_catalog(
        "removed", type="memory", warehouse=f"memory://{uuid.uuid4()}"
    )
    catalog.create_namespace("db")
    modes = {f"write.{name}.mode": mode for name in ("delete", "update", "merge")}
    unmerged = {"format-version": "3", "commit.manifest-merge.enabled": "false"}
    table: Table = catalog.create_table(
        "db.t", "id BIGINT, v STRING", properties={**unmerged, **modes, **properties}
    )
    for i in range(manifests):
        table.append(rows(2 * i, 2 * i + 1))
    return table.refresh()


def manifests_of(table: Table) -> list[ManifestFile]:
    snapshot = table.refresh().metadata.current_snapshot
    assert snapshot is not None
    return list(read_snapshot_manifests(table.io, snapshot))


def ids_of(table: Table) -> list[int]:
    ids: list[int] = table.refresh().scan(columns=["id"]).to_arrow()["id"].to_pylist()
    return sorted(ids)


def files_of(table: Table, count: int) -> list[DataFile]:
    return [
        DataFile(
            file_path=f"{table.location}/data/{uuid.uuid4()}.parquet",
            record_count=1,
            file_size_in_bytes=1000,
            spec_id=0,
            partition=(),
        )
        for _ in range(count)
    ]


def append_files(table: Table, files: list[DataFile]) -> None:
    append = AppendFiles(data_files=tuple(files))
    commit_action(table.catalog, table.loaded, table.io, append)


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the paths of the manifests in which commits search or of which they read entries."""
    paths: list[str] = []
    find_entries, read_entries = SnapshotStep._find_entries, SnapshotStep._read_entries

    def find(step: SnapshotStep, metadata: Any, manifest: ManifestFile, *args: Any) -> Any:
        paths.append(manifest.manifest_path)
        return find_entries(step, metadata, manifest, *args)

    def read(step: SnapshotStep, metadata: Any, manifest: ManifestFile, *args: Any) -> Any:
        paths.append(manifest.manifest_path)
        return read_entries(step, metadata, manifest, *args)

    monkeypatch.setattr(SnapshotStep, "_find_entries", find)
    monkeypatch.setattr(SnapshotStep, "_read_entries", read)
    return paths


CHANGES: dict[str, Change] = {
    "upsert": lambda t: t.upsert(rows(6), ["id"]),
    "update": lambda t: t.update({"v": "'n'"}, "id = 6"),
    "delete": lambda t: t.delete("id = 6"),
    "delete a file": lambda t: t.delete("id IN (6, 7)"),
}


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("change", CHANGES)
def test_only_the_manifests_of_changed_files(change: str, mode: str, searched: list[str]) -> None:
    counts = []
    for manifests in (5, 10):
        table = table_of(manifests, mode)
        before = ids_of(table)
        searched.clear()
        CHANGES[change](table)
        counts.append(len(set(searched)))
        gone = {"delete": {6}, "delete a file": {6, 7}}.get(change, set())
        assert ids_of(table) == [i for i in before if i not in gone]
    assert counts[0] == counts[1] <= 1, counts


def test_only_the_manifest_of_an_older_vector(searched: list[str]) -> None:
    counts = []
    for manifests in (5, 10):
        table = table_of(manifests, "merge-on-read")
        for i in range(manifests):
            table.refresh().delete(f"id = {2 * i}")
        searched.clear()
        CHANGES["delete a file"](table.refresh())
        counts.append(len(set(searched)))
        assert ids_of(table) == [i for i in range(2 * manifests) if i % 2 and i != 7]
    assert counts == [2, 2]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_compaction_searches_only_its_manifests(mode: str, searched: list[str]) -> None:
    counts = []
    for manifests in (6, 12):
        table = table_of(manifests, mode)
        table.delete("id = 1")
        searched.clear()
        table.refresh().maintenance().rewrite_data_files(
            where="id < 6", options={"rewrite-all": "true", "min-input-files": "1"}
        )
        counts.append(len(set(searched)))
        assert ids_of(table) == [i for i in range(2 * manifests) if i != 1]
    assert counts[0] == counts[1]


def test_a_rewritten_manifest_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each commit that rewrites a large manifest would merge the small ones again."""
    table = table_of(0, "copy-on-write", **{"commit.manifest-merge.enabled": "true"})
    many = files_of(table, 1000)
    append_files(table, many)
    [large] = manifests_of(table)
    target = {"commit.manifest.target-size-bytes": str(large.manifest_length * 11 // 10)}
    table.refresh().update_properties().set(target).commit()
    for _ in range(3):
        append_files(table, files_of(table, 1))
    sizes = [m.manifest_length for m in manifests_of(table)]
    assert len(sizes) == 4
    assert sum(sizes) > large.manifest_length * 11 // 10
    merged: list[int] = []

    def merging(group: Sequence[ManifestFile], *arguments: Any) -> Any:
        merged.append(len(group))
        return merged_manifest(group, *arguments)

    monkeypatch.setattr(commit_snapshot, "merged_manifest", merging)
    removal = RemoveFiles(data_paths=frozenset([many[0].file_path]))
    commit_action(table.catalog, table.loaded, table.io, OverwriteFiles(removal=removal))
    assert merged == []
    assert len(manifests_of(table)) == 4


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_files_that_another_commit_moved(version: str) -> None:
    """The manifests of the plan are gone: the files are found in the new ones."""
    table = table_of(4, "copy-on-write", **{"format-version": version})
    file, *others = table.scan().plan_files()
    snapshot_id = table.metadata.current_snapshot_id
    assert snapshot_id is not None
    assert file.manifest_path is not None
    origin = Origin(snapshot_id=snapshot_id, manifest_paths=frozenset([file.manifest_path]))
    table.maintenance().rewrite_manifests()
    table.refresh().append(rows(100))
    assert file.manifest_path not in {m.manifest_path for m in manifests_of(table)}
    removal = RemoveFiles(data_paths=frozenset([file.file_path]), origin=origin)
    commit_action(table.catalog, table.loaded, table.io, OverwriteFiles(removal=removal))
    left = {t.file_path for t in table.refresh().scan().plan_files()}
    assert file.file_path not in left
    assert {t.file_path for t in others} < left
    with pytest.raises(ConcurrentChangeError, match="no longer in the table"):
        commit_action(table.catalog, table.loaded, table.io, OverwriteFiles(removal=removal))


def test_a_file_that_is_listed_twice() -> None:
    """The table is damaged, but a change must not leave an older version of its rows."""
    table = table_of(2, "copy-on-write")
    [task, _] = table.scan().plan_files()
    files = tuple(
        e.data_file
        for m in manifests_of(table)
        for e in read_manifest_entries(table.io, m, StructType(()))
        if e.data_file.file_path == task.file_path
    )
    # a commit looks for live files of the same path only if they are not its writer's
    written = WrittenFiles(table.io, files)
    again = AppendFiles(data_files=files)
    commit_action(table.catalog, table.loaded, table.io, again, written_files=written)
    assert len(ids_of(table)) == 6
    table.refresh().update({"v": "'new'"}, "id >= 0")
    assert set(table.refresh().scan().to_arrow()["v"].to_pylist()) == {"new"}
