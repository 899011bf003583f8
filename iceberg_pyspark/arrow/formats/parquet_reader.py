"""Parquet data files as record batches with their file positions, in bounded memory.

Only leaf columns asked for are decoded; a row group belongs to the byte range that holds its first
byte; row groups that a predicate rules out are skipped without moving any row's position. Large
row groups are read through small buffers instead of whole column chunks. Field ids are in the
schema's metadata.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType, TracebackType
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.arrow.formats.row_group_pruning import compile_row_group_filter
from iceberg_pyspark.arrow.metrics.column_metrics import first_byte
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.spec.properties import VERIFY_CHECKSUMS
from iceberg_pyspark.storage.file_io import FileIO

BATCH_ROWS = 65_536
_BATCH_BYTES = 32 * 1024 * 1024
_WHOLE_CHUNKS_BYTES = 32 * 1024 * 1024
_STREAM_BUFFER_BYTES = 1024 * 1024
_NO_PREDICATE = AlwaysTrue()
_NO_LEAVES: Mapping[int, int] = MappingProxyType({})


def arrow_input(stream: BinaryIO) -> pa.NativeFile:
    """An Arrow file over a stream; a local file is read without Python in between."""
    if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO):
        return pa.OSFile(stream.name)
    return pa.PythonFile(stream, mode="r")


class ParquetFileReader:
    """An open Parquet file; a context manager that closes it."""

    reads_whole_columns = False

    def __init__(self, file_io: FileIO, location: str, *, verify_checksums: bool = False) -> None:
        self._location = location
        self._verify_checksums = verify_checksums
        self._stream = file_io.open_input(location)
        try:
            self._input = arrow_input(self._stream)
            self.metadata = pq.read_metadata(self._input)
            self.schema: pa.Schema = self.metadata.schema.to_arrow_schema()
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> ParquetFileReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._input.close()
        self._stream.close()

    def batches(
        self,
        leaves: Collection[int],
        *,
        start: int = 0,
        length: int | None = None,
        predicate: Predicate = _NO_PREDICATE,
        leaf_by_id: Mapping[int, int] = _NO_LEAVES,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of the leaf columns, each with the position of its first row in the file.

        No leaves at all still gives batches with the right number of rows. Row groups without a row
        for `predicate` are left out as far as statistics of the columns in `leaf_by_id` show them.
        """
        keep = compile_row_group_filter(predicate, leaf_by_id)
        runs = list(self._runs(start, length, keep))
        if not leaves:
            for row_groups, position in runs:
                rows = sum(self.metadata.row_group(g).num_rows for g in row_groups)
                for offset in range(0, rows, BATCH_ROWS):
                    yield position + offset, empty_batch(min(BATCH_ROWS, rows - offset))
            return
        if not runs:
            return
        groups = [self.metadata.row_group(g) for row_groups, _ in runs for g in row_groups]
        columns = sorted(leaves)
        chunks = max(
            sum(group.column(c).total_compressed_size for c in columns) for group in groups
        )
        file = pq.ParquetFile(
            self._input,
            metadata=self.metadata,
            pre_buffer=False,
            buffer_size=_STREAM_BUFFER_BYTES if chunks > _WHOLE_CHUNKS_BYTES else 0,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=self._verify_checksums,
        )
        batch_rows = _batch_rows(groups, columns)
        for row_groups, position in runs:
            # by column index: dotted names are ambiguous where a name has a dot of its own
            batches = file.reader.iter_batches(
                batch_rows, row_groups=row_groups, column_indices=columns, use_threads=False
            )
            while (batch := self._next(batches)) is not None:
                if batch.num_rows:
                    yield position, batch
                    position += batch.num_rows

    def _next(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        try:
            return next(batches, None)
        except OSError as e:
            if "CRC checksum" not in str(e):
                raise
            raise StorageError(
                f"{self._location} is damaged: a page does not match its checksum ({e}); if "
                f"another program wrote wrong checksums, set {VERIFY_CHECKSUMS.name}=false"
            ) from e

    def _runs(
        self, start: int, length: int | None, keep: Callable[[pq.RowGroupMetaData], bool]
    ) -> Iterator[tuple[list[int], int]]:
        """Neighbouring row groups to read, each run with the position of its first row."""
        run: list[int] = []
        run_position = position = 0
        for i in range(self.metadata.num_row_groups):
            group = self.metadata.row_group(i)
            wanted = (
                group.num_rows > 0
                and (length is None or start <= first_byte(group) < start + length)
                and keep(group)
            )
            if wanted and not run:
                run_position = position
            if wanted:
                run.append(i)
            elif run:
                yield run, run_position
                run = []
            position += group.num_rows
        if run:
            yield run, run_position


def _batch_rows(groups: list[pq.RowGroupMetaData], columns: list[int]) -> int:
    """Rows per batch: fewer where rows are wide, judged by the widest row group."""
    row_bytes = max(
        sum(group.column(c).total_uncompressed_size for c in columns) / group.num_rows
        for group in groups
    )
    return max(256, min(BATCH_ROWS, int(_BATCH_BYTES / max(row_bytes, 1))))


def empty_batch(rows: int) -> pa.RecordBatch:
    """A batch without columns that still has rows."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))
