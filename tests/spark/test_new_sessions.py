"""Sessions that Spark derives from a session with Iceberg: what they inherit, and for how long."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import install, load_catalog
from iceberg_pyspark.redaction import SPARK_KEYS_REGEX
from iceberg_pyspark.spark import session as session_module
from iceberg_pyspark.spark.bridge.features import NEW_SESSIONS
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.requests.sessions import MAX_RECENT_SESSIONS
from iceberg_pyspark.spark.session import IcebergSession
from tests.amounts import FULL_WORK
from tests.support.native_lake import plan_of, sqlite_conf, sqlite_lake
from tests.support.parameters import cases
from tests.support.spark_sessions import run_python, session_conf
from tests.support.threads import at_once

PREFIX = "spark.sql.catalog.made"
REDACTION = "spark.sql.redaction.options.regex"
THREADS = 16


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("made"), "made") as session:
        spark.sql("create table made.db.t (id bigint)")
        spark.sql("insert into made.db.t select id from range(10)")
        yield session


def configured(session: SparkSession, like: SparkSession) -> SparkSession:
    for key in ("", ".type", ".uri", ".warehouse"):
        session.conf.set(PREFIX + key, str(like.conf.get(PREFIX + key)))
    return session


def clone(spark: SparkSession) -> SparkSession:
    """Return a cloned session, as Spark creates for streams."""
    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())


def by_the_jvm(spark: SparkSession) -> SparkSession:
    """Return a new session created by the JVM alone, as a JVM library would create it."""
    return SparkSession(spark.sparkContext, spark._jsparkSession.newSession())


WAYS = {"newSession": SparkSession.newSession, "by the JVM": by_the_jvm, "clone": clone}


def rules(spark: SparkSession) -> int:
    """Return how many times the session's optimizer has our rule."""
    result = spark._jsparkSession.experimental().extraOptimizations()
    return sum(
        "IcebergPyRule" in result.apply(i).getClass().getName() for i in range(result.size())
    )


def is_native(spark: SparkSession, path: str) -> bool:
    return "IcebergPyParquetScan" in plan_of(spark.read.format("iceberg-py").load(path))


@cases("way", fast=["clone"], nightly=[way for way in WAYS if way != "clone"])
def test_the_first_thing_of_a_session_may_be_anything(lake: IcebergSession, way: str) -> None:
    def create_session() -> SparkSession:
        return configured(WAYS[way](lake.spark), lake.spark)

    path = lake.table("made.db.t").location
    assert is_native(create_session(), path)
    assert create_session().sql("select count(*) from made.db.t").collect() == [(10,)]
    create_session().sql(
        f"alter table made.db.t create branch of_{way.replace(' ', '_')}_{time.time_ns()}"
    )
    first = create_session()
    assert first.sql("select 1").collect() == [(1,)]
    assert rules(first) == 1
    assert "newSession" not in vars(first)
    assert "newSession" not in vars(lake.spark)
    assert is_native(WAYS[way](first), path)


def has_state(spark: SparkSession) -> bool:
    """Return whether Spark has built the session's state: catalogs, parser, analyzer and others."""
    field = spark._jsparkSession.getClass().getDeclaredField("sessionState")
    field.setAccessible(True)
    return field.get(spark._jsparkSession) is not None


def test_a_session_that_is_not_built_yet_is_built_with_iceberg(lake: IcebergSession) -> None:
    plain = lake.spark.newSession()
    install(plain).uninstall()
    for first in ("parser", "plan", "settings"):
        created = by_the_jvm(plain)
        session = install(created)
        assert not has_state(created)
        assert install(created) is session
        if first == "settings":
            created.conf.set(REDACTION, "of_mine")
        configured(created, lake.spark)
        if first == "parser":
            name = f"built_{time.time_ns()}"
            created.sql(f"alter table made.db.t create branch {name}")
        assert created.sql("select count(*) from made.db.t").collect() == [(10,)]
        hidden = str(created.conf.get(REDACTION))
        assert SPARK_KEYS_REGEX in hidden
        assert ("of_mine" in hidden) == (first == "settings")
        assert rules(created) == 1
        session.uninstall()
        assert rules(created) == 0
    unused = by_the_jvm(plain)
    install(unused).uninstall()
    with pytest.raises(PySparkException):
        unused.sql("alter table made.db.t create branch no_parser")
    assert rules(unused) == 0


