"""The builder of a merge in plain Python, with the method names of delta-rs's `TableMerger`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.table.row_level.change_task import ClauseOp, Op
from iceberg_pyspark.table.row_level.keyed_merge import MergeClause
from iceberg_pyspark.table.row_level.touched_rows import RowChanges

Clauses = Mapping[str, Sequence[MergeClause]]
"""The clauses by their kind, under the names of the fields of `KeyedMerge`."""


@checked_methods
class RowMerge:
    """A merge of `Table.merge`: add clauses, then call `execute()`.

    The clauses of a kind are tried in their order, and the first that applies to a row is carried
    out. Conditions and values are SQL expressions of DataFusion in which the table is `t` and the
    source is `s`; values that are no texts are constants.
    """

    def __init__(self, run: Callable[[Clauses], RowChanges]) -> None:
        self._run = run
        self._clauses: dict[str, list[MergeClause]] = {
            "matched": [],
            "not_matched": [],
            "not_matched_by_source": [],
        }

    def when_matched_update(
        self, set: Mapping[str, Any] | None = None, condition: str | None = None
    ) -> RowMerge:
        """Update rows that match a source row; `set` None: every column that the source has."""
        return self._add("matched", Op.UPDATE, condition, set)

    def when_matched_delete(self, condition: str | None = None) -> RowMerge:
        """Delete rows that match a source row."""
        return self._add("matched", Op.DELETE, condition)

    def when_not_matched_insert(
        self, values: Mapping[str, Any] | None = None, condition: str | None = None
    ) -> RowMerge:
        """Insert source rows without a match; `values` None: every column that the source has.

        Columns without a value get their default, or null.
        """
        return self._add("not_matched", Op.INSERT, condition, values)

    def when_not_matched_by_source_update(
        self, set: Mapping[str, Any], condition: str | None = None
    ) -> RowMerge:
        """Update rows of the table that match no source row."""
        return self._add("not_matched_by_source", Op.UPDATE, condition, set)

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> RowMerge:
        """Delete rows of the table that match no source row."""
        return self._add("not_matched_by_source", Op.DELETE, condition)

    def execute(self) -> RowChanges:
        """Carry out the merge as one snapshot, and return the counts of changed rows.

        Raises `InvalidRequestError` if several source rows match one row of the table, as the
        result would be ambiguous.
        """
        if not any(self._clauses.values()):
            raise InvalidRequestError("a merge needs a clause: when_matched_update(), ...")
        return self._run(self._clauses)

    def _add(
        self,
        kind: str,
        op: ClauseOp,
        condition: str | None,
        values: Mapping[str, Any] | None = None,
    ) -> RowMerge:
        clauses = self._clauses[kind]
        if clauses and clauses[-1].condition is None:
            raise InvalidRequestError(
                "only the last clause of its kind may have no condition: later clauses would "
                "never apply"
            )
        clauses.append(MergeClause(op=op, condition=condition, values=values))
        return self
