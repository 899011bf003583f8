"""Writes record batches to the data files of one task.

Each partition has its own files, of about the target size on disk. Memory and the number of open
files are bounded. `arrow/write/cast_to_table_schema.py` checks rows,
`arrow/write/partition_batches.py` splits them by partition, and the writer of the format
(`arrow/formats/file_writers.py`) encodes them.

Huge batches are written in pieces: a column of a piece has offsets of 32 bits, and values that
dictionaries, runs or views share are copied for each row. A single row is never split.
"""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrays import (
    Longs,
    batch_bytes,
    buffer_values,
    children_of,
    runs_of,
    used_part,
)
from iceberg_pyspark.arrow.arrow_schemas import is_binary_like, is_text_like
from iceberg_pyspark.arrow.formats.data_file_formats import DataFileWriter
from iceberg_pyspark.arrow.formats.file_writers import file_writers
from iceberg_pyspark.arrow.write.cast_to_table_schema import compile_cast_to_table_schema
from iceberg_pyspark.arrow.write.partition_batches import PartitionTuple, partition_batch
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.formats.locations import data_file_name, location_provider
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import partition_path
from iceberg_pyspark.storage.files.file_io import FileIO

_FEWEST_ROWS = 1000
"""The least rows of a file if there are more rows, as in Java, however small its target size."""

_PIECE_COST = 400
"""Bytes that a column of a piece takes in addition to its values, however few rows it has."""

_MAX_SHRUNK = 0.001
"""The least assumed ratio of encoded to Arrow bytes: a file of constants would never be full."""

_CLOSE_ENOUGH = 0.95
"""The fraction of the target size at which a file is full: the rest would be a poor row group."""

_BYTES_PER_THREAD = 2**28
"""The least bytes of rows for a thread of their own: an additional file should not be small."""

_MAX_THREADS = 8


def write_data_files(
    context: WriteContext,
    batches: Iterable[pa.RecordBatch],
    io: FileIO,
    *,
    partition_id: int,
    task_id: int,
) -> list[DataFile]:
    """Write all rows of one task; without rows, no file is created.

    After any failure all files of this call are removed: the files were never reported, so no
    commit can refer to them.
    """
    writer = _TaskWriter(context, io, partition_id=partition_id, task_id=task_id)
    try:
        for batch in _cast_batches(context, batches):
            writer.write(batch)
        return writer.close()
    except BaseException:
        writer.abort()
        raise


