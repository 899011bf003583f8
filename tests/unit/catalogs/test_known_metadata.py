"""Metadata that a live table holds is not read again, nor kept alive by the cache."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import TableCatalog
from iceberg_pyspark.catalogs import metastore_catalog
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.catalogs.metastore_catalog import KnownMetadata
from iceberg_pyspark.formats.metadata_files import read_table_metadata
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from tests.support.catalog_contract import first_metadata

FILE = "/t/metadata/00001-5f2b7a3e-9c1d-4e8f-a0b1-c2d3e4f5a6b7.metadata.json"
OTHER_FILE = FILE.replace("5f2b7a3e", "6f2b7a3e")


def test_metadata_is_read_once_while_it_is_referenced() -> None:
    cache, reads = KnownMetadata(), []

    def read() -> TableMetadata:
        reads.append(1)
        return first_metadata("/t")

    first = cache.get_or_read(FILE, read)
    assert cache.get_or_read(FILE, read) is first
    assert cache.get_or_read(OTHER_FILE, read) is not first
    assert len(reads) == 2
    del first
    gc.collect()
    cache.get_or_read(FILE, read)
    assert len(reads) == 3


@pytest.mark.parametrize(
    "name", ["v1.metadata.json", "00001-a.metadata.json", "v1.gz.metadata.json"]
)
def test_a_name_that_may_be_given_again_is_read_again(name: str) -> None:
    cache = KnownMetadata()
    first, second = first_metadata("/t"), first_metadata("/t")
    assert cache.get_or_read(f"/t/metadata/{name}", lambda: first) is first
    assert cache.get_or_read(f"/t/metadata/{name}", lambda: second) is second


def test_pickled_cache_is_empty() -> None:
    cache = KnownMetadata()
    metadata = first_metadata("/t")
    cache.add(FILE, metadata)
    elsewhere = pickle.loads(pickle.dumps(cache))
    other = first_metadata("/u")
    assert elsewhere.get_or_read(FILE, lambda: other) is other


def test_a_writer_alone_reads_no_metadata_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, locations = read_table_metadata, list[str]()

    def counted(io: FileIO, location: str) -> TableMetadata:
        locations.append(location)
        return read(io, location)

    monkeypatch.setattr(metastore_catalog, "read_table_metadata", counted)
    catalog = TableCatalog(MemoryCatalog("lake", {"warehouse": str(tmp_path)}))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id BIGINT")
    for n in range(3):
        table.append(pa.table({"id": [n]}))
    assert locations == []
    # Another writer has committed: its metadata file is read once.
    catalog.load_table("db.t").append(pa.table({"id": [3]}))
    table.append(pa.table({"id": [4]}))
    assert len(locations) == 1
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4]
