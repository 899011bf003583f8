"""MERGE: joins the rows of a source and of the table, and applies the clauses.

There is one join; its kind depends on the clauses, so rows to which no clause applies are not
returned. If files are rewritten, their other rows are returned as well, to be copied.

`SparkTable.merge_into` returns a builder with the method names of Spark's `MergeIntoWriter`. In its
conditions and values the table is `t` and the source is `s`, or the source's own alias.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.call_arguments import Side, SourceColumn, Sql, Value
from iceberg_pyspark.spark.row_changes.row_commit import merge_summary
from iceberg_pyspark.spark.row_level.change_frame import (
    Assignments,
    Change,
    ColumnPath,
    Rows,
    Where,
    as_column,
    change_frame,
    parse_assignments,
)
from iceberg_pyspark.spark.row_level.key_range import (
    Key,
    Source,
    keys_of,
    prune_by_key_range,
    rows_with_source_keys,
)
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.metadata_columns import FILE, POS
from iceberg_pyspark.sql_text.names import quoted
from iceberg_pyspark.table.row_level.change_task import ClauseOp, Op
from iceberg_pyspark.table.row_level.isolation import Mode, OperationName
from iceberg_pyspark.table.row_level.touched_rows import RowChanges

_FROM_SOURCE = "__ice_source"
"""A column that is null in target rows without a match that a join has kept (`Joins.java`)."""

_ROW = "__ice_row"
MIN_TASK_BYTES = 4 * 1024 * 1024
MAX_TASK_BYTES = 64 * 1024 * 1024
"""The bounds on the source bytes of a task that joins and writes; beyond it rows are rebalanced."""


@dataclass(frozen=True, kw_only=True)
class Clause:
    """A WHEN ... THEN clause; it always applies if `condition` is None. `values` are for updates
    and inserts.
    """

    op: ClauseOp
    condition: Value | None = None
    values: Assignments | None = None


@dataclass(frozen=True, kw_only=True)
class Merge:
    """A MERGE: the clauses of each kind are tried in order, and the first that applies is carried
    out. `condition_text` is the condition's text, if it was given as a text.
    """

    source: DataFrame
    condition: Column
    condition_text: str | None = None
    matched_clauses: tuple[Clause, ...] = ()
    not_matched_clauses: tuple[Clause, ...] = ()
    not_matched_by_source_clauses: tuple[Clause, ...] = ()
    may_run_again: bool = True
    name: ClassVar[OperationName] = "merge"

    @property
    def requires_single_match(self) -> bool:
        """See `Operation`: a second match does no harm if the only clause deletes the row."""
        match self.matched_clauses:
            case ():
                return False
            case (Clause(op=Op.DELETE, condition=None),):
                return False
            case _:
                return True

    def selection(self, target: Target) -> None:
        """See `Operation`: only a Spark job can determine the changed rows."""
        del target

    def writes_rows(self, mode: Mode) -> bool:
        """See `Operation`."""
        clauses = (
            *self.matched_clauses,
            *self.not_matched_clauses,
            *self.not_matched_by_source_clauses,
        )
        return mode == "copy-on-write" or any(c.op is not Op.DELETE for c in clauses)

    def needs_no_rebalance(self, target: Target) -> bool:
        """See `Operation`: this is known beforehand if every row of the source is written."""
        clauses = (self.matched_clauses, self.not_matched_clauses)
        every_row = all(
            of and of[-1].condition is None and all(c.op is not Op.DELETE for c in of)
            for of in clauses
        )
        return (
            every_row
            and not self.not_matched_by_source_clauses
            and target.session.bridge.joins.needs_no_rebalance(
                self.source,
                records=target.record_count,
                min_bytes=MIN_TASK_BYTES,
                max_bytes=MAX_TASK_BYTES,
            )
            and bool(keys_of(target, target.rows(), self.source, self.condition))
        )

    def sources(self, target: Target, rows: DataFrame) -> list[Source]:
        """See `Operation`: a clause for rows that match no source row may change any row."""
        if self.not_matched_by_source_clauses:
            return []
        return [(self.source, keys_of(target, rows, self.source, self.condition))]

    def summary(self, row_changes: RowChanges) -> dict[str, str]:
        """See `Operation`: return the counts under Java's names."""
        return merge_summary(
            row_changes,
            matched=[c.op for c in self.matched_clauses],
            not_matched_by_source=[c.op for c in self.not_matched_by_source_clauses],
        )

    def touched_files(self, target: Target) -> DataFrame | None:
        """See `Operation`."""
        rows = target.rows()
        if not self.not_matched_by_source_clauses:
            if not self.matched_clauses:
                return None
            rows, _ = self._prune(target, rows)
            return rows.join(self.source, self.condition, "left_semi")
        bridge = target.session.bridge
        by_source = [
            Sql("true") if c.condition is None else c.condition
            for c in self.not_matched_by_source_clauses
        ]
        conditions = bridge.row_changes.bind_columns(rows, by_source)
        join: DataFrame = bridge.joins.join(rows, self.source, self.condition, "left")
        conditions.append(sql.col(_FROM_SOURCE).isNotNull())
        return join.where(reduce(lambda a, b: a | b, conditions)).select(rows[FILE.name])

    def _prune(self, target: Target, rows: DataFrame) -> tuple[DataFrame, Sequence[Key]]:
        """Return the rows to join with the source, and the keys of the join."""
        keys = keys_of(target, rows, self.source, self.condition)
        # Spark writes a row of literals into the condition of the join, and so limits the rows
        if not target.session.bridge.joins.is_literal_row(self.source):
            rows = prune_by_key_range(target, rows, self.source, keys)
        return rows, keys

    def changes(self, target: Target, rows: DataFrame, mode: Mode) -> DataFrame:
        """See `Operation`."""
        bridge, source = target.session.bridge, self.source
        rewriting = mode == "copy-on-write"
        if not (rewriting or self.not_matched_by_source_clauses):
            rows, keys = self._prune(target, rows)
            outer = bool(self.not_matched_clauses)
            rows = rows_with_source_keys(target, rows, source, keys, outer=outer)
        if not (self.matched_clauses or self.not_matched_by_source_clauses):
            frame = source.join(rows, self.condition, "left_anti")
            inserts = [_change(c, "any", "source") for c in self.not_matched_clauses]
            return change_frame(target, Rows(frame=frame, target=rows, source=source), inserts)
        keep_rows = rewriting or bool(self.not_matched_by_source_clauses)
        kind = {
            (False, False): "inner",
            (False, True): "right",
            (True, False): "left",
            (True, True): "full",
        }[keep_rows, bool(self.not_matched_clauses)]
        frame = bridge.joins.join(rows, source, self.condition, kind)
        if rewriting and not self.matched_clauses:
            frame = _without_duplicates(rows, frame)
        changes = [_change(c, "both") for c in self.matched_clauses]
        if all(c.condition is not None for c in self.matched_clauses):
            if rewriting:
                changes.append(Change(where="both", op=Op.COPY))
            elif self.requires_single_match:
                changes.append(Change(where="both", op=Op.KEEP_UNCHANGED))
        # These clauses see only one side of the join, so their column names need no prefix.
        changes += [_change(c, "source", "source") for c in self.not_matched_clauses]
        changes += [_change(c, "target", "target") for c in self.not_matched_by_source_clauses]
        if rewriting:
            changes.append(Change(where="target", op=Op.COPY, has_position=False))
        return change_frame(target, Rows(frame=frame, target=rows, source=source), changes)


