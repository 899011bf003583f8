"""Reads Parquet data files as record batches with row positions, in bounded memory.

Only the projected leaf columns are decoded. A row group belongs to the byte range that contains its
first byte. Row groups that a predicate rules out are skipped; the positions of other rows stay the
same. Large row groups are read through small buffers instead of whole column chunks, and an object
store is told the byte ranges in advance. Field ids are in the metadata of the schema.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.arrow.arrow_schemas import takable_type
from iceberg_pyspark.arrow.column_metrics import first_byte
from iceberg_pyspark.arrow.formats.data_file_formats import (
    ALL_ROW_GROUPS,
    DataFileReader,
    LateColumns,
    RowGroupChoice,
)
from iceberg_pyspark.arrow.formats.late_columns import LateReader
from iceberg_pyspark.arrow.formats.parquet_encryption import decryption_properties
from iceberg_pyspark.arrow.formats.parquet_pages import PageIndex, ReadArrays, RowGroupPages
from iceberg_pyspark.arrow.formats.row_group_filter import compile_row_group_filter
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.spec.table_properties import VERIFY_CHECKSUMS
from iceberg_pyspark.storage.encryption.encrypted_io import DecryptedFileIO
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.objects.object_streams import ObjectInput

BATCH_ROWS = 65_536
_WHOLE_ROWS = 4 * BATCH_ROWS
"""The most rows of a batch where memory matters less than time."""
_LEAST_ROWS = 16
_BATCH_BYTES = 32 * 1024 * 1024
_WHOLE_CHUNKS_BYTES = 32 * 1024 * 1024
_STREAM_BUFFER_BYTES = 1024 * 1024
_LEAST_BUFFER_BYTES = 64 * 1024
_HELD_BYTES = 128 * 1024 * 1024
"""The most bytes that are held of all columns, if parts of them can be read."""
_STRIPE_BYTES = 32 * 1024 * 1024
"""The most bytes of columns that are read together otherwise."""
_PAGE_BYTES = 3 * 1024 * 1024
"""The bytes of a page and of a dictionary, as most writers limit them."""
_CODEC_BYTES = 64 * 1024
"""The bytes of a decompressor and of a small buffer."""
_VALUE_WORK = 4
_TEXT_WORK = 14
"""The work to decode a value and a text, beside that of a byte."""
LATE_FACTOR = 5
"""The least size of all columns, in those of the first: two readers take longer than one."""
LATE_CHUNK_BYTES = 64 * 1024
"""The least mean size of column chunks whose page index is parsed, in Python, for few rows."""
_DICTIONARY_BYTES = 1
"""The most bytes per text of a column of which nearly all pages refer to a dictionary."""


def arrow_input(stream: BinaryIO) -> pa.NativeFile:
    """Return an Arrow file over a stream; Arrow reads a local file itself, without Python."""
    if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO):
        return pa.OSFile(stream.name)
    return pa.PythonFile(stream, mode="r")


class ParquetFileReader(DataFileReader):
    """An open Parquet file."""

    reads_whole_columns = False

    def __init__(
        self,
        file_io: FileIO,
        location: str,
        *,
        verify_checksums: bool = False,
        threads: bool = False,
    ) -> None:
        self._verify_checksums = verify_checksums
        self._threads = threads
        key = None
        if isinstance(file_io, DecryptedFileIO):
            key, file_io = file_io.key, file_io.io
        self._decryption = decryption_properties(key)
        super().__init__(file_io, location)

    def _open(self) -> None:
        self._input = arrow_input(self._stream)
        self._page_index: PageIndex | None = None
        self.metadata = pq.read_metadata(self._input, **self._decryption)
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
        # threads would read an object in another order than it was told
        has_threads = self._threads and isinstance(self._input, pa.OSFile)
        # readers share a decryptor, which only Arrow's own threads take in turn
        arrow_threads = has_threads and bool(self._decryption)
        if isinstance(self._stream, ObjectInput):
            self._stream.will_read([[_bytes_of(g.column(c)) for c in columns] for g in groups])
        dictionaries = self._repeated_texts(groups, columns)
        options = {
            "pre_buffer": False,
            "buffer_size": _buffer_bytes(len(columns)) if chunks > _WHOLE_CHUNKS_BYTES else 0,
            "coerce_int96_timestamp_unit": "us",
            "page_checksum_verification": self._verify_checksums,
            "read_dictionary": dictionaries,
            **self._decryption,
        }
        most_rows = BATCH_ROWS if choice.is_stream else _WHOLE_ROWS
        batch_rows = _batch_rows(self.metadata, groups, columns, most_rows)
        decodes = (dictionaries and not choice.with_dictionaries) or any(
            takable_type(f.type) != f.type for f in self.schema
        )

        def read(
            file: pq.ParquetFile,
            row_groups: Sequence[int],
            leaves: Sequence[int],
            rows: int = batch_rows,
        ) -> Iterator[pa.RecordBatch]:
            # select columns by index: a dotted path is ambiguous if a name contains a dot
            batches = file.reader.iter_batches(
                rows, row_groups=row_groups, column_indices=leaves, use_threads=arrow_threads
            )
            while (batch := self._next(batches)) is not None:
                if batch.num_rows:
                    yield _decoded(batch) if decodes else batch

        def read_groups(
            row_groups: Sequence[int], leaves: Sequence[int]
        ) -> Iterator[pa.RecordBatch]:
            if has_threads and not arrow_threads:
                # only reads without Spark have threads
                from iceberg_pyspark.arrow.formats.column_threads import (  # noqa: PLC0415
                    in_parts,
                    read_in_threads,
                )

                parts = in_parts(self._work_by_column(row_groups[0], leaves), pa.cpu_count())
                if len(parts) > 1:
                    return read_in_threads(parts, partial(read, file, row_groups))
            return read(file, row_groups, leaves)

        file = pq.ParquetFile(self._input, metadata=self.metadata, **options)

        def read_arrays(
            part: pa.NativeFile, footer: pq.FileMetaData, leaves: list[int]
        ) -> list[pa.Array]:
            rows = footer.row_group(0).num_rows
            opened = pq.ParquetFile(part, metadata=footer, **options)
            return _columns(read(opened, [0], leaves, rows))

        def read_columns(group: int, leaves: Sequence[int]) -> Iterator[pa.RecordBatch]:
            striped = None
            if choice.is_stream and self._is_near:
                striped = self._in_stripes(
                    group,
                    leaves,
                    batch_rows,
                    read_arrays,
                    lambda stripe: _columns(read(file, [group], stripe)),
                )
            return striped or read_groups([group], leaves)

        late = choice.late if self._is_near else None
        if late is not None and _is_worthwhile(late, groups[0]):
            reader = LateReader(late, read_columns, self._late_pages_of, read_arrays)
            for row_groups, position in runs:
                for group in row_groups:
                    yield from reader.batches(group, position)
                    position += self.metadata.row_group(group).num_rows
            return
        is_wide = any(_held_bytes(group, columns) > _HELD_BYTES for group in groups)
        for row_groups, position in runs:
            for batch in (
                chain.from_iterable(read_columns(group, columns) for group in row_groups)
                if is_wide
                else read_groups(row_groups, columns)
            ):
                yield position, batch
                position += batch.num_rows

    def _work_by_column(self, group: int, leaves: Sequence[int]) -> list[tuple[int, list[int]]]:
        """Return the leaves of each top-level column, with the work to decode them."""
        chunks = self.metadata.row_group(group)
        return [
            (sum(_work(chunks.column(c)) for c in column), column)
            for column in self._selected_columns(leaves)
        ]

    @property
    def _is_near(self) -> bool:
        """Whether reads of single pages are cheap, which are requests of an object store."""
        return isinstance(self._input, pa.OSFile) or isinstance(self._stream, io.BytesIO)

    def _in_stripes(
        self,
        group: int,
        leaves: Sequence[int],
        batch_rows: int,
        read_arrays: ReadArrays,
        read_whole: Callable[[Sequence[int]], list[pa.Array]],
    ) -> Iterator[pa.RecordBatch] | None:
        """Return batches of which few columns are read together, or None if that saves nothing.

        Arrow holds a page and a dictionary of each column that it reads. `read_whole` reads leaf
        columns of the whole row group, if it is one batch.
        """
        row_group = self.metadata.row_group(group)
        if _held_bytes(row_group, leaves) <= _HELD_BYTES:
            return None
        columns = self._selected_columns(leaves)
        rows = row_group.num_rows
        pages = self._pages_of(group, leaves) if rows > batch_rows else None
        if rows > batch_rows and (pages is None or not pages.are_small(columns)):
            return None
        stripes: list[list[list[int]]] = [[]]
        size = 0
        for column in columns:
            held = _held_bytes(row_group, column)
            if size + held > _STRIPE_BYTES:
                stripes.append([])
                size = 0
            stripes[-1].append(column)
            size += held

        def read_stripe(stripe: Sequence[Sequence[int]], span: tuple[int, int]) -> list[pa.Array]:
            if pages is None:
                return read_whole([leaf for column in stripe for leaf in column])
            return pages.read(stripe, span, read_arrays)

        def batches() -> Iterator[pa.RecordBatch]:
            for begin in range(0, rows, batch_rows):
                span = (begin, min(begin + batch_rows, rows))
                arrays = [
                    # a copy holds no other rows of its page
                    pa.concat_arrays([array])
                    for stripe in stripes
                    for array in read_stripe(stripe, span)
                ]
                names = [str(i) for i in range(len(arrays))]
                yield pa.RecordBatch.from_arrays(arrays, names=names)

        return batches()

    def _selected_columns(self, leaves: Collection[int]) -> list[list[int]]:
        """Return the selected leaves of each top-level column that has any."""
        selected = frozenset(leaves)
        columns = ([c for c in column if c in selected] for column in self._leaves_of_columns())
        return [column for column in columns if column]

    def _pages_of(self, group: int, leaves: Sequence[int]) -> RowGroupPages | None:
        row_group = self.metadata.row_group(group)
        if self._decryption or not all(row_group.column(c).has_offset_index for c in leaves):
            return None
        if self._page_index is None:
            self._page_index = PageIndex(self._input)
        return self._page_index.pages_of(group, leaves)

    def _late_pages_of(self, group: int, leaves: Sequence[int]) -> RowGroupPages | None:
        """Return the pages of columns that take longer to read as a whole than by their index."""
        row_group = self.metadata.row_group(group)
        size = sum(row_group.column(c).total_uncompressed_size for c in leaves)
        return self._pages_of(group, leaves) if size >= LATE_CHUNK_BYTES * len(leaves) else None

    def _repeated_texts(self, groups: list[pq.RowGroupMetaData], columns: list[int]) -> list[str]:
        """Return the top-level columns of texts and bytes that are stored as dictionaries.

        Arrow decodes whole dictionaries faster than it decodes one text after another, and plain
        texts more slowly. They have at least four bytes each.
        """
        top_level = frozenset(self.schema.names)  # nested columns need other code to decode them
        names = []
        for c in columns:
            leaf = self.metadata.schema.column(c)
            if leaf.physical_type != "BYTE_ARRAY" or leaf.path not in top_level:
                continue
            chunks = [g.column(c) for g in groups]
            size = sum(chunk.total_uncompressed_size for chunk in chunks)
            if size < _DICTIONARY_BYTES * sum(map(_values, chunks)):
                names.append(leaf.path)
        return names

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


def _columns(batches: Iterator[pa.RecordBatch]) -> list[pa.Array]:
    """Return the columns of all batches, each as one array; none without batches."""
    read = list(batches)
    if len(read) == 1:
        return list(read[0].columns)
    return [
        pa.concat_arrays(arrays) for arrays in zip(*(batch.columns for batch in read), strict=True)
    ]


def _values(chunk: pq.ColumnChunkMetaData) -> int:
    """Return the number of values that are not null, as far as it is known."""
    statistics = chunk.statistics
    nulls = statistics.null_count if statistics is not None and statistics.has_null_count else 0
    return int(chunk.num_values - nulls)


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with dictionaries as plain columns, and with no views of texts.

    Arrow takes no single rows of views, which a file may ask for by the Arrow schema in its footer.
    """
    arrays, fields = batch.columns, list(batch.schema)
    for i, column in enumerate(arrays):
        if isinstance(column, pa.DictionaryArray):
            column = column.dictionary_decode()
        type_ = takable_type(column.type)
        if column.type != type_:
            column = column.cast(type_)
        if column.type != fields[i].type:
            arrays[i], fields[i] = column, fields[i].with_type(column.type)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _work(chunk: pq.ColumnChunkMetaData) -> int:
    """Return the work to decode a column chunk, about one nanosecond each."""
    value = _TEXT_WORK if chunk.physical_type == "BYTE_ARRAY" else _VALUE_WORK
    return int(chunk.total_uncompressed_size + value * chunk.num_values)


