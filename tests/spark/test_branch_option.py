"""Reads with the option `branch` return that branch's rows, also beside other branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from tests.amounts import FULL_WORK
from tests.support.frames import append_rows
from tests.support.native_lake import plan_of, sqlite_lake
from tests.support.parameters import cases
from tests.support.spark_settings import JOINS_OF_GROUPS, configured

PLAIN = "optional.db.plain"
PARTITIONED = "optional.db.partitioned"
BOTH = cases("table", fast=[PARTITIONED], nightly=[PLAIN])


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("optional"), "optional") as lake:
        for table in (PLAIN, PARTITIONED) if FULL_WORK else (PARTITIONED,):
            make(lake, table, "partitioned by (g)" if table == PARTITIONED else "")
        yield lake


def make(session: IcebergSession, table: str, clauses: str) -> None:
    """Put row 1 on all branches, 11 and 12 on b, 21 on c; then add column v, and row 2 on main."""
    session.spark.sql(f"create table {table} (id bigint, g int) using iceberg {clauses}")
    created = session.table(table)
    append_rows(created, [{"id": 1, "g": 1}])
    created.manage_snapshots().create_branch("b").create_branch("c").create_tag("g").commit()
    append_rows(created, [{"id": 11, "g": 1}, {"id": 12, "g": 2}], branch="b")
    append_rows(created, [{"id": 21, "g": 1}], branch="c")
    created.update_schema().add_column("v", "int").commit()
    append_rows(created, [{"id": 2, "g": 2, "v": 2}])


def read(session: IcebergSession, table: str, branch: str | None) -> DataFrame:
    reader = session.spark.read
    return (reader if branch is None else reader.option("branch", branch)).table(table)


def ids(frame: DataFrame) -> list[int]:
    return sorted(r.id for r in frame.select("id").collect())


@pytest.mark.nightly
@BOTH
def test_a_branch_is_read_with_the_columns_of_the_table(
    session: IcebergSession, table: str
) -> None:
    frame = read(session, table, "b")
    assert frame.columns == ["id", "g", "v"]
    assert sorted(frame.collect()) == [(1, 1, None), (11, 1, None), (12, 2, None)]
    assert ids(session.spark.sql(f"select * from {table} with (`BRANCH` = 'b')")) == [1, 11, 12]
    assert ids(read(session, table, "main")) == ids(read(session, table, None)) == [1, 2]
    assert ids(read(session, f"{table}.branch_b", "b")) == [1, 11, 12]
    assert ids(session.spark.read.options(branch="b", versionAsOf="b").table(table)) == [1, 11, 12]
    location = session.table(table).location
    for native in ("true", "false"):
        portable = session.spark.read.format("iceberg-py").options(branch="b", native=native)
        assert sorted(portable.load(location).collect()) == sorted(frame.collect())


@pytest.mark.nightly
@BOTH
def test_aggregates_from_metadata_are_those_of_the_branch(
    session: IcebergSession, table: str
) -> None:
    query = "select count(*), min(id), max(id) from {} with (`branch` = 'b')"
    aggregates = session.spark.sql(query.format(table))
    assert aggregates.collect() == [(3, 1, 12)]
    assert "LocalTableScan" in plan_of(aggregates)
    assert ids(read(session, table, "b").where("id > 11")) == [12]
    assert len(read(session, table, "b").limit(2).collect()) == 2
    files = read(session, f"{table}.files", "b")
    assert sum(r.record_count for r in files.collect()) == 3
    assert read(session, table, "b").selectExpr("_file").distinct().count() == files.count()


@pytest.mark.nightly
@BOTH
def test_branches_of_a_table_in_one_query(session: IcebergSession, table: str) -> None:
    b, c, main = (read(session, table, name) for name in ("b", "c", None))
    assert ids(b.union(c).union(main)) == [1, 1, 1, 2, 11, 12, 21]
    assert ids(b.join(c, "id")) == [1]
    assert ids(b.join(main, "id", "left_anti")) == [11, 12]
    # Spark reuses exchanges of equal plans, so plans of different branches must not be equal.
    sums = [f.groupBy("g").sum("id").selectExpr("g", "`sum(id)` id") for f in (b, c, main)]
    assert sorted(map(tuple, sums[0].union(sums[1]).union(sums[2]).collect())) == [
        *[(1, 1), (1, 12), (1, 22), (2, 2), (2, 12)]
    ]
    twice = sums[0].join(read(session, table, "b").groupBy("g").sum("id"), "g")
    assert sorted(map(tuple, twice.collect())) == [(1, 12, 12), (2, 12, 12)]


@pytest.mark.nightly
def test_groups_and_late_filters_are_of_the_branch(session: IcebergSession) -> None:
    for name in ("b", "c"):
        read(session, PARTITIONED, name).createOrReplaceTempView(f"of_{name}")
    query = "select b.id, c.id from of_b b join of_c c on b.g = c.g"
    with configured(session.spark, JOINS_OF_GROUPS):
        frame = session.spark.sql(query)
        assert "Exchange " not in plan_of(frame)
        assert sorted(map(tuple, frame.collect())) == [(1, 1), (1, 21), (11, 1), (11, 21)]
    late = session.spark.sql(f"{query} where c.id = 21")
    assert "dynamicpruning" in plan_of(late)
    assert sorted(map(tuple, late.collect())) == [(1, 21), (11, 21)]


def test_cached_rows_are_of_the_branch_and_as_new_as_it(session: IcebergSession) -> None:
    table = "optional.db.cached"
    make(session, table, "")
    b = read(session, table, "b").cache()
    try:
        assert ids(b) == [1, 11, 12]
        assert "InMemoryTableScan" in plan_of(read(session, table, "b"))
        for other, expected in (("c", [1, 21]), (None, [1, 2])):
            frame = read(session, table, other)
            assert "InMemoryTableScan" not in plan_of(frame)
            assert ids(frame) == expected
        session.spark.sql(f"insert into {table}.branch_b values (13, 1, 1)")
        assert ids(read(session, table, "b")) == [1, 11, 12, 13]
        row = session.spark.sql("select 14L id, 1 g, 1 v")
        row.writeTo(table).option("branch", "b").append()
        assert ids(read(session, table, "b")) == [1, 11, 12, 13, 14]
    finally:
        # Spark cached newer rows after the insert; unpersisting `b` would not drop them.
        session.spark.catalog.clearCache()


@pytest.mark.nightly
def test_a_frame_used_again_is_as_new_as_one_of_the_branchs_name(session: IcebergSession) -> None:
    table = "optional.db.again"
    make(session, table, "")
    by_option, by_name = read(session, table, "b"), session.spark.table(f"{table}.branch_b")
    assert ids(by_option) == ids(by_name)
    session.spark.sql(f"insert into {table}.branch_b values (13, 1, 1)")
    assert ids(by_option) == ids(by_name)
    assert ids(read(session, table, "b")) == [1, 11, 12, 13]


@pytest.mark.nightly
def test_the_option_comes_before_the_branch_of_an_audit(session: IcebergSession) -> None:
    table = "optional.db.audited"
    make(session, table, "tblproperties ('write.wap.enabled' = 'true')")
    with configured(session.spark, {"spark.wap.branch": "c"}):
        assert ids(read(session, table, None)) == [1, 21]
        assert ids(read(session, table, "b")) == [1, 11, 12]
        assert ids(read(session, table, "main")) == [1, 2]


def test_main_of_a_table_without_a_snapshot(session: IcebergSession) -> None:
    spark, empty = session.spark, "optional.db.empty"
    spark.sql(f"create table {empty} (id bigint) using iceberg")
    location = session.table(empty).location
    for frame in (
        read(session, empty, "main"),
        spark.table(f"{empty}.branch_main"),
        spark.sql(f"select * from {empty} version as of 'main'"),
        spark.read.option("versionAsOf", "main").table(empty),
        *(
            spark.read.format("iceberg-py")
            .option(name, "main")
            .option("native", native)
            .load(location)
            for name in ("branch", "versionAsOf")
            for native in ("true", "false")
        ),
    ):
        assert ids(frame) == []
    assert spark.sql(f"select count(*), max(id) from {empty}.branch_main").first() == (0, None)
    spark.sql(f"delete from {empty}.branch_main where id = 1")
    spark.sql(f"update {empty}.branch_main set id = 1")
    of_main = SnapshotSelector(branch="main")
    assert session.table(empty).scan(selector=of_main).to_arrow().num_rows == 0
    session.table(empty).append(pa.table({"id": [3]}), branch="main")
    assert ids(spark.table(f"{empty}.branch_main")) == ids(spark.table(empty)) == [3]


@pytest.mark.nightly
def test_a_source_of_a_merge(session: IcebergSession) -> None:
    table = "optional.db.merged"
    make(session, table, "")
    read(session, table, "b").createOrReplaceTempView("of_b")
    session.spark.sql(
        f"merge into {table} t using of_b s on t.id = s.id "
        "when matched then update set v = 7 when not matched then insert *"
    )
    assert sorted(map(tuple, session.spark.table(table).collect())) == [
        *[(1, 1, 7), (2, 2, 2), (11, 1, None), (12, 2, None)]
    ]


@pytest.mark.parametrize(
    ("place", "options", "message"),
    [
        ("", {"branch": "nope"}, "no branch or tag 'nope'; there are: b, c, g, main"),
        ("", {"branch": ""}, "no branch or tag ''; there are: b, c, g, main"),
        ("", {"branch": "g"}, "names 'g', a tag of db.partitioned; use the option versionAsOf"),
        (".branch_c", {"branch": "b"}, "another snapshot of db.partitioned to be read; keep one"),
        (".branch_c", {"branch": "main"}, "keep one of them"),
        (".tag_g", {"branch": "b"}, "keep one of them"),
        ("", {"branch": "b", "versionAsOf": "c"}, "keep one of them"),
        ("", {"branch": "b", "versionAsOf": "g"}, "keep one of them"),
        ("", {"branch": "g", "versionAsOf": "g"}, "a tag of db.partitioned"),
        ("", {"branch": "b", "timestampAsOf": "2999-01-01"}, "keep one of them"),
        ("", {"branch": "b", "snapshot-id": "1"}, "the option snapshot-id does not choose rows"),
        (".files", {"branch": "nope"}, "no branch or tag 'nope'"),
        (".snapshots", {"branch": "b"}, "snapshots"),
    ],
)
def test_missing_branch_or_second_selector_is_refused(
    session: IcebergSession, place: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PySparkException) as e:
        session.spark.read.options(**options).table(f"{PARTITIONED}{place}").collect()
    assert message in str(e.value).splitlines()[0]
