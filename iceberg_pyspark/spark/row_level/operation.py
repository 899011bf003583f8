"""The interface of row-level operations, and their result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from iceberg_pyspark.spark.row_level.isolation import Mode, OperationName
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.table.reading.whole_files import FileSelection


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """What an operation did; `snapshot_id` is the one it made, or the one it left as it was.

    `copied` rows were written again unchanged, because their files were rewritten.
    """

    snapshot_id: int | None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    copied: int = 0


class Operation(Protocol):
    """DELETE, UPDATE or MERGE, yet to be run on a target."""

    @property
    def name(self) -> OperationName:
        """The operation's name in table properties."""
        ...

    @property
    def requires_single_match(self) -> bool:
        """Whether one row of the table may be met by one row of the source only."""
        ...

    @property
    def may_run_again(self) -> bool:
        """Whether it means the same on a newer snapshot, so that a conflict can be met that way."""
        ...

    @property
    def source(self) -> DataFrame | None:
        """The source that it reads besides the table."""
        ...

    def selection(self, target: Target) -> FileSelection | None:
        """Which files it is about, where that can be told from metadata."""
        ...

    def writes_rows(self, mode: Mode) -> bool:
        """Whether it may write rows."""
        ...

    def needs_no_rebalance(self, target: Target) -> bool:
        """Whether tasks get as many rows to write each as if the changes were rebalanced."""
        ...

    def touched_files(self, target: Target) -> DataFrame | None:
        """Rows of the target whose files are to be rewritten; None if no row of it changes."""
        ...

    def changes(self, target: Target, rows: DataFrame, mode: Mode) -> DataFrame:
        """The changes of the target's rows (`change_columns.py`)."""
        ...

    def summary(self, row_changes: RowChanges) -> dict[str, str]:
        """Its additional entries in the snapshot's summary."""
        ...