def _without_duplicates(rows: DataFrame, join: DataFrame) -> DataFrame:
    """Return target rows only once, even if several source rows match; keep other rows."""
    place = rows[FILE.name], rows[POS.name]
    other = sql.when(place[1].isNull(), sql.monotonically_increasing_id())
    row = sql.struct(*place, other).alias(_ROW)
    return join.select("*", row).dropDuplicates([_ROW])


def _change(clause: Clause, where: Where, side: Side = None) -> Change:
    return Change(
        where=where,
        side=side,
        condition=clause.condition,
        op=clause.op,
        values=clause.values or {},
        has_position=clause.op is not Op.INSERT,
    )


SOURCE_ALIAS = "s"


@dataclass(frozen=True, kw_only=True)
class MergeTable:
    """The target table of a merge builder.

    `columns` returns the column names, `has_alias` whether a source has an alias;
    `case_sensitive` says whether names of columns are. `evolve` adds the
    new columns of a source to the table, and `run` runs the merge.
    """

    columns: Callable[[], tuple[str, ...]]
    case_sensitive: bool
    has_alias: Callable[[DataFrame], bool]
    evolve: Callable[[DataFrame], None]
    run: Callable[[Merge], RowChanges]


@dataclass(frozen=True, kw_only=True)
class _ClauseDraft:
    """A clause as the user writes it."""

    op: ClauseOp
    condition: Column | None
    values: Mapping[str, str | Column] | None = None
    """The assigned values; None assigns to every column the source column of the same name."""


