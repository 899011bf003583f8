"""Orphan files are removed while other processes write: no file that a snapshot needs goes.

Eight processes make 32 operations in total, and ten times as many in `make nightly`:
changes of rows, compactions, expiries and removals of orphan files.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from iceberg_pyspark import Table
from tests.amounts import WORK
from tests.catalogs.cleaned_commits import BESIDE_REMOVALS, commit_beside_removals, make_old
from tests.support.catalog_processes import (
    EVENTS,
    KEYS,
    SHARED_BY_PROCESSES,
    create_rows_table,
    run_together,
)
from tests.support.parameters import cases
from tests.support.table_integrity import table_problems, unreferenced_files

OPERATIONS = 32 * WORK
PROCESSES = 8


@cases(
    ("kind", "version", "operations"),
    fast=[("sql", 3, BESIDE_REMOVALS), ("hadoop", 2, BESIDE_REMOVALS)],
    nightly=[
        ("sql", 2, (*BESIDE_REMOVALS, *KEYS)),
        ("hadoop", 3, (*BESIDE_REMOVALS, *KEYS)),
        ("sql", 4, BESIDE_REMOVALS),
    ],
)
def test_every_acknowledged_row_is_there_once(
    kind: str, version: int, operations: tuple[str, ...], tmp_path: Path
) -> None:
    catalog = create_rows_table(
        kind, tmp_path, version, {**SHARED_BY_PROCESSES, "commit.manifest.min-count-to-merge": "4"}
    )
    count = OPERATIONS // PROCESSES
    work = [(kind, str(tmp_path), n, count, operations) for n in range(PROCESSES)]
    expected = {
        id_: row.v
        for rows in run_together(commit_beside_removals, work)
        for id_, row in rows.items()
    }
    table = Table(catalog, catalog.load_table(EVENTS))
    assert_intact(table, expected)
    # No process writes any more, so unreferenced files are remains.
    make_old(f.location for f in table.io.list_files(table.location))
    table.maintenance().remove_orphan_files()
    assert unreferenced_files(table) == set()
    assert_intact(table, expected)


def assert_intact(table: Table, expected: dict[int, str]) -> None:
    assert table_problems(table) == []
    metadata = table.metadata
    statistics = {f.statistics_path for f in metadata.statistics}
    statistics |= {f.statistics_path for f in metadata.partition_statistics}
    assert {f for f in statistics if not table.io.exists(f)} == set()
    rows = table.scan(columns=["id", "v"]).to_arrow().to_pylist()
    assert Counter(r["id"] for r in rows) == Counter(expected.keys())
    assert {r["id"]: r["v"] for r in rows} == expected
