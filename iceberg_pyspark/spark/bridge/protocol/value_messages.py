"""Values and expressions of Spark in the protocol."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

from iceberg_pyspark.spark.bridge.protocol.messages import Message

WireValue: TypeAlias = bool | int | str | None
"""A column value in the physical form of `spec/values.py`; decimals are text."""


class Operator(Message, frozen=True, kw_only=True, tag_field="node", tag="operator"):
    """An operator with this package's or Spark's name for it; `other` if Java does not know it."""

    op: str
    args: tuple[Expression, ...]


class ColumnPath(Message, frozen=True, kw_only=True, tag_field="node", tag="column"):
    """A column or a nested field, by its path of names."""

    path: tuple[str, ...]


class LiteralValue(Message, frozen=True, kw_only=True, tag_field="node", tag="literal"):
    """A literal as Spark holds it: bytes in hexadecimal, decimals and floats as text."""

    type: str
    value: bool | int | str | None


Expression: TypeAlias = Operator | ColumnPath | LiteralValue
"""A Spark condition or value; `bridge/spark_conditions.py` converts it to a predicate."""


def wire_value(value: Any) -> WireValue:
    """Return a value in the physical form of `spec/values.py` as the protocol sends it."""
    plain: WireValue = str(value) if isinstance(value, Decimal | float) else value
    return plain
