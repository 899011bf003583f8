"""Views that SQL creates on one REST server: each side reads the other's views, stored alike."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.spark.session import install
from iceberg_pyspark.spec.views import view_metadata_to_json
from tests.services.server import Server
from tests.support.oracle import Oracle
from tests.support.spark_settings import configured

pytestmark = pytest.mark.nightly

STATEMENTS = (
    "CREATE TABLE {c}.{n}.t (id INT NOT NULL, v STRING) USING iceberg",
    "INSERT INTO {c}.{n}.t VALUES (1, 'a'), (2, 'b')",
    "CREATE VIEW {c}.{n}.plain AS SELECT id, upper(v) AS u FROM {c}.{n}.t",
    "CREATE VIEW {c}.{n}.named (a COMMENT 'first', b) COMMENT 'about' TBLPROPERTIES ('k' = 'v') "
    "AS SELECT id + 1, v FROM {c}.{n}.t",
    "CREATE VIEW IF NOT EXISTS {c}.{n}.plain AS SELECT 1 AS other",
    "CREATE OR REPLACE VIEW {c}.{n}.named AS SELECT max(id) AS m FROM {c}.{n}.t",
    "ALTER VIEW {c}.{n}.named SET TBLPROPERTIES ('l' = 'w')",
    "ALTER VIEW {c}.{n}.named UNSET TBLPROPERTIES ('k')",
    "CREATE VIEW {c}.{n}.dropped AS SELECT 1 AS x",
    "DROP VIEW {c}.{n}.dropped",
    "CREATE VIEW {c}.{n}.before AS SELECT 1 AS x",
    "ALTER VIEW {c}.{n}.before RENAME TO {c}.{n}.after",
)
REFUSED = (
    "CREATE VIEW {c}.{n}.plain AS SELECT 1 AS x",
    "CREATE VIEW {c}.{n}.w (a, b) AS SELECT 1 AS x",
    "CREATE VIEW {c}.{n}.w AS SELECT 1 AS x, 2 AS X",
    "CREATE VIEW {c}.{n}.w AS SELECT * FROM {c}.{n}.none",
    "CREATE VIEW {c}.{n}.t AS SELECT 1 AS x",
    "CREATE OR REPLACE VIEW {c}.{n}.plain AS SELECT * FROM {c}.{n}.plain",
    "DROP VIEW {c}.{n}.none",
    "ALTER VIEW {c}.{n}.none SET TBLPROPERTIES ('a' = 'b')",
    "ALTER VIEW {c}.{n}.plain UNSET TBLPROPERTIES ('none')",
    "ALTER VIEW {c}.{n}.plain RENAME TO {c}.{n}.t",
)
WRITERS = {"view_lake": "ours", "java_views": "javas"}


@pytest.fixture(scope="module")
def catalog(oracle: Oracle, rest: Server) -> Iterator[RestCatalog]:
    """Yield the catalog of a server; in Spark, `view_lake` is our client, `java_views` Java's."""
    settings = {
        "spark.sql.catalog.java_views": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.view_lake": "iceberg_pyspark",
    }
    for name in WRITERS:
        settings[f"spark.sql.catalog.{name}.type"] = "rest"
        settings[f"spark.sql.catalog.{name}.uri"] = rest.endpoint
        settings[f"spark.sql.catalog.{name}.cache-enabled"] = "false"
    with configured(oracle.spark, settings):
        session = install(oracle.spark)
        catalog = RestCatalog("view_lake", {"uri": rest.endpoint})
        for name, namespace in WRITERS.items():
            oracle.sql(f"CREATE NAMESPACE {name}.{namespace}")
            for statement in STATEMENTS:
                oracle.sql(statement.format(c=name, n=namespace))
        yield catalog
        session.uninstall()


