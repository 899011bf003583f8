"""DELETE, UPDATE and MERGE as plans of standard DataFrame operations on a pinned table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from iceberg_pyspark.spark.bridge.call_arguments import Sql, Value
from iceberg_pyspark.spark.portable.portable_changes import (
    PortableChange,
    Stage,
    as_plain_column,
    change_of,
    changed_rows,
    hidden_columns,
    hidden_names,
    kept_columns,
    old_values,
    with_change,
)
from iceberg_pyspark.spark.portable.portable_target import ALIAS, PortableTarget, column_of
from iceberg_pyspark.spark.portable.read_columns import named_columns
from iceberg_pyspark.spark.row_level.change_frame import Assignments
from iceberg_pyspark.spark.row_level.merge import Clause, Merge
from iceberg_pyspark.spec.metadata_columns import FILE, POS
from iceberg_pyspark.table.row_level.change_task import WRITE_OPS, Op
from iceberg_pyspark.table.row_level.isolation import Mode, OperationName

_MATCHED_BY = "__ice_source"
"""A column of the source's rows; null in rows of the target without a match."""

_ONLY_SOURCE, _ONLY_TARGET = "__ice_only_source", "__ice_only_target"
_TARGET, _FIRST, _SECOND, _ROW = "__ice_target", "__ice_first", "__ice_second", "__ice_row"


class PortableOperation(ABC):
    """A change of the rows of a table."""

    name: ClassVar[OperationName]
    requires_single_match = False
    reads_once = False
    """Whether a source may be read only once, because a second read could give other rows."""

    def matched_ops(self) -> Sequence[Op]:
        """Return the operations of the WHEN MATCHED clauses of a merge."""
        return ()

    def by_source_ops(self) -> Sequence[Op]:
        """Return the operations of the WHEN NOT MATCHED BY SOURCE clauses of a merge."""
        return ()

    @abstractmethod
    def writes_rows(self, mode: Mode) -> bool:
        """Return whether the operation may write rows."""

    @abstractmethod
    def columns_of_conditions(self, target: PortableTarget) -> frozenset[str]:
        """Return the target's columns that `touched_rows` needs."""

    @abstractmethod
    def columns_of_changes(self, target: PortableTarget) -> frozenset[str]:
        """Return the target's columns that `changes` needs if it deletes rows by position."""

    @abstractmethod
    def touched_rows(self, target: PortableTarget, rows: DataFrame) -> DataFrame | None:
        """Return target rows whose files must be rewritten, or None if no target row changes."""

    @abstractmethod
    def changes(self, target: PortableTarget, rows: DataFrame, mode: Mode) -> DataFrame:
        """Return the changes of the target's rows (`table/row_level/change_task.py`)."""


@dataclass(frozen=True, kw_only=True)
class ChangeRowsWhere(PortableOperation):
    """A DELETE, or an UPDATE with assignments, of the rows that fulfil a condition."""

    name: OperationName  # type: ignore[misc]
    condition: Column
    condition_text: str | None = None
    op: Op
    values: Assignments = field(default_factory=dict)

    def writes_rows(self, mode: Mode) -> bool:
        """See `PortableOperation`."""
        return mode == "copy-on-write" or self.op in WRITE_OPS

    def columns_of_conditions(self, target: PortableTarget) -> frozenset[str]:
        """See `PortableOperation`."""
        return named_columns(target, [self._value])

    def columns_of_changes(self, target: PortableTarget) -> frozenset[str]:
        """See `PortableOperation`."""
        named = named_columns(target, [self._value, *self.values.values()])
        return named | kept_columns(target, self.values) if self.op is Op.UPDATE else named

    @property
    def _value(self) -> Value:
        return self.condition if self.condition_text is None else Sql(self.condition_text)

    def touched_rows(self, target: PortableTarget, rows: DataFrame) -> DataFrame:
        """See `PortableOperation`."""
        del target
        return rows.where(self.condition)

    def changes(self, target: PortableTarget, rows: DataFrame, mode: Mode) -> DataFrame:
        """See `PortableOperation`."""
        change = PortableChange(op=self.op, values=self.values)
        changes = [change]
        if mode == "merge-on-read":
            rows = rows.where(self.condition)
        else:
            change = PortableChange(op=self.op, values=self.values, condition=self.condition)
            changes = [change, PortableChange(op=Op.COPY, has_position=False)]
        names = self.columns_of_changes(target) if mode == "merge-on-read" else None
        stage = Stage(frame=rows, changes=changes, old=old_values(target, rows, names))
        writes = self.writes_rows(mode)
        change_column = change_of(target, stage, writes=writes)
        frame = with_change(rows, change_column, *hidden_columns(target, rows))
        return changed_rows(target, frame, writes=writes)


