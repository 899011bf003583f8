"""Finds table metadata that this process already holds, by the location of its file.

Metadata files never change (specification, "Overview"), so a file need not be read again while some
table holds its metadata. This applies to file names with a UUID, which are unique: a
`v1.metadata.json` may belong to another table later. Entries are weak: they end with the last table
that holds them.
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
        """The metadata of a file."""
        metadata = self._by_location.get(location)
        if metadata is None:
            metadata = read()
            self.add(location, metadata)
        return metadata

    def add(self, location: str, metadata: TableMetadata) -> None:
        """Know what a file says that is in the table."""
        if _UNIQUE.search(location):
            self._by_location[location] = metadata
