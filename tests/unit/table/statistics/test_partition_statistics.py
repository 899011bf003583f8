"""Partition statistics: computed from manifests, or updated from the last statistics file.

docs/conformance.md 98.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.changes import RemovePartitionStatistics
from iceberg_pyspark.changes.outcomes import Done, Outcome, Refused
from iceberg_pyspark.errors import CommitConflictError, InvalidRequestError
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.table.statistics.partition_statistics import PartitionCounts
from tests.support.commit_tables import commit_table
from tests.support.deleted_rows import delete_positions
from tests.support.frames import append_rows, create_path_table

SCHEMA = "id BIGINT, p STRING, f DOUBLE"


def a_table(folder: Path, version: int = 3, **properties: str) -> Table:
    return create_path_table(
        folder,
        SCHEMA,
        partitioned_by=["p"],
        properties={"format-version": str(version), **properties},
    )


def add(table: Table, *partitions: str | None) -> None:
    append_rows(table, [{"id": i, "p": p, "f": 0.5} for i, p in enumerate(partitions)])


def compute(table: Table, **more: Any) -> str | None:
    done = table.maintenance().compute_partition_stats(**more)
    table.refresh()
    return done.partition_statistics_file


def rows(table: Table) -> list[dict[str, Any]]:
    result = table.partition_statistics()
    assert result is not None
    columns: list[dict[str, Any]] = result.to_pylist()
    return columns


def counted_anew(table: Table) -> list[dict[str, Any]]:
    removed = [
        RemovePartitionStatistics(f.snapshot_id) for f in table.metadata.partition_statistics
    ]
    assert isinstance(table.catalog.commit_table(table.identifier, [], removed), Done)
    compute(table.refresh())
    return rows(table)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("version", [2, 3])
def test_rows(tmp_path: Path, version: int, file_format: str) -> None:
    """docs/conformance.md 98."""
    table = a_table(tmp_path / "t", version, **{"write.format.default": file_format})
    assert table.partition_statistics() is None
    assert compute(table) is None
    add(table, "b", None, "a", "a")
    plan = table.maintenance().compute_partition_stats(dry_run=True)
    assert (plan.partition_count, plan.partition_statistics_file) == (3, None)
    file = compute(table)
    snapshot = table.current_snapshot
    assert snapshot is not None
    assert file is not None
    [text] = table.metadata.partition_statistics
    assert (text.snapshot_id, text.statistics_path) == (snapshot.snapshot_id, file)
    assert text.file_size_in_bytes == Path(file).stat().st_size
    assert Path(file).name.startswith(f"partition-stats-{snapshot.snapshot_id}-")
    assert file.endswith(f".{file_format}")
    actual = rows(table)
    assert [r["partition"]["p"] for r in actual] == [None, "a", "b"]
    assert [r["data_record_count"] for r in actual] == [1, 2, 1]
    sizes = {t.partition: t.file_size_in_bytes for t in table.scan().plan_files()}
    for row in actual:
        assert row["total_data_file_size_in_bytes"] == sizes[(row["partition"]["p"],)]
        assert (row["spec_id"], row["data_file_count"]) == (0, 1)
        assert row["last_updated_at"] == snapshot.timestamp_ms
        assert row["last_updated_snapshot_id"] == snapshot.snapshot_id
        assert row["total_record_count"] is None
        assert row["dv_count"] == (0 if version > 2 else None)
    assert compute(table) == file, "what is there stays"


def test_kept_up_from_the_last_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = a_table(tmp_path / "t")
    add(table, "a", "b")
    compute(table)
    add(table, "a", None)
    table.update_spec().add_field("f").commit()
    add(table, "a", "c")
    table.delete("p = 'b'")
    read: list[str] = []
    add_manifest = PartitionCounts.add_manifest

    def noted(counts: Any, io: Any, manifest: Any, *, only_changes: bool) -> None:
        assert only_changes
        read.append(manifest.manifest_path)
        add_manifest(counts, io, manifest, only_changes=only_changes)

    with monkeypatch.context() as patched:
        patched.setattr(PartitionCounts, "add_manifest", noted)
        compute(table)
    assert len(read) == len(set(read)) > 0
    first = read_snapshot_manifests(table.io, table.snapshots[0])
    assert not {m.manifest_path for m in first} & set(read)
    incremental = rows(table)
    assert incremental == counted_anew(table)
    emptied = [r for r in incremental if r["partition"]["p"] == "b"]
    assert [r["data_file_count"] for r in emptied] == [0]
    assert {r["spec_id"] for r in incremental} == {0, 1}


def test_deletes_are_counted(tmp_path: Path) -> None:
    """docs/conformance.md 98."""
    table = create_path_table(tmp_path / "t", SCHEMA, properties={"format-version": "3"})
    add(table, "a", "a", "a")
    [task] = table.scan().plan_files()
    delete_positions(table, {task.file_path: [0, 2]})
    table.refresh()
    with pytest.raises(InvalidRequestError, match="not partitioned"):
        compute(table)
    table.update_spec().add_field("p").commit()
    compute(table)
    [row] = rows(table)
    assert (row["dv_count"], row["position_delete_record_count"]) == (1, 2)
    assert (row["position_delete_file_count"], row["equality_delete_file_count"]) == (0, 0)


def test_damaged_statistics_file_is_computed_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = a_table(tmp_path / "t")
    add(table, "a", "b")
    file = compute(table)
    assert file is not None
    add(table, "b")
    Path(file).write_bytes(b"PAR1 and nothing else")
    compute(table)
    assert "cannot be reused" in caplog.text
    assert [r["data_record_count"] for r in rows(table)] == [1, 2]


def test_expiry_and_orphan_removal(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    add(table, "a")
    old = compute(table)
    add(table, "b")
    live = compute(table)
    stray = tmp_path / "t/metadata" / f"partition-stats-1-{uuid.uuid4()}.parquet"
    stray.write_bytes(b"")
    actual = table.maintenance().remove_orphan_files(older_than=4_000_000_000_000, force=True)
    assert actual.orphan_file_locations == (str(stray),)
    done = table.maintenance().expire_snapshots(older_than=4_000_000_000_000)
    assert done.deleted_statistics_files_count == 1
    assert old != live
    assert [str(p) for p in (tmp_path / "t/metadata").glob("partition-stats-*")] == [live]
    assert [r["data_record_count"] for r in rows(table.refresh())] == [1, 1]


@pytest.mark.usefixtures("each_version")
def test_a_racing_commit_keeps_it() -> None:
    t = commit_table(partitioned=True, location="mem://wh/t")
    table = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
    append_rows(table, [{"id": 1, "part": "a"}])

    def overtaken(commit: Callable[[], Outcome[LoadedTable]]) -> Outcome[LoadedTable]:
        other = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
        append_rows(other, [{"id": 2, "part": "b"}])
        return Refused(CommitConflictError("overtaken"))

    t.catalog.faults = [overtaken]
    file = compute(table)
    assert [f.statistics_path for f in t.metadata.partition_statistics] == [file]
    assert len(t.metadata.snapshots) == 2
    assert table.partition_statistics(snapshot_id=t.metadata.snapshots[0].snapshot_id) is not None
