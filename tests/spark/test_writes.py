"""Writes through Spark's own API."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.support.frames import (
    create_path_table,
    data_files,
    load,
    path_table,
    refusal,
    rows_of,
    save,
)


def frame_of(spark: SparkSession, *rows: tuple[int, str]) -> DataFrame:
    """Return a frame of (id, name) made from Arrow, which needs no Python workers."""
    ids = pa.array([row[0] for row in rows], pa.int64())
    names = pa.array([row[1] for row in rows], pa.string())
    return spark.createDataFrame(pa.table({"id": ids, "name": names}), "id BIGINT, name STRING")


def test_the_first_write_makes_the_table_with_every_transform(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.range(6).selectExpr(
        "id",
        "concat('name', id) AS name",
        "timestamp_seconds(id * 100000000) AS y",
        "date_add(DATE'2020-01-31', CAST(id AS INT) * 40) AS m",
        "timestamp_seconds(id * 90000) AS d",
        "timestamp_ntz'2020-01-01 00:30:00' + make_interval(0, 0, 0, 0, CAST(id AS INT)) AS h",
        "CAST(id % 2 AS INT) AS `part id`",
    )
    terms = (
        "years(y), months(m), days(d), hours(h), bucket(4, id), truncate(5, name), "
        "`part id`, id AS same"
    )
    options = {
        "partitioned-by": terms,
        "format-version": "3",
        "table-property.owner": "me",
        "snapshot-property.run": "7",
        "compression-codec": "snappy",
    }
    save(frame, tmp_path / "t", options)
    table = path_table(tmp_path / "t")
    assert [(f.name, str(f.transform)) for f in table.spec.fields] == [
        ("y_year", "year"),
        ("m_month", "month"),
        ("d_day", "day"),
        ("h_hour", "hour"),
        ("id_bucket", "bucket[4]"),
        ("name_trunc", "truncate[5]"),
        ("part id", "identity"),
        ("same", "identity"),
    ]
    assert table.metadata.format_version == 3
    assert table.properties["owner"] == "me"
    assert table.current_snapshot is not None
    assert table.current_snapshot.summary["run"] == "7"
    assert table.current_snapshot.summary["added-records"] == "6"
    assert not any(f.required for f in table.schema.fields)
    files = data_files(tmp_path / "t")
    assert len(files) == 6
    group = pq.ParquetFile(files[0]).metadata.row_group(0)
    assert {group.column(i).compression for i in range(group.num_columns)} == {"SNAPPY"}
    actual = load(spark, tmp_path / "t", {"filter": "m = DATE'2020-03-11' AND id < 3"})
    assert actual.collect() == frame.where("id = 1").collect()
    # For an existing table, the options of a new table have no effect.
    save(frame, tmp_path / "t", options)
    assert load(spark, tmp_path / "t").count() == 12


def test_overwrites_replace_the_table_its_partitions_or_what_a_filter_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    save(frame_of(spark, (1, "a"), (2, "b"), (3, "c")), path, {"partitioned-by": "name"})
    save(frame_of(spark, (4, "a"), (5, "d")), path, {"overwrite-mode": "dynamic"}, mode="overwrite")
    assert rows_of(spark, path) == [(2, "b"), (3, "c"), (4, "a"), (5, "d")]
    by_filter = {"overwrite-filter": "NAME IN ('b', 'c')"}
    save(frame_of(spark, (6, "b")), path, by_filter, mode="overwrite")
    assert rows_of(spark, path) == [(4, "a"), (5, "d"), (6, "b")]
    save(frame_of(spark, (7, "a")), path, mode="overwrite")
    assert rows_of(spark, path) == [(7, "a")]
    operations = [s.operation for s in path_table(path).snapshots]
    assert operations == ["append", "overwrite", "overwrite", "overwrite"]
    save(frame_of(spark).limit(0), path, mode="overwrite")
    assert rows_of(spark, path) == []


def test_an_overwrite_by_filter_that_cuts_files_is_refused_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    create_path_table(path, "id BIGINT, name STRING", [{"id": 1}, {"id": 2}])
    before = data_files(path)
    by_filter = {"overwrite-filter": "id = 1"}
    frame = frame_of(spark, (9, "x"))
    error, text = refusal(lambda: save(frame, path, by_filter, mode="overwrite"))
    assert error == "InvalidRequestError"
    assert "id" in text
    assert "rows that match" in text
    assert data_files(path) == before
    assert len(path_table(path).snapshots) == 1


def test_columns_are_matched_by_name_whatever_their_order_and_case(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    create_path_table(path, "id BIGINT NOT NULL, name STRING, s STRUCT<a: INT, b: DOUBLE>")
    frame = spark.sql("SELECT struct(CAST(2.5 AS FLOAT) AS b, 1Y AS a) AS s, 7 AS ID")
    save(frame, path)
    assert rows_of(spark, path) == [(7, None, (1, 2.5))]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("1L AS id, 'x' AS extra", "the table has no column 'extra': drop it from the rows"),
        ("'x' AS name", "id"),
        ("'1' AS id", "column 'id' is string in the rows and long in the table"),
        ("1L AS id, named_struct('z', 1) AS s", "s.z"),
        ("CAST(NULL AS BIGINT) AS id", "column 'id' of table '{path}' is required, and the rows"),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    spark: SparkSession, tmp_path: Path, query: str, message: str
) -> None:
    path = tmp_path / "t"
    create_path_table(path, "id BIGINT NOT NULL, name STRING, s STRUCT<a: INT>")
    error, text = refusal(lambda: save(spark.sql(f"SELECT {query}"), path))
    assert error == "InvalidRequestError"
    assert message.format(path=path) in text
    assert data_files(path) == []
    assert path_table(path).current_snapshot is None


def test_a_branch_is_written_and_main_is_not(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = create_path_table(path, "id BIGINT, name STRING", [{"id": 1, "name": "a"}])
    table.manage_snapshots().create_branch("side", table.snapshots[0].snapshot_id).commit()
    save(frame_of(spark, (2, "b")), path, {"branch": "side"})
    assert rows_of(spark, path) == [(1, "a")]
    assert rows_of(spark, path, {"branch": "side"}) == [(1, "a"), (2, "b")]
    _, text = refusal(lambda: save(frame_of(spark, (3, "c")), path, {"branch": "nope"}))
    assert "has no branch or tag 'nope'; there are: main" in text


def test_files_are_cut_at_their_target_size(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(20000, numPartitions=1).selectExpr("id", "sha2(string(id), 256) AS name")
    save(frame, tmp_path / "t", {"target-file-size-bytes": 100000})
    files = data_files(tmp_path / "t")
    assert len(files) > 3
    assert sum(pq.ParquetFile(f).metadata.num_rows for f in files) == 20000
    assert rows_of(spark, tmp_path / "t", {"filter": "id = 19999", "columns": "id"}) == [(19999,)]


def test_unknown_write_option_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, (1, "a"))
    _, text = refusal(lambda: save(frame, tmp_path / "t", {"merge-schema": "true"}))
    assert "unknown write option 'merge-schema'; known: branch" in text
    _, text = refusal(lambda: save(frame, tmp_path / "t", {"partitioned-by": "weeks(id)"}))
    assert "'weeks(id)': transform weeks is not known; there are identity, years" in text
    _, text = refusal(lambda: save(frame, tmp_path / "t", {"format-version": "4"}))
    assert "write.root.file-system-tables.enabled to true" in text
    assert not (tmp_path / "t").exists()


def test_spark_refuses_the_modes_that_a_data_source_cannot_have(
    spark: SparkSession, tmp_path: Path
) -> None:
    writer = frame_of(spark, (1, "a")).write.format("iceberg-py")
    for mode in ("error", "ignore"):
        with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
            writer.mode(mode).save(str(tmp_path / "t"))
    with pytest.raises(PySparkException, match="partition"):
        writer.mode("append").partitionBy("id").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_a_temporary_view_reads_and_writes(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    create_path_table(path, "id BIGINT, name STRING", [{"id": 1, "name": "a"}])
    spark.sql(
        f"CREATE TEMPORARY VIEW lake USING `iceberg-py` OPTIONS (path '{path}', `split-size` '1', "
        "`snapshot-property.by` 'view')"
    )
    try:
        assert spark.sql("SELECT name FROM lake WHERE id = 1").collect() == [("a",)]
        spark.sql("INSERT INTO lake VALUES (2, 'b')")
        assert rows_of(spark, path) == [(1, "a"), (2, "b")]
        spark.sql("INSERT OVERWRITE lake SELECT 3L, 'c'")
        assert rows_of(spark, path) == [(3, "c")]
        assert [s.summary.get("by") for s in path_table(path).snapshots] == [None, "view", "view"]
    finally:
        spark.catalog.dropTempView("lake")


def test_tables_of_the_session_catalog_lose_their_options_and_say_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = frame_of(spark, (1, "a"))
    _, text = refusal(lambda: frame.write.format("iceberg-py").mode("append").saveAsTable("lost"))
    assert "CREATE TEMPORARY VIEW v USING `iceberg-py` OPTIONS (path 'db.table')" in text
    spark.sql(
        "CREATE TABLE lost_too (id BIGINT) USING `iceberg-py` "
        f"OPTIONS (path '{tmp_path}/t', catalog 'lake')"
    )
    try:
        for statement in ("SELECT * FROM lost_too", "INSERT INTO lost_too VALUES (1)"):
            _, text = refusal(lambda s=statement: spark.sql(s).collect())  # type: ignore[misc]
            assert "lose the options" in text
    finally:
        spark.sql("DROP TABLE IF EXISTS lost_too")
        spark.sql("DROP TABLE IF EXISTS lost")


def test_a_task_that_fails_leaves_no_file_and_no_table(spark: SparkSession, tmp_path: Path) -> None:
    def save_rows(folder: Path, files: int, mode: str) -> None:
        """Write with four tasks; the last fails once the other tasks have written `files` files."""

        def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch
                if 15 in batch.column("id").to_pylist():
                    deadline = time.monotonic() + 60
                    while len(list(folder.rglob("*.parquet"))) < files:
                        assert time.monotonic() < deadline, "the other tasks wrote nothing"
                        time.sleep(0.1)
                    # A killed task would leave its file, so let the other tasks finish first.
                    time.sleep(2)
                    raise ValueError("row 15 is rotten")

        frame = spark.range(20, numPartitions=4).mapInArrow(rows, "id BIGINT")
        with pytest.raises(PySparkException, match="row 15 is rotten"):
            save(frame, folder, mode=mode)

    save_rows(tmp_path / "new", 3, "append")
    assert data_files(tmp_path / "new") == []
    create_path_table(tmp_path / "old", "id BIGINT", [{"id": 99}])
    save_rows(tmp_path / "old", 4, "overwrite")
    assert len(data_files(tmp_path / "old")) == 1
    assert rows_of(spark, tmp_path / "old") == [(99,)]


def test_appends_of_two_threads_both_land(spark: SparkSession, tmp_path: Path) -> None:
    """The first append creates the table; the other appends conflict at commit."""
    failures: list[BaseException] = []

    def append(thread: int) -> None:
        try:
            for i in range(2):
                save(frame_of(spark, (10 * thread + i, "x")), tmp_path / "t")
        except BaseException as e:  # noqa: BLE001 - shown by the test
            failures.append(e)

    threads = [threading.Thread(target=append, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [row[0] for row in rows_of(spark, tmp_path / "t")] == [0, 1, 10, 11, 20, 21]
    assert len(path_table(tmp_path / "t").snapshots) == 6
