"""Incremental reads return rows that a range of snapshots appended, even if deleted later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
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
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.planning.scan_plan import PlannedFiles
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.snapshots import Snapshot, SnapshotRef
from iceberg_pyspark.spec.statistics import BlobMetadata, StatisticsFile
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import FORMAT_VERSION
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.reading.metadata_aggregates import (
    Aggregate,
    KnownAggregates,
    column_statistics,
    known_aggregates,
)
from iceberg_pyspark.table.reading.snapshot_selection import (
    SnapshotSelector,
    select_snapshot,
    snapshots_between,
)
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import CommitTable, commit_table
from tests.support.encrypted_tables import key_properties
from tests.support.naive_rows import read, shown
from tests.support.table_histories import a_history

_TYPES = {"a": "append", "o": "overwrite", "d": "delete", "r": "replace"}


def history(operations: str, parents: dict[int, int | None] | None = None) -> TableMetadata:
    """Return snapshots 1, 2, ... at 1000, 2000, ... ms; each letter is an operation."""
    snapshots = tuple(
        Snapshot(
            snapshot_id=n,
            parent_snapshot_id=(parents or {}).get(n, n - 1 or None),
            timestamp_ms=1000 * n,
            manifest_list=f"l{n}",
            summary={"operation": _TYPES[letter]} if letter in _TYPES else {},
        )
        for n, letter in enumerate(operations, 1)
    )
    metadata = commit_table().metadata
    return replace(
        metadata,
        snapshots=snapshots,
        current_snapshot_id=len(snapshots) or None,
        refs={"main": SnapshotRef(snapshot_id=len(snapshots))} if snapshots else {},
    )


def appended(metadata: TableMetadata, **bounds: Any) -> list[int]:
    result = select_snapshot(metadata, SnapshotSelector(**bounds))
    assert result.schema == metadata.current_schema
    assert result.appends is not None
    return [s.snapshot_id for s in result.appends]


def test_appends_after_the_start_and_up_to_the_end_count() -> None:
    m = history("aaodara")
    assert appended(m, start_snapshot_id=1) == [7, 5, 2]
    assert appended(m, start_snapshot_id=1, end_snapshot_id=5) == [5, 2]
    assert appended(m, start_snapshot_id=2, end_snapshot_id=4) == []
    assert appended(m, start_snapshot_id=7) == []
    assert appended(m, start_timestamp_ms=0) == [7, 5, 2, 1]
    assert appended(m, start_timestamp_ms=1000, end_timestamp_ms=5000) == [5, 2]
    assert appended(m, start_timestamp_ms=999, end_timestamp_ms=4999) == [2, 1]
    assert appended(m, start_snapshot_id=1, end_timestamp_ms=2500) == [2]
    assert appended(m, start_timestamp_ms=4000, end_snapshot_id=6) == [5]
    assert appended(m, start_timestamp_ms=9000) == []
    assert appended(history(""), start_timestamp_ms=0) == []


def test_the_start_may_have_expired() -> None:
    m = history("aaoa")
    m = replace(m, snapshots=m.snapshots[1:])
    assert appended(m, start_snapshot_id=1) == [4, 2]
    m = replace(m, snapshots=m.snapshots[1:])
    with pytest.raises(NoSuchSnapshotError, match=r"snapshot 1, the start .* or has expired"):
        appended(m, start_snapshot_id=1)
    # The appends between that time and the oldest snapshot are unknown.
    for bounds in ({"start_timestamp_ms": 2500}, {"start_timestamp_ms": 0, "end_timestamp_ms": 1}):
        with pytest.raises(NoSuchSnapshotError, match=r"before the oldest snapshot .* not expired"):
            appended(m, **bounds)
    assert appended(m, start_timestamp_ms=3000) == [4]
    assert appended(m, start_snapshot_id=2) == [4]


def test_a_branch_has_its_own_lineage() -> None:
    # 3 is only on branch b, and 4 follows 2.
    m = history("aaaa", {4: 2})
    m = replace(m, refs={**m.refs, "b": SnapshotRef(snapshot_id=3)})
    assert appended(m, start_snapshot_id=1) == [4, 2]
    assert appended(m, start_snapshot_id=1, branch="b") == [3, 2]
    assert appended(m, start_snapshot_id=1, end_snapshot_id=3) == [3, 2]
    assert appended(m, start_timestamp_ms=1000, branch="b", end_timestamp_ms=2999) == [2]
    with pytest.raises(
        NoSuchSnapshotError, match=r"4, the end .* not in the history of branch 'b'"
    ):
        appended(m, start_snapshot_id=1, end_snapshot_id=4, branch="b")
    with pytest.raises(NoSuchSnapshotError, match=r"snapshot 3, the start .* an ancestor of"):
        appended(m, start_snapshot_id=3)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"start_snapshot_id": 9}, "snapshot 9, the start .* an ancestor of snapshot 2"),
        ({"start_snapshot_id": 2, "end_snapshot_id": 1}, "an ancestor of snapshot 1"),
        ({"start_snapshot_id": 1, "end_snapshot_id": 9}, "no snapshot 9"),
        ({"start_snapshot_id": 1, "end_timestamp_ms": 5}, "an ancestor of any snapshot"),
        ({"start_snapshot_id": 1, "branch": "b"}, "no branch or tag 'b'"),
    ],
)
def test_bounds_that_the_table_has_not(bounds: dict[str, Any], message: str) -> None:
    with pytest.raises(NoSuchSnapshotError, match=message):
        appended(history("aa"), **bounds)
    with pytest.raises(NoSuchSnapshotError):
        appended(history(""), start_snapshot_id=1)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"start_snapshot_id": 1, "snapshot_id": 1}, "start-snapshot-id asks .* snapshot-id for"),
        ({"start_timestamp_ms": 1, "tag": "t"}, "start-timestamp asks .* tag for one snapshot"),
        ({"start_snapshot_id": 1, "version": "b"}, "version for one snapshot"),
        ({"end_snapshot_id": 1, "as_of_timestamp_ms": 1}, "as-of-timestamp for one snapshot"),
        ({"start_snapshot_id": 1, "start_timestamp_ms": 1}, "start-timestamp are both given"),
        (
            {"start_snapshot_id": 1, "end_snapshot_id": 1, "end_timestamp_ms": 1},
            "end-snapshot-id and end-timestamp are both given",
        ),
        ({"start_timestamp_ms": 2, "end_timestamp_ms": 1}, "start-timestamp 2 is after"),
    ],
)
def test_bounds_that_contradict(bounds: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        SnapshotSelector(**bounds)


@pytest.mark.parametrize("end", ["end_snapshot_id", "end_timestamp_ms"])
def test_an_end_without_a_start_is_for_changes_alone(end: str) -> None:
    m = history("aaaa")
    bound: dict[str, Any] = {end: {"end_snapshot_id": 2, "end_timestamp_ms": 2999}[end]}
    actual = snapshots_between(m, SnapshotSelector(**bound))
    assert [s.snapshot_id for s in actual] == [2, 1]
    option = end.removesuffix("_ms").replace("_", "-")
    with pytest.raises(InvalidRequestError, match=f"{option} needs a start"):
        appended(m, **bound)


def test_a_snapshot_that_names_no_operation_is_not_guessed_at() -> None:
    m = history("a?a")
    assert appended(m, start_snapshot_id=2) == [3]
    with pytest.raises(UnsupportedFeatureError, match="snapshot 2 does not record its operation"):
        appended(m, start_snapshot_id=1)


# rows


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "part": ["ab"[i % 2] for i in ids]})


def users(t: CommitTable) -> Table:
    return Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)


def ids(table: Table, filter: str | None = None, **bounds: Any) -> list[int]:
    scan = table.scan(selector=SnapshotSelector(**bounds), filter=filter)
    result: list[int] = sorted(scan.to_arrow().column("id").to_pylist())
    assert scan.count() == len(result)
    return result


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("merges", ["true", "false"])
def test_rows_are_those_appended_and_deletes_are_none_of_them(version: int, merges: str) -> None:
    properties = {
        "commit.manifest-merge.enabled": merges,
        "commit.manifest.min-count-to-merge": "2",
    }
    table = users(commit_table(partitioned=True, format_version=version, properties=properties))
    table.append(rows(1, 2))
    table.append(rows(3, 4))
    table.delete("part = 'a'")
    table.append(rows(5, 6))
    table.overwrite(rows(7), dynamic=True)
    table.append(rows(8))
    first, second, _, third, _, fourth = (s.snapshot_id for s in table.snapshots)
    assert ids(table, start_snapshot_id=first) == [3, 4, 5, 6, 8]
    assert ids(table, start_snapshot_id=first, end_snapshot_id=third) == [3, 4, 5, 6]
    assert ids(table, "part = 'a'", start_snapshot_id=first) == [4, 6, 8]
    assert ids(table, start_snapshot_id=second, end_snapshot_id=third) == [5, 6]
    assert ids(table, start_snapshot_id=fourth) == []
    assert ids(table, start_timestamp_ms=0) == [1, 2, 3, 4, 5, 6, 8]


def test_a_rewrite_of_files_appends_nothing() -> None:
    t = commit_table()
    table = users(t)
    for row_id in (1, 2):
        table.append(rows(row_id))
    first = table.snapshots[0].snapshot_id
    tasks = list(table.scan().plan_files())
    files = [e.data_file for e in t.entries()]
    merged = replace(files[0], file_path="mem://t/data/merged.parquet", record_count=2)
    rewrite = RewriteFiles(
        removed_data_paths=frozenset(task.file_path for task in tasks),
        data_files=(merged,),
        checks=ConflictChecks(base_snapshot_id=table.snapshots[-1].snapshot_id),
    )
    commit_action(t.catalog, t.loaded, t.io, rewrite)
    assert t.metadata.snapshots[-1].operation == "replace"
    assert ids(users(t), start_snapshot_id=first) == [2]
    assert ids(users(t), start_timestamp_ms=0) == [1, 2]


def test_row_ids_are_as_assigned_also_where_the_version_came_later() -> None:
    t = commit_table(format_version=2)
    table = users(t)
    for row_id in (1, 2):
        table.append(rows(row_id))
    table.update_properties().set({FORMAT_VERSION: "3"}).commit()
    table = users(t)
    table.append(rows(3, 4))
    ends = [s.snapshot_id for s in table.snapshots]
    whole = table.scan(columns=["id", "_row_id", "_last_updated_sequence_number"]).to_arrow()
    lineage = {row["id"]: row for row in whole.to_pylist()}
    for start, expected in ((ends[0], [2, 3, 4]), (ends[1], [3, 4])):
        scan = table.scan(
            columns=["id", "_row_id", "_last_updated_sequence_number"],
            selector=SnapshotSelector(start_snapshot_id=start),
        )
        actual = scan.to_arrow().to_pylist()
        assert sorted(actual, key=lambda row: int(row["id"])) == [lineage[i] for i in expected]


def test_a_manifest_that_does_not_say_who_added_it_is_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = users(commit_table(format_version=1))
    for row_id in (1, 2, 3):
        table.append(rows(row_id))

    def anonymous(io: FileIO, snapshot: Snapshot) -> list[ManifestFile]:
        return [replace(m, added_snapshot_id=None) for m in read_snapshot_manifests(io, snapshot)]

    monkeypatch.setattr(
        "iceberg_pyspark.table.reading.table_scan.read_snapshot_manifests", anonymous
    )
    first = table.snapshots[0].snapshot_id
    assert ids(table, start_snapshot_id=first) == [2, 3]


def test_known_aggregates_are_those_of_the_range() -> None:
    t = commit_table()
    table = users(t)
    for added in (rows(1, 9), rows(4, 5), rows(6)):
        table.append(added)
    start, end, head = (s.snapshot_id for s in table.snapshots)
    blob = BlobMetadata(
        type="apache-datasketches-theta-v1",
        snapshot_id=head,
        sequence_number=3,
        fields=(1,),
        properties={"ndv": "5"},
    )
    statistics = StatisticsFile(
        snapshot_id=head,
        statistics_path="mem://t/stats",
        file_size_in_bytes=1,
        file_footer_size_in_bytes=1,
        blob_metadata=(blob,),
    )
    table = Table(
        t.catalog,
        replace(t.loaded, metadata=replace(t.metadata, statistics=(statistics,))),
        io=t.io,
    )
    id_column = table.schema.fields[0]
    assert column_statistics(table.scan(), [id_column])
    scan = table.scan(selector=SnapshotSelector(start_snapshot_id=start))
    assert column_statistics(scan, [id_column]) == {}
    aggregates = [
        Aggregate(kind="rows"),
        Aggregate(kind="min", column=id_column),
        Aggregate(kind="max", column=id_column),
    ]
    assert known_aggregates(scan, [], aggregates) == KnownAggregates(rows=[(3, 4, 6)])
    assert scan.known_count() == 3
    upto = table.scan(selector=SnapshotSelector(start_snapshot_id=start, end_snapshot_id=end))
    assert known_aggregates(upto, [], aggregates) == KnownAggregates(rows=[(2, 4, 5)])


def test_a_metadata_table_shows_no_range() -> None:
    table = users(commit_table())
    table.append(rows(1))
    selector = SnapshotSelector(start_snapshot_id=table.snapshots[0].snapshot_id)
    for name in ("files", "snapshots"):
        with pytest.raises(UnsupportedFeatureError, match="leave"):
            table.metadata_table(name, selector=selector)


def test_a_server_that_plans_is_asked_for_whole_snapshots_alone() -> None:
    t = commit_table()
    users(t).append(rows(1))

    def plan_scan(scan: ScanToPlan) -> Generator[PlannedFiles, None, None]:
        del scan
        yield from ()

    table = Table(t.catalog, replace(t.loaded, plan_scan=plan_scan), io=t.io)
    assert table.scan().to_arrow().num_rows == 0
    with pytest.raises(UnsupportedFeatureError, match="only for whole snapshots"):
        ids(table, start_timestamp_ms=0)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> TableCatalog:
    folder = tmp_path_factory.mktemp("incremental")
    keys = key_properties(folder)
    return load_catalog("incremental", type="hadoop", warehouse=str(folder), **keys)


def _counted(result: pa.Table, table: Table) -> Counter[str]:
    fields = table.schema.fields
    return Counter(repr([shown(f.type, row[f.name]) for f in fields]) for row in result.to_pylist())


@settings(max_examples=settings().max_examples // 4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_ranges_that_meet_have_the_rows_of_the_range_over_both(
    catalog: TableCatalog, data: st.DataObject
) -> None:
    created = a_history(data.draw, catalog, key_id="keyA")
    table, struct = created.table.refresh(), created.struct
    lineage = [s.snapshot_id for s in table.snapshots]
    assume(lineage)  # skip histories where every append was refused
    ends = sorted(data.draw(st.lists(st.sampled_from(range(len(lineage))), min_size=3, max_size=3)))
    a, b, c = (lineage[n] for n in ends)

    def between(start: int, end: int) -> Counter[str]:
        bounds = SnapshotSelector(start_snapshot_id=start, end_snapshot_id=end)
        return _counted(table.scan(selector=bounds).to_arrow(), table)

    assert between(a, b) + between(b, c) == between(a, c)
    # all rows that were ever appended, including deleted rows
    ever = table.scan(selector=SnapshotSelector(start_timestamp_ms=0)).to_arrow()
    model = (read(struct, row.stored) for row in created.rows)
    assert _counted(ever, table) == Counter(
        repr([shown(f.type, row[f.name]) for f in struct.fields]) for row in model
    )
