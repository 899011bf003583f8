"""Tables whose files are in the memory of this process: `memory://<name>` as a warehouse."""

from __future__ import annotations

import os
import pickle
import uuid

import pyarrow as pa
import pytest

from iceberg_pyspark import TableCatalog, load_catalog, load_table
from iceberg_pyspark.errors import InvalidRequestError, StorageError, UnsupportedFeatureError
from iceberg_pyspark.storage.files import memory_files

ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})


@pytest.fixture
def warehouse() -> str:
    return f"memory://{uuid.uuid4()}"


@pytest.fixture
def catalog(warehouse: str) -> TableCatalog:
    return load_catalog("lake", type="memory", warehouse=warehouse)


def files(warehouse: str) -> list[str]:
    store = memory_files.process_memory(warehouse)
    return [file.location for file in store.list_files(warehouse)]


def test_a_table_lives_in_memory_until_it_is_purged(catalog: TableCatalog, warehouse: str) -> None:
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.t", schema="id bigint, v string")
    table.append(ROWS)
    table.append(ROWS.slice(0, 1))
    table = catalog.load_table("db.t")
    assert table.location == f"{warehouse}/db/t"
    assert sorted(table.scan(filter="id < 3").to_arrow()["id"].to_pylist()) == [1, 1, 2]
    assert table.verify().ok
    by_path = load_table(f"{warehouse}/db/t/metadata/{table_file(warehouse)}")
    assert by_path.scan().count() == 4
    catalog.drop_table("db.t", purge=True)
    assert files(warehouse) == []


def table_file(warehouse: str) -> str:
    names = [f.rpartition("/")[2] for f in files(warehouse) if f.endswith(".metadata.json")]
    return max(names)


def test_tasks_of_other_processes_are_refused_by_name(catalog: TableCatalog) -> None:
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.t", schema="id bigint")
    with pytest.raises(UnsupportedFeatureError, match=r"memory of one process.*Spark's tasks"):
        pickle.dumps(table.io)


def test_a_forked_process_has_no_files(
    catalog: TableCatalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.t", schema="id bigint")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(StorageError, match="outside of the process"):
        table.append(ROWS.select(["id"]))


def test_a_location_alone_opens_no_memory(catalog: TableCatalog) -> None:
    """Metadata that others wrote must not name the memory of this process."""
    with pytest.raises(StorageError, match="'memory' is not supported outside"):
        load_table(f"memory://{uuid.uuid4()}/db/t/metadata/v1.metadata.json")
    catalog.create_namespace("db", if_not_exists=True)
    with pytest.raises(StorageError, match="'memory' is not supported outside"):
        catalog.create_table("db.t", schema="id bigint", location=f"memory://{uuid.uuid4()}/t")


def test_a_warehouse_has_a_name() -> None:
    with pytest.raises(InvalidRequestError, match="memory://<name>"):
        load_catalog("lake", type="memory", warehouse="memory:///x")
