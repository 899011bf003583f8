"""Scans of `format("iceberg-py")` are reported to a REST server, whichever process plans them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import iceberg_pyspark as ice
from tests.support.http_server import BreakConnection, Reply, TestServer, http_server
from tests.support.native_lake import plan_of
from tests.support.parameters import cases
from tests.support.reporting_server import ReportingServer, reports
from tests.support.rest_answers import configured


@pytest.fixture
def reported(tmp_path: Path) -> Iterator[tuple[ReportingServer, TestServer]]:
    answer = ReportingServer(tmp_path)
    with http_server(configured(answer)) as server:
        yield answer, server


def options_of(server: TestServer, **more: str) -> dict[str, str]:
    return {"catalog": "lake", "catalog.type": "rest", "catalog.uri": server.uri, **more}


def read_ids(spark: SparkSession, options: dict[str, str]) -> list[int]:
    frame = spark.read.format("iceberg-py").options(**options).load("db.events")
    return sorted(row.id for row in frame.collect())


def scan_of(report: dict[str, Any]) -> tuple[Any, ...]:
    metrics = report["metrics"]
    kept = metrics["result-data-files"]["value"], metrics["skipped-data-files"]["value"]
    return report["report-type"], report["table-name"], report["snapshot-id"], *kept


@cases("path", fast=["native"], nightly=["portable"])
def test_a_scan_of_a_pinned_table_is_reported(
    spark: SparkSession, reported: tuple[ReportingServer, TestServer], path: str
) -> None:
    source, server = reported
    first, second = (s.snapshot_id for s in source.loaded.metadata.snapshots)
    session = ice.install(spark) if path == "native" else None
    try:
        frame = spark.read.format("iceberg-py").options(**options_of(server))
        plan = plan_of(frame.load("db.events"))
        assert ("IcebergPyParquetScan" in plan) == (path == "native")
        current = reports(server, 1 if path == "native" else 0)
        assert read_ids(spark, options_of(server, filter="id = 1")) == [1]
        (*_, report) = reports(server, len(current) + 1)
        assert scan_of(report) == ("scan-report", "lake.db.events", second, 1, 1)
        assert report["filter"] == {"type": "eq", "term": "id", "value": "***"}
        assert read_ids(spark, options_of(server, **{"snapshot-id": str(first)})) == [0]
        (*_, report) = reports(server, len(current) + 2)
        assert scan_of(report) == ("scan-report", "lake.db.events", first, 1, 0)
    finally:
        if session is not None:
            session.uninstall()


@pytest.mark.nightly
def test_a_scan_neither_waits_for_its_report_nor_fails_by_it(
    spark: SparkSession, reported: tuple[ReportingServer, TestServer]
) -> None:
    source, server = reported
    answered = threading.Event()

    def late() -> Reply:
        # the rows must arrive first
        answered.wait(60)
        raise BreakConnection

    source.answer = late
    session = ice.install(spark)
    try:
        assert read_ids(spark, options_of(server)) == [0, 1]
        assert len(reports(server, 1)) == 1
        assert not answered.is_set()
    finally:
        answered.set()
        session.uninstall()


@pytest.mark.nightly
def test_a_server_that_wants_no_reports_gets_none(
    spark: SparkSession, reported: tuple[ReportingServer, TestServer]
) -> None:
    _, server = reported
    off = {"catalog.rest-metrics-reporting-enabled": "false"}
    session = ice.install(spark)
    try:
        assert read_ids(spark, options_of(server, **off)) == [0, 1]
        before = server.paths("GET").count("/v1/config")
        assert read_ids(spark, options_of(server)) == [0, 1]
        # the report of the second scan is the only one
        assert len(reports(server, 1)) == 1
        assert server.paths("GET").count("/v1/config") == 2 * before + 1
    finally:
        session.uninstall()
