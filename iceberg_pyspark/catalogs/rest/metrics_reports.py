"""Reports of scans and commits to the server, in the background; failures are ignored.

Open API specification of the REST catalog, `reportMetrics`: `ScanReport` and `CommitReport`. The
names of metrics are the same as in Java. The values in filters are user data and are left out of
reports.
"""

from __future__ import annotations

import atexit
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakSet

from iceberg_pyspark.catalogs.catalog import ScanReport, TableIdentifier
from iceberg_pyspark.expressions.json import predicate_to_json
from iceberg_pyspark.spec.snapshots import Snapshot

_MOST_WAITING = 100
_LAST_WAIT_S = 1.0
_IDLE_S = 5.0
_HIDDEN = "***"
_log = logging.getLogger(__name__)

_COUNTS = {
    "added-data-files": "added-data-files",
    "removed-data-files": "deleted-data-files",
    "total-data-files": "total-data-files",
    "added-delete-files": "added-delete-files",
    "removed-delete-files": "removed-delete-files",
    "total-delete-files": "total-delete-files",
    "added-equality-delete-files": "added-equality-delete-files",
    "removed-equality-delete-files": "removed-equality-delete-files",
    "added-positional-delete-files": "added-position-delete-files",
    "removed-positional-delete-files": "removed-position-delete-files",
    "added-dvs": "added-dvs",
    "removed-dvs": "removed-dvs",
    "added-records": "added-records",
    "removed-records": "deleted-records",
    "total-records": "total-records",
    "added-positional-deletes": "added-position-deletes",
    "removed-positional-deletes": "removed-position-deletes",
    "total-positional-deletes": "total-position-deletes",
    "added-equality-deletes": "added-equality-deletes",
    "removed-equality-deletes": "removed-equality-deletes",
    "total-equality-deletes": "total-equality-deletes",
}
"""The counters of a commit report, each with the snapshot summary key that has its value."""

_SIZES = {
    "added-files-size-bytes": "added-files-size",
    "removed-files-size-bytes": "removed-files-size",
    "total-files-size-bytes": "total-files-size",
}


def commit_report(table: str, snapshot: Snapshot, duration_ns: int) -> dict[str, Any]:
    """Return the report of a commit that added a snapshot; the request took `duration_ns`."""
    metrics = {"total-duration": _timer(duration_ns)}
    for names, unit in ((_COUNTS, "count"), (_SIZES, "bytes")):
        for name, key in names.items():
            value = snapshot.summary.get(key, "")
            if value.isdigit():
                metrics[name] = _counter(int(value), unit)
    return {
        "report-type": "commit-report",
        "table-name": table,
        "snapshot-id": snapshot.snapshot_id,
        "sequence-number": snapshot.sequence_number,
        "operation": snapshot.operation or "",
        "metrics": metrics,
        "metadata": {},
    }


def scan_report(table: str, scan: ScanReport) -> dict[str, Any]:
    """Return the report of a planned scan; the id of a missing snapshot is -1, as in Java."""
    return {
        "report-type": "scan-report",
        "table-name": table,
        "snapshot-id": -1 if scan.snapshot_id is None else scan.snapshot_id,
        "filter": _without_values(predicate_to_json(scan.predicate)),
        "schema-id": scan.projection.schema_id,
        "projected-field-ids": [f.field_id for f in scan.projection.fields],
        "projected-field-names": [f.name for f in scan.projection.fields],
        "metrics": {
            "total-planning-duration": _timer(scan.duration_ns),
            "result-data-files": _counter(scan.data_files_kept),
            "skipped-data-files": _counter(max(scan.data_files - scan.data_files_kept, 0)),
            "indexed-delete-files": _counter(scan.delete_files),
            "total-file-size-in-bytes": _counter(scan.bytes_kept, "bytes"),
        },
        "metadata": {},
    }


def _timer(duration_ns: int) -> dict[str, Any]:
    return {"count": 1, "time-unit": "nanoseconds", "total-duration": duration_ns}


def _counter(value: int, unit: str = "count") -> dict[str, Any]:
    return {"unit": unit, "value": value}


def _without_values(expression: Any) -> Any:
    if not isinstance(expression, dict):
        return expression
    hidden = {"value": _HIDDEN, "values": [_HIDDEN]}
    return {k: hidden.get(k, _without_values(v)) for k, v in expression.items()}


class MetricsReports:
    """A queue of reports that a background thread sends; a full queue drops new reports.

    `send` is called with a table's identifier and a report, and may raise.
    """

    def __init__(self, send: Callable[[TableIdentifier, Mapping[str, Any]], None]) -> None:
        self._send = send
        self._waiting: queue.Queue[tuple[TableIdentifier, Callable[[], Mapping[str, Any]]]]
        self._waiting = queue.Queue(_MOST_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, identifier: TableIdentifier, build: Callable[[], Mapping[str, Any]]) -> None:
        """Queue a report, which the background thread builds with `build` and sends."""
        try:
            self._waiting.put_nowait((identifier, build))
            self._start()
        except Exception as e:  # noqa: BLE001 - a report fails nothing
            _log.debug("a report of %s is not sent: %s", identifier, type(e).__name__)

    def wait(self, seconds: float) -> None:
        """Wait until all queued reports are sent, but at most `seconds`."""
        end = time.monotonic() + seconds
        while self._waiting.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.01)

    def _start(self) -> None:
        with self._lock:
            # after a fork, the child process has no thread
            if self._thread is None or not self._thread.is_alive():
                _busy.add(self)
                self._thread = threading.Thread(
                    target=self._run, name="iceberg-metrics-reports", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                identifier, build = self._waiting.get(timeout=_IDLE_S)
            except queue.Empty:
                with self._lock:
                    if self._waiting.empty():
                        # end the thread, so that an unused catalog can be garbage-collected
                        self._thread = None
                        return
                continue
            try:
                self._send(identifier, build())
            except Exception as e:  # noqa: BLE001 - a report fails nothing
                # do not log the error's text, which may contain addresses; later reports fail the
                # same way
                _log.debug("a report of %s was not taken: %s", identifier, type(e).__name__)
            finally:
                self._waiting.task_done()


_busy: WeakSet[MetricsReports] = WeakSet()


@atexit.register
def _wait_for_the_last() -> None:
    """Wait up to a second at exit, so that a short program still sends its last reports."""
    end = time.monotonic() + _LAST_WAIT_S
    for reports in list(_busy):
        reports.wait(max(end - time.monotonic(), 0))


class ScanReports:
    """A callable that reports the scans of one loaded table."""

    def __init__(self, identifier: TableIdentifier, table: str, reports: MetricsReports) -> None:
        self._identifier = identifier
        self._table = table
        self._reports = reports

    def __call__(self, scan: ScanReport) -> None:
        """Report a planned scan."""
        self._reports.put(self._identifier, lambda: scan_report(self._table, scan))

    def __reduce__(self) -> tuple[Any, ...]:
        # tasks in other processes plan no scans and have no catalog, so they get None
        return type(None), ()
