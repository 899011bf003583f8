"""Catalogs that commit without a REST server: write the next metadata file, and swap the pointer.

A commit has two parts. The first part prepares the commit; every `IcebergError` there means
`Refused`, because nothing has been changed yet. Only the second part, the swap (here, or in
`hadoop/folder_versions.py`), knows the outcome. For a REST catalog, the server does all this.

The swap here is for metastore-style file names, `00003-<uuid>.metadata.json`. The catalog
implements it, and its outcome decides about the new file: a refused swap removes the file, an
unknown outcome keeps the file. Specification, "Optimistic Concurrency" and "Metastore Tables".
"""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from iceberg_pyspark.catalogs.catalog import LoadedTable, LoadedView, TableIdentifier
from iceberg_pyspark.catalogs.catalog_properties import CatalogProperties, storage_properties
from iceberg_pyspark.changes.changes import (
    AssertCreate,
    TableRequirement,
    TableUpdate,
    check_requirement,
)
from iceberg_pyspark.changes.outcomes import (
    Done,
    NotCommitted,
    Outcome,
    Refused,
    Unknown,
    after_commit,
    unknown,
)
from iceberg_pyspark.errors import IcebergError, LocationRefusedError
from iceberg_pyspark.formats.metadata_files import (
    MetadataCodec,
    create_own_metadata,
    metadata_codec,
    new_metadata_file_name,
    parse_version,
)
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import METADATA_DELETE_AFTER_COMMIT, WRITE_METADATA_PATH
from iceberg_pyspark.spec.views import ViewMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.places import is_in_store, spellings, store_of
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.storage.own_folders import OwnFolders, is_metadata_file
from iceberg_pyspark.storage.restricted_io import ReadRule, read_rule
from iceberg_pyspark.storage.store_properties import ALLOW_OUTSIDE_LOCATIONS

_log = get_logger(__name__)


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


_TableOrView = TypeVar("_TableOrView", LoadedTable, LoadedView)


def next_metadata(
    base: TableMetadata | None,
    base_location: str | None,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
) -> TableMetadata:
    """Return the metadata after a commit, or `base` itself if nothing changes.

    `base` is None for a new table. Raise the `IcebergError` of a requirement or update that does
    not fit `base`.
    """
    # reading needs not
    from iceberg_pyspark.changes.apply import apply_updates  # noqa: PLC0415
    from iceberg_pyspark.changes.snapshot_retention import check_refs_stay_valid  # noqa: PLC0415

    for requirement in requirements:
        check_requirement(requirement, base)
    if base is not None:
        check_refs_stay_valid(base, updates)
    now_ms = time.time_ns() // 1_000_000
    return apply_updates(base, updates, now_ms=now_ms, previous_metadata_location=base_location)


def metadata_folder(metadata: TableMetadata | ViewMetadata) -> str:
    """Return the folder of metadata files: `write.metadata.path`, or `metadata` in the location."""
    metadata_path = metadata.properties.get(WRITE_METADATA_PATH)
    return metadata_path.rstrip("/") if metadata_path else f"{metadata.location}/metadata"


def first_metadata_location(
    metadata: TableMetadata | ViewMetadata, config: Mapping[str, str]
) -> str:
    """Return an unused location for the first metadata file of a new table or view."""
    folder = metadata_folder(metadata)
    _check_store(folder, metadata.location, config)
    return f"{folder}/{_file_name(metadata, 0)}"


def next_metadata_location(
    current: LoadedTable | LoadedView, metadata: TableMetadata | ViewMetadata
) -> str:
    """Return an unused location for the next metadata file of a table or view.

    The file is created beside the current file, unless this change itself changes the metadata
    folder. The folder of the pointer tells the catalog which folders are the table's own, so older
    metadata, which somebody else may have written, must not move the pointer.
    """
    here, folder = current.metadata_location, metadata_folder(metadata)
    if folder == metadata_folder(current.metadata):
        folder = here.rpartition("/")[0]
    else:
        _check_store(folder, here, current.config)
    return f"{folder}/{_file_name(metadata, parse_version(here) + 1)}"


def _file_name(metadata: TableMetadata | ViewMetadata, version: int) -> str:
    # the default codecs are Java's
    default: MetadataCodec = "gzip" if isinstance(metadata, ViewMetadata) else "none"
    codec = metadata_codec(metadata.properties, default)
    return new_metadata_file_name(version, str(uuid.uuid4()), codec)


