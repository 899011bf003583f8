"""The contract of every catalog, for a REST catalog on Iceberg's own server."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

from iceberg_pyspark import TableCatalog
from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.errors import InvalidRequestError
from tests.services.server import Server
from tests.support.change_contract import ChangeContract
from tests.support.view_contract import ViewChangeContract

pytestmark = pytest.mark.nightly


class TestRestCatalog(ViewChangeContract, ChangeContract):
    reads_metadata_files = False
    # The server commits every request, even one that changes nothing.
    skips_idle_commits = False
    marks_in_namespaces = "/"
    marks_in_folders = "/"
    # Java's JdbcCatalog searches with LIKE, which ignores case in SQLite.
    tells_case_of_namespaces = False

    @pytest.fixture
    def catalog(self, server: Server) -> Catalog:
        return RestCatalog("rest", {"uri": server.endpoint})

    @pytest.mark.parametrize("mark", ["/", "."])
    def test_a_namespace_with_a_slash_or_dot_is_refused_or_itself(
        self, catalog: Catalog, mark: str
    ) -> None:
        # Java's JdbcCatalog joins levels by dots, and does not refuse a dot in one.
        if mark != ".":
            super().test_a_namespace_with_a_slash_or_dot_is_refused_or_itself(catalog, mark)


def test_the_server_deletes_the_files_where_that_is_asked_of_it(server: Server) -> None:
    properties = {"uri": server.endpoint, "rest-catalog-purge": "true"}
    lake = TableCatalog(RestCatalog("rest", properties))
    namespace = f"db_{uuid4().hex[:8]}"
    lake.create_namespace(namespace)
    table = lake.create_table(f"{namespace}.t", "id BIGINT", properties={"gc.enabled": "false"})
    table.append(pa.table({"id": [1]}))
    data_files = [Path(task.file_path) for task in table.scan().plan_files()]
    with pytest.raises(InvalidRequestError, match=r"gc\.enabled"):
        lake.drop_table(f"{namespace}.t", purge=True)
    table.update_properties().set({"gc.enabled": "true"}).commit()
    assert all(path.exists() for path in data_files)
    lake.drop_table(f"{namespace}.t", purge=True)
    assert data_files
    assert not any(path.exists() for path in data_files)
    lake.drop_namespace(namespace)
