"""Views of our catalogs in SQL: Spark parses their queries and resolves the names in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.catalogs.view_catalog import ViewCatalog
from iceberg_pyspark.commits.view_changes import new_view_metadata, view_definition_updates
from iceberg_pyspark.spec.views import SqlRepresentation
from iceberg_pyspark.sql_text.schemas import parse_schema
from tests.support.native_lake import sqlite_lake

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


def test_a_view_is_no_table(spark: SparkSession, create: Create) -> None:
    create("fixed", "a INT", "SELECT 1 AS a")
    with pytest.raises(AnalysisException, match="EXPECT_TABLE_NOT_VIEW"):
        spark.sql("INSERT INTO views.db.fixed VALUES (2)")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("views.db.nothing")


def test_a_view_of_another_dialect_says_so(spark: SparkSession, create: Create) -> None:
    create("foreign", "a INT", "SELECT 1 AS a", dialect="trino")
    with pytest.raises(PySparkException, match="no query in the dialect 'spark', only in: trino"):
        spark.table("views.db.foreign").collect()
