"""What Python calls the JVM with, one document of JSON for each call.

Tables of files go beside it (`arrow_stream.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetRelation:
    """A relation over chosen files (`IcebergPyParquetScans.relation`)."""

    table: str
    key: str
    """Equal for equal files, columns and facts."""

    columns: str
    """What to read of the files, each column by its field id: a schema of Spark's."""

    facts: tuple[str, ...]
    """The columns of the table of files that each row of a file has."""

    keys: tuple[str, ...] | None
    """Those by which files are grouped; None where they are not."""

    options: Mapping[str, str] = field(repr=False)
    """Hadoop's, for these files alone."""

    rows: int
    """How many the files hold."""

    filtered: Mapping[str, str]
    """Of columns that filters known while a query runs may be about what the table calls them."""

    planned: Mapping[str, int]
    """Numbers of the plan, for Spark's UI to show."""

    sorted_by: Sequence[Sequence[str]]
    """What the rows of each file are sorted by: the column, the direction, the place of nulls."""


def to_json(call: Any) -> str:
    """A call's values as the JVM takes them: by the names of fields."""
    return json.dumps({f.name: getattr(call, f.name) for f in fields(call)})
