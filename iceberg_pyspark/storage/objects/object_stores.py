"""Opens the object stores of tables (S3, Google Cloud Storage and Azure) with obstore.

One library serves all three stores, because it has what commits and scans need: a put that creates
and never replaces, several ranges of one file in parallel, retries with random pauses, and
multipart uploads that succeed or fail as a whole. A process keeps one client per bucket and
credentials.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.credentials.credential_renewal import (
    RENEWAL,
    CredentialProvider,
    source_of,
)
from iceberg_pyspark.storage.credentials.table_services import (
    REMOTE_SIGNING_ENABLED,
    SIGNER,
    SIGNING,
    is_signed_remotely,
)
from iceberg_pyspark.storage.credentials.vended_credentials import prefix_at, properties_at
from iceberg_pyspark.storage.files.places import EQUAL_SCHEMES
from iceberg_pyspark.storage.store_properties import StoreSettings, store_settings

OBJECT_SCHEMES = frozenset(("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "az"))
"""The schemes of object stores."""

_EXTRA = {"s3": "s3", "gs": "gcs", "abfs": "azure", "az": "azure"}
_PREFIXES = {
    "s3": ("s3.", "client."),
    "gs": ("gcs.",),
    "abfs": ("adls.",),
    "az": ("adls.",),
}
# obstore does not accept these names, and two spellings must not become one name
# other characters could end the host of an address that the bucket is part of
_BUCKET = re.compile(r"[\w.$:-]+(?:@[\w.:-]+)?", re.ASCII)
_NO_NAME = re.compile(r"(?:^|/)(?:\.{0,2})(?:/|$)|[\x00-\x1f\x7f]")


def is_object(location: str) -> bool:
    """Return whether a location is in an object store.

    >>> is_object("s3a://bucket/t"), is_object("hdfs://host/t"), is_object("/t")
    (True, False, False)
    """
    scheme, separator, _ = location.partition("://")
    return bool(separator) and scheme.lower() in OBJECT_SCHEMES


def object_place(location: str) -> tuple[str, str, str]:
    """Return the kind of store, the bucket (in Azure `<container>[@<host>]`) and the object's name.

    >>> object_place("s3a://bucket/db/t/v1")
    ('s3', 'bucket', 'db/t/v1')
    """
    scheme, _, rest = location.partition("://")
    bucket, _, name = rest.partition("/")
    if not bucket:
        raise StorageError(f"{location}: there is no bucket in it")
    if _BUCKET.fullmatch(bucket) is None:
        raise StorageError(f"{location}: '{bucket}' is not a name of a bucket")
    kind = scheme.lower()
    return EQUAL_SCHEMES.get(kind, kind), bucket, name


def open_object_store(location: str, properties: Mapping[str, str]) -> tuple[Any, str]:
    """Return the obstore store for a location's bucket, and the object's name in it."""
    kind, bucket, name = object_place(location)
    # Azure treats a backslash as a slash
    if name and (_NO_NAME.search(name) or (kind in ("abfs", "az") and "\\" in name)):
        raise StorageError(
            f"{location}: names with an empty folder ('//'), '.', '..' or a control character are "
            "not supported in object stores, nor a backslash in Azure; use other names for the "
            "table's files"
        )
    own_properties = properties_at(location, properties)
    own = tuple(sorted((k, v) for k, v in own_properties.items() if k.startswith(_PREFIXES[kind])))
    if kind == "s3" and is_signed_remotely(own_properties):
        return _signed_store(bucket, own, properties.get(SIGNING), os.getpid()), name
    renewal = None
    if RENEWAL in properties:
        prefix = prefix_at(location, properties)
        renewal = _Renewal(properties[RENEWAL], prefix, location, properties)
    # the process id is a cache key because a client does not survive a fork
    return _store(kind, bucket, own, renewal, os.getpid()), name


@dataclass(frozen=True, slots=True)
class _Renewal:
    """The renewal of a store's credentials; `text` and `prefix` distinguish stores in the cache."""

    text: str = field(repr=False)
    prefix: str | None
    location: str = field(compare=False)
    properties: Mapping[str, str] = field(compare=False, repr=False)


@lru_cache(maxsize=64)
def _signed_store(
    bucket: str, properties: tuple[tuple[str, str], ...], signing: str | None, _process: int
) -> Any:
    # imported here because few tables use remote signing
    from iceberg_pyspark.storage.objects.signed_s3 import SignedS3Store  # noqa: PLC0415

    own = {k: v for k, v in properties if k not in (REMOTE_SIGNING_ENABLED, SIGNER)}
    signer = {} if signing is None else {SIGNING: signing}
    return SignedS3Store(bucket, store_settings("s3", bucket, own), signer)


@lru_cache(maxsize=64)
def _store(
    kind: str,
    bucket: str,
    properties: tuple[tuple[str, str], ...],
    renewal: _Renewal | None,
    _process: int,
) -> Any:
    try:
        # a large library, which processes with only local files should not import
        from obstore import store as stores  # noqa: PLC0415
    except ImportError as e:
        raise StorageError(
            f"{kind}://{bucket}: a package is missing for '{kind}': "
            f"pip install 'iceberg-pyspark[{_EXTRA[kind]}]'"
        ) from e
    arguments = _arguments(kind, store_settings(kind, bucket, dict(properties)))
    if renewal is not None and "credential_provider" in arguments:
        source = source_of(renewal.properties)
        if source is not None:
            arguments["credential_provider"] = CredentialProvider(
                renewal.prefix or renewal.location,
                renewal.properties,
                source,
                lambda used: store_settings(kind, bucket, used).credentials,
            )

    match kind:
        case "s3":
            return stores.S3Store(bucket, **arguments)
        case "gs":
            return stores.GCSStore(bucket, **arguments)
        case _:
            return stores.AzureStore(bucket.partition("@")[0], **arguments)


def _arguments(kind: str, settings: StoreSettings) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "config": settings.config,
        "client_options": settings.client_options,
        "retry_config": settings.retry_config,
    }
    if settings.credentials is not None:
        arguments["credential_provider"] = _Credentials(settings.credentials)
    elif settings.profile is not None:
        arguments["credential_provider"] = _profile_credentials(settings.profile)
    return arguments


class _Credentials:
    """A credential provider with fixed credentials, which ignores the environment."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __call__(self) -> dict[str, Any]:
        return dict(self._values)

    def __repr__(self) -> str:
        return "credentials"


def _profile_credentials(profile: str) -> Any:
    try:
        import boto3  # noqa: PLC0415
        from obstore.auth.boto3 import Boto3CredentialProvider  # noqa: PLC0415
    except ImportError as e:
        raise StorageError(
            f"s3.profile-name = {profile}: profiles need a package that is missing: "
            "pip install boto3"
        ) from e
    return Boto3CredentialProvider(boto3.Session(profile_name=profile))
