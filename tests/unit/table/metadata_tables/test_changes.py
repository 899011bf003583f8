"""The metadata table `changes`: the rows that each snapshot added and removed, in any way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from iceberg_pyspark import TableCatalog, load_catalog
from iceberg_pyspark.catalogs.catalog import ScanToPlan
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.snapshot_changes import RewriteFiles
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NoSuchSnapshotError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.planning.scan_plan import PlannedFiles
from iceberg_pyspark.spec.metadata_columns import CHANGE_COLUMNS
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.sql_text.lazy_parser import as_predicate
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.metadata_tables.changes_table import RAW
from iceberg_pyspark.table.metadata_tables.lookup import plan_of_changes
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import CommitTable, commit_table
from tests.support.deleted_rows import delete_rows
from tests.support.encrypted_tables import key_properties
from tests.support.history_model import ID, History
from tests.support.naive_rows import read, shown
from tests.support.table_histories import a_history, append

pytestmark = pytest.mark.usefixtures("each_version")

LATER = 1_900_000_000_000


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "part": ["ab"[i % 2] for i in ids]})


def users(t: CommitTable) -> Table:
    return Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)


def changes(table: Table, **selector: Any) -> list[tuple[int, str, int]]:
    """Return (ordinal, type, id) of each change, in order."""
    snapshot_selector = SnapshotSelector(**selector) if selector else None
    result = table.metadata_table("changes", selector=snapshot_selector).to_arrow().to_pylist()
    ordinals = {c["_change_ordinal"]: c["_commit_snapshot_id"] for c in result}
    assert len(set(ordinals.values())) == len(ordinals)
    return sorted((c["_change_ordinal"], c["_change_type"], c["id"]) for c in result)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("merges", ["true", "false"])
def test_appends_overwrites_and_deletes(version: int, merges: str) -> None:
    properties = {
        "commit.manifest-merge.enabled": merges,
        "commit.manifest.min-count-to-merge": "2",
    }
    table = users(commit_table(partitioned=True, format_version=version, properties=properties))
    assert changes(table) == []
    table.append(rows(1, 2))
    table.append(rows(3))
    table.delete("part = 'a'")
    table.overwrite(rows(5), dynamic=True)
    ids = [s.snapshot_id for s in table.snapshots]
    first = [(0, "INSERT", 1), (0, "INSERT", 2), (1, "INSERT", 3)]
    last = [(2, "DELETE", 2), (3, "DELETE", 1), (3, "DELETE", 3), (3, "INSERT", 5)]
    assert changes(table) == changes(table, start_timestamp_ms=0) == [*first, *last]
    assert changes(table, start_timestamp_ms=0, end_snapshot_id=ids[1]) == first
    assert changes(table, end_snapshot_id=ids[1]) == first
    assert changes(table, start_snapshot_id=ids[1]) == [(o - 2, t, i) for o, t, i in last]
    assert changes(table, start_snapshot_id=ids[3]) == []


def test_compaction_changes_nothing_and_has_no_ordinal() -> None:
    t = commit_table()
    table = users(t)
    for row_id in (1, 2):
        table.append(rows(row_id))
    files = [e.data_file for e in t.entries()]
    # Nobody opens the file that the rewrite claims to have written.
    merged = replace(files[0], file_path="mem://t/data/merged.parquet", record_count=2)
    rewrite = RewriteFiles(
        removed_data_paths=frozenset(f.file_path for f in files),
        data_files=(merged,),
        checks=ConflictChecks(base_snapshot_id=table.snapshots[-1].snapshot_id),
    )
    commit_action(t.catalog, t.loaded, t.io, rewrite)
    users(t).append(rows(3))
    assert changes(users(t)) == [(0, "INSERT", 1), (1, "INSERT", 2), (2, "INSERT", 3)]


def test_a_branch_has_its_own_changes() -> None:
    table = users(commit_table())
    table.append(rows(1))
    table.manage_snapshots().create_branch("b").commit()
    table.append(rows(2), branch="b")
    table.append(rows(3))
    assert [i for _, _, i in changes(table, branch="b")] == [1, 2]
    assert [i for _, _, i in changes(table)] == [1, 3]


def test_changes_after_an_expired_snapshot_only() -> None:
    table = users(commit_table(partitioned=True))
    table.append(rows(1, 2))
    table.append(rows(3))
    table.delete("part = 'a'")
    table.append(rows(5))
    ids = [s.snapshot_id for s in table.snapshots]
    table.maintenance().expire_snapshots(older_than=LATER, retain_last=3)
    expected = [(0, "INSERT", 3), (1, "DELETE", 2), (2, "INSERT", 5)]
    assert changes(table) == changes(table, start_snapshot_id=ids[0]) == expected
    table.maintenance().expire_snapshots(older_than=LATER, retain_last=2)
    with pytest.raises(NoSuchSnapshotError, match=rf"start-snapshot-id {ids[2]} or a later start"):
        changes(table)
    assert changes(table, start_snapshot_id=ids[2]) == [(0, "INSERT", 5)]


def test_changes_need_two_snapshots() -> None:
    t = commit_table()
    table = users(t)
    table.append(rows(1))
    snapshot_id = table.snapshots[0].snapshot_id
    for selector in ({"snapshot_id": snapshot_id}, {"version": "main"}):
        with pytest.raises(InvalidRequestError, match="changes are read between two snapshots"):
            changes(table, **selector)

    def plan_scan(scan: ScanToPlan) -> Generator[PlannedFiles, None, None]:
        del scan
        yield from ()

    planned = replace(t.loaded, plan_scan=plan_scan)
    with pytest.raises(UnsupportedFeatureError, match="set scan-planning-mode to client"):
        changes(Table(t.catalog, planned, io=t.io))
    table.update_schema().add_column("_change_type", "string").commit()
    with pytest.raises(InvalidRequestError, match="with the names of columns of changes"):
        changes(users(t))


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> TableCatalog:
    folder = tmp_path_factory.mktemp("changes")
    keys = key_properties(folder)
    return load_catalog("changes", type="hadoop", warehouse=str(folder), **keys)


@settings(max_examples=settings().max_examples // 4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_changes_are_what_distinguishes_a_snapshot_from_the_one_before(
    catalog: TableCatalog, data: st.DataObject
) -> None:
    created = a_history(data.draw, catalog, key_id="keyA")
    table, struct = created.table.refresh(), created.struct

    def counted(result: Iterable[dict[str, Any]]) -> Counter[str]:
        return Counter(repr([shown(f.type, row[f.name]) for f in struct.fields]) for row in result)

    def check() -> None:
        every = table.metadata_table("changes").to_arrow().to_pylist()
        assert not every or {f.name for f in CHANGE_COLUMNS} < set(every[0])
        before = Counter[str]()
        for ordinal, moment in enumerate(created.moments):
            of_snapshot = [c for c in every if c["_commit_snapshot_id"] == moment.snapshot_id]
            assert {c["_change_ordinal"] for c in of_snapshot} <= {ordinal}
            after = counted(read(struct, stored) for stored in moment.live)
            for type_, expected in (("INSERT", after - before), ("DELETE", before - after)):
                assert counted(c for c in of_snapshot if c["_change_type"] == type_) == expected
            before = after
        changing = {m.snapshot_id for m in created.moments}
        assert {c["_commit_snapshot_id"] for c in every} <= changing
        assert [s.operation for s in table.snapshots if s.snapshot_id not in changing] == (
            ["replace"] * (len(table.snapshots) - len(changing))
        )
        appended = table.scan(selector=SnapshotSelector(start_timestamp_ms=0)).to_arrow()
        assert counted(appended.to_pylist()) == counted(
            read(struct, row.stored) for row in created.rows
        )

    steps = data.draw(st.lists(st.sampled_from([append, delete_row, *REWRITES]), max_size=4))
    for step in steps:
        step(created)
        note(f"then {step.__name__}")
    check()


def delete_row(history: History) -> None:
    """Delete a row, which a rewrite may have moved to another file."""
    live = [row for row in history.rows if row.is_live]
    if live and history.version > 1:
        row = history.draw(st.sampled_from(live))
        delete_rows(history.table, ID, [row.stored[1]])
        row.is_live = False
        snapshot = history.table.current_snapshot
        assert snapshot is not None
        history.moments.append(replace(history.now(), snapshot_id=snapshot.snapshot_id))


def rewrite_data_files(history: History) -> None:
    rewrite_files(history, None)


def sort_data_files(history: History) -> None:
    rewrite_files(history, f"{ID} DESC")


def rewrite_files(history: History, order: str | None) -> None:
    try:
        history.table.refresh().maintenance().rewrite_data_files(
            sort_order=order, options={"rewrite-all": True}
        )
    except UnsupportedFeatureError as e:
        note(f"refused: {e}")  # a type that can be read but not written
    except InvalidRequestError as e:
        # The table's spec is newer than a row that has no valid partition in it.
        if "partition" not in str(e):
            raise
        note(f"refused: {e}")


def rewrite_manifests(history: History) -> None:
    history.table.refresh().maintenance().rewrite_manifests()


def rewrite_position_delete_files(history: History) -> None:
    every = {"rewrite-all": True}
    history.table.refresh().maintenance().rewrite_position_delete_files(options=every)


def rewrite_equality_deletes(history: History) -> None:
    history.table.refresh().maintenance().rewrite_equality_deletes()


REWRITES = (
    rewrite_data_files,
    sort_data_files,
    rewrite_manifests,
    rewrite_position_delete_files,
    rewrite_equality_deletes,
)
"""None changes a row, so none has changes or appends."""


def test_filtered_changes_are_not_planned() -> None:
    table = users(commit_table(partitioned=True))
    table.append(rows(1, 2))
    table.append(rows(3))
    table.delete("part = 'a'")
    ids = [s.snapshot_id for s in table.snapshots]

    def planned(filter: str = "true", of_changes: str = "true") -> list[tuple[int, str]]:
        plan = plan_of_changes(
            table.loaded,
            table.io,
            predicate=bind(as_predicate(filter), table.schema),
            of_changes=bind(as_predicate(of_changes), Schema(fields=CHANGE_COLUMNS)),
            form=RAW,
        )
        text = [one.task.change for t in plan.change_tasks() for one in t.tasks]
        return sorted((c.ordinal, c.type) for c in text if c is not None)

    every = [(0, "INSERT"), (0, "INSERT"), (1, "INSERT"), (2, "DELETE")]
    assert planned() == every
    assert planned("part = 'a'") == [(0, "INSERT"), (2, "DELETE")]
    assert planned("id = 3 and part = 'b'") == [(1, "INSERT")]
    assert planned("part = 'c'") == []
    assert planned(of_changes="_change_type = 'DELETE'") == every[3:]
    assert planned("part = 'b'", "_change_ordinal < 2") == [(0, "INSERT"), (1, "INSERT")]
    assert planned(of_changes=f"_commit_snapshot_id in ({ids[0]}, {ids[2]})") == [
        *every[:2],
        *every[3:],
    ]
    # Snapshots that the read does not need may have expired.
    table.maintenance().expire_snapshots(older_than=LATER, retain_last=1)
    assert planned(of_changes="_change_type = 'no'") == []
    with pytest.raises(NoSuchSnapshotError):
        planned()
