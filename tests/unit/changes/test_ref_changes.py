"""Branches, tags, rollback and properties as updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from iceberg_pyspark.changes.apply import apply_updates
from iceberg_pyspark.changes.changes import (
    AddSnapshot,
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUUID,
    AssignUUID,
    Changes,
    SetSnapshotRef,
    combine_requirements,
)
from iceberg_pyspark.changes.conflicts import snapshots_since
from iceberg_pyspark.changes.new_table import new_table_metadata
from iceberg_pyspark.changes.property_changes import PropertyChanges
from iceberg_pyspark.changes.ref_changes import (
    create_ref,
    fast_forward,
    remove_ref,
    rename_branch,
    rollback_to,
    rollback_to_timestamp,
    set_current_snapshot,
    set_retention,
)
from iceberg_pyspark.errors import (
    AlreadyExistsError,
    ConcurrentChangeError,
    InvalidRequestError,
    NoSuchSnapshotError,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot, SnapshotRef
from iceberg_pyspark.spec.table_metadata import TableMetadata, ancestors_of
from iceberg_pyspark.spec.types import LongType, NestedField


def table(*heads: tuple[str, int, int | None]) -> TableMetadata:
    """Create a table with one snapshot per (ref, id, parent)."""
    metadata = new_table_metadata(
        Schema(fields=(NestedField(field_id=1, name="a", type=LongType()),)),
        None,
        None,
        "t",
        {},
        table_uuid="u",
        now_ms=0,
    )
    for ref, number, parent in heads:
        snapshot = Snapshot(
            snapshot_id=number,
            parent_snapshot_id=parent,
            sequence_number=number,
            timestamp_ms=number * 10,
            manifest_list=f"l{number}",
        )
        metadata = apply_updates(
            metadata,
            [AddSnapshot(snapshot), SetSnapshotRef(ref, SnapshotRef(snapshot_id=number))],
            now_ms=number * 10,
            previous_metadata_location=None,
        )
    return metadata


LINE = table(("main", 1, None), ("main", 2, 1), ("b", 3, 2), ("main", 4, 2))
"""main: 1 <- 2 <- 4, branch b: 2 <- 3."""


def after(changes: Changes, metadata: TableMetadata = LINE) -> dict[str, int]:
    result = apply_updates(metadata, changes.updates, now_ms=999, previous_metadata_location=None)
    return {name: ref.snapshot_id for name, ref in result.refs.items()}


def test_branches_and_tags_start_at_the_current_or_given_snapshot() -> None:
    assert after(create_ref(LINE, "t", "tag"))["t"] == 4
    changes = create_ref(LINE, "c", "branch", snapshot_id=1, min_snapshots_to_keep=2)
    assert after(changes)["c"] == 1
    assert changes.requirements == (AssertTableUUID("u"), AssertRefSnapshotId("c", None))


def test_a_reference_is_created_once_and_keeps_its_kind() -> None:
    with pytest.raises(AlreadyExistsError, match="branch 'b'"):
        create_ref(LINE, "b", "branch")
    assert after(create_ref(LINE, "b", "branch", replace_existing=True))["b"] == 4
    with pytest.raises(InvalidRequestError, match="cannot become a tag"):
        create_ref(LINE, "b", "tag", replace_existing=True)


def test_references_are_removed_and_renamed() -> None:
    assert after(remove_ref(LINE, "b", "branch")) == {"main": 4}
    assert after(rename_branch(LINE, "b", "c")) == {"main": 4, "c": 3}
    with pytest.raises(AlreadyExistsError, match="'main'"):
        rename_branch(LINE, "b", "main")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda: remove_ref(LINE, "main", "branch"), InvalidRequestError),
        (lambda: rename_branch(LINE, "main", "x"), InvalidRequestError),
        (lambda: remove_ref(LINE, "b", "tag"), InvalidRequestError),
        (lambda: remove_ref(LINE, "x", "tag"), NoSuchSnapshotError),
        (lambda: create_ref(LINE, "", "tag"), InvalidRequestError),
        (lambda: create_ref(LINE, "t", "tag", snapshot_id=9), NoSuchSnapshotError),
        (lambda: create_ref(table(), "t", "tag"), NoSuchSnapshotError),
        (lambda: create_ref(LINE, "t", "tag", max_ref_age_ms=0), InvalidRequestError),
        (lambda: set_retention(LINE, "x", max_ref_age_ms=1), NoSuchSnapshotError),
        (lambda: set_current_snapshot(LINE, 9), NoSuchSnapshotError),
        (lambda: rollback_to(LINE, 3), InvalidRequestError),
        (lambda: rollback_to(LINE, 9), NoSuchSnapshotError),
        (lambda: rollback_to_timestamp(LINE, 10), NoSuchSnapshotError),
        (lambda: fast_forward(LINE, "b", "main"), InvalidRequestError),
        (lambda: fast_forward(LINE, "b", "x"), NoSuchSnapshotError),
    ],
)
def test_impossible_reference_change_is_refused(
    change: Callable[[], Changes], error: type[Exception]
) -> None:
    with pytest.raises(error):
        change()


def test_roll_back_goes_to_ancestors_and_set_current_anywhere() -> None:
    assert after(rollback_to(LINE, 1))["main"] == 1
    assert after(rollback_to_timestamp(LINE, 40))["main"] == 2
    assert after(set_current_snapshot(LINE, 3))["main"] == 3
    assert set_current_snapshot(LINE, 4).updates == ()
    assert rollback_to(LINE, 1).requirements[-1] == AssertRefSnapshotId("main", 4)


def test_a_branch_moves_forward_only() -> None:
    ahead = table(("main", 1, None), ("main", 2, 1), ("b", 3, 2))
    assert after(fast_forward(ahead, "main", "b"), ahead) == {"main": 3, "b": 3}
    assert after(fast_forward(ahead, "new", "b"), ahead)["new"] == 3


def test_retention_keeps_fields_that_are_not_given() -> None:
    first = set_retention(LINE, "b", min_snapshots_to_keep=3)
    metadata = apply_updates(LINE, first.updates, now_ms=1, previous_metadata_location=None)
    second = set_retention(metadata, "b", max_snapshot_age_ms=7)
    update = second.updates[0]
    assert isinstance(update, SetSnapshotRef)
    assert (update.ref.min_snapshots_to_keep, update.ref.max_snapshot_age_ms) == (3, 7)
    assert update.ref.snapshot_id == 3


def test_ancestors_end_where_snapshots_were_expired() -> None:
    assert [s.snapshot_id for s in ancestors_of(LINE, LINE.current_snapshot)] == [4, 2, 1]
    assert list(ancestors_of(LINE, None)) == []


def test_of_two_requirements_about_one_thing_the_first_counts() -> None:
    combined = combine_requirements(
        [
            Changes(requirements=(AssertRefSnapshotId("main", 1), AssertCurrentSchemaId(0))),
            Changes(
                requirements=(
                    AssertRefSnapshotId("main", 2),
                    AssertRefSnapshotId("b", 3),
                    AssertCurrentSchemaId(1),
                )
            ),
        ]
    )
    assert combined == [
        AssertRefSnapshotId("main", 1),
        AssertCurrentSchemaId(0),
        AssertRefSnapshotId("b", 3),
    ]


def test_a_uuid_that_the_commit_gives_is_not_required() -> None:
    combined = combine_requirements(
        [
            Changes(updates=(AssignUUID("a"),)),
            Changes(requirements=(AssertTableUUID("a"), AssertCurrentSchemaId(0))),
            Changes(requirements=(AssertTableUUID("b"),)),
        ]
    )
    assert combined == [AssertCurrentSchemaId(0), AssertTableUUID("b")]


def test_properties_are_set_and_removed_and_format_version_upgrades() -> None:
    changes = PropertyChanges().set({"k": "v", "format-version": "3"}).remove("gone").changes(LINE)
    metadata = apply_updates(LINE, changes.updates, now_ms=1, previous_metadata_location=None)
    assert metadata.format_version == 3
    assert metadata.properties["k"] == "v"
    assert changes.requirements == (AssertTableUUID("u"),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: PropertyChanges().set({"uuid": "x"}), "reserved"),
        (lambda: PropertyChanges().remove("current-schema"), "reserved"),
        (lambda: PropertyChanges().remove("format-version"), "cannot be removed"),
        (lambda: PropertyChanges().set({"k": "v"}).remove("k"), "both set and removed"),
        (lambda: PropertyChanges().remove("k").set({"k": "v"}), "both set and removed"),
        (lambda: PropertyChanges().set({"format-version": "x"}).changes(LINE), "format-version"),
        (
            lambda: PropertyChanges().set({"commit.retry.min-wait-ms": "-1"}).changes(LINE),
            "commit.retry.min-wait-ms",
        ),
    ],
)
def test_properties_that_cannot_be_set_are_refused(
    change: Callable[[], object], message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        change()


@pytest.mark.timeout(10)
def test_parents_in_a_circle_end() -> None:
    first, second, *_ = LINE.snapshots
    circle = replace(
        LINE,
        snapshots=(replace(first, parent_snapshot_id=2), *LINE.snapshots[1:]),
    )
    ids = [s.snapshot_id for s in ancestors_of(circle, circle.snapshot(4))]
    assert ids == [4, 2, 1]
    assert second.parent_snapshot_id == 1
    with pytest.raises(ConcurrentChangeError, match="is not an ancestor"):
        list(snapshots_since(circle, circle.snapshot(4), 77))
