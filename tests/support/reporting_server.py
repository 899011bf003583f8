"""A REST server of one table that collects reports of scans and commits."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import iceberg_pyspark as ice
from iceberg_pyspark.spec.table_metadata import metadata_to_json
from tests.support.http_server import Reply, Request, TestServer
from tests.support.rest_answers import EVENTS, TABLE

METRICS = f"{TABLE}/metrics"


class ReportingServer:
    """A server of one table with two data files; `answer` returns the reply to a report."""

    def __init__(self, folder: Path) -> None:
        lake = ice.load_catalog("own", type="memory", warehouse=str(folder))
        lake.create_namespace("db")
        table = lake.create_table("db.events", schema="id BIGINT, name STRING")
        for n in range(2):
            table.append(pa.table({"id": [n], "name": ["a"]}))
        self.loaded = lake.catalog.load_table(EVENTS)
        self.answer: Callable[[], Reply] = lambda: Reply(204)

    def __call__(self, request: Request) -> Reply:
        if request.path == METRICS:
            return self.answer()
        metadata = metadata_to_json(self.loaded.metadata)
        location = self.loaded.metadata_location
        return Reply(200, {"metadata-location": location, "metadata": metadata})


def reports(server: TestServer, count: int) -> list[Any]:
    """Return the reports once `count` of them have arrived, or after five seconds."""
    end = time.monotonic() + 5
    while True:
        sent = [r.json() for r in server.requests if r.path == METRICS]
        if len(sent) >= count or time.monotonic() > end:
            return sent
        time.sleep(0.01)
