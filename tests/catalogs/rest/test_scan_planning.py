"""Scans that a server plans: the client's requests, all kinds of responses, and cancellation."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.catalogs.rest import endpoints as e
from iceberg_pyspark.catalogs.rest import scan_planning
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    IcebergError,
    InvalidMetadataError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spark.data_source.reader import IcebergReader
from iceberg_pyspark.spec.table_metadata import metadata_to_json
from iceberg_pyspark.storage.credentials.vended_credentials import properties_at
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from iceberg_pyspark.table.table import Table
from iceberg_pyspark.table.table_catalog import TableCatalog
from tests.support.http_server import Reply, Request, TestServer, http_server
from tests.support.rest_answers import TABLE, configured, error

ALL = [e.PLAN_SCAN, e.FETCH_PLAN, e.CANCEL_PLAN, e.FETCH_SCAN_TASKS]
PLAN, TASKS = f"{TABLE}/plan", f"{TABLE}/tasks"
FAILED = {"error": {"message": "too many files", "type": "PlanError", "code": 500}}


def file_task(task: ScanTask) -> dict[str, Any]:
    """Return a planned file as a server represents it in JSON."""
    return {
        "data-file": {
            "content": "data",
            "file-path": task.file_path,
            "file-format": task.file_format,
            "spec-id": task.spec_id,
            "partition": list(task.partition),
            "file-size-in-bytes": task.file_size_in_bytes,
            "record-count": task.record_count,
        }
    }


@dataclass(frozen=True)
class Lake:
    """One table with three data files of two rows each."""

    loaded: LoadedTable
    files: list[dict[str, Any]]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("planned")
    catalog = ice.load_catalog("own", type="memory", warehouse=str(folder))
    columns = "id BIGINT, name STRING, day DATE, raw BINARY, place STRUCT<x: INT, y: INT>"
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.events", columns, partitioned_by=["name"])
    schema = table.scan().to_arrow().schema
    for n in range(3):
        rows = [{"id": i, "name": "a", "raw": b"1"} for i in (n, n + 10)]
        table.append(pa.Table.from_pylist(rows, schema))
    return Lake(table.loaded, [file_task(task) for task in table.scan().plan_files()])


class Planning:
    """A server of the lake's table; `plan` replies to every request about plans."""

    def __init__(self, lake: Lake) -> None:
        self.loaded = lake.loaded
        self.files = deepcopy(lake.files)
        self.plan: Callable[[Request], Reply] = lambda _: self.completed()
        self.config: Mapping[str, str] = {"scan-planning-mode": "server"}

    def completed(self, **more: Any) -> Reply:
        return Reply(200, {"status": "completed", "file-scan-tasks": self.files, **more})

    def __call__(self, request: Request) -> Reply:
        if request.path.startswith((PLAN, TASKS)):
            return self.plan(request)
        return Reply(
            200,
            {
                "metadata-location": self.loaded.metadata_location,
                "metadata": metadata_to_json(self.loaded.metadata),
                "config": dict(self.config),
            },
        )


@pytest.fixture
def planning(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Planning, TestServer]]:
    monkeypatch.setattr(scan_planning, "_sleep", lambda seconds: None)
    answer = Planning(lake)
    with http_server(configured(answer, {"endpoints": ALL})) as server:
        yield answer, server


def load(server: TestServer, **properties: str) -> Table:
    no_wait = {"rest.client.max-retries": "0", **properties}
    return TableCatalog(RestCatalog("lake", {"uri": server.uri, **no_wait})).load_table("db.events")


def ids(table: Table, **scan: Any) -> list[int]:
    return sorted(table.scan(**scan).to_arrow()["id"].to_pylist())


def planned(server: TestServer) -> list[tuple[str, str]]:
    return [(r.method, r.path) for r in server.requests if r.path.startswith((PLAN, TASKS))]


