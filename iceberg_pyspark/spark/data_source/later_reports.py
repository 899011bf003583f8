"""Reports the scans of pinned tables to their catalog, in the background.

A step that plans a pinned table has no catalog, and opening one takes requests to its server. So a
thread opens the catalog and sends the report, after the plan. A report never delays or fails a
read.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from iceberg_pyspark.catalogs.catalog import ReportingCatalog, ScanReport
from iceberg_pyspark.spark.data_source.table_access import find_table

if TYPE_CHECKING:
    from iceberg_pyspark.spark.data_source.options import TableOptions

_MOST_WAITING = 8
_LAST_WAIT_S = 1.0
_log = logging.getLogger(__name__)
_threads: set[threading.Thread] = set()
_lock = threading.Lock()


class LaterReports:
    """A callable that reports the scans of a pinned table; it returns at once and never raises.

    A report is dropped if too many others are not sent yet.
    """

    def __init__(self, table: TableOptions) -> None:
        """`table` has the options that name the table and its catalog."""
        self._table = table

    def __call__(self, scan: ScanReport) -> None:
        """Report a planned scan."""
        thread = threading.Thread(
            target=self._send, args=(scan,), name="iceberg-metrics-report", daemon=True
        )
        try:
            with _lock:
                _threads.difference_update([t for t in _threads if not t.is_alive()])
                if len(_threads) >= _MOST_WAITING:
                    return
                thread.start()
                _threads.add(thread)
        except Exception as e:  # noqa: BLE001 - a report fails nothing
            _log.debug("a report of a scan is not sent: %s", type(e).__name__)

    def _send(self, scan: ScanReport) -> None:
        try:
            catalog, identifier = find_table(self._table)
            if isinstance(catalog, ReportingCatalog):
                catalog.report_scan(identifier, scan)
        except Exception as e:  # noqa: BLE001 - a report fails nothing
            # the error's text may contain addresses
            _log.debug("a report of a scan was not taken: %s", type(e).__name__)

    def __reduce__(self) -> tuple[Any, ...]:
        # tasks plan no scans, and must not get the options of a catalog
        return type(None), ()


@atexit.register
def _wait_for_the_last() -> None:
    """Wait up to a second at exit, so that a short program still sends its last reports."""
    end = time.monotonic() + _LAST_WAIT_S
    for thread in list(_threads):
        thread.join(max(end - time.monotonic(), 0))
