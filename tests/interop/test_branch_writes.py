"""Branches that begin without a snapshot, and write-audit-publish, compared with Java."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from iceberg_pyspark import install
from tests.support.both_writers import JAVAS, OURS, by_java, writers_lake
from tests.support.oracle import Oracle

pytestmark = pytest.mark.nightly

TOTALS = ("total-records", "total-data-files", "total-delete-files")


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with writers_lake(oracle) as lake:
        yield lake


def snapshots(lake: Oracle, table: str) -> list[tuple[Any, ...]]:
    """Return operation, whether there is no parent, whether there is a manifest list, and totals of
    each snapshot, oldest first.
    """
    result = lake.sql(
        "select committed_at, operation, parent_id is null, manifest_list is not null, summary "
        f"from {by_java(table)}.snapshots"
    ).collect()
    return [
        (*r[1:4], *(r.summary.get(k) for k in TOTALS))
        for r in sorted(result, key=lambda row: row.committed_at)
    ]


def refs(lake: Oracle, table: str) -> list[tuple[Any, ...]]:
    columns = "name, type, min_snapshots_to_keep, max_snapshot_age_in_ms"
    return sorted(map(tuple, lake.sql(f"select {columns} from {by_java(table)}.refs").collect()))


def test_a_branch_of_an_empty_table(lake: Oracle) -> None:
    ours, javas = (f"{w}.writes.empty_by_{w}" for w in (OURS, JAVAS))
    for table in (ours, javas):
        lake.sql(
            f"create table {table} (id bigint) using iceberg tblproperties ('format-version'='3')"
        )
    branching = install(lake.spark).table(ours).manage_snapshots()
    branching.create_branch("b", min_snapshots_to_keep=2).commit()
    lake.sql(f"alter table {javas} create branch b with snapshot retention 2 snapshots")
    assert refs(lake, ours) == refs(lake, javas)
    for table in (ours, javas):
        lake.sql(f"insert into {table}.branch_b select /*+ coalesce(1) */ id from range(1, 3)")
        lake.sql(f"delete from {table}.branch_b where id = 1")
        assert lake.table_rows(by_java(table)) == []
        assert lake.table_rows(f"{by_java(table)}.branch_b") == [(2,)]
        lake.sql(f"insert into {table} values (7)")
        assert lake.table_rows(by_java(table)) == [(7,)]
    assert snapshots(lake, ours) == snapshots(lake, javas)
    lineage = "select id, _row_id, _last_updated_sequence_number from {}"
    for place in ("", ".branch_b"):
        actual = [lake.sql(lineage.format(by_java(t)) + place).collect() for t in (ours, javas)]
        assert actual[0] == actual[1]


@pytest.mark.parametrize(
    "statement",
    [
        "insert into {t}.branch_main values (1, 'a')",
        "insert overwrite {t}.branch_main values (1, 'a')",
        "merge into {t}.branch_main t using (select 1 id, 'a' v) s on t.id = s.id "
        "when matched then update set * when not matched then insert *",
    ],
)
def test_main_of_a_table_without_a_snapshot(lake: Oracle, statement: str) -> None:
    name = "main_" + "_".join(statement.split()[:2])
    unchanged = (
        "delete from {t}.branch_main where id = 1",
        "update {t}.branch_main set v = 'b'",
    )
    for table in (f"{w}.writes.{name}_by_{w}" for w in (OURS, JAVAS)):
        lake.sql(f"create table {table} (id int, v string) using iceberg")
        assert lake.table_rows(f"{table}.branch_main") == []
        for change in unchanged:
            lake.sql(change.format(t=table))
        assert lake.table_rows(f"{table}.branch_main") == []
        lake.sql(statement.format(t=table))
        assert lake.table_rows(f"{by_java(table)}.branch_main") == [(1, "a")]
        assert lake.table_rows(by_java(table)) == [(1, "a")]
    assert refs(lake, f"{OURS}.writes.{name}_by_{OURS}") == refs(
        lake, f"{JAVAS}.writes.{name}_by_{JAVAS}"
    )


def test_totals_of_a_branch_that_a_write_begins_count_all_its_rows(lake: Oracle) -> None:
    totals = {}
    for writer in (OURS, JAVAS):
        table = f"{writer}.writes.audited_by_{writer}"
        lake.sql(
            f"create table {table} (id bigint) using iceberg "
            "tblproperties ('write.wap.enabled'='true', 'write.delete.mode'='merge-on-read')"
        )
        lake.sql(f"insert into {table} select id from range(4)")
        lake.spark.conf.set("spark.wap.id", "audit")
        lake.sql(f"insert into {table} values (7)")
        lake.spark.conf.unset("spark.wap.id")
        lake.spark.conf.set("spark.wap.branch", "audited")
        lake.sql(f"insert into {table} values (8)")
        lake.sql(f"delete from {table} where id = 1")
        lake.spark.conf.unset("spark.wap.branch")
        totals[writer] = [s[3] for s in snapshots(lake, table)]
        assert lake.table_rows(f"{by_java(table)}.branch_audited") == [(0,), (2,), (3,), (8,)]
    # The totals of a staged snapshot start from main's snapshot. On a branch, Java's totals omit
    # the rows that the branch started with, although "total-records" counts all records in the
    # snapshot (specification, Appendix F).
    assert totals == {OURS: ["4", "5", "5", "5"], JAVAS: ["4", "5", "1", "1"]}
