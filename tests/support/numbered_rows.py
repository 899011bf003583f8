"""Rows for tests of what becomes of each row: an id, the id's parity and the id as a text."""

from __future__ import annotations

import pyarrow as pa


def rows(*ids: int) -> pa.Table:
    """A row (id, g, s) for each id: g = id % 2, s its text."""
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "g": pa.array([i % 2 for i in ids], pa.int32()),
            "s": [str(i) for i in ids],
        }
    )