@checked_methods
class MergeBuilder:
    """A builder of a merge: add clauses, then call `merge()`."""

    def __init__(self, table: MergeTable, source: DataFrame, condition: str | Column) -> None:
        self._table = table
        self._source = source
        self._condition = as_column(condition)
        self._text = condition if isinstance(condition, str) else None
        self._evolves = False
        self._matched: list[_ClauseDraft] = []
        self._not_matched: list[_ClauseDraft] = []
        self._not_matched_by_source: list[_ClauseDraft] = []

    def whenMatched(self, condition: str | Column | None = None) -> MatchedClause:
        """Begin a clause for rows of the table that match a source row."""
        return MatchedClause(self, self._matched, condition)

    def whenNotMatched(self, condition: str | Column | None = None) -> NotMatchedClause:
        """Begin a clause for source rows that match no row of the table."""
        return NotMatchedClause(self, self._not_matched, condition)

    def whenNotMatchedBySource(self, condition: str | Column | None = None) -> MatchedClause:
        """Begin a clause for rows of the table that match no source row."""
        return MatchedClause(self, self._not_matched_by_source, condition)

    def withSchemaEvolution(self) -> MergeBuilder:
        """Add new columns of the source to the table first, and widen column types."""
        self._evolves = True
        return self

    def merge(self) -> RowChanges:
        """Carry out the merge as one snapshot, and return the counts of changed rows."""
        if not (self._matched or self._not_matched or self._not_matched_by_source):
            raise InvalidRequestError("a merge needs a clause: whenMatched().updateAll(), ...")
        if self._evolves:
            self._table.evolve(self._new_columns())
        source = self._source
        if not self._table.has_alias(source):
            source = source.alias(SOURCE_ALIAS)
        return self._table.run(
            Merge(
                source=source,
                condition=self._condition,
                condition_text=self._text,
                matched_clauses=self._clauses(self._matched, source),
                not_matched_clauses=self._clauses(self._not_matched, source),
                not_matched_by_source_clauses=self._clauses(self._not_matched_by_source, source),
            )
        )

    def _new_columns(self) -> DataFrame:
        """Return the source's columns that the clauses assign to the table."""
        drafts = (*self._matched, *self._not_matched, *self._not_matched_by_source)
        names = {self._key(name) for g in drafts for name in g.values or ()}
        every = any(g.values is None and g.op is not Op.DELETE for g in drafts)
        columns = [c for c in self._source.columns if every or self._key(c) in names]
        return self._source.select(*(self._source[quoted(c)] for c in columns))

    def _clauses(self, drafts: list[_ClauseDraft], source: DataFrame) -> tuple[Clause, ...]:
        for clause in drafts[:-1]:
            if clause.condition is None:
                raise InvalidRequestError(
                    "only the last clause of its kind may have no condition: later clauses would "
                    "never apply"
                )
        return tuple(
            Clause(op=g.op, condition=g.condition, values=self._values(g, source)) for g in drafts
        )

    def _values(self, draft: _ClauseDraft, source: DataFrame) -> dict[ColumnPath, Value] | None:
        if draft.op is Op.DELETE:
            return None
        if draft.values is not None:
            return parse_assignments(draft.values)
        by_name = {self._key(name): name for name in source.columns}
        absent = [c for c in self._table.columns() if self._key(c) not in by_name]
        if absent and not self._evolves:
            raise InvalidRequestError(
                f"the source has no column {', '.join(absent)}: add it, or name the columns to "
                "update or insert"
            )
        return {
            (c,): SourceColumn(quoted(by_name[self._key(c)]))
            for c in self._table.columns()
            if self._key(c) in by_name
        }

    def _key(self, name: str) -> str:
        """Return a name in the form in which equal names of columns are equal."""
        return name if self._table.case_sensitive else name.lower()


class _Clause:
    """One `when...` clause of a merge, before its action is given."""

    def __init__(
        self, builder: MergeBuilder, clauses: list[_ClauseDraft], condition: str | Column | None
    ) -> None:
        self._builder = builder
        self._clauses = clauses
        self._condition = None if condition is None else as_column(condition)

    def _add(self, op: ClauseOp, values: Mapping[str, str | Column] | None) -> MergeBuilder:
        self._clauses.append(_ClauseDraft(op=op, condition=self._condition, values=values))
        return self._builder


@checked_methods
class MatchedClause(_Clause):
    """A clause for rows of the table, with the actions update and delete."""

    def update(self, assignments: Mapping[str, str | Column]) -> MergeBuilder:
        """Assign values to columns."""
        return self._add(Op.UPDATE, assignments)

    def updateAll(self) -> MergeBuilder:
        """Assign to every column the source column of the same name."""
        return self._add(Op.UPDATE, None)

    def delete(self) -> MergeBuilder:
        """Delete the row."""
        return self._add(Op.DELETE, None)


@checked_methods
class NotMatchedClause(_Clause):
    """A clause for source rows without a match, with the action insert."""

    def insert(self, assignments: Mapping[str, str | Column]) -> MergeBuilder:
        """Insert a row with these values; other columns get their defaults."""
        return self._add(Op.INSERT, assignments)

    def insertAll(self) -> MergeBuilder:
        """Insert the source row; columns are matched by name."""
        return self._add(Op.INSERT, None)
