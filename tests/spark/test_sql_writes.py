"""Writes through Spark's own API, without any jar: the state after a failed or repeated write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import sqlite_lake


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("written"), "written") as session:
        yield session


def rows(spark: SparkSession, table: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, spark.table(table).collect()))


def data_files(lake: IcebergSession, table: str) -> list[Path]:
    folder = Path(lake.table(table).location.removeprefix("file:")) / "data"
    return list(folder.rglob("*.parquet")) if folder.is_dir() else []


def test_every_way_to_write(spark: SparkSession, lake: IcebergSession) -> None:
    t = "written.db.ways"
    spark.sql(f"create table {t} using iceberg partitioned by (g) as select 1L id, 1 g")
    spark.sql(f"insert into {t} values (2, 2)")
    spark.sql(f"insert into {t} (g, id) values (2, 3)")
    assert rows(spark, t) == [(1, 1), (2, 2), (3, 2)]
    spark.sql(f"insert overwrite {t} partition (g = 2) select 4")
    frame = spark.sql("select 5L id, 1 g")
    frame.writeTo(t).overwritePartitions()
    assert rows(spark, t) == [(4, 2), (5, 1)]
    frame.writeTo(t).overwrite(F.col("g") == 1)
    frame.writeTo(t).option("snapshot-property.said", "yes").append()
    frame.write.insertInto(t)
    frame.write.mode("append").saveAsTable(t)
    assert rows(spark, t) == [(4, 2), (5, 1), (5, 1), (5, 1), (5, 1)]
    assert any(s.summary.get("said") == "yes" for s in lake.table(t).snapshots)
    before = lake.table(t).snapshots
    spark.sql(f"explain insert overwrite {t} values (1, 1)").collect()
    assert lake.table(t).snapshots == before
    spark.sql(f"create or replace table {t} using iceberg as select id from {t}")
    assert len(lake.table(t).snapshots) == len(before) + 1
    assert spark.table(t).columns == ["id"]
    spark.sql(f"truncate table {t}")
    assert rows(spark, t) == []


def test_values_are_the_same_without_a_job(spark: SparkSession, lake: IcebergSession) -> None:
    columns = (
        "true b, 1 i, -7L l, 1.5f f, cast('nan' as double) d, 12.340BD dec, date'1900-01-01' day"
    )
    columns += ", 'é' s, X'00ff' bin"
    spark.sql(f"create table written.db.job using iceberg as select {columns} from range(1)")
    spark.sql(f"create table written.db.no_job using iceberg as select {columns}")
    spark.sql("insert into written.db.no_job select " + ", ".join(["null"] * 9))
    jobless, job = (spark.table(f"written.db.{t}").where("b").collect() for t in ("no_job", "job"))
    assert str(jobless) == str(job)
    assert spark.table("written.db.no_job").where("s is null").count() == 1
    metrics = "select record_count, null_value_counts, nan_value_counts, lower_bounds from {}.files"
    files = [spark.sql(metrics.format(f"written.db.{t}")).collect() for t in ("no_job", "job")]
    assert files[1][0] in files[0]


def test_format_iceberg_py_is_laid_out_as_the_table_asks(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    table = str(tmp_path / "laid-out")
    rows_of_each = spark.range(0, 40, 1, 4).selectExpr("id", "id % 3 g")

    def write(mode: str = "append", **options: str) -> int:
        """Write, and return the number of data files of the table."""
        rows_of_each.write.format("iceberg-py").options(**options).mode(mode).save(table)
        return len(list(lake.table(table).scan().plan_files()))

    assert write(**{"partitioned-by": "g"}) == 3
    assert write("overwrite", **{"overwrite-mode": "dynamic"}) == 3
    assert write(native="false") == 3 + 12
    assert spark.read.format("iceberg-py").load(table).count() == 80
    open_table = lake.table(table)
    open_table.replace_sort_order().desc("id").commit()
    assert write("overwrite", **{"overwrite-mode": "static"}) >= 3
    files = lake.table(table).metadata_table("files").to_arrow()
    assert set(files["sort_order_id"].to_pylist()) == {1}


def test_cached_table_is_read_again_after_a_write(
    spark: SparkSession, lake: IcebergSession
) -> None:
    t = "written.db.cached"
    spark.sql(f"create table {t} using iceberg as select 1 id")
    spark.table(t).cache()
    assert rows(spark, t) == [(1,)]
    spark.sql(f"insert into {t} values (2)")
    assert rows(spark, t) == [(1,), (2,)]
    spark.sql(f"uncache table {t}")


def test_a_job_that_fails_leaves_neither_rows_nor_files(
    spark: SparkSession, lake: IcebergSession
) -> None:
    t = "written.db.failed"
    spark.sql(f"create table {t} (id bigint, g int) using iceberg tblproperties ('a'='b')")
    query = "select id, if(id = 999, raise_error('bad row'), 1) g from range(0, 1000, 1, 1)"
    with pytest.raises(PySparkException, match="bad row"):
        spark.sql(f"insert into {t} {query}")
    assert lake.table(t).snapshots == ()
    assert data_files(lake, t) == []
    with pytest.raises(PySparkException, match="bad row"):
        spark.sql(f"create table {t}_new using iceberg as {query}")
    assert not spark.catalog.tableExists(f"{t}_new")


def test_a_null_in_a_required_column_is_an_error_in_our_words(
    spark: SparkSession, lake: IcebergSession
) -> None:
    t = "written.db.required"
    spark.sql(
        f"create table {t} (id bigint not null) using iceberg "
        "tblproperties ('write.spark.accept-any-schema'='true')"
    )
    with pytest.raises(PySparkException) as e:
        spark.sql("select cast(null as bigint) id").writeTo(t).append()
    assert "id" in str(e.value)
    assert "Traceback" not in str(e.value)
    assert lake.table(t).snapshots == ()


def test_a_repeated_write_is_skipped(spark: SparkSession, lake: IcebergSession) -> None:
    t = "written.db.once"
    spark.sql(f"create table {t} (id bigint) using iceberg")

    def write(app: str, version: int) -> None:
        options = {"txn-app-id": app, "txn-version": str(version)}
        spark.range(version, version + 1).writeTo(t).options(**options).append()

    write("a", 1)
    write("a", 2)
    write("a", 1)
    write("b", 1)
    write("b", 1)
    assert rows(spark, t) == [(1,), (1,), (2,)]


def test_a_branch_and_what_cannot_be_written_to(spark: SparkSession, lake: IcebergSession) -> None:
    t = "written.db.branched"
    spark.sql(f"create table {t} using iceberg as select 1L id")
    lake.table(t).manage_snapshots().create_branch("b").create_tag("t").commit()
    spark.range(2, 3).writeTo(t).option("branch", "b").append()
    spark.sql(f"insert into {t}.branch_b values (3)")
    assert rows(spark, f"{t}.branch_b") == [(1,), (2,), (3,)]
    assert rows(spark, t) == [(1,)]
    for write, message in (
        (lambda: spark.sql(f"insert into {t}.tag_t values (1)"), "not to a tag"),
        (
            lambda: spark.range(1).writeTo(t).option("branch", "no").append(),
            "no branch or tag 'no'",
        ),
        (lambda: spark.range(1).writeTo(t).option("branch", "t").append(), "is a tag"),
        (lambda: spark.range(1).writeTo(t).option("write-format", "csv").append(), "none of"),
        (lambda: spark.range(1).writeTo(t).option("fanout", "true").append(), "unknown write"),
        (
            lambda: spark.range(1).writeTo(t).overwrite(F.col("id").cast("string").contains("1")),
            "cannot be evaluated on the metadata",
        ),
        (lambda: spark.range(1).writeTo(t).option("output-spec-id", "7").append(), "spec 7"),
    ):
        with pytest.raises(PySparkException, match=message):
            write()
    assert rows(spark, t) == [(1,)]
