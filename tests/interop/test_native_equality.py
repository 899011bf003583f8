"""Equality deletes in Spark's own plans return Java's rows (docs/conformance.md 22-24, 27-30)."""

from collections.abc import Iterator

import pytest

from tests.support.native_lake import native_lake, same_rows
from tests.support.oracle import Oracle

pytestmark = pytest.mark.nightly

ROWS = "select id, cast(id % 3 as int) g, cast(id as string) s, id * 1.5 d from range(40)"


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as installed:
        yield installed


@pytest.mark.parametrize("version", [2, 3])
def test_only_files_with_deletes_pay_and_rows_of_later_stay(lake: Oracle, version: int) -> None:
    name = f"keyed.sequence_v{version}"
    table = f"java_hadoop.{name}"
    properties = f"'format-version'='{version}', 'write.delete.mode'='merge-on-read'"
    lake.sql(f"create table {table} using iceberg tblproperties ({properties}) as " + ROWS)
    lake.sql(f"insert into {table} values (7, 0, 'again', 0.0), (50, 1, 'other', 1.0)")
    lake.write_equality_deletes(table, ["id"], [(5,), (6,), (7,)])
    lake.sql(f"insert into {table} select 5L, 1, 'alive', 0.0")
    plan = same_rows(lake, "select * from {t}." + name)
    assert plan.count("IcebergPyParquetScan") == 2
    assert plan.count("BroadcastHashJoin") == 1
    assert "HashedRelationBroadcastMode(List(input[" in plan, "a long key, joined plainly"
    assert "coalesce" not in plan
    assert "MapInArrow" not in plan
    # A file may have bitmaps and equality deletes at once, also with several sequence numbers.
    lake.sql(f"delete from {table} where id in (1, 2, 50)")
    lake.write_equality_deletes(table, ["s", "id"], [("alive", 5), ("3", 3), ("4", 3)])
    lake.write_equality_deletes(table, ["id"], [(5,)])
    lake.sql(f"insert into {table} select 5L, 1, 'alive', 0.0")
    for query in ("select * from {t}.", "select s from {t}.", "select count(*) from {t}."):
        assert "MapInArrow" not in same_rows(lake, query + name)
    plan = same_rows(lake, "select d from {t}." + name + " where id < 6 and s is not null")
    assert "MapInArrow" not in plan


def test_nulls_are_equal_where_a_null_was_deleted(lake: Oracle) -> None:
    name = "keyed.nulls"
    table = f"java_hadoop.{name}"
    lake.sql(f"create table {table} (id bigint, v string) using iceberg")
    lake.sql(f"insert into {table} values (1, 'a'), (1, null), (null, 'a'), (null, null), (2, 'b')")
    lake.write_equality_deletes(table, ["id"], [(2,)])
    assert "coalesce" not in same_rows(lake, "select * from {t}." + name)
    lake.write_equality_deletes(table, ["v", "id"], [(None, 1), ("a", None)])
    assert "coalesce" in same_rows(lake, "select * from {t}." + name)
    lake.write_equality_deletes(table, ["id"], [(None,)])
    lake.sql(f"insert into {table} values (null, 'new')")
    same_rows(lake, "select * from {t}." + name)
    same_rows(lake, "select v from {t}." + name + " where id is null or v = 'b'")


def test_a_delete_of_one_partition_leaves_the_others_and_specs_alone(lake: Oracle) -> None:
    name = "keyed.scoped"
    table = f"java_hadoop.{name}"
    lake.sql(f"create table {table} (id bigint, g int) using iceberg partitioned by (g)")
    same = "select 7L, cast(id as int) from range(4)"
    lake.sql(f"insert into {table} {same}")
    lake.sql(f"insert into {table} values (8, 1), (8, null), (9, 1), (9, 2)")
    lake.write_equality_deletes(table, ["id"], [(7,), (8,)], (1,))
    lake.write_equality_deletes(table, ["id"], [(8,)], (None,))
    plan = same_rows(lake, "select * from {t}." + name)
    assert "MapInArrow" not in plan
    # Files of another spec: a delete without a partition applies to all older files.
    lake.sql(f"alter table {table} drop partition field g")
    lake.sql(f"insert into {table} values (7, 1), (9, 3), (10, 3)")
    lake.write_equality_deletes(table, ["id"], [(9,)])
    lake.sql(f"insert into {table} values (9, 4)")
    same_rows(lake, "select * from {t}." + name)
    lake.sql(f"alter table {table} add partition field bucket(2, id)")
    lake.sql(f"insert into {table} {same}")
    lake.write_equality_deletes(table, ["g"], [(0,), (1,), (2,), (3,)], (0,))
    lake.write_equality_deletes(table, ["g"], [(2,)], (1,))
    plan = same_rows(lake, "select id, g from {t}." + name)
    assert "MapInArrow" not in plan
    same_rows(lake, "select count(*) from {t}." + name + " where g = 2")


