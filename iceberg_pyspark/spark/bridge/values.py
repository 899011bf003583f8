"""The values of changed rows for the JVM, which creates all expressions in one call.

One call per expression would take longer than the job of a small change. `IcebergPyRowValues` has
the same kinds of values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pyspark.sql import Column

Side: TypeAlias = Literal["source", "target"] | None
"""Whose columns names are of: those of one side of a join alone, or of all that there are."""


@dataclass(frozen=True, slots=True)
class Sql:
    """An expression of Spark SQL."""

    text: str


@dataclass(frozen=True, slots=True)
class StatementExpression:
    """An expression of a statement in the JVM, which Python knows by its number."""

    expressions: Any
    """An `IcebergPyExpressions`."""

    number: int

    def column(self) -> Column:
        """The value as a column; a call of the JVM."""
        return Column(self.expressions.column(self.number))


@dataclass(frozen=True, slots=True)
class TargetValue:
    """A column of the target: its value stays."""

    name: str


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of the source, by its quoted name."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """An integer."""

    value: int


@dataclass(frozen=True, slots=True)
class Cast:
    """A value converted to a type of Spark's; what does not fit is an error in every session."""

    value: Value
    type: str
    """As Spark writes it in JSON."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct."""

    value: Value
    name: str


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct of named values."""

    fields: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Unused:
    """A placeholder whose value is never read."""


Value: TypeAlias = (
    Column
    | Sql
    | StatementExpression
    | TargetValue
    | SourceColumn
    | Number
    | Cast
    | Field
    | Struct
    | Unused
)
