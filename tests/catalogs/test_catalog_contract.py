"""The contract of `tests/support/catalog_contract.py`, run for each catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.catalogs.glue.glue_catalog import GlueCatalog
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from tests.services.glue import Glue
from tests.support.catalog_contract import CatalogContract
from tests.support.change_contract import ChangeContract
from tests.support.sql_catalogs import create_v0_tables
from tests.support.view_contract import ViewChangeContract, ViewContract


class TestMemoryCatalog(ViewChangeContract, ChangeContract):
    marks_in_namespaces = "/."

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        return MemoryCatalog("memory", {"warehouse": str(tmp_path)})


class TestFilesystemCatalog(CatalogContract, ChangeContract):
    marks_in_namespaces = "."
    can_rename = False
    can_register = False
    has_namespace_properties = False

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        return FilesystemCatalog("hadoop", {"warehouse": str(tmp_path)})


class TestSqliteCatalog(ViewChangeContract, ChangeContract):
    marks_in_namespaces = "/"

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        uri = f"sqlite:///{tmp_path}/catalog.db"
        return SqlCatalog("sql", {"uri": uri, "warehouse": str(tmp_path / "warehouse")})


@pytest.mark.nightly
class TestSqliteCatalogInMemory(ViewChangeContract, ChangeContract):
    marks_in_namespaces = "/"

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        return SqlCatalog("sql", {"uri": "sqlite://", "warehouse": str(tmp_path)})


@pytest.mark.nightly
class TestSqliteCatalogOfSchemaV0(ViewContract, ChangeContract):
    marks_in_namespaces = "/"
    has_views = False

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        create_v0_tables(tmp_path / "catalog.db")
        uri = f"jdbc:sqlite:{tmp_path}/catalog.db"
        return SqlCatalog("sql", {"uri": uri, "warehouse": f"{tmp_path}/warehouse"})


@pytest.mark.nightly
class TestPostgresCatalog(ViewChangeContract, ChangeContract):
    marks_in_namespaces = "/"

    @pytest.fixture
    def catalog(self, postgres_uri: str, tmp_path: Path) -> Catalog:
        return SqlCatalog("sql", {"uri": postgres_uri, "warehouse": str(tmp_path)})


@pytest.mark.nightly
class TestMariaDBCatalog(ViewChangeContract, ChangeContract):
    marks_in_namespaces = "/"

    @pytest.fixture
    def catalog(self, mariadb_uri: str, tmp_path: Path) -> Catalog:
        return SqlCatalog("sql", {"uri": mariadb_uri, "warehouse": str(tmp_path)})


class TestGlueCatalog(CatalogContract, ChangeContract):
    has_nested_namespaces = False
    has_odd_names = False

    @pytest.fixture
    def catalog(self, glue: Glue, tmp_path: Path) -> Catalog:
        return GlueCatalog("glue", glue.properties(tmp_path))


@pytest.mark.nightly
class TestHiveCatalog(ViewChangeContract, ChangeContract):
    has_nested_namespaces = False
    has_odd_names = False

    @pytest.fixture
    def catalog(self, hive_uri: str, tmp_path: Path) -> Catalog:
        return HiveCatalog("hive", {"uri": hive_uri, "warehouse": str(tmp_path)})
