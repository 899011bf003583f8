"""Values of structs, lists and maps in UPDATE and MERGE: fields by name, and required fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as sql

from iceberg_pyspark.errors import IcebergError, InvalidRequestError
from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import sqlite_lake
from tests.support.nested_changes import COLUMNS, PAIRS, ROWS, source, statements

PAIR = Row(p=3, q=4.5)
STORED = (PAIR, [PAIR], {"b": PAIR}, Row(r=6, i=PAIR))
FIRST = Row(p=1, q=2.0)
OF_ROW = {
    1: (FIRST, [FIRST], {"a": FIRST}, Row(r=3, i=FIRST)),
    2: (None, None, None, None),
}
REQUIRED = "id int not null, c struct<a: int not null, b: string>, v int"
UNSAFE = "INCOMPATIBLE_DATA_FOR_TABLE"


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("nested"), "nested") as lake_session:
        yield lake_session


def make(
    session: IcebergSession, columns: str = COLUMNS, rows: str = ROWS, mode: str = "copy-on-write"
) -> str:
    """Create or replace the table of the tests, with rows; return its name."""
    name = "nested.db.t"
    session.spark.sql(
        f"create or replace table {name} ({columns}) using iceberg tblproperties "
        f"('write.update.mode' = '{mode}', 'write.merge.mode' = '{mode}')"
    )
    session.spark.sql(f"insert into {name} values {rows}")
    return name


def contents(session: IcebergSession, name: str) -> dict[int, tuple[object, ...]]:
    return {row.id: tuple(row)[1:] for row in session.spark.table(name).collect()}


@pytest.mark.parametrize(
    ("kind", "mode"), [("turned", "copy-on-write"), ("in another case", "merge-on-read")]
)
def test_statements_store_fields_by_name(session: IcebergSession, kind: str, mode: str) -> None:
    expected = {
        "update": dict.fromkeys((1, 2), STORED),
        "update of a field": {**OF_ROW, 1: (*OF_ROW[1][:3], Row(r=3, i=PAIR))},
        "update set": dict.fromkeys((1, 2), STORED),
        "insert": {**OF_ROW, 9: STORED},
        "update set *, insert *": dict.fromkeys((1, 2, 9), STORED),
        "by source": {**OF_ROW, 2: (PAIR, None, None, None)},
    }
    texts = statements(PAIRS[kind])
    for what, rows in expected.items():
        name = make(session, mode=mode)
        session.spark.sql(texts[what].replace("{t}", name))
        assert contents(session, name) == rows, what


@pytest.mark.nightly
def test_a_cached_table(session: IcebergSession) -> None:
    name, spark = make(session), session.spark
    spark.sql(f"cache table {name}")
    spark.sql(statements(PAIRS["turned"])["update"].replace("{t}", name))
    assert contents(session, name) == dict.fromkeys((1, 2), STORED)
    spark.sql(statements(PAIRS["turned"])["update set *, insert *"].replace("{t}", name))
    assert contents(session, name) == dict.fromkeys((1, 2, 9), STORED)
    spark.sql(f"uncache table {name}")


def test_calls_store_fields_by_name(session: IcebergSession) -> None:
    name = make(session)
    pairs = session.spark.sql(source(PAIRS["turned"])).alias("u")
    merge = pairs.mergeInto(name, sql.expr("t.id = u.id"))
    merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
    assert contents(session, name) == dict.fromkeys((1, 2, 9), STORED)
    table = session.table(make(session))
    table.merge_into(
        pairs, "t.id = u.id"
    ).whenMatched().updateAll().whenNotMatched().insertAll().merge()
    assert contents(session, name) == dict.fromkeys((1, 2, 9), STORED)
    table = session.table(make(session))
    table.update({"S": PAIRS["turned"], "n.I": PAIRS["turned"]}, "id = 1")
    changed = (PAIR, *OF_ROW[1][1:3], Row(r=3, i=PAIR))
    assert contents(session, name) == {**OF_ROW, 1: changed}


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing a field", "Cannot find data for the output column `s`.`p`"),
        ("with an unknown field", "Cannot write extra fields `z` to the struct `s`"),
        ("of another type", 'Cannot safely cast `s`.`p` "STRING" to "INT"'),
    ],
)
def test_other_fields_are_refused(session: IcebergSession, kind: str, message: str) -> None:
    name = make(session)
    for what, text in statements(PAIRS[kind]).items():
        if what in ("update of a field", "evolving"):
            continue
        with pytest.raises(AnalysisException) as refused:
            session.spark.sql(text.replace("{t}", name))
        assert message in str(refused.value)
        assert str(refused.value.getCondition()).startswith(UNSAFE)
    table = session.table(name)
    for condition in ("id = 1", "id = 100"):
        with pytest.raises(InvalidRequestError, match=f"{UNSAFE}.* table db.t: ") as refused_call:
            table.update({"s": PAIRS[kind]}, condition)
        assert message in str(refused_call.value)
    with pytest.raises(InvalidRequestError, match=r"assigns to s\.p, .* gets whole columns"):
        table.merge_into(session.spark.range(9, 10), "t.id = s.id").whenNotMatched().insert(
            {"s.p": "1"}
        ).merge()
    assert contents(session, name) == OF_ROW


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_other_fields_are_refused_by_a_table_without_rows(
    session: IcebergSession, mode: str
) -> None:
    name = "nested.db.without_rows"
    session.spark.sql(
        f"create or replace table {name} ({COLUMNS}) using iceberg tblproperties "
        f"('write.update.mode' = '{mode}')"
    )
    with pytest.raises(InvalidRequestError, match=UNSAFE):
        session.table(name).update({"s": PAIRS["missing a field"]})


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_nulls_in_required_fields(session: IcebergSession, mode: str) -> None:
    rows = "(1, named_struct('a', 1, 'b', 'x'), null), (2, named_struct('a', 2, 'b', null), 2)"
    name = make(session, REQUIRED, rows, mode)
    session.spark.sql(f"update {name} set c.b = 'y' where id = 1")
    table = session.table(name)
    table.update({"c.b": "'z'"}, "id = 2")
    assert [row.c for row in session.spark.table(name).orderBy("id").collect()] == [
        Row(a=1, b="y"),
        Row(a=2, b="z"),
    ]
    for text in ("c.a = v", "c.a = null", "c = named_struct('b', 'y', 'a', v)", "id = v"):
        with pytest.raises(PySparkException, match="NOT_NULL_ASSERT_VIOLATION"):
            session.spark.sql(f"update {name} set {text} where id = 1")
        column, _, value = text.partition(" = ")
        with pytest.raises(PySparkException, match="NOT_NULL_ASSERT_VIOLATION"):
            table.update({column: value}, "id = 1")


FAILING = [
    "update {t} set c.b = 'y', c = null",
    "update {t} set c = named_struct('a', v, 'b', 'y')",
    "update {t} set c = named_struct('a', 1)",
    "update {t} set c.a = null",
    "update {t} set id = v",
    "update {t} set v = 1, v = 2",
    "update {t} set v = 'x'",
    "update {t} set v = int('x')",
    "update {t} set v = 3000000000L",
    "update {t} set v = 1 / (id - 1)",
    "update {t} set v = int(raise_error('no'))",
    "update {t} set v = int(assert_true(id > 5))",
    "update {t} set v = array(1)[id]",
    "update {t} set none = 1",
    "update {t} set v = none",
    "update {t} set v = sum(id)",
    "update {t} set v = (select id from {t} union all select 1)",
    "update {t} set v = 1 where rand() < 2",
    "update {t} set v = 1 where int(c.b) = 1",
    "delete from {t} where int(c.b) = 1",
    "delete from {t} where c.none = 1",
    "merge into {t} t using {t} u on t.v <=> u.v or true when matched then update set v = 1",
    "merge into {t} t using {t} u on int(t.c.b) = u.id when matched then delete",
    "merge into {t} t using {t} u on t.id = u.id when matched then update set t.c.a = u.v",
    "merge into {t} t using {t} u on t.id = u.id when matched and 1 / (t.id - 1) > 0 then delete",
    "merge into {t} t using {t} u on t.id = u.id when matched then update set v = 1 / (u.id - 1)",
    "merge into {t} t using {t} u on false when not matched then insert (v) values (u.id)",
    "merge into {t} t using {t} u on false when not matched then insert (id) values (u.v)",
    "merge into {t} t using {t} u on t.id = u.none when matched then delete",
    "merge into {t} t using {t} u on t.id = 7 when not matched by source then update set id = v",
    "merge into {t} t using {t} u on t.id = 7 when not matched by source then update set c.b = u.v",
]


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_no_message_shows_a_name_of_ours(session: IcebergSession, mode: str) -> None:
    """Messages name columns and expressions of the statement alone."""
    rows = "(1, named_struct('a', 1, 'b', 'x'), null), (2, named_struct('a', 2, 'b', null), 2)"
    name = make(session, REQUIRED, rows, mode)
    table = session.table(name)
    actions: dict[str, Callable[[], object]] = {
        text: partial(session.spark.sql, text.replace("{t}", name)) for text in FAILING
    }
    for values in ({"c.a": "v"}, {"v": "1 / (id - 1)"}, {"v": "none"}, {"v": "int(c.b)"}):
        actions[str(values)] = partial(table.update, values, "id = 1")
    for what, act in actions.items():
        with pytest.raises((PySparkException, Py4JJavaError, IcebergError)) as failed:
            act()
        message = str(failed.value)
        assert "__ice" not in message, (what, message)
