"""Reports of scans and commits to the server, in the background; failures are ignored.

Open API specification of the REST catalog, `reportMetrics`: `ScanReport` and `CommitReport`. The
names of metrics are the same as in Java. The values in filters are user data and are left out of
reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from iceberg_pyspark.catalogs.background_calls import BackgroundCalls
from iceberg_pyspark.catalogs.catalog import ScanReport, TableIdentifier
from iceberg_pyspark.expressions.json import predicate_to_json
from iceberg_pyspark.spec.snapshots import Snapshot

_MAX_WAITING = 100
_MASK = "***"

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
    masks = {"value": _MASK, "values": [_MASK]}
    return {k: masks.get(k, _without_values(v)) for k, v in expression.items()}


class MetricsReports(BackgroundCalls):
    """Sends reports in the background; too many waiting reports are dropped.

    `send` is called with a table's identifier and a report, and may raise.
    """

    def __init__(self, send: Callable[[TableIdentifier, Mapping[str, Any]], None]) -> None:
        super().__init__(_MAX_WAITING)
        self._send = send

    def report(self, identifier: TableIdentifier, build: Callable[[], Mapping[str, Any]]) -> None:
        """Send a report later, which the background thread builds with `build`."""
        self.put(f"a report of {identifier}", lambda: self._send(identifier, build()))


class ScanReports:
    """A callable that reports the scans of one loaded table."""

    def __init__(self, identifier: TableIdentifier, table: str, reports: MetricsReports) -> None:
        self._identifier = identifier
        self._table = table
        self._reports = reports

    def __call__(self, scan: ScanReport) -> None:
        """Report a planned scan."""
        self._reports.report(self._identifier, lambda: scan_report(self._table, scan))

    def __reduce__(self) -> tuple[Any, ...]:
        # tasks in other processes plan no scans and have no catalog, so they get None
        return type(None), ()
