"""Changes the location of a table, which applies to new files only."""

from __future__ import annotations

from typing import TypeVar

from iceberg_pyspark.commits.changes import Changes
from iceberg_pyspark.commits.requirements import same_table
from iceberg_pyspark.commits.updates import SetLocation
from iceberg_pyspark.spec.table_metadata import TableMetadata

Self = TypeVar("Self", bound="LocationChanges")


class LocationChanges:
    """A new location of a table; without `set_location` the table stays where it is."""

    def __init__(self) -> None:
        self._location: str | None = None

    def set_location(self: Self, location: str) -> Self:
        """Write new files below this folder."""
        self._location = location
        return self

    def changes(self, metadata: TableMetadata) -> Changes:
        """Return the updates of this metadata; the last writer wins, but only in the same table."""
        if self._location is None or self._location == metadata.location:
            return Changes()
        return Changes(
            updates=(SetLocation(self._location),), requirements=same_table(metadata.table_uuid)
        )