def test_the_server_is_asked_what_the_scan_asks(planning: tuple[Planning, TestServer]) -> None:
    source, server = planning
    table = load(server)
    assert ids(table) == [0, 1, 2, 10, 11, 12]
    text = "id >= 2 AND NOT (name = 'b') AND raw = X'31' AND place IS NOT NULL"
    assert table.scan(filter=text, columns=["id", "place.x"]).count() == 0
    whole, filtered = (r.json() for r in server.requests if r.path == PLAN)
    snapshot_id = source.loaded.metadata.current_snapshot_id
    assert whole == {
        "snapshot-id": snapshot_id,
        "case-sensitive": True,
        "use-snapshot-schema": False,
        "select": ["day", "id", "name", "place.x", "place.y", "raw"],
    }
    assert filtered["select"] == ["id", "name", "place", "place.x", "raw"]
    assert filtered["stats-fields"] == ["id", "name", "place", "raw"]
    # Conditions that a server may evaluate differently are left to the reader.
    assert filtered["filter"] == {
        "type": "and",
        "left": {"type": "gt-eq", "term": "id", "value": 2},
        "right": {"type": "not-eq", "term": "name", "value": "b"},
    }
    description = table.scan().describe()
    assert (description.statistics.data_files_kept, description.statistics.manifests) == (3, 0)
    assert server.paths("DELETE") == []


def test_a_snapshot_is_read_with_its_schema(planning: tuple[Planning, TestServer]) -> None:
    source, server = planning
    metadata = source.loaded.metadata
    old = metadata.snapshots[0]
    newer = replace(metadata.current_schema, schema_id=1)
    newest = replace(metadata, schemas=(*metadata.schemas, newer), current_schema_id=1)
    source.loaded = replace(source.loaded, metadata=newest)
    table = load(server)
    ids(table, selector=SnapshotSelector(snapshot_id=old.snapshot_id))
    ids(table)
    requests = [r.json() for r in server.requests if r.path == PLAN]
    assert [a["use-snapshot-schema"] for a in requests] == [True, False]
    assert requests[0]["snapshot-id"] == old.snapshot_id


def test_a_plan_that_takes_time_and_comes_in_parts(planning: tuple[Planning, TestServer]) -> None:
    source, server = planning
    parts = {
        "one": (source.files[1:2], ["three"]),
        "two": ([], []),
        "three": (source.files[2:], []),
    }
    waits = iter(range(2))

    def plan(request: Request) -> Reply:
        if request.path == TASKS:
            files, tasks = parts[request.json()["plan-task"]]
            return Reply(200, {"file-scan-tasks": files, "plan-tasks": tasks})
        if request.method == "POST" or next(waits, None) is not None:
            return Reply(200, {"status": "submitted", "plan-id": "a/b"})
        content = {"status": "completed", "file-scan-tasks": source.files[:1]}
        return Reply(200, {**content, "plan-tasks": ["one", "two"]})

    source.plan = plan
    assert ids(load(server)) == [0, 1, 2, 10, 11, 12]
    requests = [("POST", PLAN), *[("GET", f"{PLAN}/a%2Fb")] * 3, *[("POST", TASKS)] * 3]
    assert planned(server) == requests


def test_a_reader_that_gives_up_cancels(planning: tuple[Planning, TestServer]) -> None:
    source, server = planning
    source.plan = lambda _: source.completed(**{"plan-id": "p", "plan-tasks": ["more"]})
    tasks = load(server).scan().plan_files()
    next(tasks)
    tasks.close()  # type: ignore[attr-defined]
    assert planned(server) == [("POST", PLAN), ("DELETE", f"{PLAN}/p")]


@pytest.mark.parametrize(
    ("replies", "kind", "match"),
    [
        ([{"status": "failed", **FAILED}], CatalogError, "too many files"),
        ([{"status": "cancelled"}], CatalogError, "cancelled"),
        ([{"status": "dreaming"}], UnsupportedFeatureError, "status: 'dreaming'"),
        ([{"status": "submitted"}], CatalogError, "without a plan-id"),
        ([{"status": "submitted", "plan-id": "p"}, {"status": "failed", **FAILED}],
         CatalogError, "too many files"),
        ([{"status": "submitted", "plan-id": "p"}, {"status": "cancelled"}],
         CatalogError, "cancelled"),
        ([{"status": "submitted", "plan-id": "p"}] * 50, CatalogUnavailableError, "within 500 ms"),
        ([{}], InvalidMetadataError, "status: required string"),
        ([{"status": "completed", "plan-tasks": ["a", "a"], "plan-id": "p"},
          {"plan-tasks": ["a"]}], CatalogError, "names a plan task twice"),
        ([{"status": "completed", "plan-tasks": [1]}], InvalidMetadataError, r"plan-tasks\[0\]"),
        ([{"status": "completed", "storage-credentials": [{}]}],
         InvalidMetadataError, r"storage-credentials\[0\].prefix"),
    ],
)  # fmt: skip
def test_failed_expired_or_slow_plan_is_an_error(
    planning: tuple[Planning, TestServer],
    monkeypatch: pytest.MonkeyPatch,
    replies: list[Any],
    kind: type[IcebergError],
    match: str,
) -> None:
    source, server = planning
    clock = [0.0]
    monkeypatch.setattr(scan_planning, "_now", lambda: clock[0])
    monkeypatch.setattr(scan_planning, "_sleep", lambda s: clock.__setitem__(0, clock[0] + s))
    queue = iter(replies)
    source.plan = lambda r: Reply(204) if r.method == "DELETE" else Reply(200, next(queue))
    table = load(server, **{"rest-scan-planning.poll-timeout-ms": "500"})
    with pytest.raises(kind, match=match) as raised:
        ids(table)
    assert "lake" in str(raised.value) or "answer to POST" in str(raised.value)
    # A plan that has an id is cancelled.
    has_id = any("plan-id" in reply for reply in replies)
    assert server.paths("DELETE") == ([f"{PLAN}/p"] if has_id else [])


