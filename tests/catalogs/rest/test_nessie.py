"""Tables in a catalog that Nessie serves; the metadata location is a URL of its server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import load_catalog
from tests.services.nessie import catalog_uri, nessie
from tests.services.s3 import S3Server, s3_server
from tests.services.server import Server

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module")
def server(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with nessie(tmp_path_factory.mktemp("nessie"), s3, signs=False) as running:
        yield running


def test_rows_are_written_read_and_removed(server: Server, s3: S3Server) -> None:
    lake = load_catalog("nessie", uri=catalog_uri(server), **s3.properties())
    lake.create_namespace("rows")
    table = lake.create_table("rows.t", "id BIGINT, v STRING")
    other = lake.load_table("rows.t")
    table.append(pa.table({"id": [1, 2], "v": ["a", "b"]}))
    # This table object is outdated: the server refuses the commit, which is retried.
    other.append(pa.table({"id": [3], "v": ["c"]}))
    loaded = lake.load_table("rows.t")
    assert sorted(loaded.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    loaded.delete("id = 3")
    assert sorted(lake.load_table("rows.t").scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_schema_spec_and_properties_change(server: Server, s3: S3Server) -> None:
    """Nessie uses the schema and spec ids that the client sends."""
    lake = load_catalog("nessie", uri=catalog_uri(server), **s3.properties())
    lake.create_namespace("changed")
    lake.create_table("changed.t", "id BIGINT, day DATE").append(pa.table({"id": [1]}))
    table = lake.load_table("changed.t")
    table.update_schema().add_column("x", "int").commit()
    table.update_spec().add_field("id", "bucket[4]").commit()
    table.update_properties().set({"a": "b"}).commit()
    table.append(pa.table({"id": [2], "x": pa.array([7], pa.int32())}))
    loaded = lake.load_table("changed.t")
    assert loaded.metadata.current_schema_id == 1
    assert loaded.metadata.default_spec_id == 1
    assert loaded.metadata.properties["a"] == "b"
    rows = loaded.scan().to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["x"]) for row in rows] == [(1, None), (2, 7)]


def test_concurrent_appends_are_all_kept(server: Server, s3: S3Server) -> None:
    lake = load_catalog("nessie", uri=catalog_uri(server), **s3.properties())
    lake.create_namespace("many")
    lake.create_table("many.t", "id BIGINT")

    def append(n: int) -> None:
        for i in range(5):
            lake.load_table("many.t").append(pa.table({"id": [10 * n + i]}))

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(append, n) for n in range(4)]:
            future.result()
    ids = lake.load_table("many.t").scan().to_arrow()["id"].to_pylist()
    assert sorted(ids) == [10 * n + i for n in range(4) for i in range(5)]


def test_its_server_signs_every_request_to_the_store(s3: S3Server, tmp_path: Path) -> None:
    """The client has no key for the store."""
    keyless = {"s3.endpoint": s3.endpoint, "s3.path-style-access": "true"}
    header = {"header.x-iceberg-access-delegation": "remote-signing"}
    with nessie(tmp_path, s3, signs=True) as server:
        lake = load_catalog("nessie", uri=catalog_uri(server), **keyless, **header)
        lake.create_namespace("signed")
        table = lake.create_table("signed.t", "id BIGINT")
        table.append(pa.table({"id": [1, 2]}))
        table.append(pa.table({"id": [3]}))
        loaded = lake.load_table("signed.t")
        assert loaded.loaded.config["s3.remote-signing-enabled"] == "true"
        assert not any("key" in name or "secret" in name for name in loaded.loaded.config)
        assert sorted(loaded.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
