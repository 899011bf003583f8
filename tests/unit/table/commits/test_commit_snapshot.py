"""The content of snapshots after each kind of action, in every format version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.ref_changes import create_ref
from iceberg_pyspark.changes.removals import RemoveFiles, delete_file_id
from iceberg_pyspark.changes.snapshot_changes import (
    AppendFiles,
    DeleteFiles,
    OverwriteFiles,
    RewriteFiles,
    RowDelta,
    SnapshotAction,
)
from iceberg_pyspark.changes.spec_changes import SpecChanges
from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError
from iceberg_pyspark.expressions.predicates import LiteralPredicate
from iceberg_pyspark.formats.manifest_reader import entries_of, read_manifest_entries
from iceberg_pyspark.spec.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
)
from iceberg_pyspark.spec.types import LongType
from iceberg_pyspark.spec.values import value_to_bytes
from iceberg_pyspark.table.commits import commit_snapshot
from iceberg_pyspark.table.commits.commit import MetadataStep, commit_steps
from iceberg_pyspark.table.commits.written_files import WrittenFiles
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import CommitTable, commit_table, data_file
from tests.support.file_commits import commit_append
from tests.support.snapshot_commits import (
    act,
    append,
    by_path,
    head,
    overwrite,
    position_deletes,
    vector,
)

pytestmark = pytest.mark.usefixtures("each_version")

VERSIONS = (1, 2, 3, 4)
WITH_LISTS = (1, 2, 3)


def summary(t: CommitTable) -> dict[str, str]:
    snapshot = t.metadata.current_snapshot
    assert snapshot is not None
    return dict(snapshot.summary)


@pytest.mark.parametrize("version", WITH_LISTS)
def test_appends_add_and_keep(version: int) -> None:
    """docs/conformance.md 1 and 8."""
    t = commit_table(format_version=version)
    append(t, data_file("a", rows=3))
    first = head(t)
    append(t, data_file("b", rows=4))
    entries = by_path(t.entries())
    assert {k: (e.status, e.snapshot_id) for k, e in entries.items()} == {
        "a": (EntryStatus.ADDED, first),
        "b": (EntryStatus.ADDED, head(t)),
    }
    expected = (0, 0) if version == 1 else (1, 2)
    assert (entries["a"].sequence_number, entries["b"].sequence_number) == expected
    second = t.metadata.current_snapshot
    assert second is not None
    assert second.parent_snapshot_id == first
    assert second.schema_id == 0
    assert t.metadata.snapshots[0].parent_snapshot_id is None
    totals = summary(t)
    assert totals.pop("iceberg-pyspark.write-id")
    assert totals == {
        "operation": "append",
        "added-data-files": "1",
        "added-records": "4",
        "added-files-size": "40",
        "changed-partition-count": "1",
        "manifests-created": "1",
        "manifests-kept": "1",
        "manifests-replaced": "0",
        "total-records": "7",
        "total-files-size": "70",
        "total-data-files": "2",
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_static_overwrite_deletes_with_its_own_snapshot_id(version: int) -> None:
    """docs/conformance.md 4 and 5."""
    t = commit_table(format_version=version, partitioned=True)
    append(t, data_file("a", "x"), data_file("b", "y"))
    overwrite(t, "static", data_file("c", "x"))
    entries = by_path(t.entries())
    assert t.live() == ["mem://t/data/c"]
    assert entries["a"].status is EntryStatus.DELETED
    assert entries["a"].snapshot_id == head(t)
    assert entries["a"].sequence_number == (0 if version == 1 else 1)
    assert summary(t)["operation"] == "overwrite"
    assert summary(t)["total-data-files"] == "1"
    append(t, data_file("d", "x"))
    assert "a" not in by_path(t.entries()), "a manifest without live files is left out"


@pytest.mark.with_lists("a root has no manifests to rewrite")
@pytest.mark.parametrize("version", WITH_LISTS)
def test_a_rewritten_manifest_drops_what_was_deleted_before(version: int) -> None:
    """docs/conformance.md 5."""
    t = commit_table(format_version=version)
    append(t, data_file("a"), data_file("b"), data_file("c"))
    for name in ("a", "b"):
        act(t, DeleteFiles(removal=RemoveFiles(data_paths=frozenset({f"mem://t/data/{name}"}))))
    statuses = {name: entry.status for name, entry in by_path(t.entries()).items()}
    assert statuses == {"b": EntryStatus.DELETED, "c": EntryStatus.EXISTING}
    append(t, data_file("d"))
    Table(t.catalog, t.loaded, io=t.io).maintenance().rewrite_manifests()
    assert set(by_path(t.entries())) == {"c", "d"}
    act(t, DeleteFiles(removal=RemoveFiles(data_paths=frozenset({"mem://t/data/c"}))))
    act(t, DeleteFiles(removal=RemoveFiles(data_paths=frozenset({"mem://t/data/d"}))))
    assert {n: e.status for n, e in by_path(t.entries()).items()} == {"d": EntryStatus.DELETED}
    append(t, data_file("e"))
    assert set(by_path(t.entries())) == {"e"}, "a manifest without live files is left out"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dynamic_overwrite_replaces_its_partitions_only(version: int) -> None:
    t = commit_table(format_version=version, partitioned=True)
    append(t, data_file("a", "x"), data_file("b", "y"), data_file("n", None))
    first = head(t)
    overwrite(t, "dynamic", data_file("c", "x"), data_file("m", None))
    assert t.live() == [f"mem://t/data/{n}" for n in ("b", "c", "m")]
    entry = by_path(t.entries())["b"]
    assert (entry.status, entry.snapshot_id) == (EntryStatus.EXISTING, first)
    assert entry.file_sequence_number == (0 if version == 1 else 1)
    assert [s.summary.get("replace-partitions") for s in t.metadata.snapshots] == [None, "true"]


def test_a_dynamic_overwrite_of_an_unpartitioned_table_replaces_everything() -> None:
    t = commit_table()
    append(t, data_file("a"))
    overwrite(t, "dynamic", data_file("b"))
    assert t.live() == ["mem://t/data/b"]
    overwrite(t, "dynamic")
    assert t.live() == ["mem://t/data/b"], "no rows, no partitions to replace"


def test_an_overwrite_by_filter_takes_whole_files_or_none() -> None:
    t = commit_table(partitioned=True)

    def ranged(name: str, part: str, low: int, high: int) -> DataFile:
        long = LongType()
        return data_file(
            name,
            part,
            rows=10,
            lower_bounds={1: value_to_bytes(long, low)},
            upper_bounds={1: value_to_bytes(long, high)},
            value_counts={1: 10},
            null_value_counts={1: 0},
        )

    append(t, ranged("a", "x", 1, 5), ranged("b", "x", 6, 9), ranged("c", "y", 1, 5))
    overwrite(t, LiteralPredicate("lt", "id", 6), data_file("d", "x"))
    assert t.live() == ["mem://t/data/b", "mem://t/data/d"]
    overwrite(t, LiteralPredicate("eq", "part", "x"))
    assert t.live() == []
    assert summary(t)["operation"] == "delete"
    append(t, ranged("e", "x", 1, 5))
    with pytest.raises(InvalidRequestError, match="rows that match"):
        overwrite(t, LiteralPredicate("lt", "id", 3))


@pytest.mark.with_lists("a root has files of several specs")
def test_several_specs_have_manifests_of_their_own() -> None:
    """docs/conformance.md 10."""
    t = commit_table(partitioned=True)
    append(t, data_file("a", "x"))
    evolved = SpecChanges(t.metadata).remove_field("part")
    commit_steps(t.catalog, t.loaded, [MetadataStep(evolved.changes)], clock=t.clock.clock)
    append(t, data_file("b", "x"), data_file("c", spec_id=1))
    assert sorted(m.partition_spec_id for m in t.manifests()) == [0, 0, 1]
    overwrite(t, "static")
    assert sorted(m.partition_spec_id for m in t.manifests()) == [0, 0, 1]
    with pytest.raises(InvalidRequestError, match="spec 7"):
        append(t, data_file("d", spec_id=7))
    with pytest.raises(InvalidRequestError, match="partition values"):
        append(t, data_file("d", "x", spec_id=1))


@pytest.mark.parametrize("version", WITH_LISTS)
def test_manifests_are_merged_once_there_are_enough(version: int) -> None:
    t = commit_table(format_version=version, properties={"commit.manifest.min-count-to-merge": "3"})
    for name in ("a", "b"):
        append(t, data_file(name, rows=2))
    assert len(t.manifests()) == 2
    first = t.metadata.snapshots[0].snapshot_id
    append(t, data_file("c", rows=2))
    assert len(t.manifests()) == 1
    entries = by_path(t.entries())
    assert (entries["a"].status, entries["a"].snapshot_id) == (EntryStatus.EXISTING, first)
    assert (entries["c"].status, entries["c"].snapshot_id) == (EntryStatus.ADDED, head(t))
    if version > 1:
        assert [entries[n].sequence_number for n in "abc"] == [1, 2, 3]
        assert t.manifests()[0].min_sequence_number == 1
    if version == 3:
        assert len({entries[n].data_file.first_row_id for n in "abc"}) == 3
        assert (entries["a"].data_file.first_row_id, entries["b"].data_file.first_row_id) == (0, 2)
    assert summary(t)["manifests-replaced"] == "2"
    assert t.metadata_files() == t.referenced(), "the manifest that was merged at once is gone"


@pytest.mark.with_lists("a root takes the files of appends")
def test_a_fast_append_merges_nothing() -> None:
    t = commit_table(properties={"commit.manifest.min-count-to-merge": "2"})
    for name in ("a", "b", "c"):
        act(t, AppendFiles(data_files=(data_file(name),), merge=False))
    assert len(t.manifests()) == 3


@pytest.mark.with_lists("so few files are in the root itself")
def test_large_appends_are_cut_into_manifests_of_the_target_size() -> None:
    t = commit_table(properties={"commit.manifest.target-size-bytes": "1000"})
    append(t, *(data_file(f"{i:02d}") for i in range(40)))
    assert len(t.manifests()) > 1
    assert len(t.live()) == 40


def test_a_file_offered_twice_is_refused() -> None:
    """docs/conformance.md 97."""
    t = commit_table()
    with pytest.raises(InvalidRequestError, match="added twice"):
        append(t, data_file("a"), data_file("a"))
    assert t.metadata_files() == set()


ALREADY = r"1 of the files to add are in table mem://t already, among them mem://t/data/a;"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_data_file_that_is_live_cannot_be_added_again(version: int) -> None:
    """docs/conformance.md 97."""
    t = commit_table(format_version=version)
    append(t, data_file("a"), data_file("b"))
    append(t, data_file("c"))
    before = t.metadata_files()
    offered = (data_file("new"), data_file("a"))
    removed = RemoveFiles(data_paths=frozenset({"mem://t/data/b"}))
    checks = ConflictChecks(base_snapshot_id=head(t))
    actions: list[SnapshotAction] = [
        AppendFiles(data_files=offered),
        AppendFiles(data_files=offered, merge=False),
        OverwriteFiles(removal=removed, data_files=offered),
        RewriteFiles(data_files=offered, checks=checks),
    ]
    if version > 1:
        actions.append(RowDelta(data_files=offered, checks=checks))
    for action in actions:
        with pytest.raises(InvalidRequestError, match=ALREADY):
            act(t, action)
    assert t.live() == [f"mem://t/data/{n}" for n in "abc"]
    assert t.metadata_files() == before


def test_a_data_file_may_be_added_where_it_is_not_live() -> None:
    t = commit_table()
    append(t, data_file("a"), data_file("b"))
    commit_steps(
        t.catalog,
        t.loaded,
        [MetadataStep(lambda m: create_ref(m, "old", "branch"))],
        clock=t.clock.clock,
    )
    removed = RemoveFiles(data_paths=frozenset({"mem://t/data/a"}))
    act(t, OverwriteFiles(removal=removed, data_files=(data_file("a", rows=3),)))
    assert t.live() == ["mem://t/data/a", "mem://t/data/b"]
    act(t, DeleteFiles(removal=removed))
    append(t, data_file("a"))
    assert t.live() == ["mem://t/data/a", "mem://t/data/b"]
    with pytest.raises(InvalidRequestError, match=ALREADY):
        append(t, data_file("a"), branch="old")


def test_a_transaction_cannot_add_a_file_twice() -> None:
    t = commit_table()
    transaction = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock).transaction()
    transaction.add_snapshot(AppendFiles(data_files=(data_file("a"),)))
    transaction.add_snapshot(AppendFiles(data_files=(data_file("a"),)))
    with pytest.raises(InvalidRequestError, match=ALREADY):
        transaction.commit()
    assert t.live() == []


def test_files_that_the_writer_made_are_looked_for_in_no_manifest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    t = commit_table()
    append(t, data_file("a"))
    monkeypatch.setattr(commit_snapshot, "read_live_paths", not_asked)
    files = [data_file("b")]
    written = WrittenFiles(t.io, files)
    commit_append(t.catalog, t.loaded, t.io, files, written_files=written, clock=t.clock.clock)
    # Other files are looked for: in a manifest, or in the root that this process has written.
    with pytest.raises((AssertionError, InvalidRequestError), match=f"was read|{ALREADY}"):
        append(t, data_file("a"))


def not_asked(*_: Any) -> Any:
    raise AssertionError("a manifest was read")


def test_files_to_remove_must_be_there() -> None:
    t = commit_table()
    append(t, data_file("a"))
    with pytest.raises(ConcurrentChangeError, match="mem://t/data/b"):
        act(
            t,
            OverwriteFiles(
                removal=RemoveFiles(data_paths=frozenset({"mem://t/data/b"})),
                data_files=(data_file("c"),),
            ),
        )


def test_manifests_without_a_file_to_remove_are_not_taken_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    t = commit_table(format_version=3)
    append(t, data_file("a"))
    append(t, data_file("b"))
    for name in "ab":
        checks = ConflictChecks(base_snapshot_id=head(t))
        act(t, RowDelta(delete_files=(vector(f"dv-{name}", name),), checks=checks))
    read: list[str] = []

    def noted(function: Callable[..., Iterator[ManifestEntry]]) -> None:
        def noting(*arguments: Any) -> list[ManifestEntry]:
            entries = list(function(*arguments))
            read.extend(e.data_file.file_path.rsplit("/", 1)[1] for e in entries)
            return entries

        monkeypatch.setattr(commit_snapshot, function.__name__, noting)

    noted(read_manifest_entries)
    noted(entries_of)
    act(t, DeleteFiles(removal=RemoveFiles(data_paths=frozenset({"mem://t/data/a"}))))
    assert sorted(read) == ["a", "dv-a.puffin"]
    live = by_path([e for e in t.entries() if e.is_live])
    assert sorted(live) == ["b", "dv-b.puffin"]


def test_deletion_vectors_go_with_their_data_file() -> None:
    """docs/conformance.md 39."""
    t = commit_table(format_version=3)
    append(t, data_file("a", rows=5), data_file("b", rows=5))
    checks = ConflictChecks(base_snapshot_id=head(t))
    act(
        t,
        RowDelta(delete_files=(vector("p", "a"), vector("p", "b", offset=44)), checks=checks),
    )
    assert summary(t)["operation"] == "delete"
    assert summary(t)["added-dvs"] == "2"
    assert summary(t)["added-files-size"] == "80", "the blobs, not the file"
    assert summary(t)["total-position-deletes"] == "2"
    act(t, DeleteFiles(removal=RemoveFiles(data_paths=frozenset({"mem://t/data/a"}))))
    live = [e.data_file.referenced_data_file for e in t.entries() if e.is_live]
    assert sorted(live, key=str) == [None, "mem://t/data/b"]
    assert summary(t)["removed-dvs"] == "1"
    assert all(
        m.first_row_id is None for m in t.manifests() if m.content is ManifestContent.DELETES
    )


def test_a_vector_replaces_the_one_before_it() -> None:
    """docs/conformance.md 33."""
    t = commit_table(format_version=3)
    append(t, data_file("a", rows=5))
    old = vector("p", "a")
    act(t, RowDelta(delete_files=(old,), checks=ConflictChecks(base_snapshot_id=head(t))))
    checks = ConflictChecks(base_snapshot_id=head(t))
    with pytest.raises(ConcurrentChangeError, match="already has a deletion vector"):
        act(t, RowDelta(delete_files=(vector("q", "a", rows=2),), checks=checks))
    act(
        t,
        RowDelta(
            delete_files=(vector("q", "a", rows=2),),
            removed_deletes=frozenset({delete_file_id(old)}),
            checks=checks,
        ),
    )
    assert t.live() == ["mem://t/data/a", "mem://t/data/q.puffin"]
    with pytest.raises(InvalidRequestError, match="two deletion vectors"):
        act(
            t,
            RowDelta(
                delete_files=(vector("r", "a"), vector("s", "a")),
                checks=ConflictChecks(base_snapshot_id=head(t)),
            ),
        )


def test_delete_files_fit_the_format_version() -> None:
    """docs/conformance.md 34."""
    for version, file, message in (
        (1, position_deletes("d", target="a"), "version 1 tables have none"),
        (2, vector("p", "a"), "version 2 tables have none"),
        (3, position_deletes("d", target="a"), "write deletion vectors"),
        (
            2,
            replace(position_deletes("d", target="a"), content=FileContent.EQUALITY_DELETES),
            "equality ids",
        ),
        (3, replace(vector("p", "a"), content_offset=None), "offset and size"),
    ):
        t = commit_table(format_version=version)
        checks = ConflictChecks(base_snapshot_id=None)
        with pytest.raises(InvalidRequestError, match=message):
            act(t, RowDelta(delete_files=(file,), checks=checks))


def test_an_upsert_is_an_overwrite_and_its_deletes_have_its_sequence_number() -> None:
    """docs/conformance.md 22 and 40."""
    t = commit_table(partitioned=True)
    append(t, data_file("a", "x"))
    deletes = replace(
        position_deletes("d", "x"), content=FileContent.EQUALITY_DELETES, equality_ids=(1,)
    )
    checks = ConflictChecks(base_snapshot_id=head(t))
    act(t, RowDelta(data_files=(data_file("b", "x"),), delete_files=(deletes,), checks=checks))
    entries = by_path(t.entries())
    assert (entries["b"].sequence_number, entries["d"].sequence_number) == (2, 2)
    assert summary(t)["operation"] == "overwrite"
    assert summary(t)["added-equality-delete-files"] == "1"
    assert summary(t)["total-equality-deletes"] == "2"


@pytest.mark.with_lists("a root is not a manifest with a number of its own")
def test_compaction_keeps_the_data_sequence_number() -> None:
    """docs/conformance.md 6 and 40."""
    t = commit_table()
    append(t, data_file("a"))
    append(t, data_file("b"))
    act(
        t,
        RewriteFiles(
            removed_data_paths=frozenset({"mem://t/data/a", "mem://t/data/b"}),
            data_files=(data_file("c", rows=2),),
            data_sequence_number=2,
            checks=ConflictChecks(base_snapshot_id=head(t)),
        ),
    )
    entry = by_path(t.entries())["c"]
    assert (entry.sequence_number, entry.file_sequence_number) == (2, 3)
    added = next(m for m in t.manifests() if m.added_files_count)
    assert (added.min_sequence_number, added.sequence_number) == (2, 3)
    assert summary(t)["operation"] == "replace"


def test_snapshot_properties_of_users_are_in_the_summary() -> None:
    t = commit_table(partitioned=True, properties={"write.summary.partition-limit": "2"})
    append(
        t,
        data_file("a", "x", rows=2),
        snapshot_properties={"who": "me", "added-records": "wrong"},
        write_id="w-1",
    )
    properties = summary(t)
    assert properties["who"] == "me"
    assert properties["iceberg-pyspark.write-id"] == "w-1"
    assert properties["added-records"] == "2"
    assert properties["partition-summaries-included"] == "true"
    assert (
        properties["partitions.part=x"] == "added-files-size=20,added-data-files=1,added-records=2"
    )
