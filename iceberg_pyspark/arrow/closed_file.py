"""What a format's writer says of a file once it is written."""

from __future__ import annotations

from dataclasses import dataclass

from iceberg_pyspark.arrow.metrics import FileMetrics


@dataclass(frozen=True, slots=True)
class ClosedFile:
    """A written file: how long it is, and what its manifest entry says of its columns."""

    file_size_in_bytes: int
    metrics: FileMetrics
