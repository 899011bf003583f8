"""The metadata table `changes` through a catalog: read natively, and only the requested parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from tests.amounts import FULL_WORK
from tests.support.frames import append_rows
from tests.support.native_lake import plan_of, sqlite_lake
from tests.support.parameters import cases
from tests.support.rows import spark_rows

MODES = ("copy-on-write", "merge-on-read")
FORMATS = ("orc", "avro")


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("changing"), "changing") as lake:
        yield lake


def make(session: IcebergSession, mode: str) -> None:
    """Create snapshots: append twice, update, delete, append; `mode` may be a file format."""
    table, sql = table_name(mode), session.spark.sql
    kind = mode if mode in MODES else "copy-on-write"
    modes = ", ".join(f"'write.{op}.mode'='{kind}'" for op in ("delete", "update", "merge"))
    if mode in FORMATS:
        modes += f", 'write.format.default'='{mode}'"
    sql(
        f"create table {table} (id bigint, g int, s struct<a: int, b: string>) using iceberg "
        f"partitioned by (g) tblproperties ('format-version'='3', {modes})"
    )
    created = session.table(table)
    for start in (0, 10):
        rows = [{"id": i, "g": i % 2, "s": {"a": 1, "b": "x"}} for i in range(start, start + 10)]
        append_rows(created, rows)
    sql(f"update {table} set s = named_struct('a', 2, 'b', 'y') where id in (1, 12)")
    sql(f"delete from {table} where id in (2, 3, 12)")
    sql(f"alter table {table} add column v int")
    append_rows(created.refresh(), [{"id": 30, "g": 1, "v": 7}])


def table_of(session: IcebergSession, mode: str) -> str:
    """Return the name of the table of a mode, which the first test that needs it creates."""
    if not session.spark.catalog.tableExists(table_name(mode)):
        make(session, mode)
        portably(session, mode).cache().createOrReplaceTempView(f"portable_{short(mode)}")
    return table_name(mode)


def table_name(mode: str) -> str:
    return f"changing.db.{short(mode)}"


def short(mode: str) -> str:
    return mode.replace("-", "_")


def portably(session: IcebergSession, mode: str) -> DataFrame:
    location = session.table(table_name(mode)).location
    return session.spark.read.format("iceberg-py").load(f"{location}#changes")


BOTH = cases("mode", fast=["merge-on-read"], nightly=["copy-on-write"])


CONDITIONS = [
    "_change_ordinal > 1 and g = 1",
    "id > 11 or _change_ordinal = 0",
    "not (_change_type = 'INSERT') and id < 5",
    "s.a = 2",
]
if FULL_WORK:
    CONDITIONS += [
        "_change_type = 'DELETE'",
        "_change_ordinal in (0, 3)",
        "v is not null",
        "_change_type = 'no'",
    ]


@cases("mode", fast=["merge-on-read", "orc"], nightly=["copy-on-write", "avro"])
@cases("conditions", fast=[CONDITIONS], nightly=[["true"]])
def test_rows_as_the_portable_reader_has_them(
    session: IcebergSession, mode: str, conditions: list[str]
) -> None:
    table, columns = table_of(session, mode), ["_commit_snapshot_id", "g", "_change_type"]
    for number, condition in enumerate(conditions):
        ours = session.spark.table(f"{table}.changes").where(condition)
        rows = session.spark.table(f"portable_{short(mode)}").where(condition).collect()
        assert spark_rows(ours.collect()) == spark_rows(rows), condition
        if number > 1 and not FULL_WORK:
            continue
        assert ours.count() == len(rows)
        narrow = [tuple(row[name] for name in columns) for row in rows]
        assert spark_rows(ours.select(columns).collect()) == spark_rows(narrow), condition


@pytest.mark.nightly
@BOTH
def test_spark_reads_whole_files(session: IcebergSession, mode: str) -> None:
    changes = session.spark.table(f"{table_of(session, mode)}.changes")
    appended = changes.where("_change_ordinal < 2")
    assert "MapInArrow" not in plan_of(appended)
    assert "IcebergPyParquetScan" in plan_of(appended)
    groups = appended.groupBy("_change_ordinal", "_change_type").count()
    assert sorted(map(tuple, groups.collect())) == [(0, "INSERT", 10), (1, "INSERT", 10)]
    if mode == "copy-on-write":
        assert "MapInArrow" not in plan_of(changes)


@BOTH
def test_hidden_columns_say_which_row(session: IcebergSession, mode: str) -> None:
    hidden = [
        "_file",
        "_pos",
        "_spec_id",
        "_row_id",
        "_partition.g",
        "_last_updated_sequence_number",
    ]
    changes = session.spark.table(f"{table_of(session, mode)}.changes")
    rows = changes.where("id = 12").select("_change_ordinal", "_change_type", *hidden).collect()
    updated = [r for r in rows if r["_change_ordinal"] == 2]
    assert sorted(r["_change_type"] for r in updated) == ["DELETE", "INSERT"]
    assert len({r["_row_id"] for r in rows}) == 1
    assert {r["g"] for r in rows} == {0}
    assert len({(r["_file"], r["_pos"]) for r in updated}) == 2
    numbers = {r["_change_type"]: r["_last_updated_sequence_number"] for r in updated}
    assert numbers["DELETE"] < numbers["INSERT"]


@pytest.mark.nightly
@BOTH
def test_files_that_cannot_matter_are_not_read(
    session: IcebergSession, mode: str, tmp_path: Path
) -> None:
    table = table_of(session, mode)
    ids = [s.snapshot_id for s in session.table(table).snapshots]
    changes = session.spark.table(f"{table}.changes")
    files = {r["_file"] for r in changes.where("_change_ordinal = 0").select("_file").collect()}
    moved = [(Path(file), tmp_path / Path(file).name) for file in files]
    for file, elsewhere in moved:
        file.rename(elsewhere)
    try:
        for condition, count in (
            (f"_commit_snapshot_id = {ids[1]}", 10),
            ("_change_ordinal = 1 and _change_type = 'INSERT'", 10),
            ("id >= 15 and _change_ordinal < 2", 5),
            ("id = 30", 1),
        ):
            assert changes.where(condition).select("id").count() == count, condition
    finally:
        for file, elsewhere in moved:
            elsewhere.rename(file)
    some = session.spark.sql("select 1 g, 'x' name union all select 7, 'y'").where("name = 'x'")
    joined = changes.join(some, "g")
    assert joined.count() == portably(session, mode).where("g = 1").count()
