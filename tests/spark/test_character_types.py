"""VARCHAR(n) of our tables, beside Spark's own."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spec.table_properties import CHARACTER_TYPE
from tests.support.native_lake import sqlite_lake

STATEMENTS = (
    "create table {t} (id int, v varchar(3) comment 'three', "
    "s struct<v: varchar(2), n: int>, l array<varchar(2)>, z string) {using}",
    "describe {t}",
    "insert into {t} values (1, 'abc', named_struct('v', 'x', 'n', 1), array('q'), 'z'), "
    "(2, 'ab    ', null, null, 'abcdefgh')",
    "insert into {t} values (3, 'abcd', null, null, null)",
    "insert into {t} select 4, 'b', named_struct('v', 'abc', 'n', 1), null, null",
    "insert into {t} select 4, 'b', null, array('abc'), null",
    "insert into {t} (id, z, v) select id, 'r', concat('r', id) from range(7, 9)",
    "select id, concat('[', v, ']'), concat('[', s.v, ']'), l, z from {t}",
    "select id from {t} where v = 'ab ' or v = 'r7' or s.v = 'x'",
    "alter table {t} add columns (w varchar(2))",
    "insert into {t} (id, w) values (5, 'xyz')",
    "insert into {t} (id, w) values (5, 'xy')",
    "select w from {t} where id in (1, 5)",
    "describe {t}",
)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("characters"), "characters") as session:
        yield session


def outcome(spark: SparkSession, statement: str) -> object:
    """Return the rows of a statement, or the class of its error."""
    try:
        return sorted(map(str, spark.sql(statement).collect()))
    except PySparkException as e:
        return e.getCondition()


def test_statements_end_as_on_a_table_of_sparks_own(lake: IcebergSession) -> None:
    spark = lake.spark
    for statement in STATEMENTS:
        ours = outcome(spark, statement.format(t="characters.db.t", using=""))
        theirs = outcome(
            spark, statement.format(t="spark_catalog.default.t", using="using parquet")
        )
        assert ours == theirs, statement
    spark.sql("drop table spark_catalog.default.t")


def test_changes_of_rows_and_columns_keep_the_types(lake: IcebergSession) -> None:
    t, spark = "characters.db.changed", lake.spark
    sql = spark.sql
    sql(f"create table {t} (id int, c char(3), v varchar(3), z string)")
    sql(f"insert into {t} values (1, 'long', 'v1', 'z'), (2, 'b', 'v2', 'z')")
    # as another engine writes it, which knows a string
    lake.table(t).append(pa.table({"id": pa.array([3], pa.int32()), "v": ["longer"]}))
    sql(f"update {t} set c = 'x', v = 'new' where id = 2")
    for change in (
        f"update {t} set v = 'long' where id = 1",
        f"merge into {t} t using (select 1 id) s on t.id = s.id when matched then "
        "update set v = 'long'",
        f"merge into {t} t using (select 9 id) s on t.id = s.id when not matched then "
        "insert (id, v) values (9, 'long')",
    ):
        assert outcome(spark, change) == "EXCEED_LIMIT_LENGTH", change
    sql(
        f"merge into {t} t using (select 4 id) s on t.id = s.id when not matched then "
        "insert (id, v) values (4, 'm')"
    )
    shown = f"select id, c, v from {t} order by id"
    rows = [(1, "long", "v1"), (2, "x", "new"), (3, None, "longer"), (4, None, "m")]
    assert sql(shown).collect() == rows
    sql(f"delete from {t} where v = 'longer' or v = 'v1'")
    assert sql(shown).collect() == [rows[1], rows[3]]
    sql(f"alter table {t} rename column v to d")
    sql(f"alter table {t} add column v string")
    sql(f"alter table {t} alter column d type varchar(4)")
    types = {r.col_name: r.data_type for r in sql(f"describe {t}").collect()}
    assert types == {"id": "int", "c": "string", "d": "varchar(4)", "z": "string", "v": "string"}
    sql(f"insert into {t} (id, d, v) values (5, 'long', 'longer')")
    sql(f"alter table {t} alter column d type string")
    assert {r.data_type for r in sql(f"describe {t}").collect()} == {"int", "string"}
    sql(f"create or replace table {t} (id int, v varchar(2), d string)")
    assert outcome(spark, f"insert into {t} values (1, 'abc', '')") == "EXCEED_LIMIT_LENGTH"
    kept = {k: v for k, v in lake.table(t).properties.items() if k.startswith(CHARACTER_TYPE)}
    assert list(kept.values()) == ["varchar(2)"]
