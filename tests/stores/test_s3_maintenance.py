"""Maintenance of a table in S3: the files that are deleted, and the requests that delete them."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.maintenance.removal.purge_table import purge_table
from tests.services.s3 import S3Server
from tests.support.folder_tables import data_files
from tests.support.frames import append_rows

pytestmark = pytest.mark.nightly

COUNT = 300
"""The files to delete; one request could delete a thousand."""


@pytest.fixture
def table(s3: S3Server, bucket: str, tmp_path: Path) -> Table:
    catalog = load_catalog(
        "sql",
        type="sql",
        uri=f"sqlite:///{tmp_path}/catalog.db",
        warehouse=f"s3://{bucket}/{uuid.uuid4()}",
        **s3.properties(),
    )
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.t", "id BIGINT")
    append_rows(table, [{"id": 1}])
    return table


def written_files(table: Table, count: int = COUNT) -> list[str]:
    """Write files with names that need encoding, and return their locations."""
    locations = [f"{table.location}/data/day=1+1/{n} & <ä>.parquet" for n in range(count)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda location: table.io.write_bytes(location, b"x"), locations))
    return locations


def append_files(table: Table, locations: list[str]) -> None:
    files = tuple(
        DataFile(file_path=location, record_count=1, file_size_in_bytes=1) for location in locations
    )
    commit_action(table.catalog, table.loaded, table.io, AppendFiles(data_files=files))
    table.refresh()


def test_few_requests_expire_many_files(s3: S3Server, table: Table) -> None:
    first = table.metadata.current_snapshot_id
    assert first is not None
    needed = data_files(table)
    append_files(table, written_files(table))
    table.manage_snapshots().set_current_snapshot(first).commit()
    before = s3.requests()
    done = table.maintenance().expire_snapshots(older_than=2**42, retain_last=1)
    requests = s3.requests() - before
    assert (done.deleted_data_files_count, done.failed_files_count) == (COUNT, 0)
    assert data_files(table) == needed
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [1]
    # one for each kind: data files, manifests, manifest lists
    assert requests["DeleteObjects"] == 3
    assert requests["DeleteObject"] == 0


def test_few_requests_delete_many_orphan_files(s3: S3Server, table: Table) -> None:
    needed = data_files(table)
    orphans = written_files(table)
    before = s3.requests()
    done = table.maintenance().remove_orphan_files(older_than=2**42, force=True)
    requests = s3.requests() - before
    assert sorted(done.orphan_file_locations) == sorted(orphans)
    assert (done.deleted_files_count, done.failed_files_count) == (COUNT, 0)
    assert data_files(table) == needed
    assert requests["DeleteObjects"] == 1
    assert requests["DeleteObject"] == 0


def test_few_requests_purge_a_table(s3: S3Server, table: Table) -> None:
    append_files(table, written_files(table))
    before = s3.requests()
    done = purge_table(table.catalog, TableIdentifier(namespace=("db",), name="t"))
    requests = s3.requests() - before
    assert (done.outside, done.failed) == (0, 0)
    assert done.deleted > COUNT
    assert list(table.io.list_files(table.location)) == []
    # one for each stage, whose files refer to those of earlier stages
    assert 0 < requests["DeleteObjects"] <= 5
