"""The common part of the catalogs that commit without a REST server.

A commit has two parts. The first part prepares the commit; every `IcebergError` there means
`Refused`, because nothing has been changed yet. Only the second part, the swap (`pointer_swap.py`,
`hadoop/folder_versions.py`), knows the outcome. For a REST catalog, the server does all this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.catalog_properties import CatalogProperties, storage_properties
from iceberg_pyspark.catalogs.pointer_swap import next_metadata
from iceberg_pyspark.changes.outcomes import Outcome, Refused
from iceberg_pyspark.changes.requirements import AssertCreate, TableRequirement
from iceberg_pyspark.changes.updates import TableUpdate
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.open_storage import open_storage

Swap: TypeAlias = Callable[[], Outcome[LoadedTable]]
"""The second part of a commit: writes the metadata file and swaps the pointer."""


@checked_methods
class CommittingCatalog(ABC):
    """A catalog that creates and commits tables itself.

    If `io` is None, the location of each file decides which storage is used.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        checked_methods(cls)

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
        """The catalog's configuration, storage properties included."""
        return self._properties

    def create_table(self, identifier: TableIdentifier, metadata: TableMetadata) -> LoadedTable:
        """Publish the first metadata of a new table; raise `TableAlreadyExistsError`."""
        return self._prepare_create(identifier, metadata)().result()

    def commit_table(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
        *,
        base: LoadedTable | None = None,
    ) -> Outcome[LoadedTable]:
        """Check the requirements on the current metadata, apply the updates, swap the pointer."""
        try:
            if AssertCreate() in requirements and not self.table_exists(identifier):
                metadata = next_metadata(None, None, requirements, updates)
                swap = self._prepare_create(identifier, metadata)
            else:
                swap = self._prepare_commit(identifier, requirements, updates, base)
        except IcebergError as e:
            return Refused(e)
        return swap()

    def _loaded_table(
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
        """Return whether the table exists."""

    @abstractmethod
    def _prepare_create(self, identifier: TableIdentifier, metadata: TableMetadata) -> Swap:
        """Prepare a create; raise an `IcebergError` if the table cannot be created."""

    @abstractmethod
    def _prepare_commit(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
        base: LoadedTable | None,
    ) -> Swap:
        """Prepare a commit; raise an `IcebergError` if the table cannot be loaded."""

    def _storage(self, location: str) -> FileIO:
        return self._io if self._io is not None else open_storage(location, self._config)
