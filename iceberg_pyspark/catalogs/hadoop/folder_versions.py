"""Tables without a catalog: how their versions are created, committed and dropped.

Specification, "File System Tables"; Java's HadoopTableOperations. A commit creates the file of the
next version exclusively, so only one of several concurrent writers succeeds; creating the file is
the swap. `versions.py` finds the current version; `hadoop_catalog.py` and `path_tables.py` find the
folder of a table by its name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from iceberg_pyspark.catalogs.committing_catalog import delete_trimmed_metadata, next_metadata
from iceberg_pyspark.catalogs.hadoop.versions import (
    SUFFIXES,
    TableVersion,
    all_versions,
    current_version,
    hint_file,
    hinted_version,
    is_version_file,
    load_version,
    version_files,
    versions_folder,
)
from iceberg_pyspark.catalogs.outcome_search import unknown_change
from iceberg_pyspark.changes.changes import TableRequirement, TableUpdate
from iceberg_pyspark.changes.outcomes import (
    Done,
    Outcome,
    Refused,
    Unknown,
    after_commit,
    caused_by,
    unknown,
)
from iceberg_pyspark.errors import (
    CommitConflictError,
    FileAlreadyExistsError,
    FileNotWrittenError,
    IcebergError,
    InvalidRequestError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.formats.metadata_files import (
    metadata_codec,
    read_table_metadata,
    write_table_metadata,
)
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.table_metadata import TableMetadata, metadata_to_json
from iceberg_pyspark.spec.table_properties import ROOTS_IN_FOLDERS, WRITE_METADATA_PATH
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.local import is_local, local_path
from iceberg_pyspark.storage.files.places import normalized_location
from iceberg_pyspark.storage.own_folders import OwnFolders, is_metadata_file

_log = get_logger(__name__)

_DROPPED = "dropped-v"
_MAX_FORMAT_VERSION = 3


def create_first_version(
    io: FileIO, location: str, metadata: TableMetadata
) -> Outcome[TableVersion]:
    """Publish version 1.

    Return `Refused` with a `TableAlreadyExistsError` if the folder already contains a table.
    """
    try:
        check_metadata(metadata, location)
        if current_version(io, location) is not None:
            return Refused(_already_exists(location))
        if (file := _metadata_of_another(io, location)) is not None:
            return Refused(
                TableAlreadyExistsError(
                    f"folder {location} holds a catalog's table or view ({file}); choose another "
                    "folder, or, in a catalog of type hadoop, another name"
                )
            )
    except IcebergError as e:
        return Refused(e)
    # always the uncompressed name: two creators must race for the same name
    file = f"{versions_folder(location)}/v1{SUFFIXES[0]}"
    first = TableVersion(version=1, metadata_location=file, metadata=metadata)
    outcome = _publish(io, location, first)
    if isinstance(outcome, Done):
        outcome = _outcome_after_first_publish(io, location, first)
    match outcome:
        case Done():
            _write_hint(io, location, 1)
            return outcome
        case Refused(error) if isinstance(error, CommitConflictError):
            return Refused(caused_by(_already_exists(location), error))
        case _:
            return outcome


def _metadata_of_another(io: FileIO, location: str) -> str | None:
    """Return a metadata file in the folder that no table of a file system has, or None."""
    for info in io.list_files(versions_folder(location)):
        name = info.location.rpartition("/")[2]
        if is_metadata_file(name) and not name.startswith(_DROPPED) and not is_version_file(name):
            return info.location
    return None


def _outcome_after_first_publish(
    io: FileIO, location: str, first: TableVersion
) -> Outcome[TableVersion]:
    """Return the outcome after the file of version 1 was created.

    In an older table, commits have deleted the first versions, and their names are free again. A
    writer that did not see the older table may have taken such a name.
    """
    try:
        newest = current_version(io, location)
        if newest is None or newest[0] == 1:
            return Done(first)
        later = read_table_metadata(io, newest[1])
        if later.table_uuid == first.metadata.table_uuid:
            return Done(first)
        return _withdraw(io, location, first)
    except Exception as e:  # noqa: BLE001 - the version is published, whatever this look runs into
        return unknown(f"table {location}", e)


def _already_exists(location: str) -> TableAlreadyExistsError:
    return TableAlreadyExistsError(f"folder {location} already holds a table")


def commit_next_version(
    io: FileIO,
    location: str,
    base: TableVersion,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
) -> Outcome[TableVersion]:
    """Publish the version after `base`.

    Return `Refused` with a `CommitConflictError` if that version already exists.
    """
    try:
        metadata = next_metadata(base.metadata, base.metadata_location, requirements, updates)
        if metadata is base.metadata:
            return Done(base)
        check_metadata(metadata, location)
    except IcebergError as e:
        return Refused(e)
    version = base.version + 1
    suffix = SUFFIXES[1] if _is_gzipped(base.metadata) else SUFFIXES[0]
    file = f"{versions_folder(location)}/v{version}{suffix}"
    following = TableVersion(version=version, metadata_location=file, metadata=metadata)
    outcome = _publish(io, location, following)
    if isinstance(outcome, Done):
        outcome = _outcome_after_publish(io, location, base, following)
    if isinstance(outcome, Done):
        _write_hint(io, location, version)
        own = OwnFolders(folders=(location,))
        delete_trimmed_metadata(io, own, base.metadata, metadata)
    return outcome


def _is_gzipped(base: TableMetadata) -> bool:
    """Return whether the version after the base is compressed.

    The properties of the base decide, not those of the new metadata, so that concurrent writers
    race for the same file name. If the base has an invalid codec, the new metadata may correct the
    codec.
    """
    try:
        return metadata_codec(base.properties) == "gzip"
    except InvalidRequestError:
        return False


def _publish(io: FileIO, location: str, new: TableVersion) -> Outcome[TableVersion]:
    """Create the version's file, which is the swap; `Refused` if another writer has the version."""
    file = new.metadata_location
    others = [f for f in version_files(location, new.version) if f != file]
    conflict = CommitConflictError(
        f"version {new.version} of table {location} was published by another writer; refresh and "
        "retry"
    )
    try:
        if any(io.exists(f) for f in others):
            return Refused(conflict)
    except IcebergError as e:
        return Refused(e)
    try:
        write_table_metadata(io, new.metadata, file)
    except FileNotWrittenError as e:
        return Refused(e)
    except StorageError as e:
        if (failure := _outcome_of_failed_write(io, new, conflict, e)) is not None:
            return failure
    except Exception as e:  # noqa: BLE001 - the file may be there, whatever it is
        return unknown(f"table {location}", e)
    try:
        if any(io.exists(f) for f in others):
            # a writer that changes the codec has created the other name at the same moment, and
            # does not check again
            return _withdraw(io, location, new)
    except Exception as e:  # noqa: BLE001
        return unknown(f"table {location}", e)
    return Done(new)


