"""Cherry-picks, publishing and ref moves by this package and by Java's procedures are equal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from iceberg_pyspark import Table
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.table.commits.commit_files import OverwriteMode
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.new_data import write_rows
from iceberg_pyspark.table.commits.pending_changes import ManageSnapshots
from tests.support.file_commits import commit_append, commit_overwrite
from tests.support.java_tables import JavaTables
from tests.support.oracle import Oracle
from tests.support.our_tables import new_table

pytestmark = pytest.mark.nightly

WHOSE = ("ours", "java")
# Sizes differ by a byte or two, Java describes its session, and each table has its own ids.
NOT_COMPARED = (
    "-files-size",
    "write-id",
    "snapshot-id",
    "iceberg-version",
    "engine-name",
    "engine-version",
    "app-id",
    "app-name",
    "spark.app.id",
)
STAGED: tuple[tuple[str, OverwriteMode | None, str, int], ...] = (
    ("one", None, "c", 3),
    ("two", None, "c", 4),
    ("dynamic", "dynamic", "a", 5),
    ("changed", "dynamic", "b", 6),
    ("static", "static", "a", 7),
    ("one", None, "c", 8),
)


def rows(part: str, *ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [part] * len(ids)})


def make(oracle: Oracle, whose: str) -> Table:
    """Create a table with snapshots staged on its first snapshot, and one more snapshot on main."""
    first = rows("a", 1, 2)
    table = new_table(
        oracle,
        f"java_sql.cherry_picks.{whose}",
        first.schema,
        partitioned_by=("p",),
        properties={"format-version": "3"},
    )
    table.append(first)
    for k, (wap_id, mode, part, id_) in enumerate(STAGED):
        _, files = write_rows(table.identifier, table.metadata, table.io, rows(part, id_))
        options = CommitOptions(
            stages_only=True, snapshot_properties={"wap.id": wap_id, "test": str(k)}
        )
        if mode is None:
            commit_append(table.catalog, table.loaded, table.io, files, options)
        else:
            commit_overwrite(table.catalog, table.loaded, table.io, files, mode, options)
    table.refresh().append(rows("b", 9))
    with table.refresh().manage_snapshots() as refs:
        refs.create_branch("ahead", staged(table, 1).snapshot_id)
    return table.refresh()


def staged(table: Table, k: int) -> Snapshot:
    [result] = [s for s in table.snapshots if s.summary.get("test") == str(k)]
    return result


def test_the_same_picks(oracle: Oracle, java: JavaTables) -> None:
    ours, javas = (make(oracle, whose) for whose in WHOSE)
    results = []
    for k in range(len(STAGED)):
        by_us, by_java = (staged(t, k).snapshot_id for t in (ours, javas))
        done = (
            succeeds(partial(ManageSnapshots.cherry_pick, snapshot_id=by_us), ours),
            is_called(oracle, f"cherrypick_snapshot('cherry_picks.java', {by_java})"),
        )
        assert done[0] == done[1], STAGED[k]
        results.append(done[0])
        assert summaries(ours) == summaries(javas), STAGED[k]
    assert results == [True, True, True, False, False, False]
    assert java.rows("java_sql.cherry_picks.ours") == java.rows("java_sql.cherry_picks.java")
    # Fast-forwards: a ref that is an ancestor moves, also main; a diverged ref does not.
    for branch, to in (("ahead", "main"), ("new", "main"), ("main", "ahead")):
        done = (
            succeeds(partial(ManageSnapshots.fast_forward, branch=branch, to=to), ours),
            is_called(oracle, f"fast_forward('cherry_picks.java', '{branch}', '{to}')"),
        )
        assert done[0] == done[1], (branch, to)
        assert refs_of(ours) == refs_of(javas), (branch, to)
    # A snapshot that is published already cannot be published again.
    assert not succeeds(lambda refs: refs.publish_changes("two"), ours)
    assert not is_called(oracle, "publish_changes('cherry_picks.java', 'two')")


def succeeds(change: Callable[[ManageSnapshots], object], table: Table) -> bool:
    try:
        with table.refresh().manage_snapshots() as refs:
            change(refs)
    except IcebergError:
        return False
    return True


def is_called(oracle: Oracle, procedure: str) -> bool:
    try:
        oracle.sql(f"CALL java_sql.system.{procedure}").collect()
    except (PySparkException, Py4JJavaError):
        return False
    return True


def summaries(table: Table) -> list[dict[str, str]]:
    """Return the snapshot summaries, from the current snapshot backwards."""
    table.refresh()
    result = []
    snapshot = table.current_snapshot
    while snapshot is not None:
        result.append({k: v for k, v in snapshot.summary.items() if not k.endswith(NOT_COMPARED)})
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.metadata.snapshot(parent)
    return result


def refs_of(table: Table) -> dict[str, str | None]:
    """Return, for each ref, the mark in the summary of its snapshot."""
    table.refresh()
    return {
        name: table.metadata.snapshot(ref.snapshot_id).summary.get("test")
        for name, ref in table.refs.items()
    }
