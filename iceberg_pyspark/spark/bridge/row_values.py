"""The values of changed rows for the JVM, which creates all expressions in one call.

One call per expression would take longer than the job of a small change. `IcebergPyRowValues` has
the same kinds of values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pyspark.sql import Column

Side: TypeAlias = Literal["source", "target"] | None
"""The side of a join whose columns the names refer to; None for all columns."""


@dataclass(frozen=True, slots=True)
class Sql:
    """An expression of Spark SQL."""

    text: str


@dataclass(frozen=True, slots=True)
class StatementExpression:
    """An expression of a statement in the JVM, which Python refers to by number."""

    expressions: Any
    """An `IcebergPyExpressions` object of the JVM."""

    number: int

    def column(self) -> Column:
        """Return the value as a column; this is a call of the JVM."""
        return Column(self.expressions.column(self.number))


@dataclass(frozen=True, slots=True)
class TargetValue:
    """A column of the target whose value does not change."""

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
    """A value cast to a Spark type; a value that does not fit is an error in every session."""

    value: Value
    type: str
    """The type in Spark's JSON."""


@dataclass(frozen=True, slots=True)
class UnusedValue:
    """A placeholder whose value is never read."""


Value: TypeAlias = (
    Column | Sql | StatementExpression | TargetValue | SourceColumn | Number | Cast | UnusedValue
)
