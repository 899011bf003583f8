"""`Table.verify()` of tables with root manifests: each rule that is broken alone is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from iceberg_pyspark.formats.puffin.deletion_vectors import encode_deletion_vector
from iceberg_pyspark.table.verify.findings import TableVerification
from tests.amounts import FULL_WORK
from tests.support.root_tables import Row
from tests.unit.table.verify.entry_tables import (
    ADDED,
    DELETED,
    EXISTING,
    FIVE,
    EntryTable,
    Leaf,
    data,
    deleted,
    inheriting,
    leaf_of,
    leaf_vector,
    leafy_table,
    tight_table,
    vector,
    worked_example,
)

D1, D2, D3, D4 = (f"data/D{i}.parquet" for i in range(1, 5))
P1, P2, P3 = (f"data/P{i}.puffin" for i in range(1, 4))
E1 = "data/E1.parquet"
A1, L1, L2, M1, M2 = (f"metadata/{name}.parquet" for name in ("A1", "L1", "L2", "M1", "M2"))
V1 = "metadata/V1.puffin"
ID = "version_info.snapshot_id"
SEQUENCE = "version_info.sequence_number"
FILE_SEQUENCE = "version_info.file_sequence_number"
STATUS = "version_info.status"
INLINE = "deletion_vector.inline_content"
OFFSET, SIZE = "deletion_vector.offset", "deletion_vector.size_in_bytes"


def test_the_worked_example_of_the_proposal_is_sound(tmp_path: Path) -> None:
    actual = worked_example().write(tmp_path).verify(check_files=True)
    assert actual.findings == ()
    assert actual.ok
    assert (actual.snapshots, actual.manifests) == (8, 9)
    assert "nothing wrong in 8 snapshots and 9 manifests" in repr(actual)


def test_leaves_that_are_added_and_affiliated_are_sound(tmp_path: Path) -> None:
    assert leafy_table().write(tmp_path).verify(check_files=True).findings == ()


def test_tight_bounds_of_files_and_leaves_are_sound(tmp_path: Path) -> None:
    table = tight_table()
    # An entry without values needs no bounds.
    empty = {"stats.1.lower_bound": None, "stats.1.upper_bound": None}
    table[3].row(D2).update({**empty, "stats.1.null_value_count": 50})
    assert table.write(tmp_path).verify(check_files=True).findings == ()


Change: TypeAlias = Callable[[EntryTable], object]


@dataclass
class Break:
    """A way to break an intact table, and the rule that must be named."""

    rule: str
    how: Change
    table: Callable[[], EntryTable] = worked_example
    also: tuple[str, ...] = ()
    """Rules that are necessarily broken too."""


def set_(number: int, location: str, values: Row, status: int | None = None) -> Change:
    """Set values in the root's row of this location."""
    return lambda table: table[number].row(location, status).update(values)


def in_leaf(number: int, leaf: str, at: int, values: Row) -> Change:
    """Set values in a row of a leaf."""
    return lambda table: table[number].leaves[leaf].rows[at].update(values)


def instead(number: int, leaf: str, at: int, row: Row) -> Change:
    """Replace a row of a leaf."""
    return lambda table: table[number].leaves[leaf].rows.__setitem__(at, row)


def drop(number: int, location: str, status: int | None = None) -> Change:
    """Remove a row from the root."""
    return lambda table: table[number].rows.remove(table[number].row(location, status))


def put(number: int, *rows: Row) -> Change:
    """Append rows to the root."""
    return lambda table: table[number].rows.extend(rows)


def only(count: int) -> Change:
    """Keep only the first commits."""

    def change(table: EntryTable) -> None:
        del table.commits[count:]

    return change


def all_of(*changes: Change) -> Change:
    """Apply changes one after another."""

    def change(table: EntryTable) -> None:
        for one in changes:
            one(table)

    return change


def more(number: int, **values: object) -> Change:
    """Set other values in the snapshot's JSON."""
    names = {name.replace("_", "-"): value for name, value in values.items()}
    return lambda table: table[number].more.update(names)


def content(number: int, word: str) -> Change:
    """Set another declared content of a root."""
    return lambda table: setattr(table[number], "content", word)


def mixed_leaf(table: EntryTable) -> None:
    """Let S4 put its added file into a leaf with older files."""
    leaf = table[4].leaves[M1]
    leaf.rows.append(inheriting(data("D3", ADDED, 4)))
    m1 = leaf_of("M1", leaf, EXISTING, 4, first_row_id=150)
    table[4].rows = [m1, vector("P1", "D1", FIVE, EXISTING, 3)]
    table[4].added_rows = 180
    only(4)(table)


def leaf_without_a_file(table: EntryTable) -> None:
    """Let S5 rewrite a leaf with fewer files than M1 has."""
    only(5)(table)
    leaf = Leaf([data("D1", EXISTING, 1)])
    table[5].leaves["metadata/M5.parquet"] = leaf
    drop(5, M1)(table)
    table[5].rows.insert(0, leaf_of("M5", leaf, EXISTING, 5, first_row_id=180))


