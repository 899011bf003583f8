"""Views of our catalogs in SQL: Spark parses their queries and resolves the names in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark.catalogs.catalog import TableIdentifier, ViewCatalog
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.changes.view_changes import new_view_metadata, view_definition_updates
from iceberg_pyspark.spec.views import SqlRepresentation
from iceberg_pyspark.sql_text.schema_text import parse_schema
from tests.support.native_lake import sqlite_lake
from tests.support.spark_settings import configured

CATALOG = "spark.sql.catalog.views"
Create = Callable[..., None]


@pytest.fixture(scope="module")
def create(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Create]:
    """Yield a function that creates views in `views.db`, beside a table `t` with two rows."""
    folder: Path = tmp_path_factory.mktemp("views")
    properties = {"jdbc.schema-version": "V1"}
    for key, value in properties.items():
        spark.conf.set(f"{CATALOG}.{key}", value)

    def create_view(name: str, columns: str, sql: str, dialect: str = "spark") -> None:
        uri = f"sqlite:///{folder}/catalog.db"
        catalog = load_catalog("views", uri=uri, warehouse=str(folder), **properties)
        assert isinstance(catalog, ViewCatalog)
        identifier = TableIdentifier(namespace=("db",), name=name)
        definition = view_definition_updates(
            parse_schema(columns),
            [SqlRepresentation(sql, dialect)],
            default_namespace=("db",),
            now_ms=1,
        )
        location = catalog.default_view_location(identifier)
        catalog.create_view(
            identifier,
            new_view_metadata(definition, location, {}, view_uuid=str(uuid4()), now_ms=1),
        )

    with sqlite_lake(spark, folder, "views"):
        spark.sql("CREATE TABLE views.db.t (id INT, v STRING)")
        spark.sql("INSERT INTO views.db.t VALUES (1, 'a'), (2, 'b')")
        yield create_view
    for key in properties:
        spark.conf.unset(f"{CATALOG}.{key}")


def test_names_in_a_view_are_those_of_its_catalog_and_namespace(
    spark: SparkSession, create: Create
) -> None:
    create("seen", "n BIGINT, `w w` STRING", "SELECT id + 1 AS n, upper(v) FROM t -- of db")
    create("above", "n BIGINT", "WITH s AS (SELECT * FROM seen) SELECT max(n) FROM s")
    rows = spark.sql("SELECT * FROM views.db.seen ORDER BY n").collect()
    assert [tuple(row) for row in rows] == [(2, "A"), (3, "B")]
    assert spark.table("views.db.seen").schema.simpleString() == "struct<n:bigint,w w:string>"
    joined = spark.sql("SELECT s.`w w` FROM views.db.seen s JOIN views.db.t t ON s.n = t.id")
    assert [row[0] for row in joined.collect()] == ["A"]
    assert [row[0] for row in spark.sql("SELECT * FROM views.db.above").collect()] == [3]
    spark.sql("INSERT INTO views.db.t VALUES (9, 'z')")
    assert spark.table("views.db.above").first() == (10,)


def test_view_cannot_be_written_as_a_table(spark: SparkSession, create: Create) -> None:
    create("fixed", "a INT", "SELECT 1 AS a")
    with pytest.raises(AnalysisException, match="EXPECT_TABLE_NOT_VIEW"):
        spark.sql("INSERT INTO views.db.fixed VALUES (2)")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("views.db.nothing")


def test_view_of_another_dialect_is_refused_by_name(spark: SparkSession, create: Create) -> None:
    create("foreign", "a INT", "SELECT 1 AS a", dialect="trino")
    with pytest.raises(PySparkException, match="no query in the dialect 'spark', only in: trino"):
        spark.table("views.db.foreign").collect()


JAVA = "java_method('java.lang.System', 'getProperty', 'user.name')"
ALLOWED = "spark.sql.iceberg.views.allow-java-and-files"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {JAVA} AS a",
        "SELECT Reflect('java.lang.System', 'getProperty', 'user.name') AS a",
        "SELECT try_reflect('java.lang.System', 'getProperty', 'user.name') AS a",
        f"SELECT `JAVA_METHOD`{JAVA.removeprefix('java_method')} AS a",
        "SELECT IDENTIFIER('java_' || 'method')('java.lang.System', 'getProperty', 'a') AS a",
        "SELECT IDENTIFIER('java_method')('java.lang.System', 'getProperty', 'a') AS a",
        f"SELECT 'x' AS a WHERE EXISTS (SELECT {JAVA})",
        f"SELECT (SELECT {JAVA}) AS a",
        f"WITH c AS (SELECT {JAVA} AS a) SELECT a FROM c",
        f"WITH c AS (WITH d AS (SELECT {JAVA} AS a) SELECT a FROM d) SELECT a FROM c",
        f"SELECT v AS a FROM t LATERAL VIEW explode(array({JAVA})) l AS e",
        f"SELECT s.a FROM t, LATERAL (SELECT {JAVA} AS a) s",
        f"SELECT a FROM explode(array({JAVA})) AS s(a)",
        f"SELECT v AS a FROM t JOIN (SELECT {JAVA} AS k) s ON t.v = s.k",
        f"SELECT v AS a FROM t GROUP BY v HAVING max({JAVA}) = v",
        f"SELECT v AS a FROM t ORDER BY {JAVA}",
        f"SELECT first(v) OVER w AS a FROM t WINDOW w AS (ORDER BY {JAVA})",
        f"SELECT transform(array(v), x -> {JAVA})[0] AS a FROM t",
        f"SELECT 'x' AS a UNION ALL SELECT {JAVA}",
        f"VALUES ({JAVA})",
        f"SELECT {JAVA} AS a FROM t) x CROSS JOIN (SELECT 1 AS b",
        "SELECT value AS a FROM text.`{file}`",
        "SELECT value AS a FROM `TEXT`.`file:{file}`",
        "SELECT value AS a FROM IDENTIFIER('text.`{file}`')",
        "SELECT value AS a FROM IDENTIFIER('te' || 'xt.`{file}`')",
        "SELECT value AS a "
        "FROM `org.apache.spark.sql.execution.datasources.text.TextFileFormat`.`{file}`",
        "SELECT 'x' AS a WHERE EXISTS (SELECT * FROM text.`{file}`)",
        "WITH c AS (SELECT value AS a FROM text.`{file}`) SELECT a FROM c",
        "SELECT value AS a FROM text.only_a_name",
        "SELECT a FROM `iceberg-py`.`{folder}`",
    ],
)
def test_a_view_neither_calls_java_nor_reads_files_by_path(
    spark: SparkSession, create: Create, tmp_path: Path, query: str
) -> None:
    file = tmp_path / "secret"
    file.write_text("secret\n")
    name = f"code{uuid4().hex}"
    create(name, "a STRING", query.replace("{file}", str(file)).replace("{folder}", str(tmp_path)))
    create(f"{name}_above", "a STRING", f"SELECT a FROM {name}")
    for read in (name, f"{name}_above"):
        with pytest.raises(PySparkException, match=ALLOWED) as caught:
            spark.table(f"views.db.{read}")
        assert f"view db.{name} " in str(caught.value)


def test_one_setting_allows_views_to_call_java_and_read_files(
    spark: SparkSession, create: Create, tmp_path: Path
) -> None:
    file = tmp_path / "open"
    file.write_text("line\n")
    create("calls", "a STRING", "SELECT reflect('java.lang.Integer', 'toHexString', 255) AS a")
    create("reads", "a STRING", f"SELECT value AS a FROM text.`{file}`")
    with configured(spark, {ALLOWED: "true"}):
        assert spark.table("views.db.calls").first() == ("ff",)
        assert spark.table("views.db.reads").first() == ("line",)
    for value in ("false", "", "yes"):
        with (
            configured(spark, {ALLOWED: value}),
            pytest.raises(PySparkException, match=ALLOWED),
        ):
            spark.table("views.db.calls")
    # whoever asks, and not a view, may do all this
    assert spark.sql("SELECT reflect('java.lang.Integer', 'toHexString', 10)").first() == ("a",)
    assert spark.sql(f"SELECT * FROM text.`{file}`").first() == ("line",)
    for query in ("SELECT reflect('a', 'b') AS a", f"SELECT value AS a FROM text.`{file}`"):
        with pytest.raises(PySparkException, match=ALLOWED):
            spark.sql(f"CREATE VIEW views.db.refused AS {query}")
    spark.sql("CREATE NAMESPACE views.text")
    spark.sql("CREATE TABLE views.text.lines AS SELECT 'line' AS value")
    for n, harmless in enumerate(
        (
            "SELECT 'java_method(1)' AS a -- reflect('a', 'b')",
            "SELECT v AS a FROM IDENTIFIER('t') WHERE IDENTIFIER('lower')(v) = 'a'",
            "SELECT value AS a FROM text.lines",
        )
    ):
        create(f"harmless{n}", "a STRING", harmless)
        assert spark.table(f"views.db.harmless{n}").count() == 1


def test_a_view_that_reads_itself_is_sparks_error(spark: SparkSession, create: Create) -> None:
    create("itself", "a INT", "SELECT * FROM itself")
    create("one", "a INT", "SELECT a FROM two WHERE a > 0")
    create("two", "a INT", "SELECT a FROM t JOIN three ON true")
    create(
        "three",
        "a INT",
        "SELECT 1 AS a WHERE 1 IN (WITH c AS (SELECT 1) SELECT * FROM views.db.one)",
    )
    create("beside", "a INT", "SELECT id AS a FROM t, one")
    for name, path in (
        ("itself", ["itself", "itself"]),
        ("one", ["one", "two", "three", "one"]),
        ("beside", ["one", "two", "three", "one"]),
    ):
        with pytest.raises(AnalysisException, match="RECURSIVE_VIEW") as caught:
            spark.table(f"views.db.{name}")
        cycle = re.findall(r"`(\w+)`(?= ->|\))", str(caught.value).partition("(cycle")[2])
        start = path.index(cycle[0])
        assert cycle == [*path[start:-1], *path[: start + 1]]
    for statement in (
        "CREATE OR REPLACE VIEW views.db.deep AS SELECT * FROM views.db.itself",
        "ALTER VIEW views.db.first AS SELECT * FROM views.db.second",
        "CREATE OR REPLACE VIEW views.db.first AS SELECT 1 AS a FROM views.db.t WHERE id IN "
        "(SELECT a FROM views.db.second)",
    ):
        create_ordinary_views(spark)
        with pytest.raises(AnalysisException, match="RECURSIVE_VIEW"):
            spark.sql(statement)
    spark.sql("CREATE OR REPLACE VIEW views.db.itself AS SELECT 7 AS a")
    assert spark.table("views.db.itself").first() == (7,)


def create_ordinary_views(spark: SparkSession) -> None:
    spark.sql("CREATE OR REPLACE VIEW views.db.first AS SELECT 1 AS a")
    spark.sql("CREATE OR REPLACE VIEW views.db.second AS SELECT * FROM views.db.first")


@pytest.mark.nightly
def test_views_may_be_deep(spark: SparkSession, create: Create) -> None:
    create("column0", "a INT", "WITH column9 AS (SELECT 1 AS a) SELECT * FROM column9")
    for level in range(1, 13):
        create(f"column{level}", "a INT", f"SELECT * FROM column{level - 1}")
    assert spark.table("views.db.column12").first() == (1,)
