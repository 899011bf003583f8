"""The state that the steps of one read share, so that all see the same snapshot and schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from iceberg_pyspark.spec.table_metadata import metadata_to_bytes

if TYPE_CHECKING:
    from iceberg_pyspark.catalogs.catalog import LoadedTable


@dataclass(frozen=True)
class PinnedTable:
    """The metadata file that a DataFrame saw when it was loaded; later steps need no catalog.

    The exceptions are a scan that only the catalog's server may plan, and reports of scans.
    Metadata that is not a file in the table's store, which only the catalog could read again, is
    itself part of the state, as JSON.
    """

    namespace: tuple[str, ...]
    name: str
    metadata_location: str
    config: dict[str, str] = field(repr=False)
    metadata_table: str | None = None
    """The metadata table that is read; None for the table itself."""
    planned_by_server: bool = False
    """Whether each step that plans must ask the catalog's server to plan."""
    metadata: str | None = field(default=None, repr=False)
    store_location: str | None = None
    reports_scans: bool = False
    """Whether the catalog's server wants a report of each scan."""

    @classmethod
    def of(cls, loaded_table: LoadedTable, metadata_table: str | None = None) -> PinnedTable:
        """Return the state for the next step."""
        return cls(
            loaded_table.identifier.namespace,
            loaded_table.identifier.name,
            loaded_table.metadata_location,
            dict(loaded_table.config),
            metadata_table,
            loaded_table.plan_scan is not None and metadata_table is None,
            None
            if loaded_table.store_location is None
            else metadata_to_bytes(loaded_table.metadata).decode(),
            loaded_table.store_location,
            loaded_table.report_scan is not None and metadata_table is None,
        )

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> PinnedTable:
        """Return the pinned table from the JSON of its `dataclasses.asdict`."""
        return cls(**{**state, "namespace": tuple(state["namespace"])})
