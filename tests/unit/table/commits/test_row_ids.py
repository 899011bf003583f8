"""The row ids that commits assign."""

from __future__ import annotations

import pytest

from iceberg_pyspark.changes.changes import UpgradeFormatVersion
from iceberg_pyspark.changes.ref_changes import create_ref
from iceberg_pyspark.changes.removals import RemoveFiles
from iceberg_pyspark.changes.snapshot_changes import (
    DeleteFiles,
)
from iceberg_pyspark.table.commits.commit import MetadataStep, commit_steps
from tests.support.commit_tables import commit_table, data_file
from tests.support.snapshot_commits import act, append, by_path, overwrite

WITH_LINEAGE = pytest.mark.parametrize("version", [3, 4])


@WITH_LINEAGE
def test_row_lineage_example(version: int) -> None:
    """docs/conformance.md 16."""
    t = commit_table(format_version=version, properties={"commit.manifest-merge.enabled": "false"})
    append(t, data_file("lead", rows=1000))
    overwrite(t, "static")
    assert t.metadata.next_row_id == 1000
    append(t, data_file("a", rows=100), data_file("b", rows=25))
    snapshot = t.metadata.current_snapshot
    assert snapshot is not None
    assert (snapshot.first_row_id, snapshot.added_rows) == (1000, 125)
    assert t.metadata.next_row_id == 1125
    ids = {name: e.data_file.first_row_id for name, e in by_path(t.entries()).items()}
    assert (ids["a"], ids["b"]) == (1000, 1100)


def test_files_written_before_version_3_get_row_ids_with_the_first_snapshot_after_it() -> None:
    """docs/conformance.md 18."""
    t = commit_table(format_version=2)
    append(t, data_file("a", rows=10))
    t.catalog.commit_table(t.loaded.identifier, [], [UpgradeFormatVersion(3)]).result()
    assert by_path(t.entries())["a"].data_file.first_row_id is None
    append(t, data_file("b", rows=5))
    ids = {name: e.data_file.first_row_id for name, e in by_path(t.entries()).items()}
    assert ids == {"b": 0, "a": 5}
    assert t.metadata.next_row_id == 15


@WITH_LINEAGE
def test_delete_only_commit_has_a_first_row_id(version: int) -> None:
    """docs/conformance.md 19."""
    t = commit_table(format_version=version)
    append(t, data_file("a", rows=10))
    act(t, DeleteFiles(removal=RemoveFiles(data_paths=frozenset({"mem://t/data/a"}))))
    snapshot = t.metadata.current_snapshot
    assert snapshot is not None
    assert (snapshot.first_row_id, snapshot.added_rows) == (10, 0)
    assert (snapshot.operation, t.live()) == ("delete", [])


@WITH_LINEAGE
def test_rewriting_keeps_row_ids_and_sequence_numbers(version: int) -> None:
    """docs/conformance.md 20."""
    t = commit_table(format_version=version)
    append(t, data_file("a", rows=10), data_file("b", rows=5))
    act(t, DeleteFiles(removal=RemoveFiles(data_paths=frozenset({"mem://t/data/a"}))))
    entry = by_path(t.entries())["b"]
    assert entry.data_file.first_row_id == 10
    assert entry.sequence_number == 1


@WITH_LINEAGE
def test_row_ids_advance_on_branches_too(version: int) -> None:
    """docs/conformance.md 19."""
    t = commit_table(format_version=version)
    append(t, data_file("a", rows=10))
    commit_steps(
        t.catalog,
        t.loaded,
        [MetadataStep(lambda m: create_ref(m, "b", "branch", min_snapshots_to_keep=4))],
        clock=t.clock.clock,
    )
    append(t, data_file("b", rows=7), branch="b")
    append(t, data_file("c", rows=1))
    assert t.metadata.next_row_id == 18
    assert t.live() == ["mem://t/data/a", "mem://t/data/c"]
    assert t.live(t.metadata.ref_snapshot("b")) == ["mem://t/data/a", "mem://t/data/b"]
    assert t.metadata.refs["b"].min_snapshots_to_keep == 4
    assert [s.sequence_number for s in t.metadata.snapshots] == [1, 2, 3]
