"""The interfaces of the readers and the writers of data files, for every format."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, ClassVar, Protocol, TypeVar

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import child_fields
from iceberg_pyspark.arrow.column_metrics import FileMetrics
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.storage.files.file_io import FileIO


@dataclass(frozen=True, slots=True, kw_only=True)
class LateColumns:
    """Columns that are read only where columns before them have wanted rows.

    `columns` has the leaves of each top-level column to read, in file order; those with a position
    in `first` are read first. `wanted` is called with the position of each batch of them and the
    batch; it returns the first wanted row in it and the end of the last one, or None.
    """

    columns: Sequence[Sequence[int]]
    first: Collection[int]
    wanted: Callable[[int, pa.RecordBatch], tuple[int, int] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupChoice:
    """The row groups of a Parquet file to read; files of other formats are read whole.

    A row group is read if it begins in the byte range [start, start + length) and the statistics of
    the columns in `leaf_by_id` do not rule out `predicate`. With `with_dictionaries`, columns of
    texts and bytes may come as dictionaries, of which rows are taken faster. With `late`, rows that
    are not wanted may be left out. `is_stream`: memory matters more than time.
    """

    start: int = 0
    length: int | None = None
    predicate: Predicate = field(default_factory=AlwaysTrue)
    leaf_by_id: Mapping[int, int] = field(default_factory=dict)
    with_dictionaries: bool = False
    late: LateColumns | None = None
    is_stream: bool = True


ALL_ROW_GROUPS = RowGroupChoice()
Self = TypeVar("Self", bound="DataFileReader")


class DataFileReader(ABC):
    """An open data file, as a context manager; `schema` has the field ids as Parquet metadata."""

    reads_whole_columns: ClassVar[bool]
    """Whether a selected leaf is read together with all leaves of its top-level column."""

    schema: pa.Schema

    def __init__(self, file_io: FileIO, location: str) -> None:
        self._location = location
        self._stream = file_io.open_input(location)
        try:
            self._open()
        except BaseException:
            self._stream.close()
            raise

    @abstractmethod
    def _open(self) -> None:
        """Read the file's own metadata and set `schema`."""

    @abstractmethod
    def batches(
        self, leaves: Collection[int], choice: RowGroupChoice = ALL_ROW_GROUPS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of the selected leaves, each with the file position of its first row.

        Without leaves, the batches have no columns but the right number of rows.
        """

    def _leaves_of_columns(self) -> list[range]:
        """Return the leaves of each top-level column."""
        leaves, first = [], 0
        for column in self.schema:
            leaves.append(range(first, first + _leaf_count(column.type)))
            first = leaves[-1].stop
        return leaves

    def _columns_of(self, leaves: Collection[int]) -> list[int]:
        """Return the positions of the top-level columns that have one of the leaves."""
        return [
            i
            for i, column in enumerate(self._leaves_of_columns())
            if any(leaf in leaves for leaf in column)
        ]

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _leaf_count(type_: pa.DataType) -> int:
    if isinstance(type_, pa.BaseExtensionType):
        return _leaf_count(type_.storage_type)
    nested = pa.types.is_struct(type_) or bool(child_fields(type_))
    return sum(_leaf_count(f.type) for f in child_fields(type_)) if nested else 1


@dataclass(frozen=True, slots=True)
class ClosedFile:
    """A written file: its size in bytes, and the column metrics and key for its manifest entry."""

    file_size_in_bytes: int
    metrics: FileMetrics
    key_metadata: bytes | None = field(default=None, repr=False)


class DataFileWriter(Protocol):
    """An open file with rows of one schema; end it with `close` or `abort`."""

    @property
    def written_bytes(self) -> int:
        """The length of the file so far in bytes, exact or estimated."""
        ...

    def write(self, rows: pa.Table) -> None:
        """Write rows that have `stored_arrow_schema`; in Parquet, the rows become one row group."""
        ...

    def close(self) -> ClosedFile:
        """Publish the file and return its size and metrics."""
        ...

    def abort(self) -> None:
        """Close the file without publishing it, and remove its remains."""
        ...


def discard_file(stream: BinaryIO, io: FileIO, location: str) -> None:
    """Close and remove an unfinished file; new errors do not hide the original error."""
    discard = getattr(stream, "discard", None)
    if discard is not None:
        # closing the stream would publish the unfinished file
        with contextlib.suppress(StorageError):
            discard()
        return
    with contextlib.suppress(StorageError, OSError, ValueError):
        stream.close()
    with contextlib.suppress(StorageError):
        # a file that stays is an orphan, which does no harm
        io.delete(location)
