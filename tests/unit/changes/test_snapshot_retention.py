"""Specification, "Snapshot Retention Policy": which snapshots and refs expire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from iceberg_pyspark.changes.changes import AssertRefSnapshotId, RemoveSnapshotRef, RemoveSnapshots
from iceberg_pyspark.changes.new_table import new_table_metadata
from iceberg_pyspark.changes.snapshot_retention import (
    Expiry,
    Retention,
    check_refs_stay_valid,
    expiry,
    expiry_changes,
    unused_schemas,
)
from iceberg_pyspark.errors import CommitConflictError, InvalidRequestError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot, SnapshotRef
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import LongType, NestedField

NOW = 1_700_000_000_000
DAY = 86_400_000
A = NestedField(field_id=1, name="a", type=LongType())
B = NestedField(field_id=2, name="b", type=LongType())


def table(
    days: Mapping[int, float],
    refs: Mapping[str, SnapshotRef] | None = None,
    *,
    parents: Mapping[int, int] | None = None,
    properties: Mapping[str, str] | None = None,
) -> TableMetadata:
    """Create snapshots by their age in days; `parents` overrides the previous snapshot."""
    metadata = new_table_metadata(
        Schema(fields=(A,)), None, None, "mem://t", properties or {}, table_uuid="u", now_ms=NOW
    )
    before = {i: i - 1 for i in days if i - 1 in days} | dict(parents or {})
    snapshots = [
        Snapshot(
            snapshot_id=i,
            parent_snapshot_id=before.get(i),
            timestamp_ms=NOW - int(age * DAY),
            manifest_list=f"l{i}",
            schema_id=0,
        )
        for i, age in days.items()
    ]
    head = SnapshotRef(snapshot_id=max(days))
    all_refs = {MAIN: head} | dict(refs or {})
    return replace(
        metadata,
        snapshots=tuple(snapshots),
        refs=all_refs,
        current_snapshot_id=all_refs[MAIN].snapshot_id,
    )


FIVE = {1: 9, 2: 7, 3: 6, 4: 4, 5: 1}


def tag(snapshot_id: int, days: float | None = None) -> SnapshotRef:
    age = None if days is None else int(days * DAY)
    return SnapshotRef(snapshot_id=snapshot_id, type="tag", max_ref_age_ms=age)


def branch(
    snapshot_id: int,
    *,
    keep: int | None = None,
    days: float | None = None,
    own: float | None = None,
) -> SnapshotRef:
    return SnapshotRef(
        snapshot_id=snapshot_id,
        min_snapshots_to_keep=keep,
        max_snapshot_age_ms=None if days is None else int(days * DAY),
        max_ref_age_ms=None if own is None else int(own * DAY),
    )


@dataclass(frozen=True)
class Vector:
    """A table, and what must expire."""

    metadata: TableMetadata
    expected: Expiry
    retention: Retention = field(default_factory=Retention)


def days_ago(days: float, retain_last: int | None = None) -> Retention:
    return Retention(older_than_ms=NOW - int(days * DAY), retain_last=retain_last)


KEEP_TWO = {"history.expire.min-snapshots-to-keep": "2"}
ONE_DAY = {"history.expire.max-snapshot-age-ms": str(DAY)}
REF_DAYS = {"history.expire.max-ref-age-ms": str(5 * DAY)}
SIDE = {1: 9, 2: 8, 3: 7, 4: 2}

VECTORS = {
    "five days by default": Vector(table(FIVE), Expiry((1, 2, 3))),
    "exactly as old stays": Vector(table(FIVE, properties=ONE_DAY), Expiry((1, 2, 3, 4))),
    "older than now, head counts as one": Vector(table(FIVE), Expiry((1, 2, 3, 4)), days_ago(0)),
    "at least so many": Vector(table(FIVE, properties=KEEP_TWO), Expiry((1, 2, 3)), days_ago(0)),
    "the caller's number before the property's": Vector(
        table(FIVE, properties=KEEP_TWO), Expiry((1, 2)), days_ago(0, retain_last=3)
    ),
    "a branch's own settings before the caller's": Vector(
        table(FIVE, {MAIN: branch(5, keep=4, days=0.5)}), Expiry((1,)), days_ago(0, retain_last=1)
    ),
    "a branch's own age": Vector(
        table(FIVE, {MAIN: branch(5, days=6.5)}), Expiry((1, 2)), days_ago(0)
    ),
    "main never expires": Vector(
        table({1: 9, 2: 8}, {MAIN: branch(2, own=1)}), Expiry((1,)), days_ago(0)
    ),
    "a tag keeps its snapshot and no other": Vector(
        table(FIVE, {"t": tag(2)}), Expiry((1, 3, 4)), days_ago(0)
    ),
    "a tag that is too old": Vector(
        table(FIVE, {"t": tag(2, 6.9)}), Expiry((1, 2, 3, 4), ("t",)), days_ago(0)
    ),
    "a tag that is exactly as old": Vector(
        table(FIVE, {"t": tag(2, 7)}), Expiry((1, 3, 4)), days_ago(0)
    ),
    "the table's age of references": Vector(
        table(FIVE, {"t": tag(3), "u": tag(4)}, properties=REF_DAYS), Expiry((1, 2, 3), ("t",))
    ),
    "a branch beside main": Vector(
        table(SIDE, {"b": branch(3)}, parents={4: 1}), Expiry((1, 2)), days_ago(1)
    ),
    "a branch that is too old goes with its snapshots": Vector(
        table(SIDE, {"b": branch(3, own=1)}, parents={4: 1}), Expiry((1, 2, 3), ("b",))
    ),
    "ages are not sorted: the first that is too old ends it": Vector(
        table({1: 1, 2: 9, 3: 1}), Expiry((1, 2))
    ),
    "what no reference has behind it, by age": Vector(
        table({1: 9, 2: 4, 3: 1}, parents={2: 99, 3: 99}), Expiry((1,))
    ),
    "not by number": Vector(
        table({1: 9, 2: 4, 3: 1}, parents={2: 99, 3: 99}), Expiry((1, 2)), days_ago(3)
    ),
    "a reference to nothing": Vector(table({1: 1}, {"x": tag(7)}), Expiry((), ("x",))),
    "snapshots by their ids, however young": Vector(
        table({1: 2, 2: 1, 3: 0}), Expiry((2,)), Retention(snapshot_ids=frozenset({2, 77}))
    ),
    "and old ones with them": Vector(
        table({1: 9, 2: 1, 3: 0}), Expiry((1, 2)), Retention(snapshot_ids=frozenset({2}))
    ),
    "parents in a circle": Vector(table({1: 9, 2: 1}, parents={1: 2}), Expiry((1,))),
}


@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS)
def test_expired_snapshots_and_refs_are_those_of_the_specification(vector: Vector) -> None:
    """docs/conformance.md 91."""
    assert expiry(vector.metadata, vector.retention, NOW) == vector.expected


def test_a_table_without_snapshots() -> None:
    metadata = replace(table({1: 1}), snapshots=(), refs={}, current_snapshot_id=None)
    deleted = expiry(metadata, Retention(older_than_ms=NOW), NOW)
    assert deleted == Expiry()
    assert not expiry_changes(metadata, deleted).updates


def test_a_snapshot_that_a_reference_points_at_is_not_for_the_caller_to_expire() -> None:
    for retention in (frozenset({5}), frozenset({2})):
        with pytest.raises(InvalidRequestError, match=r"cannot expire, because (tag|branch) '"):
            expiry(table(FIVE, {"t": tag(2)}), Retention(snapshot_ids=retention), NOW)
    deleted = expiry(table(FIVE, {"t": tag(2, 1)}), Retention(snapshot_ids=frozenset({2})), NOW)
    assert deleted.refs == ("t",)


@pytest.mark.parametrize("number", [0, -1])
def test_a_branch_keeps_at_least_one(number: int) -> None:
    with pytest.raises(InvalidRequestError, match="retain_last must be at least 1"):
        Retention(retain_last=number)


def test_expiry_requires_unchanged_references() -> None:
    metadata = table(FIVE, {"t": tag(2, 1), "u": tag(4)})
    changes = expiry_changes(metadata, expiry(metadata, Retention(), NOW))
    assert changes.updates == (RemoveSnapshotRef("t"), RemoveSnapshots((1, 2, 3)))
    pinned = {
        r.ref: r.snapshot_id for r in changes.requirements if isinstance(r, AssertRefSnapshotId)
    }
    assert pinned == {"main": 5, "t": 2, "u": 4}


def test_a_new_reference_is_not_lost() -> None:
    metadata = table(FIVE, {"new": branch(2)})
    with pytest.raises(CommitConflictError, match="branch 'new' now points at snapshot 2"):
        check_refs_stay_valid(metadata, [RemoveSnapshots((1, 2))])
    check_refs_stay_valid(metadata, [RemoveSnapshots((1,))])
    check_refs_stay_valid(metadata, [RemoveSnapshotRef("new"), RemoveSnapshots((1, 2))])


def test_schemas_of_dropped_columns_stay_while_something_needs_them() -> None:
    old = Schema(fields=(A, B), schema_id=0)
    between = Schema(fields=(A,), schema_id=1)
    now = Schema(fields=(replace(A, name="c"),), schema_id=2)
    metadata = replace(
        table({1: 9, 2: 1}), schemas=(old, between, now), current_schema_id=2, last_column_id=2
    )
    remaining = replace(metadata.snapshots[1], schema_id=2)
    metadata = replace(metadata, snapshots=(metadata.snapshots[0], remaining))
    deleted = expiry(metadata, Retention(), NOW)
    assert deleted.snapshot_ids == (1,)
    assert unused_schemas(metadata, deleted, {0}, has_deletes=False) == (0, 1)
    assert unused_schemas(metadata, deleted, {0}, has_deletes=True) == (1,)
