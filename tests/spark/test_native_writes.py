"""Files of Spark's own Parquet writer equal files of the Arrow writer, except for their sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from iceberg_pyspark import install
from iceberg_pyspark.arrow.write.cast_to_table_schema import compile_cast_to_table_schema
from iceberg_pyspark.arrow.write.partition_batches import transform_array
from iceberg_pyspark.spark.rows.spark_types import from_spark_schema
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spark.write import native_writer
from iceberg_pyspark.spark.write.native_columns import partition_columns
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.transforms import accepts, parse_transform
from iceberg_pyspark.spec.types import walk_fields
from iceberg_pyspark.storage.files.local import remove_folder
from tests.support.native_lake import sqlite_conf
from tests.support.rows import plain_value, sorted_rows, spark_rows
from tests.support.spark_settings import configured

PREFIX = "spark.sql.catalog.fast"
# The writers differ in sizes, and so in the offsets at which row groups begin.
ARROW = "parquet-cpp-arrow"
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
        **sqlite_conf("fast", folder),
        "spark.sql.session.timeZone": "America/New_York",
    }
    with configured(spark, conf):
        session = install(spark)
        spark.sql("create namespace fast.db")
        yield session
        session.uninstall()


def files_of(lake: IcebergSession, table: str) -> list[Path]:
    folder = Path(lake.table(table).location.removeprefix("file:")) / "data"
    return sorted(folder.rglob("*")) if folder.is_dir() else []


def writers_of(lake: IcebergSession, table: str) -> set[str]:
    files = [p for p in files_of(lake, table) if p.is_file()]
    return {pq.read_metadata(p).created_by.split()[0] for p in files}


def entries(lake: IcebergSession, table: str) -> list[Any]:
    """Return the manifest entries of the files, without sizes, and the folders of the files."""
    rows = []
    for entry in lake.table(table).metadata_table("files").to_arrow().to_pylist():
        folder = entry["file_path"].rpartition("/")[0].partition("/data")[2]
        rows.append((folder, *(plain_value(v) for k, v in entry.items() if k not in SIZES)))
    return sorted_rows(rows)


def by_both(spark: SparkSession, lake: IcebergSession, name: str, clauses: str, query: str) -> str:
    """Check that both writers create equal tables; return the name of the native writer's table."""
    native, arrow = f"fast.db.{name}", f"fast.db.{name}_arrow"
    spark.sql(f"create table {native} using iceberg {clauses} as {query} where false")
    spark.sql(f"create table {arrow} using iceberg {clauses} as {query} where false")
    spark.sql(f"insert into {native} {query}")
    with configured(spark, {"spark.sql.iceberg.native-writer-enabled": "false"}):
        spark.sql(f"insert into {arrow} {query}")
    assert writers_of(lake, native) == {"parquet-mr"}
    assert writers_of(lake, arrow) == {"parquet-cpp-arrow"}
    assert spark_rows(spark.table(native).collect()) == spark_rows(spark.table(arrow).collect())
    assert entries(lake, native) == entries(lake, arrow)
    return native


def test_every_type_and_its_metrics(spark: SparkSession, lake: IcebergSession) -> None:
    nested = "struct(s as a, struct(i as c, dec as `d d`) as b) as st"
    native = by_both(spark, lake, "types", "", f"select *, {nested} from ({ROWS})")
    [ours, theirs] = (
        next(p for p in files_of(lake, t) if p.is_file()) for t in (native, f"{native}_arrow")
    )
    assert columns_of(ours) == columns_of(theirs)


def columns_of(file: Path) -> list[str]:
    """Return the columns as Parquet describes them, without the lines that name the writer."""
    return str(pq.ParquetFile(file).schema).splitlines()[2:]


NESTED = """
    (1, array('a', null), map('k', 1, 'z', null), array(named_struct('x', 1, 'Y', array(1.5f))),
     named_struct('m', map(date'2024-02-29', array(map(1, 'deep')))), array(array(1.5d), array())),
    (2, array(), map(), array(), named_struct('m', map()), array()),
    (3, null, null, null, null, null),
    (4, array('b'), map('é', 3), array(null, named_struct('x', null, 'Y', array())),
     named_struct('m', null), array(null, array(null, -0.0d)))
"""


