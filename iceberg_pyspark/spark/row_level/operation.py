"""The interface of row-level operations."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame

from iceberg_pyspark.spark.row_level.key_range import Source
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.table.reading.whole_files import FileSelection
from iceberg_pyspark.table.row_level.isolation import Mode, OperationName
from iceberg_pyspark.table.row_level.touched_rows import RowChanges


class Operation(Protocol):
    """A DELETE, UPDATE or MERGE that can be run on a target."""

    @property
    def name(self) -> OperationName:
        """The operation's name in table properties."""
        ...

    @property
    def requires_single_match(self) -> bool:
        """Whether each row of the table may match at most one row of the source."""
        ...

    @property
    def may_run_again(self) -> bool:
        """Whether the operation can be repeated on a newer snapshot after a conflict."""
        ...

    @property
    def source(self) -> DataFrame | None:
        """The source that the operation reads besides the table, or None."""
        ...

    def selection(self, target: Target) -> FileSelection | None:
        """Return the files and rows that the operation selects, if metadata determine them, or
        None.
        """
        ...

    def writes_rows(self, mode: Mode) -> bool:
        """Return whether the operation may write rows."""
        ...

    def needs_no_rebalance(self, target: Target) -> bool:
        """Return whether the tasks already get as many rows to write as after a rebalancing."""
        ...

    def sources(self, target: Target, rows: DataFrame) -> list[Source]:
        """Return the sources of which a row of the target must match some row each to matter.

        A row that does not is neither changed nor does it decide which rows are inserted.
        """
        ...

    def touched_files(self, target: Target) -> DataFrame | None:
        """Return target rows whose files must be rewritten, or None if no target row changes."""
        ...

    def changes(self, target: Target, rows: DataFrame, mode: Mode) -> DataFrame:
        """Return the changes of the target's rows (`ChangeTask`)."""
        ...

    def summary(self, row_changes: RowChanges) -> dict[str, str]:
        """Return the operation's additional entries for the snapshot summary."""
        ...
