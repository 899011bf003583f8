"""The location of a new table or view: a folder in which no other one has its metadata."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.errors import IcebergError, InvalidRequestError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.storage.own_folders import is_metadata_file

_log = get_logger(__name__)


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
