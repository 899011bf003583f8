"""Reads through a catalog of appended or changed rows between snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from tests.support.frames import append_rows
from tests.support.native_lake import plan_of, sqlite_lake
from tests.support.parameters import cases
from tests.support.spark_settings import JOINS_OF_GROUPS, configured

PLAIN = "steps.db.plain"
PARTITIONED = "steps.db.partitioned"
BOTH = cases("table", fast=[PARTITIONED], nightly=[PLAIN])


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("steps"), "steps") as lake:
        for table in (PLAIN, PARTITIONED):
            make(lake, table, "partitioned by (g)" if table == PARTITIONED else "")
        yield lake


def make(session: IcebergSession, table: str, clauses: str) -> None:
    """Create snapshots: 0 appends 1, 2; 1 appends 11, 12; 2 deletes 11; 3 appends 21 with v."""
    sql = session.spark.sql
    modes = "'write.delete.mode'='merge-on-read', 'format-version'='3'"
    sql(f"create table {table} (id bigint, g int) using iceberg {clauses} tblproperties ({modes})")
    created = session.table(table)
    append_rows(created, [{"id": 1, "g": 1}, {"id": 2, "g": 2}])
    append_rows(created, [{"id": 11, "g": 1}, {"id": 12, "g": 2}])
    sql(f"delete from {table} where id = 11")
    created.refresh().update_schema().add_column("v", "int").commit()
    append_rows(created, [{"id": 21, "g": 1, "v": 7}])


def number(session: IcebergSession, table: str, step: int) -> int:
    return session.table(table).snapshots[step].snapshot_id


def between(session: IcebergSession, table: str, start: int, end: int | None = None) -> DataFrame:
    reader = session.spark.read.option("start-snapshot-id", number(session, table, start))
    if end is not None:
        reader = reader.option("end-snapshot-id", number(session, table, end))
    return reader.table(table)


def ids(frame: DataFrame) -> list[int]:
    return sorted(r.id for r in frame.select("id").collect())


@BOTH
def test_appended_rows_have_the_columns_of_the_table(session: IcebergSession, table: str) -> None:
    frame = between(session, table, 0)
    assert frame.columns == ["id", "g", "v"]
    assert sorted(frame.collect()) == [(11, 1, None), (12, 2, None), (21, 1, 7)]
    assert ids(between(session, table, 0, 1)) == [11, 12]
    assert ids(between(session, table, 1, 2)) == []
    assert ids(between(session, table, 3)) == []
    start = number(session, table, 0)
    text = f"select * from {table} with (`START-SNAPSHOT-ID` = {start})"
    assert ids(session.spark.sql(text)) == [11, 12, 21]
    times = [s.timestamp_ms for s in session.table(table).snapshots]
    by_time = session.spark.read.option("start-timestamp", times[0])
    assert ids(by_time.table(table)) == [11, 12, 21]
    assert ids(by_time.option("end-timestamp", times[3] - 1).table(table)) == [11, 12]
    location = session.table(table).location
    for native in ("true", "false"):
        source = session.spark.read.format("iceberg-py").options(native=native)
        source = source.option("start-snapshot-id", start)
        assert sorted(source.load(location).collect()) == sorted(frame.collect())
        assert source.load(location).where("id > 11").count() == 2


@pytest.mark.nightly
@BOTH
def test_aggregates_from_metadata_are_those_of_the_range(
    session: IcebergSession, table: str
) -> None:
    frame = between(session, table, 0, 1)
    aggregates = frame.selectExpr("count(*)", "min(id)", "max(id)")
    assert aggregates.collect() == [(2, 11, 12)]
    assert "LocalTableScan" in plan_of(aggregates)
    by_group = between(session, table, 0).groupBy("g").count()
    assert sorted(map(tuple, by_group.collect())) == [(1, 2), (2, 1)]
    assert ids(frame.where("id > 11")) == [12]
    assert ids(frame.where("id < 11")) == []
    assert len(between(session, table, 0).limit(2).collect()) == 2
    sizes = [
        f._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
        for f in (frame, between(session, table, 0), between(session, table, 1, 2))
    ]
    assert 0 < sizes[0] < sizes[1]
    assert sizes[2] <= 1


@pytest.mark.nightly
@BOTH
def test_hidden_columns_are_as_in_the_whole_table(session: IcebergSession, table: str) -> None:
    hidden = ["id", "_file", "_pos", "_spec_id", "_row_id", "_last_updated_sequence_number"]
    whole = session.spark.read.option("versionAsOf", number(session, table, 1)).table(table)
    expected = whole.where("id > 10").select(hidden).collect()
    assert len(expected) == 2
    actual = between(session, table, 0, 1).select(hidden).collect()
    assert sorted(map(tuple, actual)) == sorted(map(tuple, expected))


@pytest.mark.nightly
@BOTH
def test_two_ranges_in_one_query(session: IcebergSession, table: str) -> None:
    first, last = between(session, table, 0, 1), between(session, table, 1)
    whole = session.spark.table(table)
    assert ids(first.union(last).union(whole)) == [1, 2, 11, 12, 12, 21, 21]
    assert ids(first.join(last, "id")) == []
    assert ids(first.join(whole, "id", "left_anti")) == [11]
    # Spark reuses exchanges of equal plans, so plans of different ranges must not be equal.
    sums = [f.groupBy("g").sum("id").selectExpr("g", "`sum(id)` id") for f in (first, last)]
    assert sorted(map(tuple, sums[0].union(sums[1]).collect())) == [(1, 11), (1, 21), (2, 12)]
    again = between(session, table, 0, 1).groupBy("g").sum("id")
    assert sorted(map(tuple, sums[0].join(again, "g").collect())) == [(1, 11, 11), (2, 12, 12)]


@pytest.mark.nightly
def test_groups_and_late_filters_are_of_the_range(session: IcebergSession) -> None:
    between(session, PARTITIONED, 0, 1).createOrReplaceTempView("of_first")
    between(session, PARTITIONED, 1).createOrReplaceTempView("of_last")
    query = "select a.id, b.id from of_first a join of_last b on a.g = b.g"
    with configured(session.spark, JOINS_OF_GROUPS):
        frame = session.spark.sql(query)
        assert "Exchange " not in plan_of(frame)
        assert sorted(map(tuple, frame.collect())) == [(11, 21)]
    late = session.spark.sql(f"{query} where b.id = 21")
    assert "dynamicpruning" in plan_of(late)
    assert sorted(map(tuple, late.collect())) == [(11, 21)]


@pytest.mark.nightly
def test_cached_rows_are_of_the_range_and_as_new_as_it(session: IcebergSession) -> None:
    table = "steps.db.cached"
    make(session, table, "")
    cached = between(session, table, 0).cache()
    try:
        assert ids(cached) == [11, 12, 21]
        assert "InMemoryTableScan" in plan_of(between(session, table, 0))
        for other, expected in (
            (between(session, table, 1), [21]),
            (between(session, table, 0, 1), [11, 12]),
            (session.spark.table(table), [1, 2, 12, 21]),
        ):
            assert "InMemoryTableScan" not in plan_of(other)
            assert ids(other) == expected
        session.spark.sql(f"insert into {table} values (31, 1, 1)")
        assert ids(between(session, table, 0)) == [11, 12, 21, 31]
    finally:
        session.spark.catalog.clearCache()


def test_a_branch_is_read_up_to_its_own_end(session: IcebergSession) -> None:
    table = "steps.db.branched"
    make(session, table, "")
    session.spark.sql(f"alter table {table} create branch b")
    session.spark.sql(f"insert into {table}.branch_b values (31, 1, 1)")
    session.spark.sql(f"insert into {table} values (41, 1, 1)")
    start = number(session, table, 1)
    reader = session.spark.read.option("start-snapshot-id", start)
    assert ids(reader.option("branch", "b").table(table)) == [21, 31]
    reader = session.spark.read.option("start-snapshot-id", start)
    assert ids(reader.table(f"{table}.branch_b")) == [21, 31]
    assert ids(reader.table(table)) == [21, 41]


@pytest.mark.nightly
@BOTH
def test_changes_of_a_range(session: IcebergSession, table: str) -> None:
    whole = session.spark.table(f"{table}.changes")
    assert whole.columns == [
        "id",
        "g",
        "v",
        "_change_type",
        "_change_ordinal",
        "_commit_snapshot_id",
    ]
    ids_of = [s.snapshot_id for s in session.table(table).snapshots]
    expected = [
        *[(1, 1, None, "INSERT", 0), (2, 2, None, "INSERT", 0)],
        *[(11, 1, None, "DELETE", 2), (11, 1, None, "INSERT", 1), (12, 2, None, "INSERT", 1)],
        (21, 1, 7, "INSERT", 3),
    ]
    actual = [(*row[:4], row[4]) for row in whole.collect()]
    assert sorted(actual, key=lambda row: (row[0], row[3])) == expected
    assert all(row[5] == ids_of[row[4]] for row in whole.collect())
    assert whole.count() == 6
    assert whole.where("_change_type = 'DELETE'").select("_commit_snapshot_id").collect() == [
        (ids_of[2],)
    ]
    options = {"start-snapshot-id": ids_of[1], "end-snapshot-id": ids_of[2]}
    by_option = session.spark.read.options(**options).table(f"{table}.changes")
    assert by_option.select("_change_ordinal", "id").collect() == [(0, 11)]
    deleted = session.spark.sql(
        f"select c.id from {table}.changes c left anti join {table} t on c.id = t.id "
        "where _change_type = 'INSERT'"
    )
    assert deleted.collect() == [(11,)]
    location = session.table(table).location
    for native in ("true", "false"):
        source = session.spark.read.format("iceberg-py").options(native=native, **options)
        assert source.load(f"{location}#changes").collect() == by_option.collect()
    with pytest.raises(PySparkException, match="changes are read between two snapshots"):
        session.spark.read.option("versionAsOf", ids_of[0]).table(f"{table}.changes").collect()


@pytest.mark.nightly
def test_a_start_that_has_expired(session: IcebergSession) -> None:
    table = "steps.db.expired"
    make(session, table, "")
    start = number(session, table, 0)
    session.table(table).maintenance().expire_snapshots(older_than=4_000_000_000_000, retain_last=3)
    reader = session.spark.read.option("start-snapshot-id", start)
    assert ids(reader.table(table)) == [11, 12, 21]
    session.table(table).maintenance().expire_snapshots(older_than=4_000_000_000_000, retain_last=1)
    with pytest.raises(PySparkException, match=f"snapshot {start}, the start .* or has expired"):
        reader.table(table).collect()


@pytest.mark.nightly
def test_a_source_of_a_merge(session: IcebergSession) -> None:
    table = "steps.db.merged"
    make(session, table, "")
    session.spark.sql("create table steps.db.copy (id bigint, g int, v int) using iceberg")
    session.spark.sql("insert into steps.db.copy values (12, 0, 0), (99, 0, 0)")
    between(session, table, 0).createOrReplaceTempView("appended")
    session.spark.sql(
        "merge into steps.db.copy t using appended s on t.id = s.id "
        "when matched then update set g = s.g when not matched then insert *"
    )
    assert sorted(map(tuple, session.spark.table("steps.db.copy").collect())) == [
        *[(11, 1, None), (12, 2, 0), (21, 1, 7), (99, 0, 0)]
    ]


@pytest.mark.parametrize(
    ("place", "options", "message"),
    [
        ("", {"start-snapshot-id": "x"}, "start-snapshot-id is a whole number, got 'x'"),
        ("", {"start-snapshot-id": "7"}, "snapshot 7, the start of an incremental read, is no"),
        ("", {"end-snapshot-id": "7"}, "end-snapshot-id needs a start"),
        ("", {"end-timestamp": "7"}, "end-timestamp needs a start"),
        ("", {"start-timestamp": "7", "start-snapshot-id": "7"}, "are both given; keep one"),
        ("", {"start-timestamp": "7", "versionAsOf": "main"}, "version for one snapshot"),
        ("", {"start-timestamp": "7", "timestampAsOf": "2999-01-01"}, "as-of-timestamp for one"),
        ("", {"start-timestamp": "7", "branch": "nope"}, "no branch or tag 'nope'"),
        (".files", {"start-timestamp": "7"}, "shows one snapshot"),
        (".snapshots", {"start-timestamp": "7"}, "shows the whole table"),
    ],
)
def test_wrong_options(
    session: IcebergSession, place: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PySparkException) as e:
        session.spark.read.options(**options).table(f"{PLAIN}{place}").collect()
    assert message in str(e.value).splitlines()[0]


@pytest.mark.parametrize("name", ["start-snapshot-id", "end-snapshot-id", "start-timestamp"])
def test_writes_take_no_range(session: IcebergSession, name: str) -> None:
    row = session.spark.sql("select 7L id, 7 g, 7 v")
    before = session.table(PLAIN).metadata.current_snapshot_id
    location = session.table(PLAIN).location
    for write in (
        lambda: row.writeTo(PLAIN).option(name, "1").append(),
        lambda: row.write.format("iceberg-py").option(name, "1").mode("append").save(location),
        lambda: session.spark.sql(f"insert into {PLAIN} with (`{name}` = 1) values (7, 7, 7)"),
    ):
        with pytest.raises(PySparkException, match=f"option '{name}'"):
            write()
    assert session.table(PLAIN).metadata.current_snapshot_id == before


CHANGES = (
    "delete from part where id = 12",
    "delete from part",
    "update part set g = 1",
    "merge into part t using (select 12L id) s on t.id = s.id when matched then delete",
)


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("start-snapshot-id", None, "leave it out"),
        pytest.param(*("branch", "side", f"{PLAIN}.branch_side")),
    ],
)
def test_changes_of_rows_take_no_part_of_a_table(
    session: IcebergSession, name: str, value: str | None, instead: str
) -> None:
    if "side" not in session.table(PLAIN).refs:
        session.spark.sql(f"alter table {PLAIN} create branch side")
    arguments = value or str(number(session, PLAIN, 0))
    before = session.table(PLAIN).metadata.refs
    session.spark.read.option(name, arguments).table(PLAIN).createOrReplaceTempView("part")
    for change in CHANGES:
        with pytest.raises(PySparkException) as e:
            session.spark.sql(change)
        message = str(e.value).splitlines()[0]
        assert f"the option {name} chooses what is read of {PLAIN}" in message
        assert message.endswith(instead)
    assert session.table(PLAIN).metadata.refs == before


def test_changes_of_rows_refuse_options_that_are_not_of_reads(session: IcebergSession) -> None:
    """Write options and unknown options would have no effect on a read, so they are refused."""
    before = session.table(PLAIN).metadata.refs
    for name, value in (
        ("target-file-size-bytes", "1000000"),
        ("write-format", "orc"),
        ("snapshot-property.x", "y"),
        ("Nonsense", "1"),
    ):
        read = session.spark.read.option("split-size", "1000000").option(name, value)
        read.table(PLAIN).createOrReplaceTempView("part")
        for change in CHANGES:
            with pytest.raises(PySparkException) as e:
                session.spark.sql(change)
            message = str(e.value).splitlines()[0].lower()
            assert f"the option {name} of {PLAIN} has no effect".lower() in message
    assert session.table(PLAIN).metadata.refs == before


def test_inserts_of_sql_take_the_options_of_writes(session: IcebergSession) -> None:
    table = "steps.db.inserted"
    make(session, table, "")
    session.spark.sql(f"alter table {table} create branch b")
    main = session.table(table).metadata.current_snapshot_id
    session.spark.sql(f"insert into {table} with (`branch` = 'b') values (7, 7, 7)")
    assert ids(session.spark.table(f"{table}.branch_b")) == [1, 2, 7, 12, 21]
    text = f"insert overwrite {table} with (`branch` = 'b', `split-size` = 1) values (8, 8, 8)"
    session.spark.sql(text)
    assert ids(session.spark.table(f"{table}.branch_b")) == [8]
    assert session.table(table).metadata.current_snapshot_id == main
    with pytest.raises(PySparkException, match="unknown write option 'nonsense'"):
        session.spark.sql(f"insert into {table} with (nonsense = 1) values (7, 7, 7)")
