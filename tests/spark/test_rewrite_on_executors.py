"""rewrite_data_files on Spark's executors gives the same rows and files as on driver threads."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import TableCatalog, install, load_catalog
from iceberg_pyspark.arrow.write.range_sort import SortMemory
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.procedures import table_procedures
from iceberg_pyspark.spark.write.executors import Executors
from iceberg_pyspark.table.maintenance.rewrites import group_writer, rewrite_data_files
from iceberg_pyspark.table.maintenance.rewrites.group_writer import GroupWriter
from tests.support.deleted_rows import delete_rows
from tests.support.frames import append_empty_file
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases

ORDERS = [None, "c DESC, a", "zorder(a, b)"]


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder: Path = tmp_path_factory.mktemp("executors")
    with sqlite_lake(spark, folder, "executors"):
        yield folder


def catalog_of(folder: Path) -> TableCatalog:
    return load_catalog(
        "executors", type="sql", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=str(folder)
    )


def make(spark: SparkSession, folder: Path, name: str) -> str:
    """Create eight files, each over the whole range; deletion vectors delete some rows."""
    table = f"executors.db.{name}"
    spark.sql(
        f"CREATE TABLE {table} (a BIGINT, b BIGINT, c STRING) PARTITIONED BY (c) TBLPROPERTIES "
        "('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    catalog = catalog_of(folder)
    written = catalog.load_table(f"db.{name}")
    for start in range(4):
        numbers = list(range(start, 8000, 4))
        written.append(
            pa.table(
                {
                    "a": numbers,
                    "b": [n * 7919 % 8000 for n in numbers],
                    "c": [f"c{n % 3 % 2}" for n in numbers],
                }
            )
        )
    delete_rows(written, "a", range(3, 8000, 10))
    return table


def rows(spark: SparkSession, table: str) -> pa.Table:
    columns = ("a", "b", "c", "_row_id", "_last_updated_sequence_number")
    return install(spark).table(table).scan(columns=columns).to_arrow().sort_by("a")


def widths(spark: SparkSession, table: str) -> list[int]:
    """Return, for each file, the difference between the largest and the smallest `a`."""
    result = spark.sql(f"SELECT max(a) - min(a) FROM {table} GROUP BY _file").collect()
    return [row[0] for row in result]


@cases("order", fast=ORDERS[1:2], nightly=[ORDERS[0], ORDERS[2]])
def test_rows_and_files_are_those_of_the_driver(
    spark: SparkSession, folder: Path, order: str | None
) -> None:
    actual = []
    number = ORDERS.index(order)
    for use_executors in ("true", "false"):
        table = make(spark, folder, f"same_{number}_{use_executors}")
        before = rows(spark, table)
        assert len(before) == 7200
        sort_order = f"sort_order => '{order}', " if order else ""
        [done] = spark.sql(
            f"CALL executors.system.rewrite_data_files(table => '{table}', {sort_order}"
            "options => map('rewrite-all', 'true', 'target-file-size-bytes', '20000', "
            f"'use-executors', '{use_executors}'))"
        ).collect()
        assert rows(spark, table) == before
        assert done.rewritten_data_files_count == 8
        assert done.added_data_files_count >= 4
        assert done.removed_delete_files_count > 0
        actual.append(sorted(widths(spark, table)))
        if order == "c DESC, a":
            # The ranges of `a` in the files do not overlap.
            assert sum(actual[-1]) < 2.2 * 8000
    by_executors, by_driver = actual
    assert abs(len(by_executors) - len(by_driver)) <= 2


@pytest.mark.nightly
def test_in_little_memory(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(spark, folder, "little")
    before = rows(spark, table)
    writer = partial(GroupWriter, memory=SortMemory(in_memory=9000, buffered=500))
    monkeypatch.setattr(rewrite_data_files, "GroupWriter", writer)
    catalog = catalog_of(folder)
    done = (
        catalog.load_table("db.little")
        .maintenance()
        .rewrite_data_files(
            sort_order="a", options={"rewrite-all": True}, runner=Executors(spark.sparkContext)
        )
    )
    assert done.added_data_files_count == 2
    spark.catalog.refreshTable(table)
    assert rows(spark, table) == before
    # The rows within each file are sorted.
    places = spark.sql(f"SELECT a FROM {table} ORDER BY _file, _pos").collect()
    falls = sum(one.a > other.a for one, other in pairwise(places))
    assert falls == 1


@pytest.mark.nightly
def test_sampled_files_without_rows(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark trusts the sort order id of a file, so a file that has one is sorted."""
    spark.sql("CREATE TABLE executors.db.sparse (a BIGINT)")
    spark.sql("ALTER TABLE executors.db.sparse WRITE ORDERED BY a")
    catalog = catalog_of(folder)
    table = catalog.load_table("db.sparse")
    table.append(pa.table({"a": [3, 1, 2]}))
    append_empty_file(table.refresh())
    assert [t.record_count for t in table.scan().plan_files()] == [0, 3]
    # only the first file of the group is sampled
    monkeypatch.setattr(group_writer, "_MAX_SAMPLED_FILES", 1)
    table.maintenance().rewrite_data_files(
        strategy="sort", options={"rewrite-all": True}, runner=Executors(spark.sparkContext)
    )
    [file] = table.refresh().metadata_table("files").to_arrow().to_pylist()
    assert file["sort_order_id"] == table.metadata.default_sort_order_id
    assert table.scan().to_arrow()["a"].to_pylist() == [1, 2, 3]


