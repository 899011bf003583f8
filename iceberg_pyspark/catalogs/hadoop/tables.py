"""Tables without a catalog: creates, commits and drops their versions.

Specification, "File System Tables"; Java's HadoopTableOperations. A commit creates the file of the
next version exclusively, so only one of several concurrent writers succeeds; creating the file is
the swap. `versions.py` finds the current version, `catalog.py` and `path_tables.py` the folder of a
table's name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from iceberg_pyspark.catalogs.hadoop.versions import (
    SUFFIXES,
    TableVersion,
    all_versions,
    current_version,
    hint_file,
    hinted_version,
    load_version,
    version_files,
    versions_folder,
)
from iceberg_pyspark.catalogs.pointer_swap import delete_trimmed_metadata, next_metadata
from iceberg_pyspark.commits.outcomes import (
    Done,
    Outcome,
    Refused,
    Unknown,
    after_commit,
    caused_by,
    unknown,
)
from iceberg_pyspark.commits.requirements import TableRequirement
from iceberg_pyspark.commits.updates import TableUpdate
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
from iceberg_pyspark.spec.properties import ROOTS_IN_FOLDERS, WRITE_METADATA_PATH
from iceberg_pyspark.spec.table_metadata import TableMetadata, metadata_to_json
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.local import is_local, local_path
from iceberg_pyspark.storage.metadata_files import (
    metadata_codec,
    read_table_metadata,
    write_table_metadata,
)
from iceberg_pyspark.storage.own_folders import OwnFolders
from iceberg_pyspark.storage.places import normalized_location

_MAX_FORMAT_VERSION = 3


def create_first_version(
    io: FileIO, location: str, metadata: TableMetadata
) -> Outcome[TableVersion]:
    """Publish version 1; refused with a `TableAlreadyExistsError` where the folder is a table."""
    try:
        check_metadata(metadata, location)
        if current_version(io, location) is not None:
            return Refused(_already_exists(location))
    except IcebergError as e:
        return Refused(e)
    # always the plain name: two creators must race for the same one
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


def _outcome_after_first_publish(
    io: FileIO, location: str, first: TableVersion
) -> Outcome[TableVersion]:
    """The outcome after version 1 was published.

    The first versions of a table that commits have trimmed leave their names free: a writer that
    did not see that table took one of them.
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
    """Publish the version after `base`; refused with a `CommitConflictError` if there is one."""
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
    """Whether the version after the base is compressed.

    By what the base says, not the new metadata: writers that race for a version then race for one
    name. A codec of the base that is none is what the new metadata mends.
    """
    try:
        return metadata_codec(base.properties) == "gzip"
    except InvalidRequestError:
        return False


def _publish(io: FileIO, location: str, new: TableVersion) -> Outcome[TableVersion]:
    """Create the version's file, which is the swap: `Refused` where the version is another's."""
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
        if (failed := _outcome_of_failed_write(io, new, conflict, e)) is not None:
            return failed
    except Exception as e:  # noqa: BLE001 - the file may be there, whatever it is
        return unknown(f"table {location}", e)
    try:
        if any(io.exists(f) for f in others):
            # a writer that changes the codec took the other name in the same moment; it does not
            # look again
            return _withdraw(io, location, new)
    except Exception as e:  # noqa: BLE001
        return unknown(f"table {location}", e)
    return Done(new)


def _outcome_of_failed_write(
    io: FileIO, new: TableVersion, conflict: CommitConflictError, error: StorageError
) -> Refused | Unknown | None:
    """The outcome of a failed write; None: the file is there, and it is the one we wrote."""
    file = new.metadata_location
    try:
        if not io.exists(file):
            if isinstance(error, FileAlreadyExistsError):
                return Refused(caused_by(conflict, error))
            # absent now is no proof: a request that timed out may still be carried out
            return unknown(f"{file} may yet be published", error)
        published = read_table_metadata(io, file)
    except Exception as e:  # noqa: BLE001 - whatever keeps us from looking
        return unknown(f"{file} may have been published ({error}), and looking failed", e)
    if metadata_to_json(published) == metadata_to_json(new.metadata):
        return None
    # the name is another's for good
    return Refused(caused_by(conflict, error))


def _outcome_after_publish(
    io: FileIO, location: str, base: TableVersion, new: TableVersion
) -> Outcome[TableVersion]:
    """The outcome after a version was published: whether it is in the table's history.

    Where so many commits have passed that versions were trimmed, or the table was dropped, the
    name after an old base is free again, and nothing follows from a version that takes it.
    """
    try:
        hinted = hinted_version(io, location)
        base_is_there = _is_unchanged(io, base)
        if base_is_there and (hinted is None or hinted <= new.version):
            return Done(new)
        current = load_version(io, location)
        if current is None:
            return unknown(f"table {location}", NoSuchTableError("it was dropped in the meantime"))
        if base_is_there and current.metadata_location == new.metadata_location:
            # the hint is nonsense
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
    if not io.exists(version.metadata_location):
        return False
    try:
        metadata = read_table_metadata(io, version.metadata_location)
    except StorageError:
        # trimmed since the look: by a commit on ours, or long ago
        if io.exists(version.metadata_location):
            raise
        return False
    return (metadata.table_uuid, metadata.last_updated_ms) == (
        version.metadata.table_uuid,
        version.metadata.last_updated_ms,
    )


