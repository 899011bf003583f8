"""HDFS: the file and folder catalog contracts, and many writers of one table."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import Table, TableCatalog, load_catalog
from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.open_storage import open_storage
from tests.amounts import FULL_WORK, WORK
from tests.services.hdfs import HdfsServer
from tests.support.catalog_contract import CatalogContract
from tests.support.catalog_processes import EVENTS, run_together
from tests.support.file_io_contract import FileIOContract
from tests.support.many_writers import PATIENT, SCHEMA, append_rows, without_turns
from tests.support.table_integrity import table_problems

pytestmark = pytest.mark.nightly

WRITERS, APPENDS = 16 if FULL_WORK else 3, 3 * WORK


@pytest.fixture
def folder(hdfs: HdfsServer) -> str:
    return f"{hdfs.root}/{uuid.uuid4()}"


class TestHdfs(FileIOContract):
    @pytest.fixture
    def store(self, hdfs: HdfsServer) -> FileIO:
        return open_storage(hdfs.root, {"hdfs.user": "ali"})


class TestFolderCatalogOnHdfs(CatalogContract):
    refused_names = ("a:b",)
    marks_in_namespaces = "."
    can_rename = False
    can_register = False
    has_namespace_properties = False

    @pytest.fixture
    def catalog(self, folder: str) -> Catalog:
        return FilesystemCatalog("hadoop", {"warehouse": folder})


def test_an_exclusive_create_leaves_no_other_file(hdfs: HdfsServer, folder: str) -> None:
    store = open_storage(hdfs.root, {})
    store.create_exclusive(f"{folder}/v1", b"1")
    with pytest.raises(StorageError, match="it exists already"):
        store.create_exclusive(f"{folder}/v1", b"2")
    store.write_bytes(f"{folder}/hint", b"1")
    store.write_bytes(f"{folder}/hint", b"2")
    names = sorted(f.location.rpartition("/")[2] for f in store.list_files(folder))
    assert names == ["hint", "v1"]
    # A task gets the store by pickle.
    assert pickle.loads(pickle.dumps(store)).read_bytes(f"{folder}/v1") == b"1"


def test_a_table_without_spark(folder: str) -> None:
    catalog = load_catalog("lake", type="hadoop", warehouse=folder)
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", None]})
    table = catalog.create_table("db.t", schema=rows.schema, properties={"format-version": "3"})
    table.append(rows)
    table.append(rows)
    table.delete("id > 0")
    table.append(rows)
    matches = catalog.load_table("db.t").scan(filter="id > 1").to_arrow()
    assert matches.sort_by("id").to_pylist() == [{"id": 2, "v": "b"}, {"id": 3, "v": None}]
    assert table_problems(table) == []


def write_rows(properties: Mapping[str, str], worker: int) -> int:
    """Append in this new process; return the number of acknowledged appends."""
    without_turns()
    return len(append_rows(FilesystemCatalog("lake", properties), worker, APPENDS))


def test_every_acknowledged_append_of_many_processes_is_there_once(folder: str) -> None:
    properties = {"warehouse": folder}
    catalog = FilesystemCatalog("lake", properties)
    catalog.create_namespace(EVENTS.namespace)
    TableCatalog(catalog).create_table(str(EVENTS), SCHEMA, properties=PATIENT)
    acknowledged = run_together(write_rows, [(properties, worker) for worker in range(WRITERS)])
    assert acknowledged == [APPENDS] * WRITERS
    table = Table(catalog, catalog.load_table(EVENTS))
    ids = sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())
    assert ids == [w * 10_000 + n for w in range(WRITERS) for n in range(APPENDS)]
    assert len(table.snapshots) == WRITERS * APPENDS
    assert table_problems(table) == []


def test_the_files_of_a_table_made_elsewhere_are_read(tmp_path: Path, folder: str) -> None:
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": folder}
    catalog = load_catalog("lake", **properties)
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array([1], pa.int64())})
    catalog.create_table("db.t", schema=rows.schema).append(rows)
    assert load_catalog("lake", **properties).load_table("db.t").scan().to_arrow() == rows
