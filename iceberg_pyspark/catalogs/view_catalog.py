"""The interface of catalogs with views, which share the namespaces of tables.

A view and a table cannot have the same name. A commit consists of requirements and updates, as for
tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from iceberg_pyspark.catalogs.catalog import Namespace, TableIdentifier
from iceberg_pyspark.changes.outcomes import Outcome
from iceberg_pyspark.changes.view_changes import AssertViewUUID, ViewUpdate
from iceberg_pyspark.spec.views import ViewMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedView:
    """A view as the catalog knows it at one moment; `config` as in `LoadedTable`."""

    identifier: TableIdentifier
    metadata: ViewMetadata
    metadata_location: str
    config: Mapping[str, str] = field(default_factory=dict, repr=False)


@runtime_checkable
class ViewCatalog(Protocol):
    """The operations of a catalog that has views."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the catalog, as `Catalog.properties`."""
        ...

    def list_views(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the views directly in a namespace; raise `NoSuchNamespaceError`."""
        ...

    def view_exists(self, identifier: TableIdentifier) -> bool:
        """Return whether the view exists."""
        ...

    def load_view(self, identifier: TableIdentifier) -> LoadedView:
        """Load the view's current metadata; raise `NoSuchViewError` if there is no such view."""
        ...

    def default_view_location(self, identifier: TableIdentifier) -> str:
        """Return the location of a new view of this name if the user specifies no location.

        A catalog that asks a server raises `ViewAlreadyExistsError` if a view or table has the
        name.
        """
        ...

    def create_view(self, identifier: TableIdentifier, metadata: ViewMetadata) -> LoadedView:
        """Publish the first metadata of a new view.

        Raise `ViewAlreadyExistsError` if a view or table has the name, or `CommitStateUnknownError`
        if the view may exist now.
        """
        ...

    def register_view(self, identifier: TableIdentifier, metadata_location: str) -> LoadedView:
        """Register an existing metadata file as a view; errors as for `create_view`."""
        ...

    def commit_view(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[AssertViewUUID],
        updates: Sequence[ViewUpdate],
    ) -> Outcome[LoadedView]:
        """Check the requirements on the current metadata, apply the updates, swap the pointer."""
        ...

    def drop_view(self, identifier: TableIdentifier) -> None:
        """Remove the view from the catalog and keep its files; raise `NoSuchViewError`."""
        ...

    def rename_view(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Rename a view.

        Raise `NoSuchViewError`, `ViewAlreadyExistsError` or `NoSuchNamespaceError`.
        """
        ...
