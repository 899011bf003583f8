"""Java's JdbcCatalog and our SQL catalog in one database: tables and views in turns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from tests.services.databases import PASSWORD, USER, new_database
from tests.services.postgres import postgres
from tests.support.java_in_turns import InTurns, open_in_java
from tests.support.oracle import Oracle
from tests.support.readings import catalog_properties

CATALOG = "java_pg"


@pytest.fixture(scope="module")
def shared(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InTurns]:
    warehouse = tmp_path_factory.mktemp("pg")
    with postgres() as server:
        uri = new_database(server)
        open_in_java(
            oracle,
            CATALOG,
            {
                "type": "jdbc",
                "uri": server.jdbc_url(uri.rpartition("/")[2]),
                "jdbc.user": USER,
                "jdbc.password": PASSWORD,
                "jdbc.schema-version": "V1",
                "warehouse": str(warehouse),
            },
        )
        oracle.sql(f"CREATE NAMESPACE {CATALOG}.db")
        ours = load_catalog(CATALOG, uri=uri, warehouse=str(warehouse))
        assert isinstance(ours, SqlCatalog)
        yield InTurns(oracle, CATALOG, ours)
        end_connections(uri)


def end_connections(uri: str) -> None:
    """End all connections to the database, for which the server would wait before it stops.

    Java's catalog keeps its connections until the JVM ends.
    """
    import psycopg  # noqa: PLC0415 - the driver is an extra of its own

    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    with psycopg.connect(uri) as connection:
        connection.execute(f"{end} AND datname = current_database()")


@pytest.mark.nightly
def test_a_table_changed_in_turns_and_at_once_loses_nothing(shared: InTurns) -> None:
    assert shared.ours.namespace_exists(("db",))
    shared.change_a_table(renamed="db.renamed", appends=6)


@pytest.mark.nightly
def test_views_of_java_are_ours_and_ours_are_javas(shared: InTurns) -> None:
    shared.change_views()


def test_views_of_java_are_ours_and_ours_are_javas_on_sqlite(oracle: Oracle) -> None:
    oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_sql.db")
    ours = load_catalog("java_sql", **catalog_properties(oracle, "java_sql"))
    assert isinstance(ours, SqlCatalog)
    InTurns(oracle, "java_sql", ours).change_views()
