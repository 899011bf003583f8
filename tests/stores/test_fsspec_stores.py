"""Stores of fsspec, on a WebDAV and an SFTP server: files, and tables in SQL catalogs."""

from __future__ import annotations

import socket
import traceback
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import Table, TableCatalog, load_catalog, load_table
from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from iceberg_pyspark.errors import (
    FileNotWrittenError,
    IcebergError,
    StorageError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.storage import fsspec_io
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.open_storage import open_storage
from tests.services.sftp import SftpServer
from tests.services.webdav import WebdavServer
from tests.support.catalog_contract import CatalogContract
from tests.support.file_io_contract import FileIOContract
from tests.support.ports import LOOPBACK
from tests.support.table_integrity import table_problems
from tests.support.threads import at_once

_REFUSED = ("back\\slash", "new\nline")


class TestWebdav(FileIOContract):
    refused_names = (*_REFUSED, "a b ")
    creates_exclusively = False

    @pytest.fixture
    def folder(self, webdav: WebdavServer) -> str:
        return webdav.new_folder()

    @pytest.fixture
    def store(self, webdav: WebdavServer, folder: str) -> FileIO:
        return open_storage(folder, webdav.properties)


class TestSftp(FileIOContract):
    refused_names = _REFUSED
    creates_exclusively = False

    @pytest.fixture
    def folder(self, sftp: SftpServer) -> str:
        return sftp.new_folder()

    @pytest.fixture
    def store(self, sftp: SftpServer, folder: str) -> FileIO:
        return open_storage(folder, sftp.properties)


@pytest.fixture(params=["webdav", "sftp"])
def server(request: pytest.FixtureRequest) -> WebdavServer | SftpServer:
    found: WebdavServer | SftpServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def folder(server: WebdavServer | SftpServer) -> str:
    return server.new_folder()


@pytest.fixture
def properties(server: WebdavServer | SftpServer, folder: str, tmp_path: Path) -> dict[str, str]:
    return {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": folder,
        "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
        **server.properties,
    }


@pytest.mark.parametrize("server", ["webdav"], indirect=True)
class TestSqlCatalogOnWebdav(CatalogContract):
    marks_in_namespaces = "/"
    refused_names = ("t ",)

    @pytest.fixture
    def catalog(self, properties: Mapping[str, str]) -> Catalog:
        return SqlCatalog("sql", properties)


@pytest.mark.parametrize("server", ["sftp"], indirect=True)
class TestSqlCatalogOnSftp(CatalogContract):
    marks_in_namespaces = "/"

    @pytest.fixture
    def catalog(self, properties: Mapping[str, str]) -> Catalog:
        return SqlCatalog("sql", properties)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"{i}/ü %" for i in ids]})


def now() -> datetime:
    return datetime.now(timezone.utc)


def new_lake(properties: Mapping[str, str]) -> TableCatalog:
    lake = load_catalog("lake", **properties)
    lake.create_namespace("db")
    return lake


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_a_table_is_written_changed_and_maintained(properties: Mapping[str, str]) -> None:
    catalog = new_lake(properties)
    table = catalog.create_table(
        "db.t",
        "id BIGINT, v STRING",
        partitioned_by=["v"],
        properties={"format-version": "3", "write.delete.mode": "merge-on-read"},
    )
    for start in (0, 3, 6):
        table.append(rows(start, start + 1, start + 2))
    table.delete("id = 4 or v = '7/ü %'")
    assert ids_of(load_catalog("lake", **properties).load_table("db.t")) == [0, 1, 2, 3, 5, 6, 8]
    assert table_problems(table) == []
    assert table.verify(check_files=True).findings == ()

    maintenance = table.maintenance()
    maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    maintenance.rewrite_manifests()
    expired = maintenance.expire_snapshots(older_than=now() + timedelta(days=1), retain_last=1)
    assert expired.deleted_data_files_count > 0
    orphan = f"{table.location}/data/v=%2F/{uuid.uuid4()}.parquet"
    table.io.write_bytes(orphan, b"x")
    removed = maintenance.remove_orphan_files(older_than=now() + timedelta(days=1), force=True)
    assert removed.orphan_file_locations == (orphan,)
    table.refresh()
    assert ids_of(table) == [0, 1, 2, 3, 5, 6, 8]
    assert table.verify(check_files=True).findings == ()

    io, location = table.io, table.location
    with pytest.raises(StorageError, match="refused"):
        io.read_bytes(f"ftp://127.0.0.1:9/{uuid.uuid4()}.parquet")
    catalog.drop_table("db.t", purge=True)
    assert list(io.list_files(location)) == []


