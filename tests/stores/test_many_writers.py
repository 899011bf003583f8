"""Sixteen processes append to one table of a folder catalog in each store, with default properties.

`tests/catalogs/test_many_writers.py` does the same for the other catalogs.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import pytest

from iceberg_pyspark import Table, TableCatalog
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from tests.amounts import WORK
from tests.services.azurite import AzureServer
from tests.services.gcs import GoogleServer
from tests.services.hdfs import HdfsServer
from tests.services.s3 import S3Server
from tests.support.catalog_processes import EVENTS, run_together
from tests.support.folder_tables import ids
from tests.support.many_writers import SCHEMA, append_rows
from tests.support.table_integrity import table_problems

pytestmark = pytest.mark.nightly

WRITERS = 16
APPENDS = 2 * WORK


@pytest.fixture(params=["s3", "google", "azure", "hdfs"])
def properties(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the properties of a catalog in a new folder of a store."""
    server = request.getfixturevalue(request.param)
    folder = str(uuid.uuid4())
    match server:
        case HdfsServer():
            return {"warehouse": f"{server.root}/{folder}"}
        case S3Server():
            return {"warehouse": f"s3://{server.new_bucket()}/{folder}", **server.properties()}
        case GoogleServer() | AzureServer():
            return {"warehouse": f"{server.new_root()}/{folder}", **server.properties()}
    raise AssertionError(server)


def write_rows(properties: Mapping[str, str], worker: int) -> int:
    """Append in this new process; return the number of acknowledged appends."""
    return len(append_rows(FilesystemCatalog("lake", properties), worker, APPENDS))


# A file of HDFS with one data node takes half a second to close, so 800 commits take half an hour.
@pytest.mark.timeout(3600)
def test_no_writer_among_many_gives_up(properties: dict[str, str]) -> None:
    catalog = FilesystemCatalog("lake", properties)
    catalog.create_namespace(EVENTS.namespace)
    TableCatalog(catalog).create_table(str(EVENTS), SCHEMA)
    acknowledged = run_together(write_rows, [(properties, worker) for worker in range(WRITERS)])
    assert acknowledged == [APPENDS] * WRITERS
    table = Table(catalog, catalog.load_table(EVENTS))
    assert ids(table) == [w * 10_000 + n for w in range(WRITERS) for n in range(APPENDS)]
    assert len(table.snapshots) == WRITERS * APPENDS
    assert table_problems(table) == []
