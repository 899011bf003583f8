"""The catalog contract for catalogs whose warehouse is an S3 bucket."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from tests.services.s3 import S3Server
from tests.support.catalog_contract import CatalogContract

pytestmark = pytest.mark.nightly


@pytest.fixture
def warehouse(bucket: str) -> str:
    return f"s3://{bucket}/{uuid.uuid4()}"


class TestFilesystemCatalogOnS3(CatalogContract):
    marks_in_namespaces = "."
    can_rename = False
    can_register = False
    has_namespace_properties = False

    @pytest.fixture
    def catalog(self, s3: S3Server, warehouse: str) -> Catalog:
        return FilesystemCatalog("hadoop", {"warehouse": warehouse, **s3.properties()})


class TestSqlCatalogOnS3(CatalogContract):
    marks_in_namespaces = "/"

    @pytest.fixture
    def catalog(self, s3: S3Server, warehouse: str, tmp_path: Path) -> Catalog:
        uri = f"sqlite:///{tmp_path}/catalog.db"
        return SqlCatalog("sql", {"uri": uri, "warehouse": warehouse, **s3.properties()})