@pytest.mark.nightly
@pytest.mark.parametrize("way", WAYS)
def test_secrets_are_hidden_where_nobody_installed(lake: IcebergSession, way: str) -> None:
    created = WAYS[way](lake.spark)
    if way != "clone":
        created.conf.set(REDACTION, "of_mine")
    created.conf.set("spark.sql.catalog.other.jdbc.password", "pass word")
    ((_, shown),) = created.sql("set spark.sql.catalog.other.jdbc.password").collect()
    assert "pass word" not in shown
    hidden = str(created.conf.get(REDACTION))
    assert SPARK_KEYS_REGEX in hidden
    assert ("of_mine" in hidden) == (way != "clone")


@pytest.mark.nightly
def test_a_session_without_iceberg_makes_such_sessions(lake: IcebergSession) -> None:
    path = lake.table("made.db.t").location
    parent = lake.spark.newSession()
    install(parent)
    install(parent).uninstall()
    for way in WAYS.values():
        assert not is_native(way(parent), path)
        with pytest.raises(PySparkException):
            way(parent).sql("alter table made.db.t create branch no_parser")
    again = install(parent)
    assert is_native(parent.newSession(), path)
    again.uninstall()
    assert is_native(lake.spark.newSession(), path)


@pytest.mark.nightly
def test_the_first_statement_of_a_session_from_before_may_be_an_update(
    lake: IcebergSession,
) -> None:
    """Before Spark 4.2 it is analysed before Iceberg is installed, and never stored by position."""
    parent = lake.spark.newSession()
    install(parent).uninstall()
    lake.spark.sql("create or replace table made.db.u (id int, s struct<a: int, b: int>)")
    lake.spark.sql("insert into made.db.u values (1, null)")
    flat, nested = (configured(parent.newSession(), lake.spark) for _ in range(2))
    flat.sql("update made.db.t set id = id where id = 1")
    text = "update made.db.u set s = named_struct('b', 2, 'a', 1)"
    if lake.spark.version < "4.2":
        with pytest.raises(PySparkException, match=r"before Iceberg was installed.* run it again"):
            nested.sql(text)
    nested.sql(text)
    assert [row.s for row in lake.spark.table("made.db.u").collect()] == [(1, 2)]
    for session in (flat, nested):
        install(session).uninstall()


def test_a_catalog_that_no_statement_has_used_is_of_its_session(
    lake: IcebergSession, tmp_path: Path
) -> None:
    """The catalog has settings in the new session only, and another session is active."""
    settings = {"type": "hadoop", "warehouse": str(tmp_path)}
    catalog = load_catalog("own", **settings)
    catalog.create_namespace("db")
    catalog.create_table("db.t", "id BIGINT")
    new_session = lake.spark.newSession()
    new_session.conf.set("spark.sql.catalog.own", "iceberg_pyspark")
    for key, value in settings.items():
        new_session.conf.set(f"spark.sql.catalog.own.{key}", value)
    installed = install(new_session)
    lake.spark.sql("select 1").collect()
    assert installed.table("own.db.t").to_df().columns == ["id"]
    with pytest.raises(PySparkException, match="own"):
        lake.spark.sql("select * from own.db.t")
    installed.uninstall()


def test_installing_again_puts_nothing_in_twice(lake: IcebergSession) -> None:
    parent = configured(lake.spark.newSession(), lake.spark)
    for _ in range(3):
        install(parent).uninstall()
        install(parent)
        install(parent)
    new_session = parent.newSession()
    assert new_session.sql("select 1").count() == 1
    assert rules(parent) == rules(new_session) == 1
    parser = new_session._jsparkSession.sessionState().sqlParser()
    assert parser.getClass().getSimpleName() == "IcebergPyParser"
    # The parser that ours delegates to is Spark's.
    hidden = list(parser.getClass().getSuperclass().getDeclaredFields())
    hidden[0].setAccessible(True)
    assert hidden[0].get(parser).getClass().getName().startswith("org.apache.spark.")
    install(parent).uninstall()


def test_child_session_keeps_iceberg_after_its_parent_uninstalls(lake: IcebergSession) -> None:
    parent = configured(lake.spark.newSession(), lake.spark)
    installed = install(parent)
    child = configured(parent.newSession(), parent)
    assert child.table("made.db.t").count() == 10
    installed.uninstall()
    assert child.table("made.db.t").count() == 10
    with pytest.raises(PySparkException, match=r"call iceberg_pyspark\.install"):
        parent.table("made.db.t")
    install(child).uninstall()


