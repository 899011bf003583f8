"""SQL statements whose commit is interrupted on the driver leave either the old rows or the new
rows.

The fault matrix (tests/faults) interrupts every operation without Spark at every call. These tests
show that the steps that Spark's statements add around a commit remove nothing either.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.errors import NoSuchTableError
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.storage.files.local import LocalFileIO
from tests.support.fault_points import (
    ErrorKind,
    FaultPoint,
    fail_databases_and_clocks,
    faulty,
)
from tests.support.hooked_storage import Moment
from tests.support.native_lake import sqlite_lake
from tests.support.table_integrity import table_problems

Rows = list[tuple[int, str]] | None

OLD: Rows = [(1, "a"), (2, "b"), (3, "c")]
IMPATIENT = "'commit.status-check.min-wait-ms'='1', 'commit.status-check.max-wait-ms'='1'"
MERGE = (
    "merge into {t} t using (select * from values (2L, 'x'), (9L, 'y') as v(id, v)) s "
    "on t.id = s.id when matched then update set * when not matched then insert *"
)
STATEMENTS: dict[str, tuple[str, str, Rows]] = {
    "merge-on-read": (MERGE, "merge-on-read", [(1, "a"), (2, "x"), (3, "c"), (9, "y")]),
    "copy-on-write": (MERGE, "copy-on-write", [(1, "a"), (2, "x"), (3, "c"), (9, "y")]),
    "delete": ("delete from {t} where id = 2", "merge-on-read", [(1, "a"), (3, "c")]),
    "update": (
        "update {t} set v = 'z' where id = 3",
        "copy-on-write",
        [(1, "a"), (2, "b"), (3, "z")],
    ),
    "insert": ("insert into {t} values (4, 'd')", "merge-on-read", [*(OLD or []), (4, "d")]),
    "create": (
        f"create table {{t}}_new tblproperties ({IMPATIENT}) as select * from {{t}}",
        "merge-on-read",
        OLD,
    ),
    "replace": (
        "create or replace table {t} as select 5L as id, 'e' as v",
        "merge-on-read",
        [(5, "e")],
    ),
}
POINTS: list[tuple[str, Moment, ErrorKind]] = [
    ("storage.create_exclusive", "after", "memory"),
    ("database.commit", "before", "own"),
    ("database.commit", "after", "own"),
    ("database.commit", "after", "interrupt"),
    ("database.close", "after", "runtime"),
]


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("stopped"), "stopped") as lake_session:
        yield lake_session


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> FaultPoint:
    point = FaultPoint()
    fail_databases_and_clocks(monkeypatch, point)
    for name in ("open_output", "create_exclusive", "read_bytes", "exists", "delete"):
        monkeypatch.setattr(
            LocalFileIO, name, faulty("storage", getattr(LocalFileIO, name), name, point)
        )
    return point


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.nightly if n in ("copy-on-write", "delete") else ())
        for n in STATEMENTS
    ],
)
def test_a_statement_whose_commit_is_stopped(
    session: IcebergSession, faults: FaultPoint, name: str, tmp_path: Path
) -> None:
    statement, mode, new = STATEMENTS[name]
    outcomes: set[str] = set()
    for number, (call, moment, kind) in enumerate(POINTS):
        table = f"stopped.db.{name.replace('-', '_')}_{number}"
        result = f"{table}_new" if name == "create" else table
        old = None if name == "create" else OLD
        make(session, table, mode)
        if number == 0:
            twin = f"{table}_twin"
            make(session, twin, mode)
            with faults.armed(None, "before", "own"):
                session.spark.sql(statement.format(t=twin))
            names = faults.names
        # The commit's own call is the last one of that name before the calls that follow a commit.
        at = len(names) - names[::-1].index(call)
        error: BaseException | None = None
        with faults.armed(at, moment, kind):
            try:
                session.spark.sql(statement.format(t=table))
            except (Exception, KeyboardInterrupt) as e:  # noqa: BLE001 - what it is, is not judged
                error = e
        where = f"{faults.fired}, ended in {error!r}"
        actual = rows_of(session, result)
        assert actual in (old, new), where
        if error is None:
            assert actual == new, where
        outcomes.add("old" if actual == old else "new")
        session.table(table).append(rows((10, "j")))
    assert outcomes == {"old", "new"}


def rows(*values: tuple[int, str]) -> pa.Table:
    return pa.table({"id": [i for i, _ in values], "v": [v for _, v in values]})


def make(session: IcebergSession, table: str, mode: str) -> None:
    properties = ", ".join(
        f"'{key}' = '{value}'"
        for key, value in {
            "format-version": "3",
            "write.delete.mode": mode,
            "write.update.mode": mode,
            "write.merge.mode": mode,
        }.items()
    )
    session.spark.sql(
        f"create table {table} (id bigint, v string) using iceberg "
        f"tblproperties ({properties}, {IMPATIENT})"
    )
    session.table(table).append(rows(*OLD or ()))


def rows_of(session: IcebergSession, name: str) -> Rows:
    try:
        table = session.table(name)
    except NoSuchTableError:
        return None
    assert table_problems(table) == []
    return sorted(tuple(r.values()) for r in table.scan().to_arrow().to_pylist())
