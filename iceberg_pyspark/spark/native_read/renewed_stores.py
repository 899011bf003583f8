"""The stores whose credentials tasks of the JVM renew, by a handle that tasks send to the driver.

The driver asks the source that the catalog registered (`storage/credential_renewal.py`), so many
tasks cause one request to the catalog's server.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.spark.bridge.protocol.credentials import CredentialsRenew, RenewedCredentials
from iceberg_pyspark.spark.native_read.hadoop_options import s3_keys
from iceberg_pyspark.storage.credential_renewal import (
    RENEWAL,
    CredentialSource,
    end_of,
    source_of,
)
from iceberg_pyspark.storage.vended_credentials import properties_at

_MOST = 1000
_lock = threading.Lock()
_stores: OrderedDict[str, tuple[str, Mapping[str, str], CredentialSource]] = OrderedDict()


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
    with _lock:
        _stores[handle] = location, properties, source
        _stores.move_to_end(handle)
        while len(_stores) > _MOST:
            _stores.popitem(last=False)
    return handle


def renew_credentials(_sessions: object, q: CredentialsRenew) -> RenewedCredentials:
    """Return the current credentials of a store; raise an `IcebergError` if there are none."""
    with _lock:
        store = _stores.get(q.renewal)
    if store is None:
        raise StorageError("the driver has no source of new credentials for this store")
    location, properties, source = store
    current = properties_at(location, source.renewed(properties))
    key, secret, token = s3_keys(current)
    if key is None or secret is None:
        raise StorageError("the catalog's server sent no credentials for this location")
    end_s = end_of(current)
    return RenewedCredentials(
        access_key_id=key,
        secret_access_key=secret,
        session_token=token,
        expires_at_ms=None if end_s is None else int(end_s * 1000),
    )
