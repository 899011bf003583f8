"""Creates and changes views; every change is a single commit.

View specification, "View Metadata" and "Versions". `changes/view_changes.py` decides which earlier
versions are kept.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from iceberg_pyspark.catalogs.catalog import (
    Catalog,
    LoadedView,
    PlacingCatalog,
    TableIdentifier,
    ViewCatalog,
)
from iceberg_pyspark.catalogs.catalog_properties import (
    VIEW_DEFAULT_PREFIX,
    VIEW_OVERRIDE_PREFIX,
    properties_below,
    storage_properties,
)
from iceberg_pyspark.changes.changes import RemoveProperties, SetLocation, SetProperties
from iceberg_pyspark.changes.outcomes import Refused, caused_by
from iceberg_pyspark.changes.retry import commit_retry_policy
from iceberg_pyspark.changes.view_changes import (
    AssertViewUUID,
    ViewUpdate,
    new_view_metadata,
    view_definition_updates,
)
from iceberg_pyspark.errors import (
    CommitConflictError,
    NoSuchViewError,
    UnsupportedFeatureError,
    ViewAlreadyExistsError,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.views import SqlRepresentation
from iceberg_pyspark.table.commits.clock import SYSTEM_CLOCK, Clock
from iceberg_pyspark.table.commits.create_table import check_is_free, free_default


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDefinition:
    """A query, its columns, and the defaults for names in it without a catalog or namespace.

    `default_catalog` None: the catalog of the view.
    """

    schema: Schema
    query: SqlRepresentation
    default_namespace: tuple[str, ...]
    default_catalog: str | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the view, set in addition to the existing ones."""
    location: str | None = None
    """The view's location; None: the default of a new view, or the one that the view has."""

    def updates(self, now_ms: int) -> tuple[ViewUpdate, ...]:
        """Return the updates that give a view this definition."""
        return view_definition_updates(
            self.schema,
            [self.query],
            default_namespace=self.default_namespace,
            default_catalog=self.default_catalog,
            summary=self.summary,
            now_ms=now_ms,
        )


def with_views(catalog: Catalog) -> ViewCatalog:
    """Return the catalog as a view catalog; raise `UnsupportedFeatureError` if it has no views."""
    if not isinstance(catalog, ViewCatalog):
        raise UnsupportedFeatureError(
            f"catalog '{catalog.name}' has no views: catalogs of type sql, rest, hive and memory "
            "do; create the view there, or a temporary view"
        )
    return catalog


def create_view(
    catalog: ViewCatalog,
    identifier: TableIdentifier,
    definition: NewDefinition,
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> LoadedView:
    """Create a view; raises `ViewAlreadyExistsError` if a view or table has the name.

    The catalog's `view-default.*` and `view-override.*` properties apply.
    """
    now_ms = clock.now_ms()
    metadata = new_view_metadata(
        definition.updates(now_ms),
        _location(catalog, identifier, definition.location),
        {
            **properties_below(VIEW_DEFAULT_PREFIX, catalog.properties),
            **definition.properties,
            **properties_below(VIEW_OVERRIDE_PREFIX, catalog.properties),
        },
        view_uuid=str(uuid.uuid4()),
        now_ms=now_ms,
    )
    return catalog.create_view(identifier, metadata)


def _location(catalog: ViewCatalog, identifier: TableIdentifier, location: str | None) -> str:
    config = storage_properties(catalog.properties)
    if location is not None:
        check_is_free(identifier, location, config)
        return location
    default = catalog.default_view_location(identifier)
    return default if isinstance(catalog, PlacingCatalog) else free_default(default, config)


def create_or_replace_view(
    catalog: ViewCatalog,
    identifier: TableIdentifier,
    definition: NewDefinition,
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> LoadedView:
    """Create a view, or replace the definition of the existing one."""
    try:
        return replace_view(catalog, identifier, definition, clock=clock)
    except NoSuchViewError:
        try:
            return create_view(catalog, identifier, definition, clock=clock)
        except ViewAlreadyExistsError:
            if not catalog.view_exists(identifier):
                # a table has the name
                raise
            return replace_view(catalog, identifier, definition, clock=clock)


def replace_view(
    catalog: ViewCatalog,
    identifier: TableIdentifier,
    definition: NewDefinition,
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> LoadedView:
    """Replace the definition of a view; raises `NoSuchViewError`.

    The catalog's `view-override.*` properties apply, but not its defaults: the view may have been
    given other values since.
    """
    updates: tuple[ViewUpdate, ...] = definition.updates(clock.now_ms())
    overrides = properties_below(VIEW_OVERRIDE_PREFIX, catalog.properties)
    if properties := {**definition.properties, **overrides}:
        updates = (SetProperties(properties), *updates)
    if definition.location is not None:
        updates = (SetLocation(definition.location), *updates)
    return _commit(catalog, identifier, updates, clock)


def set_view_properties(
    catalog: ViewCatalog,
    identifier: TableIdentifier,
    properties: Mapping[str, str],
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> LoadedView:
    """Set properties of a view; raises `NoSuchViewError`."""
    return _commit(catalog, identifier, (SetProperties(dict(properties)),), clock)


def remove_view_properties(
    catalog: ViewCatalog,
    identifier: TableIdentifier,
    removals: Sequence[str],
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> LoadedView:
    """Remove properties of a view; raises `NoSuchViewError`."""
    return _commit(catalog, identifier, (RemoveProperties(tuple(removals)),), clock)


def _commit(
    catalog: ViewCatalog,
    identifier: TableIdentifier,
    updates: Sequence[ViewUpdate],
    clock: Clock,
) -> LoadedView:
    """Commit the updates to the current view; load the view and try again after each conflict."""
    started_ms = clock.now_ms()
    retry = 0
    while True:
        view = catalog.load_view(identifier).metadata
        requirements = (AssertViewUUID(view.view_uuid),)
        outcome = catalog.commit_view(identifier, requirements, updates)
        if not isinstance(outcome, Refused) or not isinstance(outcome.error, CommitConflictError):
            return outcome.result()
        retry += 1
        wait_ms = commit_retry_policy(view.properties).wait_ms(
            retry, elapsed_ms=clock.now_ms() - started_ms, jitter=clock.random()
        )
        if wait_ms is None:
            raise caused_by(
                CommitConflictError(
                    f"view {identifier}: gave up after {retry} attempts, because other commits "
                    f"came first each time; the last: {outcome.error}"
                ),
                outcome.error,
            )
        clock.sleep_ms(wait_ms)
