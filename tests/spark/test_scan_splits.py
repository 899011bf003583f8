"""The number and locality of read tasks, as set by options, session settings and the table."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.planning.split_pack import split_file
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.new_data import write_rows
from tests.support.frames import append_rows
from tests.support.native_lake import sqlite_lake
from tests.support.spark_settings import configured

# Python makes the splits of a scan; 4.1 is asked whether its tasks are theirs.

FILES = 8
ROWS = 20_000
FEW_ROWS = 8_000
MIB = 1024 * 1024
SESSION = "spark.sql.iceberg.read"


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    lake = sqlite_lake(spark, tmp_path_factory.mktemp("split"), "split")
    with configured(spark, {"spark.sql.adaptive.enabled": "false"}), lake as created:
        spark.sql(
            "create table split.db.t using iceberg partitioned by (p) "
            "tblproperties ('write.parquet.row-group-size-bytes' = '12288') as "
            f"select id, uuid() u, cast(id % {FILES} as int) p from range({ROWS})"
        )
        yield created


@pytest.fixture
def sizes(session: IcebergSession) -> list[int]:
    folder = Path(session.table("split.db.t").location)
    result = [p.stat().st_size for p in folder.rglob("*.parquet")]
    assert len(result) == FILES
    return result


def result_of(spark: SparkSession, name: str, method: str, *arguments: str | int) -> str | None:
    """Return what a static method of a class in the JVM returns as text, None for an error."""
    gateway: Any = spark.sparkContext._gateway
    scans = Bridge(spark).scans._scans
    loaded = scans.getClass().getClassLoader().loadClass(name)
    (found,) = (m for m in loaded.getDeclaredMethods() if m.getName() == method)
    found.setAccessible(True)
    values = gateway.new_array(gateway.jvm.java.lang.Object, len(arguments))
    for i, (value, type_) in enumerate(zip(arguments, found.getParameterTypes(), strict=True)):
        is_long = type_.getName() == "long"
        values[i] = gateway.jvm.java.lang.Long.valueOf(str(value)) if is_long else value
    try:
        result = found.invoke(None, values)
    except (Py4JJavaError, PySparkException):
        return None
    return result if isinstance(result, str) else str(result.urlEncoded())


def pieces(frame: DataFrame) -> list[list[Any]]:
    """Return, for each task of a scan, the pieces of files that the task reads."""
    partitions = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
    result = partitions.inputPartitions().iterator()
    tasks = []
    while result.hasNext():
        tasks.append(list(result.next().files()))
    return tasks


def bytes_of(piece: Any) -> int:
    """Return the bytes of a piece; the last piece of a file has no end."""
    return int(min(piece.length(), piece.fileSize() - piece.start()))


def read(session: IcebergSession, **options: object) -> list[list[Any]]:
    reader = session.spark.read
    for name, value in options.items():
        reader = reader.option(name.replace("_", "-"), str(value))
    frame = reader.table("split.db.t")
    tasks = pieces(frame)
    if len(tasks) < 100:
        ((count, total, squares),) = frame.selectExpr(
            "count(u)", "sum(id)", "sum(id * id)"
        ).collect()
        assert (count, total, squares) == (ROWS, sum(range(ROWS)), sum(i * i for i in range(ROWS)))
    return tasks


@pytest.fixture
def settings(session: IcebergSession) -> Iterator[ExitStack]:
    """Yield a stack for session settings; the settings are restored after the test."""
    with ExitStack() as taken_back:
        yield taken_back


def say(session: IcebergSession, settings: ExitStack, configuration: Mapping[str, object]) -> None:
    texts = {key: str(value) for key, value in configuration.items()}
    settings.enter_context(configured(session.spark, texts))


def table_says(session: IcebergSession, **properties: object) -> None:
    properties_sql = ", ".join(
        f"'read.split.{k.replace('_', '-')}'='{v}'" for k, v in properties.items()
    )
    session.spark.sql(f"alter table split.db.t set tblproperties ({properties_sql})")


@pytest.fixture
def table_says_nothing(session: IcebergSession) -> Iterator[None]:
    yield
    names = ("target-size", "open-file-cost", "adaptive-size.enabled")
    properties_sql = ", ".join(f"'read.split.{name}'" for name in names)
    session.spark.sql(f"alter table split.db.t unset tblproperties if exists ({properties_sql})")


def test_each_core_has_equally_many_tasks(
    session: IcebergSession, settings: ExitStack, sizes: list[int]
) -> None:
    """Of 8 files and 2 cores, tasks of 3, 3 and 2 files would keep one core busy for 5 files."""
    conf = {
        "spark.sql.files.openCostInBytes": 0,
        "spark.sql.files.maxPartitionBytes": max(sizes) * 16 // 5,
        "spark.sql.leafNodeDefaultParallelism": 2,
    }
    say(session, settings, conf)
    assert [len(task) for task in read(session)] == [2, 2, 2, 2]
    say(session, settings, {"spark.sql.files.minPartitionNum": 1})
    assert [len(task) for task in read(session)] == [3, 3, 2], "three rounds of one task"


def test_an_option_and_a_setting_cut_files(
    session: IcebergSession, settings: ExitStack, sizes: list[int]
) -> None:
    half = max(sizes) * 6 // 10
    tasks = read(session, split_size=half, file_open_cost=0)
    assert all(sum(bytes_of(piece) for piece in task) <= half for task in tasks)
    assert sum(len(task) for task in tasks) == 2 * FILES
    assert len(read(session, split_size=sum(sizes), file_open_cost=0)) == 1
    say(session, settings, {f"{SESSION}.split-size": half})
    assert sum(len(task) for task in read(session)) == 2 * FILES
    # The option takes precedence over the session setting.
    assert len(read(session, split_size=sum(sizes), file_open_cost=0)) == 1


def splits(tasks: list[list[Any]]) -> dict[str, list[tuple[int, int]]]:
    """Return start and length of each file's splits, by the name of the file."""
    by_file: dict[str, list[tuple[int, int]]] = {}
    for piece in (piece for task in tasks for piece in task):
        name = str(piece.filePath().toPath().getName())
        by_file.setdefault(name, []).append((piece.start(), bytes_of(piece)))
    return {name: sorted(ranges) for name, ranges in by_file.items()}


