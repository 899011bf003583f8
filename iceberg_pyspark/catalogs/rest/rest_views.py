"""Views of a REST catalog, if its server supports them.

Open API specification of the REST catalog, the paths below `views`, and `LoadViewResult`. For a
server without views, lists are empty and new views are refused.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from iceberg_pyspark.catalogs.catalog import (
    LoadedView,
    Namespace,
    NewTablePlace,
    TableIdentifier,
    check_identifier,
    check_namespace,
)
from iceberg_pyspark.catalogs.rest import endpoints as e
from iceberg_pyspark.catalogs.rest.answers import CONFLICT, Answer, error_of
from iceberg_pyspark.catalogs.rest.commits import (
    check_new_name,
    identifier_to_json,
    is_answered,
    outcome_of,
)
from iceberg_pyspark.catalogs.rest.connection import Connection, TableSessions, table_tokens
from iceberg_pyspark.catalogs.rest.table_answers import metadata_location_of
from iceberg_pyspark.changes.changes_json import (
    view_requirement_to_json,
    view_update_to_json,
)
from iceberg_pyspark.changes.id_reuse import view_updates_with_known_ids
from iceberg_pyspark.changes.outcomes import Outcome, Refused
from iceberg_pyspark.changes.view_changes import (
    AssertViewUUID,
    ViewUpdate,
    apply_view_updates,
    check_view_requirement,
)
from iceberg_pyspark.errors import (
    CommitConflictError,
    IcebergError,
    NoSuchNamespaceError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.schema import schema_to_json
from iceberg_pyspark.spec.views import (
    ViewMetadata,
    view_metadata_from_json,
    view_version_to_json,
)


@checked_methods
class RestViews(ABC):
    """The part of a REST catalog that manages views."""

    def __init__(self, name: str, connection: Connection) -> None:
        self._name = name
        self._connection = connection
        self._view_sessions = TableSessions(connection)

    @abstractmethod
    def place_table(self, identifier: TableIdentifier, location: str | None) -> NewTablePlace:
        """Return where the server stages a new table."""

    def list_views(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the views directly in a namespace; raise `NoSuchNamespaceError`."""
        c = self._connection
        check_namespace(namespace)
        if e.LIST_VIEWS not in c.endpoints:
            return []
        return c.identifiers(c.paths.views(namespace))

    def view_exists(self, identifier: TableIdentifier) -> bool:
        """Return whether the view exists."""
        c = self._connection
        if e.LOAD_VIEW not in c.endpoints:
            return False
        return c.exists(c.paths.view(identifier), e.VIEW_EXISTS)

    def load_view(self, identifier: TableIdentifier) -> LoadedView:
        """Load the view's current metadata; raise `NoSuchViewError` if there is no such view."""
        c = self._connection
        if e.LOAD_VIEW not in c.endpoints:
            raise NoSuchViewError(
                f"view {identifier} is not in catalog '{self._name}', whose server has no views"
            )
        answer = c.session.ask("GET", c.paths.view(identifier))
        success = c.require_success(answer, NoSuchViewError)
        view = self._view(success, identifier)
        self._view_sessions.set_tokens(identifier, success.read(table_tokens))
        return view

    def default_view_location(self, identifier: TableIdentifier) -> str:
        """Return the location of a new view: where the server would stage a table of this name.

        Raise `ViewAlreadyExistsError` if a view or table has the name.
        """
        self._connection.endpoints.require(e.CREATE_VIEW, self._name, "views")
        try:
            return self.place_table(identifier, None).location
        except TableAlreadyExistsError as error:
            raise ViewAlreadyExistsError(str(error)) from error

    def create_view(self, identifier: TableIdentifier, metadata: ViewMetadata) -> LoadedView:
        """Create a view from its first metadata; the server assigns the UUID.

        Raise `ViewAlreadyExistsError` if a view or table has the name, or `CommitStateUnknownError`
        if the view may exist now.
        """
        c = self._connection
        check_new_name(identifier)
        c.endpoints.require(e.CREATE_VIEW, self._name, "views")
        body = {
            "name": identifier.name,
            "location": metadata.location,
            "schema": schema_to_json(metadata.schema),
            "view-version": view_version_to_json(metadata.current_version),
            "properties": dict(metadata.properties),
        }
        return self._create(c.paths.views(identifier.namespace), body, identifier)

    def register_view(self, identifier: TableIdentifier, metadata_location: str) -> LoadedView:
        """Register an existing metadata file as a view; errors as for `create_view`.

        Raise `UnsupportedFeatureError` if the server does not offer it.
        """
        c = self._connection
        check_new_name(identifier)
        c.endpoints.require(e.REGISTER_VIEW, self._name, "registering views")
        body = {"name": identifier.name, "metadata-location": metadata_location}
        return self._create(c.paths.register_view(identifier.namespace), body, identifier)

    def commit_view(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[AssertViewUUID],
        updates: Sequence[ViewUpdate],
    ) -> Outcome[LoadedView]:
        """Send the requirements and updates to the server, which checks and applies them.

        If the server sent a token for the view, the request has this token.
        Java's server answers 500, "state unknown", if an update cannot be applied, so they are
        applied to the loaded view first.
        """
        c = self._connection
        check_identifier(identifier)
        c.endpoints.require(e.REPLACE_VIEW, self._name, "changes of views")
        try:
            current = self.load_view(identifier).metadata
            for requirement in requirements:
                check_view_requirement(requirement, current)
            apply_view_updates(current, updates, now_ms=time.time_ns() // 1_000_000)
        except IcebergError as error:
            return Refused(error)
        body = {
            "identifier": identifier_to_json(identifier),
            "requirements": [view_requirement_to_json(r) for r in requirements],
            "updates": [
                view_update_to_json(u) for u in view_updates_with_known_ids(current, updates)
            ],
        }
        return outcome_of(
            c.send(c.paths.view(identifier), body, session=self._view_sessions.of(identifier)),
            self._name,
            f"view {identifier}",
            lambda answer: self._view(answer, identifier),
            self._commit_refusal,
        )

    def drop_view(self, identifier: TableIdentifier) -> None:
        """Remove the view from the catalog and keep its files; raise `NoSuchViewError`."""
        c = self._connection
        c.endpoints.require(e.DROP_VIEW, self._name, "views")
        is_answered(
            c.send_deletion(c.paths.view(identifier)),
            self._name,
            f"drop of view {identifier}",
            lambda answer: error_of(answer, self._name, missing=NoSuchViewError),
            lambda: not self.view_exists(identifier),
        )

    def rename_view(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Rename a view.

        Raise `NoSuchViewError`, `ViewAlreadyExistsError` or `NoSuchNamespaceError`.
        """
        c = self._connection
        check_new_name(target)
        c.endpoints.require(e.RENAME_VIEW, self._name, "renaming views")
        names = {"source": identifier_to_json(source), "destination": identifier_to_json(target)}
        is_answered(
            c.send(c.paths.rename_view, names),
            self._name,
            f"rename of view {source} to {target}",
            lambda answer: self._refusal(answer, missing=NoSuchViewError),
            lambda: not self.view_exists(source) and self.view_exists(target),
        )

    def _create(
        self, path: str, body: Mapping[str, Any], identifier: TableIdentifier
    ) -> LoadedView:
        """Send a request that creates a view; return the view or raise the error."""
        outcome = outcome_of(
            self._connection.send(path, body),
            self._name,
            f"view {identifier}",
            lambda answer: self._view(answer, identifier),
            lambda answer: self._refusal(answer, missing=NoSuchNamespaceError),
        )
        return outcome.result()

    def _view(self, answer: Answer, identifier: TableIdentifier) -> LoadedView:
        return answer.read(
            lambda content: LoadedView(
                identifier=identifier,
                metadata=view_metadata_from_json(content.value("metadata")),
                metadata_location=metadata_location_of(
                    content, self._connection.session.uri, identifier
                ),
            )
        )

    def _commit_refusal(self, answer: Answer) -> IcebergError:
        if answer.status == CONFLICT:
            return CommitConflictError(
                f"catalog '{self._name}': {answer.message()}; refresh and retry"
            )
        return self._refusal(answer, missing=NoSuchViewError)

    def _refusal(
        self, answer: Answer, *, missing: type[NoSuchViewError | NoSuchNamespaceError]
    ) -> IcebergError:
        return error_of(answer, self._name, missing=missing, existing=ViewAlreadyExistsError)
