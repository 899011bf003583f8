"""DELETE, UPDATE and MERGE whose conditions and values are functions in Python."""

from __future__ import annotations

from collections.abc import Iterator
from random import random

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from iceberg_pyspark.spark.session import IcebergSession
from tests.support.frames import append_rows
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("functions"), "functions") as created:
        register(spark)
        yield created


def register(spark: SparkSession) -> None:
    spark.udf.register("twice", _twice, "string")
    spark.udf.register("joined", lambda one, other: f"{one}-{other}", "string")
    # Spark evaluates such functions by another operator than those above
    shouted = udf(lambda text: text and text.upper(), "string", useArrow=True)
    spark.udf.register("shouted", shouted)


def _twice(text: str | None) -> str | None:
    # Spark calls the functions of a MERGE for rows without a match too
    return text and text * 2


def rows_of(spark: SparkSession, table: str) -> list[tuple[int, str]]:
    return sorted((row.id, row.s) for row in spark.table(table).collect())


@pytest.fixture
def mode() -> str:
    return "copy-on-write"


@pytest.fixture
def table(session: IcebergSession, mode: str, request: pytest.FixtureRequest) -> str:
    name = f"functions.db.{request.node.name.translate(str.maketrans('[-]', '___'))}"
    modes = ", ".join(f"'write.{op}.mode'='{mode}'" for op in ("delete", "update", "merge"))
    session.spark.sql(f"create table {name} (id bigint, s string) tblproperties ({modes})")
    append_rows(session.table(name), [{"id": i, "s": s} for i, s in enumerate("abcd", 1)])
    return name


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_delete_and_update(session: IcebergSession, table: str) -> None:
    spark = session.spark
    spark.sql(f"delete from {table} where twice(s) = 'aa'")
    spark.sql(f"update {table} set s = twice(twice(s)) where joined(id, shouted(s)) = '2-B'")
    spark.sql(f"update {table} set s = shouted(twice(s)), id = id + 10 where id = 3")
    last = f"(select max(id) from {table} where shouted(s) = 'D')"
    spark.sql(f"update {table} set s = twice('l') where id = {last}")
    assert rows_of(spark, table) == [(2, "bbbb"), (4, "ll"), (13, "CC")]


@cases("mode", fast=["merge-on-read"], nightly=["copy-on-write"])
def test_merge(session: IcebergSession, table: str) -> None:
    spark = session.spark
    spark.createDataFrame(
        [(1, "x"), (2, "y"), (3, "z"), (9, "n"), (10, "m")], "id long, s string"
    ).createOrReplaceTempView("function_source")
    spark.sql(
        f"merge into {table} t using function_source u on t.id = u.id and twice(t.s) <> 'cc' "
        "when matched and joined(t.s, u.s) = 'b-y' then delete "
        "when matched then update set s = joined(shouted(t.s), u.s) "
        "when not matched and twice(u.s) in ('nn', 'zz') then insert (id, s) "
        "values (u.id, twice(u.s)) "
        "when not matched by source and twice(t.s) = 'dd' then update set s = twice(t.s)"
    )
    assert rows_of(spark, table) == [(1, "A-x"), (3, "c"), (3, "zz"), (4, "dd"), (9, "nn")]


@pytest.mark.nightly
def test_cached_tables_and_sessions(session: IcebergSession, table: str) -> None:
    other = session.spark.newSession()
    for key in ("", ".type", ".uri", ".warehouse"):
        name = f"spark.sql.catalog.functions{key}"
        other.conf.set(name, str(session.spark.conf.get(name)))
    register(other)
    other.sql(f"cache table {table}")
    try:
        other.sql(f"update {table} set s = twice(s) where shouted(s) = 'A'")
        other.sql(f"delete from {table} where twice(s) = 'bb'")
        assert rows_of(other, table) == [(1, "aa"), (3, "c"), (4, "d")]
    finally:
        other.sql(f"uncache table {table}")


@pytest.mark.nightly
def test_from_python(session: IcebergSession, table: str) -> None:
    spark_table = session.table(table)
    twice = udf(lambda text: text * 2, "string")
    spark_table.update({"s": twice("s")}, twice("s") == "bb")
    spark_table.delete(twice("s") == "aa")
    source = session.spark.createDataFrame([(3, "x"), (7, "y")], "id long, s string")
    spark_table.merge_into(source.alias("u"), "t.id = u.id").whenMatched().update(
        {"s": "joined(t.s, u.s)"}
    ).whenNotMatched().insert({"id": "id", "s": "twice(s)"}).merge()
    assert rows_of(session.spark, table) == [(2, "bb"), (3, "c-x"), (4, "d"), (7, "yy")]


def test_functions_that_spark_refuses(session: IcebergSession, table: str) -> None:
    spark = session.spark
    spark.udf.register("chance", udf(lambda text: text, "string").asNondeterministic())
    before = rows_of(spark, table)
    with pytest.raises(AnalysisException, match="INVALID_NON_DETERMINISTIC_EXPRESSIONS"):
        spark.sql(f"update {table} set s = 'a' where chance(s) = 'b'")
    spark.createDataFrame([(1, "x")], "id long, s string").createOrReplaceTempView("on_source")
    merge = (
        f"merge into {table} t using on_source u on joined(t.id, u.id) = '1-1' "
        "when matched then update set s = 'm' when not matched then insert *"
    )
    with pytest.raises(AnalysisException, match="PYTHON_UDF_IN_ON_CLAUSE"):
        spark.sql(merge)
    assert rows_of(spark, table) == before


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_random_function_gives_each_row_one_value(session: IcebergSession, table: str) -> None:
    spark = session.spark
    draw = udf(lambda text: f"{text}{random()}", "string").asNondeterministic()
    spark.udf.register("draw", draw)
    spark.sql(f"update {table} set s = draw(s) where id < 4")
    drawn = rows_of(spark, table)
    assert [(i, s[0]) for i, s in drawn] == list(enumerate("abcd", 1))
    assert len({s[1:] for _, s in drawn[:3]}) == 3
    assert drawn[3] == (4, "d")
    assert rows_of(spark, table) == drawn