def test_lists_and_maps_and_their_metrics(spark: SparkSession, lake: IcebergSession) -> None:
    query = f"select * from values {NESTED} as t(id, tags, by_name, pairs, st, matrix)"
    native = by_both(spark, lake, "nested", "", query)
    [ours, theirs] = (
        next(p for p in files_of(lake, t) if p.is_file()) for t in (native, f"{native}_arrow")
    )
    assert columns_of(ours) == columns_of(theirs)
    ids = {f.field_id for f in walk_fields(lake.table(native).schema.as_struct)}
    assert len(ids) == 21
    assert {int(i) for i in re.findall(r"field_id=(\d+)", str(pq.ParquetFile(ours).schema))} == ids
    spark.sql(f"alter table {native} rename column pairs.element.x to z")
    spark.sql(f"alter table {native} add column pairs.element.x int")
    [row] = spark.sql(f"select pairs[0].z, pairs[0].x from {native} where id = 1").collect()
    assert tuple(row) == (1, None)


def test_nullability_of_the_table_is_that_of_its_files(
    spark: SparkSession, lake: IcebergSession
) -> None:
    """Whatever the query has, whose nullability Spark's optimizer may change too."""
    t = "fast.db.nullable"
    spark.sql(
        f"create table {t} (a array<bigint>, m map<string, double>, s array<struct<x: bigint>>, "
        "st struct<l: array<string>>) using iceberg"
    )
    from_query = spark.sql(
        "select array(id) a, map('k', 1.5d) m, array(named_struct('x', id)) s, "
        "named_struct('l', array('v')) st from range(1)"
    )
    narrow = spark.sql(
        "select array(1) a, map('k', 1.5f) m, array(named_struct('X', 1)) s, "
        "named_struct('L', array('v')) st from range(1)"
    )
    for frame in (from_query, narrow):
        frame.writeTo(t).append()
    assert writers_of(lake, t) == {"parquet-mr"}
    described = {tuple(columns_of(p)) for p in files_of(lake, t) if p.is_file()}
    assert len(described) == 1
    text = "\n".join(described.pop())
    assert len(re.findall("required ", text)) == 1, text
    assert "required binary field_id=" in text, "a key"


@pytest.mark.parametrize(
    "partitioning",
    [
        "f",
        "b, i, dec, ts, bin, d, l, big, dt, tz, truncate(3, s)",
        "years(dt), months(tz), hours(ts), bucket(4, s)",
    ],
)
@pytest.mark.nightly
def test_partitions(spark: SparkSession, lake: IcebergSession, partitioning: str) -> None:
    name = "".join(c if c.isalnum() else "_" for c in partitioning)
    by_both(spark, lake, name, f"partitioned by ({partitioning})", ROWS)


def test_rows_that_spark_puts_together_are_of_one_partition(
    spark: SparkSession, lake: IcebergSession
) -> None:
    schema = from_spark_schema(spark.sql(ROWS).schema)
    transforms = ("identity", "bucket[5]", "truncate[3]", "year", "month", "day", "hour")
    spec = PartitionSpec(
        spec_id=0,
        fields=tuple(
            PartitionField(
                source_ids=(f.field_id,), field_id=1000, name="p", transform=parse_transform(t)
            )
            for f in schema.fields
            for t in transforms
            if accepts(parse_transform(t), f.type)
        ),
    )
    many = (
        "select id, cast(x as int) i, x l, cast(x as float) / 7 f, x / 7d d, "
        "cast(x % 1000 / 100 as decimal(7, 2)) dec, cast(x as decimal(19, 2)) / 100 big, "
        "date_add(date'1970-01-01', cast(x / 1000 as int)) dt, "
        "cast(timestamp_micros(x * 100000000007) as timestamp_ntz) ts, "
        "timestamp_micros(x * 100000000007) tz, chr(cast(x as int)) || x s, "
        "encode(x, 'utf-8') bin, x % 2 = 0 b "
        "from (select id, cast(id * 7919 % 200003 - 100000 as bigint) x from range(2000))"
    )
    types = spark.sql(ROWS).schema
    frame = spark.sql(f"{ROWS} union all {many}").select(
        *(F.col(f.name).cast(t.dataType) for f, t in zip(schema.fields, types, strict=True))
    )
    assert lake.bridge is not None
    parts = partition_columns(lake.bridge, schema, spec)
    assert parts is not None
    table = frame.select("*", *parts.values()).toArrow()
    rows = table.select([f.name for f in schema.fields]).combine_chunks().to_batches()[0]
    rows = compile_cast_to_table_schema(rows.schema, schema, table="t")(rows)
    for f, name in zip(spec.fields, parts, strict=True):
        source = schema.field_by_id[f.source_id]
        values = transform_array(f.transform, source.type, rows.column(source.name))
        by_part: dict[Any, set[Any]] = {}
        for part, value in zip(table.column(name).to_pylist(), values.to_pylist(), strict=True):
            by_part.setdefault(part, set()).add(repr(value))
        assert all(len(v) == 1 for v in by_part.values()), f
        assert len(by_part) == len({*map(repr, values.to_pylist())}), f


