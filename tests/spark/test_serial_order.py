"""A change that is committed is as if it had run after what others have appended meanwhile.

With the isolation level `snapshot`, the append may also come after the change. A change that reads
nothing of what is appended is committed without running again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.row_level import execution
from iceberg_pyspark.spark.row_level.row_level_job import run_job
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.table.row_level.touched_rows import TouchedRows
from tests.amounts import FULL_WORK
from tests.support.native_lake import sqlite_lake

SCHEMA = pa.schema([("id", pa.int32()), ("k", pa.string()), ("f", pa.float64()), ("v", pa.int64())])
PREFIX = "a prefix that is longer than sixteen characters "
UPDATE = "when matched then update set v = s.v"
INSERT = "when not matched then insert (id, k, f, v) values (s.id, s.k, s.f, s.v)"
DELETE = "when matched then delete"
STATEMENTS = [
    f"merge into {{t}} t using {{s}} s on t.id = s.id {UPDATE} {INSERT}",
    f"merge into {{t}} t using {{s}} s on t.id = s.id and t.k <= s.k {DELETE} {INSERT}",
    f"merge into {{t}} t using {{s}} s on t.k = s.k {INSERT}",
    "merge into {t} t using {s} s on s.k = t.k when matched and t.v > 2 then delete",
    f"merge into {{t}} t using {{s}} s on t.id <=> s.id {UPDATE}",
    f"merge into {{t}} t using {{s}} s on t.id > s.id {DELETE} {INSERT}",
    f"merge into {{t}} t using {{s}} s on t.f = s.f {DELETE} {INSERT}",
    f"merge into {{t}} t using {{s}} s on t.id + 1 = s.id {UPDATE}",
    f"merge into {{t}} t using {{s}} s on t.id = cast(s.v as string) {DELETE}",
    f"merge into {{t}} t using {{s}} s on t.id = s.v or t.k = s.k {DELETE}",
    f"merge into {{t}} t using {{s}} s on t.id = s.id {UPDATE} "
    "when not matched by source and t.v > 1 then delete",
    "update {t} set v = -1 where id in (select id from {s}) and v < 8",
    "update {t} set v = (select max(v) from {s}) where f > 1",
    "delete from {t} where (id, k) in (select id, k from {s})",
    "delete from {t} where exists (select 1 from {s} s where s.k = {t}.k and s.v > {t}.v)",
    "delete from {t} where id not in (select id from {s} where id is not null)",
    "delete from {t} where id < 3 or k is null",
]
ROUNDS = 200 if FULL_WORK else len(STATEMENTS)

VALUES = "(select * from values (2, '2', 2D, 7L), (5, '5', 5D, 7L) as v(id, k, f, v))"
"""A source whose keys are not those of rows that are appended."""

PASSES = {
    "merge": f"merge into {{t}} t using {VALUES} s on t.id = s.id {UPDATE} {INSERT}",
    "insert": f"merge into {{t}} t using {VALUES} s on t.id = s.id {INSERT}",
    "text": f"merge into {{t}} t using {VALUES} s on s.k = t.k and t.f < s.v {DELETE}",
    "wider": f"merge into {{t}} t using {VALUES} s on s.v = t.id {INSERT}",
    "narrower": f"merge into {{t}} t using {VALUES} s on t.v = s.id {DELETE} {INSERT}",
    "local": f"merge into {{t}} t using local_rows s on t.id = s.id {UPDATE}",
    "cached": f"merge into {{t}} t using (select * from parquet.`{{files}}` "
    f"where length(uuid()) > 1) s on t.id = s.id {UPDATE}",
    "files": f"merge into {{t}} t using parquet.`{{files}}` s on t.id = s.id {UPDATE}",
    "no key": f"merge into {{t}} t using (select int(null) id, 'x' k, 1D f, 7L v) s on t.id = s.id "
    f"{INSERT}",
    "in": f"update {{t}} set v = 7 where id in (select id from {VALUES})",
    "exists": f"delete from {{t}} where exists (select 1 from {VALUES} s where s.k = {{t}}.k)",
    "deletes": "delete from {t} where id < 3 and f > 1",
}
"""Changes that the append of a row with the id 3, 4 or 100 cannot concern."""

RUNS_AGAIN = {
    "by source": f"merge into {{t}} t using {VALUES} s on t.id = s.id {UPDATE} "
    "when not matched by source and t.v > 5 then update set v = 5",
    "null": f"merge into {{t}} t using {VALUES} s on t.id <=> s.id {UPDATE}",
    "range": f"merge into {{t}} t using {VALUES} s on t.id > s.id and s.id > 2 {DELETE}",
    "or": f"merge into {{t}} t using {VALUES} s on t.id = s.id or t.k = s.k {UPDATE}",
    "float": f"merge into {{t}} t using {VALUES} s on t.f = s.f {UPDATE}",
    "expression": f"merge into {{t}} t using {VALUES} s on abs(t.id) = s.id {UPDATE}",
    "random": f"merge into {{t}} t using (select * from parquet.`{{files}}` "
    f"where length(uuid()) > 1) s on t.id = s.id {UPDATE}",
    "limit": f"merge into {{t}} t using (select * from {VALUES} where v > "
    f"(select min(v) - 1 from (select v from parquet.`{{files}}` limit 1))) s on t.id = s.id "
    f"{UPDATE}",
    "not in": f"delete from {{t}} where id not in (select id from {VALUES})",
    "deletes": "delete from {t} where f > 1",
}
"""Changes that the append may concern, or of which nobody knows."""


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("serial"), "serial") as lake:
        yield lake


@dataclass
class Race:
    """What happens between the first job of the next change and its commit."""

    jobs: int = 0
    between: Callable[[], object] | None = None


@pytest.fixture
def race(monkeypatch: pytest.MonkeyPatch) -> Race:
    race = Race()

    def raced(target: Target, *args: object, **kw: object) -> TouchedRows:
        race.jobs += 1
        done: TouchedRows = run_job(target, *args, **kw)  # type: ignore[arg-type]
        between, race.between = race.between, None
        if between is not None:
            between()
        return done

    monkeypatch.setattr(execution, "run_job", raced)
    return race


def random_rows(random: Random, ids: range, count: int) -> list[tuple[Any, ...]]:
    """Return rows whose id, text and float are unique, but for nulls."""
    return [
        (
            None if random.random() < 0.1 else i,
            None if random.random() < 0.1 else PREFIX + str(i),
            random.choice([None, math.nan, i / 2, -0.0 if i == 0 else float(i)]),
            random.randrange(10),
        )
        for i in random.sample(ids, count)
    ]


def literal_rows(rows: list[tuple[Any, ...]]) -> str:
    """Return rows as the text of a subquery."""

    def literal(value: Any) -> str:
        if value is None:
            return "null"
        return f"'{value}'" if isinstance(value, str) else f"double('{value}')"

    texts = ", ".join(
        f"(cast({literal(i)} as int), cast({literal(k)} as string), "
        f"cast({literal(f)} as double), {v}L)".replace("double('", "('")
        for i, k, f, v in rows
    )
    return f"(select * from values {texts} as v(id, k, f, v))"


def append(session: IcebergSession, table: str, rows: list[tuple[Any, ...]]) -> None:
    columns = dict(zip(SCHEMA.names, zip(*rows, strict=True), strict=True))
    session.table(table).append(pa.table(columns, SCHEMA))


def contents(session: IcebergSession, table: str) -> list[str]:
    rows = session.table(table).scan().to_arrow().to_pylist()
    return sorted(repr(tuple(row.values())) for row in rows)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_committed_change_comes_after_what_was_appended_meanwhile(
    session: IcebergSession, race: Race, seed: int
) -> None:
    random = Random(seed)
    statement = STATEMENTS[seed % len(STATEMENTS)]
    isolation = random.choice(["serializable", "serializable", "snapshot"])
    mode = random.choice(["merge-on-read", "copy-on-write"])
    partitioned = random.choice(["", "", "partitioned by (bucket(2, id))", "partitioned by (v)"])
    properties = ", ".join(
        f"'write.{of}.mode' = '{mode}', 'write.{of}.isolation-level' = '{isolation}'"
        for of in ("delete", "update", "merge")
    )
    old = random_rows(random, range(-1, 8), 6)
    far = random.choice([range(-1, 8), range(4, 12), range(100, 120)])
    new = random_rows(random, far, random.randrange(1, 4))
    source = literal_rows(random_rows(random, range(-1, 8), 3))

    def change(table: str) -> None:
        session.spark.sql(statement.format(t=table, s=source))

    def made(name: str) -> str:
        table = f"serial.db.{name}_{seed}"
        session.spark.sql(
            f"create table {table} (id int, k string, f double, v bigint) {partitioned} "
            f"tblproperties ({properties})"
        )
        append(session, table, old)
        return table

    raced = made("raced")
    race.between = lambda: append(session, raced, new)
    change(raced)
    if race.between is not None:
        # Nothing was to be changed, so there was nothing to commit.
        race.between()
    after = made("after")
    append(session, after, new)
    change(after)
    orders = [contents(session, after)]
    if isolation == "snapshot" or race.jobs == 0:
        before = made("before")
        change(before)
        append(session, before, new)
        orders.append(contents(session, before))
    assert contents(session, raced) in orders


def test_a_change_runs_again_only_if_what_was_appended_may_concern_it(
    session: IcebergSession, race: Race, tmp_path: Path
) -> None:
    spark, files = session.spark, tmp_path / "files"
    spark.sql(f"select * from {VALUES}").write.parquet(str(files))
    runs: dict[str, int] = {}

    def run(name: str, statement: str, mode: str, new: int) -> None:
        table, race.jobs = f"serial.db.{name.replace(' ', '_')}_{number}", 0
        modes = ", ".join(f"'write.{of}.mode' = '{mode}'" for of in ("delete", "update", "merge"))
        spark.sql(
            f"create table {table} (id int, k string, f double, v bigint) tblproperties ({modes})"
        )
        append(session, table, [(i, str(i), float(i), i) for i in (1, 2, 6)])
        race.between = lambda: append(session, table, [(new, str(new), float(new), new)])
        spark.sql(statement.format(t=table, files=files))
        runs[name] = race.jobs

    source = spark.createDataFrame([(2, "2", 2.0, 7)], "id int, k string, f double, v long")
    source.createOrReplaceTempView("local_rows")
    modes, news = ("merge-on-read", "copy-on-write"), (3, 4, 100)
    # A source whose rows may change is cached if it is read twice to rewrite files.
    mode_of = {"local": modes[1], "cached": modes[1], "random": modes[0], "limit": modes[0]}
    for number, (name, statement) in enumerate({**PASSES, **RUNS_AGAIN}.items()):
        run(name, statement, mode_of.get(name, modes[number % 2]), news[number % 3])
    assert runs == dict.fromkeys(PASSES, 1) | dict.fromkeys(RUNS_AGAIN, 2)
