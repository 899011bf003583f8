"""Metadata that somebody in this process holds, by the location of its file, to be not read again.

A file of metadata never changes (specification, "Overview"), so whoever asks for the one that a
table is at already has what it says. That holds for names with a UUID, which nobody gives twice: a
`v1.metadata.json` may be another table's by now. Nothing is kept for that: an entry goes with the
last table that has the metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from iceberg_pyspark.spec.table_metadata import TableMetadata

_UNIQUE = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[^/]*$")


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
        if _UNIQUE.search(location):
            self._by_location[location] = metadata
