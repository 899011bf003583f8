"""Azure: the file and folder catalog contracts."""

from __future__ import annotations

import uuid

import pytest

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.open_storage import open_storage
from tests.services.azurite import AzureServer
from tests.support.catalog_contract import CatalogContract
from tests.support.file_io_contract import FileIOContract

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="session")
def container(azure: AzureServer) -> str:
    return azure.new_root()


class TestAzure(FileIOContract):
    refused_names = ("new\nline", "back\\slash")

    @pytest.fixture
    def store(self, azure: AzureServer, container: str) -> FileIO:
        return open_storage(container, azure.properties())

    @pytest.fixture
    def folder(self, container: str) -> str:
        return f"{container}/{uuid.uuid4()}"


class TestFolderCatalogOnAzure(CatalogContract):
    marks_in_namespaces = "."
    can_rename = False
    can_register = False
    has_namespace_properties = False

    @pytest.fixture
    def catalog(self, azure: AzureServer, container: str) -> Catalog:
        warehouse = f"{container}/{uuid.uuid4()}"
        return FilesystemCatalog("hadoop", {"warehouse": warehouse, **azure.properties()})
