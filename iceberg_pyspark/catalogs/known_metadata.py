"""Metadata that somebody in this process holds, by the location of its file, to be not read again.

A file of metadata never changes (specification, "Overview"), so whoever asks for the one that a
table is at already has what it says. Nothing is kept for that: an entry goes with the last table
that has the metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from iceberg_pyspark.spec.table_metadata import TableMetadata


class KnownMetadata:
    """Of the tables of one catalog; threads share it, and where a catalog is sent it is empty."""

    def __init__(self) -> None:
        self._by_location: WeakValueDictionary[str, TableMetadata] = WeakValueDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        return KnownMetadata, ()

    def get_or_read(self, location: str, read: Callable[[], TableMetadata]) -> TableMetadata:
        """What the file says."""
        metadata = self._by_location.get(location)
        if metadata is None:
            metadata = read()
            self.add(location, metadata)
        return metadata

    def add(self, location: str, metadata: TableMetadata) -> None:
        """Know what a file says that is in the table."""
        self._by_location[location] = metadata
