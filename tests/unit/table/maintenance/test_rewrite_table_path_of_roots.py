"""Copies of tables with root manifests: relative and absolute paths, upgrades, removed files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import Table, TableCatalog, load_table
from iceberg_pyspark.changes import root_entries
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.formats.manifest_files.parquet_manifests import ParquetManifest
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.table.commits import commit_root
from iceberg_pyspark.table.maintenance.copy.manifest_copy import moved_entries
from iceberg_pyspark.table.maintenance.copy.path_mapping import MovedPaths
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from tests.support.parameters import cases
from tests.support.root_tables import ProfileName, RootTable, content_file
from tests.support.table_integrity import table_problems
from tests.unit.table.maintenance.test_rewrite_table_path import (
    IN_LEAVES,
    a_table,
    append,
    carry_out,
    catalog,
    copies_of,
    delete,
    local,
    paths_of,
    registered,
    rewrite,
    rows,
)
from tests.unit.table.reading.test_root_manifests import DATA

__all__ = ["catalog"]


def upgrade(table: Table) -> None:
    table.update_properties().set({"format-version": "4"}).commit()


def rows_by_snapshot(table: Table) -> list[list[dict[str, Any]]]:
    return [
        sorted(
            table.scan(selector=SnapshotSelector(snapshot_id=s.snapshot_id)).to_arrow().to_pylist(),
            key=str,
        )
        for s in table.metadata.snapshots
    ]


def moved_away(table: Table, target: Path) -> None:
    local(table.location).rename(target)


@cases(
    ("properties", "with_scheme"),
    fast=[({}, True), (IN_LEAVES, False)],
    nightly=[({}, False), (IN_LEAVES, True)],
)
def test_an_upgraded_table_has_older_manifests(
    catalog: TableCatalog, tmp_path: Path, properties: dict[str, str], with_scheme: bool
) -> None:
    """Older manifests store paths without a scheme, and keep them so."""
    table = a_table(catalog, 3, **properties)
    source, target = table.location, f"{'file:' * with_scheme}{tmp_path}/copy"
    assert source.startswith("/")
    maintenance = table.maintenance()
    first = maintenance.rewrite_table_path(source_prefix=source, target_prefix=target)
    carried = set(map(local, carry_out(first)))
    upgrade(table)
    delete(table, 3, 1, 2)
    # The first file has no rows left, so it is removed by the deletion vector of its manifest.
    table.delete("id <= 3")
    append(table, 7)
    before = rows_by_snapshot(table)
    second = table.maintenance().rewrite_table_path(
        source_prefix=source, target_prefix=target, start_version=first.latest_version
    )
    assert not carried & set(map(local, carry_out(second)))
    assert second.rewritten_manifest_file_paths_count == bool(properties)
    moved_away(table, tmp_path / "gone")
    copy = registered(catalog, "db.copy", tmp_path / "copy", second)
    assert copy.location == f"file:{tmp_path}/copy"
    assert rows_by_snapshot(copy) == before
    assert [r["id"] for r in rows(copy, 4)] == [4, 7]
    assert table_problems(copy) == []
    assert copy.verify(check_files=True).findings == ()
    append(copy, 8)
    assert copy.verify(check_files=True).findings == ()


@pytest.mark.parametrize("inline", [True, False])
def test_vectors_of_manifests_and_the_files_that_they_remove(
    catalog: TableCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline: bool
) -> None:
    if not inline:
        for module in (root_entries, commit_root):
            monkeypatch.setattr(module, "MAX_INLINE_VECTOR_BYTES", 0)
    table = a_table(catalog, 4, **IN_LEAVES, **{"commit.manifest-merge.enabled": "false"})
    removed = paths_of(table)[0]
    table.delete("id <= 3")
    append(table, 7)
    first = rewrite(table, tmp_path / "first")
    carried = carry_out(first)
    assert sum("-mdv.puffin" in path for path in carried) == (0 if inline else 2)
    assert sum(source == removed for source, _ in copies_of(first)) == 1
    copy = registered(catalog, "db.first", tmp_path / "first", first)
    assert rows_by_snapshot(copy) == rows_by_snapshot(table)
    assert copy.verify(check_files=True).findings == ()
    # Once the snapshots that have the file are gone, a copy does not need it.
    table.maintenance().expire_snapshots(older_than=2**60, retain_last=1)
    assert not local(removed).exists()
    table.refresh()
    second = rewrite(table, tmp_path / "second")
    carry_out(second)
    expected = rows(table, 4)
    moved_away(table, tmp_path / "gone")
    copy = registered(catalog, "db.second", tmp_path / "second", second)
    assert rows(copy, 4) == expected
    assert copy.verify(check_files=True).findings == ()


def test_a_removed_delete_file_that_is_gone(catalog: TableCatalog, tmp_path: Path) -> None:
    """Its size in the earlier copy decides the length of its manifest there."""
    table = a_table(catalog, 4, **IN_LEAVES, **{"commit.manifest.min-count-to-merge": "2"})
    delete(table, 4, 1, 2)
    append(table, 7)
    first = rewrite(table, tmp_path / "copy")
    carry_out(first)
    vector = vectors(table)[paths_of(table)[0]]
    table.delete("id <= 3")
    again = {"start_version": first.latest_version}
    second = rewrite(table, tmp_path / "copy", **again)
    carry_out(second)
    copy = registered(catalog, "db.copy", tmp_path / "copy", second)
    assert rows(copy, 4) == rows(table, 4)
    assert copy.verify(check_files=True).findings == ()
    table.maintenance().expire_snapshots(older_than=2**60, retain_last=1)
    assert not local(vector).exists()
    table.refresh()
    with pytest.raises(InvalidRequestError, match=r"a removed file .* leave start_version out"):
        rewrite(table, tmp_path / "copy", **again)
    done = rewrite(table, tmp_path / "anew")
    carry_out(done)
    copy = registered(catalog, "db.anew", tmp_path / "anew", done)
    assert rows(copy, 4) == rows(table, 4)
    assert copy.verify(check_files=True).findings == ()


def vectors(table: Table) -> dict[str, str]:
    """Return the Puffin file of each data file with a deletion vector."""
    tasks = table.scan().plan_files()
    return {t.file_path: d.file_path for t in tasks for d in t.deletes if d.referenced_data_file}


@pytest.mark.parametrize("profile", ["single-file commits", "tracked files"])
@cases("seed", fast=[0], nightly=[*(n for n in (1, 2, 3))])
def test_absolute_and_relative_paths_in_both_forms(
    catalog: TableCatalog, tmp_path: Path, profile: ProfileName, seed: int
) -> None:
    table = a_table(catalog, 3)
    delete(table, 3, 1, 0)
    append(table, 7)
    original = load_table(with_roots(table, profile, seed))
    before = rows_by_snapshot(original)
    done = rewrite(original, tmp_path / "copy")
    targets = carry_out(done)
    moved_away(table, tmp_path / "gone")
    copy = load_table(f"file:{tmp_path}/copy/metadata/{done.latest_version}")
    assert rows_by_snapshot(copy) == before
    for path in targets:
        if "/metadata/" in path:
            # Parquet files are compressed, so their strings are compared below.
            assert table.location.encode() not in local(path).read_bytes(), path
    for snapshot in copy.metadata.snapshots:
        for manifest in read_snapshot_manifests(copy.io, snapshot):
            assert local(manifest.manifest_path).is_relative_to(tmp_path / "copy")
            if not manifest.is_root:
                size = local(manifest.manifest_path).stat().st_size
                assert manifest.manifest_length == size


def with_roots(table: Table, profile: ProfileName, seed: int) -> str:
    """Return the location of the metadata of the same table with root manifests."""
    location = RootTable(table, LocalFileIO(), profile, random.Random(seed)).write()
    content = json.loads(local(location).read_bytes())
    local(location).write_text(json.dumps({**content, "metadata-log": []}))
    return location


def test_requests_that_would_make_an_unreadable_copy(catalog: TableCatalog, tmp_path: Path) -> None:
    location = f"file:{tmp_path}/apart"
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table(
        "db.t", schema="id BIGINT, v STRING", location=location, properties={"format-version": "3"}
    )
    append(table, 1)
    first = rewrite(table, tmp_path / "copy")
    carry_out(first)
    upgrade(table)
    append(table, 2)
    with pytest.raises(InvalidRequestError, match=r"target_prefix .*/copy has no scheme"):
        rewrite(table, tmp_path / "copy", start_version=first.latest_version)
    done = rewrite(table, tmp_path / "anew")
    assert all(target.startswith("file:") for _, target in copies_of(done))
    carry_out(done)
    moved_away(table, tmp_path / "gone")
    copy = registered(catalog, "db.anew", tmp_path / "anew", done)
    assert [r["id"] for r in rows(copy, 4)] == [1, 2]
    with pytest.raises(InvalidRequestError, match="are both file:"):
        copy.maintenance().rewrite_table_path(
            source_prefix=copy.location, target_prefix=f"{tmp_path}/anew/"
        )
    with pytest.raises(InvalidRequestError, match="is not below the source prefix"):
        copy.maintenance().rewrite_table_path(
            source_prefix=f"file://{tmp_path}/anew", target_prefix="/x"
        )


PATHS = MovedPaths("file:/a/t", "file:/b").of_location("file:/a/t")


def test_a_file_without_changes_is_copied_as_it_is() -> None:
    relative = content_file("single-file commits", [DATA], content="root")
    assert moved_entries(ParquetManifest(relative, "r"), PATHS, {}) is None
    moved = moved_entries(ParquetManifest(relative, "r"), PATHS, {"file:/a/t/data/a.parquet": 7})
    assert moved is not None
    entries = ParquetManifest(moved, "r").raw_entries()
    assert entries["_104"].to_pylist() == [7]
    assert entries["_100"].to_pylist() == ["data/a.parquet"]
    assert ParquetManifest(moved, "r").metadata["content"] == "root"


def test_columns_of_unknown_meaning_are_refused() -> None:
    rows = pa.table(
        [pa.array([0]), pa.array(["file:/a/t/x"]), pa.array([{"s": 1}])],
        schema=pa.schema(
            [
                _field(134, "content_type", pa.int64()),
                _field(990, "index_file", pa.string()),
                _field(5, "version_info", pa.struct([_field(0, "s", pa.int32())])),
            ]
        ),
    )
    with pytest.raises(UnsupportedFeatureError, match=r"'index_file' \(field id 990\)"):
        moved_entries(_manifest(rows), PATHS, {})
    without = rows.set_column(1, rows.schema.field(1), pa.array([None], pa.string()))
    assert moved_entries(_manifest(without), PATHS, {}) is None


def test_position_delete_files_in_parquet_manifests_are_refused() -> None:
    struct = pa.struct(
        [
            _field(134, "content", pa.int32()),
            _field(100, "file_path", pa.string()),
            _field(101, "file_format", pa.string()),
        ]
    )
    for file_format, is_refused in (("PARQUET", True), ("PUFFIN", False)):
        file = {"content": 1, "file_path": "data/d", "file_format": file_format}
        rows = pa.table(
            [pa.array([1], pa.int32()), pa.array([file], struct)],
            schema=pa.schema([_field(0, "status", pa.int32()), _field(2, "data_file", struct)]),
        )
        if is_refused:
            with pytest.raises(UnsupportedFeatureError, match="position delete files"):
                moved_entries(_manifest(rows), PATHS, {})
        else:
            assert moved_entries(_manifest(rows), PATHS, {}) is None


def _field(field_id: int, name: str, type_: pa.DataType) -> pa.Field:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(field_id)})


def _manifest(rows: pa.Table) -> ParquetManifest:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(rows, sink, store_schema=False)
    return ParquetManifest(sink.getvalue().to_pybytes(), "m.parquet")
