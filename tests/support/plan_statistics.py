"""What Spark's optimizer takes a table for: rows and columns, before anything is planned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class KnownColumn:
    """A column as the optimizer knows it; None for what it does not."""

    distinct: int | None
    nulls: int | None
    least: str | None
    greatest: str | None


def _said(option: Any) -> str | None:
    # as the JVM writes it: py4j makes some values Python's own
    return str(option.toString())[len("Some(") : -1] if option.isDefined() else None


def known_rows(frame: DataFrame) -> int | None:
    """How many rows the only table of a frame has, as the optimizer knows it."""
    text = _said(_leaf(frame).stats().rowCount())
    return None if text is None else int(text)


def known_columns(frame: DataFrame) -> dict[str, KnownColumn]:
    """Of the only table of a frame, what the optimizer knows of its columns."""
    leaf = _leaf(frame)
    result = {}
    output = leaf.output().iterator()
    while output.hasNext():
        attribute = output.next()
        known = leaf.stats().attributeStats().get(attribute)
        if known.isDefined():
            column = known.get()
            distinct, nulls = _said(column.distinctCount()), _said(column.nullCount())
            result[attribute.name()] = KnownColumn(
                distinct=None if distinct is None else int(distinct),
                nulls=None if nulls is None else int(nulls),
                least=_said(column.min()),
                greatest=_said(column.max()),
            )
    return result


def _leaf(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed().collectLeaves().head()
