"""Converts Iceberg's storage properties (`s3.*`, `gcs.*`, `adls.*`) to settings of obstore.

An unsupported property that would change where bytes go or how they are protected is refused by
name: ignoring it could write unencrypted data or use the wrong identity. Settings without a
property come from the environment, as in the store's own tools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError

STORAGE_PREFIXES = (
    *("s3.", "gcs.", "adls.", "hdfs.", "hf.", "fsspec.", "client.", "io.", "storage."),
    *("encryption.", "kms."),
)
"""The prefixes of the names of storage properties, and of those of key management."""

ALLOW_OUTSIDE_LOCATIONS = "read.allow-outside-locations"
"""The option that allows a table to read any store; never taken from the table's own properties."""

RESTRICT_LOCATIONS = "read.restrict-locations"
"""The option that limits a table's reads to its own folders."""

LOCATION_OPTIONS = (ALLOW_OUTSIDE_LOCATIONS, RESTRICT_LOCATIONS)

PY_IO_IMPL = "py-io-impl"
"""PyIceberg's property with the class that reads and writes files."""

_FILE_IO_CLASSES = ("pyiceberg.io.fsspec.FsspecFileIO", "pyiceberg.io.pyarrow.PyArrowFileIO")

_S3_ENCRYPTION = {"s3": "AES256", "kms": "aws:kms", "dsse-kms": "aws:kms:dsse"}

_REFUSED_PROPERTIES = {
    "s3.signer": "sign requests with keys (s3.access-key-id) instead",
    "s3.role-arn": "assume the role outside and give s3.session-token",
    "client.role-arn": "assume the role outside and give s3.session-token",
    "client.assume-role.arn": "assume the role outside and give s3.session-token",
    "client.factory": "it names a Java class",
    "client.credentials-provider": "it names a Java class",
    "gcs.encryption-key": "customer keys are not supported",
    "gcs.decryption-key": "customer keys are not supported",
    "gcs.user-project": "requester-pays buckets are not supported",
}
_REFUSED_IF_TRUE = {
    "gcs.requester-pays": "requester-pays buckets are not supported",
}
# for a whole request including its body, such as a part of an upload on a slow line
_REQUEST_TIMEOUT = timedelta(minutes=5)
_CONNECT_TIMEOUT = timedelta(seconds=10)
_RETRIES = 10
# about 3,000 years in milliseconds, so that the date stays in Python's range
_LARGEST = 10**14
_RETRY_TIMEOUT = timedelta(minutes=3)
_AZURE_SUFFIX = "core.windows.net"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """The arguments of obstore's constructors; never shown, because they contain keys."""

    config: dict[str, Any] = field(repr=False)
    client_options: dict[str, Any] = field(repr=False)
    retry_config: dict[str, Any] = field(repr=False)
    credentials: dict[str, Any] | None = field(default=None, repr=False)
    """Credentials that exclude those of the environment; None means those in `config`."""

    profile: str | None = None
    endpoint: str | None = None
    """The address of the store's server; None means the cloud's own."""

    is_anonymous: bool = False
    """Whether requests carry no credentials, not even those of the environment."""


def store_settings(kind: str, bucket: str, properties: Mapping[str, str]) -> StoreSettings:
    """Return the settings of a bucket; an Azure bucket is `<container>[@<host>]`."""
    match kind:
        case "s3":
            return s3_settings(bucket, properties)
        case "gs":
            return gcs_settings(properties)
        case _:
            return azure_settings(bucket.partition("@")[2] or None, properties)


def check_file_io_class(where: str, properties: Mapping[str, str]) -> None:
    """Raise `UnsupportedFeatureError` if the property `py-io-impl` names an unknown class.

    PyIceberg's classes read the stores that this package reads, with the same properties, so its
    own clients and fsspec take their place; `where` is the catalog or table in the message.
    """
    name = properties.get(PY_IO_IMPL)
    if name and name not in _FILE_IO_CLASSES:
        raise UnsupportedFeatureError(
            f"{where}: {PY_IO_IMPL} = {name} is a class that this package does not know; remove "
            f"the property, or set it to one of {', '.join(_FILE_IO_CLASSES)}"
        )


