"""Short forms of commits of data files and delete files to a `CommitTable`."""

from __future__ import annotations

from typing import Any

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.snapshot_changes import (
    SnapshotAction,
)
from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.spec.manifests import (
    DataFile,
    FileContent,
    ManifestEntry,
)
from iceberg_pyspark.table.commits.commit_files import OverwriteMode, commit_action
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from tests.support import commit_tables
from tests.support.commit_tables import CommitTable
from tests.support.file_commits import commit_append, commit_overwrite


def append(t: CommitTable, *files: DataFile, **options: Any) -> LoadedTable:
    return commit_append(
        t.catalog, t.loaded, t.io, files, CommitOptions(**options), clock=t.clock.clock
    )


def overwrite(
    t: CommitTable,
    mode: OverwriteMode | Predicate,
    *files: DataFile,
    since: LoadedTable | None = None,
    **options: Any,
) -> LoadedTable:
    return commit_overwrite(
        t.catalog, since or t.loaded, t.io, files, mode, clock=t.clock.clock, **options
    )


def act(t: CommitTable, action: SnapshotAction, since: LoadedTable | None = None) -> LoadedTable:
    return commit_action(t.catalog, since or t.loaded, t.io, action, clock=t.clock.clock)


def head(t: CommitTable) -> int | None:
    return t.metadata.current_snapshot_id


def vector(path: str, target: str, *, offset: int = 4, rows: int = 1) -> DataFile:
    return DataFile(
        content=FileContent.POSITION_DELETES,
        file_path=f"mem://t/data/{path}.puffin",
        file_format="puffin",
        record_count=rows,
        file_size_in_bytes=1000,
        referenced_data_file=f"mem://t/data/{target}",
        content_offset=offset,
        content_size_in_bytes=40,
    )


def position_deletes(path: str, *partition: Any, target: str | None = None) -> DataFile:
    return DataFile(
        content=FileContent.POSITION_DELETES,
        file_path=f"mem://t/data/{path}",
        record_count=2,
        file_size_in_bytes=20,
        partition=partition,
        referenced_data_file=None if target is None else f"mem://t/data/{target}",
    )


def deletes_of(path: str, target: str) -> DataFile:
    """Return a position delete file, or since version 3 a deletion vector."""
    if commit_tables.default_version >= 3:
        return vector(path, target)
    return position_deletes(path, target=target)


def by_path(entries: list[ManifestEntry]) -> dict[str, ManifestEntry]:
    return {e.data_file.file_path.rsplit("/", 1)[1]: e for e in entries}
