"""Reads Parquet data files as record batches with row positions, in bounded memory.

Only the projected leaf columns are decoded. A row group belongs to the byte range that contains its
first byte. Row groups that a predicate rules out are skipped; the positions of other rows stay the
same. Large row groups are read through small buffers instead of whole column chunks, and an object
store is told the byte ranges in advance. Field ids are in the metadata of the schema.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.arrow.formats.data_file_reader import (
    ALL_ROW_GROUPS,
    DataFileReader,
    RowGroupChoice,
)
from iceberg_pyspark.arrow.formats.row_group_pruning import compile_row_group_filter
from iceberg_pyspark.arrow.metrics.column_metrics import first_byte
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.spec.table_properties import VERIFY_CHECKSUMS
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.objects.object_streams import ObjectInput

BATCH_ROWS = 65_536
_BATCH_BYTES = 32 * 1024 * 1024
_WHOLE_CHUNKS_BYTES = 32 * 1024 * 1024
_STREAM_BUFFER_BYTES = 1024 * 1024


def arrow_input(stream: BinaryIO) -> pa.NativeFile:
    """Return an Arrow file over a stream; Arrow reads a local file itself, without Python."""
    if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO):
        return pa.OSFile(stream.name)
    return pa.PythonFile(stream, mode="r")


class ParquetFileReader(DataFileReader):
    """An open Parquet file."""

    reads_whole_columns = False

    def __init__(self, file_io: FileIO, location: str, *, verify_checksums: bool = False) -> None:
        self._verify_checksums = verify_checksums
        super().__init__(file_io, location)

    def _open(self) -> None:
        self._input = arrow_input(self._stream)
        self.metadata = pq.read_metadata(self._input)
        self.schema = self.metadata.schema.to_arrow_schema()

    def close(self) -> None:
        """Close the file."""
        self._input.close()
        super().close()

    def batches(
        self, leaves: Collection[int], choice: RowGroupChoice = ALL_ROW_GROUPS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches as `DataFileReader.batches` describes."""
        runs = list(self._runs(choice))
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
        if isinstance(self._stream, ObjectInput):
            self._stream.will_read([[_bytes_of(g.column(c)) for c in columns] for g in groups])
        batch_rows = _batch_rows(groups, columns)
        for row_groups, position in runs:
            # select columns by index: a dotted path is ambiguous if a name contains a dot
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

    def _runs(self, choice: RowGroupChoice) -> Iterator[tuple[list[int], int]]:
        """Yield runs of neighbouring row groups to read, each with its first row's position."""
        start, length = choice.start, choice.length
        may_have_rows = compile_row_group_filter(choice.predicate, choice.leaf_by_id)
        run: list[int] = []
        run_position = position = 0
        for i in range(self.metadata.num_row_groups):
            group = self.metadata.row_group(i)
            is_read = (
                group.num_rows > 0
                and (length is None or start <= first_byte(group) < start + length)
                and may_have_rows(group)
            )
            if is_read and not run:
                run_position = position
            if is_read:
                run.append(i)
            elif run:
                yield run, run_position
                run = []
            position += group.num_rows
        if run:
            yield run, run_position


def _bytes_of(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Return the offsets of a column chunk's start and end in its file."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    return start, start + chunk.total_compressed_size


def _batch_rows(groups: list[pq.RowGroupMetaData], columns: list[int]) -> int:
    """Return the number of rows per batch: few for wide rows, judged by the widest row group."""
    row_bytes = max(
        sum(group.column(c).total_uncompressed_size for c in columns) / group.num_rows
        for group in groups
    )
    return max(256, min(BATCH_ROWS, int(_BATCH_BYTES / max(row_bytes, 1))))


def empty_batch(rows: int) -> pa.RecordBatch:
    """Return a batch with rows but without columns."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))
