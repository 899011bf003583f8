"""Small tables of version 4 whose content entries are written by hand, row by row.

`worked_example` is the table in the proposal's figures (append, delete, vector, flush, replace,
drop, compaction). `leafy_table` covers the rest: added leaves, affiliated deletes, equality
deletes, a manifest's deletion vector in a Puffin file. Tests corrupt one row and check the outcome.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from iceberg_pyspark import Table, load_table
from iceberg_pyspark.formats.puffin.deletion_vectors import encode_deletion_vector
from tests.support.frames import create_path_table
from tests.support.root_tables import ProfileName, Row, content_file

EXISTING, ADDED, DELETED = 0, 1, 2
DATA, VECTOR, EQUALITY, DATA_LEAF, DELETE_LEAF, LEAF_VECTOR = range(6)

RECORDS = {"D1": 100, "D2": 50, "D3": 30, "D4": 50}
FIRST_ROW_IDS = {"D1": 0, "D2": 100, "D3": 150, "D4": 180}


@dataclass
class Leaf:
    """A leaf manifest: its rows and its declared content, `data` or `delete`."""

    rows: list[Row]
    content: str = "data"


@dataclass
class Commit:
    """A snapshot: the rows of its root manifest, and its new leaves and other new files by name."""

    rows: list[Row]
    leaves: dict[str, Leaf] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    added_rows: int = 0
    more: dict[str, Any] = field(default_factory=dict)
    """Overrides of fields in the snapshot's JSON."""
    content: str = "root"

    def row(self, location: str, status: int | None = None) -> Row:
        """Return the row of this location, or the row of the deletion vector of this manifest."""
        (result,) = (
            row
            for row in self.rows
            if location
            in (row.get("location"), row["content_type"] == 5 and row["referenced_file"])
            and status in (None, row[next(k for k in row if k.endswith(".status"))])
        )
        return result


