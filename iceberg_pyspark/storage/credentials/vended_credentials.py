"""Selects the storage properties for a location: the table's, or those vended for a prefix.

A REST catalog may vend credentials for some locations only (`storage-credentials` of its answer).
They are passed as one storage property, `storage.credentials`: the JSON list of the answer, with a
`prefix` and a `config` in each entry. The longest prefix wins; it must end at the end of a folder
name.

Select the storage properties for a process that accesses one store only.

A catalog may have keys for several clouds, and vend credentials for more prefixes than a table
uses. Executors get only the properties of the table's own store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from iceberg_pyspark.errors import InvalidMetadataError, StorageError
from iceberg_pyspark.storage.credentials.server_endpoints import with_vended
from iceberg_pyspark.storage.files.local import is_local
from iceberg_pyspark.storage.files.places import EQUAL_SCHEMES, is_below, is_in_store

_OF_EVERY_STORE = ("io.", "storage.")
_OF_CLIENTS = ("region", "access-key-id", "secret-access-key", "session-token", "profile-name")
"""The properties of all AWS clients; other `client.` properties are not for stores."""

_OF_SCHEME = {
    "s3": ("s3.", *(f"client.{name}" for name in _OF_CLIENTS)),
    "gs": ("gcs.",),
    "abfs": ("adls.",),
    "az": ("adls.",),
    "hdfs": ("hdfs.",),
    "hf": ("hf.", "fsspec.hf."),
}
_OF_ACCOUNT = ("adls.sas-token.", "adls.connection-string.", "adls.sas-token-expires-at-ms.")


def properties_of_store(location: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the storage properties for a location's store: for its scheme, account and prefixes.

    >>> both = {"s3.region": "r", "gcs.oauth2.token": "t", "io.manifest.cache-enabled": "true"}
    >>> properties_of_store("s3a://b/t", both)
    {'s3.region': 'r', 'io.manifest.cache-enabled': 'true'}
    """
    scheme, host = _scheme_and_host(location)
    prefixes = (*_OF_EVERY_STORE, *_OF_SCHEME.get(scheme, (f"fsspec.{scheme}.",)))
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


VENDED_CREDENTIALS = "storage.credentials"
"""The storage property with the credentials that a catalog vends by prefix."""


def properties_at(location: str, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties for one location; properties vended for it override the table's.

    An address of the store that the server has set gets only the server's credentials
    (`server_endpoints.py`); raise `LocationRefusedError` if it has sent none.

    >>> vended = '[{"prefix": "s3://b/t", "config": {"s3.access-key-id": "k"}}]'
    >>> properties_at("s3://b/t/data/f", {"s3.region": "r", "storage.credentials": vended})
    {'s3.region': 'r', 's3.access-key-id': 'k'}
    >>> properties_at("s3://b/t2/data/f", {"s3.region": "r", "storage.credentials": vended})
    {'s3.region': 'r'}
    """
    text = properties.get(VENDED_CREDENTIALS)
    if text is None:
        return with_vended(location, properties, {})
    own = {k: v for k, v in properties.items() if k != VENDED_CREDENTIALS}
    entry = _entry_at(location, text)
    return with_vended(location, own, {} if entry is None else dict(entry[1]))


def prefix_at(location: str, properties: Mapping[str, str]) -> str | None:
    """Return the prefix whose credentials apply to a location, or None if the table's own apply."""
    text = properties.get(VENDED_CREDENTIALS)
    entry = None if text is None else _entry_at(location, text)
    return None if entry is None else entry[0]


def _entry_at(location: str, text: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    return next((entry for entry in vended_entries(text) if _is_for(entry[0], location)), None)


def _is_for(prefix: str, location: str) -> bool:
    scheme, separator, rest = prefix.partition("://")
    if not (separator and rest):
        # `s3` and `s3://` apply to all stores of the kind
        return location.partition("://")[0].lower() == scheme.lower()
    return is_below(location, prefix)


@lru_cache(maxsize=64)
def vended_entries(text: str) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Return the prefixes with their properties, longest first; raise `InvalidMetadataError`."""
    try:
        entries = [
            (str(e["prefix"]), tuple((str(k), str(v)) for k, v in e["config"].items()))
            for e in json.loads(text)
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        # not chained: the text contains secrets
        raise InvalidMetadataError(
            f"{VENDED_CREDENTIALS} is not a list of objects with 'prefix' and 'config' "
            f"({type(e).__name__})"
        ) from None
    return tuple(sorted(entries, key=lambda entry: len(entry[0]), reverse=True))
