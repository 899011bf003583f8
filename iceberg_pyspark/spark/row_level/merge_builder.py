"""The builder of `SparkTable.merge_into`, with the method names of Spark's `MergeIntoWriter`.

In conditions and values the table is `t` and the source is `s`, or the source's own alias.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.row_values import SourceColumn, Value
from iceberg_pyspark.spark.row_level.assignments import ColumnPath, as_column, parse_assignments
from iceberg_pyspark.spark.row_level.change_columns import ClauseOp, Op
from iceberg_pyspark.spark.row_level.merge import Clause, Merge
from iceberg_pyspark.spark.row_level.operation import RowChanges
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.sql_text.names import quoted

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
