"""Views of the catalogs that store a pointer to each view's metadata file.

The steps around the swap are the same as for tables (`committing_catalog.py`), except for files: a
view has no metadata log, and none of its files is deleted.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence

from iceberg_pyspark.catalogs.catalog import LoadedView, TableIdentifier, check_identifier
from iceberg_pyspark.catalogs.committing_catalog import (
    first_metadata_location,
    next_metadata_location,
    swap_pointer,
)
from iceberg_pyspark.catalogs.metastore_catalog import MetastoreCatalog
from iceberg_pyspark.catalogs.outcome_search import Pointers
from iceberg_pyspark.changes.outcomes import Done, Outcome, Refused, unknown
from iceberg_pyspark.changes.view_changes import (
    AssertViewUUID,
    ViewUpdate,
    apply_view_updates,
    check_view_requirement,
)
from iceberg_pyspark.errors import (
    CommitConflictError,
    IcebergError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from iceberg_pyspark.formats.metadata_files import create_own_metadata, read_view_metadata
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.views import ViewMetadata

_log = get_logger(__name__)


class MetastoreViewCatalog(MetastoreCatalog):
    """A catalog that stores pointers to tables and views, which share one set of names."""

    @abstractmethod
    def _view_pointer(self, identifier: TableIdentifier) -> str | None:
        """Return the location of a view's metadata file, or None if there is no such view."""

    @abstractmethod
    def _publish_view(self, view: LoadedView) -> Outcome[None]:
        """Store a view's first pointer.

        Return `Refused` if a view or a table already has the name.
        """

    @abstractmethod
    def _swap_view(self, base: LoadedView, new_view: LoadedView) -> Outcome[None]:
        """Replace a pointer; `Refused` with `self._view_conflict` if it is not `base`'s."""

    def _view_outcome(
        self, identifier: TableIdentifier, new: str, cause: BaseException
    ) -> Outcome[None]:
        """Find out the outcome of a swap that was sent but not answered.

        View metadata has no log of earlier files, so a pointer to a third file proves nothing.
        """
        try:
            if self._view_pointer(identifier) == new:
                return Done(None)
        except Exception as e:  # noqa: BLE001 - whatever keeps us from looking
            _log.info("could not look at view %s: %s", identifier, e)
        return unknown(f"view {identifier}", cause)

    @abstractmethod
    def _delete_view_pointer(self, identifier: TableIdentifier) -> bool:
        """Delete a pointer; return whether the pointer existed, as `_delete_pointer` does."""

    @abstractmethod
    def _rename_view_pointer(self, source: TableIdentifier, target: TableIdentifier) -> bool:
        """Rename a pointer; return whether the pointer existed.

        Raise `self._view_already_exists` if the target has a pointer, and the errors of
        `_delete_pointer`.
        """

    def view_exists(self, identifier: TableIdentifier) -> bool:
        """Return whether the view exists."""
        return self._view_pointer(identifier) is not None

    def load_view(self, identifier: TableIdentifier) -> LoadedView:
        """Load the view's current metadata; raise `NoSuchViewError` if there is no such view."""
        location = self._view_pointer(identifier)
        if location is None:
            raise self._no_such_view(identifier)
        return self._loaded_view(identifier, location, self._read_view(location))

    def default_view_location(self, identifier: TableIdentifier) -> str:
        """Return the location of a new view of this name if the user specifies no location."""
        return self.default_table_location(identifier)

    def create_view(self, identifier: TableIdentifier, metadata: ViewMetadata) -> LoadedView:
        """Publish the first metadata of a new view; raise `ViewAlreadyExistsError`."""
        self._require_free_for_view(identifier)
        io = self._storage(metadata.location)
        location = first_metadata_location(metadata, self._config)
        create_own_metadata(io, metadata, location)
        view = self._loaded_view(identifier, location, metadata)
        return swap_pointer(io, view, lambda: self._publish_view(view)).result()

    def register_view(self, identifier: TableIdentifier, metadata_location: str) -> LoadedView:
        """Register an existing metadata file as a view; raise `ViewAlreadyExistsError`."""
        self._require_free_for_view(identifier)
        view = self._loaded_view(identifier, metadata_location, self._read_view(metadata_location))
        self._publish_view(view).result()
        return view

    def commit_view(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[AssertViewUUID],
        updates: Sequence[ViewUpdate],
    ) -> Outcome[LoadedView]:
        """Check the requirements on the current metadata, apply the updates, swap the pointer."""
        try:
            current = self.load_view(identifier)
            for requirement in requirements:
                check_view_requirement(requirement, current.metadata)
            now_ms = time.time_ns() // 1_000_000
            metadata = apply_view_updates(current.metadata, updates, now_ms=now_ms)
            if metadata is current.metadata:
                return Done(current)
            io = self._storage(current.metadata.location)
            location = next_metadata_location(current, metadata)
            create_own_metadata(io, metadata, location)
        except IcebergError as e:
            return Refused(e)
        new_view = self._loaded_view(identifier, location, metadata)
        return swap_pointer(io, new_view, lambda: self._swap_view(current, new_view))

    def drop_view(self, identifier: TableIdentifier) -> None:
        """Remove the view from the catalog and keep its files; raise `NoSuchViewError`."""
        location = self._view_pointers.before_change(identifier)
        if location is None:
            raise self._no_such_view(identifier)
        if self._view_pointers.drop(identifier, location, self._delete_view_pointer) is False:
            raise self._no_such_view(identifier)

    def rename_view(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Rename a view.

        Raise `NoSuchViewError`, `ViewAlreadyExistsError` or `NoSuchNamespaceError`.
        """
        check_identifier(target)
        location = self._view_pointers.before_change(source)
        if location is None:
            raise self._no_such_view(source)
        self._require_free_for_view(target)
        if not self._view_pointers.rename(source, target, location, self._rename_view_pointer):
            raise self._no_such_view(source)

    @property
    def _view_pointers(self) -> Pointers:
        return Pointers("view", self._view_pointer, lambda file: self._read_view(file).view_uuid)

    def _loaded_view(
        self, identifier: TableIdentifier, location: str, metadata: ViewMetadata
    ) -> LoadedView:
        return LoadedView(
            identifier=identifier,
            metadata=metadata,
            metadata_location=location,
            config=self._config,
        )

    def _read_view(self, location: str) -> ViewMetadata:
        return read_view_metadata(self._storage(location), location)

    def _require_free(self, identifier: TableIdentifier) -> None:
        super()._require_free(identifier)
        if self.view_exists(identifier):
            raise TableAlreadyExistsError(
                f"{identifier} is a view in catalog '{self._name}', and no table can have its name"
            )

    def _require_free_for_view(self, identifier: TableIdentifier) -> None:
        check_identifier(identifier)
        self._require_namespace(identifier.namespace)
        if self.view_exists(identifier) or self.table_exists(identifier):
            raise self._view_already_exists(identifier)

    def _view_already_exists(self, identifier: TableIdentifier) -> ViewAlreadyExistsError:
        return ViewAlreadyExistsError(
            f"view or table {identifier} is already in catalog '{self._name}'"
        )

    def _view_conflict(self, identifier: TableIdentifier) -> CommitConflictError:
        return CommitConflictError(
            f"view {identifier} was changed by another commit; refresh and retry"
        )

    def _no_such_view(self, identifier: TableIdentifier) -> NoSuchViewError:
        return NoSuchViewError(f"view {identifier} is not in catalog '{self._name}'")
