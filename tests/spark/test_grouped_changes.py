"""Changes of a table by a source with the same partitioning are joined without a shuffle.

Written rows are distributed by the table's partitions, which is a separate shuffle. If the source
is small and Spark broadcasts it, its keys become run-time filters of the target's scan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.row_level import key_range
from iceberg_pyspark.spark.session import IcebergSession
from tests.amounts import FULL_WORK
from tests.support.change_plans import noted_plans
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases
from tests.support.spark_settings import JOINS_OF_GROUPS, configured

GROUPING = "spark.sql.iceberg.planning.preserve-data-grouping"
MERGE = (
    "merge into {t} t using {s} u on {on} "
    "when matched then update set v = -u.v when not matched then insert *"
)
MODES = ["merge-on-read", "copy-on-write"]


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    folder = tmp_path_factory.mktemp("changed_groups")
    with sqlite_lake(spark, folder, "changed") as lake:
        yield lake


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return noted_plans(monkeypatch)


def shuffles_of_joins(plan: str) -> int:
    return len(re.findall("Exchange .*ENSURE_REQUIREMENTS", plan))


def make(session: IcebergSession, name: str, ids: range, clauses: str, mode: str) -> str:
    table = f"changed.db.{name}_{mode[0]}"
    modes = ", ".join(f"'write.{op}.mode'='{mode}'" for op in ("delete", "update", "merge"))
    session.spark.sql(
        f"create table {table} (id bigint, g int, s string, v bigint) {clauses} "
        f"tblproperties ({modes})"
    )
    rows = {
        "id": pa.array(ids, pa.int64()),
        "g": pa.array([i % 5 for i in ids], pa.int32()),
        "s": [f"s{i % 11}" for i in ids],
        "v": pa.array(ids, pa.int64()),
    }
    session.table(table).append(pa.table(rows))
    return table


def changed_plainly(
    session: IcebergSession, name: str, statement: str, source: str
) -> list[tuple[Any, ...]]:
    """Run the statement on an unpartitioned table and return the remaining rows."""
    table = make(session, f"{name}_plain", range(300), "", "merge-on-read")
    session.spark.sql(statement.format(t=table, s=source))
    return rows_of(session, table)


def rows_of(session: IcebergSession, table: str) -> list[tuple[Any, ...]]:
    rows = session.table(table).scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


@cases(
    ("partitioned", "on", "mode"),
    fast=[("bucket(4, id)", "t.id = u.id", "merge-on-read")],
    nightly=[
        ("g, bucket(3, id)", "t.g = u.g and t.id = u.id", "copy-on-write"),
        ("truncate(2, s)", "t.s = u.s and t.id = u.id", "merge-on-read"),
        ("bucket(4, id)", "t.id = u.id", "copy-on-write"),
        ("truncate(2, s)", "t.s = u.s and t.id = u.id", "copy-on-write"),
        ("g, bucket(3, id)", "t.g = u.g and t.id = u.id", "merge-on-read"),
    ],
)
def test_a_merge_of_tables_partitioned_alike(
    session: IcebergSession, plans: list[str], partitioned: str, on: str, mode: str
) -> None:
    name = "".join(c if c.isalnum() else "_" for c in partitioned)
    clauses = f"partitioned by ({partitioned})"
    source = make(session, f"from_{name}", range(100, 500), clauses, mode)
    statement = MERGE.replace("{on}", on)
    expected = changed_plainly(session, f"{name}{mode[0]}", statement, source)
    for grouping, shuffles in (("true", 0), ("false", 2)):
        target = make(session, f"{name}_{grouping}", range(300), clauses, mode)
        plans.clear()
        with configured(session.spark, {**JOINS_OF_GROUPS, GROUPING: grouping}):
            session.spark.sql(statement.format(t=target, s=source))
        assert len(plans) == (1 if mode == "merge-on-read" else 2)
        assert [shuffles_of_joins(p) for p in plans] == [shuffles for _ in plans], plans
        assert rows_of(session, target) == expected


OTHERS = [
    "merge into {t} t using (select id, v + 1 v from {s} where v % 3 = 0) u "
    "on t.id = u.id when matched and t.v % 2 = 0 then delete "
    "when matched then update set v = u.v when not matched by source then update set v = 0",
    "delete from {t} where id in (select id from {s})",
]
if FULL_WORK:
    OTHERS += [
        "merge into {t} t using {s} u on t.id = u.id when not matched then insert *",
        "update {t} set v = -1 where exists (select 1 from {s} u where u.id = {t}.id)",
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("mode", MODES)
def test_other_clauses_and_statements(session: IcebergSession, plans: list[str], mode: str) -> None:
    clauses = "partitioned by (bucket(4, id))"
    source = make(session, "from_others", range(100, 500), clauses, mode)
    for i, statement in enumerate(OTHERS):
        expected = changed_plainly(session, f"others_{mode[0]}_{i}", statement, source)
        target = make(session, f"others_{i}", range(300), clauses, mode)
        plans.clear()
        with configured(session.spark, JOINS_OF_GROUPS):
            session.spark.sql(statement.format(t=target, s=source))
        assert plans
        assert [shuffles_of_joins(p) for p in plans] == [0 for _ in plans], plans
        assert rows_of(session, target) == expected


@pytest.mark.nightly
@pytest.mark.parametrize("mode", MODES)
def test_from_python_and_from_a_cache(session: IcebergSession, plans: list[str], mode: str) -> None:
    clauses = "partitioned by (g)"
    source = make(session, "from_python", range(103, 105), clauses, mode)
    ranked = f"select *, row_number() over (partition by g order by id) n from {source}"
    statement = MERGE.replace("{on}", "t.g = u.g and t.id = u.id").replace(
        "insert *", "insert (id, g, s, v) values (u.id, u.g, u.s, u.v)"
    )
    expected = changed_plainly(session, f"python_{mode[0]}", statement, source)
    with configured(session.spark, JOINS_OF_GROUPS):
        target = make(session, "python", range(300), clauses, mode)
        merge = session.table(target).merge_into(
            session.spark.table(source).alias("u"), "t.id = u.id and t.g = u.g"
        )
        plans.clear()
        merge.whenMatched().update({"v": "-u.v"}).whenNotMatched().insertAll().merge()
        assert [shuffles_of_joins(p) for p in plans] == [0 for _ in plans], plans
        assert rows_of(session, target) == expected
        for name, rows in (("seen", ranked), ("kept", ranked)):
            target = make(session, name, range(300), clauses, mode)
            frame = session.spark.sql(rows)
            if name == "kept":
                frame.cache().count()
            frame.createOrReplaceTempView("from_frame")
            session.spark.sql(statement.format(t=target, s="from_frame"))
            frame.unpersist()
            assert rows_of(session, target) == expected


LATE = {
    "merge": "merge into {t} t using (select * from {s} where s = 's3') u "
    "on t.g = u.g and t.id = u.id when matched then update set v = -u.v",
    "delete": "delete from {t} where (g, id) in (select g, id from {s} where s = 's3')",
    "update": "update {t} set v = 0 where g in (select g from {s} where s = 's3')",
}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "mode"),
    [(n, m) for n in LATE for m in MODES],
)
def test_files_are_skipped_by_keys_that_a_running_query_finds(
    session: IcebergSession,
    plans: list[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    mode: str,
) -> None:
    # The keys of a small source would be collected before the query, so turn that off.
    monkeypatch.setattr(key_range, "MAX_SOURCE_BYTES", 0)
    # The source selects one row, in partition 3.
    source = make(session, f"late_{name}", range(10), "", mode)
    expected = changed_plainly(session, f"late_{name}_{mode[0]}", LATE[name], source)
    target = make(session, f"of_{name}", range(300), "partitioned by (g)", mode)
    before = rows_of(session, target)
    files = Path(session.table(target).location).rglob("*.parquet")
    hidden = [f for f in files if "g=3" not in str(f)]
    assert hidden
    for file in hidden:
        file.rename(file.with_suffix(".hidden"))
    plans.clear()
    session.spark.sql(LATE[name].format(t=target, s=source))
    for file in hidden:
        file.with_suffix(".hidden").rename(file)
    assert "dynamicpruning" in plans[0], plans[0]
    assert rows_of(session, target) == expected != before


@pytest.mark.nightly
def test_a_source_that_would_be_read_again_for_a_filter_makes_none(
    session: IcebergSession, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_range, "MAX_SOURCE_BYTES", 0)
    source = make(session, "read_again", range(10), "", "merge-on-read")
    expected = changed_plainly(session, "read_again", LATE["delete"], source)
    target = make(session, "of_again", range(300), "partitioned by (g)", "merge-on-read")
    late = "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly"
    plans.clear()
    with configured(session.spark, {late: "false"}):
        session.spark.sql(LATE["delete"].format(t=target, s=source))
    assert "dynamicpruning" not in plans[0]
    assert rows_of(session, target) == expected


SOURCES = {
    "select * from {files}": False,
    "select id, g, s, v + 1 as v from {files} where v > 0": False,
    "select * from {table}": False,
    "select id, g, s, of_python(v) as v from {files}": True,
    "select id, g, s, cast(rand() * 9 as bigint) as v from {files}": True,
    "select id, g, s, (select max(v) from {files}) as v from {files}": True,
    "select * from {files} limit 4": True,
    "select max(id) as id, g, max(s) as s, max(v) as v from {files} group by g": True,
    "select * from {texts}": True,
}
"""The sources of a merge, and whether a merge that rewrites files caches them."""


@pytest.mark.parametrize("source", SOURCES)
def test_columns_of_files_are_read_twice_rather_than_cached(
    session: IcebergSession, plans: list[str], tmp_path: Path, source: str
) -> None:
    name = f"twice{list(SOURCES).index(source)}"
    table = make(session, f"of_{name}", range(290, 310), "", "copy-on-write")
    rows = session.spark.table(table).coalesce(1)
    rows.write.parquet(str(tmp_path / "files"))
    rows.write.csv(str(tmp_path / "texts"))
    session.spark.read.schema(rows.schema).csv(str(tmp_path / "texts")).createOrReplaceTempView(
        "texts"
    )
    session.spark.udf.register("of_python", lambda v: v + 1, "bigint")
    files = f"parquet.`{tmp_path / 'files'}`"
    query = source.format(files=files, table=table, texts="texts")
    target = make(session, name, range(300), "", "copy-on-write")
    plans.clear()
    session.spark.sql(MERGE.format(t=target, s=f"({query})", on="t.id = u.id"))
    assert [SOURCES[source]] == list({"InMemoryTableScan" in p for p in plans}), plans
    assert {r[0] for r in rows_of(session, target)} >= set(range(300))
