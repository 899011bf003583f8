"""Creates a table in a catalog.

`changes/new_table.py` builds the first metadata; if several writers create the table at once, the
catalog decides which of them succeeds.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from iceberg_pyspark.catalogs.catalog import (
    Catalog,
    CheckingCatalog,
    LoadedTable,
    Namespace,
    NewTablePlace,
    PlacingCatalog,
    TableIdentifier,
)
from iceberg_pyspark.catalogs.catalog_properties import (
    TABLE_DEFAULT_PREFIX,
    TABLE_OVERRIDE_PREFIX,
    properties_below,
    storage_properties,
)
from iceberg_pyspark.changes.apply import apply_updates
from iceberg_pyspark.changes.changes import AssertCreate
from iceberg_pyspark.changes.new_table import NewTable, new_table_metadata, new_table_updates
from iceberg_pyspark.changes.outcomes import Outcome, Refused, Unknown
from iceberg_pyspark.changes.retry import status_check_policy
from iceberg_pyspark.errors import (
    CommitConflictError,
    IcebergError,
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import check_commit_properties
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.storage.own_folders import is_metadata_file
from iceberg_pyspark.table.commits.clock import SYSTEM_CLOCK, Clock
from iceberg_pyspark.table.commits.commit import CommitStep, find_after_unknown, send_commit
from iceberg_pyspark.table.commits.written_files import WrittenFiles

_log = get_logger(__name__)


def new_table_properties(
    catalog_properties: Mapping[str, str], properties: Mapping[str, str]
) -> dict[str, str]:
    """Merge the catalog's defaults, `properties` and the catalog's overrides, in this order."""
    return {
        **properties_below(TABLE_DEFAULT_PREFIX, catalog_properties),
        **properties,
        **properties_below(TABLE_OVERRIDE_PREFIX, catalog_properties),
    }


def create_namespace_if_absent(catalog: Catalog, namespace: Namespace) -> None:
    """Create a namespace; no error if it exists or another client creates it at the same time."""
    if namespace and not catalog.namespace_exists(namespace):
        try:
            catalog.create_namespace(namespace)
        except NamespaceAlreadyExistsError:
            return


def create_table(catalog: Catalog, identifier: TableIdentifier, new: NewTable) -> LoadedTable:
    """Create a table with newly numbered columns; raises `TableAlreadyExistsError`."""
    return catalog.create_table(identifier, planned_table(catalog, identifier, new).metadata)


def planned_table(
    catalog: Catalog, identifier: TableIdentifier, new: NewTable, *, takes_folder: bool = False
) -> LoadedTable:
    """Return a planned table, which is in no catalog yet, so that files can be written for it.

    `takes_folder` if the table takes over a folder with its files, as a migration does: metadata
    there may be that of a migration that was killed. Raises an `IcebergError` if the catalog could
    not create the table.
    """
    place = _place(catalog, identifier, new.location, takes_folder=takes_folder)
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


def _place(
    catalog: Catalog, identifier: TableIdentifier, location: str | None, *, takes_folder: bool
) -> NewTablePlace:
    if isinstance(catalog, PlacingCatalog):
        place = catalog.place_table(identifier, location)
    else:
        place = NewTablePlace(
            location=location or catalog.default_table_location(identifier),
            config=storage_properties(catalog.properties),
        )
    if isinstance(catalog, CheckingCatalog):
        # the folder is the table's name, and `create_table` looks into it
        return place
    if location is not None:
        if not takes_folder:
            check_is_free(identifier, place.location, place.config)
    elif not isinstance(catalog, PlacingCatalog):
        place = replace(place, location=free_default(place.location, place.config))
    return place


def takes_files_of(metadata: TableMetadata, planned_metadata: TableMetadata) -> bool:
    """Return whether files written for a planned table have this table's field ids and paths."""
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
    """Create a table with this first metadata and apply the steps to it, in one commit.

    Takes ownership of `written_files`. Raises `TableAlreadyExistsError`. If nothing was created,
    the files of the steps and `written_files` are removed. Raises `CommitStateUnknownError` if the
    outcome is unknown, and then removes no file.
    """
    if written_files is not None:
        written_files.hand_over()
    outcome = _create_with(catalog, identifier, metadata, steps, clock)
    if isinstance(outcome, Refused):
        for step in steps:
            step.after_refusal(outcome)
        if written_files is not None:
            written_files.remove(outcome)
        if isinstance(outcome.error, CommitConflictError):
            raise TableAlreadyExistsError(
                f"table {identifier} was created by another writer in the meantime; load that "
                "table, or choose another name"
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


def free_default(location: str, config: Mapping[str, str]) -> str:
    """Return the default location of a new table or view, with a UUID if the folder has files.

    They may be those of a table that was renamed or dropped. Two creates at once may both find the
    folder empty: one of them gets the name, and the other removes what it has written.
    """
    try:
        is_used = next(iter(open_storage(location, config).list_files(location)), None) is not None
    except IcebergError as e:
        _log.info("it is not known whether folder %s has files: %s", location, e)
        return location
    return f"{location}-{uuid.uuid4().hex}" if is_used else location


def check_is_free(identifier: TableIdentifier, location: str, config: Mapping[str, str]) -> None:
    """Raise `InvalidRequestError` if another table or view has its metadata at a given location."""
    try:
        file = _metadata_file(open_storage(location, config), location.rstrip("/"))
    except IcebergError as e:
        _log.info("it is not known whether folder %s is a table's: %s", location, e)
        return
    if file is not None:
        raise InvalidRequestError(
            f"{identifier} cannot have the location {location}, because another table or view has "
            f"its metadata there ({file}); choose another location, or none, or, if nobody uses "
            "that table, delete its files first"
        )


def _metadata_file(io: FileIO, location: str) -> str | None:
    locations = (info.location for info in io.list_files(f"{location}/metadata"))
    return next((f for f in locations if is_metadata_file(f)), None)
