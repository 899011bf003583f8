"""PyIceberg's SqlCatalog and ours on the same database, in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType, NestedField, StringType

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from iceberg_pyspark.changes.outcomes import Outcome
from iceberg_pyspark.errors import CommitConflictError, NoSuchTableError
from tests.services.databases import new_database
from tests.support.catalog_contract import create, set_property

EVENTS = TableIdentifier(namespace=("db", "inner"), name="events")
NAME = ("db", "inner", "events")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.nightly)])
def properties(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    if request.param == "sqlite":
        uri = f"sqlite:///{tmp_path}/catalog.db"
    else:
        uri = new_database(request.getfixturevalue("postgres_server"))
        uri = uri.replace("postgresql:", "postgresql+psycopg:")
    return {"uri": uri, "warehouse": str(tmp_path / "warehouse")}


@pytest.fixture
def theirs(properties: dict[str, str]) -> Iterator[PyIcebergCatalog]:
    catalog = PyIcebergCatalog("lake", **properties)
    yield catalog
    catalog.engine.dispose()


@pytest.fixture
def ours(properties: dict[str, str]) -> SqlCatalog:
    return SqlCatalog("lake", properties)


def test_pyiceberg_loads_and_commits_our_table(
    ours: SqlCatalog, properties: dict[str, str]
) -> None:
    ours.create_namespace(EVENTS.namespace, {"owner": "me"})
    created = create(ours, EVENTS, {"note": "ours"})
    theirs = PyIcebergCatalog("lake", **properties)
    assert theirs.list_namespaces() == [("db",)]
    assert theirs.list_namespaces("db") == [("db", "inner")]
    assert theirs.load_namespace_properties(EVENTS.namespace)["owner"] == "me"
    assert theirs.list_tables(EVENTS.namespace) == [NAME]
    table = theirs.load_table(NAME)
    assert table.metadata_location == created.metadata_location
    assert str(table.metadata.table_uuid) == created.metadata.table_uuid
    assert [(f.field_id, f.name, f.required) for f in table.schema().fields] == [
        (1, "id", True),
        (2, "v", False),
    ]
    set_property(ours, EVENTS, "a", "1")
    assert table.refresh().properties["a"] == "1"
    with table.transaction() as transaction:
        transaction.set_properties(b="2")
    assert ours.load_table(EVENTS).metadata.properties.items() >= {
        ("note", "ours"),
        ("a", "1"),
        ("b", "2"),
    }
    theirs.engine.dispose()


def test_table_of_pyiceberg_is_loaded_and_committed(
    theirs: PyIcebergCatalog, properties: dict[str, str]
) -> None:
    theirs.create_namespace(EVENTS.namespace, {"owner": "them"})
    schema = Schema(
        NestedField(1, "id", LongType(), required=True), NestedField(2, "v", StringType())
    )
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket"))
    table = theirs.create_table(NAME, schema, partition_spec=spec, properties={"note": "theirs"})
    ours = SqlCatalog("lake", properties)
    assert ours.list_namespaces() == [("db",)]
    assert ours.load_namespace_properties(EVENTS.namespace) == {"owner": "them"}
    assert ours.list_tables(EVENTS.namespace) == [EVENTS]
    loaded = ours.load_table(EVENTS)
    assert loaded.metadata_location == table.metadata_location
    assert [str(f.transform) for f in loaded.metadata.default_spec.fields] == ["bucket[4]"]
    done = set_property(ours, EVENTS, "a", "1")
    assert "/00001-" in done.metadata_location
    assert table.refresh().properties == {**loaded.metadata.properties, "a": "1"}
    with theirs.engine.connect() as connection:
        rows = connection.execute(sa.text("SELECT * FROM iceberg_tables")).all()
    assert [tuple(row) for row in rows] == [
        (
            *("lake", "db.inner", "events"),
            *(done.metadata_location, loaded.metadata_location, "TABLE"),
        )
    ]


def test_a_commit_of_ours_inside_theirs_refuses_theirs(
    ours: SqlCatalog, theirs: PyIcebergCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours.create_namespace(EVENTS.namespace)
    create(ours, EVENTS)
    table = theirs.load_table(NAME)
    write = PyIcebergCatalog._write_metadata

    def late(**arguments: Any) -> None:
        monkeypatch.undo()
        set_property(ours, EVENTS, "winner", "ours")
        write(**arguments)

    monkeypatch.setattr(PyIcebergCatalog, "_write_metadata", staticmethod(late))
    with (
        pytest.raises(CommitFailedException),
        table.transaction() as transaction,
    ):
        transaction.set_properties({"commit.retry.num-retries": "0", "loser": "theirs"})
    assert "loser" not in ours.load_table(EVENTS).metadata.properties


def test_a_commit_of_theirs_inside_ours_refuses_ours(
    ours: SqlCatalog, theirs: PyIcebergCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours.create_namespace(EVENTS.namespace)
    create(ours, EVENTS)
    swap = ours._swap_table

    def late(base: LoadedTable, new_table: LoadedTable) -> Outcome[None]:
        with theirs.load_table(NAME).transaction() as transaction:
            transaction.set_properties(winner="theirs")
        return swap(base, new_table)

    monkeypatch.setattr(ours, "_swap_table", late)
    with pytest.raises(CommitConflictError):
        set_property(ours, EVENTS, "loser", "ours")
    properties = theirs.load_table(NAME).properties
    assert (properties["winner"], "loser" in properties) == ("theirs", False)


def test_renames_and_drops_are_seen_on_both_sides(
    ours: SqlCatalog, theirs: PyIcebergCatalog
) -> None:
    ours.create_namespace(EVENTS.namespace)
    create(ours, EVENTS)
    theirs.rename_table(NAME, ("db", "inner", "renamed"))
    renamed = TableIdentifier(namespace=EVENTS.namespace, name="renamed")
    assert ours.list_tables(EVENTS.namespace) == [renamed]
    with pytest.raises(NoSuchTableError):
        ours.load_table(EVENTS)
    ours.rename_table(renamed, EVENTS)
    assert theirs.table_exists(NAME)
    ours.drop_table(EVENTS)
    assert not theirs.table_exists(NAME)
    theirs.drop_namespace(EVENTS.namespace)
    assert not ours.namespace_exists(EVENTS.namespace)