def test_the_server_is_asked_at_growing_intervals(
    planning: tuple[Planning, TestServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, server = planning
    waits: list[float] = []
    monkeypatch.setattr(scan_planning, "_now", lambda: sum(waits))
    monkeypatch.setattr(scan_planning, "_sleep", waits.append)
    source.plan = lambda r: (
        Reply(204) if r.method == "DELETE" else Reply(200, {"status": "submitted", "plan-id": "p"})
    )
    with pytest.raises(CatalogUnavailableError, match="within 300000 ms"):
        ids(load(server))
    assert waits[:3] == [0.1, 0.2, 0.4]
    assert set(waits[7:-1]) == {10.0}
    assert sum(waits) == pytest.approx(300)


@pytest.mark.parametrize(
    ("status", "type_", "kind", "match"),
    [
        (404, "NoSuchTableException", NoSuchTableError, "plan"),
        (404, "NoSuchPlanIdException", CatalogError, "forgot it"),
        (406, "", UnsupportedFeatureError, "plan"),
        (503, "", CatalogUnavailableError, "try again"),
    ],
)
def test_errors_are_those_of_other_requests(
    planning: tuple[Planning, TestServer],
    status: int,
    type_: str,
    kind: type[IcebergError],
    match: str,
) -> None:
    source, server = planning
    source.plan = lambda _: error(status, type_)
    with pytest.raises(kind, match=match):
        ids(load(server))


def changed(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return a function that sets one field of a response; `path` joins the keys by slashes."""

    def change(content: dict[str, Any]) -> None:
        *parents, last = [int(k) if k.isdigit() else k for k in path.split("/")]
        inner: Any = content
        for key in parents:
            inner = inner[key]
        inner[last] = value

    return change


DELETE = {
    "content": "position-deletes",
    "file-path": "/d",
    "file-format": "parquet",
    "spec-id": 0,
    "partition": ["a"],
    "file-size-in-bytes": 1,
    "record-count": 1,
}
FILE = "file-scan-tasks/1/data-file"
WRONG: list[tuple[str, Any, type[IcebergError], str]] = [
    (f"{FILE}/content", "deletes", UnsupportedFeatureError, r"\[1\].data-file.content: 'deletes'"),
    (f"{FILE}/content", "position-deletes", InvalidMetadataError, "must have the content 'data'"),
    (f"{FILE}/file-format", "puffin", UnsupportedFeatureError, "file-format: 'puffin'"),
    (f"{FILE}/file-format", "lance", UnsupportedFeatureError, "file-format: 'lance'"),
    (f"{FILE}/file-path", None, InvalidMetadataError, r"\[1\].data-file.file-path"),
    (f"{FILE}/spec-id", 7, InvalidMetadataError, "partition spec 7"),
    (f"{FILE}/partition", [], InvalidMetadataError, r"data-file.partition: expected a list of 1"),
    (f"{FILE}/partition", [5], InvalidMetadataError, r"data-file.partition\[0\]: string: 5"),
    (f"{FILE}/partition", {"9": "a"}, InvalidMetadataError, "has other fields"),
    (f"{FILE}/file-size-in-bytes", -1, InvalidMetadataError, "file-size-in-bytes: must be 0"),
    (f"{FILE}/record-count", 2**63, InvalidMetadataError, "record-count: must be"),
    (f"{FILE}/record-count", "3", InvalidMetadataError, "record-count: required integer"),
    (f"{FILE}/split-offsets", [4, None], InvalidMetadataError, r"split-offsets\[1\]"),
    (f"{FILE}/first-row-id", -2, InvalidMetadataError, "first-row-id"),
    (f"{FILE}/key-metadata", "00", UnsupportedFeatureError, "encrypted"),
    (f"{FILE}/value-counts", {"keys": [1], "values": []}, InvalidMetadataError, "as many values"),
    (f"{FILE}/value-counts", {"keys": [1], "values": [-1]}, InvalidMetadataError, "a count"),
    (f"{FILE}/lower-bounds", {"keys": [1], "values": [True]}, InvalidMetadataError, "not of type"),
    ("file-scan-tasks/1/delete-file-references", [0], InvalidMetadataError, "0 delete-files"),
    ("file-scan-tasks/1/residual-filter", None, UnsupportedFeatureError, "an unsupported filter"),
    ("file-scan-tasks/1/residual-filter", {"type": "like"}, UnsupportedFeatureError, "'like'"),
    ("file-scan-tasks/1", 3, InvalidMetadataError, r"file-scan-tasks\[1\]"),
    ("delete-files", [{**DELETE, "content": "data"}], InvalidMetadataError, "must hold deletes"),
    ("delete-files", [{**DELETE, "file-format": "puffin"}], InvalidMetadataError, "content-offset"),
    ("delete-files", [{**DELETE, "content": "equality-deletes"}], InvalidMetadataError,
     "equality-ids"),
    ("delete-files", [{**DELETE, "partition": ["a", "b"]}], InvalidMetadataError, "partition"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "kind", "match"), WRONG)
def test_wrong_answers_name_the_request_and_the_place(
    planning: tuple[Planning, TestServer],
    path: str,
    value: Any,
    kind: type[IcebergError],
    match: str,
) -> None:
    source, server = planning
    content = source.completed(**{"plan-id": "p"}).content
    changed(path, value)(content)
    source.plan = lambda r: Reply(204) if r.method == "DELETE" else Reply(200, content)
    with pytest.raises(kind, match=match) as raised:
        ids(load(server), filter="id < 100")
    assert str(raised.value).startswith(f"answer to POST {PLAN[1:]}: ")
    assert server.paths("DELETE") == [f"{PLAN}/p"]


def test_forms_of_other_servers_are_read(planning: tuple[Planning, TestServer]) -> None:
    source, server = planning
    for i, f in enumerate(source.files):
        f["data-file"] |= {"content": "DATA", "file-format": "PARQUET", "partition": {"1000": "a"}}
        bounds: Any = f"{i:02x}00000000000000" if i else 0
        f["data-file"]["lower-bounds"] = {"keys": [1, 2], "values": [bounds, "61"]}
        f["data-file"]["upper-bounds"] = {"keys": [1], "values": [i + 10]}
        f["data-file"]["value-counts"] = {"keys": [1], "values": [2]}
        f["data-file"]["null-value-counts"] = {"keys": [1], "values": [0]}
    table = load(server)
    (files,) = table.scan(filter="id >= 0").plan().files()
    assert files.entries["lower_bounds.1"].to_pylist() == [bytes([i, *[0] * 7]) for i in range(3)]
    assert files.entries["upper_bounds.1"].to_pylist()[2] == bytes([12, *[0] * 7])
    # The bounds of a string column are ambiguous: hexadecimal digits may be the text itself.
    filtered = table.scan(filter="name = 'a'").plan().files()
    assert next(filtered).entries["lower_bounds.2"].to_pylist() == [None] * 3
    assert table.scan(filter="name = 'a'").known_count() == 6


def test_residual_filter_of_the_server_is_applied(
    planning: tuple[Planning, TestServer],
) -> None:
    source, server = planning
    own = {"type": "lt", "term": "id", "value": 100}
    source.files[0]["residual-filter"] = {"type": "and", "left": own, "right": True}
    source.files[1]["residual-filter"] = {"type": "gt", "term": "id", "value": 5}
    source.files[2]["residual-filter"] = False
    table = load(server)
    first, second = ({f["data-file"]["file-path"] for f in source.files[:i]} for i in (1, 2))
    scan = table.scan(filter="id < 100")
    assert {t.file_path for t in scan.plan_files() if t.residual is None} == first
    expected = [n for n in range(3) if _file_of(table, n) in first]
    expected = sorted(
        [n for f in expected for n in (f, f + 10)] + _above_five(table, second - first)
    )
    assert ids(table, filter="id < 100") == expected
    assert scan.count() == 3
    assert scan.known_count() is None


def _file_of(table: Table, number: int) -> str:
    """Return the path of the file that contains a row, planned by the client."""
    here = replace(table.scan(columns=["_file"], filter=f"id = {number}"), planner=None)
    (path,) = here.to_arrow()["_file"].to_pylist()
    return str(path)


def _above_five(table: Table, paths: set[str]) -> list[int]:
    here = replace(table.scan(columns=["id"], filter="id > 5"), planner=None)
    result: list[int] = here.of_files(frozenset(paths)).to_arrow()["id"].to_pylist()
    return result


@pytest.mark.parametrize("missing", [e.PLAN_SCAN, e.FETCH_PLAN, e.FETCH_SCAN_TASKS, e.CANCEL_PLAN])
def test_missing_planning_endpoint_is_named(
    planning: tuple[Planning, TestServer], missing: str
) -> None:
    source, _ = planning
    source.plan = lambda r: (
        Reply(200, {"status": "submitted", "plan-id": "p"})
        if r.path == PLAN
        else source.completed(**{"plan-tasks": ["t"]})
    )
    offered = {"endpoints": [endpoint for endpoint in ALL if endpoint != missing]}
    with http_server(configured(source, offered)) as server:
        if missing == e.CANCEL_PLAN:
            tasks = load(server).scan().plan_files()
            next(tasks)
            tasks.close()  # type: ignore[attr-defined]
            assert server.paths("DELETE") == []
            return
        with pytest.raises(UnsupportedFeatureError, match="does not offer") as raised:
            ids(load(server))
        assert missing in str(raised.value)


def test_a_plan_brings_its_credentials(planning: tuple[Planning, TestServer]) -> None:
    source, server = planning
    key = {"s3.access-key-id": "of-the-plan", "s3.secret-access-key": "a-plans-secret"}
    options = {"storage-credentials": [{"prefix": "s3", "config": key}]}
    source.plan = lambda _: source.completed(**options)
    scan = load(server, **{"s3.access-key-id": "of-the-catalog"}).scan()
    assert "a-plans-secret" not in repr(scan)
    planned_scan, plan = scan.scan_and_plan()
    assert len(list(plan.tasks())) == 3
    own, of_plan = (
        properties_at("s3://b/t/data/f", _object_properties(s.io)) for s in (scan, planned_scan)
    )
    assert own["s3.access-key-id"] == "of-the-catalog"
    assert of_plan == {**own, **key}
    reader = IcebergReader(scan)
    assert len(planned(server)) == 2
    assert len(reader.partitions()) == 1
    assert len(planned(server)) == 2
    assert properties_at("s3://b/t/data/f", _object_properties(reader._io)) == of_plan
    assert scan.count() == 6


def _object_properties(io: Any) -> Mapping[str, str]:
    properties: Mapping[str, str] = io.io.object_properties
    return properties


def test_scan_planning_mode_of_table_wins_over_catalog(
    planning: tuple[Planning, TestServer],
) -> None:
    source, server = planning
    # The table's config takes precedence.
    for of_table, of_catalog, by_server in (
        ("server", "client", True),
        ("SERVER", "", True),
        ("client", "server", False),
        ("", "server", True),
        ("", "client", False),
        ("", "", False),
    ):
        source.config = {"scan-planning-mode": of_table} if of_table else {}
        options = {"scan-planning-mode": of_catalog} if of_catalog else {}
        table = load(server, **options)
        assert (table.loaded.plan_scan is not None) is by_server
        before = len(planned(server))
        assert ids(table) == [0, 1, 2, 10, 11, 12]
        assert len(planned(server)) - before == by_server


def test_pickled_scan_has_no_token_and_cannot_plan(planning: tuple[Planning, TestServer]) -> None:
    scan = pickle.loads(pickle.dumps(load(planning[1], token="a-secret-token").scan()))
    with pytest.raises(CatalogError, match="planned by its server"):
        scan.to_arrow()
    assert b"a-secret-token" not in pickle.dumps(scan)


def test_ages_of_rows_are_not_known(planning: tuple[Planning, TestServer]) -> None:
    source, server = planning
    source.loaded = replace(
        source.loaded, metadata=replace(source.loaded.metadata, format_version=3)
    )
    table = load(server)
    with pytest.raises(UnsupportedFeatureError, match="_last_updated_sequence_number"):
        table.scan(columns=["_last_updated_sequence_number"]).to_arrow()
