"""DELETE, UPDATE and MERGE without any jar: changed rows, files read, and concurrent commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sql

from iceberg_pyspark.errors import (
    ConcurrentChangeError,
    InvalidRequestError,
    TableRecreatedError,
)
from iceberg_pyspark.spark.bridge.protocol.messages import Response
from iceberg_pyspark.spark.bridge.spark_writes import Writes
from iceberg_pyspark.spark.requests.handlers import HANDLERS, Handler
from iceberg_pyspark.spark.requests.sessions import BridgeSessions
from iceberg_pyspark.spark.row_level import execution, key_range, row_level_job
from iceberg_pyspark.spark.row_level import merge as merge_module
from iceberg_pyspark.spark.row_level import target as target_module
from iceberg_pyspark.spark.row_level.row_level_job import run_job
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spark.spark_table import SparkTable
from iceberg_pyspark.spec.table_properties import NATIVE_WRITER
from iceberg_pyspark.spec.types import (
    IntegerType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from iceberg_pyspark.table.row_level.touched_rows import TouchedRows
from iceberg_pyspark.table.table import Table
from tests.amounts import FULL_WORK
from tests.support.change_plans import noted_plans
from tests.support.changed_rows import rows
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases
from tests.support.rows import spark_rows
from tests.support.table_integrity import table_problems

IDS = range(10)
BY_G = "partitioned by (g)"


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("rows"), "rows") as lake_session:
        yield lake_session


@pytest.fixture
def table(session: IcebergSession, request: pytest.FixtureRequest) -> Callable[..., SparkTable]:
    """Return a function that creates a table named after the test: ids 0 to 9, partitioned by g =
    id % 2, one file per partition.
    """

    def make(version: int = 3, mode: str = "merge-on-read", **properties: str) -> SparkTable:
        name = f"rows.db.{request.node.name.partition('[')[0]}_{version}_{mode[0]}"
        options = {
            "format-version": str(version),
            **{f"write.{op}.mode": mode for op in ("delete", "update", "merge")},
            **{k.replace("_", "."): v for k, v in properties.items()},
        }
        properties_sql = ", ".join(f"'{k}'='{v}'" for k, v in options.items())
        session.spark.sql(
            f"create table {name} (id bigint, g int, s string) partitioned by (g) "
            f"tblproperties ({properties_sql})"
        )
        created = session.table(name)
        created.append(rows(*IDS))
        return created

    return make


def contents(table: SparkTable) -> dict[int, str]:
    result = table.refresh().scan(columns=["id", "s"]).to_arrow()
    by_id = dict(zip(result["id"].to_pylist(), result["s"].to_pylist(), strict=True))
    assert len(by_id) == result.num_rows, "a row occurs twice"
    return by_id


def data_files(table: SparkTable) -> set[str]:
    return {str(p) for p in Path(table.location, "data").rglob("*") if p.suffix != ".crc"}


class Interrupted:
    """A replacement of `run_job` that runs an action once, after the job and before its commit."""

    def __init__(self, patch: pytest.MonkeyPatch, between: Callable[[], object]) -> None:
        self.targets: list[Target] = []
        self._between = between
        patch.setattr(execution, "run_job", self)

    def __call__(self, target: Target, frame: DataFrame, *args: object, **kw: object) -> object:
        done: TouchedRows = run_job(target, frame, *args, **kw)  # type: ignore[arg-type]
        self.targets.append(target)
        if len(self.targets) == 1:
            self._between()
        return done


def nothing() -> None:
    """Do nothing between the job and its commit."""


@cases(
    ("version", "mode"),
    fast=[(2, "merge-on-read"), (3, "copy-on-write")],
    nightly=[(3, "merge-on-read"), (1, "merge-on-read")],
)
def test_the_three_operations_from_python(
    session: IcebergSession, table: Callable[..., SparkTable], version: int, mode: str
) -> None:
    t = table(version, mode)
    expected = {i: str(i) for i in IDS}
    done = t.delete("id in (2, 3)")
    assert (done.deleted, done.updated, done.inserted) == (2, 0, 0)
    assert done.snapshot_id == t.metadata.current_snapshot_id
    done = t.update({"s": "concat(s, '!')"}, sql.col("id") > 7)
    assert (done.deleted, done.updated, done.inserted) == (0, 2, 0)
    source = session.spark.createDataFrame(
        [(4, "four"), (5, "gone"), (20, "new")], "id long, s string"
    )
    done = (
        t.merge_into(source.alias("u"), "t.id = u.id")
        .whenMatched("u.s = 'gone'")
        .delete()
        .whenMatched()
        .update({"s": "u.s"})
        .whenNotMatched()
        .insert({"id": "id", "g": "7", "s": "s"})
        .whenNotMatchedBySource("id = 0")
        .update({"s": sql.lit("alone")})
        .merge()
    )
    assert (done.deleted, done.updated, done.inserted) == (1, 2, 1)
    copied = mode == "copy-on-write" or version == 1
    assert done.copied == (5 if copied else 0)
    for deleted in (2, 3, 5):
        del expected[deleted]
    expected |= {8: "8!", 9: "9!", 4: "four", 20: "new", 0: "alone"}
    assert contents(t) == expected
    before = t.metadata.current_snapshot_id
    assert t.update({"s": "'x'"}, "s = 'nobody'").snapshot_id == before
    if version == 3:
        # Updated and copied rows keep their row ids (specification, "Row Lineage").
        lineage_frame = session.spark.table(t.name).select(
            "id", "_row_id", "_last_updated_sequence_number"
        )
        lineage = {r[0]: (r[1], r[2]) for r in lineage_frame.collect()}
        first = {i: (i // 2 + 5 * (i % 2)) for i in IDS}
        assert {i: lineage[i][0] for i in expected if i != 20} == {
            i: first[i] for i in expected if i != 20
        }
        changed = {0: 4, 4: 4, 20: 4, 8: 3, 9: 3}
        assert {i: lineage[i][1] for i in expected} == {i: changed.get(i, 1) for i in expected}


@cases(
    ("version", "mode", "partitioned"),
    fast=[(2, "merge-on-read", BY_G), (3, "copy-on-write", "")],
    nightly=[(3, "merge-on-read", ""), (2, "copy-on-write", BY_G)],
)
def test_no_changed_row_goes_through_python(
    session: IcebergSession,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    mode: str,
    partitioned: str,
) -> None:
    """Equal statements, by Spark's own writer and by Python's; columns without nulls, too."""
    sql_, tables = session.spark.sql, {}
    for native in (True, False):
        name = f"rows.db.written_{version}_{mode[0]}_{native}".lower()
        modes = "".join(f", 'write.{op}.mode'='{mode}'" for op in ("delete", "update", "merge"))
        sql_(
            f"create table {name} (id bigint not null, g int, s string not null, "
            f"r struct<a: int, b: string>) {partitioned} "
            f"tblproperties ('format-version'='{version}'{modes}, "
            f"'{NATIVE_WRITER.name}'='{native}')"
        )
        sql_(f"insert into {name} select id, id % 3, string(id), struct(id, 'b') from range(40)")
        tables[native] = name
    source = (
        "(select * from values (3L, 'gone', null), (4L, 'new', 'four'), (5L, 'new', 'five'), "
        "(6L, 'kept', null), (50L, 'new', 'fifty') v(id, what, s)) u"
    )
    merge = f"merge into {{t}} t using {source} on t.id = u.id"
    statements = (
        "delete from {t} where id % 10 = 9",
        "update {t} set s = concat(s, '!') where g = 1",
        "update {t} set r.a = -1, g = null where id in (7, 8)",
        f"{merge} when matched and what = 'gone' then delete "
        "when matched and what = 'new' then update set s = u.s when not matched then insert "
        "(id, g, s) values (u.id, 9, u.s) when not matched by source and t.id = 0 then delete "
        "when not matched by source and t.id < 3 then update set s = 'low'",
        f"{merge} when matched and what = 'new' then delete "
        "when not matched and u.s is not null then insert (id, g, s) values (u.id, 1, u.s)",
        f"{merge} when matched then update set g = 5",
        # These are refused.
        f"{merge} when matched then update set s = u.s",
        f"{merge} or t.id = u.id + 1 when matched and what <> '' then update set g = 1",
    )

    def by_python(*args: object) -> None:
        raise AssertionError("rows go through Python")

    def changed(statement: str, name: str) -> object:
        try:
            sql_(statement.replace("{t}", name))
        except PySparkException as e:
            return "by Python" if "rows go through Python" in str(e) else "refused"
        snapshot = session.table(name).refresh().metadata.current_snapshot
        assert snapshot is not None
        counted = {k: v for k, v in snapshot.summary.items() if "num-target-rows" in k}
        return counted, spark_rows(session.spark.table(name).collect())

    for number, statement in enumerate(statements):
        theirs = changed(statement, tables[False])
        with monkeypatch.context() as patch:
            patch.setattr(row_level_job, "run_writing_job", by_python)
            assert changed(statement, tables[True]) == theirs, statement
        assert (theirs == "refused") is (number > 5), statement
    with monkeypatch.context() as patch:
        patch.setattr(row_level_job, "run_writing_job", by_python)
        assert session.table(tables[True]).update({"s": "'drawn'"}, "rand() < 2").updated == 32
    assert table_problems(session.table(tables[True])) == []


@cases("count", fast=[63], nightly=[60, 61, 62, 64, 65, 125, 127])
def test_changes_of_rows_whose_bits_of_nulls_fill_words(
    session: IcebergSession, count: int
) -> None:
    """Spark's rows begin with a bit for each column; where they end, the columns move."""
    name, sql_ = f"rows.db.bits_{count}", session.spark.sql
    columns = [f"c{i}" for i in range(count)]
    values = ", ".join(f"if(id % {i + 2} = 0, null, string(id * {i})) c{i}" for i in range(count))
    sql_(f"create table {name} as select {values} from range(20)")
    expected = {
        (*row[:-1], "changed") if row.c3 is None else tuple(row)
        for row in session.spark.table(name).where("c4 is not null").collect()
    }
    sql_(f"delete from {name} where c4 is null")
    sql_(f"update {name} set {columns[-1]} = 'changed' where c3 is null")
    assert {tuple(row) for row in session.spark.table(name).collect()} == expected


