"""The warehouse folder, and the folders of tables: those by default, and those that are their own.

If the pointer refers to a metadata file at `<folder>/metadata/<file>`, then `<folder>` belongs to
the table. The location in the metadata counts only if it is this folder, or the catalog's default
location for the table's name; any other location (`/`, a parent folder, another table's) does not
count.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping
from typing import Protocol

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier, check_folder_name
from iceberg_pyspark.errors import IcebergError, InvalidRequestError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.table_properties import bool_property
from iceberg_pyspark.storage.files.places import is_below
from iceberg_pyspark.storage.own_folders import OwnFolders

_log = get_logger(__name__)


_METADATA = "metadata"


class _Places(Protocol):
    """The locations that a catalog knows."""

    @property
    def properties(self) -> Mapping[str, str]: ...

    def default_table_location(self, identifier: TableIdentifier) -> str: ...


def own_folders(catalog: _Places, loaded_table: LoadedTable) -> OwnFolders:
    """Return the table's own folders; raise nothing, and leave out every doubtful folder.

    A table that is not created yet has no metadata location, so its location is trusted.
    """
    table_location, pointer = loaded_table.metadata.location, loaded_table.metadata_location
    if not pointer:
        return OwnFolders(_not_shared(catalog, table_location))
    if loaded_table.store_location is not None:
        # the pointer is an address of the catalog's server
        is_known = _is_default(catalog, loaded_table)
        return OwnFolders(_not_shared(catalog, table_location) if is_known else ())
    parent = pointer.rpartition("/")[0]
    folder, _, name = parent.rpartition("/")
    is_conventional = name == _METADATA
    folders = (folder,) if is_conventional else ()
    if not (is_conventional and _same(table_location, folder)) and _is_default(
        catalog, loaded_table
    ):
        folders = (*folders, table_location)
    return OwnFolders(
        folders=_not_shared(catalog, *folders),
        # a folder from `write.metadata.path`, in which other tables may keep files too
        metadata_folder=None if is_conventional else parent,
    )


def unique_folder(catalog: _Places, loaded_table: LoadedTable) -> str | None:
    """Return the table's location if it is a default location with a UUID, or None.

    Only the metadata says which UUID it is, so the folder may be one of another table that had the
    name before: it is not the table's own unless no other table has files in it.
    """
    if not loaded_table.metadata_location:
        return None
    location, default = loaded_table.metadata.location, _default_location(catalog, loaded_table)
    is_default = default is not None and _same(_without_uuid(location), _without_uuid(default))
    return location if is_default and _not_shared(catalog, location) else None


def _is_default(catalog: _Places, loaded_table: LoadedTable) -> bool:
    default = _default_location(catalog, loaded_table)
    return default is not None and _same(loaded_table.metadata.location, default)


def _default_location(catalog: _Places, loaded_table: LoadedTable) -> str | None:
    """Return the location that the catalog would give to a table of this name, if it is known."""
    try:
        return catalog.default_table_location(loaded_table.identifier)
    except IcebergError as e:
        _log.info("the default location of table %s is not known: %s", loaded_table.identifier, e)
        return None


def _not_shared(catalog: _Places, *folders: str) -> tuple[str, ...]:
    """Return the folders that do not contain the whole warehouse."""
    warehouse = catalog.properties.get(WAREHOUSE)
    if warehouse is None:
        return folders
    whole = absolute_location(warehouse)
    return tuple(f for f in folders if not _is_below(whole, f))


def _same(a: str, b: str) -> bool:
    return _is_below(a, b) and _is_below(b, a)


def _is_below(location: str, folder: str) -> bool:
    try:
        return is_below(location, folder)
    except IcebergError:
        return False


LOCATION = "location"
"""The namespace property that moves a namespace's tables out of the warehouse folder."""
WAREHOUSE = "warehouse"
_UNIQUE = "unique-table-location"
_UUID = re.compile("-[0-9a-f]{32}")


def absolute_location(location: str) -> str:
    """Return a location for all processes; a relative path starts at the working folder.

    >>> absolute_location("s3://bucket/warehouse/")
    's3://bucket/warehouse'
    """
    if ":" in location.split("/", 1)[0]:
        return location.rstrip("/")
    return os.path.abspath(location)


def _without_uuid(location: str) -> str:
    """Return a location without the UUID at its end that a new table gets if its folder is used.

    With the catalog property `unique-table-location`, every new table gets one.

    >>> without_uuid("/w/db/t-" + 32 * "0"), without_uuid("/w/db/t")
    ('/w/db/t', '/w/db/t')
    """
    folder = location.rstrip("/")
    end = _UUID.search(folder, max(len(folder) - 33, 0))
    return folder[: end.start()] if end else folder


def default_location(
    catalog: str,
    properties: Mapping[str, str],
    namespace_properties: Mapping[str, str],
    identifier: TableIdentifier,
    *,
    namespace_suffix: str = "",
) -> str:
    """Return `<namespace's location>/<table>`, or else `<warehouse>/<namespace levels>/<table>`.

    The databases of Hive have the suffix `.db`: `<warehouse>/<database>.db/<table>`. With the
    catalog property `unique-table-location`, the last folder is `<table>-<UUID>`, another one in
    each call, so a table never gets the folder of a renamed one. Raise `InvalidRequestError` if
    neither location is set.
    """
    for level in identifier.levels:
        check_folder_name(level)
    folder = identifier.name
    if bool_property(properties, _UNIQUE, False):
        folder = f"{folder}-{uuid.uuid4().hex}"
    if base := namespace_properties.get(LOCATION):
        return f"{base.rstrip('/')}/{folder}"
    if warehouse := properties.get(WAREHOUSE):
        folders = (*(level + namespace_suffix for level in identifier.namespace), folder)
        return f"{absolute_location(warehouse)}/{'/'.join(folders)}"
    raise InvalidRequestError(
        f"table {identifier} has no location: catalog '{catalog}' has no property 'warehouse', and "
        "the namespace has no property 'location'; set one of them, or give the table a location"
    )
