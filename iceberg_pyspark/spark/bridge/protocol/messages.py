"""Base classes of the JVM's requests and of the responses; Spark's values and expressions."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen struct that is decoded from JSON and encoded to JSON."""

    def __repr__(self) -> str:
        """Return only the class name, because options, settings and properties may hold secrets."""
        return f"{type(self).__name__}(...)"


class Request(Message, frozen=True, kw_only=True):
    """A request from the JVM."""


class RequestWithPlan(Request, frozen=True, kw_only=True):
    """A request that comes with a Spark plan."""

    plan: Any = None
    """A JVM object, not part of the JSON: a `LogicalPlan`, or a `Dataset` of rows to write."""


class Response(Message, frozen=True, kw_only=True):
    """A response to the JVM."""


class ResponseWithParts(Response, frozen=True, kw_only=True):
    """A response that comes with Spark plans."""

    parts: Callable[[str], Any] | None = None
    """A function that makes the JVM's list of the response's text and the plans; not part of the
    JSON.

    It is None if Spark keeps its own plan.
    """


class Failure(Response, frozen=True, kw_only=True):
    """The response to any request that fails: Java raises it."""

    error: str
    """The name of the class in `errors.py`; empty for any other exception."""

    message: str
    namespace: tuple[str, ...] = ()
    """The namespace that the error is about, or the namespace of the table that it is about."""

    name: str | None = None


class Acknowledgement(Response, frozen=True, kw_only=True):
    """A response without content."""


def text_of(message: Message) -> str:
    """Return a message as JSON; equal messages give equal text."""
    return msgspec.json.encode(message).decode()


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
