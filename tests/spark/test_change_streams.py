"""Streams of `t.changes`: what each kind of commit shows, where a stream begins, and its options.

Spark applies the rows of each batch to what the batches before it gave; expected rows are those of
the table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases
from tests.support.streams import read_available, rows_in

EXPIRE = (
    "call moving.system.expire_snapshots(table => '{t}', "
    "older_than => timestamp '2100-01-01 00:00:00', retain_last => 1)"
)
COMPACT = "call moving.system.rewrite_data_files('{t}', options => map('rewrite-all', 'true'))"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("moving"), "moving") as session:
        yield session


@pytest.fixture
def name(lake: IcebergSession, request: pytest.FixtureRequest) -> str:
    return "moving.db." + re.sub(r"\W", "_", request.node.name)[:60]


def create(spark: SparkSession, name: str, version: int, mode: str) -> None:
    """Create a table with the rows 0 to 7 in two files."""
    modes = ", ".join(f"'write.{c}.mode'='{mode}'" for c in ("delete", "update", "merge"))
    spark.sql(
        f"create table {name} (id bigint, v string) using iceberg "
        f"tblproperties ('format-version'='{version}', {modes})"
    )
    for ids in ("range(4)", "range(4, 8)"):
        spark.sql(f"insert into {name} select /*+ coalesce(1) */ id, concat('a', id) from {ids}")


@dataclass
class Follower:
    """Rows that are kept by the changes of a stream."""

    spark: SparkSession
    table: str
    checkpoint: Path
    options: dict[str, Any] = field(default_factory=dict)
    rows: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def stream(self) -> DataFrame:
        stream = self.spark.readStream.options(**self.options).table(f"{self.table}.changes")
        return stream.select("*", "_commit_sequence_number", "_commit_timestamp")

    def read(self) -> list[list[Any]]:
        """Apply what is new; return for each batch the types of its changes, in order."""
        run = read_available(self.stream(), self.checkpoint)
        for batch in run.batches:
            for *row, type_, _, _, _, _ in sorted(batch, key=lambda r: (r[-4], r[-5])):
                self.rows[tuple(row)] += 1 if type_ == "INSERT" else -1
        return [sorted(row[-5] for row in batch) for batch in run.batches]

    def check(self, changes: list[str], statement: str) -> None:
        """Run a statement, and assert that it changed rows in these ways."""
        self.spark.sql(statement.format(t=self.table))
        self.expect(changes)

    def expect(self, changes: list[str]) -> None:
        assert sorted(kind for batch in self.read() for kind in batch) == sorted(changes)
        rows = Counter(tuple(row) for row in self.spark.table(self.table).collect())
        assert {row: n for row, n in self.rows.items() if n} == rows


D, I = "DELETE", "INSERT"  # noqa: E741


@cases(
    ("version", "mode"),
    fast=[(3, "copy-on-write")],
    nightly=[(3, "merge-on-read"), (2, "copy-on-write"), (2, "merge-on-read")],
)
def test_a_stream_shows_what_each_commit_changed(
    spark: SparkSession, lake: IcebergSession, name: str, tmp_path: Path, version: int, mode: str
) -> None:
    create(spark, name, version, mode)
    follower = Follower(spark, name, tmp_path)
    follower.expect([I] * 8)
    follower.check([D, D], "delete from {t} where id in (1, 6)")
    follower.check([D, I], "update {t} set v = 'u' where id = 2")
    source = "values (3, 'm'), (20, 'm') as s(id, v)"
    follower.check(
        [D, I, I],
        f"merge into {{t}} t using ({source}) s on t.id = s.id "
        "when matched then update set * when not matched then insert *",
    )
    follower.check([], COMPACT)
    keys = spark.createDataFrame([(4,)], "id bigint")
    lake.table(name).write_equality_deletes(keys, ["id"])
    follower.expect([D])
    # 20 is written again as it was: since version 3 it is a new row, because it has a new row id
    again = [D, I] if version == 3 else []
    others = spark.table(name).count() - 1
    follower.check([*[D] * others, I, *again], "insert overwrite {t} values (20, 'm'), (30, 'o')")


@pytest.mark.nightly
def test_timestamps_rise_with_sequence_numbers_across_batches(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    create(spark, name, 3, "copy-on-write")
    follower = Follower(spark, name, tmp_path)
    commits: list[Any] = []
    for i in range(3):
        run = read_available(follower.stream(), tmp_path)
        for batch in run.batches:
            commits += sorted({row[-2:] for row in batch})
        spark.sql(f"update {name} set v = 'u{i}'")
    numbers, times = zip(*commits, strict=True)
    assert list(numbers) == [1, 2, 3, 4]
    assert sorted(set(times)) == list(times)
    rows = spark.sql(
        f"select distinct _commit_sequence_number, _commit_timestamp from {name}.changes "
        "where _commit_sequence_number <= 4 order by 1"
    )
    assert [tuple(row) for row in rows.collect()] == commits


@pytest.mark.nightly
def test_where_a_stream_of_changes_begins(spark: SparkSession, name: str, tmp_path: Path) -> None:
    create(spark, name, 2, "merge-on-read")
    spark.sql(f"delete from {name} where id < 2")
    snapshots = spark.sql(f"select snapshot_id, committed_at from {name}.snapshots order by 2")
    first, second, _ = (row[0] for row in snapshots.collect())
    spark.sql(f"alter table {name} create tag t as of version {second}")
    time = spark.sql(
        f"select unix_millis(committed_at) from {name}.snapshots where snapshot_id = {second}"
    ).collect()[0][0]
    for begin, options, kinds in (
        ("earliest", {}, [[D, D, *[I] * 8]]),
        ("current", {"stream-from-snapshot": "current"}, [[I] * 6]),
        ("latest", {"stream-from-snapshot": "latest"}, []),
        ("id", {"stream-from-snapshot": first}, [[D, D, *[I] * 4]]),
        ("tag", {"stream-from-snapshot": "t"}, [[D, D]]),
        ("time", {"stream-from-timestamp": time}, [[D, D, *[I] * 4]]),
        ("single", {"streaming-max-files-per-micro-batch": 1}, [[I] * 4, [I] * 4, [D, D]]),
        ("rows", {"streaming-max-rows-per-micro-batch": 5}, [[I] * 8, [D, D]]),
    ):
        follower = Follower(spark, name, tmp_path / begin, options)
        assert follower.read() == kinds, begin
        assert follower.read() == []
    spark.sql(f"alter table {name} create branch b")
    spark.sql(f"insert into {name}.branch_b values (100, 'b')")
    branch = {"branch": "b", "stream-from-snapshot": second}
    assert Follower(spark, name, tmp_path / "branch", branch).read() == [[D, D, I]]


@pytest.mark.nightly
def test_what_expired_cannot_be_read(spark: SparkSession, name: str, tmp_path: Path) -> None:
    create(spark, name, 2, "merge-on-read")
    follower = Follower(spark, name, tmp_path / "on")
    follower.read()
    late = Follower(spark, name, tmp_path / "late")
    late.read()
    spark.sql(f"insert into {name} values (50, 'x')")
    spark.sql(EXPIRE.format(t=name))
    follower.expect([I])  # what an append has added is known without the snapshot before it
    spark.sql(f"delete from {name} where id = 2")
    spark.sql(EXPIRE.format(t=name))
    head = spark.sql(f"select snapshot_id from {name}.snapshots").collect()[0][0]
    with pytest.raises(
        StreamingQueryException, match=rf"has expired.*stream-from-snapshot: {head}"
    ):
        follower.read()
    with pytest.raises(
        StreamingQueryException, match=rf"has expired.*stream-from-snapshot: {head}"
    ):
        late.read()
    with pytest.raises(StreamingQueryException, match=rf"expired.*from-snapshot: {head} for what"):
        Follower(spark, name, tmp_path / "new").read()
    current = Follower(spark, name, tmp_path / "new", {"stream-from-snapshot": "current"})
    current.expect([I] * 8)
    spark.sql(f"call moving.system.rollback_to_snapshot('{name}', {head})")
    spark.sql(f"insert into {name} values (51, 'x')")
    current.expect([I])
    spark.sql(f"call moving.system.rollback_to_snapshot('{name}', {head})")
    with pytest.raises(StreamingQueryException, match=rf"rolled back.*stream-from-snapshot={head}"):
        current.read()


@pytest.mark.nightly
def test_the_query_reads_only_its_columns_and_filters(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    create(spark, name, 2, "copy-on-write")
    spark.sql(f"update {name} set v = 'u' where id = 1")
    stream = spark.readStream.table(f"{name}.changes").select("id", "_change_type")
    assert rows_in(read_available(stream, tmp_path / "id").batches) == sorted(
        [*((i, I) for i in range(8)), (1, D), (1, I)]
    )
    deletes = stream.where("_change_type = 'DELETE'").select("id")
    assert read_available(deletes, tmp_path / "deletes").batches == [[(1,)]]
    counts = stream.groupBy("_change_type").count()
    run = read_available(counts, tmp_path / "counts", mode="complete")
    assert sorted(run.batches[-1]) == [(D, 1), (I, 9)]
    old = spark.readStream.table(f"{name}.changes")
    read_available(old, tmp_path / "schema")
    spark.sql(f"alter table {name} add column w int")
    spark.sql(f"alter table {name} rename column v to text")
    spark.sql(f"update {name} set w = 1 where id = 2")
    spark.sql(f"update {name} set text = 't' where id = 2")
    new = spark.readStream.table(f"{name}.changes").drop("_commit_snapshot_id", "_change_ordinal")
    assert sorted(chain(*read_available(new, tmp_path / "schema").batches), key=str) == [
        (2, "a2", 1, D),
        (2, "a2", 1, I),
        (2, "a2", None, D),
        (2, "t", 1, I),
    ]


@pytest.mark.nightly
def test_changes_of_the_format(spark: SparkSession, name: str, tmp_path: Path) -> None:
    create(spark, name, 2, "merge-on-read")
    spark.sql(f"delete from {name} where id = 1")
    stream = spark.readStream.format("iceberg-py").load(f"{name}.changes")
    run = read_available(stream.select("id", "_change_type"), tmp_path)
    assert rows_in(run.batches) == sorted([*((i, I) for i in range(8)), (1, D)])
    spark.sql(f"delete from {name} where id = 2")
    assert read_available(stream.select("id"), tmp_path).batches == [[(2,)]]


@pytest.mark.nightly
def test_options_without_a_meaning_for_changes_are_refused(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    create(spark, name, 2, "copy-on-write")
    for option in ("streaming-overwrite-mode", "streaming-skip-delete-snapshots"):
        value = "skip" if option.endswith("mode") else "true"
        follower = Follower(spark, name, tmp_path / option, {option: value})
        with pytest.raises(Exception, match=rf"{option} has no meaning for a stream of changes"):
            follower.read()
