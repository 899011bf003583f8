"""The part of `Table` that changes rows: delete, update, upsert and merge, without Spark.

Methods import what they call, which reading needs not.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iceberg_pyspark.arrow.row_sources import Rows
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.expressions.predicates import Filter
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.clock import Clock
from iceberg_pyspark.table.table_facts import TableFacts

if TYPE_CHECKING:
    from iceberg_pyspark.table.row_level.merge_builder import Clauses, RowMerge
    from iceberg_pyspark.table.row_level.row_operation import RowOperation
    from iceberg_pyspark.table.row_level.touched_rows import RowChanges


@checked_methods
class RowLevelTable(TableFacts, ABC):
    """A table whose rows change by filter or by key, in one snapshot for each call."""

    _clock: Clock

    @abstractmethod
    def _newest(self) -> tuple[LoadedTable, FileIO]:
        """Load the current metadata; return the table and its storage."""

    def delete(
        self,
        filter: Filter,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RowChanges:
        """Delete the rows that match; return their number and the snapshot.

        A file of which all rows match is removed unread. Of other files only the columns of the
        filter are read, and the mode of the table (`write.delete.mode`) decides whether they are
        written again or get deletes; version 1 has only the former. A concurrent change of rows
        that match makes the delete run again. This table object is refreshed first.
        """
        from iceberg_pyspark.table.row_level.filtered_rows import DeletedRows

        return self._change_rows(DeletedRows(filter=filter), branch, snapshot_properties)

    def update(
        self,
        set: Mapping[str, Any],  # the keyword of the statement, as in `SparkTable`
        filter: Filter | None = None,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RowChanges:
        """Set columns of the rows that match, or of all rows; return their number.

        A text is a SQL expression, as in `{"v": "v + 1", "name": "'new'"}`, of DataFusion's SQL
        with the names of columns in their exact case; any other value is a constant. `s.a` is a
        field of a struct. The mode is that of `write.update.mode`, otherwise as `delete`.
        """
        from iceberg_pyspark.table.row_level.filtered_rows import UpdatedRows

        return self._change_rows(
            UpdatedRows(values=set, filter=filter), branch, snapshot_properties
        )

    def upsert(
        self,
        rows: Rows,
        keys: str | Sequence[str] | None = None,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RowChanges:
        """Update the rows that have the keys of given rows, insert the others; return the numbers.

        `keys` are names of columns; None: the identifier fields of the schema. Columns that the
        rows lack keep their values, and are null or the default in new rows. A null in a key
        matches nothing. Two rows with the same key are refused. The mode is that of
        `write.merge.mode`, otherwise as `delete`. Memory has up to 256 MiB of keys, and of the rows
        of a stream; more keys are joined in several passes, more rows are in a temporary file.
        """
        from iceberg_pyspark.table.row_level.keyed_merge import upsert_of

        upsert = upsert_of(rows, keys, self.name, self.schema)
        return self._change_rows(upsert, branch, snapshot_properties)

    def merge(
        self,
        source: Rows,
        on: str | Sequence[str] | Mapping[str, str] | None = None,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RowMerge:
        """Begin to merge a source, whose rows match the rows of the table with equal keys.

        `on` has the names of key columns, or a dict from the table's name to the source's name of
        each; None: the identifier fields of the schema. A stream is read by `execute`:
        `table.merge(rows, "id").when_matched_delete("s.gone").when_matched_update().execute()`.
        """
        from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
        from iceberg_pyspark.arrow.row_sources import KeptRows
        from iceberg_pyspark.table.row_level.keyed_merge import KeyedMerge, merge_keys
        from iceberg_pyspark.table.row_level.merge_builder import RowMerge

        by_key = merge_keys(on, self.name, self.schema)

        def run(clauses: Clauses) -> RowChanges:
            kept = KeptRows(source, to_arrow_schema(self.schema))
            merge = KeyedMerge(
                source=kept,
                keys=by_key,
                matched=tuple(clauses["matched"]),
                not_matched=tuple(clauses["not_matched"]),
                not_matched_by_source=tuple(clauses["not_matched_by_source"]),
            )
            return self._change_rows(merge, branch, snapshot_properties)

        return RowMerge(run)

    def _change_rows(
        self,
        operation: RowOperation,
        branch: str,
        snapshot_properties: Mapping[str, str] | None,
    ) -> RowChanges:
        from iceberg_pyspark.table.commits.commit_options import CommitOptions
        from iceberg_pyspark.table.row_level.row_operation import RowChanger

        changer = RowChanger(
            catalog=self._catalog,
            load=self._newest,
            options=CommitOptions(branch=branch, snapshot_properties=snapshot_properties or {}),
            clock=self._clock,
            case_sensitive=self.case_sensitive is not False,
        )
        self._loaded_table, row_changes = changer.run(operation)
        return row_changes
