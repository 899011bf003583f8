"""Changes table properties. Specification, "Table Metadata"; the reserved names are Java's.

Reserved names are refused, except `format-version`: setting it upgrades the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from iceberg_pyspark.changes.changes import Changes
from iceberg_pyspark.changes.requirements import same_table
from iceberg_pyspark.changes.updates import (
    RemoveProperties,
    SetProperties,
    TableUpdate,
    UpgradeFormatVersion,
)
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import (
    DEFAULT_FORMAT_VERSION,
    FORMAT_VERSION,
    RESERVED_PROPERTIES,
    check_set_properties,
    int_property,
)

Self = TypeVar("Self", bound="PropertyChanges")


@checked_methods
class PropertyChanges:
    """Changes of table properties, collected by `set` and `remove`."""

    def __init__(self) -> None:
        self._updates: dict[str, str] = {}
        self._removals: set[str] = set()

    def set(self: Self, updates: Mapping[str, str]) -> Self:
        """Set these properties; refuse an invalid value of a known property."""
        check_set_properties(updates)
        for name, value in updates.items():
            _check_name(name, self._removals)
            self._updates[name] = value
        return self

    def remove(self: Self, *names: str) -> Self:
        """Remove these properties; a name that is not set is not an error."""
        for name in names:
            _check_name(name, self._updates)
            if name == FORMAT_VERSION:
                raise InvalidRequestError(
                    f"property '{name}' is reserved and cannot be removed; leave it out"
                )
            self._removals.add(name)
        return self

    def changes(self, metadata: TableMetadata) -> Changes:
        """Return the updates of this metadata; the last writer wins, but only in the same table."""
        updates: list[TableUpdate] = []
        if FORMAT_VERSION in self._updates:
            version = int_property(self._updates, FORMAT_VERSION, DEFAULT_FORMAT_VERSION)
            updates.append(UpgradeFormatVersion(version))
        values = {k: v for k, v in self._updates.items() if k != FORMAT_VERSION}
        if values:
            updates.append(SetProperties(values))
        if self._removals:
            updates.append(RemoveProperties(tuple(sorted(self._removals))))
        requirements = same_table(metadata.table_uuid) if updates else ()
        return Changes(updates=tuple(updates), requirements=requirements)


def _check_name(name: str, others: Mapping[str, str] | set[str]) -> None:
    if name in RESERVED_PROPERTIES and name != FORMAT_VERSION:
        raise InvalidRequestError(
            f"property '{name}' is reserved: it cannot be set or removed; leave it out"
        )
    if name in others:
        raise InvalidRequestError(f"property '{name}' is both set and removed; do one of them")
