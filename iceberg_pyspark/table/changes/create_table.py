"""Create a table in a catalog.

The first metadata is `commits/new_table.py`; which of several racing creators wins, the catalog
decides.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from iceberg_pyspark.catalogs.catalog import (
    Catalog,
    CheckingCatalog,
    LoadedTable,
    Namespace,
    NewTablePlace,
    PlacingCatalog,
    TableIdentifier,
)
from iceberg_pyspark.catalogs.properties import storage_properties
from iceberg_pyspark.commits.apply import apply_updates
from iceberg_pyspark.commits.new_table import NewTable, new_table_metadata, new_table_updates
from iceberg_pyspark.commits.outcomes import Outcome, Refused, Unknown
from iceberg_pyspark.commits.requirements import AssertCreate
from iceberg_pyspark.commits.retry import status_check_policy
from iceberg_pyspark.errors import (
    CommitConflictError,
    IcebergError,
    NamespaceAlreadyExistsError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.spec.properties import check_commit_properties
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.changes.commit import (
    SYSTEM_CLOCK,
    Clock,
    CommitStep,
    find_after_unknown,
    send_commit,
)
from iceberg_pyspark.table.changes.written_files import WrittenFiles

_DEFAULT_PREFIX = "table-default."
_OVERRIDE_PREFIX = "table-override."


def new_table_properties(
    catalog_properties: Mapping[str, str], properties: Mapping[str, str]
) -> dict[str, str]:
    """A new table's properties between the defaults and the overrides that its catalog sets."""

    def below(prefix: str) -> dict[str, str]:
        return {
            k.removeprefix(prefix): v for k, v in catalog_properties.items() if k.startswith(prefix)
        }

    return {**below(_DEFAULT_PREFIX), **properties, **below(_OVERRIDE_PREFIX)}


def create_namespace_if_absent(catalog: Catalog, namespace: Namespace) -> None:
    """Make a namespace; one that is there, or that another client makes now, is no error."""
    if namespace and not catalog.namespace_exists(namespace):
        try:
            catalog.create_namespace(namespace)
        except NamespaceAlreadyExistsError:
            return


def create_table(catalog: Catalog, identifier: TableIdentifier, new: NewTable) -> LoadedTable:
    """Create a table, which numbers its columns anew; raises `TableAlreadyExistsError`."""
    return catalog.create_table(identifier, planned_table(catalog, identifier, new).metadata)


def planned_table(catalog: Catalog, identifier: TableIdentifier, new: NewTable) -> LoadedTable:
    """A table as it would be created, which no catalog has yet: files can be written for it.

    Raises an `IcebergError` where the catalog could not have such a table.
    """
    place = _place(catalog, identifier, new.location)
    metadata = new_table_metadata(
        new.schema,
        new.spec,
        new.sort_order,
        place.location,
        new.properties,
        table_uuid=str(uuid.uuid4()),
        now_ms=SYSTEM_CLOCK.now_ms(),
    )
    if isinstance(catalog, CheckingCatalog):
        catalog.check_new_table(identifier, metadata)
    return LoadedTable(
        identifier=identifier,
        metadata=metadata,
        metadata_location="",
        config=place.config,
    )


def _place(catalog: Catalog, identifier: TableIdentifier, location: str | None) -> NewTablePlace:
    if isinstance(catalog, PlacingCatalog):
        return catalog.place_table(identifier, location)
    return NewTablePlace(
        location=location or catalog.default_table_location(identifier),
        config=storage_properties(catalog.properties),
    )


def takes_files_of(metadata: TableMetadata, planned_metadata: TableMetadata) -> bool:
    """Whether files that were written for a planned table have the ids of this one."""
    return (
        metadata.current_schema.fields == planned_metadata.current_schema.fields
        and metadata.default_spec == planned_metadata.default_spec
        and metadata.location == planned_metadata.location
    )


def create_table_with(
    catalog: Catalog,
    identifier: TableIdentifier,
    metadata: TableMetadata,
    steps: Sequence[CommitStep],
    *,
    written_files: WrittenFiles | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> LoadedTable:
    """Create a table of this first metadata and carry out the steps on it, in one commit.

    Takes over `written_files`. Raises `TableAlreadyExistsError`; what the steps wrote
    and these files are removed where nothing was created, or `CommitStateUnknownError`.
    """
    if written_files is not None:
        written_files.hand_over()
    outcome = _create_with(catalog, identifier, metadata, steps, clock)
    if isinstance(outcome, Refused):
        for step in steps:
            step.refused(outcome)
        if written_files is not None:
            written_files.remove(outcome)
        if isinstance(outcome.error, CommitConflictError):
            raise TableAlreadyExistsError(
                f"table {identifier} was created by another writer in the meantime"
            ) from outcome.error
    return outcome.result()


def _create_with(
    catalog: Catalog,
    identifier: TableIdentifier,
    metadata: TableMetadata,
    steps: Sequence[CommitStep],
    clock: Clock,
) -> Outcome[LoadedTable]:
    updates = list(new_table_updates(metadata))
    try:
        check_commit_properties(metadata.properties)
        policy = status_check_policy(metadata.properties)
        for step in steps:
            changes = step.changes(metadata).updates
            updates += changes
            metadata = apply_updates(
                metadata,
                changes,
                now_ms=metadata.last_updated_ms,
                previous_metadata_location=None,
            )
    except IcebergError as e:
        return Refused(e)
    outcome = send_commit(catalog, identifier, [AssertCreate()], updates)
    if not isinstance(outcome, Unknown):
        return outcome
    return find_after_unknown(
        catalog,
        identifier,
        outcome,
        lambda other: other.table_uuid == metadata.table_uuid,
        policy,
        clock,
    )
