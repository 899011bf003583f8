"""The warehouse folder, and the default locations of tables in it."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.identifiers import check_folder_name
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.table_properties import bool_property

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


def without_uuid(location: str) -> str:
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
