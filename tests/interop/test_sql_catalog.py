"""Our Spark SQL catalog and Java's: the same statements give equal results, errors and metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from iceberg_pyspark import install
from iceberg_pyspark.spec.table_properties import CHARACTER_TYPE
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import snapshot_ids
from tests.support.rows import sorted_rows

OURS, JAVAS = "lake", "java_hadoop"
REFUSALS = ("IllegalArgumentException", "UnsupportedOperationException")
ROWS = "select id, cast(id % 3 as int) g, cast(id as string) s from range({first}, {last})"


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    """Yield both catalogs over one warehouse, so that each sees the other's tables."""
    with native_lake(oracle) as installed:
        for namespace in ("ours", "theirs", "both"):
            oracle.sql(f"create namespace java_hadoop.{namespace}")
        yield installed


def run_on_both(lake: Oracle, name: str, *statements: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run statements on our table and on Java's table; return the metadata of both."""
    for statement in statements:
        lake.sql(statement.format(t=f"{OURS}.ours.{name}"))
        lake.sql(statement.format(t=f"{JAVAS}.theirs.{name}"))
    return metadata_of(lake, f"ours/{name}"), metadata_of(lake, f"theirs/{name}")


def metadata_of(lake: Oracle, folder: str) -> dict[str, Any]:
    files = list((lake.warehouse / folder / "metadata").glob("v*.metadata.json"))
    last = max(files, key=lambda f: int(f.name[1:].partition(".")[0]))
    result: dict[str, Any] = json.loads(Path(last).read_text(encoding="utf-8"))
    return result


def shape(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of the table metadata that DDL determines."""
    remaining = ("schemas", "current-schema-id", "partition-specs", "last-column-id", "properties")
    result = {k: metadata[k] for k in (*remaining, "format-version")}
    return {**result, "commits": len(metadata["metadata-log"])}


def answers(lake: Oracle, statement: str) -> list[tuple[Any, ...]]:
    """Check that both catalogs give equal rows, except for the catalog's name; return ours.

    The order matters unless a query leaves it open.
    """
    ours, java = (
        [tuple(r) for r in lake.sql(statement.format(c=c)).collect()] for c in (OURS, JAVAS)
    )
    if statement.startswith("select") and "order by" not in statement:
        ours, java = sorted_rows(ours), sorted_rows(java)
    renamed = [tuple(_without_catalog(v) for v in row) for row in ours]
    assert renamed == [tuple(_without_catalog(v) for v in row) for row in java]
    return ours


def _without_catalog(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return value.replace(f"{OURS}.", "").replace(f"{JAVAS}.", "").replace("file:/", "/")


def error_of(lake: Oracle, statement: str) -> tuple[str, str | None]:
    """Return class and condition of the error that a statement raises."""
    with pytest.raises((PySparkException, Py4JJavaError)) as e:
        lake.sql(statement).collect()
    condition = e.value.getCondition() if isinstance(e.value, PySparkException) else None
    return type(e.value).__name__, condition


def test_create_table_with_every_transform_writes_what_java_writes(lake: Oracle) -> None:
    ours, java = run_on_both(
        lake,
        "transforms",
        "create table {t} (id bigint not null comment 'the key', `a b` string, ts timestamp, "
        "d date, h timestamp_ntz, n struct<x: int comment 'inner', y: array<struct<z: string>>>, "
        "m map<string, decimal(10, 2)>, v varchar(5)) using iceberg "
        "partitioned by (years(ts), months(d), days(h), bucket(4, id), truncate(3, s), `a b`, "
        "bucket(8, n.x), v)".replace("truncate(3, s)", "truncate(3, `a b`)")
        + " comment 'a table' tblproperties ('k'='v', 'format-version'='2')",
    )
    # Java forgets the length of a text
    assert ours["properties"].pop(f"{CHARACTER_TYPE}8") == "varchar(5)"
    assert shape(ours) == shape(java)
    hours, java_hours = run_on_both(
        lake, "hourly", "create table {t} (ts timestamp) using iceberg partitioned by (hours(ts))"
    )
    assert shape(hours) == shape(java_hours)


@pytest.mark.nightly
def test_show_and_describe_answer_as_java(lake: Oracle) -> None:
    lake.sql(
        "create table lake.both.shown (id bigint not null comment 'the key', `a b` string, "
        "ts timestamp, n struct<x: int>) using iceberg "
        "partitioned by (days(ts), bucket(4, id), truncate(3, `a b`), n.x) "
        "comment 'a table' tblproperties ('k'='v')"
    )
    lake.sql("create table java_hadoop.both.plain (id int, g int) using iceberg partitioned by (g)")
    lake.sql("insert into java_hadoop.both.plain values (1, 2)")
    lake.sql(
        "create table java_hadoop.both.sorted (id bigint not null, ts timestamp, s string) "
        "using iceberg"
    )
    lake.sql(
        "alter table java_hadoop.both.sorted write ordered by days(ts) desc, bucket(4, id), "
        "truncate(2, s) asc nulls last, s"
    )
    lake.sql("alter table java_hadoop.both.sorted set identifier fields id")
    for table in ("shown", "plain", "sorted"):
        for statement in (
            "describe table {c}.both." + table,
            "show create table {c}.both." + table,
            "show tblproperties {c}.both." + table,
        ):
            assert answers(lake, statement)
    described = [lake.sql(f"describe table extended {c}.both.shown") for c in (OURS, JAVAS)]
    ours, java = ([tuple(map(_without_catalog, r)) for r in d.collect()] for d in described)
    # Java lists two more metadata columns; the tests of native scans check sizes.
    unlike = ("_partition", "_deleted", "Statistics")
    assert [r for r in ours if r[0] not in unlike] == [r for r in java if r[0] not in unlike]
    tables = [lake.sql(f"show tables in {c}.both").collect() for c in (OURS, JAVAS)]
    assert sorted(tables[0]) == sorted(tables[1])
    assert answers(lake, "show tables in {c}.both like 'pl*'")
    assert answers(lake, "show tblproperties {c}.both.shown ('k')")


@pytest.mark.nightly
def test_queries_joins_and_views(lake: Oracle) -> None:
    lake.sql("create table java_hadoop.both.q using iceberg as " + ROWS.format(first=0, last=50))
    for query in (
        "select g, count(*), max(s) from {c}.both.q where id > 7 group by g order by g",
        "select a.id from {c}.both.q a join {c}.both.q b on a.id = b.id + 1 where b.g = 1",
        "select id from {c}.both.q where id in (select id * 2 from {c}.both.q) and s like '1%'",
        "with w as (select * from {c}.both.q where g = 2) select (select max(id) from w), count(*) "
        "from w where exists (select 1 from {c}.both.q x where x.id = w.id + 3)",
    ):
        assert answers(lake, query)
    lake.sql("create or replace temporary view q_view as select * from lake.both.q where g = 0")
    assert lake.sql("select count(*) from q_view").first()[0] == 17  # type: ignore[index]


@pytest.mark.nightly
def test_time_travel_by_id_branch_tag_and_time(lake: Oracle) -> None:
    name = "both.travelled"
    lake.sql(f"create table java_hadoop.{name} using iceberg as " + ROWS.format(first=0, last=5))
    lake.sql(f"alter table java_hadoop.{name} create tag first")
    lake.sql(f"alter table java_hadoop.{name} create branch side")
    lake.sql(f"insert into java_hadoop.{name}.branch_side " + ROWS.format(first=5, last=7))
    lake.sql(f"alter table java_hadoop.{name} add column late int")
    lake.sql(
        f"insert into java_hadoop.{name} select *, 1 from (" + ROWS.format(first=7, last=9) + ")"
    )
    history = lake.sql(f"select * from java_hadoop.{name}.history").collect()
    history.sort(key=lambda row: row.made_current_at)
    at = "{c}." + name
    for query, count in (
        (f"select * from {at} version as of {history[0].snapshot_id}", 5),
        (f"select * from {at} version as of 'first'", 5),
        (f"select * from {at} version as of 'side'", 7),
        (f"select * from {at} timestamp as of '{history[0].made_current_at}'", 5),
        (f"select * from {at}.branch_side", 7),
        (f"select * from {at}.tag_first", 5),
        (f"select * from {at}", 7),
    ):
        assert len(answers(lake, query)) == count
    for query in (
        f"select * from {at} version as of 'nothing'",
        f"select * from {at} version as of 17",
        f"select * from {at} timestamp as of '2001-01-01'",
    ):
        ours, java = (error_of(lake, query.format(c=c)) for c in (OURS, JAVAS))
        assert ours[0] == java[0] == "IllegalArgumentException"


def test_alter_table_writes_what_java_writes_in_as_many_commits(lake: Oracle) -> None:
    ours, java = run_on_both(
        lake,
        "altered",
        "create table {t} (id int, f float, d decimal(5, 2), n struct<x: int, y: int>, "
        "l array<struct<e: int>>, m map<string, struct<w: int>>, gone string, r int not null) "
        "using iceberg",
        "alter table {t} add columns (a string comment 'new', b int first, c date after id)",
        "alter table {t} add column n.z string after x",
        "alter table {t} add column l.element.e2 bigint first",
        "alter table {t} add column m.value.w2 struct<p: int, q: array<int>>",
        "alter table {t} drop columns (gone, n.y)",
        "alter table {t} rename column a to renamed",
        "alter table {t} rename column n.x to x2",
        "alter table {t} alter column id type bigint",
        "alter table {t} alter column f type double",
        "alter table {t} alter column d type decimal(9, 2)",
        "alter table {t} alter column renamed comment 'changed'",
        "alter table {t} alter column renamed first",
        "alter table {t} alter column id after f",
        "alter table {t} alter column n.z first",
        "alter table {t} alter column r drop not null",
        "alter table {t} set tblproperties ('a'='1', 'b'='2')",
        "alter table {t} unset tblproperties ('a')",
        "alter table {t} unset tblproperties if exists ('never')",
    )
    assert shape(ours) == shape(java)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "statement",
    [
        "select * from {c}.theirs.nothing",
        "select * from {c}.nowhere.nothing",
        "describe table {c}.theirs.nothing",
        "drop table {c}.theirs.nothing",
        "alter table {c}.theirs.nothing set tblproperties ('a'='b')",
        "create table {c}.both.there (id int) using iceberg",
        "create namespace {c}.both",
        "drop namespace {c}.nowhere",
        "describe namespace {c}.nowhere",
        "alter table {c}.both.there drop column nothing",
        "alter table {c}.both.there rename column nothing to x",
        "alter table {c}.both.there add column id int",
        "alter table {c}.both.there alter column id set not null",
        "create table {c}.both.odd (id int) using csv",
        "create table {c}.both.odd (id int) using iceberg partitioned by (nothing(id))",
    ],
)
def test_errors_are_of_the_class_that_java_gives(lake: Oracle, statement: str) -> None:
    lake.sql("create table if not exists java_hadoop.both.there (id int) using iceberg")
    ours, java = (error_of(lake, statement.format(c=c)) for c in (OURS, JAVAS))
    if java[0] in REFUSALS:
        assert ours[0] in REFUSALS
    else:
        assert ours == java


@pytest.mark.nightly
def test_errors_that_java_leaves_to_the_jvm_have_our_message(lake: Oracle) -> None:
    lake.sql("create table if not exists java_hadoop.both.there (id int) using iceberg")
    assert error_of(lake, "drop namespace lake.both") == ("AnalysisException", "SCHEMA_NOT_EMPTY")
    for statement, kind, message in (
        ("alter table {t} alter column id type string", REFUSALS[0], "'id' from int to string"),
        ("alter table {t} add column (n int not null)", REFUSALS[0], "required column 'n'"),
        ("alter table {t} set tblproperties ('sort-order'='id')", REFUSALS[1], "'sort-order'"),
        ("alter table {t} add column n int default 1", REFUSALS[0], "format version 3"),
    ):
        with pytest.raises(PySparkException) as e:
            lake.sql(statement.format(t="lake.both.there"))
        assert (type(e.value).__name__, message in str(e.value)) == (kind, True), statement


@pytest.mark.nightly
def test_frames_and_views_see_the_snapshots_that_they_see_with_java(lake: Oracle) -> None:
    counts = {}
    for catalog in (OURS, JAVAS):
        name = f"both.pinned_{catalog}"
        lake.sql(
            f"create table java_hadoop.{name} using iceberg as " + ROWS.format(first=0, last=3)
        )
        frame = lake.spark.table(f"{catalog}.{name}")
        frame.createOrReplaceTempView(f"pinned_{catalog}")
        before = frame.count()
        cached = lake.spark.table(f"{catalog}.{name}").select("id").cache()
        assert cached.count() == 3
        [first] = snapshot_ids(lake, f"java_hadoop.{name}")
        lake.sql(f"insert into java_hadoop.{name} " + ROWS.format(first=3, last=5))
        view = lake.spark.table(f"pinned_{catalog}")
        later = (frame.count(), frame.filter("id >= 0").count(), view.count())
        remaining = cached.count()
        anew = lake.spark.table(f"{catalog}.{name}").count()
        lake.sql(f"refresh table {catalog}.{name}")
        again = lake.sql(f"select * from {catalog}.{name}").count()
        travelled = lake.spark.read.option("versionAsOf", first).table(f"{catalog}.{name}").count()
        cached.unpersist()
        counts[catalog] = (before, later, remaining, anew, again, travelled)
    assert counts[OURS] == counts[JAVAS]
    assert counts[OURS][-1] == 3


@pytest.mark.nightly
def test_defaults_are_kept_as_values_that_java_reads(lake: Oracle) -> None:
    lake.sql(
        "create table lake.ours.defaults (id int, n bigint default -7, s string default 'x''y', "
        "d date default date '2020-01-02') using iceberg tblproperties ('format-version'='3')"
    )
    lake.sql("insert into java_hadoop.ours.defaults values (1, 1, 'a', date '2021-01-01')")
    lake.sql("alter table lake.ours.defaults add column late decimal(5, 2) default 1.5")
    lake.sql("alter table lake.ours.defaults alter column n set default 8")
    lake.sql("alter table lake.ours.defaults alter column s drop default")
    columns = {f["name"]: f for f in metadata_of(lake, "ours/defaults")["schemas"][-1]["fields"]}
    assert (columns["n"]["initial-default"], columns["n"]["write-default"]) == (-7, 8)
    assert columns["s"]["initial-default"] == "x'y"
    assert "write-default" not in columns["s"]
    assert columns["d"]["write-default"] == "2020-01-02"
    assert columns["late"]["initial-default"] == "1.50"
    assert str(answers(lake, "select late from {c}.ours.defaults")[0][0]) == "1.50"


@pytest.mark.nightly
def test_columns_missing_in_insert_have_the_defaults_of_java(lake: Oracle) -> None:
    lake.sql(
        "create table lake.ours.filled (id int, i int default -5, n bigint default -7, "
        "s string default 'x', d date default date '2020-01-02', u timestamp_ntz "
        "default timestamp_ntz '2020-01-02 03:04:05.12', z boolean default true, "
        "b binary default X'0aff', c decimal(6, 3) default -2.5, f double default 1, "
        "g float default 0.5, t timestamp default timestamp '2020-01-02 03:04:05') using iceberg "
        "tblproperties ('format-version'='3')"
    )
    lake.sql("alter table lake.ours.filled alter column i set default 6")
    shown = []
    for catalog in (OURS, JAVAS):
        lake.sql(f"insert into {catalog}.ours.filled (id) values (1)")
        text = lake.sql(f"show create table {catalog}.ours.filled").collect()[0][0]
        shown.append(text.partition("t TIMESTAMP DEFAULT")[0].partition("(")[2])
    assert shown[0] == shown[1]
    assert "n BIGINT DEFAULT -7L" in shown[0]
    first, second = (tuple(r) for r in lake.sql("select * from lake.ours.filled").collect())
    assert first == second
    assert (first[1], first[2], first[3]) == (6, -7, "x")


@pytest.mark.nightly
def test_new_sessions_have_the_catalogs_that_their_configuration_names(lake: Oracle) -> None:
    lake.sql(
        "create table java_hadoop.both.sessions using iceberg as " + ROWS.format(first=0, last=4)
    )
    other = lake.spark.newSession()
    other.conf.set("spark.sql.catalog.second", "iceberg_pyspark")
    other.conf.set("spark.sql.catalog.second.type", "hadoop")
    other.conf.set("spark.sql.catalog.second.warehouse", str(lake.warehouse))
    actual = other.sql("select id from second.both.sessions where id > 1")
    assert actual.count() == 2
    assert "IcebergPyParquetScan" in actual._jdf.queryExecution().executedPlan().toString()
    theirs = install(other)
    assert theirs.is_native
    assert theirs is install(other)
    theirs.uninstall()
    with pytest.raises(PySparkException, match=r"call iceberg_pyspark\.install"):
        other.sql("select * from second.both.sessions").collect()
    assert lake.spark.table("lake.both.sessions").count() == 4


@pytest.mark.nightly
def test_namespaces_of_folders_are_made_without_properties_as_in_java(lake: Oracle) -> None:
    for catalog in (OURS, JAVAS):
        lake.sql(f"create namespace {catalog}.made_by_{catalog}")
        with pytest.raises(PySparkException):
            lake.sql(f"create namespace {catalog}.refused with dbproperties ('a' = 'b')")
    for catalog in (OURS, JAVAS):
        actual = {row.namespace for row in lake.sql(f"show namespaces in {catalog}").collect()}
        assert {f"made_by_{OURS}", f"made_by_{JAVAS}"} <= actual
        assert "refused" not in actual


@pytest.mark.nightly
def test_the_catalog_functions_of_a_session_answer_as_java(lake: Oracle) -> None:
    lake.sql(
        "create table java_hadoop.both.functions (id int comment 'k', g int) partitioned by (g)"
    )
    catalog = lake.spark.catalog
    for function in (
        lambda c: catalog.tableExists(f"{c}.both.functions"),
        lambda c: catalog.tableExists(f"{c}.both.nothing"),
        lambda c: catalog.databaseExists(f"{c}.both"),
        lambda c: catalog.databaseExists(f"{c}.nowhere"),
        lambda c: catalog.listColumns(f"{c}.both.functions"),
        lambda c: {t.name for t in catalog.listTables(f"{c}.both")},
        lambda c: catalog.getTable(f"{c}.both.functions")._replace(catalog=""),
        lambda c: catalog.getDatabase(f"{c}.both").locationUri,
        lambda c: lake.sql(f"show columns in {c}.both.functions").collect(),
    ):
        assert function(OURS) == function(JAVAS)


@pytest.mark.nightly
def test_purge_leaves_no_file_and_honours_gc_enabled(lake: Oracle) -> None:
    remaining_files = {}
    for catalog, namespace in ((OURS, "ours"), (JAVAS, "theirs")):
        table = f"{catalog}.{namespace}.purged"
        folder = lake.warehouse / namespace / "purged"
        lake.sql(f"create table java_hadoop.{namespace}.purged using iceberg as select 1 id")
        lake.sql(f"alter table {table} set tblproperties ('gc.enabled'='false')")
        with pytest.raises(Exception, match=r"(?i)gc"):
            lake.sql(f"drop table {table} purge")
        assert lake.sql(f"select * from {table}").count() == 1
        lake.sql(f"alter table {table} set tblproperties ('gc.enabled'='true')")
        lake.sql(f"drop table {table} purge")
        assert not lake.spark.catalog.tableExists(table)
        remaining_files[catalog] = [
            f for f in folder.rglob("*") if f.suffix in (".json", ".avro", ".parquet")
        ]
    assert remaining_files == {OURS: [], JAVAS: []}
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        lake.sql("drop table lake.ours.purged purge")
    lake.sql("drop table if exists lake.ours.purged purge")
