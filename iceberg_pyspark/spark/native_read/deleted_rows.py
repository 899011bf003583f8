"""The deleted rows of data files: broadcast as bitmaps, or read by executors.

If a scan has few deletes, the driver reads and broadcasts them, which saves requests of executors
to the store. A broadcast takes the driver 35 ms per MiB (measured); 1 MiB marks 5 % of 10 million
rows, whose scan takes seconds. The real cost is memory: bitmaps are sent in chunks, of which
executors hold the current ones; above `MAX_TOTAL_BYTES` in total, no broadcast is created.

With many deletion vectors or position delete files the driver would need seconds before the query
starts, and much memory, so executors read them. The driver always reads position delete files of
other formats than Parquet.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from pyroaring import BitMap64

from iceberg_pyspark.arrow.read.position_deletes import (
    DeletionVector,
    deletion_vector_of,
    fetch_vectors,
    read_deleted_rows,
)
from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef, ScanContext, ScanTask
from iceberg_pyspark.spark.bridge.call_arguments import PositionPlaces, VectorPlaces
from iceberg_pyspark.spark.storage.hadoop_options import store_digest
from iceberg_pyspark.spec.manifests import FileContent
from iceberg_pyspark.storage.files.cache import is_written_once
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.restricted_io import check_read
from iceberg_pyspark.storage.threaded_map import threaded_map

_T = TypeVar("_T")

MAX_BROADCAST_BYTES = 16 * 1024 * 1024
"""The greatest size of bitmaps that are broadcast together."""

MAX_TOTAL_BYTES = 256 * 1024 * 1024
"""Files are read portably once the bitmaps of a scan exceed this size."""


def read_bitmaps(
    io: FileIO, tasks: Sequence[ScanTask], table: str, verify_checksums: bool
) -> Iterator[tuple[ScanTask, BitMap64 | None]]:
    """Yield each task with its rows deleted by position, or with None if no row is deleted."""
    fetch_vectors(io, tasks, table)
    bitmap = partial(_bitmap, io, table, verify_checksums)
    return zip(tasks, threaded_map(bitmap, tasks, lambda t: t.file_path), strict=True)


def _bitmap(io: FileIO, table: str, verify_checksums: bool, task: ScanTask) -> BitMap64 | None:
    rows = read_deleted_rows(io, task, table, verify_checksums=verify_checksums)
    return None if rows is None else rows.bitmap()


def bitmap_bytes(bitmap: object) -> int:
    """Return the size of a bitmap in a broadcast; 0 for anything else."""
    return len(bitmap.serialize()) if isinstance(bitmap, BitMap64) else 0


def chunks(files: Iterable[_T], size_of: Callable[[_T], int], most: int) -> Iterator[list[_T]]:
    """Yield the files in order, in chunks of at most `most` bytes or of a single file."""
    chunk: list[_T] = []
    chunk_size = 0
    for file in files:
        size = size_of(file)
        if chunk and chunk_size + size > most:
            yield chunk
            chunk, chunk_size = [], 0
        chunk.append(file)
        chunk_size += size
    if chunk:
        yield chunk


def serialized_bitmaps(bitmaps: Iterable[BitMap64]) -> tuple[bytes, bool]:
    """Return all bitmaps as one blob of (length, bytes), and whether they are in the 64-bit form.

    The 32-bit form is probed faster; it is the part of the portable 64-bit form for key 0.
    """
    bitmap_list = list(bitmaps)
    wide = any(len(b) and b.max() >= 2**31 for b in bitmap_list)
    parts = []
    for bitmap in bitmap_list:
        data = bitmap.serialize()
        if not wide:
            count = struct.unpack_from("<q", data)[0]
            data = data[12:] if count else b""
        parts.append(struct.pack(">i", len(data)) + data)
    return b"".join(parts), wide


MAX_POSITION_BYTES = 2 * 1024 * 1024
"""Executors read a scan's position delete files if they exceed this size.

