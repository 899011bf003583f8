"""PyIceberg's HiveCatalog and ours on the same metastore, in turns."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.hive import HiveCatalog as PyIcebergCatalog

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog
from tests.support.catalog_contract import create, new_name, set_property

pytestmark = pytest.mark.nightly


def test_each_loads_commits_renames_and_drops_what_the_other_did(
    hive_uri: str, tmp_path: Path
) -> None:
    properties = {"uri": hive_uri, "warehouse": str(tmp_path), "hive.hive2-compatible": "true"}
    ours, theirs = HiveCatalog("lake", properties), PyIcebergCatalog("lake", **properties)
    db = new_name("db")
    events = TableIdentifier(namespace=(db,), name="events")
    ours.create_namespace((db,), {"comment": "c"})
    assert theirs.load_namespace_properties(db)["comment"] == "c"
    created = create(ours, events)
    table = theirs.load_table(f"{db}.events")
    assert table.metadata_location == created.metadata_location
    with table.transaction() as transaction:
        transaction.set_properties(theirs="1")
    done = set_property(ours, events, "ours", "2")
    assert done.metadata.properties["theirs"] == "1"
    theirs.rename_table(f"{db}.events", f"{db}.renamed")
    renamed = TableIdentifier(namespace=(db,), name="renamed")
    assert ours.list_tables((db,)) == [renamed]
    ours.rename_table(renamed, events)
    assert theirs.load_table(f"{db}.events").properties["ours"] == "2"
    theirs.create_table(f"{db}.made", table.schema(), properties={"by": "them"})
    identifier = TableIdentifier(namespace=(db,), name="made")
    assert set_property(ours, identifier, "a", "1").metadata.properties["by"] == "them"
    theirs.drop_table(f"{db}.made")
    ours.drop_table(events)
    assert theirs.list_tables(db) == []
