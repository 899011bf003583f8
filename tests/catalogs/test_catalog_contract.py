"""The contract of `tests/support/catalog_contract.py`, run for each catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.catalogs.filesystem import FilesystemCatalog
from iceberg_pyspark.catalogs.memory import MemoryCatalog
from iceberg_pyspark.catalogs.sql import SqlCatalog
from tests.support.catalog_contract import CatalogContract
from tests.support.sql_catalogs import create_v0_tables


class TestMemoryCatalog(CatalogContract):
    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        return MemoryCatalog("memory", {"warehouse": str(tmp_path)})


class TestFilesystemCatalog(CatalogContract):
    can_rename = False
    can_register = False
    has_namespace_properties = False

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        return FilesystemCatalog("hadoop", {"warehouse": str(tmp_path)})


class TestSqliteCatalog(CatalogContract):
    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        uri = f"sqlite:///{tmp_path}/catalog.db"
        return SqlCatalog("sql", {"uri": uri, "warehouse": str(tmp_path / "warehouse")})


class TestSqliteCatalogInMemory(CatalogContract):
    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        return SqlCatalog("sql", {"uri": "sqlite://", "warehouse": str(tmp_path)})


class TestSqliteCatalogOfSchemaV0(CatalogContract):
    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        create_v0_tables(tmp_path / "catalog.db")
        uri = f"jdbc:sqlite:{tmp_path}/catalog.db"
        return SqlCatalog("sql", {"uri": uri, "warehouse": f"{tmp_path}/warehouse"})
