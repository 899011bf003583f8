"""Scan and commit reports to a REST server; a report never delays or fails an operation."""

from __future__ import annotations

import pickle
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.changes.changes import AddSnapshot, SetProperties
from iceberg_pyspark.changes.outcomes import Done
from iceberg_pyspark.table.table_catalog import TableCatalog
from tests.services.server import Server
from tests.support.http_server import BreakConnection, Reply, TestServer, http_server
from tests.support.reporting_server import ReportingServer, reports
from tests.support.rest_answers import EVENTS, configured, error


@pytest.fixture
def reported(tmp_path: Path) -> Iterator[tuple[ReportingServer, TestServer]]:
    answer = ReportingServer(tmp_path)
    with http_server(configured(answer)) as server:
        yield answer, server


def test_a_scan_and_a_commit_are_reported(reported: tuple[ReportingServer, TestServer]) -> None:
    source, server = reported
    catalog = RestCatalog("lake", {"uri": server.uri})
    table = TableCatalog(catalog).load_table("db.events")
    scan = table.scan(filter="id = 1 AND name = 'a-persons-name'", columns=["id"])
    # Objects that are sent to tasks have no catalog.
    assert pickle.loads(pickle.dumps(scan)).report is None
    assert pickle.loads(pickle.dumps(table.loaded)).report_scan is None
    scan.to_arrow()
    (report,) = reports(server, 1)
    metrics = report.pop("metrics")
    assert report == {
        "report-type": "scan-report",
        "table-name": "lake.db.events",
        "snapshot-id": source.loaded.metadata.current_snapshot_id,
        "filter": {
            "type": "and",
            "left": {"type": "eq", "term": "id", "value": "***"},
            "right": {"type": "eq", "term": "name", "value": "***"},
        },
        "schema-id": 0,
        "projected-field-ids": [1],
        "projected-field-names": ["id"],
        "metadata": {},
    }
    assert metrics["skipped-data-files"] == {"unit": "count", "value": 2}
    assert metrics["total-planning-duration"].keys() == {"count", "time-unit", "total-duration"}
    added = source.loaded.metadata.snapshots[-1]
    assert isinstance(catalog.commit_table(EVENTS, (), (AddSnapshot(added),)), Done)
    catalog.commit_table(EVENTS, (), (SetProperties({"a": "1"}),))
    _, commit = reports(server, 2)
    metrics = commit.pop("metrics")
    assert commit == {
        "report-type": "commit-report",
        "table-name": "lake.db.events",
        "snapshot-id": added.snapshot_id,
        "sequence-number": 2,
        "operation": "append",
        "metadata": {},
    }
    assert metrics["added-data-files"] == {"unit": "count", "value": 1}
    assert metrics["total-records"] == {"unit": "count", "value": 2}
    assert metrics["added-files-size-bytes"]["unit"] == "bytes"


def test_nothing_waits_for_a_report_or_fails_by_it(
    reported: tuple[ReportingServer, TestServer],
) -> None:
    source, server = reported
    gate = threading.Event()

    def late() -> Reply:
        gate.wait(10)
        return error(500)

    def broken() -> Reply:
        raise BreakConnection

    catalog = RestCatalog("lake", {"uri": server.uri, "rest.client.max-retries": "0"})
    table = TableCatalog(catalog).load_table("db.events")
    answers: tuple[Callable[[], Reply], ...] = (late, broken, lambda: error(403))
    for answer in answers:
        source.answer = answer
        # More reports than the queue can hold.
        for _ in range(110 if answer is late else 1):
            assert table.scan().count() == 2
        gate.set()
    assert catalog._reports is not None
    catalog._reports.wait(30)
    assert catalog._reports._waiting.empty()


def test_an_idle_thread_ends_and_another_begins(
    reported: tuple[ReportingServer, TestServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iceberg_pyspark.catalogs.background_calls._IDLE_S", 0.05)
    catalog = RestCatalog("lake", {"uri": reported[1].uri})
    table = TableCatalog(catalog).load_table("db.events")
    for count in (1, 2):
        assert table.scan().count() == 2
        assert len(reports(reported[1], count)) == count
        assert catalog._reports is not None
        end = time.monotonic() + 5
        while catalog._reports._thread is not None and time.monotonic() < end:
            time.sleep(0.01)
        assert catalog._reports._thread is None


@pytest.mark.parametrize("reason", ["off", "not offered"])
def test_a_server_that_wants_none_gets_none(
    reported: tuple[ReportingServer, TestServer], reason: str
) -> None:
    source, _ = reported
    offered = ["POST /v1/{prefix}/tables/rename"] if reason == "not offered" else None
    config = {} if offered is None else {"endpoints": offered}
    options = {"rest-metrics-reporting-enabled": "false"} if reason == "off" else {}
    with http_server(configured(source, config)) as server:
        catalog = RestCatalog("lake", {"uri": server.uri, **options})
        table = TableCatalog(catalog).load_table("db.events")
        assert table.scan().count() == 2
        assert table.loaded.report_scan is None
        added = source.loaded.metadata.snapshots[-1]
        assert isinstance(catalog.commit_table(EVENTS, (), (AddSnapshot(added),)), Done)
        assert catalog._reports is None


@pytest.mark.nightly
def test_java_server_accepts_reports(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = RestCatalog("lake", {"uri": server.endpoint})
    statuses: list[int] = []

    def send(identifier: Any, report: Any) -> None:
        path = catalog._connection.paths.metrics(identifier)
        statuses.append(catalog._connection.session.ask("POST", path, body=report).status)

    monkeypatch.setattr(catalog, "_send_report", send)
    namespace = f"reports_{uuid.uuid4().hex}"
    catalog.create_namespace((namespace,))
    table = TableCatalog(catalog).create_table(f"{namespace}.t", schema="id BIGINT")
    table.append(pa.table({"id": [1]}))
    table.append(pa.table({"id": [2]}))
    assert table.scan(filter="id IN (1, 2) AND id IS NOT NULL").count() == 2
    assert catalog._reports is not None
    catalog._reports.wait(5)
    assert statuses == [204] * 3