Measured on two busy cores, 64 data files on a local disk: the first query takes as long either way
with 2 MiB, 8.1 s against 2.8 s with 9 MiB and 69 s against 10 s with 63 MiB.
"""


class PositionDeletes(NamedTuple):
    """The position delete files that may delete rows of a data file."""

    data_file: str
    files: tuple[DeleteFileRef, ...]


def large_positions(
    tasks: Sequence[ScanTask], table: str, is_reached: Callable[[str], bool]
) -> dict[str, PositionDeletes]:
    """Return the position deletes by data file path, if they are too large for the driver.

    A data file is left out if one of its delete files is not in Parquet, is encrypted or,
    according to `is_reached`, cannot be reached by executors.
    """
    of_tasks = {t.file_path: _position_files(t, table) for t in tasks}
    every = {d.file_path: d for files in of_tasks.values() for d in files}
    if sum(d.file_size_in_bytes for d in every.values()) <= MAX_POSITION_BYTES:
        return {}
    read_there = {
        path
        for path, d in every.items()
        if d.file_format == "parquet" and d.key_metadata is None and is_reached(path)
    }
    return {
        path: PositionDeletes(path, files)
        for path, files in of_tasks.items()
        if files and all(d.file_path in read_there for d in files)
    }


def _position_files(task: ScanTask, table: str) -> tuple[DeleteFileRef, ...]:
    # A deletion vector includes all older position deletes of its data file.
    if deletion_vector_of(task, table) is not None:
        return ()
    return tuple(d for d in task.deletes if d.content is FileContent.POSITION_DELETES)


def position_places(
    io: FileIO,
    context: ScanContext,
    deletes: Sequence[PositionDeletes | None],
    location_of: Callable[[str], str],
    options: Mapping[str, str],
) -> PositionPlaces:
    """Return what executors must know about the position deletes of data files, in the files'
    order.

    `location_of` returns the location by which the JVM opens a file, with Hadoop's `options`. Raise
    `LocationRefusedError` for a file that the table may not read.
    """
    numbers: dict[DeleteFileRef, int] = {}
    files: list[int] = []
    ends: list[int] = []
    for of_file in deletes:
        for ref in of_file.files if of_file is not None else ():
            if ref not in numbers:
                check_read(io, ref.file_path)
                numbers[ref] = len(numbers)
            files.append(numbers[ref])
        ends.append(len(files))
    return PositionPlaces(
        table=context.table,
        locations=[location_of(ref.file_path) for ref in numbers],
        store=store_digest(options),
        options=options,
        verify=context.verify_checksums,
        lasting=[is_written_once(ref.file_path.rpartition("/")[2]) for ref in numbers],
        sizes=[ref.file_size_in_bytes for ref in numbers],
        records=[ref.record_count for ref in numbers],
        paths=["" if d is None else d.data_file for d in deletes],
        ends=ends,
        files=files,
    )


MAX_VECTOR_BYTES = 2 * 1024 * 1024
"""Executors read a scan's deletion vectors if they exceed this size.

Measured on two cores, 64 files on a local disk: the first query takes as long either way with
2 MiB, 4.4 s against 2.7 s with 8 MiB and 7.5 s against 3.7 s with 64 MiB.
"""

_MAX_BYTES_OF_A_VECTOR = 2**31 - 1
"""The greatest length of a vector: its blob has the length as a signed 32-bit integer."""


def large_vectors(
    tasks: Sequence[ScanTask], table: str, is_reached: Callable[[str], bool]
) -> dict[str, DeletionVector]:
    """Return the deletion vectors by data file path, if they are too large for the driver.

    Vectors in files that executors cannot reach, according to `is_reached`, and encrypted ones are
    left out.
    """
    of_tasks = ((t.file_path, deletion_vector_of(t, table)) for t in tasks)
    vectors = {p: v for p, v in of_tasks if v is not None and v.key_metadata is None}
    if sum(v.content_size_in_bytes for v in vectors.values()) <= MAX_VECTOR_BYTES:
        return {}
    return {path: v for path, v in vectors.items() if is_reached(v.file_path)}


def vector_places(
    io: FileIO,
    table: str,
    vectors: Sequence[DeletionVector | None],
    location_of: Callable[[str], str],
    options: Mapping[str, str],
) -> VectorPlaces:
    """Return what executors must know about the vectors of data files, in the order of the files.

    `location_of` returns the location by which the JVM opens a file, with Hadoop's `options`. Raise
    `LocationRefusedError` for a file that the table may not read.
    """
    numbers: dict[str, int] = {}
    for vector in vectors:
        if vector is None:
            continue
        _check(table, vector)
        if vector.file_path not in numbers:
            check_read(io, vector.file_path)
            numbers[vector.file_path] = len(numbers)
    locations = [location_of(path) for path in numbers]
    return VectorPlaces(
        table=table,
        store=store_digest(options),
        options=options,
        locations=locations,
        lasting=[is_written_once(path.rpartition("/")[2]) for path in numbers],
        places=[0 if v is None else numbers[v.file_path] for v in vectors],
        offsets=[0 if v is None else v.content_offset for v in vectors],
        sizes=[0 if v is None else v.content_size_in_bytes for v in vectors],
        cardinalities=[0 if v is None else v.cardinality for v in vectors],
    )


def _check(table: str, vector: DeletionVector) -> None:
    size, offset = vector.content_size_in_bytes, vector.content_offset
    if offset < 0 or not 0 < size <= _MAX_BYTES_OF_A_VECTOR:
        raise InvalidMetadataError(
            f"table {table}: deletion vector at {offset} of {vector.file_path}: "
            f"no file has a vector of {size} bytes there"
        )
