"""Commits of version 4: root manifests, leaves, and manifest deletion vectors."""

from __future__ import annotations

from typing import Any

import pytest

from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.removals import RemoveFiles
from iceberg_pyspark.changes.snapshot_changes import (
    AppendFiles,
    DeleteFiles,
    OverwriteFiles,
    RowDelta,
    SnapshotAction,
)
from iceberg_pyspark.errors import ConcurrentChangeError
from iceberg_pyspark.formats.manifest_files.open_manifest import open_manifest
from iceberg_pyspark.formats.puffin.deletion_vectors import decode_deletion_vector
from iceberg_pyspark.formats.roots.content_entry_reader import ContentEntries
from iceberg_pyspark.spec.content_entries import PROFILES, ContentStatus, ContentType, Role
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable
from iceberg_pyspark.table.maintenance.rewrites.rewrite_manifests import ManifestRewrite
from tests.support.commit_tables import CommitTable, commit_table, data_file


def vector(name: str, target: DataFile, rows: int) -> DataFile:
    return DataFile(
        content=FileContent.POSITION_DELETES,
        file_path=f"mem://t/data/{name}.puffin",
        file_format="puffin",
        record_count=rows,
        file_size_in_bytes=100,
        referenced_data_file=target.file_path,
        content_offset=4,
        content_size_in_bytes=50,
    )


def commit(t: CommitTable, action: SnapshotAction) -> Snapshot:
    commit_action(t.catalog, t.loaded, t.io, action, clock=t.clock.clock)
    snapshot = t.metadata.current_snapshot
    assert snapshot is not None
    return snapshot


