"""Changes of a cached table: Spark replaces the table in a plan by its cached rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases

STATEMENTS = [
    ("delete from {t} where id = 1", [(2, 2), (3, 3)]),
    ("update {t} set v = 9 where id = 2", [(2, 9), (3, 3)]),
    ("update {t} x set x.v = x.v + 1 where x.id = 2", [(2, 10), (3, 3)]),
    (
        "merge into {t} t using (select explode(array(3L, 4L)) id) u on t.id = u.id "
        "when matched then update set v = 0 when not matched then insert (id, v) values (u.id, 7)",
        [(2, 10), (3, 0), (4, 7)],
    ),
    (
        "merge into {t} t using {t} u on t.id = u.id and u.id = 4 "
        "when matched then update set v = u.v * 2",
        [(2, 10), (3, 0), (4, 14)],
    ),
    ("delete from {t} where id in (select max(id) from {t})", [(2, 10), (3, 0)]),
    ("delete from {t}", []),
]


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("cached"), "cached") as lake:
        yield lake


@cases(
    ("place", "mode"),
    fast=[("", "merge-on-read")],
    nightly=[(".branch_b", "merge-on-read"), ("", "copy-on-write"), (".branch_b", "copy-on-write")],
)
def test_a_cached_table_is_changed(session: IcebergSession, place: str, mode: str) -> None:
    sql = session.spark.sql
    table = f"cached.db.{mode[0]}{len(place)}"
    modes = ", ".join(f"'write.{op}.mode'='{mode}'" for op in ("delete", "update", "merge"))
    sql(f"create table {table} (id bigint, v int) using iceberg tblproperties ({modes})")
    sql(f"insert into {table} values (1, 1), (2, 2), (3, 3)")
    sql(f"alter table {table} create branch b")
    frame = session.spark.table(table + place).cache()
    assert frame.count() == 3
    for statement, remaining_rows in STATEMENTS:
        sql(statement.format(t=table + place))
        rows = session.spark.table(table + place).collect()
        assert sorted(map(tuple, rows)) == remaining_rows
    assert session.spark.table(table if place else f"{table}.branch_b").count() == 3
    frame.unpersist()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("call", "ids"),
    [
        ("rollback_to_snapshot('db.moved', {first})", [1]),
        ("add_files('db.moved', '`parquet`.`{folder}`')", [1, 2, 4]),
        ("rollback_to_timestamp('db.moved', timestamp_millis({after_first}))", [1]),
        ("set_current_snapshot('db.moved', {first})", [1]),
        ("set_current_snapshot('db.moved', ref => 'ahead')", [1, 2, 3]),
        ("fast_forward('db.moved', 'main', 'ahead')", [1, 2, 3]),
        ("cherrypick_snapshot('db.moved', {ahead})", [1, 2, 3]),
    ],
)
def test_procedures_that_change_rows(
    session: IcebergSession, tmp_path: Path, call: str, ids: list[int]
) -> None:
    sql = session.spark.sql
    sql("create or replace table cached.db.moved (id bigint) using iceberg")
    sql("insert into cached.db.moved values (1)")
    first = session.table("cached.db.moved").current_snapshot
    sql("insert into cached.db.moved values (2)")
    sql("alter table cached.db.moved create or replace branch ahead")
    sql("insert into cached.db.moved.branch_ahead values (3)")
    ahead = session.table("cached.db.moved").metadata.ref_snapshot("ahead")
    session.spark.range(4, 5).write.parquet(str(tmp_path / "files"))
    sql("cache table cached.db.moved")
    assert first is not None
    places = {"first": first.snapshot_id, "after_first": first.timestamp_ms + 1}
    try:
        arguments = {**places, "ahead": ahead.snapshot_id, "folder": tmp_path / "files"}
        sql(f"call cached.system.{call.format(**arguments)}")
        rows = session.spark.table("cached.db.moved").collect()
        assert sorted(r.id for r in rows) == ids
    finally:
        sql("uncache table cached.db.moved")


@pytest.mark.nightly
def test_a_branch_that_is_fast_forwarded(session: IcebergSession) -> None:
    sql = session.spark.sql
    sql("create table cached.db.forward (id bigint) using iceberg")
    sql("insert into cached.db.forward values (1)")
    sql("alter table cached.db.forward create branch behind")
    sql("insert into cached.db.forward values (2)")
    sql("cache table cached.db.forward.branch_behind")
    assert session.spark.table("cached.db.forward.branch_behind").count() == 1
    sql("call cached.system.fast_forward('db.forward', 'behind', 'main')")
    assert session.spark.table("cached.db.forward.branch_behind").count() == 2
    sql("uncache table cached.db.forward.branch_behind")


@pytest.mark.nightly
def test_changes_from_python(session: IcebergSession) -> None:
    spark = session.spark
    spark.sql("create table cached.db.python (id bigint, v int) using iceberg")
    spark.sql("insert into cached.db.python values (1, 1), (2, 2), (3, 3)")
    spark.sql("alter table cached.db.python create branch b")
    table = session.table("cached.db.python")
    cached = [spark.table(name).cache() for name in (table.name, f"{table.name}.branch_b")]
    assert [frame.count() for frame in cached] == [3, 3]

    def ids(name: str = "cached.db.python") -> list[int]:
        return sorted(r.id for r in spark.table(name).collect())

    table.delete("id = 1")
    assert ids() == [2, 3]
    source = spark.sql("select 5L as id, 5 as v")
    table.merge_into(source, "t.id = s.id").whenNotMatched().insertAll().merge()
    assert ids() == [2, 3, 5]
    table.write_equality_deletes(spark.sql("select 2L as id"), ["id"])
    assert ids() == [3, 5]
    source.write.format("iceberg-py").mode("append").save("cached.db.python")
    assert ids() == [3, 5, 5]
    assert ids("cached.db.python.branch_b") == [1, 2, 3]
    table.refresh().delete("id = 1", branch="b")
    assert ids("cached.db.python.branch_b") == [2, 3]
    for frame in cached:
        frame.unpersist()
