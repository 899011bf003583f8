"""A commit of a catalog that points at metadata files: write the next file, swap the pointer.

For catalogs with metastore-style names, `00003-<uuid>.metadata.json`. The swap is the catalog's
own, and what it returns decides over the new file: a refused swap removes it, an unknown outcome
keeps everything. Specification, "Optimistic Concurrency" and "Metastore Tables".
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.commits.apply import apply_updates
from iceberg_pyspark.commits.outcomes import (
    Done,
    NotCommitted,
    Outcome,
    Refused,
    Unknown,
    after_commit,
    unknown,
)
from iceberg_pyspark.commits.requirements import TableRequirement, check_requirement
from iceberg_pyspark.commits.updates import TableUpdate
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.spec.properties import (
    METADATA_DELETE_AFTER_COMMIT,
    WRITE_METADATA_PATH,
)
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.metadata_files import (
    create_own_metadata,
    is_metadata_file,
    metadata_codec,
    new_metadata_file_name,
    parse_version,
)
from iceberg_pyspark.storage.own_folders import OwnFolders

_log = logging.getLogger(__name__)


def now_ms() -> int:
    """Milliseconds since 1970: catalogs give commits their time."""
    return time.time_ns() // 1_000_000


def metadata_folder(metadata: TableMetadata) -> str:
    """Where metadata files go: `write.metadata.path`, or `metadata` below the location."""
    configured = metadata.properties.get(WRITE_METADATA_PATH)
    return configured.rstrip("/") if configured else f"{metadata.location}/metadata"


def next_metadata_location(metadata: TableMetadata, previous: str | None) -> str:
    """A name nobody has for the table's next metadata file; `previous` None: its first."""
    version = 0 if previous is None else parse_version(previous) + 1
    codec = metadata_codec(metadata.properties)
    name = new_metadata_file_name(version, str(uuid.uuid4()), codec)
    return f"{metadata_folder(metadata)}/{name}"


def create_by_swap(
    io: FileIO,
    identifier: TableIdentifier,
    metadata: TableMetadata,
    publish: Callable[[str], Outcome[None]],
    config: Mapping[str, str],
) -> Outcome[LoadedTable]:
    """Write a table's first metadata file and publish its location."""
    try:
        location = next_metadata_location(metadata, None)
        create_own_metadata(io, metadata, location)
    except IcebergError as e:
        return Refused(e)
    created = LoadedTable(
        identifier=identifier, metadata=metadata, metadata_location=location, config=config
    )
    return _swapped(io, created, lambda: publish(location))


def created_from_updates(
    requirements: Sequence[TableRequirement], updates: Sequence[TableUpdate]
) -> TableMetadata:
    """The first metadata of a table that a commit with `AssertCreate` makes out of nothing."""
    for requirement in requirements:
        check_requirement(requirement, None)
    return apply_updates(None, updates, now_ms=now_ms(), previous_metadata_location=None)


def commit_by_swap(
    io: FileIO,
    own: OwnFolders,
    current: LoadedTable,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
    swap: Callable[[str, str], Outcome[None]],
) -> Outcome[LoadedTable]:
    """Check, apply, write, and swap the pointer from the current location to the new one.

    `own` are the folders in which files of the table may be deleted. `swap(expected, new)` is
    `Refused` with a `CommitConflictError` if the pointer is not at `expected` any more.
    """
    base = current.metadata
    try:
        for requirement in requirements:
            check_requirement(requirement, base)
        metadata = apply_updates(
            base,
            updates,
            now_ms=now_ms(),
            previous_metadata_location=current.metadata_location,
        )
        if metadata is base:
            return Done(current)
        location = next_metadata_location(metadata, current.metadata_location)
        create_own_metadata(io, metadata, location)
    except IcebergError as e:
        return Refused(e)
    committed = LoadedTable(
        identifier=current.identifier,
        metadata=metadata,
        metadata_location=location,
        config=current.config,
    )
    outcome = _swapped(io, committed, lambda: swap(current.metadata_location, location))
    if isinstance(outcome, Done):
        delete_trimmed_metadata(io, own, base, metadata)
    return outcome


def _swapped(
    io: FileIO, committed: LoadedTable, swap: Callable[[], Outcome[None]]
) -> Outcome[LoadedTable]:
    """The table as the swap leaves it; a refused one has no use for its metadata file."""
    try:
        outcome = swap()
    except Exception as e:  # noqa: BLE001 - whatever it is, the pointer may have moved before it
        return unknown(f"table {committed.identifier}", e)
    match outcome:
        case Done():
            return Done(committed)
        case Refused():
            _remove_metadata(io, committed.metadata_location, outcome)
            return outcome
        case Unknown():
            return outcome


def _remove_metadata(io: FileIO, location: str, _proof: NotCommitted) -> None:
    try:
        io.delete(location)
    except IcebergError as e:
        # a file left over is an orphan; the outcome must not change
        _log.warning("could not delete %s: %s", location, e)


def delete_trimmed_metadata(
    io: FileIO, own: OwnFolders, base: TableMetadata, metadata: TableMetadata
) -> None:
    """Delete the metadata files that this commit dropped from the log, if the table asks for it.

    Only files in the table's own folders that the committed metadata no longer lists, and that by
    their names are metadata files: the log may be somebody else's work.
    The commit is done: whatever goes wrong here is logged and given up.
    """
    with after_commit(f"deleting trimmed metadata of {metadata.location}"):
        if not METADATA_DELETE_AFTER_COMMIT.of(metadata.properties):
            return
        kept = {entry.metadata_file for entry in metadata.metadata_log}
        for entry in base.metadata_log:
            file = entry.metadata_file
            if file not in kept and is_metadata_file(file) and own.owns(file):
                io.delete(file)
