"""Holds the table metadata under construction in a commit. `apply.py` applies the updates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.table_metadata import TableMetadata

NO_ID = -1
UNSET_VERSION = 0
FIRST_PARTITION_ID = 1000


@dataclass(slots=True)
class MetadataBuilder:
    """The metadata after the updates applied so far, and the ids of the parts that they added."""

    metadata: TableMetadata
    now_ms: int
    last_added_schema_id: int | None = None
    last_added_spec_id: int | None = None
    last_added_order_id: int | None = None
    added_snapshot_ids: set[int] = field(default_factory=set)

    @property
    def format_version(self) -> int:
        """The format version; raises `InvalidRequestError` if a new table has none yet."""
        version = self.metadata.format_version
        if version == UNSET_VERSION:
            raise InvalidRequestError("a new table needs its format version before anything else")
        return version

    def change(self, **fields: Any) -> None:
        """Set fields of the metadata; the metadata object stays the same if no value changes."""
        if any(getattr(self.metadata, name) != value for name, value in fields.items()):
            self.metadata = replace(self.metadata, **fields)


def empty_metadata(now_ms: int) -> TableMetadata:
    """Return the empty metadata to which the updates that create a table are applied."""
    return TableMetadata(
        format_version=UNSET_VERSION,
        table_uuid=None,
        location="",
        last_updated_ms=now_ms,
        last_column_id=0,
        schemas=(),
        current_schema_id=NO_ID,
        partition_specs=(),
        default_spec_id=NO_ID,
        last_partition_id=FIRST_PARTITION_ID - 1,
        sort_orders=(),
        default_sort_order_id=NO_ID,
    )