@dataclass
class EntryTable:
    """Commits whose snapshot ids and sequence numbers are 1, 2, ... in order."""

    commits: list[Commit]
    profile: ProfileName = "single-file commits"
    metadata: dict[str, Any] = field(default_factory=dict)
    """Overrides of fields in the table metadata's JSON."""
    stats: Sequence[tuple[int, pa.DataType]] = ()
    """The columns with statistics, by field id."""

    def __getitem__(self, number: int) -> Commit:
        return self.commits[number - 1]

    def write(self, folder: Path, base: Table | None = None) -> Table:
        """Write the table to a folder and load it; `base` has earlier snapshots."""
        if base is None:
            base = create_path_table(folder, "id BIGINT", properties={"format-version": "3"})
        content = json.loads(Path(base.loaded.metadata_location.removeprefix("file:")).read_bytes())
        before = [self._older(s) for s in content["snapshots"]]
        snapshots, parent = list(before), before[-1]["snapshot-id"] if before else None
        next_row_id = content["next-row-id"]
        for number, commit in enumerate(self.commits, len(before) + 1):
            self._write_files(folder, commit)
            name = f"metadata/root-{number}.parquet"
            root = content_file(self.profile, commit.rows, content=commit.content, stats=self.stats)
            (folder / name).write_bytes(root)
            snapshot = {
                "snapshot-id": number if not before else number + 10,
                "parent-snapshot-id": parent,
                "sequence-number": number,
                "timestamp-ms": (before[-1]["timestamp-ms"] if before else 0) + number,
                "root-manifest": name,
                "summary": {"operation": "append"},
                "schema-id": 0,
                "first-row-id": next_row_id,
                "added-rows": commit.added_rows,
                **commit.more,
            }
            snapshots.append({k: v for k, v in snapshot.items() if v is not None})
            parent = snapshot["snapshot-id"]
            next_row_id += commit.added_rows
        last = snapshots[-1]["snapshot-id"]
        content |= {
            "format-version": 4,
            "location": f"file:{folder}",
            "snapshots": snapshots,
            "current-snapshot-id": last,
            "refs": {"main": {"snapshot-id": last, "type": "branch"}},
            "last-sequence-number": len(snapshots),
            "next-row-id": next_row_id,
            "last-updated-ms": 10**13,
            "snapshot-log": [
                {"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]}
                for s in snapshots
            ],
            "metadata-log": [],
            **self.metadata,
        }
        target = folder / "metadata" / "v4.metadata.json"
        target.write_text(json.dumps(content))
        return load_table(f"file:{target}")

    def _older(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        return {**snapshot, "manifest-list": f"file:{snapshot['manifest-list']}"}

    def _write_files(self, folder: Path, commit: Commit) -> None:
        for name in ("metadata", "data"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name, data in commit.files.items():
            (folder / name).write_bytes(data)
        for name, leaf in commit.leaves.items():
            data = content_file(self.profile, leaf.rows, content=leaf.content, stats=self.stats)
            (folder / name).write_bytes(data)
            for row in commit.rows:
                if row["location"] == name:
                    row.setdefault("file_size_in_bytes", len(data))
        for other in self.commits:
            for row in other.rows:
                path = folder / (row["location"] or "none")
                if row["content_type"] in (3, 4) and path.exists():
                    row.setdefault("file_size_in_bytes", path.stat().st_size)


# --- rows -----------------------------------------------------------------------------------------


def numbers(status: int, snapshot_id: int | None, sequence_number: int | None) -> Row:
    """Return the tracking fields of an entry; both sequence numbers have the same value."""
    return {
        "version_info.status": status,
        "version_info.snapshot_id": snapshot_id,
        "version_info.sequence_number": sequence_number,
        "version_info.file_sequence_number": sequence_number,
    }


def inheriting(row: Row) -> Row:
    """Return the row as an ADDED row of a new leaf, without the fields that are inherited."""
    return {**row, **numbers(ADDED, None, None), "first_row_id": None}


def _file(name: str, status: int, number: int, content: int, kind: str, **fields: Any) -> Row:
    return {
        **numbers(status, number, number),
        "content_type": content,
        "location": f"data/{name}.{kind}",
        "file_format": kind,
        "file_size_in_bytes": 100,
        "partition_spec_id": 0,
        **fields,
    }


def data(name: str, status: int, number: int) -> Row:
    """Return the row of the data file D1, D2, ... that snapshot `number` added."""
    values = {"record_count": RECORDS[name], "first_row_id": FIRST_ROW_IDS[name]}
    return _file(name, status, number, DATA, "parquet", sort_order_id=0, **values)


def vector(name: str, of: str, positions: Iterable[int], status: int, number: int) -> Row:
    """Return the row of a data file's deletion vector."""
    blob = encode_deletion_vector(positions)
    place = {"deletion_vector.offset": 4, "deletion_vector.size_in_bytes": len(blob)}
    values = {"record_count": len(list(positions)), "file_size_in_bytes": 4 + len(blob)}
    target = f"data/{of}.parquet"
    row = _file(name, status, number, VECTOR, "puffin", referenced_file=target, **values)
    return {**row, **place}


def equality(name: str, status: int, number: int) -> Row:
    """Return the row of an equality delete file."""
    return _file(name, status, number, EQUALITY, "parquet", record_count=1, equality_ids=[1])


def leaf_of(name: str, leaf: Leaf, status: int, number: int, **more: Any) -> Row:
    """Return a leaf's row in a root manifest, with counts computed from the leaf's rows."""
    by_status = {s: [r for r in leaf.rows if r["version_info.status"] == s] for s in range(3)}
    row: Row = {
        **numbers(status, number, number),
        "content_type": DATA_LEAF if leaf.content == "data" else DELETE_LEAF,
        "location": f"metadata/{name}.parquet",
        "file_format": "parquet",
        "record_count": len(leaf.rows),
        "partition_spec_id": 0,
        "manifest_stats.min_sequence_number": min(
            r["version_info.sequence_number"] or number for r in leaf.rows
        ),
        **more,
    }
    for s, word in ((ADDED, "added"), (EXISTING, "existing"), (DELETED, "deleted")):
        row[f"manifest_stats.{word}_files_count"] = len(by_status[s])
        row[f"manifest_stats.{word}_rows_count"] = sum(r["record_count"] for r in by_status[s])
    return row


def leaf_vector(of: str, positions: Iterable[int], status: int, number: int, by: int = 0) -> Row:
    """Return the row of a manifest's inline deletion vector; snapshot `by` deleted it."""
    return {
        **numbers(status, by or number, number),
        "content_type": LEAF_VECTOR,
        "location": None,
        "file_format": "puffin",
        "record_count": len(list(positions)),
        "partition_spec_id": 0,
        "referenced_file": f"metadata/{of}.parquet",
        "deletion_vector.inline_content": encode_deletion_vector(positions),
    }


def deleted(row: Row, by: int) -> Row:
    """Return the row as the snapshot that removes it writes it."""
    return {**row, "version_info.status": DELETED, "version_info.snapshot_id": by}


def puffin(positions: Iterable[int]) -> bytes:
    """Return a file with a deletion vector at offset 4."""
    return b"PFA1" + encode_deletion_vector(positions)


PARQUET = bytes(100)
FIVE, EIGHT = range(5), range(8)


def worked_example() -> EntryTable:
    """Return the table of the eight commits in the figures; the limit of data entries is 2."""

    def p1(status: int) -> Row:
        return vector("P1", "D1", FIVE, status, 3)

    def p2(status: int) -> Row:
        return vector("P2", "D1", EIGHT, status, 5)

    m1 = Leaf([data("D1", EXISTING, 1), data("D2", EXISTING, 2)])
    m2 = Leaf([data("D3", EXISTING, 4), data("D4", EXISTING, 6)])

    def m1_row() -> Row:
        return leaf_of("M1", m1, EXISTING, 4, first_row_id=150)

    return EntryTable(
        [
            Commit([data("D1", ADDED, 1)], files={"data/D1.parquet": PARQUET}, added_rows=100),
            Commit(
                [data("D1", EXISTING, 1), data("D2", ADDED, 2)],
                files={"data/D2.parquet": PARQUET},
                added_rows=50,
            ),
            Commit(
                [data("D1", EXISTING, 1), data("D2", EXISTING, 2), p1(ADDED)],
                files={"data/P1.puffin": puffin(FIVE)},
            ),
            Commit(
                [m1_row(), p1(EXISTING), data("D3", ADDED, 4)],
                leaves={"metadata/M1.parquet": m1},
                files={"data/D3.parquet": PARQUET},
                added_rows=30,
            ),
            Commit(
                [m1_row(), data("D3", EXISTING, 4), deleted(p1(DELETED), 5), p2(ADDED)],
                files={"data/P2.puffin": puffin(EIGHT)},
            ),
            Commit(
                [
                    m1_row(),
                    leaf_vector("M1", [1], ADDED, 6),
                    p2(EXISTING),
                    data("D3", EXISTING, 4),
                    data("D4", ADDED, 6),
                ],
                files={"data/D4.parquet": PARQUET},
                added_rows=50,
            ),
            Commit(
                [
                    m1_row(),
                    leaf_vector("M1", [1], DELETED, 6, by=7),
                    leaf_vector("M1", [0, 1], ADDED, 7),
                    deleted(p2(DELETED), 7),
                    data("D3", EXISTING, 4),
                    data("D4", EXISTING, 6),
                ]
            ),
            Commit(
                [leaf_of("M2", m2, EXISTING, 8, first_row_id=230)],
                leaves={"metadata/M2.parquet": m2},
            ),
        ]
    )


def leafy_table() -> EntryTable:
    """Return a table of four commits: add a leaf, add deletes for it, replace a leaf, flush."""
    a1 = Leaf([inheriting(data("D1", ADDED, 1)), inheriting(data("D2", ADDED, 1))])
    l1 = Leaf(
        [
            inheriting(vector("P1", "D1", FIVE, ADDED, 2)),
            inheriting(vector("P2", "D2", FIVE, ADDED, 2)),
        ],
        "delete",
    )
    l2 = Leaf([equality("E1", EXISTING, 2)], "delete")

    def a1_row(status: int) -> Row:
        return leaf_of("A1", a1, status, 1, first_row_id=0)

    def l1_row(status: int) -> Row:
        return leaf_of("L1", l1, status, 2, referenced_file="metadata/A1.parquet")

    def p3(status: int) -> Row:
        return vector("P3", "D1", EIGHT, status, 3)

    def v1(status: int) -> Row:
        row = leaf_vector("L1", [0], status, 3)
        blob = row.pop("deletion_vector.inline_content")
        return {
            **row,
            "location": "metadata/V1.puffin",
            "file_size_in_bytes": 4 + len(blob),
            "deletion_vector.offset": 4,
            "deletion_vector.size_in_bytes": len(blob),
        }

    return EntryTable(
        [
            Commit(
                [a1_row(ADDED)],
                leaves={"metadata/A1.parquet": a1},
                files={"data/D1.parquet": PARQUET, "data/D2.parquet": PARQUET},
                added_rows=150,
            ),
            Commit(
                [a1_row(EXISTING), l1_row(ADDED), equality("E1", ADDED, 2)],
                leaves={"metadata/L1.parquet": l1},
                files={
                    "data/P1.puffin": puffin(FIVE),
                    "data/P2.puffin": puffin(FIVE),
                    "data/E1.parquet": PARQUET,
                },
            ),
            Commit(
                [
                    a1_row(EXISTING),
                    l1_row(EXISTING),
                    v1(ADDED),
                    equality("E1", EXISTING, 2),
                    p3(ADDED),
                ],
                files={"data/P3.puffin": puffin(EIGHT), "metadata/V1.puffin": puffin([0])},
            ),
            Commit(
                [
                    a1_row(EXISTING),
                    l1_row(EXISTING),
                    v1(EXISTING),
                    leaf_of("L2", l2, EXISTING, 4),
                    p3(EXISTING),
                    data("D3", ADDED, 4),
                ],
                leaves={"metadata/L2.parquet": l2},
                files={"data/D3.parquet": PARQUET},
                added_rows=30,
            ),
        ]
    )


def tight_table() -> EntryTable:
    """Return the worked example with statistics of column 1; bounds are tight where possible."""
    table = worked_example()
    table.stats = [(1, pa.int64())]
    bounds = {"D1": (0, 9), "D2": (5, 20), "D3": (1, 1), "D4": (30, 40)}
    leaves = {"M1": ("D1", "D2"), "M2": ("D3", "D4")}
    for number, commit in enumerate(table.commits, 1):
        for row in (*commit.rows, *(r for leaf in commit.leaves.values() for r in leaf.rows)):
            name = Path(row["location"] or "").stem
            of = leaves.get(name, (name,))
            if of[0] in bounds:
                row |= {
                    "stats.1.lower_bound": min(bounds[d][0] for d in of),
                    "stats.1.upper_bound": max(bounds[d][1] for d in of),
                    # From S6 on, M1 has a deletion vector.
                    "stats.1.tight_bounds": name != "M1" or number < 6,
                    "stats.1.value_count": sum(RECORDS[d] for d in of),
                    "stats.1.null_value_count": 0,
                }
    return table
