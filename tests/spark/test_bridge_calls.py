"""How much a statement has the JVM do: calls, whose number does not grow with the number of
columns, and analyses of plans.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from py4j.clientserver import JavaClient
from py4j.java_gateway import GatewayClient, JavaObject
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.classic.dataframe import DataFrame

from iceberg_pyspark.spark.bridge.call_arguments import WrittenColumn
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import sqlite_lake

FEW, MANY = 3, 30
MERGE_ON_READ = ", ".join(
    f"'write.{op}.mode' = 'merge-on-read'" for op in ("delete", "update", "merge")
)


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("calls"), "calls") as lake:
        yield lake


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that records every later call to the JVM, except calls that release objects.

    Calls inside `mapInArrow` are left out too: it passes every column name to the JVM.
    """
    commands: list[str] = []
    for client in (GatewayClient, JavaClient):
        if "send_command" not in vars(client):
            continue

        def send(
            self: Any, command: str, *rest: Any, real: Callable[..., Any] = client.send_command
        ) -> Any:
            if not command.startswith("m\n"):
                commands.append(command)
            return real(self, command, *rest)

        monkeypatch.setattr(client, "send_command", send)
    map_in_arrow = DataFrame.mapInArrow

    def mapped(frame: DataFrame, *arguments: Any) -> Any:
        before = len(commands)
        result = map_in_arrow(frame, *arguments)
        del commands[before:]
        return result

    monkeypatch.setattr(DataFrame, "mapInArrow", mapped)
    return commands


def names(count: int) -> list[str]:
    return [f"c{i}" for i in range(count)]


def make(session: IcebergSession, count: int, name: str) -> str:
    """Create a table of ids 0 to 9 and zeros; `source` has ids 8 to 11 and other values."""
    spark, table = session.spark, f"calls.db.{name}_{count}"
    columns = ", ".join(f"{n} int default 5" for n in names(count))
    spark.sql(
        f"create table {table} (id bigint, {columns}) "
        f"tblproperties ('format-version' = '3', {MERGE_ON_READ})"
    )
    zeros = {name: pa.array([0] * 10, pa.int32()) for name in names(count)}
    session.table(table).append(pa.table({"id": pa.array(range(10), pa.int64()), **zeros}))
    values = ", ".join(f"cast(id + {i} as short) {n}" for i, n in enumerate(names(count)))
    spark.sql(f"select id, {values} from range(8, 12)").createOrReplaceTempView("source")
    return table


def merge(session: IcebergSession, table: str, count: int) -> None:
    assigned = ", ".join(f"{n} = t.{n} - 1" for n in names(count))
    session.spark.sql(
        f"merge into {table} t using source s on t.id = s.id "
        "when matched and s.c1 > 0 then update set * "
        "when not matched then insert * "
        f"when not matched by source and t.id < 2 then update set {assigned}"
    )


def merge_builder(session: IcebergSession, table: str, count: int) -> None:
    assigned = {n: f"t.{n} - 1" for n in names(count)}
    merging = session.table(table).merge_into(
        session.spark.table("source").alias("s"), "t.id = s.id"
    )
    merging = merging.whenMatched("s.c1 > 0").updateAll().whenNotMatched().insertAll()
    merging.whenNotMatchedBySource("id < 2").update(assigned).merge()


def update(session: IcebergSession, table: str, count: int) -> None:
    assigned = ", ".join(f"{n} = {n} - cast(1 as short)" for n in names(count))
    session.spark.sql(f"update {table} set {assigned} where id < 2")


def update_method(session: IcebergSession, table: str, count: int) -> None:
    session.table(table).update({n: f"{n} - cast(1 as short)" for n in names(count)}, "id < 2")


def insert_defaults(session: IcebergSession, table: str, count: int) -> None:
    del count
    session.spark.sql(
        f"merge into {table} t using source s on t.id = s.id when not matched then insert (id) "
        "values (s.id)"
    )


def insert(session: IcebergSession, table: str, count: int) -> None:
    del count
    session.spark.sql(f"insert into {table} select * from source where id > 9")


