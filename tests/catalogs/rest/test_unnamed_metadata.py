"""Tables and views whose server says nothing of where their metadata is: all operations.

The metadata alone says where the files are, so nothing proves that a folder is the table's: no file
is deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx
import pyarrow as pa
import pytest

from iceberg_pyspark import Table, TableCatalog
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.errors import InvalidRequestError, LocationRefusedError
from tests.services.server import Server
from tests.support.catalog_contract import new_name
from tests.support.http_server import Reply, Request, http_server
from tests.support.rest_front import forwarded
from tests.support.table_integrity import table_problems
from tests.support.view_contract import definition, first_view

_FIELD = "metadata-location"
OUTSIDE = {"read.allow-outside-locations": "true"}


def leave_out(content: dict[str, Any]) -> None:
    content.pop(_FIELD, None)


def set_null(content: dict[str, Any]) -> None:
    content[_FIELD] = None


@pytest.fixture(params=[leave_out, set_null])
def uri(server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    change: Callable[[dict[str, Any]], None] = request.param
    with httpx.Client(timeout=60) as client:

        def answer(asked: Request) -> Reply:
            return forwarded(client, server.endpoint, asked, ("content-type",), change)

        with http_server(answer) as front:
            yield front.uri


@pytest.fixture
def lake(uri: str) -> TableCatalog:
    return TableCatalog(RestCatalog("rest", {"uri": uri, **OUTSIDE}))


@pytest.fixture
def name(lake: TableCatalog) -> str:
    namespace = new_name("unnamed")
    lake.create_namespace(namespace)
    return f"{namespace}.t"


@pytest.fixture
def table(lake: TableCatalog, name: str) -> Table:
    table = lake.create_table(name, "id BIGINT, v STRING", partitioned_by=["truncate(3, id)"])
    for n in range(3):
        table.append(rows(3 * n, 3 * n + 1, 3 * n + 2))
    return table


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"v{n}" for n in ids]})


def ids(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def files_of(table: Table) -> set[Path]:
    folder = Path(url2pathname(urlsplit(table.location).path))
    return {path for path in folder.rglob("*") if path.is_file()}


def test_rows_and_definitions_change(lake: TableCatalog, table: Table, name: str) -> None:
    other = lake.load_table(name)
    assert ids(table) == list(range(9))
    table.delete("id < 3")
    # this table object is outdated
    other.append(rows(20))
    table.refresh().overwrite(rows(21), filter="id >= 18")
    assert ids(other) == [3, 4, 5, 6, 7, 8, 21]
    table.refresh().update_schema().add_column("x", "int").commit()
    table.refresh().update_spec().add_field("v", "truncate[1]").commit()
    table.refresh().update_properties().set({"a": "b"}).commit()
    loaded = lake.load_table(name)
    loaded.append(pa.table({"id": [30], "x": pa.array([7], pa.int32())}))
    assert loaded.refresh().properties["a"] == "b"
    assert len(loaded.snapshots) == 7
    assert table_problems(loaded.refresh()) == []
    assert ids(loaded) == [3, 4, 5, 6, 7, 8, 21, 30]


def test_health_and_verification(table: Table) -> None:
    assert table.verify(check_files=True).findings == ()
    assert "9" in str(table.health(list_storage=True))
    for metadata_table in ("snapshots", "history", "files", "metadata_log_entries", "all_files"):
        assert table.metadata_table(metadata_table).to_arrow().num_rows


def test_maintenance_deletes_no_file(lake: TableCatalog, table: Table, name: str) -> None:
    stray = Path(url2pathname(urlsplit(table.location).path)) / "data" / "stray.parquet"
    stray.write_bytes(b"nobody's")
    before = files_of(table)
    maintenance = table.maintenance()
    maintenance.rewrite_manifests()
    maintenance.rewrite_data_files(options={"min-input-files": "2"})
    maintenance.compute_table_stats()
    maintenance.compute_partition_stats()
    maintenance.expire_snapshots(older_than=int(time.time() * 1000), retain_last=1)
    table.refresh()
    assert len(table.snapshots) == 1
    with pytest.raises(InvalidRequestError, match="folder"):
        table.maintenance().remove_orphan_files(older_than=0)
    assert before <= files_of(table)
    assert ids(lake.load_table(name)) == list(range(9))
    assert table_problems(table.refresh()) == []


@pytest.mark.parametrize("purge", [False, True])
def test_a_renamed_and_dropped_table_keeps_its_files(
    lake: TableCatalog, table: Table, name: str, purge: bool
) -> None:
    lake.rename_table(name, f"{name}2")
    renamed = lake.load_table(f"{name}2")
    assert ids(renamed) == list(range(9))
    renamed.append(rows(9))
    files = files_of(renamed)
    lake.drop_table(f"{name}2", purge=purge)
    assert lake.list_tables(name.partition(".")[0]) == []
    assert files_of(renamed) == files


def test_without_a_word_on_the_store_a_table_is_refused(uri: str, table: Table, name: str) -> None:
    with pytest.raises(LocationRefusedError, match="allow-outside-locations"):
        TableCatalog(RestCatalog("rest", {"uri": uri})).load_table(name)


def test_views_have_a_life(uri: str, name: str) -> None:
    catalog = RestCatalog("rest", {"uri": uri, **OUTSIDE})
    view = TableIdentifier(namespace=(name.partition(".")[0],), name="v")
    created = catalog.create_view(view, first_view(catalog, view, "SELECT 1"))
    assert catalog.load_view(view) == created
    changed = catalog.commit_view(view, (), definition("SELECT 2")).result()
    assert changed.metadata.current_version.sql("spark") == "SELECT 2"
    assert changed.metadata_location != created.metadata_location
    target = TableIdentifier(namespace=view.namespace, name="w")
    catalog.rename_view(view, target)
    assert catalog.load_view(target).metadata == changed.metadata
    catalog.drop_view(target)
    assert catalog.list_views(view.namespace) == []
