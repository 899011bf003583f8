"""A cache of the table metadata that this process already holds, by metadata location.

Metadata files never change (specification, "Overview"), so a file need not be read again while some
table holds its metadata. This applies only to file names with a UUID, which are unique: a
`v1.metadata.json` may later belong to another table. The references are weak: an entry ends with
the last table that holds the metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from iceberg_pyspark.spec.table_metadata import TableMetadata

_UNIQUE = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[^/]*$")


class KnownMetadata:
    """The known metadata of one catalog's tables; shared by threads, and empty after pickling."""

    def __init__(self) -> None:
        self._by_location: WeakValueDictionary[str, TableMetadata] = WeakValueDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        return KnownMetadata, ()

    def get_or_read(self, location: str, read: Callable[[], TableMetadata]) -> TableMetadata:
        """Return the metadata of a file, by calling `read` if the metadata is not known."""
        metadata = self._by_location.get(location)
        if metadata is None:
            metadata = read()
            self.add(location, metadata)
        return metadata

    def add(self, location: str, metadata: TableMetadata) -> None:
        """Remember the metadata of a table's file, if the file name is unique."""
        if _UNIQUE.search(location):
            self._by_location[location] = metadata