def write_in_threads(
    context: WriteContext, batches: Iterable[pa.RecordBatch], io: FileIO
) -> list[DataFile]:
    """Write the rows of this process; several threads write a long list, each files of its own.

    The files are in the order of the rows. Partitioned tables get their files from one thread:
    otherwise each partition would have a file of each thread.
    """
    size = sum(map(batch_bytes, batches)) if isinstance(batches, list) else 0
    count = min(pa.cpu_count(), _MAX_THREADS, size // _BYTES_PER_THREAD)
    if count < 2 or context.spec.fields:
        return write_data_files(context, batches, io, partition_id=0, task_id=0)
    rows = sum(batch.num_rows for batch in batches)
    ends = [rows * i // count for i in range(count + 1)]
    with ThreadPoolExecutor(count, thread_name_prefix="write-files") as pool:
        writes = [
            pool.submit(
                write_data_files,
                context,
                _between(batches, start, end),
                io,
                partition_id=i,
                task_id=0,
            )
            for i, (start, end) in enumerate(pairwise(ends))
        ]
        try:
            return [file for write in writes for file in write.result()]
        except BaseException:
            for write in writes:
                with contextlib.suppress(BaseException):  # the other writes remove their own files
                    _delete_files(io, write.result())
            raise


def _between(batches: Iterable[pa.RecordBatch], start: int, end: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows from `start` to before `end` of all batches."""
    for batch in batches:
        first, last = max(start, 0), min(end, batch.num_rows)
        if first < last:
            yield batch.slice(first, last - first)
        start, end = start - batch.num_rows, end - batch.num_rows


def _delete_files(io: FileIO, files: Iterable[DataFile]) -> None:
    for file in files:
        # the first failure is the one to report; a file that stays is an orphan
        with contextlib.suppress(StorageError):
            io.delete(file.file_path)


def _cast_batches(
    context: WriteContext, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    compiled_schema: pa.Schema | None = None
    for batch in batches:
        if compiled_schema is None or not batch.schema.equals(compiled_schema):
            compiled_schema = batch.schema
            cast_to_table_schema = compile_cast_to_table_schema(
                compiled_schema,
                context.schema,
                table=context.table,
                case_sensitive=context.case_sensitive,
            )
        yield from map(cast_to_table_schema, pieces(batch))


@dataclass(slots=True)
class _Partition:
    """The waiting rows of one partition, and the partition's open file, if any."""

    values: PartitionTuple
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    waiting_bytes: int = 0
    file: DataFileWriter | None = None
    location: str = ""


class _TaskWriter:
    """The writer of one task: its partitions, their waiting rows and open files."""

    def __init__(
        self, context: WriteContext, io: FileIO, *, partition_id: int, task_id: int
    ) -> None:
        self._context = context
        self._io = io
        self._partition_id = partition_id
        self._task_id = task_id
        self._schemas = (context.schema, *context.schemas)
        self._writers = file_writers(
            context.file_format,
            context.schema,
            context.properties,
            target_file_size_in_bytes=context.target_file_size_in_bytes,
        )
        self._row_group_bytes = min(self._writers.bytes_at_once, max(context.buffer_bytes, 1))
        self._max_open_files = min(
            context.max_open_files, self._writers.max_open_files or context.max_open_files
        )
        self._locations = location_provider(context.table_location, context.properties)
        self._partitions: dict[Hashable, _Partition] = {}
        # partitions with an open file, ordered by their last write, the oldest first
        self._open: dict[Hashable, _Partition] = {}
        self._finished_files: list[DataFile] = []
        self._file_count = 0
        # rows not split yet: small pieces cost more than their rows, so many rows are split at once
        self._arrived_batches: list[pa.RecordBatch] = []
        self._arrived_bytes = 0
        # memory held by waiting rows: a piece of a batch keeps the whole batch alive
        self._buffered_bytes = 0
        # splitting needs the rest: once for the joined rows, once for rows in partition order
        self._max_buffered_bytes = context.buffer_bytes * (3 if context.spec.fields else 4) // 4
        self._flushed_arrow_bytes = 0
        self._flushed_file_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if not self._context.spec.fields:
            self._split(batch)
            return
        self._arrived_batches.append(batch)
        self._arrived_bytes += batch.nbytes
        if self._arrived_bytes >= self._context.buffer_bytes // 8:
            self._split_arrived_batches()

    def _split_arrived_batches(self) -> None:
        batches = pa.Table.from_batches(self._arrived_batches).combine_chunks().to_batches()
        self._arrived_batches, self._arrived_bytes = [], 0
        for batch in batches:
            self._split(batch)

    def _split(self, batch: pa.RecordBatch) -> None:
        pieces = partition_batch(batch, self._context.spec, self._schemas)
        self._buffered_bytes += batch.nbytes + len(pieces) * batch.num_columns * _PIECE_COST
        for values, rows in pieces:
            key = _key(values)
            partition = self._partitions.get(key) or _Partition(values)
            self._add(key, partition, rows)
        if len(self._partitions) <= 1:
            self._buffered_bytes = sum(p.waiting_bytes for p in self._partitions.values())
        if self._buffered_bytes > self._max_buffered_bytes:
            self._make_room()

    def close(self) -> list[DataFile]:
        if self._arrived_batches:
            self._split_arrived_batches()
        for key, partition in list(self._partitions.items()):
            self._flush(key, partition)
            self._close_file(key, partition)
        return self._finished_files

    def abort(self) -> None:
        for partition in self._open.values():
            if partition.file is not None:
                partition.file.abort()
        _delete_files(self._io, self._finished_files)

    def _add(self, key: Hashable, partition: _Partition, rows: pa.RecordBatch) -> None:
        bytes_per_row = max(rows.nbytes / rows.num_rows, 1)
        start = 0
        while start < rows.num_rows:
            size = max(self._row_group_size(partition), _FEWEST_ROWS * bytes_per_row)
            room = size - partition.waiting_bytes
            piece = rows.slice(start, max(math.ceil(room / bytes_per_row), 1))
            start += piece.num_rows
            # closing a full file may have removed its partition
            self._partitions[key] = partition
            partition.waiting.append(piece)
            partition.waiting_bytes += math.ceil(piece.num_rows * bytes_per_row)
            if partition.waiting_bytes >= size:
                self._flush(key, partition)

    def _row_group_size(self, partition: _Partition) -> float:
        """Return the bytes of waiting rows that make a row group, or that fill the file up."""
        target = self._context.target_file_size_in_bytes
        bytes_so_far = 0 if partition.file is None else partition.file.written_bytes
        # rows shrink when encoded; the ratio is known after the first row group
        shrinks_to = (
            self._flushed_file_bytes / self._flushed_arrow_bytes
            if self._flushed_arrow_bytes
            else 1.0
        )
        return min(self._row_group_bytes, (target - bytes_so_far) / max(shrinks_to, _MAX_SHRUNK))

    def _flush(self, key: Hashable, partition: _Partition) -> None:
        if not partition.waiting:
            return
        rows = pa.Table.from_batches(partition.waiting)
        file = partition.file or self._open_file(key, partition)
        before = file.written_bytes
        file.write(rows)
        self._flushed_arrow_bytes += partition.waiting_bytes
        self._flushed_file_bytes += file.written_bytes - before
        partition.waiting, partition.waiting_bytes = [], 0
        self._open[key] = self._open.pop(key)
        if file.written_bytes >= self._context.target_file_size_in_bytes * _CLOSE_ENOUGH:
            self._close_file(key, partition)

    def _make_room(self) -> None:
        """Write the largest waiting row groups until most of the buffer is free, and copy the rest.

        The copies release the batches of which the waiting rows were slices.
        """
        waiting = sorted(
            ((k, p) for k, p in self._partitions.items() if p.waiting),
            key=lambda item: item[1].waiting_bytes,
            reverse=True,
        )
        waiting_bytes = sum(p.waiting_bytes for _, p in waiting)
        for key, partition in waiting:
            if waiting_bytes <= self._context.buffer_bytes // 4:
                compact = pa.Table.from_batches(partition.waiting).combine_chunks()
                partition.waiting = compact.to_batches()
            else:
                waiting_bytes -= partition.waiting_bytes
                self._flush(key, partition)
        self._buffered_bytes = waiting_bytes

    def _open_file(self, key: Hashable, partition: _Partition) -> DataFileWriter:
        while len(self._open) >= self._max_open_files:
            oldest, other = next(iter(self._open.items()))
            self._close_file(oldest, other)
        self._file_count += 1
        name = data_file_name(
            partition_id=self._partition_id,
            task_id=self._task_id,
            operation_id=self._context.write_id,
            file_count=self._file_count,
            extension=self._context.file_format,
        )
        spec = self._context.spec
        path = (
            None if spec.is_unpartitioned else partition_path(spec, self._schemas, partition.values)
        )
        location = self._locations.new_data_location(name, path)
        partition.file = file = self._writers.create(self._io, location)
        partition.location = location
        self._open[key] = partition
        return file

    def _close_file(self, key: Hashable, partition: _Partition) -> None:
        if partition.file is None:
            return
        closed_file = partition.file.close()
        self._finished_files.append(
            DataFile(
                file_path=partition.location,
                file_format=self._context.file_format,
                spec_id=self._context.spec.spec_id,
                partition=partition.values,
                file_size_in_bytes=closed_file.file_size_in_bytes,
                sort_order_id=self._context.sort_order_id,
                key_metadata=closed_file.key_metadata,
                **closed_file.metrics,
            )
        )
        partition.file = None
        del self._open[key]
        if not partition.waiting:
            del self._partitions[key]


def _key(values: PartitionTuple) -> Hashable:
    """Return a key that distinguishes -0.0 from 0.0 and equates NaNs, like partition equality."""
    return tuple(struct.pack("<d", v) if isinstance(v, float) else v for v in values)


_MAX_ROWS = 131_072
_MAX_BYTES = 2**28


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield slices of the batch that together are the batch."""
    for start in range(0, batch.num_rows, _MAX_ROWS):
        yield from _halves(batch.slice(start, _MAX_ROWS))


def _halves(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if rows.num_rows > 1 and sum(map(plain_size, rows.columns)) > _MAX_BYTES:
        half = rows.num_rows // 2
        yield from _halves(rows.slice(0, half))
        yield from _halves(rows.slice(half))
    else:
        yield rows


def plain_size(array: pa.Array) -> int:
    """Return about the bytes of the array in a plain encoding, at least one for each element."""
    if isinstance(array, pa.ExtensionArray):
        return plain_size(array.storage)
    if isinstance(array, pa.DictionaryArray):
        array = used_part(array)
        indices = array.indices.drop_null().to_numpy()
        return len(array) + int(_value_sizes(array.dictionary)[indices].sum())
    if isinstance(array, pa.RunEndEncodedArray):
        ends, values = runs_of(array)
        return int(np.diff(ends, prepend=0) @ _value_sizes(values))
    if _is_view(array.type):
        return 16 * len(array) + int(_view_lengths(array).sum())
    if isinstance(array, pa.StructArray | pa.MapArray | pa.ListArray | pa.LargeListArray):
        return len(array) + sum(map(plain_size, children_of(array)))
    if pa.types.is_nested(array.type):
        # lists of list views may share elements, which `children_of` would copy
        elements = pc.sum(pc.list_value_length(array)).as_py() or 0
        return len(array) + int(elements * _mean_size(array.values))
    return max(int(array.nbytes), len(array))


def _value_sizes(values: pa.Array) -> Longs:
    """Return about the bytes of each value; texts and bytes exactly, as they differ most."""
    if _is_view(values.type):
        return _view_lengths(values)
    if is_text_like(values.type) or is_binary_like(values.type):
        lengths: Longs = pc.binary_length(values).fill_null(0).to_numpy(zero_copy_only=False)
        return lengths.astype(np.int64)
    return np.full(len(values), round(_mean_size(values)), np.int64)


def _mean_size(values: pa.Array) -> float:
    return plain_size(values) / max(len(values), 1)


def _is_view(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(type_) or pa.types.is_binary_view(type_))


def _view_lengths(views: pa.Array) -> Longs:
    """Return the lengths of texts or bytes: each view has 16 bytes, and begins with its length."""
    if not len(views):
        return np.zeros(0, np.int64)
    parts = buffer_values(views.buffers()[1], np.int32, 4 * views.offset, 4 * len(views))
    lengths = parts[::4].astype(np.int64)
    if views.null_count:
        lengths[views.is_null().to_numpy(zero_copy_only=False)] = 0
    return lengths