def test_racing_appends_are_there_once(properties: Mapping[str, str]) -> None:
    new_lake(properties).create_table("db.t", "id BIGINT, v STRING")
    at_once(4, lambda n: load_catalog("lake", **properties).load_table("db.t").append(rows(n)))
    assert ids_of(load_catalog("lake", **properties).load_table("db.t")) == [0, 1, 2, 3]


def test_a_table_by_its_path_is_read_and_not_changed(
    server: WebdavServer | SftpServer, folder: str, properties: Mapping[str, str]
) -> None:
    written = new_lake(properties).create_table("db.t", "id BIGINT, v STRING")
    written.append(rows(1, 2))
    files = {f.location for f in written.io.list_files(folder)}
    table = load_table(written.loaded.metadata_location, **server.properties)
    assert ids_of(table) == [1, 2]
    with pytest.raises(IcebergError):
        table.append(rows(3))
    with pytest.raises(UnsupportedFeatureError, match="no name can be taken exclusively"):
        load_catalog("folders", type="hadoop", warehouse=folder, **server.properties)
    assert {f.location for f in written.io.list_files(folder)} == files


def test_a_folder_of_numbered_metadata_is_read_and_not_changed(
    server: WebdavServer | SftpServer, folder: str, tmp_path: Path
) -> None:
    made = load_catalog("folders", type="hadoop", warehouse=str(tmp_path / "wh"))
    table = made.create_table("db.t", "id BIGINT, v STRING")
    table.append(rows(1))
    copy = table.maintenance().rewrite_table_path(
        source_prefix=table.location, target_prefix=f"{folder}/t"
    )
    io = open_storage(folder, server.properties)
    for line in Path(str(copy.file_list_location)).read_text().splitlines():
        source, _, target = line.partition(",")
        io.write_bytes(target, Path(source).read_bytes())
    moved = load_table(f"{folder}/t", **server.properties)
    assert ids_of(moved) == [1]
    files = {f.location for f in io.list_files(folder)}
    with pytest.raises(FileNotWrittenError, match="cannot create a file exclusively"):
        moved.append(rows(2))
    assert {f.location for f in io.list_files(folder)} == files


def test_a_wrong_password_is_a_refusal_that_shows_no_secret(
    server: WebdavServer | SftpServer, folder: str
) -> None:
    wrong = {
        k: v.replace(server.password, "not-the-password") for k, v in server.properties.items()
    }
    with pytest.raises(StorageError, match="access denied") as caught:
        open_storage(folder, wrong).read_bytes(f"{folder}/f")
    texts = "".join(traceback.format_exception(caught.value))
    assert "not-the-password" not in texts


def test_a_server_that_does_not_answer_is_an_error_in_time(
    server: WebdavServer | SftpServer,
) -> None:
    with socket.create_server((LOOPBACK, 0)) as silent:
        address = f"{LOOPBACK}:{silent.getsockname()[1]}"
        location, properties = f"sftp://{address}/f", {"fsspec.sftp.banner_timeout": "1"}
        if isinstance(server, WebdavServer):
            location = "webdav://lake/f"
            properties = {"fsspec.webdav.base_url": f"http://{address}"}
            properties |= {"fsspec.webdav.timeout": "1", "fsspec.webdav.retry": "false"}
        with pytest.raises(StorageError, match=r"in time|SSHException"):
            open_storage(location, properties).read_bytes(location)


def test_a_broken_connection_is_opened_again(sftp: SftpServer) -> None:
    folder = sftp.new_folder()
    io = open_storage(folder, sftp.properties)
    io.write_bytes(f"{folder}/f", b"x")
    for system in fsspec_io._systems.values():
        if hasattr(system, "ftp"):
            system.client.close()
    assert io.read_bytes(f"{folder}/f") == b"x"


def test_a_write_that_fails_leaves_no_file(properties: Mapping[str, str], folder: str) -> None:
    table = new_lake(properties).create_table("db.t", "id BIGINT, v STRING")
    files = {f.location for f in table.io.list_files(folder)}

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows(*range(100_000)).to_batches()
        raise RuntimeError("the source has failed")

    with pytest.raises(RuntimeError, match="the source has failed"):
        table.append(pa.RecordBatchReader.from_batches(rows().schema, batches()))
    assert {f.location for f in table.io.list_files(folder)} == files


def test_a_truncated_upload_is_an_error(
    server: WebdavServer | SftpServer, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    io = open_storage(folder, server.properties)
    io.write_bytes(f"{folder}/first", b"x")
    for system in fsspec_io._systems.values():
        monkeypatch.setattr(system, "put_file", lambda _, path, s=system: s.pipe_file(path, b"12"))
    with pytest.raises(StorageError, match="3 bytes were sent, and the server has 2"):
        io.write_bytes(f"{folder}/second", b"123")
