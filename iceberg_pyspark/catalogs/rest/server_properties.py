"""Decides which of the server's properties are accepted.

A server may set how the storage of a table is reached; `storage/credentials/server_endpoints.py`
decides with whose credentials. A server may not choose code (a class named in properties is never
loaded), the locations that a table may read, one of the user's own identities, or how the client
reaches and trusts the server. Addresses of this machine or of its cloud's metadata service are
refused, also by a host name that resolves to one, unless the catalog itself is on this machine or
the user's own configuration has the same value. A name is resolved when the property arrives; the
libraries that connect to the name later resolve it themselves, so a name that changes in between is
not noticed.

Storage properties of a table: the catalog's, then the server's, then vended credentials.

Open API specification of the REST catalog, `LoadTableResult` and `StorageCredential`. Later
properties replace earlier ones. Credentials apply to location prefixes:
`storage/credentials/vended_credentials.py` chooses the credentials for a location.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from urllib.parse import unquote, urljoin, urlsplit

from iceberg_pyspark.catalogs.catalog_properties import CatalogProperties, storage_properties
from iceberg_pyspark.catalogs.rest.answers import config_of
from iceberg_pyspark.errors import CatalogError
from iceberg_pyspark.redaction import redact_uri
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.storage.credentials.server_endpoints import (
    SERVER_PROPERTIES,
    server_property_names,
)
from iceberg_pyspark.storage.credentials.vended_credentials import VENDED_CREDENTIALS
from iceberg_pyspark.storage.store_properties import LOCATION_OPTIONS


def table_storage_properties(
    answer: JsonObject, *, catalog: str, uri: str, properties: Mapping[str, str]
) -> CatalogProperties:
    """Return the storage properties of the table in an answer; `properties` are the catalog's."""
    table_properties = taken_properties(catalog, uri, config_of(answer, "config"), properties)
    before = storage_properties(properties)
    sent = storage_properties(table_properties)
    servers = server_property_names(sent, before, before.get(SERVER_PROPERTIES))
    all_properties = {**before, **sent, SERVER_PROPERTIES: servers}
    credentials = vended_credentials(answer, catalog=catalog, uri=uri, properties=properties)
    return CatalogProperties(
        all_properties
        if credentials is None
        else {**all_properties, VENDED_CREDENTIALS: credentials}
    )


def vended_credentials(
    answer: JsonObject, *, catalog: str, uri: str, properties: Mapping[str, str]
) -> str | None:
    """Return the credentials in an answer as one storage property, or None if there are none.

    `properties` are the catalog's.
    """

    def vended_properties(credential: JsonObject) -> dict[str, str]:
        config = config_of(credential, "config")
        return dict(storage_properties(taken_properties(catalog, uri, config, properties)))

    credentials = [
        {"prefix": o.string("prefix"), "config": vended_properties(o)}
        for o in answer.objects("storage-credentials")
    ]
    return json.dumps(credentials, separators=(",", ":")) if credentials else None


_CLASSES = ("impl", "factory", "credentials-provider", "signer", "auth.type", "reporter")
_IDENTITIES = ("profile-name", "kerberos_ticket")
"""The ends of properties that choose one of the user's own credentials."""

# this client decides itself how it uses, renews and signs with a table's credentials: `storage.`
_OWN = ("rest.", "auth.", "header.", "ssl.", "urn:ietf:params:oauth:", "storage.", "fsspec.", "hf.")
_KEY_MANAGEMENT = ("encryption.", "kms.")
"""The user alone chooses which service gets and gives keys, and what code calls it."""
_OWN_NAMES = (
    *("type", "auth", "credential", "token", "scope", "audience", "resource", "oauth2-server-uri"),
    *LOCATION_OPTIONS,
)
_ADDRESSES = ("endpoint", "uri", "url", "host", "authority")
_PARTS_OF_HOSTS = ("region", "account-name", "account.name", "tenant-id", "blob-storage-scheme")
_PARTS_OF_CONNECTIONS = re.compile(
    r"(?:^|;)\s*(?:accountname|defaultendpointsprotocol)\s*=([^;]*)", re.IGNORECASE
)
_NO_PART_OF_HOST = re.compile(r"[^A-Za-z0-9._-]")
_AUTHORITY = re.compile(r"(?:^|=|([a-z][a-z0-9+.-]*)?:)//+([^/?#;,]*)", re.IGNORECASE)
_RESOLVED_SCHEMES = ("", "http", "https")
"""Schemes of addresses whose host is a name of the network; the name of a bucket is not."""
_WITHOUT_SLASHES = re.compile(r"^https?:", re.IGNORECASE)
_SUFFIX = re.compile(r"(?:^|;)endpointsuffix=\.?([^/?#;,]*)", re.IGNORECASE)
_COMPLETED_DOMAINS = ("", "localhost", "internal", "google.internal", "ec2.internal")
"""Domains in which the name of a bucket or an account could be one of a metadata service."""
_NUMBER = re.compile("[0-9]+|0x[0-9a-f]*")
_METADATA_SERVICE = ipaddress.IPv6Address("fd00:ec2::254")
"""The address of AWS's metadata service over IPv6; its IPv4 address is link-local."""
_RESOLUTION_S = 60
"""How long a resolved name is remembered: every load of a table repeats its store's address."""


