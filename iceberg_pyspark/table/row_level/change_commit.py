"""The end of a row-level operation: from touched rows to counts and to an action."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.removals import RemoveFiles, RemoveNothing
from iceberg_pyspark.changes.snapshot_changes import OverwriteFiles, RowDelta, SnapshotAction
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import VERIFY_CHECKSUMS
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.row_deletes import deleted_before, origin_of, write_row_deletes
from iceberg_pyspark.table.commits.written_files import WrittenFiles
from iceberg_pyspark.table.row_level.change_task import Op
from iceberg_pyspark.table.row_level.touched_rows import RowChanges, TouchedRows


def row_changes_of(
    rows: TouchedRows,
    whole_files: Iterable[ScanTask],
    table: str,
    metadata: TableMetadata,
    io: FileIO,
) -> RowChanges:
    """Return the counts of an operation that also removes `whole_files`; no snapshot yet."""
    verify = VERIFY_CHECKSUMS.of(metadata.properties)
    deleted_whole = sum(
        f.record_count - deleted_before(io, f, table, verify_checksums=verify) for f in whole_files
    )
    return RowChanges(
        snapshot_id=None,
        inserted=rows.counts.get(Op.INSERT, 0),
        updated=rows.counts.get(Op.UPDATE, 0),
        deleted=rows.deleted_count + deleted_whole,
        copied=rows.counts.get(Op.COPY, 0),
    )


def change_action(
    table: str,
    metadata: TableMetadata,
    io: FileIO,
    rows: TouchedRows,
    written_files: WrittenFiles,
    *,
    rewritten: bool,
    touched_files: Mapping[str, ScanTask],
    whole_paths: Set[str],
    checks: ConflictChecks,
    write_id: str,
) -> SnapshotAction:
    """Return the action of an operation; its deletes are written, and added to `written_files`.

    `touched_files` are the files with changed rows, by path, and those that are removed whole.
    With `rewritten`, all of them are replaced by the new files.
    """
    origin = origin_of(touched_files.values(), checks.base_snapshot_id)
    if rewritten or not rows.removed_positions:
        return OverwriteFiles(
            removal=RemoveFiles(data_paths=frozenset(touched_files), origin=origin)
            if touched_files
            else RemoveNothing(),
            data_files=rows.data_files,
            checks=checks,
        )
    deletes = write_row_deletes(
        table, metadata, io, rows.removed_positions, touched_files, write_id=write_id
    )
    written_files.add(deletes.delete_files)
    return RowDelta(
        data_files=rows.data_files,
        delete_files=deletes.delete_files,
        removed_data_paths=deletes.removed_data_paths | whole_paths,
        removed_deletes=deletes.removed_deletes,
        origin=origin,
        checks=checks,
    )
