"""Version 4 commits that another commit overtakes: reused files, and row ids."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.outcomes import Outcome
from iceberg_pyspark.changes.property_changes import PropertyChanges
from iceberg_pyspark.changes.removals import RemoveFiles
from iceberg_pyspark.changes.snapshot_changes import AppendFiles, DeleteFiles, RowDelta
from iceberg_pyspark.errors import CommitStateUnknownError, ConcurrentChangeError
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.table.commits import commit_root
from iceberg_pyspark.table.commits.commit import MetadataStep, commit_steps
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable
from iceberg_pyspark.table.maintenance.rewrites.rewrite_manifests import ManifestRewrite
from tests.support.commit_tables import CommitTable, commit_table, data_file

Commit: TypeAlias = Callable[[], Outcome[LoadedTable]]
LEAVES_ONLY = {"write.root.max-data-entries": "0", "commit.manifest-merge.enabled": "false"}


def append(t: CommitTable, *files: DataFile, since: LoadedTable | None = None) -> None:
    action = AppendFiles(data_files=files)
    commit_action(t.catalog, since or t.loaded, t.io, action, clock=t.clock.clock)


def remove(t: CommitTable, *files: DataFile) -> None:
    action = DeleteFiles(removal=RemoveFiles(data_paths=frozenset(f.file_path for f in files)))
    commit_action(t.catalog, t.loaded, t.io, action, clock=t.clock.clock)


def set_properties(t: CommitTable, properties: dict[str, str]) -> None:
    step = MetadataStep(PropertyChanges().set(properties).changes)
    commit_steps(t.catalog, t.loaded, [step], clock=t.clock.clock)


def overtaken_by(t: CommitTable, meanwhile: Callable[[], None]) -> None:
    """Run another commit right before the next commit."""

    def fault(commit: Commit) -> Outcome[LoadedTable]:
        meanwhile()
        return commit()

    t.catalog.faults = [fault]


def row_ids(t: CommitTable, snapshot: Snapshot | None = None) -> dict[str, int | None]:
    """Return the first row id of each live data file by file name."""
    return {
        e.data_file.file_path.rsplit("/", 1)[1]: e.data_file.first_row_id
        for e in t.entries(snapshot)
        if e.is_live
    }


def files(*names: str, **values: Any) -> tuple[DataFile, ...]:
    return tuple(data_file(name, **values) for name in names)


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("target", ["1", "8388608"])
def test_added_files_are_all_there_where_manifests_get_another_size_meanwhile(
    version: int, target: str
) -> None:
    t = commit_table(
        format_version=version,
        properties={**LEAVES_ONLY, "commit.manifest.target-size-bytes": "300"},
    )
    append(t, *files("base"))
    added = files(*"abcdefgh")
    resized = {"commit.manifest.target-size-bytes": target}
    overtaken_by(t, lambda: set_properties(t, resized))
    append(t, *added)
    assert t.live() == sorted(f.file_path for f in (*added, *files("base")))
    assert t.metadata_files() == t.referenced()


@pytest.mark.parametrize("target", ["1", "8388608"])
def test_flushed_files_are_all_there_where_manifests_get_another_size_meanwhile(
    target: str,
) -> None:
    t = commit_table(
        format_version=4,
        properties={"write.root.max-data-entries": "8", "commit.manifest.target-size-bytes": "300"},
    )
    before = files(*"abcdefgh")
    append(t, *before)
    resized = {"commit.manifest.target-size-bytes": target}
    overtaken_by(t, lambda: set_properties(t, resized))
    ids = row_ids(t)
    append(t, *files("i"))
    assert t.live() == sorted(f.file_path for f in (*before, *files("i")))
    assert {name: row_ids(t)[name] for name in ids} == ids
    assert t.metadata_files() == t.referenced()


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("operation", ["merged", "filtered"])
def test_row_ids_that_another_commit_gives_meanwhile_stay(version: int, operation: str) -> None:
    properties = {"commit.manifest.min-count-to-merge": "2" if operation == "merged" else "100"}
    t = commit_table(
        format_version=2, properties={**properties, "commit.manifest-merge.enabled": "false"}
    )
    append(t, *files("a", "b", rows=10))
    append(t, *files("c", rows=10))
    upgrade = {"format-version": str(version)}
    if operation == "merged":
        upgrade["commit.manifest-merge.enabled"] = "true"
    set_properties(t, upgrade)
    assert t.metadata.format_version == version
    first: dict[str, int | None] = {}

    def meanwhile() -> None:
        action = AppendFiles(data_files=files("winner", rows=10), merge=False)
        commit_action(t.catalog, t.loaded, t.io, action, clock=t.clock.clock)
        first.update(row_ids(t))

    overtaken_by(t, meanwhile)
    if operation == "merged":
        append(t, *files("loser", rows=10))
    else:
        remove(t, *files("a"))
        del first["a"]
    actual = row_ids(t)
    assert {name: actual[name] for name in first} == first
    starts = sorted(i for i in actual.values() if i is not None)
    assert len(starts) == len(actual)
    assert all(b - a >= 10 for a, b in pairwise(starts)), actual
    assert t.metadata.next_row_id >= starts[-1] + 10


def test_a_file_whose_leaf_the_winner_folded_is_masked_in_the_new_leaf() -> None:
    t = commit_table(format_version=4, properties=LEAVES_ONLY)
    append(t, *files("a", "b", "c", rows=10))
    ids = row_ids(t)
    remove(t, *files("a"))
    remove(t, *files("b"))
    (leaf,) = t.manifests()

    def fold() -> None:
        set_properties(t, {"commit.manifest-merge.enabled": "true"})
        append(t, *files("d", rows=10))

    overtaken_by(t, fold)
    remove(t, *files("c"))
    assert leaf.manifest_path not in {m.manifest_path for m in t.manifests()}
    assert t.live() == ["mem://t/data/d"]
    before = t.metadata.snapshots[-2]
    assert row_ids(t, before)["c"] == ids["c"]
    assert t.metadata_files() == t.referenced()


def test_a_file_that_the_winner_masks_cannot_be_removed_again() -> None:
    t = commit_table(format_version=4, properties=LEAVES_ONLY)
    append(t, *files("a", "b", "c"))
    overtaken_by(t, lambda: remove(t, *files("a")))
    with pytest.raises(ConcurrentChangeError, match="no longer in the table"):
        remove(t, *files("a", "b"))
    assert t.live() == ["mem://t/data/b", "mem://t/data/c"]
    overtaken_by(t, lambda: remove(t, *files("b")))
    remove(t, *files("c"))
    assert t.live() == []


def test_manifests_are_rewritten_with_what_is_appended_meanwhile() -> None:
    t = commit_table(format_version=4, properties=LEAVES_ONLY)
    append(t, *files("a"))
    append(t, *files("b"))
    set_properties(t, {"write.root.max-data-entries": "10"})
    append(t, *files("c"))
    ids = row_ids(t)
    overtaken_by(t, lambda: append(t, *files("d")))
    table = MaintainedTable(catalog=t.catalog, loaded=t.loaded, io=t.io, clock=t.clock.clock)
    _, result = ManifestRewrite(table, spec_id=None, sort_by=()).run()
    assert (result.rewritten_manifests_count, result.added_manifests_count) == (3, 1)
    assert row_ids(t) == {**ids, "d": 3}
    assert [s.operation for s in t.metadata.snapshots[-2:]] == ["append", "replace"]
    assert t.metadata_files() == t.referenced()


def test_writer_of_version_3_continues_with_version_4_after_an_upgrade() -> None:
    t = commit_table(format_version=3)
    append(t, *files("a", rows=10))

    def upgraded() -> None:
        set_properties(t, {"format-version": "4"})
        append(t, *files("winner", rows=10))

    overtaken_by(t, upgraded)
    append(t, *files("loser", rows=10))
    assert row_ids(t) == {"a": 0, "winner": 10, "loser": 20}
    assert [s.root_manifest is None for s in t.metadata.snapshots] == [True, False, False]
    assert t.metadata_files() == t.referenced()


def test_a_change_read_before_the_upgrade_finds_the_conflict_after_it() -> None:
    t = commit_table(format_version=3)
    append(t, *files("a", "b"))
    base = t.metadata.current_snapshot
    assert base is not None
    set_properties(t, {"format-version": "4"})
    remove(t, *files("a"))
    checks = ConflictChecks(
        base_snapshot_id=base.snapshot_id, still_live=frozenset([files("a")[0].file_path])
    )
    with pytest.raises(ConcurrentChangeError, match="removed mem://t/data/a"):
        commit_action(
            t.catalog,
            t.loaded,
            t.io,
            RowDelta(data_files=files("c"), checks=checks),
            clock=t.clock.clock,
        )


def test_the_reply_to_a_root_is_lost_and_another_commit_comes_on_top() -> None:
    t = commit_table(format_version=4, properties=LEAVES_ONLY)
    append(t, *files("a", "b"))

    def lost(commit: Commit) -> Outcome[LoadedTable]:
        commit()
        remove(t, *files("b"))
        raise CommitStateUnknownError("the reply was lost")

    t.catalog.faults = [lost]
    remove(t, *files("a"))
    assert t.live() == []
    assert len(t.metadata.snapshots) == 3
    assert t.metadata_files() == t.referenced()


def test_row_ids_are_those_of_all_entries_of_a_leaf_masked_ones_too() -> None:
    t = commit_table(format_version=4, properties=LEAVES_ONLY)
    append(t, *files("a", "b", "c", rows=10))
    ids = row_ids(t)
    assert ids == {"a": 0, "b": 10, "c": 20}
    remove(t, *files("a"))
    assert row_ids(t) == {"b": 10, "c": 20}
    remove(t, *files("b"))
    append(t, *files("d", rows=10))
    assert row_ids(t) == {"c": 20, "d": 30}


@pytest.fixture
def no_inline_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_root, "MAX_INLINE_VECTOR_BYTES", 0)


@pytest.mark.usefixtures("no_inline_vectors")
def test_large_vectors_of_leaves_are_in_puffin_files_of_the_attempt_that_was_committed() -> None:
    t = commit_table(format_version=4, properties=LEAVES_ONLY)
    append(t, *files("a", "b", "c", "d", rows=10))
    ids = row_ids(t)

    def vectors() -> set[str]:
        return {f for f in t.metadata_files() if f.endswith(".puffin")}

    remove(t, *files("a"))
    (first,) = vectors()
    overtaken_by(t, lambda: append(t, *files("e", rows=10)))
    remove(t, *files("b"))
    assert len(vectors()) == 2
    overtaken_by(t, lambda: remove(t, *files("d")))
    with pytest.raises(ConcurrentChangeError):
        remove(t, *files("d"))
    assert t.live() == ["mem://t/data/c", "mem://t/data/e"]
    assert row_ids(t)["c"] == ids["c"]
    assert t.metadata_files() == t.referenced()
    (snapshot, *_) = t.metadata.snapshots
    assert len(row_ids(t, snapshot)) == 4
    table = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
    assert table.verify().findings == ()
    table.maintenance().expire_snapshots(older_than=t.clock.now_ms(), retain_last=1)
    needed = {f for f in t.referenced() if f.endswith(".puffin")}
    assert len(needed) == 2
    assert first not in needed
    assert t.live() == ["mem://t/data/c", "mem://t/data/e"]