@pytest.mark.parametrize("size", [1, 5_000, 20_000, 40_000])
def test_splits_begin_at_row_groups(session: IcebergSession, size: int) -> None:
    """The splits are those of a scan without Spark, and none is without a row group."""
    files = session.spark.table("split.db.t.files").collect()
    assert min(len(f["split_offsets"]) for f in files) > 2
    least = max(size, 4096)
    expected = {
        f["file_path"].rpartition("/")[2]: split_file(
            f["file_size_in_bytes"], "parquet", f["record_count"], f["split_offsets"], least
        )
        for f in files
    }
    assert splits(read(session, split_size=size, file_open_cost=0)) == expected


def test_one_row_group_is_one_split(session: IcebergSession) -> None:
    """A split without a row group would cost a task, and a footer's requests in a store."""
    spark = session.spark
    rows = "select uuid() u from range(0, 1000, 1, 1)"
    spark.sql(f"create table split.db.whole using iceberg as {rows}")
    frame = spark.read.option("split-size", 5_000).table("split.db.whole")
    (file,) = spark.table("split.db.whole.files").collect()
    assert file["split_offsets"] == [4]
    assert file["file_size_in_bytes"] > 15_000
    assert [len(task) for task in pieces(frame)] == [1]
    assert frame.distinct().count() == 1000


