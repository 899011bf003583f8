"""Three clients of one REST server: this package, PyIceberg and Java take turns on one table."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog as load_pyiceberg_catalog

import iceberg_pyspark as ice
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.changes.view_changes import new_view_metadata, view_definition_updates
from iceberg_pyspark.spec.views import SqlRepresentation
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from tests.amounts import FULL_WORK
from tests.services.server import Server
from tests.support.oracle import Oracle

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyiceberg"),
]

TURNS = 3 if FULL_WORK else 2


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "v": pa.array([f"v{i}" for i in ids], pa.string()),
        }
    )


def test_three_clients_in_turns_lose_nothing(rest: Server, oracle: Oracle) -> None:
    ours = ice.load_catalog("ours", type="rest", uri=rest.endpoint)
    theirs = load_pyiceberg_catalog("theirs", type="rest", uri=rest.endpoint)
    spark = oracle.spark
    spark.conf.set("spark.sql.catalog.java_rest", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.java_rest.type", "rest")
    spark.conf.set("spark.sql.catalog.java_rest.uri", rest.endpoint)
    spark.conf.set("spark.sql.catalog.java_rest.cache-enabled", "false")

    ours.create_namespace("turns")
    ours.create_table(
        "turns.events", schema="id BIGINT, v STRING", partitioned_by=["bucket(4, id)"]
    )
    expected: list[int] = []
    for turn in range(TURNS):
        first = 3 * turn
        ours.load_table("turns.events").append(rows(first))
        theirs.load_table("turns.events").append(rows(first + 1))
        spark.sql(f"INSERT INTO java_rest.turns.events VALUES ({first + 2}, 'v{first + 2}')")
        expected += [first, first + 1, first + 2]
        by_us = ours.load_table("turns.events").scan().to_arrow()["id"].to_pylist()
        by_them = theirs.load_table("turns.events").scan().to_arrow()["id"].to_pylist()
        by_java = [r.id for r in spark.sql("SELECT id FROM java_rest.turns.events").collect()]
        assert sorted(by_us) == sorted(by_them) == sorted(by_java) == expected

    # Changes of metadata: columns, properties, tags.
    table = ours.load_table("turns.events")
    table.update_schema().add_column("w", "INT").commit()
    spark.sql("ALTER TABLE java_rest.turns.events SET TBLPROPERTIES ('written-by' = 'java')")
    spark.sql("ALTER TABLE java_rest.turns.events CREATE TAG by_java")
    loaded = ours.load_table("turns.events")
    assert loaded.properties["written-by"] == "java"
    assert spark.table("java_rest.turns.events").columns == ["id", "v", "w"]
    tagged = loaded.scan(selector=SnapshotSelector(tag="by_java"))
    assert tagged.to_arrow().num_rows == 3 * TURNS

    # Java's Spark reads our view, and we read Java's view.
    name = TableIdentifier(namespace=("turns",), name="by_us")
    catalog = RestCatalog("ours", {"uri": rest.endpoint})
    spark.sql("CREATE VIEW java_rest.turns.by_java AS SELECT id FROM java_rest.turns.events")
    view_of_java = catalog.load_view(TableIdentifier(namespace=("turns",), name="by_java")).metadata
    assert "turns.events" in (view_of_java.current_version.sql("spark") or "")
    definition = view_definition_updates(
        view_of_java.schema,
        (SqlRepresentation(f"SELECT id FROM events WHERE id > {3 * TURNS - 3}", "spark"),),
        default_namespace=("turns",),
        default_catalog="java_rest",
        now_ms=1_700_000_000_000,
    )
    location = catalog.default_view_location(name)
    uuid = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
    view = new_view_metadata(definition, location, {}, view_uuid=uuid, now_ms=1_700_000_000_000)
    catalog.create_view(name, view)
    assert sorted(spark.table("java_rest.turns.by_us").collect()) == [
        (3 * TURNS - 2,),
        (3 * TURNS - 1,),
    ]
