"""Opens a SQL catalog by its properties; by default an SQLite file in the warehouse folder."""

from __future__ import annotations

import os
from collections.abc import Mapping

from iceberg_pyspark.catalogs.sql.catalog import SqlCatalog
from iceberg_pyspark.catalogs.sql.database import sqlite_uri
from iceberg_pyspark.catalogs.warehouse import WAREHOUSE, absolute_location
from iceberg_pyspark.errors import InvalidRequestError, StorageError
from iceberg_pyspark.storage.files.local import is_local, local_path

EMBEDDED_WAREHOUSE = "iceberg-warehouse"
EMBEDDED_DATABASE = "catalog.db"


def open_sql_catalog(name: str, properties: Mapping[str, str]) -> SqlCatalog:
    """Open the catalog; create an embedded database and its folder if necessary."""
    return SqlCatalog(
        name, properties if properties.get("uri") else _embedded_properties(name, properties)
    )


def _embedded_properties(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a catalog without a URI: an SQLite file in its warehouse folder."""
    warehouse = absolute_location(properties.get(WAREHOUSE) or EMBEDDED_WAREHOUSE)
    if not is_local(warehouse):
        raise InvalidRequestError(
            f"catalog '{name}' needs the property 'uri', a database URL: no database can lie in "
            f"{warehouse}"
        )
    folder = local_path(warehouse)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as e:
        raise StorageError(
            f"cannot make the folder {folder} of catalog '{name}': {e.strerror}; set 'warehouse' "
            "to another one"
        ) from e
    return {
        **properties,
        WAREHOUSE: warehouse,
        "uri": sqlite_uri(f"{folder}/{EMBEDDED_DATABASE}"),
    }
