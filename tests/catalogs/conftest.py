"""Database servers, one of each kind for all tests of this folder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog
from iceberg_pyspark.catalogs.metastore_catalog import KnownMetadata
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.spec.table_metadata import TableMetadata
from tests.services.databases import DatabaseServer, new_database
from tests.services.glue import Glue, glue_server
from tests.services.hive import hive_metastore, thrift_uri
from tests.services.mysql import mariadb
from tests.services.postgres import postgres
from tests.services.server import Server
from tests.services.toxiproxy import Toxiproxy, toxiproxy
from tests.support.hive_catalogs import create_events, open_catalog, open_with


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[DatabaseServer]:
    with postgres() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[DatabaseServer]:
    with mariadb() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_uri(postgres_server: DatabaseServer) -> str:
    """Return the URI of a PostgreSQL database that many tests share."""
    return new_database(postgres_server)


@pytest.fixture(scope="session")
def mariadb_uri(mariadb_server: DatabaseServer) -> str:
    """Return the URI of a MariaDB database that many tests share."""
    return new_database(mariadb_server)


@pytest.fixture(scope="session")
def hive_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with hive_metastore(tmp_path_factory.mktemp("hive")) as server:
        yield server


@pytest.fixture(scope="session")
def proxies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toxiproxy]:
    """Yield a server of proxies that tests can disturb."""
    with toxiproxy(tmp_path_factory.mktemp("proxy")) as server:
        yield server


@pytest.fixture
def hive_uri(hive_server: Server) -> str:
    """Return the URI of a metastore that many tests share."""
    return thrift_uri(hive_server)


@pytest.fixture
def hive_catalog(hive_uri: str, tmp_path: Path) -> HiveCatalog:
    return open_catalog(hive_uri, tmp_path)


@pytest.fixture
def hive_events(hive_catalog: HiveCatalog) -> TableIdentifier:
    """Return a new table in a namespace of its own."""
    return create_events(hive_catalog)


@pytest.fixture(params=["true", "false"])
def each_catalog(request: pytest.FixtureRequest, hive_uri: str, tmp_path: Path) -> HiveCatalog:
    """Return a Hive catalog with locks, and one without."""
    return open_with(hive_uri, tmp_path, request.param)


@pytest.fixture
def glue() -> Iterator[Glue]:
    with glue_server() as server:
        yield server


@pytest.fixture(autouse=True)
def known_metadata_is_what_the_file_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that loaded metadata equals the metadata file, even if the file is not read."""
    get_or_read = KnownMetadata.get_or_read

    def checked(
        known_metadata: KnownMetadata, location: str, read: Callable[[], TableMetadata]
    ) -> TableMetadata:
        result = get_or_read(known_metadata, location, read)
        with contextlib.suppress(IcebergError):
            assert result == read()
        return result

    monkeypatch.setattr(KnownMetadata, "get_or_read", checked)