def test_new_session_gets_iceberg_with_its_first_catalog(
    lake: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = lake.spark.newSession()
    install(parent).uninstall()
    has = Bridge.has
    monkeypatch.setattr(Bridge, "has", lambda self, f: f != NEW_SESSIONS and has(self, f))
    install(parent)
    plain = parent.newSession()
    assert plain.sql("select 1").count() == 1
    assert rules(plain) == 0
    new_session = configured(parent.newSession(), lake.spark)
    assert new_session.table("made.db.t").count() == 10
    install(parent).uninstall()


def handle_of(session: IcebergSession) -> str:
    assert session.bridge is not None
    return session.bridge.session_handle


@pytest.mark.nightly
def test_threads_that_install_at_once(lake: IcebergSession) -> None:
    one = lake.spark.newSession()
    same = at_once(THREADS, lambda _: install(one))
    assert len({id(session) for session in same}) == 1
    assert one.sql("select 1").collect() == [(1,)]
    assert rules(one) == 1
    own = [configured(lake.spark.newSession(), lake.spark) for _ in range(THREADS)]
    actual = at_once(THREADS, lambda n: install(own[n]))
    assert len({handle_of(session) for session in actual}) == THREADS
    assert at_once(THREADS, lambda n: own[n].table("made.db.t").count()) == [10] * THREADS
    assert [rules(session) for session in own] == [1] * THREADS
    for session in (*actual, same[0]):
        session.uninstall()


@pytest.mark.nightly
def test_sessions_that_are_dropped_are_not_kept(
    lake: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tests/unit/spark/test_sessions.py has when dropped sessions are looked for."""
    sessions = session_module._sessions
    before = len(sessions)
    for number in range(120 if FULL_WORK else 30):
        new_session = configured(lake.spark.newSession(), lake.spark)
        install(new_session)
        if number % 10 == 0:
            assert new_session.table("made.db.t").count() == 10
        del new_session
    # What stays are the most recent sessions, and what the JVM has not collected yet.
    most = before + MAX_RECENT_SESSIONS + 6
    turns = 0
    while len(sessions) >= most:
        turns += 1
        assert turns < 8, "the sessions are kept"
        collect(lake.spark)
        monkeypatch.setattr(sessions, "_next_look", 0)
        install(lake.spark.newSession())
    assert lake.spark.table("made.db.t").count() == 10


def collect(spark: SparkSession) -> None:
    """Run both garbage collectors; py4j needs a moment to tell the JVM about released objects."""
    assert spark._jvm is not None
    gc.collect()
    time.sleep(0.2)
    spark._jvm.java.lang.System.gc()


RESTARTED = """
import gc, json, sys
from pyspark.sql import SparkSession
from iceberg_pyspark import install, load_catalog
from iceberg_pyspark.spark import session as session_module
from iceberg_pyspark.spark.bridge import jvm

conf = json.loads(sys.argv[1])
found = []
for turn in range(3):
    builder = SparkSession.builder.master("local[1]").appName(f"turn {turn}")
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    session = install(spark)
    assert session.is_native
    if turn == 0:
        spark.sql("create namespace lake.db")
        spark.sql("create table lake.db.t (id bigint)")
    others = [spark.newSession() for _ in range(3)]
    for number, other in enumerate(others):
        other.sql(f"insert into lake.db.t values ({turn * 3 + number})")
    rows = sorted(row.id for row in spark.table("lake.db.t").collect())
    assert rows == list(range(turn * 3 + 3)), rows
    frame = spark.table("lake.db.t")
    assert "IcebergPyParquetScan" in frame._jdf.queryExecution().executedPlan().toString()
    if turn == 1:
        session.uninstall()
        session = install(spark)
    found.append((len(session_module._sessions), len(jvm._callbacks), len(jvm._missing_features)))
    ports = [port.number for port, _client in jvm._callbacks.values()]
    spark.stop()
print(json.dumps([found, ports]))
"""


@pytest.mark.nightly
@pytest.mark.parametrize("pinned", ["true", "false"])
def test_contexts_that_are_stopped_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pinned: str
) -> None:
    monkeypatch.setenv("PYSPARK_PIN_THREAD", pinned)
    conf = {
        **session_conf(tmp_path),
        **sqlite_conf("lake", tmp_path, tmp_path / "lake"),
    }
    script = tmp_path / "driver.py"
    script.write_text(RESTARTED, encoding="utf-8")
    actual, ports = json.loads(run_python(script, json.dumps(conf)).splitlines()[-1])
    # One session and the three derived from it, and one callback port for the JVM.
    assert actual == [[4, 1, 1]] * 3
    assert len(ports) == 1
