"""The part of `Table` and `Transaction` that changes metadata.

Methods import what they call, which reading needs not.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.table.table_storage import check_new_location

if TYPE_CHECKING:
    from iceberg_pyspark.catalogs.catalog import LoadedTable
    from iceberg_pyspark.spec.table_metadata import TableMetadata
    from iceberg_pyspark.storage.files.file_io import FileIO
    from iceberg_pyspark.table.commits.clock import Clock
    from iceberg_pyspark.table.commits.commit import CommitStep
    from iceberg_pyspark.table.commits.pending_changes import (
        BuildChanges,
        ManageSnapshots,
        ReplaceSortOrder,
        UpdateLocation,
        UpdateProperties,
        UpdateSchema,
        UpdateSpec,
    )


@checked_methods
class EditableTable(ABC):
    """Methods that start a change: chain calls on the returned object, then call `commit()`.

    The `commit()` of a change commits it to the table, or adds it to the transaction.
    """

    _loaded_table: LoadedTable
    _clock: Clock

    @property
    @abstractmethod
    def metadata(self) -> TableMetadata:
        """The metadata that changes are based on."""

    @property
    @abstractmethod
    def io(self) -> FileIO:
        """The storage of the table's files."""

    @abstractmethod
    def _commit_steps(self, steps: Sequence[CommitStep]) -> None:
        """Commit the steps, or keep them for the transaction's commit."""

    def update_schema(self, *, allow_incompatible_changes: bool = False) -> UpdateSchema:
        """Start a change of columns."""
        from iceberg_pyspark.table.commits.pending_changes import UpdateSchema

        return UpdateSchema(
            self._stage, self.metadata, allow_incompatible_changes=allow_incompatible_changes
        )

    def update_spec(self) -> UpdateSpec:
        """Start a change of the partitioning."""
        from iceberg_pyspark.table.commits.pending_changes import UpdateSpec

        return UpdateSpec(self._stage, self.metadata)

    def replace_sort_order(self) -> ReplaceSortOrder:
        """Start a replacement of the sort order."""
        from iceberg_pyspark.table.commits.pending_changes import ReplaceSortOrder

        return ReplaceSortOrder(self._stage, self.metadata)

    def update_properties(self) -> UpdateProperties:
        """Start a change of properties."""
        from iceberg_pyspark.table.commits.pending_changes import UpdateProperties, check_upgrade

        return UpdateProperties(self._stage, lambda m, version: check_upgrade(self.io, m, version))

    def update_location(self) -> UpdateLocation:
        """Start a change of the folder for new files, with `set_location(...)`."""
        from iceberg_pyspark.table.commits.pending_changes import UpdateLocation

        return UpdateLocation(self._stage, partial(check_new_location, self._loaded_table))

    def manage_snapshots(self) -> ManageSnapshots:
        """Start a change of branches and tags, a rollback or a cherry-pick."""
        from iceberg_pyspark.table.commits.pending_changes import ManageSnapshots

        return ManageSnapshots(self._commit_steps, self.metadata, lambda: self.io, self._clock)

    def _stage(self, builds: Sequence[BuildChanges]) -> None:
        from iceberg_pyspark.table.commits.commit import MetadataStep

        self._commit_steps([MetadataStep(build) for build in builds])