def test_an_explanation_shows_the_scans_and_changes_nothing(
    session: IcebergSession, table: Callable[..., SparkTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    t, spark, planned = table(), session.spark, []
    plan_scan = HANDLERS["scan.plan"]

    def counted(sessions: BridgeSessions, request: Any) -> Response:
        planned.append(request)
        return plan_scan(sessions, request)

    monkeypatch.setitem(cast("dict[str, Handler]", HANDLERS), "scan.plan", counted)
    folder = Path(t.location.removeprefix("file:"))
    before = sorted(folder.rglob("*")), t.metadata.current_snapshot_id
    source = "using (select 3L id, 'q' s) u on t.id = u.id"
    for statement, expected in (
        (f"delete from {t.name} where ID > 4 and g = 1", ["1 files", "GreaterThan(id,4)"]),
        (f"delete from {t.name}", ["2 files"]),
        (f"delete from {t.name} where id in (select id + 1 from {t.name})", ["2 files"] * 2),
        (f"update {t.name} set s = 'z' where g = 0 and s > '3'", ["1 files", "GreaterThan(s,3)"]),
        (f"update {t.name} set s = (select max(s) from {t.name}) where g = 7", ["0 files"]),
        (f"merge into {t.name} t {source} when matched then update set s = u.s",
         ["2 files", "EqualTo(id,3)"]),
        (f"merge into {t.name} t {source} and t.g = 1 when matched then delete "
         "when not matched then insert (id) values (u.id)", ["1 files"]),
        (f"merge into {t.name} t {source} when not matched by source then delete", ["2 files"]),
        (f"insert into {t.name} select * from {t.name} where id = 3", ["EqualTo(id,3)"]),
    ):  # fmt: skip
        for mode in ("", "formatted", "extended", "cost"):
            text = spark.sql(f"explain {mode} {statement}").collect()[0][0]
            for part in expected:
                assert text.count(part) >= expected.count(part), (mode, text)
            assert "IcebergPyParquetScan" in text
    after = sorted(folder.rglob("*")), t.refresh().metadata.current_snapshot_id
    assert after == before
    planned.clear()
    spark.sql(f"delete from {t.name} where g = 1")
    assert not planned, "the scan is planned for an explanation only"


def test_statements_of_spark(session: IcebergSession, table: Callable[..., SparkTable]) -> None:
    t, spark = table(), session.spark
    spark.sql(f"delete from {t.name} where id in (select id from range(3)) and g = 0")
    spark.sql(f"update {t.name} set s = (select max(s) from {t.name}), g = 5 where id = 1")
    source = spark.createDataFrame([(3, "three"), (30, "thirty")], "id long, s string").alias("u")
    writer = source.mergeInto(t.name, sql.expr(f"{t.name}.id = u.id"))
    writer.whenMatched().update({"s": sql.col("u.s")}).whenNotMatched().insert(
        {"id": sql.col("u.id"), "s": sql.col("u.s")}
    ).merge()
    expected = {i: str(i) for i in IDS if i not in (0, 2)} | {1: "9", 3: "three", 30: "thirty"}
    assert contents(t) == expected
    assert spark.sql(f"select g from {t.name} where id in (1, 30) order by id").collect() == [
        (5,),
        (None,),
    ]
    with pytest.raises(PySparkException, match="several rows of the source"):
        spark.sql(
            f"merge into {t.name} t using (select explode(array(4L, 4L)) id) s on t.id = s.id "
            "when matched then update set s = 'x'"
        )
    t.refresh().manage_snapshots().create_branch("b").commit()
    spark.sql(f"delete from {t.name}.branch_b")
    assert spark.table(f"{t.name}.branch_b").count() == 0
    assert contents(t) == expected
    spark.sql(f"alter table {t.name} set tblproperties ('write.wap.enabled'='true')")
    spark.conf.set("spark.wap.id", "audit")
    try:
        spark.sql(f"delete from {t.name} where id > 3")
    finally:
        spark.conf.unset("spark.wap.id")
    assert contents(t) == expected, "a staged snapshot is in no branch"
    assert [s.summary.get("wap.id") for s in t.snapshots][-1] == "audit"
    with pytest.raises(PySparkException, match="metadata table"):
        spark.sql(f"delete from {t.name}.files where record_count > 0")


def test_two_source_rows_on_one_row_are_an_error(
    session: IcebergSession, table: Callable[..., SparkTable]
) -> None:
    t = table()
    files = data_files(t)
    twice = session.spark.createDataFrame([(4,), (4,), (5,)], "id long")
    merge = t.merge_into(twice, "t.id = s.id")
    with pytest.raises(InvalidRequestError, match="several rows of the source match one row"):
        merge.whenMatched("t.id = 5").update({"s": "'x'"}).merge()
    assert data_files(t) == files, "what was written for it is gone"
    # Deleting a row twice has the same result as deleting the row once.
    assert t.merge_into(twice, "t.id = s.id").whenMatched().delete().merge().deleted == 2


def test_an_upsert_without_spark_matches_keys_as_a_merge_does(session: IcebergSession) -> None:
    spark = session.spark
    keys = pa.array([0.0, float("nan"), None, 2.5], pa.float32())
    changed = pa.array([-0.0, float("nan"), None, 3.5], pa.float32())
    tables = []
    for name in ("merged", "upserted"):
        spark.sql(f"create table rows.db.{name} (k float, s string)")
        tables.append(session.table(f"rows.db.{name}"))
        tables[-1].append(pa.table({"k": keys, "s": ["old"] * 4}))
    merged, upserted = tables
    source = pa.table({"k": changed, "s": ["new"] * 4})
    of_spark = spark.createDataFrame(source.to_pylist(), "k float, s string")
    merge = merged.merge_into(of_spark, "t.k = s.k").whenMatched().updateAll()
    expected = merge.whenNotMatched().insertAll().merge()
    actual = Table(upserted.catalog, upserted.loaded).upsert(source, "k")
    assert (actual.updated, actual.inserted) == (expected.updated, expected.inserted) == (2, 2)
    read = [sorted(map(str, spark.table(t.name).collect())) for t in tables]
    assert read[0] == read[1]
    assert upserted.upsert(of_spark.toDF("K", "S"), ["k"]).updated == 3
    with pytest.raises(InvalidRequestError, match="the table has no column t: drop it"):
        upserted.upsert(of_spark.toDF("k", "t"), ["k"])


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_rows_that_a_source_meets_stay_where_clauses_are_about_others(
    session: IcebergSession, table: Callable[..., SparkTable], mode: str
) -> None:
    t = table(mode=mode)
    source = session.spark.createDataFrame([(4,), (4,), (5,), (70,)], "id long")
    merge = t.merge_into(source, "t.id = s.id").whenNotMatchedBySource("id > 1").delete()
    assert merge.merge().deleted == 6
    assert contents(t) == {i: str(i) for i in (0, 1, 4, 5)}


def test_whole_files_go_without_being_read(
    session: IcebergSession, table: Callable[..., SparkTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    del session
    t = table()
    job = Interrupted(monkeypatch, nothing)
    assert t.delete("g = 1 AND id IS NOT NULL AND id < 10").deleted == 5
    assert t.delete("id > 100").deleted == 0
    t.append(rows(10, 12))
    assert t.delete("id >= 10").deleted == 2, "every row of one file, by its metrics"
    assert not job.targets
    # One file is removed, and part of the other is read.
    t.append(rows(20, 22))
    assert t.delete("id > 6").deleted == 3
    assert [len(list(s.plan_files())) for s in job.targets[0].reads._reads[-1].scans] == [1]
    assert contents(t) == {0: "0", 2: "2", 4: "4", 6: "6"}
    assert t.delete("true").deleted == 4
    assert t.metadata.current_snapshot.summary["total-data-files"] == "0"  # type: ignore[union-attr]
    assert len(job.targets) == 1


@cases(
    "version, mode, source, inserted",
    fast=[(2, "copy-on-write", "select cast(102 as int) id, 'new' s", 0)],
    nightly=[
        (2, "merge-on-read", "select cast(102 as int) id, 'new' s", 0),
        (3, "merge-on-read", "select id, 'new' s from values (101L), (102L) as v(id)", 1),
        (3, "copy-on-write", "select id, 'new' s from values (101L), (102L) as v(id)", 1),
    ],
)
def test_a_merge_reads_what_its_source_can_meet(
    session: IcebergSession,
    table: Callable[..., SparkTable],
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    mode: str,
    source: str,
    inserted: int,
) -> None:
    t = table(version, mode)
    t.append(rows(100, 102))
    monkeypatch.setattr(key_range, "MIN_TABLE_BYTES", 0)
    job = Interrupted(monkeypatch, nothing)
    done = (
        t.merge_into(session.spark.sql(source), "t.id = s.id")
        .whenMatched()
        .update({"s": "s.s"})
        .whenNotMatched()
        .insert({"id": "id", "g": "1", "s": "s"})
        .merge()
    )
    assert (done.updated, done.inserted) == (1, inserted)
    reads = job.targets[0].reads._reads
    assert [[len(list(s.plan_files())) for s in read.scans] for read in reads] == [[1]] * len(reads)
    assert contents(t) == {
        **{i: str(i) for i in (*IDS, 100)},
        **dict.fromkeys([102, 101][: 1 + inserted], "new"),
    }


@pytest.mark.nightly
@pytest.mark.parametrize(("partitioned", "question_count"), [("bucket(2, id)", 0), ("g", 1)])
def test_a_source_is_asked_for_few_values_where_files_differ_by_them(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch, partitioned: str, question_count: int
) -> None:
    spark, name = session.spark, f"rows.db.alike_{question_count}"
    rows_of = "select id, cast(id % 5 as int) g, cast(id as string) s from range(200)"
    spark.sql(
        f"create table {name} using iceberg partitioned by ({partitioned}) tblproperties "
        f"('write.merge.mode' = 'merge-on-read') as {rows_of}"
    )
    few, questions = key_range._few_values, []

    def counted(source: DataFrame, key: key_range.Key) -> list[Column]:
        questions.append(key)
        return few(source, key)

    monkeypatch.setattr(key_range, "_few_values", counted)
    monkeypatch.setattr(key_range, "SMALL_SOURCE_BYTES", 0)
    source = "(select id, cast(id % 5 as int) g from range(1, 190))"
    merge = f"merge into {name} t using {source} u on t.id = u.id and t.g = u.g"
    spark.sql(f"{merge} when matched then update set s = 'new'")
    assert len(questions) == question_count
    expected = {i: "new" if 1 <= i < 190 else str(i) for i in range(200)}
    assert {r.id: r.s for r in spark.table(name).collect()} == expected


@pytest.mark.nightly
def test_a_small_source_is_looked_up_before_an_outer_join(
    session: IcebergSession, table: Callable[..., SparkTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    t, spark = table(), session.spark
    t.append(rows(*range(100, 160)))
    plans: list[str] = []

    def noted(target: Target, frame: DataFrame, *args: object, **kw: object) -> object:
        plans.append(frame._jdf.queryExecution().analyzed().toString())
        return run_job(target, frame, *args, **kw)  # type: ignore[arg-type]

    monkeypatch.setattr(execution, "run_job", noted)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "1000")
    sources = (
        "select * from values (100, 'a'), (101, 'b'), (null, 'c'), (200, 'd') as v(id, s)",
        "select id, 'e' s from range(100, 101) where length(uuid()) > 1",
        "select id, 'f' s from range(50)",
    )
    try:
        for source in sources:
            spark.sql(
                f"merge into {t.name} t using ({source}) s on t.id = s.id + 1 and t.g < 2 "
                "when matched then update set s = s.s when not matched then "
                "insert (id, s) values (s.id + 1, s.s)"
            )
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    # No lookup if the source is nondeterministic, nor if most rows match.
    assert ["LeftSemi" in p for p in plans] == [True, False, False]
    expected = {i: str(i) for i in (0, 100, *range(103, 160))} | dict.fromkeys(range(1, 51), "f")
    expected_rows: dict[int | None, str] = {101: "e", 102: "b", 201: "d", None: "c"}
    expected_rows.update(expected.items())
    assert contents(t) == expected_rows


@pytest.mark.nightly
def test_rows_are_looked_up_in_well_compressed_files_too(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = session.spark
    spark.sql(
        "create table rows.db.packed tblproperties ('write.merge.mode' = 'merge-on-read') "
        "as select /*+ coalesce(1) */ id, 'old' s from range(20000)"
    )
    plans: list[str] = []

    def noted(target: Target, frame: DataFrame, *args: object, **kw: object) -> object:
        plans.append(frame._jdf.queryExecution().analyzed().toString())
        assert target.size_in_bytes < 200_000
        return run_job(target, frame, *args, **kw)  # type: ignore[arg-type]

    monkeypatch.setattr(execution, "run_job", noted)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "200000")
    try:
        spark.sql(
            "merge into rows.db.packed t using (select id * 2 id, 'new' s from range(9999, 10003)) "
            "n on t.id = n.id when matched then update set * when not matched then insert *"
        )
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert ["LeftSemi" in p for p in plans] == [True]
    last = spark.table("rows.db.packed").where("id > 19996").orderBy("id").collect()
    assert [tuple(row) for row in last] == [
        (19997, "old"),
        (19998, "new"),
        (19999, "old"),
        (20000, "new"),
        (20002, "new"),
        (20004, "new"),
    ]


@pytest.mark.nightly
def test_a_merge_that_writes_all_of_a_large_source_is_shuffled_once(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = session.spark
    spark.sql(
        "create table rows.db.even (id bigint, s string) "
        "tblproperties ('write.merge.mode'='merge-on-read')"
    )
    t = session.table("rows.db.even")
    t.append(rows(*IDS).drop_columns(["g"]))
    monkeypatch.setattr(merge_module, "MIN_TASK_BYTES", 1)
    rebalanced: list[int] = []
    real = Writes.rebalance

    def record_size(self: Writes, frame: DataFrame, by: Sequence[Column], size: int) -> DataFrame:
        rebalanced.append(size)
        return real(self, frame, by, size)

    monkeypatch.setattr(Writes, "rebalance", record_size)
    insert, update = "when not matched then insert *", "when matched then update set *"
    clauses = (
        (True, f"{update} {insert}"),
        (False, f"when matched and t.s = 'x' then update set * {insert}"),
        (False, update),
        (False, f"when matched and t.s = 'x' then delete {update} {insert}"),
        (False, f"{update} {insert} when not matched by source then update set s = 'alone'"),
    )
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        for number in range(5) if FULL_WORK else (0, 1, 4):
            even, text = clauses[number]
            rebalanced.clear()
            source = f"select id + {number} id, 'of {number}' s from range(8, 12)"
            spark.sql(f"merge into rows.db.even t using ({source}) s on t.id = s.id {text}")
            assert bool(rebalanced) is not even, text
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    met = dict.fromkeys(range(12, 16), "of 4")
    assert contents(t) == {**dict.fromkeys(range(12), "alone"), **met}


def test_one_task_changes_rows_of_few_small_files(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = session.spark
    spark.sql(
        "create table rows.db.single (id bigint, s string) "
        "tblproperties ('write.update.mode'='merge-on-read')"
    )
    t = session.table("rows.db.single")
    t.append(rows(*IDS).drop_columns(["g"]))
    plans = noted_plans(monkeypatch)
    spark.sql("update rows.db.single set s = 'new' where id = 1")
    spark.sql("update rows.db.single set s = 'newer' where id <= 1")
    assert len(list(t.refresh().scan().plan_files())) == 3, (
        "the second wrote the rows of two files into one"
    )
    for constant, most in (("_FILES_OF_A_TASK", 2), ("_BYTES_OF_A_TASK", 100)):
        with monkeypatch.context() as limited:
            limited.setattr(target_module, constant, most)
            spark.sql(f"update rows.db.single set s = '{constant}' where id <= 2")
    assert ["Exchange hash" in plan for plan in plans] == [False, False, True, True]
    found = contents(t)
    assert [found[i] for i in range(4)] == ["_BYTES_OF_A_TASK"] * 3 + [found[3]]
    assert len(found) == len(IDS)


def test_commits_of_others(
    session: IcebergSession, table: Callable[..., SparkTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    t, spark = table(), session.spark
    other = session.table(t.name)
    with monkeypatch.context() as patch:
        # New rows that do not match the condition are no conflict.
        job = Interrupted(patch, lambda: other.append(rows(11)))
        assert t.delete("g = 0 and s like '%8'").deleted == 1
        assert len(job.targets) == 1
    with monkeypatch.context() as patch:
        # New rows in partitions for which the merge has no source are no conflict.
        job = Interrupted(patch, lambda: other.append(rows(17)))
        source = spark.sql("select * from values (0L, 0, 'zero') as v(id, g, s)")
        merge = t.merge_into(source, "t.id = s.id and t.g = s.g")
        assert merge.whenMatched().updateAll().merge().updated == 1
        assert len(job.targets) == 1
    with monkeypatch.context() as patch:
        # A second vector for one file: the job runs again after the first commit
        # (docs/conformance.md 33).
        job = Interrupted(patch, lambda: session.table(t.name).delete("s = '1'"))
        assert t.update({"s": "'x'"}, "id in (1, 3)").updated == 1
        assert len(job.targets) == 3
    with monkeypatch.context() as patch:
        # New rows match the condition, so the job runs again.
        job = Interrupted(patch, lambda: session.table(t.name).append(rows(13)))
        assert t.update({"s": "'y'"}, "g = 1 and length(s) = 2").updated == 3
        assert len(job.targets) == 2
    expected = {i: str(i) for i in (2, 4, 5, 6, 7, 9)}
    expected |= {0: "zero", 3: "x", 11: "y", 13: "y", 17: "y"}
    assert contents(t) == expected
    spark.sql(f"alter table {t.name} set tblproperties ('write.update.isolation-level'='snapshot')")
    with monkeypatch.context() as patch:
        job = Interrupted(patch, lambda: session.table(t.name).append(rows(15)))
        assert t.update({"s": "'z'"}, "g = 1 and length(s) = 2").updated == 0
        assert len(job.targets) == 1
    with monkeypatch.context() as patch:
        # The subquery reads a fixed snapshot of the table, so the user gets the conflict as an
        # error.
        Interrupted(patch, lambda: session.table(t.name).delete("s = '5'"))
        statement = (
            f"update {t.name} set s = 'w' where id in (select max(id) from {t.name} where id < 6)"
        )
        with pytest.raises(PySparkException, match=ConcurrentChangeError.__name__):
            spark.sql(statement)
    del expected[5]
    assert contents(t) == {**expected, 15: "15"}


@pytest.mark.nightly
def test_values_are_stored_as_ansi_sql_asks(
    session: IcebergSession, table: Callable[..., SparkTable]
) -> None:
    t = table()
    assert t.update({"G": "1L + 1"}, "id = 1").updated == 1
    with pytest.raises(InvalidRequestError, match=r"table db\.test_.*safely cast `g` \"STRING\""):
        t.update({"g": "'one'"}, "id = 1")
    with pytest.raises(PySparkException, match="overflow"):
        t.update({"g": "5000000000"}, "id = 1")
    with pytest.raises(InvalidRequestError, match="has no column 'h' to assign to"):
        t.update({"h": "1"}, "id = 1")
    with pytest.raises(InvalidRequestError, match="assigned twice"):
        t.update({"g": "1", "G": "2"}, "id = 1")
    with pytest.raises(InvalidRequestError, match="the source has no column g"):
        t.merge_into(session.spark.range(1), "t.id = s.id").whenMatched().updateAll().merge()


def test_a_merge_brings_columns(session: IcebergSession, table: Callable[..., SparkTable]) -> None:
    t, spark = table(), session.spark
    source = spark.sql("select 4L id, 0 g, 'four' s, 4.5D d union all select 40L, 0, 'forty', 0.5D")
    merge = t.merge_into(source, "t.id = s.id").withSchemaEvolution()
    done = merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
    assert (done.updated, done.inserted) == (1, 1)
    actual = t.to_df().where("d is not null").orderBy("id").collect()
    assert [tuple(r) for r in actual] == [(4, 0, "four", 4.5), (40, 0, "forty", 0.5)]


@pytest.mark.nightly
def test_inserted_rows_get_defaults_of_lists_maps_and_structs(
    session: IcebergSession, table: Callable[..., SparkTable]
) -> None:
    t, spark = table(), session.spark
    whole = IntegerType()
    ints = ListType(element_id=1, element_type=whole)
    counts = MapType(key_id=1, key_type=StringType(), value_id=2, value_type=whole)
    point = StructType(
        tuple(
            NestedField(field_id=i, name=n, type=whole, initial_default=d, write_default=d)
            for i, n, d in ((1, "x", 3), (2, "y", None))
        )
    )
    t.update_schema().add_column("l", ints, default=[1, None]).add_column(
        "m", counts, default={"a": 1}
    ).add_column("p", point, default={}).add_column("none", ints, default=[]).commit()
    spark.sql(
        f"merge into {t.name} t using (select 10L id) s on t.id = s.id "
        "when not matched then insert (id) values (s.id)"
    )
    t.append(pa.table({"id": [11]}))
    actual = session.table(t.name).to_df().select("id", "l", "m", "p", "none").collect()
    # Old rows have the initial default, new rows the write default.
    assert sorted(r.id for r in actual) == list(range(12))
    assert {str(r[1:]) for r in actual} == {str(([1, None], {"a": 1}, Row(x=3, y=None), []))}
    filtered = session.table(t.name).to_df().where("l[0] = 1 and p.x = 3 and id >= 9")
    assert sorted(r.id for r in filtered.collect()) == [9, 10, 11]


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_null_structs_with_required_fields_are_rewritten(
    session: IcebergSession, file_format: str, mode: str
) -> None:
    """A null struct has no fields, whatever Arrow keeps for them."""
    name = f"rows.db.null_structs_{file_format}_{mode[0]}"
    modes = ", ".join(f"'write.{op}.mode'='{mode}'" for op in ("delete", "update", "merge"))
    session.spark.sql(
        f"create table {name} (id int, c struct<x: string not null>, "
        "l array<struct<d: struct<y: int not null> not null>>) tblproperties "
        f"('format-version'='2', 'write.format.default'='{file_format}', {modes})"
    )
    session.spark.sql(
        f"insert into {name} select id, if(id % 2 = 0, null, named_struct('x', 'a')), "
        "if(id = 4, null, array(null, named_struct('d', named_struct('y', id)))) from range(6)"
    )
    session.spark.sql(f"update {name} set id = id + 10 where id in (1, 2, 4)")
    session.spark.sql(f"delete from {name} where id in (0, 3)")
    session.spark.sql(
        f"merge into {name} t using (select 12 id union all select 20) s on t.id = s.id "
        "when matched then update set c = null "
        "when not matched then insert (id, c, l) values (s.id, null, array(null))"
    )
    rows = [tuple(r) for r in session.spark.table(name).orderBy("id").collect()]
    a = Row(x="a")
    assert rows == [
        *((5, a, [None, Row(d=Row(y=5))]), (11, a, [None, Row(d=Row(y=1))])),
        *((12, None, [None, Row(d=Row(y=2))]), (14, None, None), (20, None, [None])),
    ]


def test_rows_of_a_table_recreated_meanwhile_stay(
    session: IcebergSession, table: Callable[..., SparkTable]
) -> None:
    t = table()
    session.spark.sql(f"drop table {t.name}")
    session.spark.sql(f"create table {t.name} (id bigint, g int, s string)")
    session.table(t.name).append(rows(1))
    changes: tuple[Callable[[], object], ...] = (
        lambda: t.delete("id = 1"),
        lambda: t.merge_into(session.spark.range(3), "t.id = s.id").whenMatched().delete().merge(),
        lambda: t.write_equality_deletes(session.spark.range(3), ["id"]),
    )
    for change in changes:
        with pytest.raises(TableRecreatedError, match="load the table again"):
            change()
    assert contents(session.table(t.name)) == {1: "1"}


def test_a_change_reads_what_a_literal_in_its_subquery_can_meet(
    table: Callable[..., SparkTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    t = table()
    t.append(rows(100, 102))
    monkeypatch.setattr(key_range, "MIN_TABLE_BYTES", 0)
    job = Interrupted(monkeypatch, nothing)
    assert t.delete("id in (select 102)").deleted == 1
    assert [len(list(s.plan_files())) for s in job.targets[0].reads._reads[-1].scans] == [1]
