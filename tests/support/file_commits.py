"""One-call commits of data files, in the form that most tests need."""

from __future__ import annotations

from collections.abc import Iterable

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.changes.conflicts import IsolationLevel
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.clock import SYSTEM_CLOCK, Clock
from iceberg_pyspark.table.commits.commit_files import (
    OverwriteMode,
    commit_action,
    write_action,
)
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.written_files import WrittenFiles


def commit_append(
    catalog: Catalog,
    table: LoadedTable,
    io: FileIO,
    data_files: Iterable[DataFile],
    options: CommitOptions | None = None,
    *,
    written_files: WrittenFiles | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> LoadedTable:
    """Append data files."""
    action = AppendFiles(data_files=tuple(data_files))
    return commit_action(
        catalog, table, io, action, options, written_files=written_files, clock=clock
    )


def commit_overwrite(
    catalog: Catalog,
    table: LoadedTable,
    io: FileIO,
    data_files: Iterable[DataFile],
    mode: OverwriteMode,
    options: CommitOptions | None = None,
    *,
    isolation: IsolationLevel | None = None,
    written_files: WrittenFiles | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> LoadedTable:
    """Overwrite the files that `mode` selects with the data files; see `write_action`."""
    commit_options = options or CommitOptions()
    action = write_action(
        table, data_files, mode, branch=commit_options.branch, isolation=isolation
    )
    return commit_action(
        catalog, table, io, action, commit_options, written_files=written_files, clock=clock
    )