WRONG_OFFSETS: dict[str, Callable[[list[int], int], list[int] | None]] = {
    "none": lambda right, size: None,
    "empty": lambda right, size: [],
    "inside": lambda right, size: [o + 1000 for o in right],
    "some": lambda right, size: right[1::2],
    "descending": lambda right, size: right[::-1],
    "twice": lambda right, size: [*right, right[-1]],
    "negative": lambda right, size: [-4, *right],
    "the end": lambda right, size: [*right, size],
    "every byte": lambda right, size: list(range(0, size, 7)),
}


def test_wrong_offsets_lose_no_row(session: IcebergSession) -> None:
    spark = session.spark
    spark.sql(
        "create table split.db.wrong (id bigint, u string) using iceberg "
        "tblproperties ('write.parquet.row-group-size-bytes' = '20000')"
    )
    table = session.table("split.db.wrong")
    files = []
    for number, wrong in enumerate(WRONG_OFFSETS.values()):
        ids = range(number * FEW_ROWS, (number + 1) * FEW_ROWS)
        rows = pa.table({"id": ids, "u": [str(uuid.uuid4()) for _ in ids]})
        _, (file,) = write_rows(table.identifier, table.metadata, table.io, rows)
        assert file.split_offsets is not None
        assert len(file.split_offsets) > 3
        offsets = wrong(list(file.split_offsets), file.file_size_in_bytes)
        files.append(replace(file, split_offsets=None if offsets is None else tuple(offsets)))
    commit_action(table.catalog, table.loaded, table.io, AppendFiles(data_files=tuple(files)))
    everything = list(range(len(files) * FEW_ROWS))
    for size in (1, 10_000, 10_000_000):
        frame = spark.read.option("split-size", size).table("split.db.wrong").select("id")
        assert sorted(frame.toArrow()["id"].to_pylist()) == everything


@pytest.mark.nightly
def test_a_file_counts_for_what_it_costs_to_open(session: IcebergSession) -> None:
    assert len(read(session, split_size=64 * MIB, file_open_cost=0)) == 1
    assert len(read(session, split_size=64 * MIB, file_open_cost=33 * MIB)) == FILES // 2
    assert len(read(session, split_size=64 * MIB, file_open_cost=64 * MIB)) == FILES


@pytest.mark.nightly
def test_neighbours_of_the_plan_are_read_by_one_task(session: IcebergSession) -> None:
    spark = session.spark
    spark.sql("create table split.db.ordered (p int, u string) using iceberg partitioned by (p)")
    ordered = session.table("split.db.ordered")
    for p, rows in enumerate((900, 100, 800, 200, 700, 300)):
        append_rows(ordered, [{"p": p, "u": str(uuid.uuid4())} for _ in range(rows)])
    files = spark.table("split.db.ordered.files").collect()
    planned = [f["file_path"] for f in files]
    sizes = {f["file_path"]: f["file_size_in_bytes"] for f in files}
    pair = max(sizes[a] + sizes[b] for a, b in zip(planned[::2], planned[1::2], strict=True))
    reader = spark.read.option("split-size", pair).option("file-open-cost", 0)
    tasks = pieces(reader.table("split.db.ordered"))
    names = [[str(piece.filePath().toPath().getName()) for piece in task] for task in tasks]
    expected = [path.rpartition("/")[2] for path in planned]
    assert [n for task in names for n in task] == expected
    assert [len(task) for task in names] == [2, 2, 2]
    # Packed in plan order, these files would need six tasks.
    reader = reader.option("split-size", max(sizes.values()))
    tasks = pieces(reader.table("split.db.ordered"))
    assert [[bytes_of(piece) for piece in task] for task in tasks[:3]] == [
        [size] for size in sorted(sizes.values(), reverse=True)[:3]
    ]
    assert len(tasks) == 4