def stored(catalog: RestCatalog, namespace: str, name: str) -> dict[str, Any]:
    """Return a view's metadata without its writer and without parts that differ between views."""
    view = catalog.load_view(TableIdentifier(namespace=(namespace,), name=name)).metadata
    document = view_metadata_to_json(view)
    for schema in document["schemas"]:
        # Java's field ids begin with 0.
        schema["fields"] = [{**f, "id": n} for n, f in enumerate(schema["fields"])]
    for version in document["versions"]:
        del version["timestamp-ms"]
        for representation in version["representations"]:
            text = representation["sql"]
            for of, its in WRITERS.items():
                text = text.replace(f"{of}.{its}", "lake")
            representation["sql"] = text
        version["default-namespace"] = [
            "own" if level == namespace else level for level in version["default-namespace"]
        ]
        # Java's summary describes the writing process, if anything.
        del version["summary"]
    return {
        "schemas": document["schemas"],
        "versions": document["versions"],
        "current": document["current-version-id"],
        "log": [entry["version-id"] for entry in document["version-log"]],
        "properties": document["properties"],
    }


@pytest.mark.parametrize("name", ["plain", "named", "after"])
def test_stored_view_metadata_equals_javas(catalog: RestCatalog, name: str) -> None:
    assert stored(catalog, "ours", name) == stored(catalog, "javas", name)


def test_java_reads_our_views_and_we_read_javas(oracle: Oracle, catalog: RestCatalog) -> None:
    for reader, namespace in (("view_lake", "javas"), ("java_views", "ours")):
        read = f"SELECT * FROM {reader}.{namespace}"
        writer = next(name for name, its in WRITERS.items() if its == namespace)
        assert writer != reader
        plain = oracle.sql(f"{read}.plain").collect()
        assert sorted(map(tuple, plain)) == [(1, "A"), (2, "B")]
        assert [tuple(row) for row in oracle.sql(f"{read}.named").collect()] == [(2,)]
        assert [tuple(row) for row in oracle.sql(f"{read}.after").collect()] == [(1,)]


def test_the_same_views_are_listed(oracle: Oracle, catalog: RestCatalog) -> None:
    oracle.spark.range(1).createOrReplaceTempView("fleeting")
    for pattern in ("", " LIKE 'p*|f*'"):
        shown = [
            [tuple(row)[1:] for row in oracle.sql(f"SHOW VIEWS IN {name}.ours{pattern}").collect()]
            for name in WRITERS
        ]
        assert shown[0] == shown[1]
    oracle.spark.catalog.dropTempView("fleeting")


DESCRIPTIONS = (
    "SHOW TBLPROPERTIES {}",
    "SHOW TBLPROPERTIES {} ('l')",
    "SHOW TBLPROPERTIES {} ('none')",
    "DESCRIBE EXTENDED {}",
)


@pytest.mark.parametrize("statement", DESCRIPTIONS)
def test_views_are_described_alike(oracle: Oracle, catalog: RestCatalog, statement: str) -> None:
    for name in ("plain", "named", "after"):
        shown = [
            [
                [str(value).replace(client, "lake") for value in row]
                for row in oracle.sql(statement.format(f"{client}.javas.{name}")).collect()
            ]
            for client in WRITERS
        ]
        if "TBLPROPERTIES" in statement:
            shown = [sorted(rows) for rows in shown]  # Java's are in no order
        assert shown[0] == shown[1]


def test_the_statement_of_java_has_the_place_of_the_view_too(
    oracle: Oracle, catalog: RestCatalog
) -> None:
    for name in ("named", "after"):
        ours, javas = (
            oracle.sql(f"SHOW CREATE TABLE {client}.javas.{name}").collect()[0][0].splitlines()
            for client in WRITERS
        )
        expected = [
            line.replace("java_views", "view_lake", 1) if line.startswith("CREATE") else line
            for line in javas
            if not re.match("  '(format-version|location|provider)' = ", line)
        ]
        # The last one of the properties is followed by a parenthesis.
        assert [line.rstrip(",)") for line in ours if line != "TBLPROPERTIES ("] == [
            line.rstrip(",)") for line in expected if line != "TBLPROPERTIES ("
        ]


@pytest.mark.parametrize("statement", REFUSED)
def test_view_statement_that_java_refuses_is_refused(
    oracle: Oracle, catalog: RestCatalog, statement: str
) -> None:
    for name, namespace in WRITERS.items():
        with pytest.raises(Exception, match=r"\S"):
            oracle.sql(statement.format(c=name, n=namespace))
    listed = [[v.name for v in catalog.list_views((n,))] for n in WRITERS.values()]
    assert sorted(listed[0]) == sorted(listed[1]) == ["after", "named", "plain"]
