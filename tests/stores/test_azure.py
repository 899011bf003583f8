"""Azure: the file and folder catalog contracts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.catalogs.hadoop.catalog import FilesystemCatalog
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.open_storage import open_storage
from tests.services.azurite import ACCOUNT, AzureServer, azure_server
from tests.support.catalog_contract import CatalogContract
from tests.support.file_io_contract import FileIOContract


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    with azure_server(tmp_path_factory.mktemp("azure")) as server:
        yield server


@pytest.fixture(scope="session")
def container(azure: AzureServer) -> str:
    return f"abfss://{azure.new_container()}@{ACCOUNT}.dfs.core.windows.net"


class TestAzure(FileIOContract):
    refused_names = ("new\nline", "back\\slash")

    @pytest.fixture
    def store(self, azure: AzureServer, container: str) -> FileIO:
        return open_storage(container, azure.properties())

    @pytest.fixture
    def folder(self, container: str) -> str:
        return f"{container}/{uuid.uuid4()}"


class TestFolderCatalogOnAzure(CatalogContract):
    can_rename = False
    can_register = False
    has_namespace_properties = False

    @pytest.fixture
    def catalog(self, azure: AzureServer, container: str) -> Catalog:
        warehouse = f"{container}/{uuid.uuid4()}"
        return FilesystemCatalog("hadoop", {"warehouse": warehouse, **azure.properties()})
