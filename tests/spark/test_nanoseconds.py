"""Timestamps in nanoseconds by Spark 4.3's own types, which one of its settings turns on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.rows.nanosecond_types import NANOS_ENABLED, nanos_spark_type
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spec.types import TimestampNsType
from tests.support.frames import load
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases

pytestmark = pytest.mark.skipif(
    nanos_spark_type(TimestampNsType()) is None, reason="Spark has the types since 4.3"
)

COLUMNS = "id bigint, a timestamp_ntz(9), b timestamp_ltz(9), z string"
A = "cast('{}' as timestamp_ntz(9))"
B = "cast('{}Z' as timestamp_ltz(9))"
TIMES = [
    "2026-01-31 23:59:59.999999999",
    "1969-12-31 23:59:59.999999999",
    "1677-09-21 00:12:44.000000001",
    "2262-04-11 23:47:16.854775807",
    "2026-02-01 00:00:00.000000001",
]
SHOWN = "select id, cast(a as string) a, cast(b as string) b, z from {t} order by id"


def values(start: int = 0) -> str:
    """Return rows as SQL; the last one has nulls."""
    rows = [f"({start + i}, {A.format(t)}, {B.format(t)}, 'z')" for i, t in enumerate(TIMES)]
    return ", ".join([*rows, f"({start + len(TIMES)}, null, null, null)"])


def rows(start: int = 0) -> list[tuple[Any, ...]]:
    return [
        *((start + i, t, t, "z") for i, t in enumerate(TIMES)),
        (start + len(TIMES), None, None, None),
    ]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("nanos"), "nanos") as session:
        session.spark.conf.set(NANOS_ENABLED, "true")
        yield session
        session.spark.conf.unset(NANOS_ENABLED)


def shown(lake: IcebergSession, t: str) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in lake.spark.sql(SHOWN.format(t=t)).collect()]


@cases(
    ("mode", "file_format", "partitioned"),
    fast=[("merge-on-read", "parquet", "days(a), bucket(4, b)")],
    nightly=[
        ("copy-on-write", "parquet", ""),
        ("copy-on-write", "parquet", "hours(b), years(a)"),
        ("merge-on-read", "parquet", "a"),
        ("merge-on-read", "avro", "months(b)"),
        ("copy-on-write", "avro", "b"),
    ],
)
def test_nanoseconds_are_written_changed_and_read(
    lake: IcebergSession, mode: str, file_format: str, partitioned: str
) -> None:
    t, sql = f"nanos.db.{mode[0]}_{file_format}_{abs(hash(partitioned))}", lake.spark.sql
    by = f"partitioned by ({partitioned})" if partitioned else ""
    modes = ", ".join(f"'write.{op}.mode' = '{mode}'" for op in ("delete", "update", "merge"))
    sql(
        f"create table {t} ({COLUMNS}) {by} tblproperties ('format-version' = '3', {modes}, "
        f"'write.format.default' = '{file_format}')"
    )
    sql(f"insert into {t} values {values()}")
    sql(f"insert into {t} select id + 10, a, b, z from {t}")
    assert shown(lake, t) == [*rows(), *rows(10)]
    sql(f"update {t} set b = {B.format(TIMES[4])}, z = 'u' where a = {A.format(TIMES[0])}")
    sql(f"delete from {t} where b > {B.format(TIMES[3][:-1])} or id = 13")
    sql(f"delete from {t} where a < {A.format('1700-01-01')}")
    sql(
        f"merge into {t} t using (select 1L id, {A.format(TIMES[3])} a union all select 50L, "
        f"{A.format(TIMES[2])}) s on t.id = s.id when matched then update set a = s.a "
        "when not matched then insert (id, a) values (s.id, s.a)"
    )
    one, two = rows(), rows(10)
    one[0] = (0, TIMES[0], TIMES[4], "u")
    two[0] = (10, TIMES[0], TIMES[4], "u")
    one[1] = (1, TIMES[3], TIMES[1], "z")
    left = [*one[:2], *one[4:], *two[:2], *two[4:], (50, TIMES[2], None, None)]
    assert shown(lake, t) == left
    sql(
        f"call nanos.system.rewrite_data_files(table => '{t[6:]}', "
        "options => map('rewrite-all', 'true'))"
    )
    assert shown(lake, t) == left
    stored = lake.table(t).scan("id = 0").to_arrow().select(["a", "b"])
    assert stored.schema.types == [pa.timestamp("ns"), pa.timestamp("ns", "UTC")]


def test_filters_skip_files_and_keep_the_right_rows(lake: IcebergSession) -> None:
    t, sql = "nanos.db.filters", lake.spark.sql
    sql(f"create table {t} ({COLUMNS}) tblproperties ('format-version' = '3')")
    for i in range(3):
        sql(
            f"insert into {t} values (0, {A.format(f'2026-01-01 00:00:00.00000000{i}')}, "
            f"{B.format(f'2026-01-01 00:00:00.00000000{i}')}, '{i}')"
        )
    last = "2026-01-01 00:00:00.000000001"
    for condition, found, files in (
        (f"a = {A.format(last)}", ["1"], 1),
        (f"b > {B.format(last)}", ["2"], 1),
        (f"b <= {B.format(last)}", ["0", "1"], 2),
        (f"a <> {A.format(last)}", ["0", "2"], 3),
        (f"a in ({A.format(last)}, {A.format(last[:-1] + '2')})", ["1", "2"], 2),
        ("a = timestamp_ntz'2026-01-01 00:00:00'", ["0"], 1),
        ("b > timestamp'2026-01-01 00:00:00Z'", ["1", "2"], 2),
        ("a is null", [], 0),
        (
            f"a < {A.format('3000-01-01')} and b > {B.format('0001-01-01 00:00:00')}",
            ["0", "1", "2"],
            3,
        ),
    ):
        frame = sql(f"select z from {t} where {condition} order by z")
        assert [r.z for r in frame.collect()] == found, condition
        read = sql(f"select distinct _file from {t} where {condition}")
        assert len(read.inputFiles()) == files, condition


def test_the_format_reads_them_as_sparks_own_types(lake: IcebergSession) -> None:
    t, spark = "nanos.db.portable", lake.spark
    spark.sql(f"create table {t} ({COLUMNS}) tblproperties ('format-version' = '3')")
    spark.sql(f"insert into {t} values {values()}")
    location = lake.table(t).location
    with pytest.raises(PySparkException, match="column 'a' has type timestamp_ns"):
        load(spark, location)
    frame = load(spark, location, {"nanos-as": "nanos"})
    frame.createOrReplaceTempView("portable_nanos")
    assert shown(lake, "portable_nanos") == rows()
    arrow = frame.orderBy("id").toArrow()
    assert arrow["a"].type == pa.timestamp("ns")
    assert arrow["b"].cast(pa.int64()).to_pylist()[1] == -1


def test_without_the_setting_the_columns_are_not_selected(lake: IcebergSession) -> None:
    t, sql = "nanos.db.off", lake.spark.sql
    sql(f"create table {t} ({COLUMNS}) tblproperties ('format-version' = '3')")
    sql(f"insert into {t} values {values()}")
    lake.spark.conf.set(NANOS_ENABLED, "false")
    try:
        assert dict(lake.spark.table(t).dtypes)["a"] == "binary"
        assert sql(f"select count(id), count(z) from {t}").collect() == [(6, 5)]
        with pytest.raises(PySparkException, match=f"or in SQL set {NANOS_ENABLED}"):
            sql(f"select a from {t}").collect()
        with pytest.raises((PySparkException, Py4JJavaError), match=NANOS_ENABLED):
            sql(f"update {t} set z = 'u' where id = 1")
    finally:
        lake.spark.conf.set(NANOS_ENABLED, "true")
    assert shown(lake, t) == rows()
    assert dict(lake.spark.table(t).dtypes)["a"] == "timestamp_ntz(9)"
