"""Rewritten manifests have the same entries with the same numbers, clustered by partition."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.removals import RemoveFiles
from iceberg_pyspark.changes.snapshot_changes import AppendFiles, DeleteFiles, RowDelta
from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError
from iceberg_pyspark.spec.manifests import EntryStatus, FileContent, ManifestContent, ManifestEntry
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.maintenance.rewrites import rewrite_manifests
from iceberg_pyspark.table.maintenance.rewrites.rewrite_manifests import RewrittenManifests
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import CommitTable, commit_table, data_file
from tests.support.hooked_storage import HookedFileIO, once
from tests.support.row_commits import SMALL_ROOTS
from tests.support.table_integrity import live_entries

pytestmark = pytest.mark.usefixtures("each_version")

TARGET = "commit.manifest.target-size-bytes"


def a_table(version: int | None = None, properties: Mapping[str, str] | None = None) -> CommitTable:
    return commit_table(partitioned=True, properties=properties, format_version=version)


def users(t: CommitTable, io: Any = None) -> Table:
    return Table(t.catalog, t.loaded, io=io or t.io, clock=t.clock.clock)


def append(t: CommitTable, *files: Any) -> None:
    action = AppendFiles(data_files=files, merge=False)
    commit_action(t.catalog, t.loaded, t.io, action, clock=t.clock.clock)


def appends(t: CommitTable, count: int, parts: str = "abc") -> None:
    for i in range(count):
        part = parts[i % len(parts)]
        append(t, data_file(f"{part}{i}", part, rows=i + 1, lower_bounds={1: bytes([i])}))


def make_small(t: CommitTable) -> None:
    """Set a target size so small that a manifest gets only a few entries."""
    users(t).update_properties().set({TARGET: "100"}).commit()


def delete(t: CommitTable, name: str) -> None:
    removal = RemoveFiles(data_paths=frozenset({f"mem://t/data/{name}"}))
    commit_action(t.catalog, t.loaded, t.io, DeleteFiles(removal=removal), clock=t.clock.clock)


def add_deletes(t: CommitTable, part: str, name: str) -> None:
    deletes = data_file(name, part, content=FileContent.EQUALITY_DELETES, equality_ids=(1,))
    checks = ConflictChecks(base_snapshot_id=t.metadata.current_snapshot_id)
    action = RowDelta(delete_files=(deletes,), checks=checks)
    commit_action(t.catalog, t.loaded, t.io, action, clock=t.clock.clock)


def entries(t: CommitTable) -> Counter[str]:
    """Return the live entries with all their numbers, regardless of status."""
    snapshot = t.metadata.current_snapshot
    assert snapshot is not None
    return Counter(
        repr(replace(e, status=EntryStatus.EXISTING))
        for e in live_entries(t.metadata, t.io, snapshot)
    )


def rewrite(t: CommitTable, **arguments: Any) -> RewrittenManifests:
    return users(t).maintenance().rewrite_manifests(**arguments)


def done(rewritten: int, added: int) -> RewrittenManifests:
    return RewrittenManifests(rewritten_manifests_count=rewritten, added_manifests_count=added)


def ranges(t: CommitTable) -> list[tuple[bytes, bytes]]:
    """Return the smallest and the largest partition of each data manifest."""
    result = [m.partitions for m in t.manifests() if m.content is ManifestContent.DATA]
    return sorted((p[0].lower_bound or b"", p[0].upper_bound or b"") for p in result if p)


@pytest.mark.with_lists("the version is a parameter")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_entries_keep_their_numbers(version: int) -> None:
    t = a_table(version)
    appends(t, 6)
    delete(t, "b1")
    before, location = entries(t), t.loaded.metadata_location
    assert rewrite(t, dry_run=True) == done(6, 1)
    assert t.loaded.metadata_location == location
    assert rewrite(t) == done(6, 1)
    assert entries(t) == before
    [manifest] = t.manifests()
    counts = (manifest.added_files_count, manifest.deleted_files_count)
    assert (*counts, manifest.existing_files_count) == (0, 0, 5)
    paths = [e.data_file.file_path[-2:] for e in t.entries()]
    assert [p[0] for p in paths] == sorted(p[0] for p in paths)
    snapshot = t.metadata.current_snapshot
    assert snapshot is not None
    assert snapshot.operation == "replace"
    summary = {k: v for k, v in snapshot.summary.items() if k.startswith(("manifests", "entries"))}
    assert summary == {
        "manifests-created": "1",
        "manifests-kept": "0",
        "manifests-replaced": "6",
        "entries-processed": "5",
    }
    assert snapshot.summary["total-data-files"] == "5"
    assert t.metadata_files() == t.referenced()


@pytest.mark.with_lists("the version is a parameter")
@pytest.mark.parametrize("version", [2, 3])
def test_delete_manifests_are_rewritten(version: int) -> None:
    t = a_table(version)
    appends(t, 3)
    for i, part in enumerate("abab"):
        add_deletes(t, part, f"d{i}")
    before = entries(t)
    assert rewrite(t) == done(7, 2)
    assert entries(t) == before
    assert [m.content for m in t.manifests()] == [ManifestContent.DATA, ManifestContent.DELETES]
    assert rewrite(t) == done(0, 0)


@pytest.mark.with_lists("so few files are in the root itself")
@pytest.mark.parametrize("is_small", [False, True])
def test_a_second_run_does_nothing(is_small: bool) -> None:
    t = a_table()
    appends(t, 40, "abcdefgh")
    if is_small:
        make_small(t)
    first = rewrite(t)
    assert first.rewritten_manifests_count == 40
    assert (first.added_manifests_count > 2) == is_small
    location = t.loaded.metadata_location
    assert rewrite(t) == RewrittenManifests()
    assert t.loaded.metadata_location == location


@pytest.mark.with_lists("leaves have no summaries of partitions")
def test_partitions_lie_side_by_side() -> None:
    t = a_table()
    for i in range(12):
        append(t, *(data_file(f"{part}{i}", part) for part in ("h", "a", None, "d")))
    make_small(t)
    assert ranges(t) == [(b"a", b"h")] * 12
    rewrite(t)
    assert len(ranges(t)) < 12
    bounds = ranges(t)
    assert all(left[1] <= right[0] for left, right in pairwise(bounds))
    # Files with a null partition value come first.
    first = t.manifests()[0].partitions
    assert first is not None
    assert first[0].contains_null
    assert not any(m.partitions[0].contains_null for m in t.manifests()[-1:] if m.partitions)


def test_one_manifest_stays() -> None:
    t = a_table()
    assert rewrite(t) == RewrittenManifests()
    appends(t, 1)
    assert rewrite(t) == RewrittenManifests()
    assert len(t.metadata.snapshots) == 1


def test_one_that_is_too_large_is_cut() -> None:
    t = a_table()
    append(t, *(data_file(f"{part}{i}", part) for i in range(20) for part in "ab"))
    assert len(t.manifests()) == 1
    make_small(t)
    before = entries(t)
    count = rewrite(t).added_manifests_count
    assert count > 1
    assert len(t.manifests()) == count
    assert entries(t) == before
    assert rewrite(t) == RewrittenManifests()


@pytest.mark.with_lists("so few files are in the root itself")
def test_only_one_spec() -> None:
    t = a_table()
    appends(t, 4)
    users(t).update_spec().add_field("id", "bucket[4]").commit()
    for i in range(3):
        append(t, data_file(f"n{i}", "a", i, spec_id=1))
    before = entries(t)
    assert rewrite(t) == done(3, 1)
    assert rewrite(t, spec_id=0) == done(4, 1)
    assert entries(t) == before
    with pytest.raises(InvalidRequestError, match="has no partition spec 7; its specs are 0, 1"):
        rewrite(t, spec_id=7)


@pytest.mark.with_lists("so few files are in the root itself")
def test_sort_by() -> None:
    t = a_table()
    users(t).update_spec().add_field("id", "bucket[4]", "bucket").commit()
    for i in range(8):
        append(t, data_file(f"f{i}", "ab"[i % 2], (i // 2) % 4, spec_id=1))
    before = entries(t)
    assert rewrite(t, sort_by=["bucket"]) == done(8, 1)
    assert [e.data_file.partition[1] for e in t.entries()] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert entries(t) == before
    with pytest.raises(InvalidRequestError, match="cannot be sorted by id; the partition fields"):
        rewrite(t, sort_by=["id"])


@pytest.mark.with_lists("the table becomes one of version 3")
def test_row_ids_of_files_older_than_version_3() -> None:
    """Such files get row ids in the first commit of version 3, and keep these ids."""
    t = a_table()
    appends(t, 3)
    users(t).update_properties().set({"format-version": "3"}).commit()
    rewrite(t)
    ids = {e.data_file.file_path: e.data_file.first_row_id for e in t.entries()}
    assert sorted(ids.values(), key=lambda i: i or 0) == [0, 1, 4] or None not in ids.values()
    appends(t, 3, "xyz")
    rewrite(t)
    now = {e.data_file.file_path: e.data_file.first_row_id for e in t.entries()}
    assert ids.items() <= now.items()


def meanwhile(t: CommitTable, act: Callable[[], object]) -> Table:
    """Return the table with a store in which another client acts before the list is written."""
    done_once = once("open_output", "before", act)

    def hook(name: str, location: str, moment: Any) -> None:
        if "snap-" in location:
            done_once(name, location, moment)

    return users(t, HookedFileIO(t.io, hook))


def test_concurrent_append_is_kept() -> None:
    t = a_table(3)
    appends(t, 4)
    table = meanwhile(t, lambda: append(t, data_file("late", "z")))
    assert table.maintenance().rewrite_manifests() == done(4, 1)
    assert len(t.manifests()) == 2
    assert len(t.live()) == 5
    assert t.metadata_files() == t.referenced()


@pytest.mark.with_lists("so few files are in the root itself")
def test_a_delete_meanwhile_is_a_conflict() -> None:
    t = a_table()
    appends(t, 4)
    table = meanwhile(t, lambda: delete(t, "a0"))
    with pytest.raises(ConcurrentChangeError, match="1 of the manifests to rewrite have changed"):
        table.maintenance().rewrite_manifests()
    assert len(t.live()) == 3
    assert t.metadata_files() == t.referenced()
    assert rewrite(t).rewritten_manifests_count > 0
    assert len(t.live()) == 3


@pytest.mark.with_lists("the version is 4")
def test_a_delete_meanwhile_is_kept_in_version_4() -> None:
    t = a_table(4, SMALL_ROOTS)
    appends(t, 12)
    table = meanwhile(t, lambda: delete(t, "a0"))
    assert table.maintenance().rewrite_manifests().rewritten_manifests_count > 0
    assert len(t.live()) == 11


@pytest.mark.with_lists("the table becomes one of version 3")
def test_first_row_ids_given_meanwhile_are_a_conflict() -> None:
    """An append assigns row ids to the files of an upgraded table, and these ids must stay."""
    t = a_table()
    appends(t, 3)
    users(t).update_properties().set({"format-version": "3"}).commit()
    table = meanwhile(t, lambda: append(t, data_file("late", "z")))
    with pytest.raises(ConcurrentChangeError, match="have changed or are no longer in it"):
        table.maintenance().rewrite_manifests()


@settings(max_examples=settings().max_examples // 4, deadline=None)
@given(
    version=st.sampled_from([1, 2, 3]),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["append", "append", "delete", "deletes", "rewrite"]),
            st.sampled_from(["a", "b", "c", None]),
            st.integers(1, 3),
        ),
        max_size=12,
    ),
    target=st.sampled_from(["100", "8388608"]),
    batch_bytes=st.sampled_from([1, 1 << 24]),
)
def test_the_same_files_before_and_after(
    version: int, steps: list[tuple[str, Any, int]], target: str, batch_bytes: int
) -> None:
    """For any history, no live entry changes a number, and a second run does nothing.

    This holds whether the entries are collected in one batch or in many.
    """
    with mock.patch.object(rewrite_manifests, "_BATCH_BYTES", batch_bytes):
        check_same_files(version, steps, target)


def check_same_files(version: int, steps: list[tuple[str, Any, int]], target: str) -> None:
    t = a_table(version, {TARGET: target})
    live: list[str] = []
    for number, (step, part, count) in enumerate([("append", "a", 1), *steps, ("rewrite", "a", 1)]):
        if step == "append":
            names = [f"f{number}-{i}" for i in range(count)]
            append(t, *(data_file(n, part, rows=count + 1) for n in names))
            live += names
        elif step == "delete" and live:
            delete(t, live.pop(number % len(live)))
        elif step == "deletes" and version > 1:
            add_deletes(t, part, f"d{number}")
        elif step == "rewrite":
            before = entries(t)
            sequence_number = t.metadata.last_sequence_number
            rewrite(t)
            assert entries(t) == before
            assert all((e.sequence_number or 0) <= sequence_number for e in t.entries())
            assert rewrite(t) == RewrittenManifests()


@pytest.mark.with_lists("so few files are in the root itself")
def test_rewrite_holds_few_entries_as_objects() -> None:
    t = a_table()
    append(t, *(data_file(f"f{i}", "ab"[i % 2]) for i in range(2000)))
    append(t, data_file("last", "a"))
    objects: list[int] = []

    def alive() -> int:
        return sum(isinstance(o, ManifestEntry) for o in gc.get_objects())

    def count(name: str, _location: str, _moment: str) -> None:
        if name == "open_output":
            objects.append(alive() - before)

    gc.collect()
    before = alive()
    users(t, HookedFileIO(t.io, count)).maintenance().rewrite_manifests()
    assert len(t.live()) == 2001
    assert len(objects) == 2
    assert max(objects) < 100


@pytest.mark.with_lists("leaves have no summaries of partitions")
def test_planning_opens_fewer_manifests() -> None:
    t = commit_table(partitioned=True, location="mem://wh/t")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("part", pa.string())])
    parts = [chr(ord("a") + i) for i in range(16)]
    table = users(t)
    for i in range(4):
        table.append(pa.table({"id": [i] * 16, "part": parts}, schema=schema))

    def manifests_opened() -> int:
        opened: set[str] = set()

        def note(_name: str, location: str, _moment: str) -> None:
            if location.endswith("avro") and "snap-" not in location:
                opened.add(location)

        result = users(t, HookedFileIO(t.io, note)).scan(filter="part = 'c'").to_arrow()
        assert sorted(result["id"].to_pylist()) == [0, 1, 2, 3]
        return len(opened)

    make_small(t)
    assert manifests_opened() == len(t.manifests()) == 4
    rewrite(t)
    assert manifests_opened() <= 2 < len(t.manifests())
