"""Java's maintenance procedures work on our tables, and we read the result."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from tests.support.java_tables import JavaTables, show_rows
from tests.support.oracle import Oracle
from tests.support.our_tables import assert_all_read, new_table
from tests.support.readings import our_table

pytestmark = pytest.mark.nightly

COLUMNS = "id BIGINT, p STRING, v DOUBLE"


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "p": ["abc"[i % 3] for i in ids],
            "v": [i / 7 for i in ids],
        }
    )


def make(oracle: Oracle, name: str, version: int, **properties: str) -> Table:
    """Create a table with five snapshots, the last of which removes some files."""
    table = new_table(
        oracle,
        name,
        COLUMNS,
        partitioned_by=["p"],
        properties={"format-version": str(version), **properties},
    )
    for start in (0, 6, 12, 18):
        table.append(rows(start, start + 6))
    table.delete("p = 'c'")
    return table


REMAINING_IDS = [i for i in range(24) if i % 3 != 2]


def remaining_rows() -> pa.Table:
    every = rows(0, 24)
    return every.take(pa.array(REMAINING_IDS))


def call(oracle: Oracle, name: str, procedure: str, arguments: str = "") -> list[dict[str, Any]]:
    catalog, _, rest = name.partition(".")
    options = ", ".join(filter(None, [f"table => '{rest}'", arguments]))
    result = oracle.sql(f"CALL {catalog}.system.{procedure}({options})")
    return [row.asDict() for row in result.collect()]


@pytest.mark.parametrize(("catalog", "version"), [("java_hadoop", 1), ("java_sql", 3)])
def test_java_and_pyiceberg_read_a_table_after_every_procedure(
    oracle: Oracle, java: JavaTables, catalog: str, version: int
) -> None:
    name = f"{catalog}.we_write_maintenance.all_{version}"
    table = make(oracle, name, version)
    stray = Path(table.location) / "data/p=a/stray.parquet"
    stray.touch()
    assert orphans(oracle, name) == [str(stray)]
    stray.unlink()

    [done] = call(oracle, name, "rewrite_manifests")
    assert done["rewritten_manifests_count"] == 4
    assert_all_read(java, name, remaining_rows())

    [done] = call(oracle, name, "rewrite_data_files", "options => map('min-input-files', '2')")
    assert done["rewritten_data_files_count"] == 8
    # Java checks that its own files are in the right partition too.
    assert_all_read(java, name, remaining_rows())
    table.refresh().append(rows(24, 27))
    everything = pa.concat_tables([remaining_rows(), rows(24, 27)])
    assert_all_read(java, name, everything)

    before = files_of(table)
    now = int(time.time() * 1000)
    [done] = call(
        oracle, name, "expire_snapshots", f"older_than => timestamp_millis({now}), retain_last => 1"
    )
    assert done["deleted_data_files_count"] == 12
    assert done["deleted_manifest_lists_count"] == 7
    assert len(before - files_of(table)) == sum(v for v in done.values())
    assert_all_read(java, name, everything)
    assert len(our_table(oracle, name).snapshots) == 1
    assert orphans(oracle, name) == []
    table.refresh().overwrite(rows(0, 3), dynamic=True)
    assert_all_read(java, name, rows(0, 3))


def orphans(oracle: Oracle, name: str) -> list[str]:
    """Return the files that Java regards as orphans, whatever their age."""
    # Java skips files of the last days, so make all files look older.
    past = time.time() - 4 * 86_400
    folder = Path(our_table(oracle, name).location)
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (past, past))
    result = call(oracle, name, "remove_orphan_files", "dry_run => true")
    return [row["orphan_file_location"].removeprefix("file:") for row in result]


def files_of(table: Table) -> set[str]:
    return {str(p) for p in Path(table.location).rglob("*") if p.suffix in (".parquet", ".avro")}


def test_statistics_of_java_survive_our_commits(oracle: Oracle, java: JavaTables) -> None:
    name = "java_sql.we_write_maintenance.statistics"
    table = make(oracle, name, 2)
    [done] = call(oracle, name, "compute_table_stats")
    [partitions] = call(oracle, name, "compute_partition_stats")
    table.refresh().append(rows(24, 27))
    remaining = our_table(oracle, name).metadata
    assert [s.statistics_path for s in remaining.statistics] == [done["statistics_file"]]
    assert [s.statistics_path for s in remaining.partition_statistics] == [
        partitions["partition_statistics_file"]
    ]
    shown = java.parse_metadata(Path(table.loaded.metadata_location).read_text(encoding="utf-8"))
    assert len(shown["statistics"]) == len(shown["partition-statistics"]) == 1


def test_java_cherry_picks_and_rolls_back_our_snapshots(oracle: Oracle, java: JavaTables) -> None:
    name = "java_sql.we_write_maintenance.picked"
    table = new_table(oracle, name, COLUMNS)
    table.append(rows(0, 3))
    first = table.metadata.current_snapshot_id
    with table.manage_snapshots() as refs:
        refs.create_branch("side")
    table.append(rows(3, 6), branch="side")
    picked = table.refs["side"].snapshot_id
    table.append(rows(6, 9))
    call(oracle, name, "cherrypick_snapshot", f"snapshot_id => {picked}")
    assert java.rows(name) == show_rows(rows(0, 9))
    call(oracle, name, "rollback_to_snapshot", f"snapshot_id => {first}")
    assert java.rows(name) == show_rows(rows(0, 3))
    table.refresh().append(rows(9, 12))
    assert java.rows(name) == show_rows(pa.concat_tables([rows(0, 3), rows(9, 12)]))