def s3_settings(bucket: str, properties: Mapping[str, str]) -> StoreSettings:
    """Return the settings of an S3 bucket, or of a store with the same protocol."""
    _refuse("s3.", "client.", properties=properties)
    endpoint = properties.get("s3.endpoint")
    virtual = is_true(properties, "s3.force-virtual-addressing") or (
        properties.get("s3.path-style-access", "").lower() == "false"
    )
    if virtual and endpoint is not None:
        scheme, _, host = endpoint.partition("://")
        endpoint = f"{scheme}://{bucket}.{host}"
    config = _present(
        endpoint=endpoint,
        region=first_of(properties, "s3.region", "client.region"),
        virtual_hosted_style_request=virtual or None,
        skip_signature=is_true(properties, "s3.anonymous") or None,
        **_s3_encryption(properties),
    )
    client = _client_options(
        endpoint,
        connect=_seconds(properties, "s3.connect-timeout"),
        read=_seconds(properties, "s3.request-timeout"),
        proxy=properties.get("s3.proxy-uri"),
    )
    retry = _retry_config(
        retries=_number(properties, "s3.retry.num-retries"),
        min_ms=_number(properties, "s3.retry.min-wait-ms"),
        max_ms=_number(properties, "s3.retry.max-wait-ms"),
    )
    return StoreSettings(
        config=config,
        client_options=client,
        retry_config=retry,
        credentials=_s3_credentials(properties),
        profile=first_of(properties, "s3.profile-name", "client.profile-name"),
        endpoint=endpoint,
        is_anonymous=is_true(properties, "s3.anonymous"),
    )


def _s3_credentials(properties: Mapping[str, str]) -> dict[str, Any] | None:
    key = first_of(properties, "s3.access-key-id", "client.access-key-id")
    secret = first_of(properties, "s3.secret-access-key", "client.secret-access-key")
    if key is None and secret is None:
        return None
    if key is None or secret is None:
        raise InvalidRequestError(
            "s3.access-key-id and s3.secret-access-key belong together; set both or none"
        )
    return {
        "access_key_id": key,
        "secret_access_key": secret,
        "token": first_of(properties, "s3.session-token", "client.session-token"),
        "expires_at": _expiry(properties, "s3.session-token-expires-at-ms"),
    }


def _s3_encryption(properties: Mapping[str, str]) -> dict[str, str]:
    kind = properties.get("s3.sse.type", "none").lower()
    if kind != "none" and kind not in _S3_ENCRYPTION:
        raise UnsupportedFeatureError(
            f"s3.sse.type = {kind} is not supported; use none, s3, kms or dsse-kms"
        )
    return _present(
        server_side_encryption=_S3_ENCRYPTION.get(
            kind, properties.get("s3.server-side-encryption")
        ),
        sse_kms_key_id=first_of(properties, "s3.sse-kms-key-id", "s3.sse.key"),
    )


def gcs_settings(properties: Mapping[str, str]) -> StoreSettings:
    """Return the settings of a bucket of Google Cloud Storage."""
    _refuse("gcs.", properties=properties)
    host = properties.get("gcs.service.host")
    anonymous = is_true(properties, "gcs.no-auth")
    config = _present(base_url=host)
    if anonymous:
        # with the library's own option for anonymous access, uploads would still request a token
        nobody = {
            "disable_oauth": True,
            "client_email": "",
            "private_key": "",
            "private_key_id": "",
        }
        endpoint = {} if host is None else {"gcs_base_url": host}
        config = {"service_account_key": json.dumps({**nobody, **endpoint})}
    token = properties.get("gcs.oauth2.token")
    return StoreSettings(
        config=config,
        client_options=_client_options(host),
        retry_config=_retry_config(),
        credentials=None
        if token is None or anonymous
        else {"token": token, "expires_at": _expiry(properties, "gcs.oauth2.token-expires-at")},
        endpoint=host,
        is_anonymous=anonymous,
    )


def azure_settings(host: str | None, properties: Mapping[str, str]) -> StoreSettings:
    """Return the settings of an Azure container; `host` is `<account>.dfs.<suffix>` or None."""
    connection = _connection_string(_of_account(properties, "connection-string", host))
    account = first_of(properties, "adls.account-name", "adls.auth.shared-key.account.name")
    account = account or connection.get("accountname") or (host.partition(".")[0] if host else None)
    if account is None:
        raise InvalidRequestError(
            "a location of Azure without an account needs adls.account-name; or write it as "
            f"abfss://<container>@<account>.dfs.{_AZURE_SUFFIX}/<path>"
        )
    suffix = host.partition(".")[2].partition(".")[2] if host and host.count(".") > 2 else None
    endpoint = _azure_endpoint(account, suffix, connection, properties)
    config = _present(
        account_name=account,
        tenant_id=properties.get("adls.tenant-id"),
        client_id=properties.get("adls.client-id"),
        client_secret=properties.get("adls.client-secret"),
        endpoint=endpoint,
    )
    return StoreSettings(
        config=config,
        client_options=_client_options(endpoint),
        retry_config=_retry_config(),
        credentials=_azure_credentials(host or account, connection, properties),
        endpoint=endpoint,
    )