def taken_properties(
    catalog: str, catalog_uri: str, offered: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """Return the server's properties that a catalog accepts.

    `own` contains the properties that the catalog has already, which need no check. Raise
    `CatalogError` for an address of this machine or its network, or of another catalog server.
    """
    accepted_properties = {k: v for k, v in offered.items() if not _is_left_out(k)}
    for key, value in accepted_properties.items():
        if own.get(key) != value:
            _check_address(catalog, catalog_uri, key, value)
    return accepted_properties


def _is_left_out(key: str) -> bool:
    return (
        key in _OWN_NAMES
        or key.startswith((*_OWN, *_KEY_MANAGEMENT))
        or key.endswith((*_CLASSES, *_IDENTITIES))
        or "proxy" in key
    )


def _check_address(catalog: str, catalog_uri: str, key: str, value: str) -> None:
    own = urlsplit(catalog_uri)
    if key == "uri":
        other = urlsplit(urljoin(f"{catalog_uri}/", value))
        if (other.scheme, other.netloc) != (own.scheme, own.netloc):
            raise CatalogError(
                f"catalog '{catalog}': its server sets '{key}' to another server, "
                f"{redact_uri(value)}, which would get the catalog's credentials; set '{key}' "
                "yourself if you trust that server"
            )
        return
    for part in _parts_of_addresses(key, value):
        if _NO_PART_OF_HOST.search(part):
            raise CatalogError(
                f"catalog '{catalog}': its server sets '{key}' to {part!r:.80}, which would be "
                "part of a store's address and may hold letters, digits, '.', '-' and '_' only; "
                f"set '{key}' of the catalog yourself"
            )
    if _is_inner(own.hostname or ""):
        return
    for host, is_resolved in _hosts(key, value):
        is_inner = _is_inner(host) or (is_resolved and bool(value) and _completes_inner(host))
        address = host if is_inner else (_inner_address(host) if is_resolved else None)
        if address is None:
            continue
        what = "" if address == host else f"{address} by name, "
        raise CatalogError(
            f"catalog '{catalog}': its server sets '{key}' to {redact_uri(value)}, {what}an "
            "address of this machine or its network's own; if the address is correct, set the "
            "property of the catalog to the same value yourself"
        )


def _parts_of_addresses(key: str, value: str) -> Sequence[str]:
    """Return the texts that would become a part of a store's address unchanged."""
    if key.endswith(_PARTS_OF_HOSTS):
        return (value,)
    if key.startswith("adls.connection-string"):
        return [part.strip() for part in _PARTS_OF_CONNECTIONS.findall(value)]
    return ()


def _completes_inner(host: str) -> bool:
    """Return whether the name of a bucket or an account before a host can make it an inner one.

    `0.0.1` is such a host, and other incomplete addresses; `10.0.0.1` is not.
    """
    domain = host.lstrip(".")
    if domain in _COMPLETED_DOMAINS:
        return True
    try:
        ipaddress.ip_address(domain)
    except ValueError:
        return _NUMBER.fullmatch(domain.rpartition(".")[2]) is not None
    return host != domain


def _hosts(key: str, value: str) -> Iterator[tuple[str, bool]]:
    """Yield all hosts that a client could find in a property's value.

    With each host, yield whether a client would ask the network for the host's address. Some
    properties contain a host without a scheme. A connection string may contain several hosts, and
    the suffix of a host. Clients treat a backslash as a slash, ignore white space, decode percent
    escapes, and accept `http:` without slashes.
    """
    text = "".join(unquote(value).replace("\\", "/").split())
    authorities = _AUTHORITY.findall(text)
    if key.endswith(_ADDRESSES) and not authorities:
        authorities.append(("", _WITHOUT_SLASHES.sub("", text).partition("/")[0]))
    authorities += [("", suffix) for suffix in _SUFFIX.findall(text)]
    for scheme, authority in authorities:
        is_resolved = key.endswith(_ADDRESSES) or scheme.lower() in _RESOLVED_SCHEMES
        yield _host(authority), is_resolved


def _host(authority: str) -> str:
    place = unicodedata.normalize("NFKC", authority).rpartition("@")[2].lower()
    if place.startswith("["):
        return place[1:].partition("]")[0].partition("%")[0]
    return place.partition(":")[0].rstrip(".")


def _is_inner(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost") or host.startswith("metadata."):
        return True
    address = _numeric(host)
    return address is not None and _is_inner_address(address)


def _inner_address(host: str) -> str | None:
    """Return an inner address to which a name resolves, or None, also if it does not resolve."""
    if not host or _numeric(host) is not None:
        return None
    return _resolved_inner_address(host, int(time.monotonic() // _RESOLUTION_S))


@lru_cache(maxsize=256)
def _resolved_inner_address(host: str, _period: int) -> str | None:
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        # the store's client will say that there is no such host
        return None
    for *_, place in answers:
        address = _numeric(str(place[0]).partition("%")[0])
        if address is not None and _is_inner_address(address):
            return str(address)
    return None


def _is_inner_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address == _METADATA_SERVICE
    )


def _numeric(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            # 127.1, 0x7f000001 and 2130706433 mean the same address as 127.0.0.1
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    mapped_address = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped_address is None else mapped_address
