"""The interface of catalogs with views, which share the namespaces of tables.

A view and a table cannot have the same name. Commits are those of the REST catalog, as for tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from iceberg_pyspark.catalogs.catalog import Namespace, TableIdentifier
from iceberg_pyspark.commits.outcomes import Outcome
from iceberg_pyspark.commits.view_changes import AssertViewUUID, ViewUpdate
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

    def list_views(self, namespace: Namespace) -> list[TableIdentifier]:
        """Views directly in a namespace; raises `NoSuchNamespaceError`."""
        ...

    def view_exists(self, identifier: TableIdentifier) -> bool:
        """Whether the view is there."""
        ...

    def load_view(self, identifier: TableIdentifier) -> LoadedView:
        """Raises `NoSuchViewError`."""
        ...

    def default_view_location(self, identifier: TableIdentifier) -> str:
        """Where a new view of that name goes when no location is given."""
        ...

    def create_view(self, identifier: TableIdentifier, metadata: ViewMetadata) -> LoadedView:
        """Publish the first metadata of a new view.

        Raises `ViewAlreadyExistsError` where a view or table has the name,
        `CommitStateUnknownError` where the view may be there.
        """
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
        """Forget the view; its files stay. Raises `NoSuchViewError`."""
        ...

    def rename_view(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Raises `NoSuchViewError`, `ViewAlreadyExistsError`, `NoSuchNamespaceError`."""
        ...
