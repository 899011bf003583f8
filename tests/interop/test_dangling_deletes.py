"""`remove-dangling-deletes` of Java and of this package, on tables with the same history."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import our_table
from tests.support.table_integrity import table_problems

pytestmark = pytest.mark.nightly

CALL = (
    "CALL {catalog}.system.rewrite_data_files(table => 'dangling.{name}', options => "
    "map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'){more})"
)


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as native_oracle:
        oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.dangling")
        yield native_oracle


def make(lake: Oracle, name: str, version: int) -> str:
    table = f"java_hadoop.dangling.{name}"
    lake.sql(
        f"CREATE TABLE {table} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read', "
        "'write.delete.granularity' = 'partition')"
    )
    # In any commit, Java drops deletes that are older than every data file, and does not count
    # them; an old data file prevents this.
    lake.sql(f"INSERT INTO {table} VALUES (-1, 'old')")
    for first in (0, 10):
        lake.sql(
            f"INSERT INTO {table} SELECT /*+ REPARTITION(1) */ id, 'p' || id % 2 "
            f"FROM range({first}, {first + 10})"
        )
    lake.sql(f"DELETE FROM {table} WHERE id % 5 = 1")
    # A later commit gives rewritten files a higher sequence number than the deletes have; otherwise
    # the deletes might apply to the rewritten files.
    lake.sql(f"INSERT INTO {table} VALUES (30, 'p0'), (31, 'p1')")
    return table


@pytest.mark.parametrize("version", [2, 3])
def test_java_removes_the_same_dangling_deletes(lake: Oracle, version: int) -> None:
    results = []
    for catalog, name in (("java_hadoop", f"theirs{version}"), ("lake", f"ours{version}")):
        table = make(lake, name, version)
        before = sorted(lake.sql(f"SELECT * FROM {table}").collect())
        actual = []
        for more in (", where => 'p = \"p0\"'", ", where => 'p <> \"old\"'"):
            done = lake.sql(CALL.format(catalog=catalog, name=name, more=more))
            [row] = done.collect()
            lake.sql(f"REFRESH TABLE {table}")
            delete_file_count = lake.sql(f"SELECT * FROM {table}.delete_files").count()
            actual.append((done.schema, row.removed_delete_files_count, delete_file_count))
            assert sorted(lake.sql(f"SELECT * FROM {table}").collect()) == before
        results.append(actual)
    assert results[0] == results[1]
    assert [count for _, _, count in results[1]][-1] == 0
    if version == 2:
        assert [count for _, count, _ in results[1]] == [1, 1]
    assert table_problems(our_table(lake, f"java_hadoop.dangling.ours{version}")) == []
