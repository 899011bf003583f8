"""Leaves of root manifests are pruned by filters and by manifest deletion vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.formats.manifest_columns import TypedManifest, entries_of_manifests
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.roots import content_writer
from iceberg_pyspark.planning.manifest_pruning import without_needless_deletes
from iceberg_pyspark.spec.manifests import ColumnSummary, ManifestContent, ManifestFile
from iceberg_pyspark.table.reading import table_scan as scan_module
from tests.support.deleted_rows import delete_keys, delete_positions
from tests.support.frames import append_rows, create_path_table, path_table

LEAVES_ONLY = {
    "write.root.file-system-tables.enabled": "true",
    "write.root.max-data-entries": "0",
    "write.root.max-delete-entries": "0",
    "commit.manifest-merge.enabled": "false",
}


def a_table(folder: Path, version: int = 4, **more: Any) -> Table:
    """Create a table of three manifests: ids 0 and 1, 10 and 11, 20 and 21, by partition."""
    properties = {"format-version": str(version), **LEAVES_ONLY}
    table = create_path_table(
        folder, "id BIGINT, p STRING, x DOUBLE", properties=properties, **more
    )
    for i, p in enumerate("abc"):
        append_rows(table, [{"id": 10 * i + j, "p": p, "x": float("nan")} for j in range(2)])
    return path_table(folder)


def kept_counts(table: Table, filter: str) -> tuple[int, int]:
    """Return the numbers of manifests and of rows that a filter keeps."""
    scan = table.scan(filter=filter)
    return scan.describe().statistics.manifests_kept, scan.to_arrow().num_rows


@pytest.mark.parametrize(
    ("filter", "manifests", "rows"),
    [
        ("id = 11", 1, 1),
        ("id < 11", 2, 3),
        ("id IN (0, 21)", 2, 2),
        ("id > 21", 0, 0),
        ("id IS NULL", 0, 0),
        ("p = 'b' AND id < 11", 1, 1),
        ("p = 'b' AND id < 5", 0, 0),
        ("p LIKE 'c%'", 1, 2),
        ("x IS NULL", 0, 0),
        ("x > 1.0", 3, 6),
    ],
)
def test_leaves_go_by_what_is_known_of_their_columns(
    tmp_path: Path, filter: str, manifests: int, rows: int
) -> None:
    assert kept_counts(a_table(tmp_path / "t"), filter) == (manifests, rows)


def test_leaf_statistics_are_carried_from_root_to_root(
    tmp_path: Path,
) -> None:
    table = a_table(tmp_path / "t")
    table.delete("p = 'b'")
    table.update_schema().rename_column("id", "key").commit()
    append_rows(table, [{"key": 50, "p": "d", "x": 0.0}])
    for reader in (table.refresh(), path_table(tmp_path / "t")):
        assert kept_counts(reader, "key >= 50") == (1, 1)
        assert kept_counts(reader, "key = 21") == (1, 1)
        assert kept_counts(reader, "key = 11") == (0, 0)


def test_a_leaf_all_of_whose_files_are_gone_is_not_read(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    table.delete("p = 'b'")
    statistics = table.scan().describe().statistics
    assert (statistics.manifests, statistics.data_files) == (3, 2)
    assert kept_counts(table, "true") == (2, 4)
    assert kept_counts(table, "p = 'b'") == (0, 0)


def test_leaves_of_before_the_upgrade_go_by_their_partitions(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", 3, partitioned_by=["p"])
    table.update_properties().set({"format-version": "4"}).commit()
    append_rows(table, [{"id": 30, "p": "d", "x": 0.0}])
    assert kept_counts(path_table(tmp_path / "t"), "p = 'b'") == (1, 2)
    assert kept_counts(path_table(tmp_path / "t"), "p > 'b'") == (2, 3)
    assert kept_counts(path_table(tmp_path / "t"), "p IS NULL") == (0, 0)


def test_column_without_metrics_in_one_file_prunes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    table = a_table(folder)
    table.update_properties().set({"write.metadata.metrics.column.id": "none"}).commit()
    append_rows(table, [{"id": 40, "p": "e", "x": 0.0}])
    table.update_properties().remove("write.metadata.metrics.column.id").commit()
    append_rows(table, [{"id": 60, "p": "f", "x": 0.0}])
    table.maintenance().rewrite_manifests()
    assert kept_counts(path_table(folder), "id = 60") == (1, 1)
    assert kept_counts(path_table(folder), "id = 40") == (1, 1)
    assert kept_counts(path_table(folder), "p = 'z'") == (0, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lower_bound": (1).to_bytes(8, "little")},
        {"upper_bound": bytes(8)},
        {"value_count": 3},
        {"null_value_count": 1},
    ],
)
def test_wrong_columns_are_found(
    tmp_path: Path, wrong: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert a_table(tmp_path / "sound").verify().ok
    options = {"field_id": 1, "value_count": 2, "null_value_count": 0, **wrong}
    monkeypatch.setattr(content_writer, "columns_of_entries", lambda _: (ColumnSummary(**options),))
    actual = a_table(tmp_path / "t").verify()
    assert {f.rule for f in actual.findings} == {"content-stats"}


# --- leaves of deletes ----------------------------------------------------------------------------

ROOT_BYTES = "write.root.max-bytes"


def table_with_affinities(folder: Path) -> Table:
    """Create a table of two data leaves, each with a leaf of one vector, and files in the root.

    Ids 10 to 12 and 20 to 22 are in leaves, ids 30 to 32 in the root; 10, 20 and 30 are deleted.
    """
    options = {"format-version": "4", "write.root.file-system-tables.enabled": "true"}
    table = create_path_table(folder, "id BIGINT", properties=options)
    for i in (10, 20, 30):
        # A full root moves a file and its vector to leaves in one commit.
        table.update_properties().set({ROOT_BYTES: "1"}).commit()
        append_rows(table, [{"id": i + j} for j in range(3)])
        table.refresh()
        table.update_properties().remove(ROOT_BYTES).commit()
        [path] = (t.file_path for t in table.scan(filter=f"id = {i}").plan_files())
        delete_positions(table, {path: [0]})
        table.refresh()
    return path_table(folder)


@pytest.fixture(scope="module")
def affinities(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Create such a table once for all tests that only read it."""
    return table_with_affinities(tmp_path_factory.mktemp("affinities") / "t")


