"""Select the storage properties for a process that accesses one store only.

A catalog may have keys for several clouds, and vend credentials for more prefixes than a table
uses. Executors get only the properties of the table's own store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.credentials.vended_credentials import (
    VENDED_CREDENTIALS,
    vended_entries,
)
from iceberg_pyspark.storage.files.local import is_local
from iceberg_pyspark.storage.files.places import EQUAL_SCHEMES, is_in_store

_OF_EVERY_STORE = ("io.", "storage.")
_OF_CLIENTS = ("region", "access-key-id", "secret-access-key", "session-token", "profile-name")
"""The properties of all AWS clients; other `client.` properties are not for stores."""

_OF_SCHEME = {
    "s3": ("s3.", *(f"client.{name}" for name in _OF_CLIENTS)),
    "gs": ("gcs.",),
    "abfs": ("adls.",),
    "az": ("adls.",),
    "hdfs": ("hdfs.",),
}
_OF_ACCOUNT = ("adls.sas-token.", "adls.connection-string.", "adls.sas-token-expires-at-ms.")


def properties_of_store(location: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the storage properties for a location's store: for its scheme, account and prefixes.

    >>> both = {"s3.region": "r", "gcs.oauth2.token": "t", "io.manifest.cache-enabled": "true"}
    >>> properties_of_store("s3a://b/t", both)
    {'s3.region': 'r', 'io.manifest.cache-enabled': 'true'}
    """
    scheme, host = _scheme_and_host(location)
    prefixes = (*_OF_EVERY_STORE, *_OF_SCHEME.get(scheme, ()))
    own_properties = {
        name: value
        for name, value in properties.items()
        if name.startswith(prefixes) and name != VENDED_CREDENTIALS and _is_of_host(name, host)
    }
    if (credentials := properties.get(VENDED_CREDENTIALS)) is not None:
        entries = [
            {"prefix": prefix, "config": properties_of_store(location, dict(config))}
            for prefix, config in vended_entries(credentials)
            if _may_be_for(prefix, location, scheme)
        ]
        if entries:
            own_properties[VENDED_CREDENTIALS] = json.dumps(entries, separators=(",", ":"))
    return own_properties


def _scheme_and_host(location: str) -> tuple[str, str]:
    if is_local(location):
        return "file", ""
    scheme, _, rest = location.partition("://")
    kind = scheme.lower()
    return EQUAL_SCHEMES.get(kind, kind), rest.partition("/")[0].rpartition("@")[2]


def _is_of_host(name: str, host: str) -> bool:
    """Return whether a property is for the host's account or for no particular account."""
    for start in _OF_ACCOUNT:
        if name.startswith(start):
            return name[len(start) :] in (host, host.partition(".")[0])
    return True


def _may_be_for(prefix: str, location: str, scheme: str) -> bool:
    own, separator, rest = prefix.partition("://")
    if not (separator and rest):
        # `s3` and `s3://` apply to all stores of the kind
        return EQUAL_SCHEMES.get(own.lower(), own.lower()) == scheme
    try:
        return is_in_store(prefix, location)
    except StorageError:
        return False
