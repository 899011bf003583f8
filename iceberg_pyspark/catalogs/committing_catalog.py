"""The common part of catalogs that commit themselves, however they find a table's metadata.

A commit has two parts. In the first, which prepares it, every `IcebergError` means `Refused`,
because nothing has been changed yet. The outcome of the second part is known only to the swap
(`pointer_swap.py`, `hadoop/tables.py`). For a REST catalog, the server does all this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.pointer_swap import next_metadata
from iceberg_pyspark.catalogs.properties import CatalogProperties, storage_properties
from iceberg_pyspark.commits.outcomes import Outcome, Refused
from iceberg_pyspark.commits.requirements import AssertCreate, TableRequirement
from iceberg_pyspark.commits.updates import TableUpdate
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.open_storage import open_storage

Swap: TypeAlias = Callable[[], Outcome[LoadedTable]]
"""The second half of a commit: writes the metadata file and swaps."""


class CommittingCatalog(ABC):
    """Creates and commits tables; `io` None: storage is chosen by location."""

    def __init__(self, name: str, properties: Mapping[str, str], io: FileIO | None) -> None:
        self._name = name
        self._properties = CatalogProperties(properties)
        self._config = storage_properties(properties)
        self._io = io

    @property
    def name(self) -> str:
        """The name the catalog was configured under."""
        return self._name

    @property
    def properties(self) -> CatalogProperties:
        """Its configuration, storage properties included."""
        return self._properties

    def create_table(self, identifier: TableIdentifier, metadata: TableMetadata) -> LoadedTable:
        """Publish the first metadata of a new table; raises `TableAlreadyExistsError`."""
        return self._prepare_create(identifier, metadata)().result()

    def commit_table(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
        *,
        base: LoadedTable | None = None,
    ) -> Outcome[LoadedTable]:
        """Check the requirements on the current metadata, apply the updates, swap."""
        try:
            if AssertCreate() in requirements and not self.table_exists(identifier):
                metadata = next_metadata(None, None, requirements, updates)
                swap = self._prepare_create(identifier, metadata)
            else:
                swap = self._prepare_commit(identifier, requirements, updates, base)
        except IcebergError as e:
            return Refused(e)
        return swap()

    def _loaded(
        self, identifier: TableIdentifier, location: str, metadata: TableMetadata
    ) -> LoadedTable:
        return LoadedTable(
            identifier=identifier,
            metadata=metadata,
            metadata_location=location,
            config=self._config,
        )

    @abstractmethod
    def table_exists(self, identifier: TableIdentifier) -> bool:
        """Whether the table is there."""

    @abstractmethod
    def _prepare_create(self, identifier: TableIdentifier, metadata: TableMetadata) -> Swap:
        """Raises an `IcebergError` where the table cannot be created."""

    @abstractmethod
    def _prepare_commit(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
        base: LoadedTable | None,
    ) -> Swap:
        """Raises an `IcebergError` where the table cannot be loaded."""

    def _storage(self, location: str) -> FileIO:
        return self._io if self._io is not None else open_storage(location, self._config)
