"""Tables loaded with only the snapshots of refs; other snapshots are loaded on demand."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NoSuchSnapshotError,
    TableRecreatedError,
)
from iceberg_pyspark.spec.snapshots import SnapshotsOfRefs
from iceberg_pyspark.spec.table_metadata import TableMetadata, metadata_to_json
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from iceberg_pyspark.table.table_catalog import TableCatalog
from tests.services.server import Server
from tests.support.http_server import Reply, Request, TestServer, http_server
from tests.support.rest_answers import EVENTS, TABLE, configured

REFS = {"snapshot-loading-mode": "REFS"}


class Loads:
    """A server of one table with five snapshots; on request it sends only the snapshots of refs."""

    def __init__(self, folder: Path) -> None:
        lake = ice.load_catalog("own", type="memory", warehouse=str(folder))
        lake.create_namespace("db")
        table = lake.create_table("db.events", schema="id BIGINT")
        for n in range(5):
            table.append(pa.table({"id": [n]}))
        self.lake = lake
        self.uuid: str | None = None

    @property
    def metadata(self) -> TableMetadata:
        return self.lake.catalog.load_table(EVENTS).metadata

    def __call__(self, request: Request) -> Reply:
        loaded = self.lake.catalog.load_table(EVENTS)
        content = metadata_to_json(loaded.metadata)
        content["table-uuid"] = self.uuid or content["table-uuid"]
        if request.query.get("snapshots") == ["refs"]:
            ids = {r.snapshot_id for r in loaded.metadata.refs.values()}
            content["snapshots"] = [s for s in content["snapshots"] if s["snapshot-id"] in ids]
        return Reply(200, {"metadata-location": loaded.metadata_location, "metadata": content})


@pytest.fixture
def loads(tmp_path: Path) -> Iterator[tuple[Loads, TestServer]]:
    answer = Loads(tmp_path)
    with http_server(configured(answer)) as server:
        yield answer, server


def requested_snapshots(server: TestServer) -> list[str]:
    loads = [r for r in server.requests if (r.method, r.path) == ("GET", TABLE)]
    return [r.query.get("snapshots", [""])[0] for r in loads]


def test_unreferenced_snapshots_are_loaded_once_on_demand(loads: tuple[Loads, TestServer]) -> None:
    source, server = loads
    catalog = TableCatalog(RestCatalog("rest", {"uri": server.uri, **REFS}))
    table, whole = catalog.load_table("db.events"), source.metadata
    ids = [s.snapshot_id for s in whole.snapshots]
    assert isinstance(table.metadata.snapshots, SnapshotsOfRefs)
    # The current state needs no other snapshots.
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4]
    assert table.current_snapshot == whole.current_snapshot
    assert requested_snapshots(server) == ["refs"]
    # Time travel, the history, and everything else that needs all snapshots.
    assert sorted(
        table.scan(selector=SnapshotSelector(snapshot_id=ids[1])).to_arrow()["id"].to_pylist()
    ) == [0, 1]
    assert requested_snapshots(server) == ["refs", "all"]
    assert [s.snapshot_id for s in table.snapshots] == ids
    assert table.metadata == whole
    assert pickle.loads(pickle.dumps(table.metadata)) == whole
    with pytest.raises(NoSuchSnapshotError, match=str(ids[-1])):
        table.metadata.snapshot(12345)
    assert requested_snapshots(server) == ["refs", "all"]


def test_later_commits_are_not_in_loaded_metadata(loads: tuple[Loads, TestServer]) -> None:
    source, server = loads
    metadata = RestCatalog("rest", {"uri": server.uri, **REFS}).load_table(EVENTS).metadata
    whole = source.metadata
    source.lake.load_table("db.events").append(pa.table({"id": [5]}))
    assert len(source.metadata.snapshots) == 6
    assert tuple(metadata.snapshots) == tuple(whole.snapshots)
    assert metadata.snapshot_by_id.keys() == whole.snapshot_by_id.keys()


def test_another_table_of_that_name_is_an_error(loads: tuple[Loads, TestServer]) -> None:
    source, server = loads
    metadata = RestCatalog("rest", {"uri": server.uri, **REFS}).load_table(EVENTS).metadata
    source.uuid = str(uuid.uuid4())
    with pytest.raises(TableRecreatedError):
        len(metadata.snapshots)


def test_modes(loads: tuple[Loads, TestServer]) -> None:
    _, server = loads
    for mode in ("ALL", "all"):
        server.requests.clear()
        catalog = RestCatalog("rest", {"uri": server.uri, "snapshot-loading-mode": mode})
        assert len(catalog.load_table(EVENTS).metadata.snapshots) == 5
        assert requested_snapshots(server) == [""]
    with pytest.raises(InvalidRequestError, match="snapshot-loading-mode = some: must be ALL"):
        RestCatalog("rest", {"uri": server.uri, "snapshot-loading-mode": "some"}).load_table(EVENTS)


@pytest.mark.nightly
def test_commits_on_the_java_server_lose_no_snapshot(server: Server) -> None:
    uri = server.endpoint
    namespace = f"refs_{uuid.uuid4().hex}"
    name = f"{namespace}.t"
    plain = TableCatalog(RestCatalog("rest", {"uri": uri}))
    plain.create_namespace(namespace)
    table = plain.create_table(name, schema="id BIGINT")
    for n in range(4):
        table.append(pa.table({"id": [n]}))
    lean = TableCatalog(RestCatalog("rest", {"uri": uri, **REFS})).load_table(name)
    assert isinstance(lean.metadata.snapshots, SnapshotsOfRefs)
    # Java's server honours the request for the snapshots of refs.
    assert len(lean.metadata.snapshots.loaded_by_id) == 1
    lean.append(pa.table({"id": [4]}))
    lean.delete("id = 0")
    lean.update_properties().set({"a": "b"}).commit()
    after = plain.load_table(name)
    assert len(after.snapshots) == 6
    first = after.snapshots[0].snapshot_id
    again = TableCatalog(RestCatalog("rest", {"uri": uri, **REFS})).load_table(name)
    assert again.scan(selector=SnapshotSelector(snapshot_id=first)).to_arrow()[
        "id"
    ].to_pylist() == [0]
    assert sorted(again.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
