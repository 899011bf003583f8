"""Names of columns in texts: `spark.sql.caseSensitive` decides whether another case is the name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.session import install
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.spark_settings import configured

pytestmark = pytest.mark.nightly

COLUMNS = "c1 int not null, c2 string, s struct<x: int, y: string>, l array<struct<e: int>>"
LIKE_JAVA = (
    "call {c}.system.rewrite_data_files(table => '{t}', where => 'C1 > 0 and S.X > 0')",
    "call {c}.system.rewrite_data_files('{t}', 'sort', 'zorder(C1, C2)')",
    "call {c}.system.rewrite_position_delete_files(table => '{t}', where => 'C1 > 0')",
    "alter table {c}.{t} write ordered by C1, bucket(4, C2) desc",
)
"""Statements that Java runs, too, where names are not case-sensitive."""

ONLY_OURS = (
    "call {c}.system.rewrite_data_files('{t}', 'sort', 'C1 desc')",
    "call {c}.system.compute_table_stats(table => '{t}', columns => array('C1', 'S.X'))",
    "alter table {c}.{t} add partition field C2",
    "alter table {c}.{t} add partition field bucket(4, C1) as b4",
    "alter table {c}.{t} drop partition field bucket(4, C1)",
    "alter table {c}.{t} replace partition field C2 with truncate(2, C2)",
    "alter table {c}.{t} drop partition field truncate(2, C2)",
    "alter table {c}.{t} set identifier fields C1",
    "alter table {c}.{t} drop identifier fields C1",
)
"""Statements in which Java finds no column whose case is another, whatever the setting is."""


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    """Yield both catalogs, with namespaces of the same name over one warehouse."""
    with native_lake(oracle) as installed:
        oracle.sql("create namespace java_hadoop.case_java")
        oracle.sql("create namespace lake.case_ours")
        yield installed


PLACES = (("lake", "case_ours"), ("java_hadoop", "case_java"))


def _create(lake: Oracle, name: str, columns: str, properties: str = "") -> None:
    for catalog, namespace in PLACES:
        lake.sql(
            f"create table {catalog}.{namespace}.{name} ({columns}) using iceberg {properties}"
        )


def _is_run(lake: Oracle, statement: str, name: str) -> tuple[bool, bool]:
    """Return whether we and Java run a statement."""
    return _runs(lake, statement, name, 0), _runs(lake, statement, name, 1)


def _runs(lake: Oracle, statement: str, name: str, place: int) -> bool:
    catalog, namespace = PLACES[place]
    try:
        lake.sql(statement.format(c=catalog, t=f"{namespace}.{name}")).collect()
    except (PySparkException, Py4JJavaError):
        return False
    return True


@pytest.mark.parametrize("case_sensitive", ["false", "TRUE"])
def test_texts_follow_the_setting(lake: Oracle, case_sensitive: str) -> None:
    name = f"t_{case_sensitive}"
    _create(lake, name, COLUMNS)
    for i in (1, 2):
        row = f"({i}, 'a', named_struct('x', {i}, 'y', 'u'), array(named_struct('e', 1)))"
        for catalog, namespace in PLACES:
            lake.sql(f"insert into {catalog}.{namespace}.{name} values {row}")
    expected = case_sensitive == "false"
    with configured(lake.spark, {"spark.sql.caseSensitive": case_sensitive}):
        for statement in LIKE_JAVA:
            assert _is_run(lake, statement, name) == (expected, expected), statement
        for statement in ONLY_OURS:
            assert _is_run(lake, statement, name) == (expected, False), statement
        changes = "call {c}.system.create_changelog_view('{t}', 'v', null, null, array('C1'))"
        # Spark finds the column of the view; Java's error comes when the view is read
        assert _runs(lake, changes, name, 0) == expected
        if expected:
            table = lake.spark.table(f"lake.case_ours.{name}")
            fields = "alter table {c}.{t} write ordered by c1"
            assert table.columns == ["c1", "c2", "s", "l"]
            assert _runs(lake, fields, name, 0)


@pytest.mark.parametrize("case_sensitive", ["false", "true"])
def test_merged_schemas_are_those_of_java(lake: Oracle, case_sensitive: str) -> None:
    name = f"m_{case_sensitive}"
    accept = "tblproperties ('write.spark.accept-any-schema' = 'true')"
    _create(lake, name, "c1 int, s struct<x: int>", accept)
    frames = (
        "select cast(1 as bigint) C1",
        "select 1 c1, named_struct('x', 1, 'X', 2) s",
        "select 1 c1, named_struct('X', 2L) s",
        "select 1 c1, 2 extra",
    )
    with configured(lake.spark, {"spark.sql.caseSensitive": case_sensitive}):
        for frame in frames:
            done = []
            for catalog, namespace in PLACES:
                write = lake.spark.sql(frame).writeTo(f"{catalog}.{namespace}.{name}")
                try:
                    write.option("merge-schema", "true").append()
                    done.append(True)
                except (PySparkException, Py4JJavaError):
                    done.append(False)
            schemas = [
                lake.spark.table(f"{catalog}.{namespace}.{name}").schema.simpleString()
                for catalog, namespace in PLACES
            ]
            assert (done[0], schemas[0]) == (done[1], schemas[1]), frame


def test_two_columns_in_two_cases_are_ambiguous(lake: Oracle) -> None:
    name = "two"
    with configured(lake.spark, {"spark.sql.caseSensitive": "true"}):
        _create(lake, name, "c1 int, C1 int, x int")
        for catalog, namespace in PLACES:
            lake.sql(f"insert into {catalog}.{namespace}.{name} values (1, 2, 3)")
        statements = (
            "call {c}.system.rewrite_data_files(table => '{t}', where => 'c1 > 0')",
            "call {c}.system.rewrite_data_files('{t}', 'sort', 'zorder(C1, x)')",
            "alter table {c}.{t} write ordered by C1",
        )
        for statement in statements:
            assert _is_run(lake, statement, name) == (True, True), statement
    for statement in statements:
        assert _is_run(lake, statement, name) == (False, False), statement
    table = install(lake.spark).table(f"lake.case_ours.{name}")
    with pytest.raises(InvalidRequestError, match="'c1' is ambiguous: 'c1' and 'C1' differ"):
        table.maintenance().rewrite_data_files(where="c1 > 0")


def test_methods_of_a_session_follow_the_setting(lake: Oracle) -> None:
    """Filters that Spark has analysed keep the spelling of the query, and files are still found."""
    name = "lake.case_ours.methods"
    lake.sql(f"create table {name} (id int, p string) using iceberg partitioned by (p)")
    table = install(lake.spark).table(name)
    lake.sql(f"insert into {name} values (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
    rows = lake.spark.createDataFrame([(5, "a")], "id int, p string")
    rows.writeTo(name).overwrite(F.col("P") == "a")
    table.refresh().delete("P = 'b'")
    deletion = table.refresh().current_snapshot
    assert deletion is not None
    assert deletion.summary["deleted-data-files"] == "1"
    assert "added-delete-files" not in deletion.summary
    table.update({"ID": "ID + 10"}, "P = 'c'")
    source = lake.spark.createDataFrame([(6, "d")], "ID int, P string")
    table.merge_into(source, "t.p = s.p").whenMatched().updateAll().merge()
    table.merge_into(source, "t.p = s.p").whenMatched().updateAll().withSchemaEvolution().merge()
    assert sorted(map(tuple, lake.spark.table(name).collect())) == [(5, "a"), (6, "d"), (13, "c")]
    assert lake.spark.table(name).columns == ["id", "p"]
    assert table.scan(filter="P = 'a'").to_arrow().num_rows == 1
    with configured(lake.spark, {"spark.sql.caseSensitive": "true"}):
        for call in (
            lambda: table.scan(filter="P = 'a'"),
            lambda: table.merge_into(source, "t.p = s.P").whenMatched().updateAll().merge(),
            lambda: table.update({"ID": "1"}),
        ):
            with pytest.raises(InvalidRequestError, match="no column"):
                call()