@pytest.mark.usefixtures("table_says_nothing")
def test_a_table_cuts_files_for_every_core_or_not(
    session: IcebergSession, settings: ExitStack, sizes: list[int]
) -> None:
    total = sum(sizes)
    table_says(session, target_size=total, open_file_cost=0)
    say(session, settings, {f"{SESSION}.adaptive-split-size.parallelism": 4})
    # Splits are never smaller than the table's target size, or 16 MiB.
    assert len(read(session)) == 1
    table_says(session, target_size=total // 20)
    assert max(bytes_of(p) for task in read(session) for p in task) <= total // 20
    table_says(session, **{"adaptive_size.enabled": "false", "target_size": 2 * total})
    assert len(read(session)) == 1
    say(session, settings, {f"{SESSION}.adaptive-split-size.enabled": "true"})
    assert len(read(session)) == 1
    assert len(read(session, split_size=max(sizes), file_open_cost=0)) >= FILES // 2


@pytest.mark.parametrize(
    ("name", "value"), [("split-size", "0"), ("split-size", "many"), ("file-open-cost", "-1")]
)
def test_invalid_split_size_is_refused(session: IcebergSession, name: str, value: str) -> None:
    with pytest.raises(Exception, match=f"{name} is '{value}': give a whole number"):
        read(session, **{name: value})


def test_a_size_of_one_byte_does_not_make_a_task_of_every_byte(
    session: IcebergSession, sizes: list[int]
) -> None:
    tasks = read(session, split_size=1, file_open_cost=0)
    assert FILES < len(tasks) <= sum(sizes) // 4096 + FILES


@pytest.mark.nightly
def test_tasks_know_the_hosts_of_their_blocks_where_that_is_asked_for(
    session: IcebergSession, settings: ExitStack
) -> None:
    def hosts(tasks: list[list[Any]]) -> set[str]:
        return {host for task in tasks for piece in task for host in piece.locations()}

    assert hosts(read(session)) == set()
    assert hosts(read(session, locality="true")) == {"localhost"}
    say(session, settings, {"spark.sql.iceberg.locality.enabled": "true"})
    assert hosts(read(session)) == {"localhost"}
    assert hosts(read(session, locality="false")) == set()


STARTS = (
    "",
    "file:",
    "file://",
    "s3a://b",
    "s3a-1f://b",
    "abfss://c@a.b.net",
    "hdfs://nn:8020",
    "s3a:",
)
NAMES = st.text(alphabet="aZ0_-=:@./ %+?#&\u00e9\\", max_size=5) | st.sampled_from(
    [".", "..", ".a"]
)


@given(st.sampled_from(STARTS), st.lists(NAMES, max_size=4), st.booleans(), st.booleans())
def test_the_path_of_a_location_is_hadoops(
    spark: SparkSession, start: str, names: list[str], ends: bool, relative: bool
) -> None:
    """Most locations become paths without Hadoop, which escapes what a URI must not have."""
    location = "/".join([start, *names]) + "/" * ends
    location = location.replace(":/", ":", 1) if relative else location
    gateway: Any = spark.sparkContext._gateway
    jvm, paths = gateway.jvm, gateway.jvm.org.apache.spark.paths.SparkPath
    try:
        expected = paths.fromPath(jvm.org.apache.hadoop.fs.Path(location)).urlEncoded()
    except (Py4JJavaError, PySparkException):
        expected = None
    assert result_of(spark, "IcebergPySizedSplits", "pathOf", location) == expected
    if expected is None or not re.match("s3a[^/]*://b/.", expected):
        return
    uri = jvm.org.apache.hadoop.fs.Path(location).toUri()
    with_size = jvm.org.apache.hadoop.fs.Path("s3a-x-sized", "b", f"/size=9{uri.getPath()}")
    of_options = expected.replace(f"{uri.getScheme()}:", "s3a-x:", 1)
    sized = result_of(spark, "IcebergPySizedFiles", "withSize", of_options, 9)
    assert sized == paths.fromPath(with_size).urlEncoded()
    in_store = expected.replace(f"{uri.getScheme()}:", "s3a:", 1)
    assert result_of(spark, "IcebergPySizedFiles", "inStore", expected) == in_store