def test_a_job_that_fails_removes_the_files_of_its_tasks(spark: SparkSession, folder: Path) -> None:
    table = make(spark, folder, "broken")
    [lost] = spark.sql(f"SELECT file_path FROM {table}.files WHERE content = 0 LIMIT 1").collect()
    path = Path(lost.file_path.removeprefix("file:"))
    content = path.read_bytes()
    path.write_bytes(b"no Parquet")
    data = folder / "db" / "broken" / "data"
    before = set(data.rglob("*.parquet"))
    call = (
        f"CALL executors.system.rewrite_data_files(table => '{table}', "
        "options => map('rewrite-all', 'true', 'use-executors', 'true', "
        "'target-file-size-bytes', '8000'{more}))"
    )
    with pytest.raises(PySparkException, match=path.name):
        spark.sql(call.format(more=""))
    # Files of killed tasks may stay; orphan file removal deletes them.
    assert len(set(data.rglob("*.parquet")) - before) <= spark.sparkContext.defaultParallelism
    assert before <= set(data.rglob("*.parquet"))
    # With partial progress, the other partition is still rewritten.
    [done] = spark.sql(call.format(more=", 'partial-progress.enabled', 'true'")).collect()
    assert (done.failed_data_files_count, done.rewritten_data_files_count) == (4, 4)
    path.write_bytes(content)
    assert len(rows(spark, table)) == 7200


@pytest.mark.nightly
@pytest.mark.parametrize("order", ["a", None])
def test_jobs_are_in_the_group_of_the_caller(
    spark: SparkSession, folder: Path, order: str | None
) -> None:
    """So `cancelJobGroup` stops them, and the scheduler pool of the thread applies to them."""
    table = make(spark, folder, f"grouped_{order}")
    sort_order = f"sort_order => '{order}', " if order else ""
    group, context = f"nightly {order}", spark.sparkContext
    call = (
        f"CALL executors.system.rewrite_data_files(table => '{table}', {sort_order}"
        "options => map('rewrite-all', 'true', 'use-executors', 'true'))"
    )
    properties = {
        "spark.jobGroup.id": group,
        "spark.scheduler.pool": "background",
        "spark.job.description": "all tables of the night",
    }
    for name, value in properties.items():
        context.setLocalProperty(name, value)
    try:
        spark.sql(call)
        actual = {name: context.getLocalProperty(name) for name in properties}
    finally:
        for name in properties:
            context.setLocalProperty(name, None)  # type: ignore[arg-type]
    assert actual == properties
    store = context._jsc.sc().statusStore()
    jobs = [store.job(i) for i in context.statusTracker().getJobIdsForGroup(group)]
    descriptions = sorted(j.description().get() for j in jobs if j.description().isDefined())
    for number, description in enumerate(descriptions, start=1):
        expected = (
            f"iceberg-py rewrite_data_files db.grouped_{order}: group {number} of 2, 4 files, "
        )
        assert description.startswith(expected)
    assert len(descriptions) == 2
    # The next statement of another caller has none of these properties.
    spark.sql(call)
    assert len(context.statusTracker().getJobIdsForGroup(group)) == len(jobs)


@pytest.mark.nightly
@pytest.mark.parametrize("order", ["a", None])
def test_progress_counts_the_files_of_tasks(
    spark: SparkSession, folder: Path, order: str | None
) -> None:
    table = catalog_of(folder).load_table(make(spark, folder, f"counted_{order}").partition(".")[2])
    steps: list[tuple[str, int, int | None]] = []
    done = table.maintenance(progress=lambda *step: steps.append(step)).rewrite_data_files(
        sort_order=order,
        # one group with several new files
        where="c = 'c0'",
        options={"rewrite-all": True, "target-file-size-bytes": 8000},
        runner=Executors(spark.sparkContext),
    )
    assert (done.file_group_count, done.rewritten_data_files_count) == (1, 4)
    new = done.added_data_files_count
    assert new > 1
    read = [done for phase, done, _ in steps if phase == "data files read"]
    assert read[-1] == 4
    # the tasks end before their group
    before_end = steps[: steps.index(("data files rewritten", 4, 4))]
    assert len([s for s in before_end if s[0] == "data files read"]) > 1
    assert steps[-1] == ("new data files written", new, new)
    assert "new data files written" in [phase for phase, _, _ in before_end]


def test_statistics_count_files_and_restore_the_description(
    spark: SparkSession, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    context = spark.sparkContext
    table = make(spark, folder, "sketched")
    properties = {"spark.jobGroup.id": "sketches", "spark.job.description": "mine"}
    for name, value in properties.items():
        context.setLocalProperty(name, value)
    caplog.set_level(logging.INFO, "iceberg_pyspark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_procedures, "has_executors", lambda _: True)
        try:
            spark.sql(f"CALL executors.system.compute_table_stats(table => '{table}')")
            actual = {name: context.getLocalProperty(name) for name in properties}
        finally:
            for name in properties:
                context.setLocalProperty(name, None)  # type: ignore[arg-type]
    assert actual == properties
    store = context._jsc.sc().statusStore()
    jobs = [store.job(i) for i in context.statusTracker().getJobIdsForGroup("sketches")]
    expected = "iceberg-py compute_table_stats db.sketched"
    assert {j.description().get().partition(":")[0] for j in jobs} == {expected}
    lines = [r.getMessage() for r in caplog.records]
    assert "compute_table_stats executors.db.sketched: data files read: 8/8" in lines


def test_use_executors_is_true_or_false(spark: SparkSession, folder: Path) -> None:
    spark.sql("CREATE TABLE executors.db.e (a BIGINT)")
    with pytest.raises((PySparkException, InvalidRequestError), match="use-executors=x"):
        spark.sql(
            "CALL executors.system.rewrite_data_files(table => 'db.e', "
            "options => map('use-executors', 'x'))"
        )
