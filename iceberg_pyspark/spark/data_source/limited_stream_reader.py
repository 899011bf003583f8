"""The portable stream on Spark 4.2 and newer, which limits batches and has Trigger.AvailableNow.

Older releases do not have what this module imports.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from iceberg_pyspark.spark.data_source.stream_reader import (
    IcebergStreamReader,
    offset_content,
)
from iceberg_pyspark.spark.rows.worker_steps import worker_step
from iceberg_pyspark.table.reading.stream_rules import NO_LIMITS


class LimitedStreamReader(IcebergStreamReader, SupportsTriggerAvailableNow):
    """A reader of the rows that a table gets, in batches of a limited size."""

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return one of the limits of the options; a batch keeps all of them."""
        limits = self._open.options.limits
        if limits.max_files is not None:
            return ReadMaxFiles(limits.max_files)
        if limits.max_rows is not None:
            return ReadMaxRows(limits.max_rows)
        if limits.max_bytes is not None:
            return ReadMaxBytes(limits.max_bytes)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # type: ignore[override]
        """Return the end of the batch that begins at an offset."""
        with worker_step():
            is_all = isinstance(limit, ReadAllAvailable)
            return self._end(start, NO_LIMITS if is_all else self._open.options.limits)

    def prepareForTriggerAvailableNow(self) -> None:
        """Read no further than the table as it is now."""
        with worker_step():
            self._open.refresh()
            self._until = self._open.offsets().end()

    def reportLatestOffset(self) -> dict[str, Any]:
        """Return the end of the table as it was last loaded."""
        with worker_step():
            return offset_content(self._open.offsets().end())
