"""Converts Arrow rows to the Python values that `output.py` prints."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows as dicts by column name; maps are mappings, dates and timestamps are text."""
    columns = [_with_times_as_text(column) for column in batch.columns]
    printable = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    rows: list[dict[str, Any]] = printable.to_pylist(maps_as_pydicts="lossy")
    return rows


def _with_times_as_text(column: pa.Array) -> pa.Array:
    """Cast dates and timestamps to text: Python has no nanoseconds and no years after 9999."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return pc.cast(column, pa.string())
    return column
