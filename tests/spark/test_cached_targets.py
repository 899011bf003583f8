"""Changes of a cached table: Spark replaces the table in a plan by its cached rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import pairs

pytestmark = pytest.mark.release("where Spark puts what it has cached")

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


@pytest.mark.parametrize(
    ("place", "mode"), pairs(["", ".branch_b"], ["merge-on-read", "copy-on-write"])
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
