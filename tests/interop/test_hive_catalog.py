"""Java's HiveCatalog and ours on one Hive metastore: tables and views, in turns and at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog
from iceberg_pyspark.catalogs.registry import load_catalog
from tests.services.hive import hive_metastore, thrift_uri
from tests.support.java_in_turns import EVENTS, InTurns, open_in_java
from tests.support.oracle import Oracle

pytestmark = pytest.mark.nightly

CATALOG = "java_hive"


@pytest.fixture(scope="module")
def shared(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InTurns]:
    folder = tmp_path_factory.mktemp("hive")
    with hive_metastore(folder) as server:
        hive = {"uri": thrift_uri(server), "warehouse": str(folder / "warehouse")}
        open_in_java(oracle, CATALOG, {"type": "hive", **hive})
        oracle.sql(f"CREATE NAMESPACE {CATALOG}.db COMMENT 'theirs'")
        ours = load_catalog(CATALOG, **hive)
        assert isinstance(ours, HiveCatalog)
        yield InTurns(oracle, CATALOG, ours)


def entry_of(shared: InTurns) -> tuple[dict[str, str], Any]:
    """Return the parameters and the storage of `db.events` in the metastore."""
    assert isinstance(shared.ours, HiveCatalog)
    table = shared.ours._table(EVENTS)
    assert table is not None
    return table["parameters"], table["sd"]


@pytest.mark.parametrize("locks", ["true", "false"])
def test_a_table_changed_in_turns_and_at_once_loses_nothing(shared: InTurns, locks: str) -> None:
    assert shared.ours.load_namespace_properties(("db",))["comment"] == "theirs"
    properties = {"engine.hive.lock-enabled": locks}
    shared.change_a_table(f"{CATALOG}.db.renamed", appends=4, properties=properties)


def test_the_metastore_is_told_what_java_tells_it(shared: InTurns) -> None:
    """Our commit and Java's set the same table parameters, except those about the commit."""
    shared.oracle.sql(
        f"CREATE TABLE {CATALOG}.db.events (id BIGINT, day DATE COMMENT 'd', p STRUCT<a: INT>) "
        f"PARTITIONED BY (days(day)) TBLPROPERTIES ('gc.enabled'='false', 'k'='v')"
    )
    insert = f"INSERT INTO {CATALOG}.db.events VALUES (1, DATE'2024-01-01', NULL)"
    shared.oracle.sql(f"ALTER TABLE {CATALOG}.db.events WRITE ORDERED BY id")
    shared.oracle.sql(insert)
    theirs, storage = entry_of(shared)
    before = shared.our_table()
    before.append(before.scan().to_arrow())
    ours, same_storage = entry_of(shared)
    assert same_storage == storage
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
    assert "k" not in entry_of(shared)[0]
    shared.oracle.sql(f"DROP TABLE {CATALOG}.db.events")
    assert not shared.ours.table_exists(EVENTS)


def _values(parameters: dict[str, str], messages: set[str]) -> dict[str, object]:
    """Return the parameters that a commit does not change; JSON is parsed, to ignore key order."""
    return {
        k: json.loads(v) if v.startswith("{") else v
        for k, v in parameters.items()
        if k not in messages
    }


def test_views_of_java_are_ours_and_ours_are_javas(shared: InTurns) -> None:
    shared.change_views()
