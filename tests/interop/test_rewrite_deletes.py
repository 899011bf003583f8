"""Delete files rewritten by this package in Java's tables: Java reads equal rows and row ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from pyspark.errors import IllegalArgumentException

from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import our_table
from tests.support.table_integrity import table_problems

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as native_oracle:
        oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.undeleted")
        yield native_oracle


def make(lake: Oracle, name: str, version: int) -> str:
    """Create three data files in each of the partitions a and b."""
    table = f"java_hadoop.undeleted.{name}"
    lake.sql(
        f"CREATE TABLE {table} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read', "
        "'write.delete.granularity' = 'partition')"
    )
    for first in (0, 10, 20):
        lake.sql(
            f"INSERT INTO {table} SELECT id, if(id % 2 = 0, 'a', 'b') "
            f"FROM range({first}, {first + 10}, 1, 1)"
        )
    return table


def rows_of(lake: Oracle, table: str, version: int = 2) -> Sequence[object]:
    lineage = ", _row_id, _last_updated_sequence_number" if version > 2 else ""
    return sorted(lake.sql(f"SELECT id, p{lineage} FROM {table}").collect())


def call(lake: Oracle, catalog: str, procedure: str, name: str, more: str = "") -> tuple[int, ...]:
    result = lake.sql(f"CALL {catalog}.system.{procedure}(table => 'undeleted.{name}'{more})")
    [row] = result.collect()
    return tuple(row)


def contents(lake: Oracle, table: str) -> list[tuple[object, ...]]:
    result = lake.sql(f"SELECT content, file_format FROM {table}.delete_files").collect()
    return sorted(map(tuple, result))


def whole(lake: Oracle, table: str) -> None:
    assert table_problems(our_table(lake, table)) == []


def test_position_delete_files_beside_java(lake: Oracle) -> None:
    counts = []
    for catalog, name in (("java_hadoop", "theirs"), ("lake", "ours")):
        table = make(lake, name, 2)
        for i in (0, 2, 1, 3):
            lake.sql(f"DELETE FROM {table} WHERE id % 10 = {i}")
        before = rows_of(lake, table)
        more = ", options => map('min-input-files', '2'), where => 'p = \"a\"'"
        done = call(lake, catalog, "rewrite_position_delete_files", name, more)
        counts.append((done[:2], len(contents(lake, table))))
        assert rows_of(lake, table) == before
        # Rewrite the remaining delete files too.
        call(lake, catalog, "rewrite_position_delete_files", name)
        assert rows_of(lake, table) == before
    assert counts[0] == counts[1]
    whole(lake, "java_hadoop.undeleted.ours")
    schemas = [
        lake.sql(f"CALL {c}.system.rewrite_position_delete_files('undeleted.{n}')").schema
        for c, n in (("java_hadoop", "theirs"), ("lake", "ours"))
    ]
    assert schemas[0] == schemas[1]


def test_delete_files_of_two_specs_with_equal_partitions(lake: Oracle) -> None:
    """Java groups delete files by the fields of all specs, and refuses a group of two specs."""
    table = make(lake, "two_specs", 2)
    lake.sql(f"DELETE FROM {table} WHERE id IN (0, 2)")
    lake.sql(f"DELETE FROM {table} WHERE id IN (10, 12)")
    lake.sql(f"ALTER TABLE {table} ADD COLUMN q STRING")
    lake.sql(f"ALTER TABLE {table} ADD PARTITION FIELD q")
    for first in (30, 40):
        lake.sql(f"INSERT INTO {table} SELECT id, 'a', NULL FROM range({first}, {first + 9}, 1, 1)")
        lake.sql(f"DELETE FROM {table} WHERE id = {first}")
    before = rows_of(lake, table)
    every = ", options => map('rewrite-all', 'true')"
    with pytest.raises(IllegalArgumentException, match="expected to have same spec id"):
        call(lake, "java_hadoop", "rewrite_position_delete_files", "two_specs", every)
    assert call(lake, "lake", "rewrite_position_delete_files", "two_specs", every)[:2] == (4, 2)
    assert rows_of(lake, table) == before
    specs = sorted(lake.sql(f"SELECT spec_id FROM {table}.delete_files").collect())
    assert [row.spec_id for row in specs] == [0, 1]
    whole(lake, table)


def test_position_delete_files_to_vectors(lake: Oracle) -> None:
    table = make(lake, "upgraded", 2)
    lake.sql(f"DELETE FROM {table} WHERE id IN (0, 1, 10)")
    lake.sql(f"DELETE FROM {table} WHERE id IN (2, 11)")
    lake.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version' = '3')")
    lake.sql(f"INSERT INTO {table} VALUES (99, 'a')")
    before = rows_of(lake, table, 3)
    done = call(lake, "lake", "rewrite_position_delete_files", "upgraded")
    assert rows_of(lake, table, 3) == before
    assert contents(lake, table) == [(1, "PUFFIN")] * 4
    assert done[1] == 4
    lake.sql(f"DELETE FROM {table} WHERE id = 3")
    assert len(rows_of(lake, table, 3)) == len(before) - 1
    assert call(lake, "lake", "rewrite_position_delete_files", "upgraded") == (0, 0, 0, 0)
    whole(lake, table)


@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes(lake: Oracle, version: int) -> None:
    name = f"upserted{version}"
    table = make(lake, name, version)
    lake.sql(f"DELETE FROM {table} WHERE id IN (0, 1)")
    lake.write_equality_deletes(table, ["id"], [(0,), (2,), (12,)], ("a",))
    lake.write_equality_deletes(table, ["id", "p"], [(3, "b"), (4, "b")], ("b",))
    lake.sql(f"INSERT INTO {table} VALUES (2, 'a')")
    lake.write_equality_deletes(table, ["id"], [(77,)], ("b",))
    before = rows_of(lake, table, version)
    assert [row[0] for row in before if row[0] < 6] == [2, 4, 5]  # type: ignore[index]
    done = call(lake, "lake", "rewrite_equality_deletes", name)
    assert done[0] >= 3
    assert rows_of(lake, table, version) == before
    kinds = {content for content, _ in contents(lake, table)}
    assert kinds == {1}
    assert call(lake, "lake", "rewrite_equality_deletes", name) == (0, 0, 0, 0)
    lake.sql(f"DELETE FROM {table} WHERE id = 5")
    assert len(rows_of(lake, table, version)) == len(before) - 1
    whole(lake, table)