HOSTILE = {
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.parquet.compression.codec": "gzip",
    "spark.sql.files.maxRecordsPerFile": "1",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "mapreduce.output.basename": "x",
    "parquet.writer.version": "v2",
}


def test_no_setting_of_a_session_shows_in_the_files(
    spark: SparkSession, lake: IcebergSession
) -> None:
    with configured(spark, HOSTILE):
        native = by_both(spark, lake, "hostile", "partitioned by (days(dt))", ROWS)
        assert spark.conf.get("spark.sql.parquet.outputTimestampType") == "INT96"
    assert len([p for p in files_of(lake, native) if p.is_file()]) == 6
    spark.sql(f"alter table {native} rename column ts to then")
    spark.sql(f"alter table {native} add column ts string")
    counts = spark.sql(f"select count(then), count(ts) from {native}").collect()
    assert [tuple(r) for r in counts] == [(5, 0)]


def test_columns_that_spark_writes_differently_are_left_to_the_arrow_writer(
    spark: SparkSession, lake: IcebergSession
) -> None:
    def writers(name: str, columns: str, query: str, properties: str = "'a' = 'b'") -> set[str]:
        t = f"fast.db.{name}"
        spark.sql(f"create table {t} ({columns}) using iceberg tblproperties ({properties})")
        spark.sql(f"insert into {t} {query} from range(3)")
        return writers_of(lake, t)

    assert writers("plain", "id bigint, n int", "select id, 1") == {"parquet-mr"}
    assert writers("list", "id bigint, l array<int>", "select id, array(1)") == {"parquet-mr"}
    codec = "'write.parquet.compression-codec' = 'brotli'"
    assert writers("brotli", "id bigint", "select id", codec) == {ARROW}
    off = "'write.spark.native-writer.enabled' = 'false'"
    assert writers("turned_off", "id bigint", "select id", off) == {ARROW}


def test_nan_is_in_no_bound_and_not_counted(spark: SparkSession, lake: IcebergSession) -> None:
    t = "fast.db.nans"
    spark.sql(f"create table {t} (a double, b float, c double, n double) using iceberg")
    spark.sql(
        f"insert into {t} select if(id = 3, double('nan'), id), if(id = 0, float('-inf'), 1.5f), "
        "double('nan'), null from range(0, 5, 1, 1)"
    )
    assert writers_of(lake, t) == {"parquet-mr"}
    columns = "lower_bounds, upper_bounds, nan_value_counts, value_counts, null_value_counts"
    [file] = spark.sql(f"select {columns} from {t}.files").collect()
    assert set(file.lower_bounds) == set(file.upper_bounds) == {2}
    assert file.nan_value_counts == {2: 0, 4: 0}
    assert file.value_counts == dict.fromkeys((1, 2, 3, 4), 5)
    assert file.null_value_counts == {1: 0, 2: 0, 3: 0, 4: 5}
    assert spark.sql(f"select 1 from {t} where a > 3 or isnan(c)").count() == 5