MERGED = [(0, -1), (1, -1), *((i, 0) for i in range(2, 8)), (8, 8), (9, 9), (10, 10), (11, 11)]
UPDATED = [(0, -1), (1, -1), *((i, 0) for i in range(2, 10))]
APPENDED = [*((i, 0) for i in range(10)), (10, 10), (11, 11)]
INSERTED = [*((i, 0) for i in range(10)), (10, 5), (11, 5)]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (merge, MERGED),
        (merge_builder, MERGED),
        (update, UPDATED),
        (update_method, UPDATED),
        (insert_defaults, INSERTED),
        (insert, APPENDED),
    ],
)
def test_calls_do_not_grow_with_columns(
    session: IcebergSession,
    calls: list[str],
    change: Callable[[IcebergSession, str, int], None],
    expected: Sequence[tuple[int, int]],
) -> None:
    took: dict[int, int] = {}
    for count in (FEW, MANY):
        # Run the statement once before counting: a first statement of a kind makes additional
        # calls.
        change(session, make(session, count, f"{change.__name__}_before"), count)
        table = make(session, count, change.__name__)
        gc.collect()
        calls.clear()
        change(session, table, count)
        took[count] = len(calls)
        rows = session.table(table).scan().to_arrow()
        first, last = (rows[name].to_pylist() for name in ("c0", f"c{count - 1}"))
        assert sorted(zip(rows["id"].to_pylist(), first, strict=True)) == list(expected)
        assert max(last) - max(first) in (0, count - 1)
    assert took[MANY] == took[FEW]


def test_steps_without_names_are_not_analysed(session: IcebergSession) -> None:
    spark = session.spark
    bridge, frame = Bridge(spark), spark.range(3).selectExpr("id", "id + 1 AS n")
    frame = frame.withMetadata("n", {"parquet.field.id": 1})
    assert spark._jvm is not None
    rules = spark._jvm.org.apache.spark.sql.catalyst.rules.RuleExecutor
    kept = [WrittenColumn(source="n", type='"decimal(20,0)"', name="m")]
    rules.resetMetrics()
    written = bridge.writes.rebalance(bridge.writes.written_columns(frame, kept), [], 1 << 20)
    assert "ResolveReferences" not in rules.dumpTimeSpent()
    [field] = written.schema.fields
    assert (field.name, field.nullable, field.metadata) == ("m", False, {})
    named = bridge.writes.rebalance(written, [sql.col("m")], 1 << 20)
    assert "ResolveReferences" in rules.dumpTimeSpent()
    assert sorted(int(m) for (m,) in named.collect()) == [1, 2, 3]


def test_long_answers_of_the_jvm_do_not_wait_for_confirmation(session: IcebergSession) -> None:
    """Without this setting, each text of more than 8 KB takes 40 ms."""

    def newest_does_not_wait(_: int) -> bool:
        gateway: Any = session.spark.sparkContext._gateway
        field = gateway.jvm.java.lang.Class.forName("py4j.GatewayServer").getDeclaredField(
            "connections"
        )
        field.setAccessible(True)
        connections = field.get(JavaObject("GATEWAY_SERVER", gateway._gateway_client))
        newest = connections.get(connections.size() - 1)
        return bool(newest.getSocket().getTcpNoDelay())

    with ThreadPoolExecutor(1) as other:
        assert list(other.map(newest_does_not_wait, [0])) == [True]


@pytest.mark.parametrize(
    ("query", "needs_none"),
    [
        ("select 1 id, 'a' v", True),
        ("select id + 1 id from values (1), (2) as s(id) where id > 1", True),
        ("select rand() id", False),
        ("select current_timestamp() t", False),
        ("select id from values (1), (2) as s(id) where id in (select 1)", False),
        ("select explode(array(1, 2)) id", False),
        ("select id from range(3)", False),
    ],
)
def test_rows_that_the_plan_has_are_not_cached(
    session: IcebergSession, query: str, needs_none: bool
) -> None:
    joins = Bridge(session.spark).joins
    assert joins.needs_no_cache(session.spark.sql(query)) is needs_none


@pytest.mark.parametrize(
    ("query", "is_one"),
    [
        ("select 1 id, 'a' v", True),
        ("select id + 1 id from (select 1 id) where id > 0", True),
        ("select rand() id", False),
        ("select 1 id union all select 2", False),
        ("select explode(array(1, 2)) id", False),
        ("select 1 id from range(3)", False),
        ("select id from (select 1 id) join range(3) using (id)", False),
    ],
)
def test_a_row_of_literals_is_known(session: IcebergSession, query: str, is_one: bool) -> None:
    assert Bridge(session.spark).joins.is_literal_row(session.spark.sql(query)) is is_one
