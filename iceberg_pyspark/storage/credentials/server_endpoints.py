"""Sends a user's keys only to the addresses of stores that the user has set.

The server of a catalog may set the address of a table's store. A server of an attacker, or one that
an attacker has changed, would get the keys of the user's properties and of the environment with it:
so an address of the server is used with credentials of the server only. In a location of Azure, the
host is such an address too, unless it is one of Azure's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache

from iceberg_pyspark.errors import LocationRefusedError
from iceberg_pyspark.redaction import redact_properties
from iceberg_pyspark.storage.credentials.table_services import is_signed_remotely
from iceberg_pyspark.storage.files.places import EQUAL_SCHEMES
from iceberg_pyspark.storage.store_properties import azure_settings, store_settings

SERVER_PROPERTIES = "storage.server-properties"
"""The storage property with the names of the addresses and credentials that a server has set."""

# the first names of properties; those of Azure may go on with an account
ADDRESSES: Mapping[str, tuple[str, ...]] = {
    "s3": ("s3.endpoint",),
    "gs": ("gcs.service.host",),
    "abfs": (
        *("adls.account-host", "adls.blob-storage-authority", "adls.blob-storage-scheme"),
        "adls.connection-string",
    ),
}
"""The storage properties, by the kind of store, that decide which server gets the requests."""

CREDENTIALS: Mapping[str, tuple[str, ...]] = {
    "s3": tuple(
        f"{prefix}.{name}"
        for prefix in ("s3", "client")
        for name in ("access-key-id", "secret-access-key", "session-token", "profile-name")
    ),
    "gs": ("gcs.oauth2.token",),
    "abfs": (
        *("adls.sas-token", "adls.token", "adls.account-key", "adls.auth.shared-key.account.key"),
        *("adls.connection-string", "adls.tenant-id", "adls.client-id", "adls.client-secret"),
    ),
}
"""The storage properties, by the kind of store, with which requests are authorised."""

_ADDRESSES = tuple(name for names in ADDRESSES.values() for name in names)
_CREDENTIALS = tuple(name for names in CREDENTIALS.values() for name in names)
_ALL = (*_ADDRESSES, *_CREDENTIALS)
_ANONYMOUS = {"s3": "s3.anonymous", "gs": "gcs.no-auth"}
_HOST_OF_AZURE = "adls.account-host"
_AZURES_OWN = "account.dfs.core.windows.net"
_CLOUDS_OF_AZURE = tuple(
    f".{domain}"
    for domain in (
        *("core.windows.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net"),
        *("storage.azure.net", "fabric.microsoft.com"),
    )
)


def server_property_names(
    sent: Mapping[str, str], properties: Mapping[str, str], before: str | None = None
) -> str:
    """Return the value of `SERVER_PROPERTIES` after a server has sent properties.

    `properties` are those that it completes, and `before` their value; an address that the user has
    set to the same value is the user's.
    """
    names = set(_names(before or "[]"))
    for name, value in sent.items():
        is_users = name not in names and properties.get(name) == value
        if not is_users if name.startswith(_ADDRESSES) else name.startswith(_CREDENTIALS):
            names.add(name)
    return _text(names)


def with_users_properties(properties: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return storage properties with those that a user gives for one read or write."""
    both = {**properties, **own}
    if (before := properties.get(SERVER_PROPERTIES)) is not None:
        both[SERVER_PROPERTIES] = _text(_names(before) - own.keys())
    return both


def of_server(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return storage properties without the addresses and credentials that are the user's."""
    text = properties.get(SERVER_PROPERTIES)
    if text is None:
        return properties
    return {k: v for k, v in properties.items() if k in _names(text) or not k.startswith(_ALL)}


def with_server_properties(
    properties: Mapping[str, str], renewed: Mapping[str, str]
) -> dict[str, str]:
    """Return storage properties in which what the server has set in either is the server's."""
    texts = [p[SERVER_PROPERTIES] for p in (properties, renewed) if SERVER_PROPERTIES in p]
    if not texts:
        return dict(properties)
    return {**properties, SERVER_PROPERTIES: _text(set().union(*map(_names, texts)))}


def with_vended(
    location: str, properties: Mapping[str, str], vended: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the properties for a location, completed by those that a server has vended for it.

    They lack the credentials that the store's address must not get. Raise `LocationRefusedError`
    if the server sets the address and sends no credentials for it.
    """
    text = properties.get(SERVER_PROPERTIES)
    if text is None:
        # only the catalogs with a server of their own set this property
        return {**properties, **vended} if vended else properties
    own = {k: v for k, v in {**properties, **vended}.items() if k != SERVER_PROPERTIES}
    scheme, _, rest = location.partition("://")
    kind, bucket = EQUAL_SCHEMES.get(scheme.lower(), scheme.lower()), rest.partition("/")[0]
    store = "abfs" if kind == "az" else kind
    if store not in ADDRESSES:
        return own
    servers = _names(text) | set(_names(server_property_names(vended, properties, text)))
    addresses = {k: v for k, v in own.items() if k in servers and k.startswith(ADDRESSES[store])}
    host = bucket.partition("@")[2]
    is_elsewhere = store == "abfs" and bool(host) and not host.endswith(_CLOUDS_OF_AZURE)
    # the server sends the location too; an address of the user's own is used whatever it says
    if is_elsewhere and not addresses and azure_settings(_AZURES_OWN, own).endpoint is None:
        addresses = {_HOST_OF_AZURE: host}
    if not addresses or (store == "s3" and is_signed_remotely(own)):
        return own
    theirs = {k: v for k, v in own.items() if k in servers or not k.startswith(CREDENTIALS[store])}
    settings = store_settings(kind, bucket, theirs)
    if settings.credentials is None and not settings.is_anonymous:
        shown = ", ".join(f"{k} = {v}" for k, v in redact_properties(addresses).items())
        anonymous = _ANONYMOUS.get(store)
        public = f", or {anonymous} to true for a public store" if anonymous else ""
        raise LocationRefusedError(
            f"{location}: the catalog's server sends its store's address ({shown}) without "
            "credentials, and yours go only to addresses that you have set; set this property of "
            f"the catalog yourself if that address may have your credentials{public}, or let the "
            "catalog's server vend credentials"
        )
    return theirs


def _text(names: Iterable[str]) -> str:
    return json.dumps(sorted(names), separators=(",", ":"))


@lru_cache(maxsize=64)
def _names(text: str) -> frozenset[str]:
    return frozenset(json.loads(text))
