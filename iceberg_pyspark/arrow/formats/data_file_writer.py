"""The interface of data file writers: rows in, a closed file with metrics out."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import pyarrow as pa

from iceberg_pyspark.arrow.metrics.column_metrics import FileMetrics
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.files.file_io import FileIO


@dataclass(frozen=True, slots=True)
class ClosedFile:
    """A written file: its size in bytes, and the column metrics for its manifest entry."""

    file_size_in_bytes: int
    metrics: FileMetrics


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
