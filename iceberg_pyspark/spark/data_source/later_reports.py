"""Reports the scans of pinned tables to their catalog, in the background.

A step that plans a pinned table has no catalog, and opening one takes requests to its server. So a
thread opens the catalog and sends the report, after the plan. A report never delays or fails a
read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iceberg_pyspark.catalogs.background_calls import BackgroundCalls
from iceberg_pyspark.catalogs.catalog import ReportingCatalog, ScanReport
from iceberg_pyspark.spark.data_source.table_access import find_table

if TYPE_CHECKING:
    from iceberg_pyspark.spark.data_source.options import TableOptions

_calls = BackgroundCalls(max_waiting=8)


class LaterReports:
    """A callable that reports the scans of a pinned table; it returns at once and never raises.

    A report is dropped if too many others are not sent yet.
    """

    def __init__(self, table: TableOptions) -> None:
        """`table` has the options that name the table and its catalog."""
        self._table = table

    def __call__(self, scan: ScanReport) -> None:
        """Report a planned scan."""
        _calls.put("a report of a scan", lambda: self._send(scan))

    def _send(self, scan: ScanReport) -> None:
        catalog, identifier = find_table(self._table)
        if isinstance(catalog, ReportingCatalog):
            catalog.report_scan(identifier, scan)

    def __reduce__(self) -> tuple[Any, ...]:
        # tasks plan no scans, and must not get the options of a catalog
        return type(None), ()
