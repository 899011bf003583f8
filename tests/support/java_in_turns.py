"""Java and this package change tables and views of one metastore, in turns and at once."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from iceberg_pyspark.changes.view_changes import new_view_metadata, view_definition_updates
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import LongType, NestedField
from iceberg_pyspark.spec.views import SqlRepresentation, ViewMetadata
from tests.support.oracle import Oracle

EVENTS = TableIdentifier(namespace=("db",), name="events")
THEIRS = TableIdentifier(namespace=("db",), name="theirs")
OURS = TableIdentifier(namespace=("db",), name="ours")
RETRIES = {"commit.retry.num-retries": "50", "commit.retry.min-wait-ms": "10"}


def open_in_java(oracle: Oracle, name: str, properties: Mapping[str, str]) -> None:
    """Configure a catalog of Java's connector, which loads each table anew."""
    prefix = f"spark.sql.catalog.{name}"
    oracle.spark.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
    for key, value in {**properties, "cache-enabled": "false"}.items():
        oracle.spark.conf.set(f"{prefix}.{key}", value)


@dataclass(frozen=True)
class InTurns:
    """A metastore that Java opens under `name`."""

    oracle: Oracle
    name: str
    ours: HiveCatalog | SqlCatalog

    def our_table(self) -> Table:
        return Table(self.ours, self.ours.load_table(EVENTS))

    def append(self, *ids: int) -> None:
        self.our_table().append(pa.table({"id": pa.array(ids, pa.int64())}))

    def insert(self, id_: int) -> None:
        self.oracle.sql(f"INSERT INTO {self.name}.db.events VALUES ({id_})")

    def java_ids(self) -> list[int]:
        rows = self.oracle.sql(f"SELECT id FROM {self.name}.db.events").collect()
        return sorted(row.id for row in rows)

    def change_a_table(
        self, renamed: str, appends: int, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create, change, rename and drop `db.events`; Java renames it to `renamed`."""
        sql = self.oracle.sql
        all_properties = {**RETRIES, **(properties or {})}
        listed = ", ".join(f"'{key}'='{value}'" for key, value in all_properties.items())
        sql(f"CREATE TABLE {self.name}.db.events (id BIGINT) TBLPROPERTIES ({listed})")
        self.append(1)
        self.insert(2)
        self.append(3)
        assert self.java_ids() == [1, 2, 3]

        def insert_by_java() -> None:
            for n in range(appends):
                self.insert(100 + n)

        java = threading.Thread(target=insert_by_java)
        java.start()
        for n in range(appends):
            self.append(200 + n)
        java.join()
        expected = [1, 2, 3, *range(100, 100 + appends), *range(200, 200 + appends)]
        assert self.java_ids() == expected
        assert sorted(self.our_table().scan().to_arrow()["id"].to_pylist()) == expected
        sql(f"ALTER TABLE {self.name}.db.events RENAME TO {renamed}")
        identifier = TableIdentifier(namespace=("db",), name="renamed")
        assert self.ours.list_tables(("db",)) == [identifier]
        self.ours.rename_table(identifier, EVENTS)
        assert self.java_ids() == expected
        self.ours.drop_table(EVENTS)
        assert sql(f"SHOW TABLES IN {self.name}.db").collect() == []

    def change_views(self) -> None:
        """Create, change and drop the views `db.theirs`, of Java, and `db.ours`."""
        sql = self.oracle.sql
        sql(f"CREATE VIEW {self.name}.db.theirs COMMENT 'c' AS SELECT 1L AS id")
        assert self.ours.list_views(("db",)) == [THEIRS]
        theirs = self.ours.load_view(THEIRS).metadata
        assert theirs.current_version.sql("spark") == "SELECT 1L AS id"
        assert [(f.name, f.type) for f in theirs.schema.fields] == [("id", LongType())]
        definition = view_definition_updates(
            theirs.schema,
            [SqlRepresentation("SELECT 2L AS id", "spark")],
            default_namespace=("db",),
            now_ms=theirs.current_version.timestamp_ms + 1,
        )
        self.ours.commit_view(THEIRS, (), definition).result()
        assert [r.id for r in sql(f"SELECT * FROM {self.name}.db.theirs").collect()] == [2]
        sql(f"CREATE OR REPLACE VIEW {self.name}.db.theirs AS SELECT 3L AS id")
        assert self.ours.load_view(THEIRS).metadata.current_version_id == 3

        created = self.ours.create_view(OURS, self._view_over_theirs())
        assert [r.id for r in sql(f"SELECT * FROM {self.name}.db.ours").collect()] == [7]
        assert self._java_views() == {"ours", "theirs"}
        sql(f"ALTER VIEW {self.name}.db.ours SET TBLPROPERTIES ('a' = 'b')")
        changed = self.ours.load_view(OURS).metadata
        assert changed.properties["a"] == "b"
        assert changed.view_uuid == created.metadata.view_uuid
        sql(f"DROP VIEW {self.name}.db.ours")
        assert not self.ours.view_exists(OURS)
        self.ours.drop_view(THEIRS)
        assert self.ours.list_views(("db",)) == []
        assert self._java_views() == set()

    def _view_over_theirs(self) -> ViewMetadata:
        now_ms = 1_700_000_000_000
        definition = view_definition_updates(
            Schema(fields=(NestedField(field_id=1, name="id", type=LongType()),)),
            [SqlRepresentation("SELECT id + 4 AS id FROM theirs", "spark")],
            default_namespace=("db",),
            default_catalog=self.name,
            now_ms=now_ms,
        )
        location = self.ours.default_view_location(OURS)
        return new_view_metadata(
            definition, location, {}, view_uuid=str(uuid.uuid4()), now_ms=now_ms
        )

    def _java_views(self) -> set[str]:
        # Temporary views in the session come from other tests.
        views = self.oracle.sql(f"SHOW VIEWS IN {self.name}.db").collect()
        return {view.viewName for view in views if not view.isTemporary}
