"""The statistics of a table and its columns that Spark's optimizer has before planning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class KnownColumn:
    """The optimizer's statistics of a column; None for an unknown value."""

    distinct: int | None
    nulls: int | None
    least: str | None
    greatest: str | None


def _option_text(option: Any) -> str | None:
    # Take the JVM's text: py4j converts some values to Python types.
    return str(option.toString())[len("Some(") : -1] if option.isDefined() else None


def known_rows(frame: DataFrame) -> int | None:
    """Return the optimizer's row count of the only table in a frame, or None if unknown."""
    text = _option_text(_leaf(frame).stats().rowCount())
    return None if text is None else int(text)


def known_columns(frame: DataFrame) -> dict[str, KnownColumn]:
    """Return the optimizer's column statistics of the only table in a frame, by column name."""
    leaf = _leaf(frame)
    result = {}
    output = leaf.output().iterator()
    while output.hasNext():
        attribute = output.next()
        statistics = leaf.stats().attributeStats().get(attribute)
        if statistics.isDefined():
            column = statistics.get()
            distinct, nulls = _option_text(column.distinctCount()), _option_text(column.nullCount())
            result[attribute.name()] = KnownColumn(
                distinct=None if distinct is None else int(distinct),
                nulls=None if nulls is None else int(nulls),
                least=_option_text(column.min()),
                greatest=_option_text(column.max()),
            )
    return result


def _leaf(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed().collectLeaves().head()
