"""Stores of fsspec, on a WebDAV and an SFTP server: the file contract, and tables in SQL catalogs."""

from __future__ import annotations

from typing import Any

import pytest

from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.open_storage import open_storage
from tests.services.sftp import SftpServer
from tests.services.webdav import WebdavServer
from tests.support.file_io_contract import FileIOContract

_REFUSED = ("back\\slash", "new\nline", "a b ")


class TestWebdav(FileIOContract):
    refused_names = _REFUSED
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


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"{i}/ü %" for i in ids]})


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_a_table_is_written_changed_and_maintained(properties: Mapping[str, str]) -> None:
    catalog = load_catalog("lake", **properties)
    table = catalog.create_table(
        "db.t",
        "id BIGINT, v STRING",
        partition_by=["v"],
        properties={"format-version": "3", "gc.enabled": "true"},
    )
    for start in (0, 3, 6):
        table.append(rows(start, start + 1, start + 2))
    table.delete("id = 4 or v = '7/ü %'")
    assert ids_of(load_catalog("lake", **properties).load_table("db.t")) == [0, 1, 2, 3, 5, 6, 8]
    assert table_problems(table) == []
    assert [f for f in table.verify().findings if f.severity != "info"] == []

    maintenance = table.maintenance()
    maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    maintenance.rewrite_manifests()
    orphan = f"{table.location}/data/orphan-{uuid.uuid4()}.parquet"
    table.io.write_bytes(orphan, b"x")
    later = datetime.now(timezone.utc) + timedelta(days=1)
    maintenance.expire_snapshots(older_than=later, retain_last=1)
    removed = maintenance.remove_orphan_files(older_than=later)
    assert orphan in [f.location if hasattr(f, "location") else f for f in removed.locations]
    table.refresh()
    assert ids_of(table) == [0, 1, 2, 3, 5, 6, 8]
    assert table_problems(table) == []

    io, location = table.io, table.location
    catalog.drop_table("db.t", purge=True)
    assert list(io.list_files(location)) == []