def test_a_local_file_needs_no_process_and_no_checksums(
    spark: SparkSession, lake: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hadoop's own class would run `chmod` for each file and folder, and write a file of checksums
    beside each.
    """
    left: list[str] = []

    def remove(folder: str) -> None:
        left.extend(p.name for p in Path(folder).rglob("*"))
        remove_folder(folder)

    monkeypatch.setattr(native_writer, "remove_folder", remove)
    spark.sql("create table fast.db.local (id bigint, p int) using iceberg partitioned by (p)")
    hadoop = {
        "fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
        "fs.permissions.umask-mode": "027",
    }
    with configured(spark, hadoop):
        spark.sql("insert into fast.db.local select id, id % 3 from range(30)")
    files = [p for p in files_of(lake, "fast.db.local") if p.is_file()]
    assert [p.suffix for p in files] == [".parquet"] * 3
    assert {p.stat().st_mode & 0o777 for p in files} == {0o640}
    assert [n for n in left if n.endswith(".crc")] == []
    assert spark.table("fast.db.local").count() == 30


def test_a_job_that_fails_leaves_no_folder(spark: SparkSession, lake: IcebergSession) -> None:
    t = "fast.db.failing"
    spark.sql(f"create table {t} (id bigint, g bigint) using iceberg partitioned by (g)")
    spark.sql(f"insert into {t} select id, 0 from range(2)")
    before = files_of(lake, t)
    query = "select id, if(id = 999, cast(raise_error('bad row') as bigint), id % 3) g"
    with pytest.raises(PySparkException, match="bad row"):
        spark.sql(f"insert into {t} {query} from range(0, 1000, 1, 2)")
    assert files_of(lake, t) == before
    assert writers_of(lake, t) == {"parquet-mr"}


@pytest.mark.nightly
def test_writes_into_one_table_at_once(spark: SparkSession, lake: IcebergSession) -> None:
    t = "fast.db.shared"
    spark.sql(f"create table {t} (id bigint, g bigint) using iceberg partitioned by (g)")

    def append(n: int) -> None:
        if n == 2:
            with pytest.raises(PySparkException, match="no good"):
                spark.sql(f"insert into {t} select raise_error('no good'), 1 from range(1)")
        else:
            spark.sql(f"insert into {t} select id + {n} * 100, id % 2 from range(100)")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(5)))
    assert spark.table(t).count() == spark.table(t).distinct().count() == 400
    assert len([p for p in files_of(lake, t) if p.is_file()]) == 8
    assert [p for p in files_of(lake, t) if p.is_dir() and p.name.startswith("writing")] == []


@pytest.mark.nightly
def test_many_files_are_read_by_a_job(
    spark: SparkSession, lake: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_writer, "_MAX_BY_THREADS", 2)
    by_both(spark, lake, "many", "partitioned by (s)", ROWS)


def test_format_iceberg_py_is_written_natively_too(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    table = str(tmp_path / "by-format")

    def write(frame: DataFrame, **options: str) -> None:
        frame.write.format("iceberg-py").options(**options).mode("append").save(table)

    def files() -> int:
        rows = spark.read.format("iceberg-py").load(f"{table}#files").collect()
        return sum("parquet-mr" in pq.read_metadata(f.file_path).created_by for f in rows)

    write(spark.range(10).selectExpr("id", "id % 2 g"), **{"partitioned-by": "g"})
    assert files() == 2
    # Narrower integers, column names in another case, another column order.
    write(spark.range(10).selectExpr("cast(id % 2 as int) G", "cast(id as short) Id"))
    assert files() == 4
    write(spark.range(10).selectExpr("id", "id % 2 g"), **{"native-writer-enabled": "false"})
    assert files() == 4
    rows = spark.read.format("iceberg-py").load(table).collect()
    assert sorted((r.id, r.g) for r in rows) == sorted((i, i % 2) for i in range(10) for _ in "abc")


def test_files_are_cut_and_sorted_rows_stay_sorted(
    spark: SparkSession, lake: IcebergSession
) -> None:
    t = "fast.db.cut"
    # A row is estimated at 12 bytes, and a file has a third of that.
    size = "'write.target-file-size-bytes' = '4000'"
    spark.sql(
        f"create table {t} (id bigint, g int) using iceberg partitioned by (g) "
        f"tblproperties ({size})"
    )
    lake.table(t).replace_sort_order().desc("id").commit()
    spark.sql(f"insert into {t} select id, id % 2 from range(5000)")
    files = spark.sql(f"select file_path, record_count, sort_order_id from {t}.files").collect()
    assert sorted(f.record_count for f in files) == [500, 500, 1000, 1000, 1000, 1000]
    assert {f.sort_order_id for f in files} == {1}
    for f in files:
        ids = pq.ParquetFile(f.file_path).read(["id"]).column("id").to_pylist()
        assert ids == sorted(ids, reverse=True)