def _outcome_of_failed_write(
    io: FileIO, new: TableVersion, conflict: CommitConflictError, error: StorageError
) -> Refused | Unknown | None:
    """Return the outcome of a failed write, or None if it published our file."""
    file = new.metadata_location
    try:
        if not io.exists(file):
            if isinstance(error, FileAlreadyExistsError):
                return Refused(caused_by(conflict, error))
            # the file's absence proves nothing: a request that timed out may still be carried out
            return unknown(f"{file} may yet be published", error)
        current_metadata = read_table_metadata(io, file)
    except Exception as e:  # noqa: BLE001 - whatever keeps us from looking
        return unknown(f"{file} may have been published ({error}), and looking failed", e)
    if metadata_to_json(current_metadata) == metadata_to_json(new.metadata):
        return None
    # another writer owns the name for good
    return Refused(caused_by(conflict, error))


def _outcome_after_publish(
    io: FileIO, location: str, base: TableVersion, new: TableVersion
) -> Outcome[TableVersion]:
    """Return `Done` if the published version is in the table's history, otherwise `Refused` or
    `Unknown`.

    If later commits have deleted the old versions, or the table was dropped, the name after an old
    base is free again. A version that takes such a name is not part of the table.
    """
    try:
        hint = hinted_version(io, location)
        base_is_there = _is_unchanged(io, base)
        if base_is_there and (hint is None or hint <= new.version):
            return Done(new)
        current = load_version(io, location)
        if current is None:
            return unknown(f"table {location}", NoSuchTableError("it was dropped in the meantime"))
        if base_is_there and current.metadata_location == new.metadata_location:
            # the hint is wrong
            return Done(new)
        match _descends_from(current, base, new):
            case True:
                return Done(new)
            case False:
                return _withdraw(io, location, new)
            case None:
                return _unknown_after_later_versions(new)
    except Exception as e:  # noqa: BLE001 - the version is published, whatever this look runs into
        return unknown(f"table {location}", e)


def _unknown_after_later_versions(new: TableVersion) -> Unknown:
    return unknown(
        new.metadata_location,
        CommitConflictError("later versions do not tell whether they were made from this one"),
    )


def _is_unchanged(io: FileIO, version: TableVersion) -> bool:
    try:
        metadata = read_table_metadata(io, version.metadata_location)
    except StorageError:
        # the file may have been deleted: by a commit on top of our version, or long ago
        if io.exists(version.metadata_location):
            raise
        return False
    return (metadata.table_uuid, metadata.last_updated_ms) == (
        version.metadata.table_uuid,
        version.metadata.last_updated_ms,
    )


