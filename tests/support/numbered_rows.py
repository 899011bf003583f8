"""Rows for tests that follow each row: an id, the id's parity, and the id as text."""

from __future__ import annotations

import pyarrow as pa


def rows(*ids: int) -> pa.Table:
    """Return a row (id, g, s) for each id, where g = id % 2 and s is the id as text."""
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "g": pa.array([i % 2 for i in ids], pa.int32()),
            "s": [str(i) for i in ids],
        }
    )
