"""Session-wide servers, one of each kind, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.azurite import AzureServer, azure_server
from tests.services.gcs import GoogleServer, google_server
from tests.services.hdfs import HdfsServer, hdfs_server
from tests.services.s3 import S3Server, s3_server
from tests.services.sftp import SftpServer, sftp_server
from tests.services.toxiproxy import Proxy, Toxiproxy, toxiproxy
from tests.services.webdav import WebdavServer, webdav_server


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def bucket(s3: S3Server) -> str:
    return s3.new_bucket()


@pytest.fixture(scope="session")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleServer]:
    with google_server(tmp_path_factory.mktemp("google")) as server:
        yield server


@pytest.fixture(scope="session")
def toxic_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toxiproxy]:
    with toxiproxy(tmp_path_factory.mktemp("toxiproxy")) as server:
        yield server


@pytest.fixture(scope="session")
def proxy(toxic_server: Toxiproxy, s3: S3Server) -> Proxy:
    """Return a proxy in front of the S3 server that a test can disturb."""
    return toxic_server.proxy("s3", s3.endpoint)


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    """Yield one server of Azure for all tests of this folder."""
    with azure_server(tmp_path_factory.mktemp("azure")) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """Yield one name node for all tests of this folder."""
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(scope="session")
def webdav(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebdavServer]:
    """Yield one WebDAV server for all tests of this folder."""
    with webdav_server(tmp_path_factory.mktemp("webdav")) as server:
        yield server


@pytest.fixture(scope="session")
def sftp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpServer]:
    """Yield one SFTP server for all tests of this folder."""
    with sftp_server(tmp_path_factory.mktemp("sftp")) as server:
        yield server
