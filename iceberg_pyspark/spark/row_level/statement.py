"""DELETE, UPDATE and MERGE as Spark has analysed them, as the same operations that Python asks for.

Nothing is parsed again: conditions and values are Spark's own expressions, about columns by id, and
the target's rows come with these ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sql

from iceberg_pyspark.spark.bridge.features import SCHEMA_EVOLUTION
from iceberg_pyspark.spark.bridge.java_lists import items
from iceberg_pyspark.spark.row_level.assignments import ColumnPath
from iceberg_pyspark.spark.row_level.change_columns import ClauseOp, Op
from iceberg_pyspark.spark.row_level.delete import Delete
from iceberg_pyspark.spark.row_level.merge import Clause, Merge
from iceberg_pyspark.spark.row_level.operation import Operation
from iceberg_pyspark.spark.row_level.update import Update

_OPS: dict[str, ClauseOp] = {
    "update": Op.UPDATE,
    "delete": Op.DELETE,
    "insert": Op.INSERT,
}


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement on the table of a handle, whose columns it knows as `columns`."""

    handle: str
    columns: Any
    operation: Operation


def read_statement(bridge: Any, plan: Any) -> Statement:
    """Take Spark's plan of a statement apart; raises `UnsupportedFeatureError`."""
    parts = bridge.statement(plan)
    # what it reads of our tables is pinned: on a newer snapshot it would mix two states
    again = not parts["reads_iceberg"]
    condition = parts["condition"]
    where = sql.lit(True) if condition is None else Column(condition)
    operation: Operation
    match parts["kind"]:
        case "delete":
            operation = Delete(condition=where, may_run_again=again)
        case "update":
            operation = Update(
                assignments=_assignments(parts["assignments"]),
                condition=where,
                may_run_again=again,
            )
        case _:
            if parts["adds_columns"]:
                bridge.check(SCHEMA_EVOLUTION)
            operation = Merge(
                source=bridge.frame(parts["source"]),
                condition=where,
                matched=_clauses(parts["matched"]),
                not_matched=_clauses(parts["not_matched"]),
                not_matched_by_source=_clauses(parts["not_matched_by_source"]),
                may_run_again=again,
            )
    return Statement(handle=parts["handle"], columns=parts["columns"], operation=operation)


def _assignments(given: Any) -> dict[ColumnPath, Column]:
    pairs = (items(pair) for pair in items(given))
    return {tuple(items(path)): Column(value) for path, value in pairs}


def _clauses(given: Any) -> tuple[Clause, ...]:
    return tuple(
        Clause(
            op=_OPS[what],
            condition=None if condition is None else Column(condition),
            values=_assignments(assignments),
        )
        for what, condition, assignments in map(items, items(given))
    )
