"""Cherry-picks: fast-forwards, repeated commits, refusals."""

from __future__ import annotations

import pyarrow as pa
import pytest

from iceberg_pyspark.errors import (
    ConcurrentChangeError,
    InvalidRequestError,
    NoSuchSnapshotError,
)
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.table.commits.commit_files import OverwriteMode
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.new_data import write_rows
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import commit_table
from tests.support.file_commits import commit_append, commit_overwrite

pytestmark = pytest.mark.usefixtures("each_version")

VERSIONS = pytest.mark.parametrize("version", [1, 2, 3])


def a_table(version: int | None = None, *, empty: bool = False) -> Table:
    t = commit_table(format_version=version, partitioned=True)
    table = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
    if not empty:
        table.append(rows("a", 1))
    return table


def rows(part: str, *ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "part": [part] * len(ids)})


def stage(
    table: Table, data: pa.Table, mode: OverwriteMode | None = None, wap_id: str | None = None
) -> Snapshot:
    """Commit a staged snapshot, which is on no branch, and return it."""
    table.refresh()
    old_ids = {s.snapshot_id for s in table.snapshots}
    _, files = write_rows(table.identifier, table.metadata, table.io, data)
    summary = {} if wap_id is None else {"wap.id": wap_id}
    options = CommitOptions(stages_only=True, snapshot_properties=summary)
    if mode is None:
        commit_append(table.catalog, table.loaded, table.io, files, options)
    else:
        commit_overwrite(table.catalog, table.loaded, table.io, files, mode, options)
    [staged] = [s for s in table.refresh().snapshots if s.snapshot_id not in old_ids]
    return staged


def pick(table: Table, snapshot: Snapshot) -> Snapshot:
    table.refresh().manage_snapshots().cherry_pick(snapshot.snapshot_id).commit()
    assert table.current_snapshot is not None
    return table.current_snapshot


def ids(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow().column("id").to_pylist())


def test_a_child_of_the_current_snapshot_becomes_the_current_one() -> None:
    for empty in (False, True):
        table = a_table(empty=empty)
        staged = stage(table, rows("b", 2), "static")
        assert ids(table) == ([] if empty else [1])
        assert pick(table, staged) == staged
        assert ids(table) == [2]


@pytest.mark.with_lists("the version is a parameter")
@VERSIONS
def test_an_append_is_made_once_more(version: int) -> None:
    table = a_table(version)
    staged = stage(table, rows("b", 2, 3), wap_id="w")
    table.append(rows("c", 4))
    picked = pick(table, staged)
    assert ids(table) == [1, 2, 3, 4]
    assert picked.operation == "append"
    assert picked.parent_snapshot_id != staged.parent_snapshot_id
    assert picked.summary["source-snapshot-id"] == str(staged.snapshot_id)
    assert picked.summary["published-wap-id"] == "w"
    assert (picked.summary["added-records"], picked.summary["total-records"]) == ("2", "4")
    if version == 3:
        row_ids = table.scan(columns=["id", "_row_id"]).to_arrow().column("_row_id").to_pylist()
        assert len(set(row_ids)) == 4
        assert None not in row_ids


@pytest.mark.with_lists("the version is a parameter")
@VERSIONS
def test_a_dynamic_overwrite_is_made_once_more(version: int) -> None:
    table = a_table(version)
    staged = stage(table, rows("a", 2), "dynamic")
    table.append(rows("b", 3))
    picked = pick(table, staged)
    assert ids(table) == [2, 3]
    assert picked.operation == "overwrite"
    assert picked.summary["deleted-records"] == "1"


def test_a_dynamic_overwrite_of_a_partition_that_changed_is_refused() -> None:
    table = a_table()
    staged = stage(table, rows("a", 2), "dynamic")
    table.append(rows("a", 3))
    with pytest.raises(ConcurrentChangeError, match="which may hold rows"):
        pick(table, staged)
    assert ids(table) == [1, 3]


