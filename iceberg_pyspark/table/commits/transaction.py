"""Commits several changes of one table together or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from iceberg_pyspark.arrow.row_sources import Rows
from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.changes.outcomes import NeverSent
from iceberg_pyspark.changes.snapshot_changes import AppendFiles, SnapshotAction
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.clock import SYSTEM_CLOCK, Clock
from iceberg_pyspark.table.commits.commit import (
    CommitStep,
    MetadataStep,
    commit_steps,
    with_changes,
)
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.commit_snapshot import SnapshotStep
from iceberg_pyspark.table.commits.editable_table import EditableTable
from iceberg_pyspark.table.commits.new_data import write_rows
from iceberg_pyspark.table.commits.written_files import WrittenFiles


@checked_methods
class Transaction(EditableTable):
    """A collection of changes that `commit()`, or leaving the `with` block without error, commits.

    Each change is based on the metadata that the earlier changes leave. `metadata` shows this
    metadata, but without new snapshots, which are created when the transaction commits.
    """

    def __init__(
        self, catalog: Catalog, table: LoadedTable, io: FileIO, *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._catalog = catalog
        self._loaded_table = table
        self._io = io
        self._clock = clock
        self._metadata = table.metadata
        self._steps: list[CommitStep] = []
        self._written_files = WrittenFiles(io)
        self._has_begun = False

    @property
    def metadata(self) -> TableMetadata:
        """The metadata with the changes made so far."""
        return self._metadata

    @property
    def io(self) -> FileIO:
        """The storage of the table's files."""
        return self._io

    def append(
        self,
        rows: Rows,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        """Write the rows now, with the metadata so far; the transaction's commit appends them."""
        # wrong options are refused before files are written
        options = CommitOptions(branch=branch, snapshot_properties=snapshot_properties or {})
        write_id, files = write_rows(self._loaded_table.identifier, self._metadata, self._io, rows)
        self._written_files.add(files)
        self._add_snapshot(
            AppendFiles(data_files=tuple(files)), replace(options, write_id=write_id)
        )

    def add_snapshot(
        self,
        action: SnapshotAction,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        write_id: str | None = None,
    ) -> None:
        """Add a snapshot of files that are already written, when the transaction commits."""
        options = CommitOptions(
            branch=branch, write_id=write_id, snapshot_properties=snapshot_properties or {}
        )
        self._add_snapshot(action, options)

    def _add_snapshot(self, action: SnapshotAction, options: CommitOptions) -> None:
        self._add_step(
            SnapshotStep(
                action,
                self._io,
                options,
                table_uuid=self._loaded_table.metadata.table_uuid,
                clock=self._clock,
                written_files=self._written_files,
                schema=self._metadata.current_schema,
            )
        )

    def commit(self) -> LoadedTable:
        """Commit all changes at once; a transaction can commit only once."""
        self._refuse_after_commit()
        self._has_begun = True
        if not self._steps:
            return self._loaded_table
        return commit_steps(
            self._catalog,
            self._loaded_table,
            self._steps,
            written_files=self._written_files,
            clock=self._clock,
        )

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        # after the start of a commit, only the commit knows which files may be deleted
        if self._has_begun:
            return
        if exc_type is None:
            self.commit()
        else:
            self._written_files.remove(NeverSent())

    def _commit_steps(self, steps: Sequence[CommitStep]) -> None:
        for step in steps:
            if isinstance(step, MetadataStep):
                changes = step.changes(self._metadata)
                self._metadata = with_changes(self._metadata, changes, self._clock)
            self._add_step(step)

    def _add_step(self, step: CommitStep) -> None:
        self._refuse_after_commit()
        self._steps.append(step)

    def _refuse_after_commit(self) -> None:
        if self._has_begun:
            raise InvalidRequestError(
                f"the transaction on {self._loaded_table.identifier} has ended; begin another one"
            )
