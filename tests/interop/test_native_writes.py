"""Files of Spark's own Parquet writer: Java reads them, and our metadata equals Java's."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812

from tests.support.native_lake import native_lake, same_rows
from tests.support.oracle import Oracle
from tests.support.rows import plain_value, sorted_rows, spark_rows

pytestmark = pytest.mark.nightly

COLUMNS = (
    "b boolean, i int not null, l bigint, f float, d double, dec decimal(12,3), "
    "big decimal(30,5), day date, ts timestamp, ntz timestamp_ntz, s string, bin binary, "
    "st struct<x: int, `y z`: struct<v: string>>"
)
ROWS = (
    "select id % 2 = 0, cast(id - 50 as int), id * 7000000001, cast(id + 1 as float) / 3, "
    "(id + 1) / 7d, cast(id * 1.125 as decimal(12,3)), cast(id * 1.5 - 7 as decimal(30,5)), "
    "date_add(date'1969-12-01', cast(id as int)), "
    "timestamp'1969-12-31 22:00:00' + make_interval(0, 0, 0, 0, cast(id as int)), "
    "timestamp_ntz'1969-12-31 22:00:00' + make_interval(0, 0, 0, 0, cast(id as int)), "
    "concat('é/ =', id, ' is a text that is cut'), encode(concat('b', id), 'utf-8'), "
    "named_struct('x', cast(id as int), 'y z', named_struct('v', 'w')) from range(60) union all "
    "select null, 7, null, null, null, null, null, null, null, null, null, null, null"
)
METRICS = (
    "record_count",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as lake:
        lake.sql("create namespace java_hadoop.native_writes")
        yield lake


@pytest.mark.parametrize(
    "partitioning",
    ["", "partitioned by (b, months(day))", "partitioned by (bucket(3, s), truncate(20, i))"],
)
def test_java_reads_our_files_with_equal_metrics(lake: Oracle, partitioning: str) -> None:
    name = f"native_writes.t{len(partitioning)}"
    actual = []
    for table in (f"lake.{name}", f"java_hadoop.{name}_java"):
        lake.sql(f"create table {table} ({COLUMNS}) using iceberg {partitioning}")
        lake.sql(f"insert into {table} {ROWS}")
        java = table.replace("lake.", "java_hadoop.")
        rows = spark_rows(lake.sql(f"select * from {java}").collect())
        files = lake.sql(f"select * from {java}.files").collect()
        folders = [f.file_path.rpartition("/")[0].partition("/data")[2] for f in files]
        metrics = sorted_rows(
            (folder, *(plain_value(f[m]) for m in METRICS))
            for folder, f in zip(folders, files, strict=True)
        )
        actual.append((rows, metrics))
        keys = {k for f in files for k in pq.read_metadata(f.file_path).metadata}
        assert (b"org.apache.spark.version" in keys) == (table == f"lake.{name}")
    assert actual[0] == actual[1]
    conditions = (
        "s like 'é/ =3%'",
        "day = date'1970-01-02'",
        "d > 8",
        "st.x = 5",
        "b is null",
    )
    queries = (
        f"select {number}, * from {{t}}.{name} where {condition}"
        for number, condition in enumerate(conditions)
    )
    same_rows(lake, " union all ".join(queries))


def test_renamed_columns_are_found_by_their_ids(lake: Oracle) -> None:
    t = "lake.native_writes.renamed"
    lake.sql(f"create table {t} (a bigint, b struct<c: bigint>) using iceberg")
    lake.sql(f"insert into {t} select id, named_struct('c', -id) from range(5)")
    lake.sql(f"alter table {t} rename column a to z")
    lake.sql(f"alter table {t} rename column b.c to a")
    lake.sql(f"alter table {t} add column a string")
    same_rows(lake, "select * from {t}.native_writes.renamed")
    actual = lake.spark.table("java_hadoop.native_writes.renamed")
    assert actual.agg(F.sum("z"), F.sum("b.a"), F.count("a")).collect() == [(10, -10, 0)]
