"""Views of catalogs that store a pointer to each view's metadata file.

The steps around the swap are those of tables (`pointer_swap.py`), except for files: a view has no
metadata log, and none of its files is deleted.
"""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from collections.abc import Sequence

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.identifiers import check_identifier
from iceberg_pyspark.catalogs.metastore_catalog import MetastoreCatalog
from iceberg_pyspark.catalogs.pointer_swap import (
    first_metadata_location,
    next_metadata_location,
    swap_pointer,
)
from iceberg_pyspark.catalogs.view_catalog import LoadedView
from iceberg_pyspark.commits.outcomes import Done, Outcome, Refused, unknown
from iceberg_pyspark.commits.view_changes import (
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
from iceberg_pyspark.spec.views import ViewMetadata
from iceberg_pyspark.storage.metadata_files import create_own_metadata, read_view_metadata

_log = logging.getLogger(__name__)


class MetastoreViewCatalog(MetastoreCatalog):
    """Tables and views by their pointers; no view has the name of a table."""

    @abstractmethod
    def _view_pointer(self, identifier: TableIdentifier) -> str | None:
        """The location of a view's current metadata file; None: there is no such view."""

    @abstractmethod
    def _publish_view(self, view: LoadedView) -> Outcome[None]:
        """Give a view its first pointer; refused where the name has one, be it a table's."""

    @abstractmethod
    def _swap_view(self, base: LoadedView, committed: LoadedView) -> Outcome[None]:
        """Replace a pointer; refused with `self._view_conflict` where it is not `base`'s."""

    def _view_outcome(
        self, identifier: TableIdentifier, new: str, cause: BaseException
    ) -> Outcome[None]:
        """The outcome of a swap that was sent and not answered.

        A view has no log of its files, so that a pointer that has moved on tells nothing.
        """
        try:
            if self._view_pointer(identifier) == new:
                return Done(None)
        except Exception as e:  # noqa: BLE001 - whatever keeps us from looking
            _log.info("could not look at view %s: %s", identifier, e)
        return unknown(f"view {identifier}", cause)

    @abstractmethod
    def _delete_view_pointer(self, identifier: TableIdentifier) -> bool:
        """Whether there was one."""

    @abstractmethod
    def _rename_view_pointer(self, source: TableIdentifier, target: TableIdentifier) -> bool:
        """Whether there was one; raises `self._view_already_exists` where the target has one."""

    def view_exists(self, identifier: TableIdentifier) -> bool:
        """Whether the view is there."""
        return self._view_pointer(identifier) is not None

    def load_view(self, identifier: TableIdentifier) -> LoadedView:
        """Raises `NoSuchViewError`."""
        location = self._view_pointer(identifier)
        if location is None:
            raise self._no_such_view(identifier)
        return LoadedView(
            identifier=identifier,
            metadata=read_view_metadata(self._storage(location), location),
            metadata_location=location,
            config=self._config,
        )

    def default_view_location(self, identifier: TableIdentifier) -> str:
        """Where a new view of that name goes when no location is given."""
        return self.default_table_location(identifier)

    def create_view(self, identifier: TableIdentifier, metadata: ViewMetadata) -> LoadedView:
        """Publish the first metadata of a new view; raises `ViewAlreadyExistsError`."""
        self._require_free_for_view(identifier)
        io = self._storage(metadata.location)
        location = first_metadata_location(metadata, self._config)
        create_own_metadata(io, metadata, location)
        view = LoadedView(
            identifier=identifier,
            metadata=metadata,
            metadata_location=location,
            config=self._config,
        )
        return swap_pointer(io, view, lambda: self._publish_view(view)).result()

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
        committed = LoadedView(
            identifier=identifier,
            metadata=metadata,
            metadata_location=location,
            config=current.config,
        )
        return swap_pointer(io, committed, lambda: self._swap_view(current, committed))

    def drop_view(self, identifier: TableIdentifier) -> None:
        """Forget the view; its files stay. Raises `NoSuchViewError`."""
        if not self._delete_view_pointer(identifier):
            raise self._no_such_view(identifier)

    def rename_view(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Raises `NoSuchViewError`, `ViewAlreadyExistsError`, `NoSuchNamespaceError`."""
        check_identifier(target)
        if not self.view_exists(source):
            raise self._no_such_view(source)
        self._require_free_for_view(target)
        if not self._rename_view_pointer(source, target):
            raise self._no_such_view(source)

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
