"""How a data file in the making ends: closed, with what its writer says of it, or given up."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import BinaryIO

from iceberg_pyspark.arrow.metrics.column_metrics import FileMetrics
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.file_io import FileIO


@dataclass(frozen=True, slots=True)
class ClosedFile:
    """A written file: how long it is, and what its manifest entry says of its columns."""

    file_size_in_bytes: int
    metrics: FileMetrics


def give_up(stream: BinaryIO, io: FileIO, location: str) -> None:
    """Remove what exists of a file; no error of that hides the failure that led here."""
    with contextlib.suppress(StorageError, OSError, ValueError):
        stream.close()
    with contextlib.suppress(StorageError):
        # a file left over is an orphan, not a fault
        io.delete(location)