@dataclass(frozen=True, kw_only=True)
class PortableMerge(PortableOperation):
    """A MERGE of the rows of a source."""

    merge: Merge
    reads_once: bool = False
    name: ClassVar[OperationName] = "merge"

    @property
    def requires_single_match(self) -> bool:  # type: ignore[override]
        """Whether each row of the table may match at most one row of the source."""
        return self.merge.requires_single_match

    def matched_ops(self) -> Sequence[Op]:
        """See `PortableOperation`."""
        return [c.op for c in self.merge.matched_clauses]

    def by_source_ops(self) -> Sequence[Op]:
        """See `PortableOperation`."""
        return [c.op for c in self.merge.not_matched_by_source_clauses]

    def writes_rows(self, mode: Mode) -> bool:
        """See `PortableOperation`."""
        return self.merge.writes_rows(mode)

    def columns_of_conditions(self, target: PortableTarget) -> frozenset[str]:
        """See `PortableOperation`."""
        by_source = self.merge.not_matched_by_source_clauses
        return named_columns(target, [self._on, *(c.condition for c in by_source)])

    def columns_of_changes(self, target: PortableTarget) -> frozenset[str]:
        """See `PortableOperation`."""
        merge = self.merge
        clauses = (*merge.matched_clauses, *merge.not_matched_by_source_clauses)
        every = (*clauses, *merge.not_matched_clauses)
        values = [v for c in every for v in (c.condition, *(c.values or {}).values())]
        columns = named_columns(target, [self._on, *values])
        for clause in clauses:
            if clause.op is Op.UPDATE:
                columns |= kept_columns(target, clause.values or {})
        return columns or frozenset(target.columns.names[:1])

    @property
    def _on(self) -> Value:
        text = self.merge.condition_text
        return self.merge.condition if text is None else Sql(text)

    def touched_rows(self, target: PortableTarget, rows: DataFrame) -> DataFrame | None:
        """See `PortableOperation`."""
        merge, source = self.merge, self.merge.source
        by_source = merge.not_matched_by_source_clauses
        if not by_source:
            if not merge.matched_clauses:
                return None
            return rows.join(source, merge.condition, "left_semi")
        # Evaluated on the target alone, whose names the conditions may use without a prefix.
        conditions = [
            sql.lit(True) if c.condition is None else as_plain_column(c.condition, None)
            for c in by_source
        ]
        unmatched = rows.join(source, merge.condition, "left_anti")
        touched = unmatched.where(reduce(lambda a, b: a | b, conditions)).select(sql.col(FILE.name))
        if not merge.matched_clauses:
            return touched
        matched = rows.join(source, merge.condition, "left_semi").select(sql.col(FILE.name))
        return touched.union(matched)

    def changes(self, target: PortableTarget, rows: DataFrame, mode: Mode) -> DataFrame:
        """See `PortableOperation`."""
        merge = self.merge
        rewriting, writes = mode == "copy-on-write", self.writes_rows(mode)
        if not (merge.matched_clauses or merge.not_matched_by_source_clauses):
            return self._inserts(target, rows)
        source = merge.source.withColumn(_MATCHED_BY, sql.lit(True))
        keep_rows = rewriting or bool(merge.not_matched_by_source_clauses)
        kind = {
            (False, False): "inner",
            (False, True): "right",
            (True, False): "left",
            (True, True): "full",
        }[keep_rows, bool(merge.not_matched_clauses)]
        frame = rows.join(source, merge.condition, kind)
        if rewriting and not merge.matched_clauses:
            frame = _without_duplicates(rows, frame)
        of_target, of_source = column_of(rows, FILE.name), source[_MATCHED_BY]
        both = of_target.isNotNull() & of_source.isNotNull()
        only_target = of_source.isNull()
        names = None if rewriting else self.columns_of_changes(target)
        old = old_values(target, rows, names)
        changes = [_change(c, both) for c in merge.matched_clauses]
        if all(c.condition is not None for c in merge.matched_clauses):
            if rewriting:
                changes.append(PortableChange(op=Op.COPY, rows=both))
            elif self.requires_single_match:
                changes.append(PortableChange(op=Op.KEEP_UNCHANGED, rows=both))
        unmatched = [PortableChange(op=Op.COPY, rows=only_target, has_position=False)]
        unmatched = unmatched if rewriting else []
        if not merge.not_matched_by_source_clauses:
            changes += unmatched
        hidden = hidden_columns(target, rows)
        stages = []
        if changes:
            stage = Stage(frame=frame, changes=changes, old=old, source=source)
            stages.append(change_of(target, stage, writes=writes).alias(_FIRST))
        # The next stage has the source's names alone.
        frame = frame.select(
            *stages,
            *hidden,
            of_target.isNull().alias(_ONLY_SOURCE),
            only_target.alias(_ONLY_TARGET),
            sql.struct(*(column.alias(name) for name, column in old.items())).alias(_TARGET)
            if merge.not_matched_by_source_clauses
            else sql.lit(None).alias(_TARGET),
            *(column_of(source, name) for name in merge.source.columns),
        )
        stages_before = [_FIRST] if changes else []
        kept = [*hidden_names(target), _ONLY_TARGET]
        if merge.not_matched_clauses:
            inserts = [
                _change(c, sql.col(_ONLY_SOURCE), has_position=False)
                for c in merge.not_matched_clauses
            ]
            stage = Stage(frame=frame, changes=inserts, source=frame)
            change = change_of(target, stage, writes=writes).alias(_SECOND)
            columns = (*map(sql.col, stages_before), change, *map(sql.col, [*kept, _TARGET]))
            frame = frame.select(*columns)
            stages_before.append(_SECOND)
        others = [sql.col(name) for name in stages_before]
        if merge.not_matched_by_source_clauses:
            # And this one those of the target alone.
            frame = frame.select(*others, *map(sql.col, kept), sql.col(f"{_TARGET}.*")).alias(ALIAS)
            clauses = [
                _change(c, sql.col(_ONLY_TARGET)) for c in merge.not_matched_by_source_clauses
            ]
            if rewriting:
                clauses.append(
                    PortableChange(op=Op.COPY, rows=sql.col(_ONLY_TARGET), has_position=False)
                )
            stage = Stage(frame=frame, changes=clauses, old=old_values(target, frame, old))
            others.append(change_of(target, stage, writes=writes))
        change = sql.coalesce(*others) if len(others) > 1 else others[0]
        frame = with_change(frame, change, *map(sql.col, hidden_names(target)))
        return changed_rows(target, frame, writes=writes)

    def _inserts(self, target: PortableTarget, rows: DataFrame) -> DataFrame:
        """Return the rows to insert of a merge that changes no row of the target."""
        merge = self.merge
        frame = merge.source.join(rows, merge.condition, "left_anti")
        inserts = [_change(c, None, has_position=False) for c in merge.not_matched_clauses]
        stage = Stage(frame=frame, changes=inserts, source=merge.source)
        change = change_of(target, stage, writes=True)
        nothing = {FILE.name: "string"}
        hidden = [
            sql.lit(None).cast(nothing.get(name.removeprefix("__ice_at"), "long")).alias(name)
            for name in hidden_names(target)
        ]
        return changed_rows(target, with_change(frame, change, *hidden), writes=True)


def _change(clause: Clause, rows: Column | None, *, has_position: bool = True) -> PortableChange:
    condition: Value | None = clause.condition
    return PortableChange(
        op=clause.op,
        rows=rows,
        condition=condition,
        values=clause.values or {},
        has_position=has_position,
    )


def _without_duplicates(rows: DataFrame, join: DataFrame) -> DataFrame:
    """Return target rows only once, even if several source rows match; keep other rows."""
    file, position = column_of(rows, FILE.name), column_of(rows, POS.name)
    other = sql.when(position.isNull(), sql.monotonically_increasing_id())
    return join.select("*", sql.struct(file, position, other).alias(_ROW)).dropDuplicates([_ROW])