def root_rows(t: CommitTable, snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return the entries of a root manifest, as dicts by role."""
    assert snapshot.manifest_list is None
    assert snapshot.root_manifest is not None
    encoded = open_manifest(t.io, snapshot.root_manifest)
    entries = ContentEntries(
        encoded.raw_entries(), PROFILES[0], snapshot.root_manifest, encoded.damage_error
    )
    roles: tuple[Role, ...] = (
        *("status", "content_type", "location", "snapshot_id", "sequence_number"),
        *("record_count", "first_row_id", "referenced_file", "inline_vector"),
        *("existing_files_count", "min_sequence_number"),
    )
    columns = {str(role): entries[role].to_pylist() for role in roles}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def shown(t: CommitTable, snapshot: Snapshot, names: dict[str, str]) -> set[str]:
    """Return the entries in the notation of the worked example: type, path, status, positions."""
    lines = set()
    for row in root_rows(t, snapshot):
        kind = ContentType(row["content_type"])
        path = row["location"] or row["referenced_file"]
        name = names.setdefault(path, f"M{1 + sum(n.startswith('M') for n in names.values())}")
        bits = ""
        if kind is ContentType.MANIFEST_DELETION_VECTOR:
            bits = str(set(decode_deletion_vector(row["inline_vector"], "inline")))
        lines.add(f"{kind.value} {name}{bits} {ContentStatus(row['status']).name}")
    return lines


def since(snapshot: Snapshot) -> ConflictChecks:
    return ConflictChecks(base_snapshot_id=snapshot.snapshot_id)


def metadata_files(t: CommitTable) -> set[str]:
    return {
        f.location
        for f in t.io.list_files("mem://t/metadata")
        if not f.location.endswith(".metadata.json")
    }


def test_a_deletion_vector_is_added_without_reading_the_root_that_this_process_wrote(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    t = commit_table(format_version=4)
    file = data_file("a")
    first = commit(t, AppendFiles(data_files=(file,)))
    locations: list[str] = []

    def read_bytes(io: MemoryFileIO, location: str) -> bytes:
        locations.append(location)
        return original(io, location)

    original = MemoryFileIO.read_bytes
    monkeypatch.setattr(MemoryFileIO, "read_bytes", read_bytes)
    second = commit(t, RowDelta(delete_files=(vector("v", file, 1),), checks=since(first)))
    # the root's paths show whether the file has a vector already
    with pytest.raises(ConcurrentChangeError, match="already has a deletion vector"):
        commit(t, RowDelta(delete_files=(vector("w", file, 1),), checks=since(second)))
    assert {first.root_manifest, second.root_manifest}.isdisjoint(locations)


def test_the_worked_example_of_the_proposal_row_for_row() -> None:
    t = commit_table(
        format_version=4,
        properties={"write.root.max-data-entries": "2", "commit.manifest-merge.enabled": "true"},
    )
    d1, d2 = data_file("D1", rows=100), data_file("D2", rows=50)
    d3, d4 = data_file("D3", rows=10), data_file("D4", rows=50)
    p1, p2 = vector("P1", d1, 5), vector("P2", d1, 8)
    names = {f"data/{name}": name for name in ("D1", "D2", "D3", "D4")}
    names |= {f"data/{name}.puffin": name for name in ("P1", "P2")}
    files = metadata_files(t)

    def step(action: SnapshotAction) -> tuple[Snapshot, int]:
        snapshot = commit(t, action)
        return snapshot, len(metadata_files(t) - files)

    def replaced(vector_file: DataFile) -> frozenset[tuple[str, int | None]]:
        return frozenset([(vector_file.file_path, vector_file.content_offset)])

    s1, count = step(AppendFiles(data_files=(d1,)))
    assert shown(t, s1, names) == {"0 D1 ADDED"}
    assert count == 1
    s2, count = step(AppendFiles(data_files=(d2,)))
    assert shown(t, s2, names) == {"0 D1 EXISTING", "0 D2 ADDED"}
    s3, count = step(RowDelta(delete_files=(p1,), checks=since(s2)))
    assert shown(t, s3, names) == {"0 D1 EXISTING", "0 D2 EXISTING", "1 P1 ADDED"}
    assert count == 3
    s4, count = step(AppendFiles(data_files=(d3,)))
    assert shown(t, s4, names) == {"3 M1 EXISTING", "1 P1 EXISTING", "0 D3 ADDED"}
    assert count == 5
    s5, count = step(RowDelta(delete_files=(p2,), removed_deletes=replaced(p1), checks=since(s4)))
    assert shown(t, s5, names) == {
        "3 M1 EXISTING",
        "0 D3 EXISTING",
        "1 P1 DELETED",
        "1 P2 ADDED",
    }
    s6, count = step(
        OverwriteFiles(removal=RemoveFiles(data_paths=frozenset([d2.file_path])), data_files=(d4,))
    )
    assert shown(t, s6, names) == {
        "3 M1 EXISTING",
        "5 M1{1} ADDED",
        "1 P2 EXISTING",
        "0 D3 EXISTING",
        "0 D4 ADDED",
    }
    s7, count = step(DeleteFiles(removal=RemoveFiles(data_paths=frozenset([d1.file_path]))))
    assert shown(t, s7, names) == {
        "3 M1 EXISTING",
        "5 M1{1} DELETED",
        "5 M1{0, 1} ADDED",
        "1 P2 DELETED",
        "0 D3 EXISTING",
        "0 D4 EXISTING",
    }
    assert count == 8
    table = MaintainedTable(catalog=t.catalog, loaded=t.loaded, io=t.io, clock=t.clock.clock)
    ManifestRewrite(table, spec_id=None, sort_by=()).run()
    s8 = t.metadata.current_snapshot
    assert s8 is not None
    assert s8.operation == "replace"
    assert shown(t, s8, names) == {"3 M2 EXISTING"}
    assert len(metadata_files(t) - files) == 10
    assert t.live() == [d3.file_path, d4.file_path]

    rows = {r["location"]: r for r in root_rows(t, s4)}
    assert [rows[p]["first_row_id"] for p in rows if p.endswith("D3")] == [150]
    leaf = next(r for r in rows.values() if r["content_type"] == ContentType.DATA_MANIFEST)
    assert (leaf["existing_files_count"], leaf["min_sequence_number"]) == (2, 1)
    assert leaf["sequence_number"] == 4
    assert t.live(s5) == sorted(f.file_path for f in (d1, d2, d3, p2))
    assert t.live(s6) == sorted(f.file_path for f in (d1, d3, d4, p2))
