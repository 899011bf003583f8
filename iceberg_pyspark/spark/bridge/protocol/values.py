"""Values and expressions of Spark in the protocol."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

from iceberg_pyspark.spark.bridge.protocol.messages import Message

WireValue: TypeAlias = bool | int | str | None
"""A value of a column, in the physical form of `spec/values.py`; decimals are text."""


class Operator(Message, frozen=True, kw_only=True, tag_field="node", tag="operator"):
    """An operator, by our name or that of Spark's class; `other`: one that Java does not know."""

    op: str
    args: tuple[Expression, ...]


class ColumnPath(Message, frozen=True, kw_only=True, tag_field="node", tag="column"):
    """A column, or a field in one, by the names from the top."""

    path: tuple[str, ...]


class LiteralValue(Message, frozen=True, kw_only=True, tag_field="node", tag="literal"):
    """A value as Spark holds it, bytes in hexadecimal, decimals and floats as text."""

    type: str
    value: bool | int | str | None


Expression: TypeAlias = Operator | ColumnPath | LiteralValue
"""A condition or value of Spark's, described; `bridge/filters.py` makes predicates of them."""


def wire_value(value: Any) -> WireValue:
    """A value in the physical form of `spec/values.py` as it goes in an answer."""
    plain: WireValue = str(value) if isinstance(value, Decimal) else value
    return plain