def _descends_from(current: TableVersion, base: TableVersion, new: TableVersion) -> bool | None:
    """Return whether the newest version descends from `new`, or None if its metadata cannot tell.

    The caller asks if the base was removed or replaced, or if there are versions after `new`.
    """
    metadata = current.metadata
    if metadata.table_uuid != new.metadata.table_uuid or current.version == new.version:
        # the table was dropped and perhaps recreated, or the other file name of this version takes
        # precedence
        return False
    if (logged_ms := _logged_time(metadata, new.metadata_location)) is not None:
        return logged_ms == new.metadata.last_updated_ms
    new_snapshots = [
        s for s in new.metadata.snapshots if s.snapshot_id not in base.metadata.snapshot_by_id
    ]
    if not new_snapshots:
        return None
    if all(s.snapshot_id in metadata.snapshot_by_id for s in new_snapshots):
        return True
    # a sequence number is assigned once (specification, "Sequence Numbers"); version 1 has none
    sequence_numbers = {s.sequence_number for s in metadata.snapshots} - {0}
    return False if any(s.sequence_number in sequence_numbers for s in new_snapshots) else None


def _logged_time(metadata: TableMetadata, file: str) -> int | None:
    log = {e.metadata_file: e.timestamp_ms for e in metadata.metadata_log}
    return log.get(file)


def _withdraw(io: FileIO, location: str, new: TableVersion) -> Refused | Unknown:
    """Remove a version that is not in the table; `Unknown` if another writer has built on it.

    A writer that has read our version publishes the next version and then checks its base. So
    either we see the next version after we deleted ours, or the other writer sees that our version
    is deleted.
    """
    io.delete(new.metadata_location)
    for file in version_files(location, new.version + 1):
        if io.exists(file):
            logged_ms = _logged_time(read_table_metadata(io, file), new.metadata_location)
            if logged_ms == new.metadata.last_updated_ms:
                return _unknown_after_later_versions(new)
    return Refused(
        CommitConflictError(
            f"table {location} moved on from version {new.version - 1}, or was dropped; refresh "
            "and retry"
        )
    )


def _write_hint(io: FileIO, location: str, version: int) -> None:
    # readers find the current version without the hint
    with after_commit(f"the version hint of table {location}"):
        io.write_bytes(hint_file(location), str(version).encode("ascii"))


def drop_versions(io: FileIO, location: str) -> bool:
    """Remove the table from a folder and keep all other files; return False if there was no table.

    The last metadata is kept as `dropped-v<N>-<uuid>.metadata.json`, so that the table can be
    registered in another catalog. The oldest versions are deleted first, so the table stays
    complete until the last version is deleted. Raise `CommitStateUnknownError` if a request failed
    and it cannot be found out whether the table is still there.
    """
    current = load_version(io, location)
    if current is None:
        return False
    try:
        _drop_all_versions(io, location, current)
    except StorageError as e:
        try:
            is_there = load_version(io, location) is not None
        except IcebergError as unreadable:
            _log.info("could not look at table %s: %s", location, unreadable)
            raise unknown_change(f"drop of table {location}", e) from e
        if is_there:
            raise
        _log.info("table %s was dropped, although: %s", location, e)
    return True


def _drop_all_versions(io: FileIO, location: str, newest: TableVersion) -> None:
    current: TableVersion | None = newest
    while current is not None:
        _copy_for_recovery(io, location, current)
        io.delete(hint_file(location))
        for version, file in sorted(all_versions(io, location)):
            if version <= current.version:
                io.delete(file)
        # also drop a commit that was published during this drop
        current = load_version(io, location)


def _copy_for_recovery(io: FileIO, location: str, current: TableVersion) -> None:
    name = f"{_DROPPED}{current.version}-{current.metadata.table_uuid}.metadata.json"
    try:
        write_table_metadata(io, current.metadata, f"{versions_folder(location)}/{name}")
    except FileAlreadyExistsError:
        # an interrupted drop has already written the file
        return


def check_metadata(metadata: TableMetadata, location: str) -> None:
    """Raise an `IcebergError` if no table in this folder can have this metadata."""
    if metadata.format_version > _MAX_FORMAT_VERSION and not ROOTS_IN_FOLDERS.of(
        metadata.properties
    ):
        raise UnsupportedFeatureError(
            f"table {location} cannot have format version {metadata.format_version}, because "
            "tables of type hadoop and tables loaded by path have at most version "
            f"{_MAX_FORMAT_VERSION}; use another catalog, or set the property "
            f"{ROOTS_IN_FOLDERS.name} to true"
        )
    if not _same_place(metadata.location, location):
        raise InvalidRequestError(
            f"table in folder {location}: its location cannot be {metadata.location}; a table of "
            "a file system stays "
            "in its folder (a moved or copied one can be read, not written)"
        )
    if WRITE_METADATA_PATH in metadata.properties:
        raise InvalidRequestError(
            f"table {location}: property '{WRITE_METADATA_PATH}' cannot be set; the metadata of a "
            "table of a "
            "file system is found in its folder only"
        )
    # an invalid codec would block the table: later versions would have no file name
    metadata_codec(metadata.properties)


def _same_place(a: str, b: str) -> bool:
    if a.rstrip("/") == b.rstrip("/"):
        return True
    if is_local(a) and is_local(b):
        return os.path.realpath(local_path(a)) == os.path.realpath(local_path(b))
    return normalized_location(a.rstrip("/")) == normalized_location(b.rstrip("/"))
