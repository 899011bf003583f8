"""Compares this machine's clock with the time of a table's store.

With a clock that is days ahead, everything seems older than it is: files of writers that have not
committed yet, and snapshots that are to be kept for some days.
"""

from __future__ import annotations

from iceberg_pyspark.errors import InvalidRequestError, StorageError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.storage.files.file_io import temporary_name
from iceberg_pyspark.storage.own_folders import OwnFolders
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable

_MAX_AHEAD_MS = 3_600_000
_log = get_logger(__name__)


def check_clock(table: MaintainedTable, own: OwnFolders, remedy: str) -> None:
    """Raise `InvalidRequestError` if this machine's clock is more than an hour ahead.

    The store's time is that of a file just written, which is deleted again. A store that does not
    tell times is not asked.
    """
    if not own.folders:
        return
    io, folder = table.io, f"{own.folders[0].rstrip('/')}/metadata"
    location = f"{folder}/{temporary_name()}"
    now_ms = table.clock.now_ms()
    io.write_bytes(location, b"-")
    try:
        store_ms = next(
            (f.modified_ms for f in io.list_files(folder) if f.location == location), None
        )
    finally:
        try:
            own.delete(io, location)
        except StorageError as e:
            _log.info("a file to ask for the store's time was not deleted: %s", e)
    if store_ms is not None and now_ms - store_ms > _MAX_AHEAD_MS:
        raise InvalidRequestError(
            f"table {table.name}: nothing is deleted, because this machine's clock is "
            f"{(now_ms - store_ms) / 3_600_000:.1f} hours ahead of the store's time, so files and "
            f"snapshots seem older than they are; correct the clock, or {remedy}"
        )
