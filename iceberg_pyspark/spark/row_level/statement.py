"""Converts DELETE, UPDATE and MERGE statements that Spark has analysed to operations.

Nothing is parsed again: conditions and values are Spark's own expressions, which refer to columns
by id, and the target's rows use these ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sql

from iceberg_pyspark.spark.bridge.call_arguments import StatementExpression, Value
from iceberg_pyspark.spark.bridge.features import SCHEMA_EVOLUTION
from iceberg_pyspark.spark.bridge.protocol.write_messages import AnalysedAction, AnalysedAssignment
from iceberg_pyspark.spark.row_level.change_frame import ColumnPath
from iceberg_pyspark.spark.row_level.change_where import Delete, Update
from iceberg_pyspark.spark.row_level.merge import Clause, Merge
from iceberg_pyspark.spark.row_level.operation import Operation
from iceberg_pyspark.table.row_level.change_task import ClauseOp, Op

if TYPE_CHECKING:
    from iceberg_pyspark.spark.bridge.jvm import Bridge

_OPS: Mapping[str, ClauseOp] = {
    "update": Op.UPDATE,
    "delete": Op.DELETE,
    "insert": Op.INSERT,
}


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement on a table, given by its handle; `columns` has the column ids that it uses."""

    handle: str
    columns: Any
    operation: Operation


def read_statement(bridge: Bridge, plan: Any, *, reads_iceberg: bool) -> Statement:
    """Return the statement of Spark's plan; raise `UnsupportedFeatureError`.

    `reads_iceberg`: whether Spark has analysed it as one that reads Iceberg tables besides its own.
    """
    description, columns = bridge.row_changes.statement(plan)
    # Other Iceberg tables that it reads are pinned: a newer snapshot here would mix two states.
    may_run_again = not (reads_iceberg or description.reads_iceberg)
    condition = (
        sql.lit(True)
        if description.condition is None
        else StatementExpression(columns, description.condition).column()
    )
    operation: Operation
    match description.kind:
        case "delete":
            operation = Delete(condition=condition, may_run_again=may_run_again)
        case "update":
            new_values = _assignments(description.assignments, columns)
            operation = Update(
                assignments=new_values, condition=condition, may_run_again=may_run_again
            )
        case "merge":
            if description.adds_columns:
                bridge.check(SCHEMA_EVOLUTION)
            operation = Merge(
                source=bridge.row_changes.source_of(columns),
                condition=condition,
                matched_clauses=_clauses(description.matched_actions, columns),
                not_matched_clauses=_clauses(description.not_matched_actions, columns),
                not_matched_by_source_clauses=_clauses(
                    description.not_matched_by_source_actions, columns
                ),
                may_run_again=may_run_again,
            )
    return Statement(handle=description.handle, columns=columns, operation=operation)


def _assignments(
    assignments: Iterable[AnalysedAssignment], columns: Any
) -> dict[ColumnPath, Value]:
    return {one.path: StatementExpression(columns, one.value) for one in assignments}


def _clauses(actions: Iterable[AnalysedAction], columns: Any) -> tuple[Clause, ...]:
    return tuple(
        Clause(
            op=_OPS[one.op],
            condition=None
            if one.condition is None
            else StatementExpression(columns, one.condition),
            values=_assignments(one.assignments, columns),
        )
        for one in actions
    )
