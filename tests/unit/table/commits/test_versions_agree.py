"""Random operations on tables of version 3, of version 4, and upgraded from 3 to 4.

The tables have the same rows, row ids and lineage after every step. `tests/spark` compares both
ways of reading on random tables of all versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from iceberg_pyspark import Table
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from tests.support.deleted_rows import delete_keys
from tests.support.row_commits import LINEAGE, RowCommitter, table_in_memory

Rows: TypeAlias = Mapping[int, tuple[int, str, int, int]]
"""By id: partition, first letter of the value, row id and sequence number."""

ROOTS: tuple[Mapping[str, str], ...] = (
    {},
    {"write.root.max-data-entries": "2", "write.root.max-delete-entries": "1"},
    {"write.root.max-data-entries": "0", "write.root.max-delete-entries": "0"},
    {"write.root.max-data-entries": "3", "write.root.max-bytes": "1"},
)
# each example takes two seconds
EXAMPLES = settings().max_examples // 4
OPERATIONS = (
    *("append", "append", "delete", "delete", "update", "replace_files", "compact"),
    *("rewrite_data_files", "rewrite_deletes", "rewrite_manifests", "expire_snapshots"),
    *("drop_partition", "delete_key", "cherry_pick", "roll_back"),
)


@dataclass
class Contestant:
    """A table and its writer; `row_ids` are the row ids seen so far."""

    table: Table
    committer: RowCommitter
    row_ids: dict[int, int] = field(default_factory=dict)

    def run(self, operation: str) -> None:
        change = getattr(self, operation, None)
        if change is None:
            self.committer.run(operation)
        else:
            change()
            self.committer.adopt()
        self.table.refresh()

    def drop_partition(self) -> None:
        """Delete a whole partition, and so whole files."""
        self.table.delete("p = 1")

    def delete_key(self) -> None:
        """Delete one row by an equality delete in the partition of the row."""
        rows = self.table.scan(columns=["id", "p"]).to_arrow().sort_by("id").slice(0, 1)
        for row in rows.to_pylist():
            delete_keys(self.table, "id", [row["id"]], partition=(row["p"],))

    def cherry_pick(self) -> None:
        """Append on a branch and cherry-pick the append to main."""
        name = f"b{len(self.table.refs)}"
        self.table.manage_snapshots().create_branch(name).commit()
        first = 7 * 10**6 + len(self.table.refs)
        rows = self.table.scan(columns=["id", "p", "v"]).to_arrow().sort_by("id").slice(0, 1)
        at = rows.column_names.index("id")
        new = rows.set_column(at, "id", [[first + i for i in range(rows.num_rows)]])
        if not new.num_rows:
            return
        self.table.append(new.cast(rows.schema), branch=name)
        self.committer.run("append")
        self.table.refresh()
        picked = self.table.refs[name].snapshot_id
        self.table.manage_snapshots().cherry_pick(picked).commit()

    def roll_back(self) -> None:
        """Roll main back to the parent of the last snapshot that changed rows.

        Rewrites are left out: a rewrite of manifests may have nothing to do in one version only.
        """
        metadata = self.table.metadata
        snapshot = metadata.current_snapshot
        while snapshot is not None and snapshot.operation == "replace":
            snapshot = metadata.snapshot_by_id.get(snapshot.parent_snapshot_id or 0)
        parent = None if snapshot is None else snapshot.parent_snapshot_id
        if parent in metadata.snapshot_by_id:
            assert parent is not None
            self.table.manage_snapshots().rollback_to(parent).commit()
            rows = self.rows_of_snapshot(None)
            self.row_ids = {id_: row_id for id_, (_, _, row_id, _) in rows.items()}

    def upgrade(self) -> None:
        """Upgrade the table to version 4."""
        self.table.update_properties().set({"format-version": "4"}).commit()

    def rows_of_snapshot(self, snapshot_id: int | None) -> Rows:
        """Return the rows of a snapshot, by default the current one."""
        columns = ["id", "p", "v", *LINEAGE]
        selector = None if snapshot_id is None else SnapshotSelector(snapshot_id=snapshot_id)
        rows = self.table.scan(columns=columns, selector=selector).to_arrow().to_pylist()
        result = {
            id_: (p, v[0], row_id, number) for id_, p, v, row_id, number in map(_values, rows)
        }
        assert len(result) == len(rows), "a row is there twice"
        assert len({row_id for _, _, row_id, _ in result.values()}) == len(rows)
        return result


def _values(row: dict[str, object]) -> tuple[int, int, str, int, int]:
    return tuple(row.values())  # type: ignore[return-value]


def contestant(version: int, properties: Mapping[str, str]) -> Contestant:
    """Create a table in a new catalog."""
    return Contestant(*table_in_memory(version, properties))


@settings(suppress_health_check=list(HealthCheck), max_examples=EXAMPLES)
@given(
    operations=st.lists(st.sampled_from(OPERATIONS), min_size=2, max_size=9),
    upgraded_at=st.integers(0, 9),
    properties=st.sampled_from(ROOTS),
)
@example(operations=["append", "rewrite_manifests", "roll_back"], upgraded_at=0, properties={})
def test_versions_have_the_same_rows_ids_and_lineage(
    operations: list[str], upgraded_at: int, properties: Mapping[str, str]
) -> None:
    tables = {
        "3": contestant(3, properties),
        "4": contestant(4, properties),
        "upgraded": contestant(3, properties),
    }
    numbers: dict[tuple[str, int], int] = {}
    for step, operation in enumerate(["append", *operations]):
        note(operation)
        if step == upgraded_at:
            tables["upgraded"].run("upgrade")
        actual = {}
        for name, one in tables.items():
            one.run(operation)
            actual[name] = one.rows_of_snapshot(None)
            for id_, (_, _, row_id, _) in actual[name].items():
                assert one.row_ids.setdefault(id_, row_id) == row_id, (name, operation, id_)
        agree(actual, numbers)
    for name in ("4", "upgraded"):
        table = tables[name].table
        if table.metadata.format_version == 4:
            assert table.verify(check_files=True).findings == ()
    histories = [one.table.metadata.snapshots for one in tables.values()]
    # a rewrite of manifests may have had nothing to do in one version only
    if len({tuple(s.operation for s in h) for h in histories}) == 1:
        for snapshots in zip(*histories, strict=True):
            ids = [s.snapshot_id for s in snapshots]
            rows_by_version = {
                n: t.rows_of_snapshot(i) for (n, t), i in zip(tables.items(), ids, strict=True)
            }
            agree(rows_by_version, numbers)


def agree(
    result: Mapping[str, Mapping[int, tuple[int, str, int, int]]],
    numbers: dict[tuple[str, int], int],
) -> None:
    """Assert equal rows, and a one-to-one relation of sequence numbers between the tables."""
    expected = result["3"]
    for name, rows in result.items():
        plain = {id_: row[:2] for id_, row in rows.items()}
        assert plain == {id_: row[:2] for id_, row in expected.items()}, name
        for id_, (_, _, _, number) in rows.items():
            same = expected[id_][3]
            assert numbers.setdefault((name, same), number) == number, (name, id_)
