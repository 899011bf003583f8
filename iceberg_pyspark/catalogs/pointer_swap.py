"""A commit of a catalog that points at metadata files: write the next file, swap the pointer.

For catalogs with metastore-style names, `00003-<uuid>.metadata.json`. The swap is the catalog's
own. What it raises decides over the new file: a refused swap removes it, an unknown outcome keeps
everything. Specification, "Optimistic Concurrency" and "Metastore Tables".
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.commits.apply import apply_updates
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
    metadata_codec,
    new_metadata_file_name,
    parse_version,
    write_table_metadata,
)

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
    publish: Callable[[str], None],
    config: Mapping[str, str],
) -> LoadedTable:
    """Write a table's first metadata file and publish its location."""
    location = next_metadata_location(metadata, None)
    _write_and_swap(io, metadata, location, lambda: publish(location))
    return LoadedTable(
        identifier=identifier, metadata=metadata, metadata_location=location, config=config
    )


def created_from_updates(
    requirements: Sequence[TableRequirement], updates: Sequence[TableUpdate]
) -> TableMetadata:
    """The first metadata of a table that a commit with `AssertCreate` makes out of nothing."""
    for requirement in requirements:
        check_requirement(requirement, None)
    return apply_updates(None, updates, now_ms=now_ms(), previous_metadata_location=None)


def commit_by_swap(
    io: FileIO,
    current: LoadedTable,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
    swap: Callable[[str, str], None],
) -> LoadedTable:
    """Check, apply, write, and swap the pointer from the current location to the new one.

    `swap(expected, new)` raises `CommitConflictError` if the pointer is not at `expected` any more.
    """
    base = current.metadata
    for requirement in requirements:
        check_requirement(requirement, base)
    metadata = apply_updates(
        base,
        updates,
        now_ms=now_ms(),
        previous_metadata_location=current.metadata_location,
    )
    if metadata is base:
        return current
    location = next_metadata_location(metadata, current.metadata_location)
    _write_and_swap(io, metadata, location, lambda: swap(current.metadata_location, location))
    delete_trimmed_metadata(io, base, metadata)
    return LoadedTable(
        identifier=current.identifier,
        metadata=metadata,
        metadata_location=location,
        config=current.config,
    )


def _write_and_swap(
    io: FileIO, metadata: TableMetadata, location: str, swap: Callable[[], None]
) -> None:
    try:
        write_table_metadata(io, metadata, location)
        swap()
    except IcebergError as e:
        # any other exception, an interrupt for one, may come after the swap: then the file must
        # stay
        if e.safe_to_clean_up:
            _delete_quietly(io, location)
        raise


def delete_trimmed_metadata(io: FileIO, base: TableMetadata, metadata: TableMetadata) -> None:
    """Delete the metadata files that this commit dropped from the log, if the table asks for it.

    Only files that the committed metadata no longer lists; no snapshot refers to a metadata file.
    """
    if not METADATA_DELETE_AFTER_COMMIT.of(metadata.properties):
        return
    kept = {entry.metadata_file for entry in metadata.metadata_log}
    for entry in base.metadata_log:
        if entry.metadata_file not in kept:
            _delete_quietly(io, entry.metadata_file)


def _delete_quietly(io: FileIO, location: str) -> None:
    # what the caller waits for is done or refused already; a file left over is an orphan
    try:
        io.delete(location)
    except IcebergError as e:
        _log.warning("could not delete %s: %s", location, e)
