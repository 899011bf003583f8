"""Columns whose names have dots and backticks, or differ from each other in case only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import sqlite_lake
from tests.support.spark_settings import configured


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


def test_new_column_name_with_a_dot_is_one_column(session: IcebergSession) -> None:
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


@pytest.mark.parametrize("other", ["int", "map<string, int>"], ids=["native", "Python"])
def test_names_that_differ_in_case_only(session: IcebergSession, other: str) -> None:
    """Java's tables may have such columns, and Spark reads them if it is case-sensitive."""
    sql, table = session.spark.sql, f"names.db.cases_{other[:3]}"
    with configured(session.spark, {"spark.sql.caseSensitive": "true"}):
        sql(f"create table {table} (a int, A int, o {other})")
        sql(f"insert into {table} values (1, 2, null), (3, 4, null)")
        columns = session.spark.createDataFrame([(6, 5)], "A int, a int")
        columns.selectExpr("*", f"cast(null as {other}) as o").writeTo(table).append()
        sql(f"update {table} set A = 20 where a = 1")
        sql(f"delete from {table} where A = 4")
        sql(
            f"merge into {table} t using (select 5 as a, 50 as A) s on t.a = s.a "
            "when matched then update set A = s.A"
        )
        rows = sql(f"select A, a from {table} where A > 5 order by a").collect()
    assert list(map(tuple, rows)) == [(20, 1), (50, 5)]
