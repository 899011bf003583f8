"""The tree of a Column of a classic session, as far as it is understood outside the JVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import Column


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function by its name in lower case."""

    name: str
    arguments: Sequence[ColumnNode]


@dataclass(frozen=True, slots=True)
class NamedColumn:
    """A column by its name as SQL writes it."""

    name: str


@dataclass(frozen=True, slots=True)
class LiteralNode:
    """A value."""

    value: Any


@dataclass(frozen=True, slots=True)
class SqlText:
    """A condition as SQL text, as `expr` takes it."""

    text: str


ColumnNode: TypeAlias = Call | NamedColumn | LiteralNode | SqlText | None
"""None is a part that is not understood."""


def node_of_column(column: Column) -> ColumnNode:
    """Return the tree of a classic session's column."""
    classic: Any = column
    return _node_of(classic._jc.node())


def _node_of(node: Any) -> ColumnNode:
    """Return the node of a tree in the JVM (`org.apache.spark.sql.internal.ColumnNode`)."""
    match node.getClass().getSimpleName():
        case "SqlExpression":
            return SqlText(node.expression())
        case "UnresolvedAttribute" if node.planId().isEmpty() and not node.isMetadataColumn():
            parts = node.nameParts()
            return NamedColumn(".".join(parts.apply(i) for i in range(parts.size())))
        case "Literal" if isinstance(node.value(), bool | int | str):
            return LiteralNode(node.value())
        case "UnresolvedFunction" if not (node.isDistinct() or node.isUserDefinedFunction()):
            arguments = node.arguments()
            nodes = [_node_of(arguments.apply(i)) for i in range(arguments.size())]
            return Call(node.functionName().lower(), nodes)
    return None
