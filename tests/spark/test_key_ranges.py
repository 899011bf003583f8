"""A change that a source selects rows for reads only files that can contain the source's keys."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.row_level import execution
from iceberg_pyspark.spark.row_level.row_level_job import run_job
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spark.table_states import TargetReads
from iceberg_pyspark.table.reading.table_scan import TableScan
from iceberg_pyspark.table.row_level.touched_rows import TouchedRows
from tests.support.frames import append_rows
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases

MERGE = "merge into {t} t using (select * from changes where kind = 'x') s on "
CHANGED = "when matched then update set v = s.v"
STATEMENTS = {
    "merge": f"{MERGE} t.id = s.id and t.p = s.p {CHANGED}",
    "merge_outer": f"{MERGE} t.id = s.id and t.p = s.p {CHANGED} "
    "when not matched then insert (id, p, v) values (s.id, s.p, s.v)",
    "update": "update {t} set v = 1 where p in (select p from changes where kind = 'x') "
    "and id < 400",
    "delete": "delete from {t} where p in (select p from changes where kind = 'x')",
    "delete_rows": "delete from {t} where (id, p) in (select id, p from changes where kind = 'x')",
    "exists": "delete from {t} where exists (select 1 from changes s where s.kind = 'x' "
    "and s.p = {t}.p and s.id >= {t}.id)",
    "wider": "delete from {t} where exists (select 1 from wide s where s.kind = 'x' "
    "and s.p = {t}.p)",
}
EVERY_FILE = {
    "no_key": "update {t} set v = 2 where id in (select id from changes where kind = 'x')",
    "or": "delete from {t} where p in (select p from changes where kind = 'x') or id = 3",
    "not_in": "delete from {t} where p not in (select p from changes where kind = 'y')",
    "limited": "delete from {t} where p in (select p from changes where kind = 'x' limit 3)",
}
ROWS = [(i, i % 50, i * 10) for i in range(500)]


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("ranged"), "ranged") as lake:
        spark.sql(
            "create table ranged.db.changes as select id, cast(id % 50 as int) p, -id v, "
            "if(id % 50 = 17, 'x', 'y') kind from range(500)"
        )
        spark.table("ranged.db.changes").createOrReplaceTempView("changes")
        spark.sql("select id, cast(p as bigint) p, v, kind from changes").createOrReplaceTempView(
            "wide"
        )
        yield lake


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[TableScan]:
    """Return a list that records the scans of a change's target."""
    scans: list[TableScan] = []
    note = TargetReads.record_scan

    def noted(self: TargetReads, scan: TableScan) -> TableScan:
        scans.append(note(self, scan))
        return scans[-1]

    monkeypatch.setattr(TargetReads, "record_scan", noted)
    return scans


def partitions_read(scans: list[TableScan]) -> set[int]:
    return {t.partition[0] for s in scans for t in s.plan().tasks(split=None)}


def make(session: IcebergSession, name: str, mode: str) -> str:
    table = f"ranged.db.{name}_{mode[0]}"
    modes = ", ".join(f"'write.{op}.mode'='{mode}'" for op in ("delete", "update", "merge"))
    fill(session, table, f"partitioned by (p) tblproperties ({modes})")
    return table


def fill(session: IcebergSession, table: str, clauses: str) -> None:
    session.spark.sql(f"create table {table} (id bigint, p int, v bigint) {clauses}")
    rows = [{"id": i, "p": p, "v": v} for i, p, v in ROWS]
    append_rows(session.table(table), rows)


def rows_of(session: IcebergSession, table: str) -> list[tuple[int, ...]]:
    rows = session.table(table).scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def changed_plainly(session: IcebergSession, name: str, statement: str) -> list[tuple[int, ...]]:
    """Return a statement's result on an unpartitioned table, whose metrics cannot prune."""
    table = f"ranged.db.{name}_plain"
    fill(session, table, "")
    session.spark.sql(statement.format(t=table))
    return rows_of(session, table)


MODES = ("merge-on-read", "copy-on-write")
ALWAYS = [("delete", "merge-on-read"), ("merge", "copy-on-write")]


@cases(
    ("name", "mode"),
    fast=ALWAYS,
    nightly=[c for c in product(STATEMENTS, MODES) if c not in ALWAYS],
)
def test_one_partition_of_fifty_is_read(
    session: IcebergSession, read: list[TableScan], name: str, mode: str
) -> None:
    table = make(session, name, mode)
    session.spark.sql(STATEMENTS[name].format(t=table))
    assert partitions_read(read) == {17}
    table_rows = rows_of(session, table)
    assert table_rows == changed_plainly(session, f"{name}_{mode[0]}", STATEMENTS[name])
    assert table_rows != ROWS


