"""Many processes change the rows of one table: no row is lost, doubled, or restored after deletion.

Eight processes make 32 commits in total, and ten times as many in `make nightly`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from iceberg_pyspark import Table
from tests.amounts import WORK
from tests.support.catalog_processes import (
    EVENTS,
    KEYS,
    MAINTENANCE,
    MIX,
    SHARED_BY_PROCESSES,
    commit_rows,
    create_rows_table,
    run_together,
)
from tests.support.row_commits import LINEAGE
from tests.support.table_integrity import table_problems, unreferenced_files

COMMITS = 32 * WORK
PROCESSES = 8


@pytest.mark.parametrize(
    ("kind", "version", "operations"),
    [
        pytest.param("sql", 3, MIX, marks=pytest.mark.nightly),
        ("hadoop", 3, MIX),
        pytest.param("sql", 2, MIX, marks=pytest.mark.nightly),
        # Four of ten operations are maintenance, as a user might run it concurrently.
        pytest.param("sql", 3, (*MIX, *MAINTENANCE), marks=pytest.mark.nightly),
        pytest.param("hadoop", 2, (*MIX, *MAINTENANCE), marks=pytest.mark.nightly),
        ("sql", 2, (*MIX, *MAINTENANCE, *KEYS)),
        pytest.param("sql", 3, (*MIX, *MAINTENANCE, *KEYS), marks=pytest.mark.nightly),
        ("sql", 4, (*MIX, *MAINTENANCE)),
        pytest.param("hadoop", 4, MIX, marks=pytest.mark.nightly),
    ],
)
def test_every_acknowledged_row_is_there_once(
    kind: str, version: int, operations: tuple[str, ...], tmp_path: Path
) -> None:
    catalog = create_rows_table(
        kind, tmp_path, version, {**SHARED_BY_PROCESSES, "commit.manifest.min-count-to-merge": "8"}
    )
    work = [(kind, str(tmp_path), n, COMMITS // PROCESSES, operations) for n in range(PROCESSES)]
    expected = {id_: row for rows in run_together(commit_rows, work) for id_, row in rows.items()}
    table = Table(catalog, catalog.load_table(EVENTS))
    assert table_problems(table) == []
    assert unreferenced_files(table) == set(), "refused tries removed what they had written"
    lineage = LINEAGE if version >= 3 else ()
    scanned_rows = table.scan(columns=["id", "v", *lineage]).to_arrow().to_pylist()
    assert Counter(r["id"] for r in scanned_rows) == Counter(expected.keys())
    assert {r["id"]: r["v"] for r in scanned_rows} == {i: row.v for i, row in expected.items()}
    if version >= 3:
        assert len({r["_row_id"] for r in scanned_rows}) == len(scanned_rows)
        lineage_by_id = {i: (row.row_id, row.sequence_number) for i, row in expected.items()}
        for r in scanned_rows:
            row_id, number = lineage_by_id[r["id"]]
            assert row_id in (None, r["_row_id"])
            assert number == r["_last_updated_sequence_number"]