def _bytes_of(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Return the offsets of a column chunk's start and end in its file."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    return start, start + chunk.total_compressed_size


def _is_worthwhile(late: LateColumns, group: pq.RowGroupMetaData) -> bool:
    """Return whether the late columns are much larger than the first."""
    sizes = [sum(group.column(c).total_uncompressed_size for c in cs) for cs in late.columns]
    first = sum(size for i, size in enumerate(sizes) if i in late.first)
    return bool(sum(sizes) >= LATE_FACTOR * first)


def _held_bytes(group: pq.RowGroupMetaData, leaves: Iterable[int]) -> int:
    """Return about the bytes that Arrow holds while it reads columns of a row group."""
    sizes = (group.column(c).total_uncompressed_size for c in leaves)
    return sum(min(size, _PAGE_BYTES) + _CODEC_BYTES for size in sizes)


def _buffer_bytes(columns: int) -> int:
    """Return the size of the buffer of each column: all together as whole chunks at most, or so."""
    return max(_LEAST_BUFFER_BYTES, min(_STREAM_BUFFER_BYTES, _WHOLE_CHUNKS_BYTES // columns))


def _batch_rows(
    metadata: pq.FileMetaData,
    groups: list[pq.RowGroupMetaData],
    columns: list[int],
    most_rows: int,
) -> int:
    """Return the number of rows per batch: few for wide rows, judged by the widest row group."""
    widths = [_width(metadata.schema.column(c)) for c in columns]
    row_bytes = max(
        sum(_decoded_bytes(group.column(c), w) for c, w in zip(columns, widths, strict=True))
        / group.num_rows
        for group in groups
    )
    return max(_LEAST_ROWS, min(most_rows, int(_BATCH_BYTES / max(row_bytes, 1))))


_WIDTHS = {"BOOLEAN": 0.125, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8}


def _width(leaf: pq.ColumnSchema) -> float | None:
    """Return the bytes of a value in memory, or None for texts and bytes."""
    if leaf.converted_type == "DECIMAL":
        return 16
    return leaf.length if leaf.length > 0 else _WIDTHS.get(leaf.physical_type)


def _decoded_bytes(chunk: pq.ColumnChunkMetaData, width: float | None) -> float:
    """Return about the bytes of a column chunk in memory, which has dictionaries spelled out."""
    size = float(chunk.total_uncompressed_size)
    if width is None:
        # asked for the statistics of a damaged chunk of another type, Arrow ends the process
        is_text = chunk.has_dictionary_page and chunk.physical_type == "BYTE_ARRAY"
        statistics = chunk.statistics if is_text else None
        if statistics is None or not statistics.has_min_max:
            return size
        width = 4 + (len(statistics.min_raw) + len(statistics.max_raw)) / 2
    return max(size, float(chunk.num_values * width))


def empty_batch(rows: int) -> pa.RecordBatch:
    """Return a batch with rows but without columns."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))
