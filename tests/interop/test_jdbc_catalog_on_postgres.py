"""Java's JdbcCatalog and our SQL catalog in one PostgreSQL database: tables and views in turns."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.catalogs.sql.catalog import SqlCatalog
from iceberg_pyspark.commits.view_changes import new_view_metadata, view_definition_updates
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import LongType, NestedField
from iceberg_pyspark.spec.views import SqlRepresentation
from tests.services.databases import PASSWORD, USER, new_database
from tests.services.postgres import postgres
from tests.support.oracle import Oracle

CATALOG = "java_pg"
EVENTS = TableIdentifier(namespace=("db",), name="events")
APPENDS = 6


@dataclass(frozen=True)
class Shared:
    oracle: Oracle
    ours: SqlCatalog

    def our_table(self) -> Table:
        return Table(self.ours, self.ours.load_table(EVENTS))

    def append(self, *ids: int) -> None:
        self.our_table().append(pa.table({"id": pa.array(ids, pa.int64())}))

    def java_ids(self) -> list[int]:
        return [row.id for row in self.oracle.sql(f"SELECT id FROM {CATALOG}.db.events").collect()]


@pytest.fixture(scope="module")
def shared(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    warehouse = tmp_path_factory.mktemp("pg")
    with postgres() as server:
        uri = new_database(server)
        conf = oracle.spark.conf
        prefix = f"spark.sql.catalog.{CATALOG}"
        conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        for key, value in {
            "type": "jdbc",
            "uri": server.jdbc_url(uri.rpartition("/")[2]),
            "jdbc.user": USER,
            "jdbc.password": PASSWORD,
            "jdbc.schema-version": "V1",
            "warehouse": str(warehouse),
            "cache-enabled": "false",
        }.items():
            conf.set(f"{prefix}.{key}", value)
        oracle.sql(f"CREATE NAMESPACE {CATALOG}.db")
        ours = load_catalog(CATALOG, uri=uri, warehouse=str(warehouse))
        assert isinstance(ours, SqlCatalog)
        yield Shared(oracle, ours)


def test_a_table_changed_in_turns_and_at_once_loses_nothing(shared: Shared) -> None:
    assert shared.ours.namespace_exists(("db",))
    shared.oracle.sql(
        f"CREATE TABLE {CATALOG}.db.events (id BIGINT) "
        "TBLPROPERTIES ('commit.retry.num-retries'='50', 'commit.retry.min-wait-ms'='10')"
    )
    shared.append(1)
    shared.oracle.sql(f"INSERT INTO {CATALOG}.db.events VALUES (2)")
    shared.append(3)
    assert sorted(shared.java_ids()) == [1, 2, 3]

    java = threading.Thread(
        target=lambda: [
            shared.oracle.sql(f"INSERT INTO {CATALOG}.db.events VALUES ({100 + n})")
            for n in range(APPENDS)
        ]
    )
    java.start()
    for n in range(APPENDS):
        shared.append(200 + n)
    java.join()
    expected = [1, 2, 3, *range(100, 100 + APPENDS), *range(200, 200 + APPENDS)]
    assert sorted(shared.java_ids()) == expected
    assert sorted(shared.our_table().scan().to_arrow()["id"].to_pylist()) == expected
    shared.oracle.sql(f"ALTER TABLE {CATALOG}.db.events RENAME TO db.renamed")
    renamed = TableIdentifier(namespace=("db",), name="renamed")
    assert shared.ours.list_tables(("db",)) == [renamed]
    shared.ours.rename_table(renamed, EVENTS)
    assert sorted(shared.java_ids()) == expected
    shared.ours.drop_table(EVENTS)
    assert shared.oracle.sql(f"SHOW TABLES IN {CATALOG}.db").collect() == []


def test_views_of_java_are_ours_and_ours_are_javas(shared: Shared, tmp_path: Path) -> None:
    sql = shared.oracle.sql
    sql(f"CREATE VIEW {CATALOG}.db.theirs COMMENT 'c' AS SELECT 1L AS id")
    theirs = TableIdentifier(namespace=("db",), name="theirs")
    assert shared.ours.list_views(("db",)) == [theirs]
    loaded = shared.ours.load_view(theirs)
    assert loaded.metadata.current_version.sql("spark") == "SELECT 1L AS id"
    assert [(f.name, f.type) for f in loaded.metadata.schema.fields] == [("id", LongType())]

    def changed(query: str) -> None:
        definition = view_definition_updates(
            loaded.metadata.schema,
            [SqlRepresentation(query, "spark")],
            default_namespace=("db",),
            now_ms=loaded.metadata.current_version.timestamp_ms + 1,
        )
        shared.ours.commit_view(theirs, (), definition).result()

    changed("SELECT 2L AS id")
    assert [r.id for r in sql(f"SELECT * FROM {CATALOG}.db.theirs").collect()] == [2]
    sql(f"CREATE OR REPLACE VIEW {CATALOG}.db.theirs AS SELECT 3L AS id")
    assert shared.ours.load_view(theirs).metadata.current_version_id == 3

    ours = TableIdentifier(namespace=("db",), name="ours")
    schema = Schema(fields=(NestedField(field_id=1, name="id", type=LongType()),))
    metadata = new_view_metadata(
        view_definition_updates(
            schema,
            [SqlRepresentation("SELECT id + 4 AS id FROM theirs", "spark")],
            default_namespace=("db",),
            default_catalog=CATALOG,
            now_ms=1_700_000_000_000,
        ),
        shared.ours.default_view_location(ours),
        {},
        view_uuid=str(uuid.uuid4()),
        now_ms=1_700_000_000_000,
    )
    created = shared.ours.create_view(ours, metadata)
    assert [r.id for r in sql(f"SELECT * FROM {CATALOG}.db.ours").collect()] == [7]

    def listed() -> set[str]:
        # Temporary views in the session come from other tests.
        views = sql(f"SHOW VIEWS IN {CATALOG}.db").collect()
        return {view.viewName for view in views if not view.isTemporary}

    assert listed() == {"ours", "theirs"}
    sql(f"ALTER VIEW {CATALOG}.db.ours SET TBLPROPERTIES ('a' = 'b')")
    loaded_again = shared.ours.load_view(ours)
    assert loaded_again.metadata.properties["a"] == "b"
    assert loaded_again.metadata.view_uuid == created.metadata.view_uuid
    sql(f"DROP VIEW {CATALOG}.db.ours")
    assert not shared.ours.view_exists(ours)
    shared.ours.drop_view(theirs)
    assert listed() == set()
