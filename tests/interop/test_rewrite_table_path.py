"""Tables copied by our file lists and by Java's: the same copies, readable by both."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import Row

from iceberg_pyspark import load_table
from tests.amounts import FULL_WORK
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.table_integrity import table_problems

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as native_oracle:
        for catalog in ("java_hadoop", "java_sql"):
            oracle.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.moved")
        yield native_oracle


def make(lake: Oracle, version: int) -> str:
    """Create a table with statistics and with every kind of delete that the version has."""
    table = f"java_hadoop.moved.t{version}"
    lake.sql(
        f"CREATE TABLE {table} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    for first in (0, 10):
        lake.sql(
            f"INSERT INTO {table} SELECT id, if(id % 2 = 0, 'a', 'b') "
            f"FROM range({first}, {first + 10}, 1, 1)"
        )
    if version > 1:
        lake.sql(f"DELETE FROM {table} WHERE id IN (1, 2, 11)")
        lake.write_equality_deletes(table, ["id"], [(4,)], ("a",))
    lake.sql(f"CALL java_hadoop.system.compute_table_stats('moved.t{version}')")
    return table


def call(lake: Oracle, catalog: str, name: str, target: Path, more: str = "") -> Row:
    source = lake.warehouse / "moved" / name
    [row] = lake.sql(
        f"CALL {catalog}.system.rewrite_table_path('moved.{name}', '{source}', '{target}'{more})"
    ).collect()
    return row


def copies(row: Row) -> dict[str, str]:
    """Return the source of each copied file, by its target."""
    with Path(row["file_list_location"].removeprefix("file:")).open(newline="") as lines:
        return {target: source for source, target in csv.reader(lines)}


def carry_out(result: dict[str, str]) -> None:
    for target, source in result.items():
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source.removeprefix("file:"), target)


@pytest.mark.parametrize("version", [3, *(v for v in (1, 2))])
def test_the_same_copies_and_rows_for_all(lake: Oracle, tmp_path: Path, version: int) -> None:
    table = make(lake, version)
    name = f"t{version}"
    lineage = ", _row_id, _last_updated_sequence_number" if version > 2 else ""
    query = f"SELECT id, p{lineage} FROM"
    steps = [""]
    if FULL_WORK:
        # Such copies are in tests/unit/table/maintenance/test_rewrite_table_path.py too.
        steps.append(", start_version => 'v3.metadata.json'")
    for step, more in enumerate(steps):
        lake.sql(f"REFRESH TABLE lake.moved.{name}")
        target = tmp_path / f"copy{step}"
        theirs, ours = (call(lake, c, name, target, more) for c in ("java_hadoop", "lake"))
        assert theirs.asDict().keys() == ours.asDict().keys()
        assert theirs["latest_version"] == ours["latest_version"]
        assert theirs[2:] == ours[2:]
        expected, actual = copies(theirs), copies(ours)
        assert actual.keys() == expected.keys()
        if step:
            # An incremental copy needs a copy of the start version at the target.
            start = call(lake, "lake", name, target, ", end_version => 'v3.metadata.json'")
            carry_out(copies(start))
        carry_out(actual)
        latest = f"{target}/metadata/{ours['latest_version']}"
        rows = sorted(lake.sql(f"{query} {table}").collect())
        copy = f"java_sql.moved.copy{version}_{step}"
        lake.sql(f"CALL java_sql.system.register_table('{copy}', '{latest}')")
        assert sorted(lake.sql(f"{query} {copy}").collect()) == rows
        our_copy = load_table(str(target))
        assert table_problems(our_copy) == []
        assert sorted(our_copy.scan().to_arrow()["id"].to_pylist()) == [r[0] for r in rows]
        lake.sql(f"INSERT INTO {copy} VALUES (99, 'a')")
        if version > 1:
            lake.sql(f"DELETE FROM {copy} WHERE id = 0")
        assert len(lake.sql(f"{query} {copy}").collect()) == len(rows) + (version == 1)
        # We read Java's copy of the same table.
        other = tmp_path / f"java{step}"
        if not step:
            carry_out(copies(call(lake, "java_hadoop", name, other)))
            java_copy = load_table(str(other))
            assert table_problems(java_copy) == []
            assert sorted(java_copy.scan().to_arrow()["id"].to_pylist()) == [r[0] for r in rows]
    schemas = [
        lake.sql(
            f"CALL {c}.system.rewrite_table_path('moved.{name}', "
            f"'{lake.warehouse}/moved/{name}', '/x', create_file_list => false)"
        )
        for c in ("java_hadoop", "lake")
    ]
    assert schemas[0].schema == schemas[1].schema
    assert schemas[0].collect() == schemas[1].collect()
