"""Threads of one process query and change tables at once, and every result is correct.

Each thread has its own table, and its own rows in a table that all threads change. Half of the
threads share a session; each of the others has its own. A thread knows its rows, so it can check
every result. Changes of the shared table keep the sum of a column constant, in every snapshot.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from tests.amounts import FULL_WORK
from tests.support.native_lake import plan_of, sqlite_lake
from tests.support.table_integrity import table_problems

pytestmark = pytest.mark.nightly

THREADS = 16 if FULL_WORK else 8
PREFIX = "spark.sql.catalog.many"
SHARED = "many.db.shared"
# Of 50 operations, 32 are queries, 12 change the thread's own table and 6 the shared table.
KINDS = (
    *["select", "frame", "aggregate"] * 8,
    *["select_shared", "balance"] * 3,
    *["join"] * 2,
    *["insert"] * 4,
    *["delete"] * 4,
    *["update", "merge"] * 2,
    *["insert_shared"] * 3,
    *["update_shared", "delete_shared", "merge_shared"],
)
OPERATIONS = len(KINDS) if FULL_WORK else 6
"""The operations per thread; `make nightly` runs all, and most of the time is Spark's own."""


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("many"), "many") as session:
        yield session


class Worker:
    """The operations of one thread, and the rows that the thread expects."""

    def __init__(self, spark: SparkSession, number: int) -> None:
        self.spark = spark
        self.number = number
        self.random = random.Random(number)
        self.table = f"many.db.own_{number}"
        self.own: dict[int, int] = {}
        self.shared: dict[int, int] = {}
        self.native = False

    def run(self, together: threading.Barrier) -> None:
        mode = ("copy-on-write", "merge-on-read")[self.number % 2]
        self.spark.sql(
            f"create table {self.table} (k int, v int) tblproperties ('format-version'='3', "
            + ", ".join(f"'write.{op}.mode'='{mode}'" for op in ("delete", "update", "merge"))
            + ")"
        )
        self.insert()
        kinds = list(KINDS)
        self.random.shuffle(kinds)
        together.wait()
        for kind in kinds[:OPERATIONS]:
            getattr(self, kind)()
        self.select()
        self.frame()
        self.select_shared()

    def some(self, rows: dict[int, int]) -> list[int]:
        """Return random keys, most of which exist."""
        return sorted(
            {self.random.randrange(40), *self.random.sample(sorted(rows), len(rows) // 3)}
        )

    def select(self) -> None:
        low = self.random.randrange(20)
        result = self.spark.sql(f"select k, v from {self.table} where k >= {low}").collect()
        assert sorted(result) == sorted((k, v) for k, v in self.own.items() if k >= low)

    def frame(self) -> None:
        most = self.random.randrange(100)
        result = self.spark.table(self.table).filter(f"v < {most}").select("v", "k")
        self.native = self.native or "IcebergPyParquetScan" in plan_of(result)
        assert sorted(result.collect()) == sorted((v, k) for k, v in self.own.items() if v < most)

    def aggregate(self) -> None:
        result = self.spark.sql(f"select count(*), max(k), sum(v) from {self.table}").collect()
        values = self.own.values()
        assert result == [(len(self.own), max(self.own, default=None), sum(values) or None)]

    def join(self) -> None:
        result = self.spark.sql(
            f"select o.k, s.v from {self.table} o join {SHARED} s on o.k = s.k "
            f"where s.t = {self.number} and s.v > 0"
        ).collect()
        assert sorted(result) == sorted((k, self.shared[k]) for k in self.own if k in self.shared)

    def insert(self) -> None:
        free = [k for k in range(40) if k not in self.own]
        rows = {
            k: self.random.randrange(1, 100) for k in self.random.sample(free, min(5, len(free)))
        }
        values = ", ".join(f"({k}, {v})" for k, v in rows.items())
        if rows:
            self.spark.sql(f"insert into {self.table} values {values}")
        self.own |= rows

    def update(self) -> None:
        keys = self.some(self.own)
        self.spark.sql(f"update {self.table} set v = v + 1 where k in ({as_text(keys)})")
        self.own |= {k: self.own[k] + 1 for k in keys if k in self.own}

    def delete(self) -> None:
        key = self.random.randrange(40)
        self.spark.sql(f"delete from {self.table} where k = {key}")
        self.own.pop(key, None)

    def merge(self) -> None:
        keys = self.some(self.own)
        source = ", ".join(f"({k}, {k + 100})" for k in keys)
        self.spark.sql(
            f"merge into {self.table} t using (values {source} as s(k, v)) s on t.k = s.k "
            "when matched and t.v % 2 = 0 then delete "
            "when matched then update set v = t.v * 2 when not matched then insert *"
        )
        for k in keys:
            before = self.own.pop(k, None)
            if before is None:
                self.own[k] = k + 100
            elif before % 2:
                self.own[k] = before * 2

    def select_shared(self) -> None:
        result = self.spark.sql(f"select k, v from {SHARED} where t = {self.number}").collect()
        assert sorted(result) == sorted(
            (k, signed) for k, v in self.shared.items() for signed in (-v, v)
        )

    def balance(self) -> None:
        ((count, total),) = self.spark.table(SHARED).selectExpr("count(*)", "sum(v)").collect()
        assert count >= 2 * len(self.shared)
        assert total in (0, None)

    def insert_shared(self) -> None:
        key = self.random.choice([k for k in range(40) if k not in self.shared])
        value = self.random.randrange(1, 100)
        frame = self.spark.createDataFrame(
            [(self.number, key, value), (self.number, key, -value)], "t int, k int, v int"
        )
        frame.writeTo(SHARED).append()
        self.shared[key] = value

    def update_shared(self) -> None:
        self.spark.sql(f"update {SHARED} set v = 3 * v where t = {self.number}")
        self.shared = {k: 3 * v for k, v in self.shared.items()}

    def delete_shared(self) -> None:
        key = self.random.choice([*self.shared, 50])
        self.spark.sql(f"delete from {SHARED} where t = {self.number} and k = {key}")
        self.shared.pop(key, None)

    def merge_shared(self) -> None:
        self.spark.sql(
            f"merge into {SHARED} t using (values (60, 7), (60, -7) as s(k, v)) s "
            f"on t.t = {self.number} and t.k = s.k and t.v = s.v "
            f"when not matched then insert (t, k, v) values ({self.number}, s.k, s.v)"
        )
        self.shared[60] = 7


def as_text(keys: list[int]) -> str:
    return ", ".join(map(str, keys))


def session_of(spark: SparkSession, number: int) -> SparkSession:
    """Return the shared session, or a new one for the second half of the threads."""
    if number < THREADS // 2:
        return spark
    new_session = spark.newSession()
    # Compiling a query would take longer than running it.
    new_session.conf.set("spark.sql.codegen.wholeStage", "false")
    new_session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    for key, value in spark.conf.getAll.items():
        if key.startswith(PREFIX):
            new_session.conf.set(key, value)
    return new_session


def test_every_answer_is_right_while_others_change_tables(lake: IcebergSession) -> None:
    spark = lake.spark
    spark.sql(
        f"create table {SHARED} (t int, k int, v int) partitioned by (t) tblproperties "
        "('format-version'='3', 'write.distribution-mode'='none', "
        "'commit.retry.num-retries'='50', 'commit.retry.max-wait-ms'='500')"
    )
    workers = [Worker(session_of(spark, n), n) for n in range(THREADS)]
    together = threading.Barrier(THREADS, timeout=120)
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(w.run, together) for w in workers]:
            done.result()
    for worker in workers:
        assert worker.native
        assert dict(spark.table(worker.table).collect()) == worker.own
        assert table_problems(lake.table(worker.table)) == []
    assert sorted(spark.table(SHARED).collect()) == sorted(
        (w.number, k, signed) for w in workers for k, v in w.shared.items() for signed in (v, -v)
    )
    assert table_problems(lake.table(SHARED)) == []