def test_key_columns_that_were_renamed_promoted_dropped_and_added(lake: Oracle) -> None:
    name = "keyed.evolved"
    table = f"java_hadoop.{name}"
    lake.sql(f"create table {table} (id int, k int, v string, w string) using iceberg")
    lake.sql(f"insert into {table} values (1, 10, 'a', 'x'), (2, 20, 'b', 'y'), (3, 30, 'c', 'z')")
    lake.write_equality_deletes(table, ["k"], [(10,)])
    lake.write_equality_deletes(table, ["w"], [("y",)])
    lake.sql(f"alter table {table} alter column k type bigint")
    lake.sql(f"insert into {table} values (4, 40, 'd', 'u'), (5, 50, 'e', 'v')")
    lake.write_equality_deletes(table, ["k"], [(30,), (40,)])
    lake.sql(f"alter table {table} rename column k to key")
    lake.sql(f"alter table {table} drop column w")
    lake.sql(f"insert into {table} values (6, 10, 'f')")
    lake.write_equality_deletes(table, ["v"], [("nothing",)])
    for query in ("select * from {t}.", "select id from {t}.", "select count(*) from {t}."):
        assert "MapInArrow" not in same_rows(lake, query + name)
    # Java cannot read a table in which a new column has the name of a dropped key column.
    lake.sql(f"alter table {table} add column w string")
    lake.sql(f"insert into {table} values (7, 10, 'g', 'y')")
    remaining_rows = lake.spark.sql(f"select id, w from lake.{name}").collect()
    assert sorted(tuple(r) for r in remaining_rows) == [(5, None), (6, None), (7, "y")]
    assert lake.spark.sql(f"select id from lake.{name} where w = 'y'").collect() == [(7,)]


def test_keys_that_spark_compares_differently_are_read_portably(lake: Oracle) -> None:
    name = "keyed.floats"
    table = f"java_hadoop.{name}"
    lake.sql(f"create table {table} (id bigint, d double) using iceberg")
    lake.sql(f"insert into {table} values (1, 0.0), (2, double('-0.0')), (3, 1.5)")
    lake.write_equality_deletes(table, ["d"], [(0.0,)])
    lake.sql(f"insert into {table} values (4, 0.0)")
    plan = same_rows(lake, "select * from {t}." + name)
    assert "MapInArrow" in plan
    assert "IcebergPyParquetScan" in plan, "files without deletes do not pay"
    same_rows(lake, "select count(*) from {t}." + name)


TYPED = {
    "INT": ("-1", "2147483647"),
    "BOOLEAN": ("false", "true"),
    "STRING": ("'é𐍈'", "''"),
    "DECIMAL(18, 3)": ("-0.001", "0"),
    "DATE": ("'1969-12-31'", "'9999-12-31'"),
    "TIMESTAMP": ("'1969-12-31 23:59:59.999999'", "'2026-01-01 00:00:00'"),
    "TIMESTAMP_NTZ": ("'1969-12-31 23:59:59.999999'", "'2026-01-01 00:00:00'"),
    "BINARY": ("X''", "X'00FF'"),
}
"""For each type, a deleted value and a remaining value."""


@pytest.mark.parametrize("zone", ["America/New_York"])
def test_keys_of_many_types(lake: Oracle, zone: str) -> None:
    name = f"keyed.typed_{zone[:3].lower()}"
    table = f"java_hadoop.{name}"
    columns = ", ".join(f"c{i} {type_}" for i, type_ in enumerate(TYPED))
    lake.sql(f"create table {table} (id string, {columns}) using iceberg")
    rows = [
        f"select 'c{i} {n}', "
        + ", ".join(
            f"cast({value if other == i else 'null'} as {type_})"
            for other, type_ in enumerate(TYPED)
        )
        for i, pair in enumerate(TYPED.values())
        for n, value in enumerate(pair)
    ]
    lake.sql(f"insert into {table} {' union all '.join(rows)}")
    for row in lake.sql(f"select * from {table} where id like '% 0'").collect():
        column = row.id.split()[0]
        lake.write_equality_deletes(table, [column], [(row[column],)])
    lake.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        assert "MapInArrow" not in same_rows(lake, "select * from {t}." + name)
        remaining = lake.spark.sql(f"select id from lake.{name}").collect()
        assert sorted(row.id for row in remaining) == [f"c{i} 1" for i in range(len(TYPED))]
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", "UTC")
