"""Writes the delete files that delete rows of data files by position.

Specification, "Deletion Vectors" and "Position Delete Files". Version 3 gets one Puffin file with
one vector per data file, which replaces the existing vector and position deletes; version 2 gets
position delete files. A data file without remaining rows is removed instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pyroaring import BitMap64

from iceberg_pyspark.arrow.read.position_deletes import fetch_vectors, is_only_of, read_deleted_rows
from iceberg_pyspark.arrow.write.position_delete_writer import write_position_deletes
from iceberg_pyspark.changes.removals import DeleteFileId, Origin
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.locations import data_file_name, location_provider
from iceberg_pyspark.formats.puffin.deletion_vectors import write_deletion_vectors
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef, ScanTask
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.spec.partitioning import PartitionKey, partition_key, partition_path
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import DELETE_GRANULARITY, VERIFY_CHECKSUMS
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.threaded_map import threaded_map
from iceberg_pyspark.table.commits.new_data import delete_format

_FILES_AT_ONCE = 8
"""The number of delete files read or written at once: they are small, and stores respond slowly."""


@dataclass(frozen=True, kw_only=True)
class RowDeletes:
    """The files that a commit adds and removes to delete the rows."""

    delete_files: tuple[DataFile, ...] = ()
    removed_data_paths: frozenset[str] = frozenset()
    removed_deletes: frozenset[DeleteFileId] = frozenset()


@dataclass(frozen=True, slots=True)
class DeletedRowsOfFile:
    """All deleted rows of one data file, and the delete files that are no longer needed."""

    task: ScanTask
    rows: BitMap64
    obsolete_deletes: tuple[DeleteFileRef, ...] = ()
    is_fully_deleted: bool = False
    """Whether no row is left, so that the data file itself is removed."""


def write_row_deletes(
    table: str,
    metadata: TableMetadata,
    io: FileIO,
    removed_positions: Mapping[str, BitMap64],
    files: Mapping[str, ScanTask],
    *,
    write_id: str,
) -> RowDeletes:
    """Write the deletes of these rows, combined with the rows that were deleted before.

    `removed_positions` has the positions per data file, `files` the scan tasks of these data files.
    """
    if not removed_positions:
        return RowDeletes()
    if metadata.format_version < 2:
        raise InvalidRequestError(
            f"table {table} has format version 1, which has no delete files; rewrite its files "
            "instead, or upgrade the table"
        )
    verify = VERIFY_CHECKSUMS.of(metadata.properties)
    per_file = metadata.format_version >= 3 or DELETE_GRANULARITY.of(metadata.properties) == "file"

    def with_earlier(path: str) -> DeletedRowsOfFile:
        task, rows = files[path], removed_positions[path]
        whole = _all_deleted_rows(table, io, task, rows, verify)
        if 0 < task.record_count == _count_below(whole, task.record_count):
            return DeletedRowsOfFile(
                task, whole, _deletes_of_one_file(io, task, verify), is_fully_deleted=True
            )
        obsolete_deletes = _deletes_of_one_file(io, task, verify) if per_file else ()
        if metadata.format_version < 3:
            # The deletes in a file for several data files stay valid, so they are not written
            # again.
            whole = _all_deleted_rows(
                table, io, replace(task, deletes=obsolete_deletes), rows, verify
            )
        return DeletedRowsOfFile(task, whole, obsolete_deletes)

    fetch_vectors(io, (files[path] for path in removed_positions), table)
    deleted_rows = list(threaded_map(with_earlier, sorted(removed_positions), str))
    remaining_files = [d for d in deleted_rows if not d.is_fully_deleted]
    if not remaining_files:
        delete_files: tuple[DataFile, ...] = ()
    elif metadata.format_version >= 3:
        delete_files = _vectors(metadata, io, remaining_files, write_id)
    else:
        delete_files = write_position_delete_files(
            metadata, io, remaining_files, write_id, per_file=per_file
        )
    return RowDeletes(
        delete_files=delete_files,
        removed_data_paths=frozenset(d.task.file_path for d in deleted_rows if d.is_fully_deleted),
        removed_deletes=frozenset(
            (ref.file_path, ref.content_offset) for d in deleted_rows for ref in d.obsolete_deletes
        ),
    )


def origin_of(tasks: Iterable[ScanTask], snapshot_id: int | None) -> Origin | None:
    """Return where data files and their deletes were found; None if that is unknown."""
    tasks = list(tasks)
    manifests = {task.manifest_path for task in tasks}
    manifests |= {delete.manifest_path for task in tasks for delete in task.deletes}
    known = frozenset(path for path in manifests if path is not None)
    if snapshot_id is None or len(known) < len(manifests):
        return None
    return Origin(snapshot_id=snapshot_id, manifest_paths=known)


def _all_deleted_rows(
    table: str, io: FileIO, task: ScanTask, rows: BitMap64, verify: bool
) -> BitMap64:
    earlier = read_deleted_rows(io, task, table, verify_checksums=verify)
    return rows if earlier is None else rows | earlier.bitmap()


def deleted_before(
    io: FileIO, task: ScanTask, table: str, *, verify_checksums: bool = False
) -> int:
    """Return the number of rows of a data file that are already deleted by position."""
    rows = read_deleted_rows(io, task, table, verify_checksums=verify_checksums)
    if rows is None or not task.record_count:
        return 0
    if task.record_count < 0:
        return len(rows.bitmap())
    return _count_below(rows.bitmap(), task.record_count)


def _count_below(rows: BitMap64, count: int) -> int:
    """Return how many of the first `count` rows are deleted; a delete may name rows behind them."""
    return int(rows.rank(count - 1)) if count > 0 else 0


def _deletes_of_one_file(io: FileIO, task: ScanTask, verify: bool) -> tuple[DeleteFileRef, ...]:
    """Return the position deletes and vectors that apply to this data file only."""
    return tuple(
        d
        for d in task.deletes
        if d.content is FileContent.POSITION_DELETES
        and (d.is_deletion_vector or is_only_of(io, d, task.file_path, verify_checksums=verify))
    )


def _vectors(
    metadata: TableMetadata, io: FileIO, files: Sequence[DeletedRowsOfFile], write_id: str
) -> tuple[DataFile, ...]:
    location = _location(metadata, write_id, 1, "puffin", None)
    blobs = write_deletion_vectors(io, location, {d.task.file_path: d.rows for d in files})
    return tuple(
        DataFile(
            content=FileContent.POSITION_DELETES,
            file_path=location,
            file_format="puffin",
            spec_id=d.task.spec_id,
            partition=d.task.partition,
            record_count=blob.cardinality,
            file_size_in_bytes=blob.file_size_in_bytes,
            referenced_data_file=d.task.file_path,
            content_offset=blob.content_offset,
            content_size_in_bytes=blob.content_size_in_bytes,
            key_metadata=blob.key_metadata,
        )
        for d, blob in ((d, blobs[d.task.file_path]) for d in files)
    )


def write_position_delete_files(
    metadata: TableMetadata,
    io: FileIO,
    files: Sequence[DeletedRowsOfFile],
    write_id: str,
    *,
    per_file: bool,
) -> tuple[DataFile, ...]:
    """Write position delete files, one per data file or one per partition."""
    file_format = delete_format(metadata.properties)
    groups: dict[tuple[int, PartitionKey, str], list[DeletedRowsOfFile]] = {}
    for d in files:
        task = d.task
        only = task.file_path if per_file else ""
        groups.setdefault((task.spec_id, partition_key(task.partition), only), []).append(d)

    def write(numbered_group: tuple[int, list[DeletedRowsOfFile]]) -> DataFile:
        number, group = numbered_group
        task = group[0].task
        spec = metadata.spec_by_id[task.spec_id]
        path = None
        if not spec.is_unpartitioned:
            path = partition_path(spec, metadata.schemas_newest_first, task.partition)
        location = _location(metadata, write_id, number, file_format, path)
        return write_position_deletes(
            io,
            location,
            {d.task.file_path: d.rows for d in group},
            spec_id=task.spec_id,
            partition=task.partition,
            file_format=file_format,
            properties=metadata.properties,
        )

    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        return tuple(pool.map(write, enumerate(groups.values(), start=1)))


def _location(
    metadata: TableMetadata, write_id: str, number: int, extension: str, path: str | None
) -> str:
    name = data_file_name(
        partition_id=0,
        task_id=0,
        operation_id=write_id,
        file_count=number,
        extension=extension,
        suffix="deletes",
    )
    return location_provider(metadata.location, metadata.properties).new_data_location(name, path)
