"""Tables, scans and catalogs travel to other processes, as Ray, Dask and multiprocessing send them.

They are pickled without connections and locks, which the other process opens anew.
"""

from __future__ import annotations

import multiprocessing
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.table_metadata import metadata_to_json
from iceberg_pyspark.table.reading.table_scan import TableScan
from tests.support.http_server import Reply, http_server
from tests.support.rest_answers import configured

ROWS = pa.table({"id": [1, 2, 3]})


def read_elsewhere(catalog: ice.TableCatalog, table: ice.Table, scan: TableScan) -> list[list[int]]:
    """Return the ids of each in the process that runs this function."""
    loaded = catalog.load_table(".".join(table.identifier.levels))
    scans = (scan, table.scan(), table.refresh().scan(), loaded.scan())
    return [sorted(s.to_arrow()["id"].to_pylist()) for s in scans]


def append_elsewhere(table: ice.Table) -> int:
    """Append a row and return the number of rows as the returned table has them."""
    table.append(pa.table({"id": [4]}))
    return table.scan().count()


def in_another_process(function: object, *arguments: object) -> object:
    # a process that is forked would have the connections and the locks of this one
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["sql", "hadoop"])
def test_another_process_reads_and_commits(tmp_path: Path, kind: str) -> None:
    catalog = ice.load_catalog("lake", type=kind, warehouse=str(tmp_path))
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.t", "id BIGINT")
    table.append(ROWS)
    scan = table.scan(filter="id > 1")
    expected = [[2, 3], *[[1, 2, 3]] * 3]
    assert in_another_process(read_elsewhere, catalog, table, scan) == expected
    assert in_another_process(append_elsewhere, table) == 4
    # this process commits on top of what the other one has committed
    table.append(ROWS)
    assert table.scan().count() == 7
    by_path = ice.load_table(table.location)
    if kind == "hadoop":
        # a table of a database can only be read by its path
        assert in_another_process(append_elsewhere, by_path) == 8
    for copied in (
        by_path,
        table.maintenance(),
        table.transaction(),
        table.metadata_table("files"),
    ):
        pickle.loads(pickle.dumps(copied))


def test_another_process_reads_from_a_rest_server(tmp_path: Path) -> None:
    stored = ice.load_catalog("stored", type="hadoop", warehouse=str(tmp_path))
    stored.create_namespace("db", if_not_exists=True)
    loaded = stored.create_table("db.events", "id BIGINT")
    loaded.append(ROWS)
    answer = {
        "metadata-location": loaded.loaded.metadata_location,
        "metadata": metadata_to_json(loaded.metadata),
        "config": {},
    }
    with http_server(configured(lambda _: Reply(200, answer), {})) as server:
        properties = {"uri": server.uri, "token": "of-the-user"}
        catalog = ice.TableCatalog(RestCatalog("lake", properties))
        table = catalog.load_table("db.events")
        scan = table.scan(filter="id > 1")
        expected = [[2, 3], *[[1, 2, 3]] * 3]
        assert read_elsewhere(catalog, table, scan) == expected
        assert in_another_process(read_elsewhere, catalog, table, scan) == expected


def test_a_catalog_in_memory_stays_in_its_process(tmp_path: Path) -> None:
    catalog = ice.load_catalog("lake", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.t", "id BIGINT")
    for stays in (catalog, table, table.transaction()):
        with pytest.raises(InvalidRequestError, match="lives in the memory of one process"):
            pickle.dumps(stays)