def test_a_dynamic_overwrite_of_another_history_is_refused() -> None:
    table = a_table(empty=True)
    table.append(rows("z", 0))
    first = table.refresh().snapshots[0].snapshot_id
    table.append(rows("a", 1))
    staged = stage(table, rows("a", 2), "dynamic")
    table.refresh().manage_snapshots().set_current_snapshot(first).commit()
    with pytest.raises(InvalidRequestError, match="not an ancestor of the current"):
        pick(table, staged)


def test_other_overwrites_are_refused() -> None:
    table = a_table()
    staged = stage(table, rows("a", 2), "static")
    table.append(rows("b", 3))
    with pytest.raises(InvalidRequestError, match="neither an append nor a dynamic overwrite"):
        pick(table, staged)


def test_snapshot_picked_before_is_refused() -> None:
    table = a_table()
    staged = stage(table, rows("b", 2))
    table.append(rows("c", 3))
    first = table.refresh().snapshots[0]
    with pytest.raises(InvalidRequestError, match="already an ancestor of the current snapshot"):
        pick(table, first)
    picked = pick(table, staged)
    with pytest.raises(
        InvalidRequestError, match=f"picked before, to snapshot {picked.snapshot_id}"
    ):
        pick(table, staged)
    assert ids(table) == [1, 2, 3]
    with pytest.raises(NoSuchSnapshotError):
        table.manage_snapshots().cherry_pick(7).commit()


def test_a_wap_id_is_published_once() -> None:
    table = a_table()
    stage(table, rows("b", 2), wap_id="w")
    again = stage(table, rows("c", 3), wap_id="w")
    table.manage_snapshots().publish_changes("w").commit()
    assert ids(table) == [1, 2]
    with pytest.raises(InvalidRequestError, match=r"wap\.id 'w', which snapshot"):
        pick(table, again)
    with pytest.raises(NoSuchSnapshotError, match=r"no snapshot with the wap\.id 'x'"):
        table.manage_snapshots().publish_changes("x").commit()
    assert ids(table) == [1, 2]


@pytest.mark.parametrize("mode", [None, "dynamic"])
def test_a_wap_id_is_published_once_also_by_a_child_of_the_current_snapshot(
    mode: OverwriteMode | None,
) -> None:
    """As in Java: a job that runs again after its rows were published stages them again."""
    table = a_table()
    stage(table, rows("b", 2), mode, wap_id="w")
    table.manage_snapshots().publish_changes("w").commit()
    again = stage(table, rows("b", 2), mode, wap_id="w")
    assert again.parent_snapshot_id == table.metadata.current_snapshot_id
    with pytest.raises(InvalidRequestError, match=r"wap\.id 'w', which snapshot"):
        pick(table, again)
    assert ids(table) == [1, 2]


def test_picks_with_other_changes_in_one_commit() -> None:
    table = a_table()
    one, two = stage(table, rows("b", 2)), stage(table, rows("c", 3))
    with table.refresh().transaction() as transaction:
        with transaction.manage_snapshots() as refs:
            refs.cherry_pick(one.snapshot_id).cherry_pick(two.snapshot_id)
        transaction.update_properties().set({"done": "yes"}).commit()
    assert ids(table) == [1, 2, 3]
    assert table.properties["done"] == "yes"


def test_branches_and_tags_are_replaced_and_keep_their_settings() -> None:
    table = a_table()
    first = table.snapshots[0].snapshot_id
    table.append(rows("b", 2))
    second = table.refresh().metadata.current_snapshot_id
    with table.manage_snapshots() as refs:
        refs.create_branch("b", first, min_snapshots_to_keep=3).create_tag("t", first)
        refs.replace_branch("b", "main").replace_tag("t", "b")
    refs_now = table.refresh().refs
    assert (refs_now["b"].snapshot_id, refs_now["t"].snapshot_id) == (second, second)
    assert refs_now["b"].min_snapshots_to_keep == 3
    table.manage_snapshots().replace_branch("main", first).commit()
    assert ids(table) == [1]
    for changes in (
        table.manage_snapshots().replace_branch("t", first),
        table.manage_snapshots().replace_tag("b", first),
    ):
        with pytest.raises(InvalidRequestError, match="is a"):
            changes.commit()
