"""The stores whose credentials tasks of the JVM renew, by a handle that tasks send to the driver.

The driver asks the source that the catalog registered
(`storage/credentials/credential_renewal.py`), so many tasks cause one request to the catalog's
server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.credentials.credential_renewal import (
    RENEWAL,
    CredentialSource,
    source_of,
)
from iceberg_pyspark.storage.credentials.vended_credentials import properties_at
from iceberg_pyspark.storage.lru_map import LruMap

_stores: LruMap[str, tuple[str, Mapping[str, str], CredentialSource]] = LruMap(1000)


def register_store(location: str, properties: Mapping[str, str]) -> str | None:
    """Return the handle of a location's store, or None if its credentials cannot be renewed.

    `properties` are the table's storage properties. The handle is equal for equal sources and
    stores, and cannot be guessed.
    """
    source = source_of(properties)
    if source is None:
        return None
    bucket = location.partition("://")[2].partition("/")[0]
    handle = hashlib.sha256(f"{bucket}\n{properties[RENEWAL]}".encode()).hexdigest()
    _stores.put(handle, (location, properties, source))
    return handle


def renewed_properties(handle: str) -> tuple[str, Mapping[str, str]]:
    """Return a location in the store, and its properties with current credentials.

    Raises an `IcebergError` if there are none.
    """
    store = _stores.get(handle)
    if store is None:
        raise StorageError("the driver has no source of new credentials for this store")
    location, properties, source = store
    return location, properties_at(location, source.renew(properties))
