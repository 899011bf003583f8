"""Java's HiveCatalog and ours on one Hive metastore: tables and views, in turns and at once."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hive.catalog import HiveCatalog
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.commits.view_changes import new_view_metadata, view_definition_updates
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import LongType, NestedField
from iceberg_pyspark.spec.views import SqlRepresentation
from tests.services.hive import hive_metastore, thrift_uri
from tests.support.oracle import Oracle

CATALOG = "java_hive"
EVENTS = TableIdentifier(namespace=("db",), name="events")
APPENDS = 4
RETRIES = "'commit.retry.num-retries'='50', 'commit.retry.min-wait-ms'='10'"


@dataclass(frozen=True)
class Shared:
    oracle: Oracle
    ours: HiveCatalog

    def our_table(self) -> Table:
        return Table(self.ours, self.ours.load_table(EVENTS))

    def append(self, *ids: int) -> None:
        self.our_table().append(pa.table({"id": pa.array(ids, pa.int64())}))

    def java_ids(self) -> list[int]:
        return [row.id for row in self.oracle.sql(f"SELECT id FROM {CATALOG}.db.events").collect()]

    def parameters(self, identifier: TableIdentifier) -> dict[str, str]:
        table = self.ours._table(identifier)
        assert table is not None
        parameters: dict[str, str] = table["parameters"]
        return parameters


@pytest.fixture(scope="module")
def shared(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    folder = tmp_path_factory.mktemp("hive")
    with hive_metastore(folder) as server:
        conf = oracle.spark.conf
        prefix = f"spark.sql.catalog.{CATALOG}"
        conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        for key, value in {
            "type": "hive",
            "uri": thrift_uri(server),
            "warehouse": str(folder / "warehouse"),
            "cache-enabled": "false",
        }.items():
            conf.set(f"{prefix}.{key}", value)
        oracle.sql(f"CREATE NAMESPACE {CATALOG}.db COMMENT 'theirs'")
        ours = load_catalog(CATALOG, uri=thrift_uri(server), warehouse=str(folder / "warehouse"))
        assert isinstance(ours, HiveCatalog)
        yield Shared(oracle, ours)


@pytest.mark.parametrize("locks", ["true", "false"])
def test_a_table_changed_in_turns_and_at_once_loses_nothing(shared: Shared, locks: str) -> None:
    assert shared.ours.load_namespace_properties(("db",))["comment"] == "theirs"
    shared.oracle.sql(
        f"CREATE TABLE {CATALOG}.db.events (id BIGINT) TBLPROPERTIES "
        f"({RETRIES}, 'engine.hive.lock-enabled'='{locks}')"
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
    shared.oracle.sql(f"ALTER TABLE {CATALOG}.db.events RENAME TO {CATALOG}.db.renamed")
    renamed = TableIdentifier(namespace=("db",), name="renamed")
    assert shared.ours.list_tables(("db",)) == [renamed]
    shared.ours.rename_table(renamed, EVENTS)
    assert sorted(shared.java_ids()) == expected
    shared.ours.drop_table(EVENTS)
    assert shared.oracle.sql(f"SHOW TABLES IN {CATALOG}.db").collect() == []


def test_the_metastore_is_told_what_java_tells_it(shared: Shared) -> None:
    """Our commit and Java's set the same table parameters, except those about the commit."""
    shared.oracle.sql(
        f"CREATE TABLE {CATALOG}.db.events (id BIGINT, day DATE COMMENT 'd', p STRUCT<a: INT>) "
        f"PARTITIONED BY (days(day)) TBLPROPERTIES ('gc.enabled'='false', 'k'='v')"
    )
    insert = f"INSERT INTO {CATALOG}.db.events VALUES (1, DATE'2024-01-01', NULL)"
    shared.oracle.sql(f"ALTER TABLE {CATALOG}.db.events WRITE ORDERED BY id")
    shared.oracle.sql(insert)
    table = shared.ours._table(EVENTS)
    assert table is not None
    theirs, storage = table["parameters"], table["sd"]
    before = shared.our_table()
    before.append(before.scan().to_arrow())
    table = shared.ours._table(EVENTS)
    assert table is not None
    ours = table["parameters"]
    assert table["sd"] == storage
    assert ours.keys() == theirs.keys()
    messages = {
        *("metadata_location", "previous_metadata_location", "transient_lastDdlTime"),
        *("current-snapshot-id", "current-snapshot-timestamp-ms", "current-snapshot-summary"),
        *("numFiles", "numRows", "totalSize", "snapshot-count"),
    }
    assert _values(ours, messages) == _values(theirs, messages)
    assert (ours["numRows"], ours["numFiles"], ours["snapshot-count"]) == ("2", "2", "2")
    assert ours["previous_metadata_location"] == theirs["metadata_location"]
    shared.oracle.sql(f"ALTER TABLE {CATALOG}.db.events UNSET TBLPROPERTIES ('k')")
    assert "k" not in shared.parameters(EVENTS)
    shared.oracle.sql(f"DROP TABLE {CATALOG}.db.events")
    assert not shared.ours.table_exists(EVENTS)


def _values(parameters: dict[str, str], messages: set[str]) -> dict[str, object]:
    """Return the parameters that a commit does not change; JSON is parsed, to ignore key order."""
    return {
        k: json.loads(v) if v.startswith("{") else v
        for k, v in parameters.items()
        if k not in messages
    }


def test_views_of_java_are_ours_and_ours_are_javas(shared: Shared) -> None:
    sql = shared.oracle.sql
    sql(f"CREATE VIEW {CATALOG}.db.theirs COMMENT 'c' AS SELECT 1L AS id")
    theirs = TableIdentifier(namespace=("db",), name="theirs")
    assert shared.ours.list_views(("db",)) == [theirs]
    loaded = shared.ours.load_view(theirs)
    definition = view_definition_updates(
        loaded.metadata.schema,
        [SqlRepresentation("SELECT 2L AS id", "spark")],
        default_namespace=("db",),
        now_ms=loaded.metadata.current_version.timestamp_ms + 1,
    )
    shared.ours.commit_view(theirs, (), definition).result()
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
    shared.ours.create_view(ours, metadata)
    assert [r.id for r in sql(f"SELECT * FROM {CATALOG}.db.ours").collect()] == [7]
    sql(f"ALTER VIEW {CATALOG}.db.ours SET TBLPROPERTIES ('a' = 'b')")
    assert shared.ours.load_view(ours).metadata.properties["a"] == "b"
    sql(f"DROP VIEW {CATALOG}.db.ours")
    assert not shared.ours.view_exists(ours)
    shared.ours.drop_view(theirs)
    assert shared.ours.list_views(("db",)) == []