def deleted_in_leaf(table: EntryTable) -> None:
    """Let S8 write a leaf with an entry that it removes."""
    leaf = table[8].leaves[M2]
    leaf.rows.append(deleted(data("D1", EXISTING, 1), 8))
    table[8].rows = [leaf_of("M2", leaf, EXISTING, 8, first_row_id=230)]


def smaller_vector(table: EntryTable) -> None:
    """Let S7 ignore that S6 has removed D2, so that D2 is live again."""
    only(7)(table)
    row = leaf_vector("M1", [0], ADDED, 7)
    table[7].row(M1, ADDED).update(row)


BREAKS = [
    Break("timestamp-after-parent", more(3, timestamp_ms=2)),
    Break("file-content", content(3, "data")),
    Break("file-content", lambda t: setattr(t[4].leaves[M1], "content", "delete")),
    Break(
        "types-in-root",
        lambda t: instead(4, M1, 0, {**t[4].row(M1), "location": "x", "file_size_in_bytes": 1})(t),
        also=("record-count", "additions-recorded"),
    ),
    Break("leaf-content", instead(2, L1, 0, inheriting(data("D4", ADDED, 2))), leafy_table),
    Break("known-status", set_(2, D1, {STATUS: 4})),
    Break("vector-iff-type", set_(2, D1, {SIZE: 4})),
    Break("vector-iff-type", set_(8, M2, {INLINE: b"x"})),
    Break("vector-iff-type", all_of(only(3), set_(3, P1, {OFFSET: None, SIZE: None}))),
    Break("vector-place", set_(3, P1, {INLINE: encode_deletion_vector(FIVE)})),
    Break("vector-place", all_of(only(3), set_(3, P1, {OFFSET: None}))),
    Break("vector-place", set_(6, M1, {OFFSET: 4, SIZE: 50}, ADDED)),
    Break("manifest-stats-iff-manifest", set_(2, D1, {"manifest_stats.added_files_count": 1})),
    Break("manifest-stats-iff-manifest", set_(8, M2, {"manifest_stats.added_rows_count": None})),
    Break("equality-ids-iff-equality-deletes", set_(2, D1, {"equality_ids": [1]})),
    Break("equality-ids-iff-equality-deletes", set_(3, E1, {"equality_ids": None}), leafy_table),
    Break("sort-order-of-data", set_(3, P1, {"sort_order_id": 0})),
    Break("first-row-id-of-data", set_(3, P1, {"first_row_id": 7})),
    Break("referenced-file", set_(2, D1, {"referenced_file": D2})),
    Break("file-size-iff-location", set_(3, V1, {"file_size_in_bytes": None}), leafy_table),
    Break("location", set_(2, E1, {"location": None, "file_size_in_bytes": None}), leafy_table),
    Break("file-format", set_(3, P1, {"file_format": "parquet"})),
    Break("file-format", set_(8, M2, {"file_format": "orc"})),
    Break("partition-spec-id", set_(3, D1, {"partition_spec_id": None})),
    Break("partition-spec-id", set_(6, M1, {"partition_spec_id": 1}, ADDED)),
    Break("partition-spec-id", in_leaf(4, M1, 0, {"partition_spec_id": 1})),
    Break(
        "explicit-in-root",
        set_(2, D1, {"first_row_id": None}),
        also=("row-ids", "existing-unchanged"),
    ),
    Break("explicit-in-root", set_(3, P1, {ID: None})),
    Break("explicit-in-root", set_(7, M1, {SEQUENCE: None}, DELETED)),
    Break("inherit-in-leaf", in_leaf(1, A1, 0, {FILE_SEQUENCE: 1}), leafy_table),
    Break("inherit-in-leaf", in_leaf(1, A1, 0, {ID: 9}), leafy_table),
    Break("inherit-in-leaf", in_leaf(1, A1, 0, {SEQUENCE: 1}), leafy_table),
    Break("explicit-in-leaf", in_leaf(8, M2, 0, {ID: None}), also=("existing-unchanged",)),
    Break("manifest-sequence-numbers", set_(8, M2, {FILE_SEQUENCE: 7})),
    Break("manifest-sequence-numbers", set_(8, M2, {SEQUENCE: 7, FILE_SEQUENCE: 7})),
    Break("added-by-this-snapshot", set_(2, D2, {ID: 1}), also=("existing-unchanged",)),
    Break("existing-is-older", all_of(only(2), set_(2, D1, {ID: 2})), also=("existing-unchanged",)),
    Break("deleted-by-this-snapshot", set_(5, P1, {ID: 3})),
    Break(
        "deleted-by-this-snapshot",
        put(6, deleted(vector("P1", "D1", FIVE, DELETED, 3), 5)),
        also=("deleted-was-live",),
    ),
    Break("vector-sequence-number", all_of(only(3), set_(3, P1, {SEQUENCE: 2}))),
    Break("vector-sequence-number", all_of(only(6), set_(6, M1, {SEQUENCE: 5}, ADDED))),
    Break("record-count", set_(8, M2, {"record_count": 3})),
    Break("record-count", set_(6, M1, {"record_count": 2}, ADDED)),
    Break("manifest-stats", set_(8, M2, {"manifest_stats.existing_rows_count": 81})),
    Break("manifest-stats", set_(8, M2, {"manifest_stats.added_files_count": 1})),
    Break("sequence-number-range", set_(8, M2, {"manifest_stats.min_sequence_number": 5})),
    Break("tight-bounds", set_(2, D1, {"stats.1.upper_bound": None}), tight_table),
    Break("tight-bounds", set_(2, D2, {"stats.1.lower_bound": None}), tight_table),
    Break("tight-bounds", set_(7, M1, {"stats.1.tight_bounds": True}, EXISTING), tight_table),
    Break("tight-bounds", in_leaf(8, M2, 1, {"stats.1.tight_bounds": None}), tight_table),
    Break("tight-bounds", in_leaf(4, M1, 0, {"stats.1.lower_bound": None}), tight_table),
    Break("tight-bounds", set_(8, M2, {"stats.1.upper_bound": 41}), tight_table),
    Break("tight-bounds", set_(8, M2, {"stats.1.lower_bound": 0}), tight_table),
    Break("no-mixed-leaf", mixed_leaf, also=("additions-recorded",)),
    Break(
        "no-mixed-leaf",
        all_of(only(1), set_(1, A1, {STATUS: EXISTING})),
        leafy_table,
        also=("additions-recorded",),
    ),
    Break("no-mixed-leaf", deleted_in_leaf),
    Break("no-deleted-leaf", lambda t: put(8, deleted(t[7].row(M1, EXISTING), 8))(t)),
    Break("one-live-manifest-vector", put(6, leaf_vector("M1", [1], ADDED, 6))),
    Break("vector-of-live-manifest", put(5, leaf_vector("M9", [1], ADDED, 5))),
    Break("vector-positions", set_(7, M1, {**leaf_vector("M1", [0, 1, 2], ADDED, 7)}, ADDED)),
    Break("cumulative-manifest-vector", smaller_vector),
    Break("manifest-vector-replacement", drop(7, M1, DELETED)),
    Break("affinity", all_of(only(2), in_leaf(2, L1, 1, {"referenced_file": D3})), leafy_table),
    Break("affinity", set_(3, L1, {"referenced_file": M1}, EXISTING), leafy_table),
    Break("affinity", set_(4, L2, {"referenced_file": A1}), leafy_table),
    Break("parent-removals-recorded", drop(5, P1)),
    Break("parent-removals-recorded", drop(5, D3), also=("additions-recorded",)),
    Break("leaf-contents-kept", leaf_without_a_file),
    Break("additions-recorded", put(8, data("D2", EXISTING, 2))),
    Break(
        "added-is-new",
        all_of(only(2), set_(2, D1, data("D1", ADDED, 2))),
        also=("first-row-id-walk", "existing-unchanged"),
    ),
    Break(
        "added-is-new", set_(3, A1, {STATUS: ADDED}), leafy_table, also=("added-by-this-snapshot",)
    ),
    Break("deleted-was-live", put(5, deleted(vector("P9", "D2", FIVE, DELETED, 3), 5))),
    Break("deleted-was-live", put(5, deleted(data("D3", DELETED, 4), 5))),
    Break("existing-unchanged", set_(3, D1, {"record_count": 99})),
    Break("existing-unchanged", set_(3, D1, {ID: 2})),
    Break("existing-unchanged", set_(5, M1, {ID: 3})),
    Break("existing-unchanged", set_(5, M1, {"first_row_id": 7})),
    Break("vector-removed-with-data-file", all_of(only(7), set_(7, P2, {STATUS: EXISTING, ID: 5}))),
    Break(
        "first-row-id-walk", all_of(only(2), set_(2, D2, {"first_row_id": 101})), also=("row-ids",)
    ),
    Break("first-row-id-walk", more(3, added_rows=1), also=("snapshot-row-ids",)),
    Break("first-row-id-walk", more(2, first_row_id=None)),
    Break("one-vector-per-data-file", all_of(only(5), set_(5, P1, {STATUS: EXISTING, ID: 3}))),
]


def rules_of(result: TableVerification) -> set[str]:
    return {f.rule for f in result.findings}


def cases() -> Iterator[object]:
    """Yield all breaks; `make test` breaks each rule in one way."""
    rules = set[str]()
    for one in BREAKS:
        yield pytest.param(
            one, id=one.rule, marks=[pytest.mark.nightly] if one.rule in rules else []
        )
        rules.add(one.rule)


@pytest.mark.parametrize("broken", [*cases()])
def test_a_rule_that_is_broken_is_named(tmp_path: Path, broken: Break) -> None:
    table, intact = broken.table(), broken.table()
    broken.how(table)
    if not FULL_WORK:
        # One commit after the last changed one shows what later commits make of it.
        pairs = zip(table.commits, intact.commits, strict=False)
        only(max(n for n, (a, b) in enumerate(pairs, 2) if a != b))(table)
    actual = table.write(tmp_path).verify()
    assert broken.rule in rules_of(actual), repr(actual)
    assert rules_of(actual) <= {broken.rule, *broken.also}, repr(actual)
