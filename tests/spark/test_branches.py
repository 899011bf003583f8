"""Every way to change rows of a branch: only the branch changes, and its own rows are read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from iceberg_pyspark.errors import NoSuchSnapshotError
from iceberg_pyspark.spark.row_level import execution
from iceberg_pyspark.spark.row_level.row_level_job import run_job
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spark.spark_table import SparkTable
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from iceberg_pyspark.table.row_level.touched_rows import TouchedRows
from tests.support.changed_rows import rows
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("branches"), "branches") as lake:
        yield lake


def branched(session: IcebergSession, name: str, mode: str) -> SparkTable:
    """Put ids 0 to 9 on main and branch b, partitioned by g = id % 2; then change main alone."""
    modes = ", ".join(f"'write.{op}.mode'='{mode}'" for op in ("delete", "update", "merge"))
    name = f"branches.db.{name}_{mode[0]}"
    session.spark.sql(
        f"create table {name} (id bigint, g int, s string) partitioned by (g) "
        f"tblproperties ('format-version'='3', {modes})"
    )
    table = session.table(name)
    table.append(rows(*range(10)))
    table.manage_snapshots().create_branch("b").commit()
    table.append(rows(100))
    table.delete("id = 1")
    return table


def contents(table: SparkTable) -> dict[int, str]:
    """Return {id: s} of branch b, read by SQL and without Spark; main must be unchanged."""
    spark = table.to_df().sparkSession
    main = table.refresh().scan(columns=["id"]).to_arrow()
    assert sorted(main["id"].to_pylist()) == [0, 2, 3, 4, 5, 6, 7, 8, 9, 100]
    rows = spark.table(f"{table.name}.branch_b").select("id", "s").collect()
    scan = table.scan(selector=SnapshotSelector(branch="b"), columns=["id", "s"])
    assert sorted(map(tuple, rows)) == sorted(
        tuple(r.values()) for r in scan.to_arrow().to_pylist()
    )
    return {r.id: r.s for r in rows}


@cases("mode", fast=["merge-on-read"], nightly=["copy-on-write"])
def test_a_tables_methods(session: IcebergSession, mode: str) -> None:
    t = branched(session, "methods", mode)
    expected = {i: str(i) for i in range(10)}
    assert t.delete("id in (1, 2, 100)", branch="b").deleted == 2
    done = t.update({"s": "concat(s, '!')"}, "id > 7", branch="b")
    assert done.updated == 2
    assert done.snapshot_id == t.refs["b"].snapshot_id
    source = session.spark.sql("select * from values (3L, 'three'), (100L, 'new') as v(id, s)")
    done = (
        t.merge_into(source, "t.id = s.id", branch="b", snapshot_properties={"who": "me"})
        .whenMatched()
        .update({"s": "s.s"})
        .whenNotMatched()
        .insert({"id": "s.id", "g": "0", "s": "s.s"})
        .merge()
    )
    assert (done.updated, done.inserted) == (1, 1)
    assert t.metadata.ref_snapshot("b").summary["who"] == "me"
    expected |= {3: "three", 8: "8!", 9: "9!", 100: "new"}
    for row_id in (1, 2):
        del expected[row_id]
    assert contents(t) == expected
    # Metadata alone deletes a whole partition; then an equality delete is applied by readers.
    assert t.delete("g = 1", branch="b").deleted == 4
    keys = session.spark.sql("select * from values (4L, 0), (100L, 0), (5L, 1) as v(id, g)")
    t.write_equality_deletes(keys, ["id", "g"], branch="b")
    assert contents(t) == {0: "0", 6: "6", 8: "8!"}
    with pytest.raises(NoSuchSnapshotError, match="'c'"):
        t.write_equality_deletes(keys, ["id", "g"], branch="c")


def test_statements_and_frames(session: IcebergSession) -> None:
    t, spark = branched(session, "statements", "merge-on-read"), session.spark
    name = f"{t.name}.branch_b"
    spark.sql(f"delete from {name} where id in (select id from range(3)) and g = 0")
    spark.sql(f"update {name} set s = (select max(s) from {name}) where id = 1")
    spark.sql(
        f"merge into {name} t using (select 3L id union all select 100L) u on t.id = u.id "
        "when matched then delete when not matched then insert (id, g, s) values (u.id, 0, 'new')"
    )
    source = spark.sql("select * from values (4L, 'four'), (20L, 'twenty') as v(id, s)").alias("u")
    source.mergeInto(name, sql.expr(f"{name}.id = u.id")).whenMatched().update(
        {"s": sql.col("u.s")}
    ).whenNotMatched().insert({"id": sql.col("u.id"), "s": sql.col("u.s")}).merge()
    expected = {i: str(i) for i in (5, 6, 7, 8, 9)}
    assert contents(t) == {**expected, 1: "9", 4: "four", 20: "twenty", 100: "new"}
    frame = spark.sql("select 30L id, 1 g, 'frame' s")
    frame.writeTo(name).overwrite(sql.col("g") == 1)
    assert contents(t) == {4: "four", 6: "6", 8: "8", 20: "twenty", 30: "frame", 100: "new"}
    frame.withColumn("g", sql.lit(0)).writeTo(t.name).option("branch", "b").overwritePartitions()
    frame.withColumn("id", sql.lit(31)).writeTo(name).append()
    rows = spark.table(name).select("id", "g").collect()
    assert sorted((r.id, r.g or 0) for r in rows) == [(20, 0), (30, 0), (30, 1), (31, 1)]
    spark.sql(f"insert overwrite {name} values (40L, 1, 'overwritten')")
    assert contents(t) == {40: "overwritten"}
    spark.sql(f"truncate table {name}")
    assert contents(t) == {}


@pytest.mark.nightly
def test_commits_to_main_do_not_conflict_with_a_branch(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = branched(session, "apart", "merge-on-read")
    jobs = []

    def interrupted(*args: object, **kw: object) -> TouchedRows:
        done: TouchedRows = run_job(*args, **kw)  # type: ignore[arg-type]
        jobs.append(done)
        if len(jobs) == 1:
            session.table(t.name).delete("id in (3, 5)")
            session.table(t.name).append(rows(3, 5))
        return done

    monkeypatch.setattr(execution, "run_job", interrupted)
    assert t.update({"s": "'x'"}, "id in (3, 5)", branch="b").updated == 2
    # The job for the branch ran once, and the job for the delete on main once: no retry.
    assert len(jobs) == 2
    assert contents(t) == {**{i: str(i) for i in range(10)}, 3: "x", 5: "x"}