def _azure_credentials(
    host: str, connection: Mapping[str, str], properties: Mapping[str, str]
) -> dict[str, Any] | None:
    # in this order: a SAS token has the narrowest rights, and catalogs vend it
    sas = _of_account(properties, "sas-token", host)
    if sas := sas or connection.get("sharedaccesssignature"):
        end = _of_account(properties, "sas-token-expires-at-ms", host)
        name = "adls.sas-token-expires-at-ms"
        expires_at = None if end is None else _expiry({name: end}, name)
        return {"sas_token": sas, "expires_at": expires_at}
    if token := properties.get("adls.token"):
        return {"token": token, "expires_at": None}
    key = first_of(properties, "adls.account-key", "adls.auth.shared-key.account.key")
    if key := key or connection.get("accountkey"):
        return {"access_key": key, "expires_at": None}
    return None


def _azure_endpoint(
    account: str, suffix: str | None, connection: Mapping[str, str], properties: Mapping[str, str]
) -> str | None:
    if (endpoint := connection.get("blobendpoint")) is not None:
        return endpoint.rstrip("/")
    scheme = properties.get("adls.blob-storage-scheme", connection.get("defaultendpointsprotocol"))
    if (authority := properties.get("adls.blob-storage-authority")) is not None:
        # as in PyIceberg: a domain with a dot before it, or a server with many accounts
        at = f"{account}{authority}" if authority.startswith(".") else f"{authority}/{account}"
        return f"{scheme or 'https'}://{at}"
    if (host := properties.get("adls.account-host")) is not None:
        return f"{scheme or 'https'}://{host}"
    suffix = suffix or connection.get("endpointsuffix")
    return (
        None
        if suffix in (None, _AZURE_SUFFIX)
        else f"{scheme or 'https'}://{account}.blob.{suffix}"
    )


def _of_account(properties: Mapping[str, str], name: str, host: str | None) -> str | None:
    """Return a property that catalogs vend by account; some append the host's domain."""
    account = "" if host is None else host.partition(".")[0]
    return first_of(properties, f"adls.{name}.{host}", f"adls.{name}.{account}", f"adls.{name}")


def _connection_string(text: str | None) -> dict[str, str]:
    if text is None:
        return {}
    parts = (part.partition("=") for part in text.split(";") if "=" in part)
    return {name.strip().lower(): value.strip() for name, _, value in parts}


def _client_options(
    endpoint: str | None,
    *,
    connect: timedelta | None = None,
    read: timedelta | None = None,
    proxy: str | None = None,
) -> dict[str, Any]:
    options = _present(read_timeout=read, proxy_url=proxy)
    options |= {"timeout": _REQUEST_TIMEOUT, "connect_timeout": connect or _CONNECT_TIMEOUT}
    if endpoint is not None and endpoint.lower().startswith("http:"):
        options["allow_http"] = True
    return options


def _retry_config(
    retries: int | None = None, min_ms: int | None = None, max_ms: int | None = None
) -> dict[str, Any]:
    """Return retry settings with growing random pauses, which spread the retries of clients."""
    return {
        "max_retries": _RETRIES if retries is None else retries,
        "retry_timeout": _RETRY_TIMEOUT,
        "backoff": {
            "init_backoff": timedelta(milliseconds=100 if min_ms is None else min_ms),
            "max_backoff": timedelta(milliseconds=15_000 if max_ms is None else max_ms),
            "base": 2,
        },
    }


def _expiry(properties: Mapping[str, str], name: str) -> datetime | None:
    milliseconds = _number(properties, name)
    if milliseconds is None:
        return None
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=milliseconds)


def _refuse(*prefixes: str, properties: Mapping[str, str]) -> None:
    for name, remedy in {**_REFUSED_PROPERTIES, **_REFUSED_IF_TRUE}.items():
        if not name.startswith(prefixes) or name not in properties:
            continue
        if name in _REFUSED_PROPERTIES or is_true(properties, name):
            raise UnsupportedFeatureError(f"storage property {name} is not supported: {remedy}")


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def first_of(properties: Mapping[str, str], *names: str) -> str | None:
    """Return the value of the first of these properties that is set and not empty, or None."""
    return next((properties[name] for name in names if properties.get(name)), None)


def is_true(properties: Mapping[str, str], name: str) -> bool:
    """Return whether a property is set to true, in any case; other texts are false."""
    return properties.get(name, "false").lower() == "true"


def _seconds(properties: Mapping[str, str], name: str) -> timedelta | None:
    text = properties.get(name)
    if text is None:
        return None
    try:
        return timedelta(seconds=float(text))
    except (ValueError, OverflowError) as e:
        raise InvalidRequestError(f"{name} = {text}: must be a number of seconds") from e


def _number(properties: Mapping[str, str], name: str) -> int | None:
    text = properties.get(name)
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError as e:
        raise InvalidRequestError(f"{name} = {text}: must be a whole number") from e
    if not 0 <= number <= _LARGEST:
        raise InvalidRequestError(f"{name} = {text}: must be a number from 0 to {_LARGEST:,}")
    return number
