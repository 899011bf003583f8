"""Files by Spark's own Parquet writer are those of the Arrow writer, but for their sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark import install
from iceberg_pyspark.spark.session import IcebergSession
from tests.support.rows import plain_value, sorted_rows, spark_rows

PREFIX = "spark.sql.catalog.fast"
# sizes differ by the writer, and with them where row groups begin
SIZES = ("file_path", "file_size_in_bytes", "column_sizes", "split_offsets", "readable_metrics")

VALUES = """
    (1, 2147483647, 9223372036854775807L, 1.5f, 1e300d, 12345.67, 12345678901234567.89,
     date'2024-02-29', timestamp_ntz'2024-02-29 23:59:59.999999',
     timestamp'2024-02-29 23:59:59.999999', 'a/b=c%', X'00ff', true),
    (2, -2147483640, -9223372036854775799L, -0.0f, 0.0d, -12345.67, -12345678901234567.89,
     date'0001-01-01', timestamp_ntz'0001-01-01 00:00:00', timestamp'0001-01-03 00:00:00',
     '__HIVE_DEFAULT_PARTITION__', X'', false),
    (3, null, null, null, null, null, null, null, null, null, null, null, null),
    (4, -1, -1L, 0.0f, -0.0d, -0.01, -0.01, date'1969-12-31',
     timestamp_ntz'1969-12-31 23:59:59.999999', timestamp'1969-12-31 23:59:59.999999', '',
     X'ff', true),
    (5, 0, 0L, 1.5f, -1.5d, 0.00, 0.00, date'9999-12-31', timestamp_ntz'9999-12-31 23:00:00',
     timestamp'9999-12-30 23:00:00', 'é𐍈 "', X'ffff', null),
    (6, -2147483639, -9223372036854775800L, 1.5f, -1.5d, 0.01, 0.05, date'1970-01-01',
     timestamp_ntz'1970-01-01 01:00:00', timestamp'1970-01-01 01:00:00', repeat('long ', 20),
     cast(repeat('x', 90) as binary), null)
"""
NAMES = ("id", "i", "l", "f", "d", "dec", "big", "dt", "ts", "tz", "s", "bin", "b")
ROWS = f"select * from values {VALUES} as t({', '.join(NAMES)})"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    folder = tmp_path_factory.mktemp("fast")
    conf = {
        PREFIX: "iceberg_pyspark",
        f"{PREFIX}.type": "sql",
        f"{PREFIX}.uri": f"sqlite:///{folder / 'catalog.db'}",
        f"{PREFIX}.warehouse": str(folder),
        "spark.sql.session.timeZone": "America/New_York",
    }
    with session_conf(spark, conf):
        session = install(spark)
        spark.sql("create namespace fast.db")
        yield session
        session.uninstall()


@contextmanager
def session_conf(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


def files_of(lake: IcebergSession, table: str) -> list[Path]:
    folder = Path(lake.table(table).location.removeprefix("file:")) / "data"
    return sorted(folder.rglob("*")) if folder.is_dir() else []


def writers_of(lake: IcebergSession, table: str) -> set[str]:
    files = [p for p in files_of(lake, table) if p.is_file()]
    return {pq.read_metadata(p).created_by.split()[0] for p in files}


def entries(spark: SparkSession, table: str) -> list[Any]:
    """What the manifests say of the files, and in which folders they lie."""
    found = []
    for row in spark.table(f"{table}.files").collect():
        said = row.asDict()
        folder = said["file_path"].rpartition("/")[0].partition("/data")[2]
        found.append((folder, *(plain_value(v) for k, v in said.items() if k not in SIZES)))
    return sorted_rows(found)


def by_both(spark: SparkSession, lake: IcebergSession, name: str, clauses: str, query: str) -> str:
    """Make a table by either writer and compare what they have made; the native one's name."""
    native, arrow = f"fast.db.{name}", f"fast.db.{name}_arrow"
    spark.sql(f"create table {native} using iceberg {clauses} as {query} where false")
    spark.sql(f"create table {arrow} using iceberg {clauses} as {query} where false")
    spark.sql(f"insert into {native} {query}")
    with session_conf(spark, {"spark.sql.iceberg.native-writer-enabled": "false"}):
        spark.sql(f"insert into {arrow} {query}")
    assert writers_of(lake, native) == {"parquet-mr"}
    assert writers_of(lake, arrow) == {"parquet-cpp-arrow"}
    assert spark_rows(spark.table(native).collect()) == spark_rows(spark.table(arrow).collect())
    assert entries(spark, native) == entries(spark, arrow)
    return native


def test_every_type_and_its_metrics(spark: SparkSession, lake: IcebergSession) -> None:
    nested = "struct(s as a, struct(i as c, dec as `d d`) as b) as st"
    native = by_both(spark, lake, "types", "", f"select *, {nested} from ({ROWS})")
    [ours, theirs] = (
        next(p for p in files_of(lake, t) if p.is_file()) for t in (native, f"{native}_arrow")
    )
    assert (
        str(pq.ParquetFile(ours).schema).partition("\n")[2]
        == (str(pq.ParquetFile(theirs).schema).partition("\n")[2])
    )


@pytest.mark.parametrize(
    "partitioning",
    [
        "s, b, f",
        "bin, d",
        "i, l, dec, big",
        "dt, ts, tz",
        "years(dt), months(tz), days(ts)",
        "hours(ts)",
        "hours(tz), months(dt)",
        "bucket(4, i), bucket(4, l), bucket(4, dec), bucket(4, big)",
        "bucket(4, dt), bucket(4, ts), bucket(4, tz), bucket(4, s), bucket(4, bin)",
        "truncate(3, s), truncate(10, i), truncate(10, l)",
        "truncate(50, dec), truncate(2, bin), truncate(50, big)",
    ],
)
def test_every_transform(spark: SparkSession, lake: IcebergSession, partitioning: str) -> None:
    name = "".join(c if c.isalnum() else "_" for c in partitioning)
    by_both(spark, lake, name, f"partitioned by ({partitioning})", ROWS)