def delete_leaves(table: Table) -> list[ManifestFile]:
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    manifests = read_snapshot_manifests(table.io, snapshot)
    return [m for m in manifests if m.content is ManifestContent.DELETES and not m.is_root]


def ids_and_delete_leaves(
    table: Table, filter: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[int], int]:
    """Return the ids that match a filter, and how many leaves of deletes the scan reads."""
    leaves = set[str]()

    def counted(io: Any, manifests: Sequence[TypedManifest], **more: Any) -> Any:
        for m, _ in manifests:
            if m.content is ManifestContent.DELETES and not m.is_root:
                leaves.add(m.manifest_path)
        return entries_of_manifests(io, manifests, **more)

    with monkeypatch.context() as patch:
        patch.setattr(scan_module, "entries_of_manifests", counted)
        ids = table.scan(filter=filter).to_arrow()["id"].to_pylist()
    return sorted(ids), len(leaves)


@pytest.mark.parametrize(
    ("filter", "ids", "leaves"),
    [
        ("id < 13", [11, 12], 1),
        ("id = 20", [], 1),
        ("id IN (11, 21, 30)", [11, 21], 2),
        ("id >= 30", [31, 32], 0),
        ("id > 99", [], 0),
        ("true", [11, 12, 21, 22, 31, 32], 2),
    ],
)
def test_leaves_of_vectors_go_with_the_leaf_that_they_are_for(
    affinities: Table,
    filter: str,
    ids: list[int],
    leaves: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert [m.data_manifest is None for m in delete_leaves(affinities)] == [False, False]
    assert ids_and_delete_leaves(affinities, filter, monkeypatch) == (ids, leaves)
    assert affinities.verify(check_files=True).ok


def test_leaves_of_deletes_for_any_file_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_with_affinities(tmp_path / "t")
    delete_keys(table, "id", [11])
    table.refresh().update_properties().set({ROOT_BYTES: "1"}).commit()
    append_rows(table, [{"id": 40}])
    table.refresh()
    # The root's vector has gone to a leaf with its file, the equality delete to one for any file.
    assert sorted(m.data_manifest is None for m in delete_leaves(table)) == [False] * 3 + [True]
    assert ids_and_delete_leaves(table, "id < 13", monkeypatch) == ([12], 2)
    assert ids_and_delete_leaves(table, "id >= 40", monkeypatch) == ([40], 1)
    # New data leaves have the files, so the older affinity says nothing.
    table.maintenance().rewrite_manifests()
    table.refresh()
    assert ids_and_delete_leaves(table, "id < 23", monkeypatch)[0] == [12, 21, 22]
    assert ids_and_delete_leaves(table, "true", monkeypatch)[0] == [12, 21, 22, 31, 32, 40]
    assert table.verify(check_files=True).ok


def test_affinity_to_an_unknown_manifest_prunes_nothing() -> None:
    def leaf(path: str, data_manifest: str | None = None) -> ManifestFile:
        return ManifestFile(
            manifest_path=path,
            manifest_length=1,
            partition_spec_id=0,
            added_snapshot_id=1,
            data_manifest=data_manifest,
        )

    data = [leaf("a"), leaf("b")]
    deletes = [leaf("d1", "a"), leaf("d2", "b"), leaf("d3", "gone"), leaf("d4")]
    actual = without_needless_deletes(deletes, data, data[1:])
    assert [m.manifest_path for m in actual] == ["d2", "d3", "d4"]
