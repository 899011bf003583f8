"""Java's HiveCatalog and ours on one Hive metastore: tables and views, in turns and at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog
from iceberg_pyspark.catalogs.registry import load_catalog
from tests.services.hive import hive_metastore, thrift_uri
from tests.support.encrypted_tables import files_with, key_properties, open_encrypted_catalog
from tests.support.java_in_turns import EVENTS, InTurns, open_in_java
from tests.support.oracle import Oracle
from tests.support.rows import arrow_rows

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


def test_an_encrypted_table_is_changed_in_turns(shared: InTurns, tmp_path: Path) -> None:
    """Java's release encrypts tables of this catalog alone, and stores a hash of their metadata."""
    oracle, java = shared.oracle, "java_sealed.db.sealed"
    hive = {k: shared.ours.properties[k] for k in ("uri", "warehouse")}
    open_encrypted_catalog(oracle.spark, "java_keys_for_hive", tmp_path / "wh", tmp_path)
    keys = {"encryption.kms-impl": "EncryptedCatalog$Keys"}
    open_in_java(oracle, "java_sealed", {"type": "hive", **hive, **keys})
    ours = ice.load_catalog("sealed", type="hive", **hive, **key_properties(tmp_path))
    oracle.sql(
        f"CREATE TABLE {java} (id BIGINT, v STRING) "
        "TBLPROPERTIES ('format-version'='3', 'encryption.key-id'='keyA')"
    )
    hashes = []
    for number in range(3):
        oracle.sql(f"INSERT INTO {java} VALUES ({number}, 'secret of theirs')")
        hashes.append("metadata_hash" in parameters_of(shared, "sealed"))
        table = ours.load_table("db.sealed")
        table.append(pa.table({"id": [100 + number], "v": ["secret of ours"]}))
        assert arrow_rows(table.scan().to_arrow()) == oracle.table_rows(java)
    oracle.sql(f"DELETE FROM {java} WHERE id = 101")
    assert arrow_rows(ours.load_table("db.sealed").scan().to_arrow()) == oracle.table_rows(java)
    assert hashes == [True] * 3, "otherwise the test shows nothing"
    files = Path(urlsplit(ours.load_table("db.sealed").location).path)
    assert files_with(files, ["secret", "PAR1"]) == []
    ours.drop_table("db.sealed", purge=True)


def parameters_of(shared: InTurns, name: str) -> dict[str, str]:
    assert isinstance(shared.ours, HiveCatalog)
    table = shared.ours._table(TableIdentifier(namespace=("db",), name=name))
    assert table is not None
    parameters: dict[str, str] = table["parameters"]
    return parameters
