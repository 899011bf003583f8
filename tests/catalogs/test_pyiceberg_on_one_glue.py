"""PyIceberg's GlueCatalog and ours on the same data catalog, in turns."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.catalog.glue import GlueCatalog as PyIcebergCatalog

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.glue.glue_catalog import GlueCatalog
from tests.services.glue import Glue
from tests.support.catalog_contract import create, set_property

EVENTS = TableIdentifier(namespace=("db",), name="events")


def test_each_loads_commits_renames_and_drops_what_the_other_did(
    glue: Glue, tmp_path: Path
) -> None:
    properties = glue.properties(tmp_path)
    ours, theirs = GlueCatalog("lake", properties), PyIcebergCatalog("lake", **properties)
    ours.create_namespace(("db",), {"comment": "c", "owner": "me"})
    assert theirs.list_namespaces() == [("db",)]
    created = create(ours, EVENTS)
    table = theirs.load_table("db.events")
    assert table.metadata_location == created.metadata_location
    with table.transaction() as transaction:
        transaction.set_properties(theirs="1")
    done = set_property(ours, EVENTS, "ours", "2")
    assert done.metadata.properties["theirs"] == "1"
    theirs.rename_table("db.events", "db.renamed")
    renamed = TableIdentifier(namespace=("db",), name="renamed")
    assert ours.list_tables(("db",)) == [renamed]
    ours.rename_table(renamed, EVENTS)
    assert theirs.load_table("db.events").properties["ours"] == "2"
    theirs.create_table("db.made", table.schema(), properties={"by": "them"})
    identifier = TableIdentifier(namespace=("db",), name="made")
    assert set_property(ours, identifier, "a", "1").metadata.properties["by"] == "them"
    theirs.drop_table("db.made")
    ours.drop_table(EVENTS)
    assert theirs.list_tables("db") == []
