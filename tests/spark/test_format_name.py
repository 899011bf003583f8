"""`format("iceberg-py")` and `format("iceberg")` in a session with Iceberg: names, modes, views.

`test_reads.py` and `test_writes.py` test how rows are read and written by these names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import plan_of, sqlite_lake
from tests.support.parameters import pairs


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("lake"), "lake") as session:
        yield session


def writer(spark: SparkSession, first: int, name: str = "iceberg-py") -> DataFrameWriter:
    frame: DataFrame = spark.range(first, first + 3).selectExpr("id", "id % 2 part")
    return frame.write.format(name)


def ids(spark: SparkSession, table: str, name: str = "iceberg-py") -> list[int]:
    return sorted(r.id for r in spark.read.format(name).load(table).collect())


@pytest.mark.parametrize(
    ("place", "name"), pairs(["catalog", "path"], ["iceberg-py", "iceberg", "ICEBERG"])
)
def test_every_mode_of_save(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path, name: str, place: str
) -> None:
    table = str(tmp_path / "t") if place == "path" else f"lake.db.modes_{name.replace('-', '_')}"
    writer(spark, 0, name).save(table)
    with pytest.raises(AnalysisException) as e:
        writer(spark, 10, name).save(table)
    assert e.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
    with pytest.raises(AnalysisException, match="already exists"):
        writer(spark, 10, name).mode("errorifexists").save(table)
    writer(spark, 10, name).mode("ignore").save(table)
    assert ids(spark, table, name) == [0, 1, 2]
    writer(spark, 10, name).mode("append").save(table)
    assert ids(spark, table, name) == [0, 1, 2, 10, 11, 12]
    writer(spark, 20, name).mode("overwrite").save(table)
    assert ids(spark, table, name) == [20, 21, 22]
    assert len(lake.table(table).snapshots) == 3


@pytest.mark.nightly
def test_the_modes_that_need_no_table_make_one(spark: SparkSession, lake: IcebergSession) -> None:
    for mode in ("ignore", "append", "overwrite"):
        writer(spark, 0).mode(mode).save(f"lake.db.new_by_{mode}")
        assert spark.table(f"lake.db.new_by_{mode}").count() == 3


def test_a_name_is_one_of_the_session(spark: SparkSession, lake: IcebergSession) -> None:
    writer(spark, 0).save("lake.db.`odd name`")
    assert spark.table("lake.db.`odd name`").count() == 3
    assert spark.read.format("iceberg-py").load("lake.db.`odd name`.snapshots").count() == 1
    spark.sql("use lake.db")
    try:
        assert ids(spark, "`odd name`") == [0, 1, 2]
        assert ids(spark, "db.`odd name`") == [0, 1, 2]
        writer(spark, 3).mode("append").save("db.`odd name`")
    finally:
        spark.sql("use spark_catalog.default")
    reader = spark.read.format("iceberg-py").option("catalog", "lake")
    assert reader.load("db.`odd name`").count() == 6
    pruned = spark.read.format("iceberg-py").schema("id long").load("lake.db.`odd name`")
    assert pruned.columns == ["id"]
    assert pruned.count() == 6
    with pytest.raises(PySparkException, match="nothing is not in catalog 'lake'"):
        spark.read.format("iceberg-py").load("lake.db.nothing").collect()


@pytest.mark.nightly
@pytest.mark.parametrize("native", [True, False], ids=["native", "portable"])
def test_hidden_columns(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path, native: bool
) -> None:
    table = str(tmp_path / "t")
    rows = spark.range(3).selectExpr("id", "id % 2 part", "encode('x', 'utf-8') b")
    rows.write.format("iceberg-py").partitionBy("part").option("format-version", "3").save(table)
    reader = spark.read.format("iceberg-py")
    # Spark has no exact equivalent of this filter, so Python workers read the table.
    frame = (reader if native else reader.option("filter", "b >= X'00'")).load(table)
    assert ("BatchScan iceberg-py" in plan_of(frame)) != native
    assert frame.columns == ["id", "part", "b"]
    metadata_rows = frame.select(
        "id", "_file", "_pos", "_spec_id", "_partition", "_row_id", "_deleted"
    ).collect()
    assert sorted((r.id, r._pos, r._partition.part, r._deleted) for r in metadata_rows) == [
        (0, 0, 0, False),
        (1, 0, 1, False),
        (2, 1, 0, False),
    ]
    assert len({r._file for r in metadata_rows}) == 2
    assert {r._row_id for r in metadata_rows} == {0, 1, 2}
    joined = frame.select("id", "_pos").join(frame.select("id", "part"), "id")
    assert sorted(joined.collect()) == [(0, 0, 0), (1, 0, 1), (2, 1, 0)]
    assert frame.where("_pos = 1").select("id").collect() == [(2,)]
    assert frame.select("*", "_pos").where("id = 2").collect() == [(2, 0, b"x", 1)]
    with pytest.raises(AnalysisException):
        frame.select("_nothing")


def test_partition_by(spark: SparkSession, lake: IcebergSession) -> None:
    writer(spark, 0).partitionBy("part").save("lake.db.parts")
    assert [f.name for f in lake.table("lake.db.parts").spec.fields] == ["part"]
    writer(spark, 3).partitionBy("part").mode("append").save("lake.db.parts")
    with pytest.raises(IllegalArgumentException, match="leave the option partitioned-by out"):
        writer(spark, 6).partitionBy("id").mode("append").save("lake.db.parts")
    assert ids(spark, "lake.db.parts") == list(range(6))


def test_layout_that_iceberg_lacks_is_refused_by_name(
    spark: SparkSession, lake: IcebergSession
) -> None:
    new = "lake.db.no_such_layout"
    for write, message in (
        (
            lambda: writer(spark, 0).bucketBy(4, "id").sortBy("id").saveAsTable(new),
            "leave sortBy .* out",
        ),
        (
            lambda: writer(spark, 0).bucketBy(4, "id", "part").saveAsTable(new),
            "one transform for each column",
        ),
        (lambda: writer(spark, 0).clusterBy("id").saveAsTable(new), r"leave clusterBy .* out"),
        (lambda: writer(spark, 0).clusterBy("id").save(new), "leave clusterBy out, and use part"),
        (
            lambda: spark.sql(f"create table {new} (id int) using iceberg cluster by (id)"),
            "Iceberg has no clustering columns",
        ),
    ):
        with pytest.raises(IllegalArgumentException, match=message):
            write()
    assert not spark.catalog.tableExists(new)
    assert lake.spark is spark


def test_a_session_shows_what_it_is(lake: IcebergSession) -> None:
    assert repr(lake) == f"IcebergSession on Spark {lake.spark.version}, native"
    portable = IcebergSession(lake.spark, None, portable_because="there is\nno py4j")
    assert repr(portable).endswith(r", portable: there is\nno py4j")


def test_options_keep_their_case_and_unknown_ones_are_refused(
    spark: SparkSession, lake: IcebergSession
) -> None:
    writer(spark, 0).option("snapshot-property.MyKey", "V").save("lake.db.said")
    snapshot = lake.table("lake.db.said").current_snapshot
    assert snapshot is not None
    assert snapshot.summary["MyKey"] == "V"
    with pytest.raises(IllegalArgumentException, match="unknown write option 'nonsense'"):
        writer(spark, 0).option("nonsense", "1").save("lake.db.unsaid")
    assert not spark.catalog.tableExists("lake.db.unsaid")


def test_save_as_table_and_insert_into(spark: SparkSession, lake: IcebergSession) -> None:
    writer(spark, 0, "iceberg").saveAsTable("lake.db.saved_as")
    writer(spark, 3).insertInto("lake.db.saved_as")
    writer(spark, 6).mode("append").saveAsTable("lake.db.saved_as")
    assert ids(spark, "lake.db.saved_as", "iceberg") == list(range(9))


def test_types_that_iceberg_lacks_are_refused_by_the_column(
    spark: SparkSession, lake: IcebergSession
) -> None:
    frame = spark.sql("select 1 as id, interval 1 day as how_long")
    with pytest.raises(PySparkException, match="how_long"):
        frame.write.format("iceberg-py").save("lake.db.no_such_type")


@pytest.mark.nightly
def test_a_view_by_the_other_name_is_written_to(spark: SparkSession, lake: IcebergSession) -> None:
    writer(spark, 0).save("lake.db.viewed")
    spark.sql("create temporary view of_iceberg using iceberg options (path 'lake.db.viewed')")
    try:
        spark.sql("insert into of_iceberg values (7, 1)")
        assert ids(spark, "lake.db.viewed") == [0, 1, 2, 7]
        spark.sql("insert overwrite of_iceberg values (8, 1)")
        assert ids(spark, "lake.db.viewed") == [8]
    finally:
        spark.sql("drop view of_iceberg")


@pytest.mark.nightly
def test_declined_native_format_is_the_portable_source(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    table = str(tmp_path / "t")
    writer(spark, 0).save(table)
    declined = writer(spark, 3).option("native", "false")
    declined.mode("append").save(table)
    with pytest.raises(AnalysisException) as e:
        writer(spark, 3).option("native", "false").save(table)
    assert e.value.getCondition() == "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"
    spark.sql(f"create temporary view outlasting using `iceberg-py` options (path '{table}')")
    lake.uninstall()
    try:
        writer(spark, 6).mode("append").save(table)
        assert ids(spark, table) == list(range(9))
        assert ids(spark, table, "iceberg") == list(range(9))
        with pytest.raises(AnalysisException) as e:
            writer(spark, 9).save(table)
        assert e.value.getCondition() == "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"
        spark.sql("insert into outlasting values (9, 1)")
        assert ids(spark, table) == list(range(10))
    finally:
        spark.sql("drop view outlasting")


def test_other_formats_are_found_as_before(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.format("parquet").save(str(tmp_path / "p"))
    assert spark.read.parquet(str(tmp_path / "p")).count() == 3
    with pytest.raises(Py4JJavaError, match="DATA_SOURCE_NOT_FOUND"):
        spark.read.format("no-such-format").load("x")