def _check_store(folder: str, table_location: str, config: Mapping[str, str]) -> None:
    """Raise `LocationRefusedError` if the folder is in a store that the table may not read."""
    if read_rule(config) is not ReadRule.ANY_STORE and not is_in_store(folder, table_location):
        raise LocationRefusedError(
            f"metadata files cannot go to {folder}: that is another store than "
            f"{store_of(table_location)}, "
            "where the table is, and a table reads its own store only; set its location or "
            f"{WRITE_METADATA_PATH} to a folder there, or, for a table you trust, "
            f"{ALLOW_OUTSIDE_LOCATIONS} of the catalog to true"
        )


def create_by_swap(
    io: FileIO,
    identifier: TableIdentifier,
    metadata: TableMetadata,
    publish: Callable[[LoadedTable], Outcome[None]],
    config: Mapping[str, str],
) -> Outcome[LoadedTable]:
    """Write a table's first metadata file and publish its location."""
    try:
        location = first_metadata_location(metadata, config)
        create_own_metadata(io, metadata, location)
    except IcebergError as e:
        return Refused(e)
    table = LoadedTable(
        identifier=identifier, metadata=metadata, metadata_location=location, config=config
    )
    return swap_pointer(io, table, lambda: publish(table))


def commit_by_swap(
    io: FileIO,
    own: OwnFolders,
    current: LoadedTable,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
    swap: Callable[[LoadedTable, LoadedTable], Outcome[None]],
) -> Outcome[LoadedTable]:
    """Check the requirements, apply the updates, write the metadata file and swap the pointer.

    `own` lists the folders in which files of the table may be deleted. `swap(current, committed)`
    returns `Refused` with a `CommitConflictError` if the pointer no longer refers to `current`.
    """
    base = current.metadata
    try:
        metadata = next_metadata(base, current.metadata_location, requirements, updates)
        if metadata is base:
            return Done(current)
        location = next_metadata_location(current, metadata)
        create_own_metadata(io, metadata, location)
    except IcebergError as e:
        return Refused(e)
    new_table = LoadedTable(
        identifier=current.identifier,
        metadata=metadata,
        metadata_location=location,
        config=current.config,
    )
    outcome = swap_pointer(io, new_table, lambda: swap(current, new_table))
    if isinstance(outcome, Done):
        delete_trimmed_metadata(io, own, base, metadata)
    return outcome


def swap_pointer(
    io: FileIO, new_state: _TableOrView, swap: Callable[[], Outcome[None]]
) -> Outcome[_TableOrView]:
    """Swap the pointer; delete the new metadata file if the swap is refused."""
    try:
        outcome = swap()
    except Exception as e:  # noqa: BLE001 - whatever it is, the pointer may have moved before it
        return unknown(f"table or view {new_state.identifier}", e)
    match outcome:
        case Done():
            return Done(new_state)
        case Refused():
            _remove_metadata(io, new_state.metadata_location, outcome)
            return outcome
        case Unknown():
            return outcome


def _remove_metadata(io: FileIO, location: str, _proof: NotCommitted) -> None:
    try:
        io.delete(location)
    except IcebergError as e:
        # a remaining file is an orphan file; the outcome must not change
        _log.warning("could not delete %s: %s", location, e)


def delete_trimmed_metadata(
    io: FileIO, own: OwnFolders, base: TableMetadata, metadata: TableMetadata
) -> None:
    """Delete the metadata files that this commit removed from the log, if the properties say so.

    Delete only metadata files (by their names) in the table's own folders that the committed
    metadata no longer lists, because another writer may have put any location into the log. The
    commit is done, so a failure here is only logged.
    """
    with after_commit(f"deleting trimmed metadata of {metadata.location}"):
        if not METADATA_DELETE_AFTER_COMMIT.of(metadata.properties):
            return
        # an upgrade may add the scheme to the locations in the log
        logged_files = {
            s for entry in metadata.metadata_log for s in spellings(entry.metadata_file)
        }
        for entry in base.metadata_log:
            file = entry.metadata_file
            if file not in logged_files and is_metadata_file(file):
                own.delete(io, file)
