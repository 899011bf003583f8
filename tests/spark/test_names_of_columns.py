"""Columns whose names have dots and backticks, which SQL and DataFrames read as syntax."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import sqlite_lake


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("names"), "names") as lake:
        yield lake


def test_python_writes_and_changes_rows_of_such_columns(session: IcebergSession) -> None:
    sql, table = session.spark.sql, "names.db.written"
    # Python writes tables with maps.
    sql(f"create table {table} (`a.b` int, `c``d` string, m map<string, struct<`k.k`: int>>)")
    sql(f"insert into {table} values (1, 'x', map('k', named_struct('k.k', 1))), (2, 'y', null)")
    sql(
        f"merge into {table} t using "
        "(select 2 as `a.b`, 'z' as `c``d` union all select 3, 'new') s "
        "on t.`a.b` = s.`a.b` when matched then update set `c``d` = s.`c``d` "
        "when not matched then insert (`a.b`, `c``d`) values (s.`a.b`, s.`c``d`)"
    )
    session.table(table).update({"m": "map('k', named_struct('k.k', 9))"}, "`a.b` = 3")
    rows = sql(f"select `a.b`, `c``d`, m['k'].`k.k` from {table} order by `a.b`").collect()
    assert list(map(tuple, rows)) == [(1, "x", 1), (2, "z", None), (3, "new", 9)]


def test_a_dot_in_a_new_name_is_no_struct(session: IcebergSession) -> None:
    sql, table = session.spark.sql, "names.db.added"
    sql(f"create table {table} (a struct<x: int>, b int)")
    sql(f"alter table {table} add column `a.y` int after a")
    sql(f"alter table {table} add columns (a.`v.w` int first, `p.q.r` int)")
    sql(f"alter table {table} alter column `p.q.r` after `a.y`")
    assert (
        session.spark.table(table).schema.simpleString()
        == "struct<a:struct<v.w:int,x:int>,a.y:int,p.q.r:int,b:int>"
    )
    sql(f"alter table {table} drop column `a.y`")
    assert session.spark.table(table).columns == ["a", "p.q.r", "b"]
