"""DELETE, UPDATE and MERGE as Spark has analysed them, as the same operations that Python asks for.

Nothing is parsed again: conditions and values are Spark's own expressions, about columns by id, and
the target's rows come with these ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sql

from iceberg_pyspark.spark.bridge.features import SCHEMA_EVOLUTION
from iceberg_pyspark.spark.bridge.protocol.statements import AnalysedAssignment, AnalysedClause
from iceberg_pyspark.spark.bridge.values import StatementExpression, Value
from iceberg_pyspark.spark.row_level.assignments import ColumnPath
from iceberg_pyspark.spark.row_level.change_columns import ClauseOp, Op
from iceberg_pyspark.spark.row_level.delete import Delete
from iceberg_pyspark.spark.row_level.merge import Clause, Merge
from iceberg_pyspark.spark.row_level.operation import Operation
from iceberg_pyspark.spark.row_level.update import Update

if TYPE_CHECKING:
    from iceberg_pyspark.spark.bridge.jvm import Bridge

_OPS: Mapping[str, ClauseOp] = {
    "update": Op.UPDATE,
    "delete": Op.DELETE,
    "insert": Op.INSERT,
}


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement on the table of a handle, whose columns `known` has by their ids."""

    handle: str
    known: Any
    operation: Operation


def read_statement(bridge: Bridge, plan: Any) -> Statement:
    """Take Spark's plan of a statement apart; raises `UnsupportedFeatureError`."""
    said, known = bridge.row_changes.statement(plan)
    # what it reads of our tables is pinned: on a newer snapshot it would mix two states
    again = not said.reads_iceberg
    condition = (
        sql.lit(True)
        if said.condition is None
        else StatementExpression(known, said.condition).column()
    )
    operation: Operation
    match said.kind:
        case "delete":
            operation = Delete(condition=condition, may_run_again=again)
        case "update":
            assigned = _assignments(said.assignments, known)
            operation = Update(assignments=assigned, condition=condition, may_run_again=again)
        case "merge":
            if said.adds_columns:
                bridge.check(SCHEMA_EVOLUTION)
            operation = Merge(
                source=bridge.row_changes.source_of(known),
                condition=condition,
                matched=_clauses(said.matched, known),
                not_matched=_clauses(said.not_matched, known),
                not_matched_by_source=_clauses(said.not_matched_by_source, known),
                may_run_again=again,
            )
    return Statement(handle=said.handle, known=known, operation=operation)


def _assignments(said: Iterable[AnalysedAssignment], known: Any) -> dict[ColumnPath, Value]:
    return {one.path: StatementExpression(known, one.value) for one in said}


def _clauses(said: Iterable[AnalysedClause], known: Any) -> tuple[Clause, ...]:
    return tuple(
        Clause(
            op=_OPS[one.op],
            condition=None if one.condition is None else StatementExpression(known, one.condition),
            values=_assignments(one.assignments, known),
        )
        for one in said
    )
