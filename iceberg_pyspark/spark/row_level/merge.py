"""MERGE: rows of a source and of the table meet where a condition holds, and clauses say what then.

One join does it all. Which kind depends on the clauses: rows that no clause is about need not come
out of it. Where files are rewritten their other rows come out too, to be copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from iceberg_pyspark.spark.row_level.assignments import Assignments
from iceberg_pyspark.spark.row_level.change_columns import ClauseOp, Op
from iceberg_pyspark.spark.row_level.change_frame import Change, change_frame
from iceberg_pyspark.spark.row_level.isolation import Mode, OperationName
from iceberg_pyspark.spark.row_level.key_range import rows_in_range
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.spec.metadata_columns import FILE, POS

_FROM_SOURCE = "__ice_source"


@dataclass(frozen=True, kw_only=True)
class Clause:
    """WHEN ... THEN: `condition` None holds always; `values` of an update or insert."""

    op: ClauseOp
    condition: Column | None = None
    values: Assignments | None = None


@dataclass(frozen=True, kw_only=True)
class Merge:
    """Clauses of each kind are tried in their order, and the first that holds is carried out."""

    source: DataFrame
    condition: Column
    matched: tuple[Clause, ...] = ()
    not_matched: tuple[Clause, ...] = ()
    not_matched_by_source: tuple[Clause, ...] = ()
    may_run_again: bool = True
    name: ClassVar[OperationName] = "merge"

    @property
    def meets_once(self) -> bool:
        """See `Operation`: to delete a row twice is to delete it."""
        match self.matched:
            case ():
                return False
            case (Clause(op=Op.DELETE, condition=None),):
                return False
            case _:
                return True

    def selection(self, target: Target) -> None:
        """See `Operation`: which rows change is for Spark to tell."""
        del target

    def writes_rows(self, mode: Mode) -> bool:
        """See `Operation`."""
        clauses = (*self.matched, *self.not_matched, *self.not_matched_by_source)
        return mode == "copy-on-write" or any(c.op is not Op.DELETE for c in clauses)

    def touched(self, target: Target) -> DataFrame | None:
        """See `Operation`."""
        rows = target.rows()
        if not self.not_matched_by_source:
            if not self.matched:
                return None
            rows = rows_in_range(target, rows, self.source, self.condition)
            return rows.join(self.source, self.condition, "left_semi")
        alone = [_resolved(target.session.bridge, rows, c) for c in self.not_matched_by_source]
        joined = rows.join(self._source(), self.condition, "left")
        changed = _any([sql.col(_FROM_SOURCE).isNotNull(), *map(_when, alone)])
        return joined.where(changed).select(rows[FILE.name])

    def changes(self, target: Target, rows: DataFrame, mode: Mode) -> DataFrame:
        """See `Operation`."""
        source = self._source()
        rewriting = mode == "copy-on-write"
        if not (rewriting or self.not_matched_by_source):
            rows = rows_in_range(target, rows, self.source, self.condition)
        # these know one side only, so its names need no prefix
        inserts = [_resolved(target.session.bridge, source, c) for c in self.not_matched]
        alone = [_resolved(target.session.bridge, rows, c) for c in self.not_matched_by_source]
        if not (self.matched or self.not_matched_by_source):
            frame = source.join(rows, self.condition, "left_anti")
            return change_frame(target, rows, frame, [_insert(c, sql.lit(True)) for c in inserts])
        keep_rows = rewriting or bool(self.not_matched_by_source)
        kind = {
            (False, False): "inner",
            (False, True): "right",
            (True, False): "left",
            (True, True): "full",
        }[keep_rows, bool(self.not_matched)]
        frame = rows.join(source, self.condition, kind)
        from_target, from_source = rows[POS.name].isNotNull(), sql.col(_FROM_SOURCE).isNotNull()
        both = from_target & from_source
        changes = [_change(c, both) for c in self.matched]
        if rewriting:
            changes.append(Change(condition=both, op=Op.COPY))
        elif self.meets_once:
            changes.append(Change(condition=both, op=Op.STAY))
        changes += [_insert(c, ~from_target) for c in inserts]
        changes += [_change(c, from_target) for c in alone]
        if rewriting:
            changes.append(Change(condition=from_target, op=Op.COPY, placed=False))
        return change_frame(target, rows, frame, changes)

    def _source(self) -> DataFrame:
        return self.source.select("*", sql.lit(True).alias(_FROM_SOURCE))


def _resolved(bridge: Any, frame: DataFrame, clause: Clause) -> Clause:
    """The clause with its condition and values as columns of the frame, whatever joins it."""
    values = clause.values or {}
    condition, *made = bridge.resolved(frame, [_when(clause), *values.values()])
    return replace(clause, condition=condition, values=dict(zip(values, made, strict=True)))


def _insert(clause: Clause, where: Column) -> Change:
    return Change(
        condition=where & _when(clause), op=Op.INSERT, values=clause.values or {}, placed=False
    )


def _change(clause: Clause, where: Column) -> Change:
    return Change(condition=where & _when(clause), op=clause.op, values=clause.values or {})


def _when(clause: Clause) -> Column:
    return sql.lit(True) if clause.condition is None else clause.condition


def _any(conditions: Sequence[Column]) -> Column:
    return reduce(lambda a, b: a | b, conditions)
