"""Commits to several tables on Iceberg's own server change all tables or none."""

from __future__ import annotations

import pytest

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.changes.changes import AssertTableUUID, SetProperties
from iceberg_pyspark.changes.outcomes import Done, Refused
from iceberg_pyspark.errors import CommitConflictError
from tests.services.server import Server
from tests.support.catalog_contract import create, new_name

pytestmark = pytest.mark.nightly


def test_tables_change_together_or_not_at_all(server: Server) -> None:
    catalog = RestCatalog("rest", {"uri": server.endpoint})
    namespace = (new_name("together"),)
    catalog.create_namespace(namespace)
    names = [TableIdentifier(namespace=namespace, name=name) for name in ("a", "b")]
    uuids = [create(catalog, name).metadata.table_uuid or "" for name in names]

    def commit(value: str, required: list[str]) -> Done[None] | Refused:
        outcome = catalog.commit_transaction(
            [
                (name, (AssertTableUUID(uuid),), (SetProperties({"p": value}),))
                for name, uuid in zip(names, required, strict=True)
            ]
        )
        assert isinstance(outcome, Done | Refused)
        return outcome

    def values() -> list[str | None]:
        return [catalog.load_table(name).metadata.properties.get("p") for name in names]

    assert isinstance(commit("1", uuids), Done)
    assert values() == ["1", "1"]
    refused = commit("2", [uuids[0], "9c12d441-03fe-4693-9a96-a0705ddf69c1"])
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, CommitConflictError)
    assert values() == ["1", "1"]
