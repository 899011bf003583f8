"""The contract of every catalog, for a REST catalog before Iceberg's own server."""

from __future__ import annotations

import pytest

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.catalogs.rest.catalog import RestCatalog
from tests.services.server import Server
from tests.support.catalog_contract import CatalogContract


class TestRestCatalog(CatalogContract):
    # the server commits what it is sent, also where that changes nothing
    skips_idle_commits = False
    # Java's JdbcCatalog searches by LIKE, which in SQLite is blind to case
    tells_case_of_namespaces = False

    @pytest.fixture
    def catalog(self, server: Server) -> Catalog:
        return RestCatalog("rest", {"uri": server.endpoint})