@pytest.mark.nightly
@pytest.mark.parametrize("name", EVERY_FILE)
def test_statement_without_key_condition_reads_every_file(
    session: IcebergSession, read: list[TableScan], name: str
) -> None:
    table = make(session, name, "merge-on-read")
    session.spark.sql(EVERY_FILE[name].format(t=table))
    assert len(partitions_read(read)) == 50
    if name != "limited":
        table_rows = rows_of(session, table)
        assert table_rows == changed_plainly(session, name, EVERY_FILE[name])


@pytest.mark.nightly
def test_a_source_without_rows_reads_no_file(
    session: IcebergSession, read: list[TableScan]
) -> None:
    table = make(session, "nothing", "copy-on-write")
    files = set(Path(session.table(table).location).rglob("*.parquet"))
    session.spark.sql(f"delete from {table} where p in (select p from changes where kind = 'z')")
    assert partitions_read(read) == set()
    assert set(Path(session.table(table).location).rglob("*.parquet")) == files


@pytest.mark.nightly
def test_a_source_that_may_give_other_rows_the_next_time_is_not_read_twice(
    session: IcebergSession, tmp_path: Path
) -> None:
    assert session.bridge is not None
    spark, joins = session.spark, session.bridge.joins
    spark.range(3).write.parquet(str(tmp_path / "files"))
    spark.read.parquet(str(tmp_path / "files")).createOrReplaceTempView("files")
    same = ["select * from files", "select id from changes where v > (select max(id) from files)"]
    others = [
        "select id, current_timestamp() t from files",
        "select id from files where current_date() > date'2020-01-01' or id > 1",
        "select id from files where id > (select second(now()))",
        "select id from files where id > (select max(id) from (select id from files limit 2))",
        "select id from files where id > (select max(r) from (select rand() r from files))",
        "select id from files where rand() > 0.5",
    ]
    cheap = {text: joins.is_cheap(spark.sql(text), 1 << 60) for text in (*same, *others)}
    assert cheap == dict.fromkeys(same, True) | dict.fromkeys(others, False)
    # The rows of a cache stay.
    cached = spark.sql(others[0]).cache()
    assert joins.is_cheap(cached.where("t > now()"), 1 << 60) is False
    assert joins.is_cheap(cached.where("id > 0"), 1 << 60) is True
    cached.unpersist()


@pytest.mark.nightly
def test_keys_beyond_the_calendar_of_python_have_every_file_read(
    session: IcebergSession, read: list[TableScan]
) -> None:
    spark, name = session.spark, "ranged.db.far"
    spark.sql(f"create table {name} (d date, v int) partitioned by (d)")
    spark.sql(f"insert into {name} values (date'2026-01-01', 1), (date'2026-01-02', 2)")
    source = "select date'2026-01-01' + int(4000000 * id) d from range(2)"
    spark.sql(f"merge into {name} t using ({source}) s on t.d = s.d when matched then delete")
    assert [row.v for row in spark.table(name).collect()] == [2]
    assert len(partitions_read(read)) == 2


@pytest.mark.parametrize("mode", MODES)
def test_only_rows_that_would_have_been_read_are_a_conflict(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    table = make(session, "raced", mode)
    runs = 0

    def append(partition: int) -> None:
        """Make somebody else append after the next statement's job and before its commit."""
        nonlocal runs
        runs = 0

        def raced(target: Target, *args: object, **kw: object) -> TouchedRows:
            nonlocal runs
            runs += 1
            done: TouchedRows = run_job(target, *args, **kw)  # type: ignore[arg-type]
            if runs == 1:
                session.spark.sql(f"insert into {table} values (1000, {partition}, 0)")
            return done

        monkeypatch.setattr(execution, "run_job", raced)

    condition = "p in (select p from values (17), (18) as v(p) where p = 17)"
    append(30)
    session.table(table).update({"v": "-1"}, condition)
    assert runs == 1
    append(17)
    session.table(table).update({"v": "-2"}, condition)
    assert runs == 2
    rows = session.spark.sql(f"select count(*), sum(v) from {table} where p = 17").collect()
    assert [tuple(r) for r in rows] == [(11, -22)]