def _descends_from(current: TableVersion, base: TableVersion, new: TableVersion) -> bool | None:
    """Whether the table's newest version descends from `new`; None: its metadata does not show it.

    For the case that the base was removed or replaced, or that there are versions after `new`.
    """
    metadata = current.metadata
    if metadata.table_uuid != new.metadata.table_uuid or current.version == new.version:
        # dropped, and perhaps made anew; or the other name of the version is the one that counts
        return False
    if (logged := _logged_time(metadata, new.metadata_location)) is not None:
        return logged == new.metadata.last_updated_ms
    ours = [s for s in new.metadata.snapshots if s.snapshot_id not in base.metadata.snapshot_by_id]
    if not ours:
        return None
    if all(s.snapshot_id in metadata.snapshot_by_id for s in ours):
        return True
    # a sequence number is assigned once (specification, "Sequence Numbers"); version 1 has none
    sequence_numbers = {s.sequence_number for s in metadata.snapshots} - {0}
    return False if any(s.sequence_number in sequence_numbers for s in ours) else None


def _logged_time(metadata: TableMetadata, file: str) -> int | None:
    log = {e.metadata_file: e.timestamp_ms for e in metadata.metadata_log}
    return log.get(file)


def _withdraw(io: FileIO, location: str, new: TableVersion) -> Refused | Unknown:
    """Remove a version that is not in the table; unknown where another writer has built on it.

    A writer that has read it publishes the next version and then looks for its base. So either we
    see that version after ours is gone, or its writer sees that ours is.
    """
    io.delete(new.metadata_location)
    for file in version_files(location, new.version + 1):
        if io.exists(file):
            logged = _logged_time(read_table_metadata(io, file), new.metadata_location)
            if logged == new.metadata.last_updated_ms:
                return _unknown_after_later_versions(new)
    return Refused(
        CommitConflictError(
            f"table {location} moved on from version {new.version - 1}, or was dropped; refresh "
            "and retry"
        )
    )


def _write_hint(io: FileIO, location: str, version: int) -> None:
    # readers find their way without it
    with after_commit(f"the version hint of table {location}"):
        io.write_bytes(hint_file(location), str(version).encode("ascii"))


def drop_versions(io: FileIO, location: str) -> bool:
    """Take the table out of a folder; all other files stay. False: there was no table.

    The last metadata stays as `dropped-v<N>-<uuid>.metadata.json`, from which the table can be
    registered in another catalog. Versions go oldest first, so that until the last one is gone the
    table is whole.
    """
    current = load_version(io, location)
    if current is None:
        return False
    while current is not None:
        _keep_as_dropped(io, location, current)
        io.delete(hint_file(location))
        for version, file in sorted(all_versions(io, location)):
            if version <= current.version:
                io.delete(file)
        # a commit that won the race against this drop is dropped too
        current = load_version(io, location)
    return True


def _keep_as_dropped(io: FileIO, location: str, current: TableVersion) -> None:
    name = f"dropped-v{current.version}-{current.metadata.table_uuid}.metadata.json"
    try:
        write_table_metadata(io, current.metadata, f"{versions_folder(location)}/{name}")
    except FileAlreadyExistsError:
        # an interrupted drop has written it
        return


def check_metadata(metadata: TableMetadata, location: str) -> None:
    """Raise an `IcebergError` where no table in this folder can have this metadata."""
    if metadata.format_version > _MAX_FORMAT_VERSION and not ROOTS_IN_FOLDERS.of(
        metadata.properties
    ):
        raise UnsupportedFeatureError(
            f"table {location}: tables of a file system end with format version "
            f"{_MAX_FORMAT_VERSION}; use a catalog for format version {metadata.format_version}, "
            f"or set the property {ROOTS_IN_FOLDERS.name} to true to have one all the same"
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
    # an invalid codec would lock the table: no later version would have a name
    metadata_codec(metadata.properties)


def _same_place(a: str, b: str) -> bool:
    if a.rstrip("/") == b.rstrip("/"):
        return True
    if is_local(a) and is_local(b):
        return os.path.realpath(local_path(a)) == os.path.realpath(local_path(b))
    return normalized_location(a.rstrip("/")) == normalized_location(b.rstrip("/"))
