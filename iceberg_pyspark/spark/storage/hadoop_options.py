"""Iceberg's storage properties as options of Hadoop's file systems, for one scan or write alone.

Spark copies such options only into the Hadoop configuration of the one job, so the credentials that
a catalog vends for a table serve only that table's files. Hadoop caches one open file system for
each scheme and bucket, whatever options it was opened with. So the file systems of Hadoop and of
Google get a scheme for each set of options (`jvm_access.py`), and scans by another one disable the
cache.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from iceberg_pyspark.spark.bridge.features import (
    AZURE_IN_TASKS,
    GOOGLE_IN_TASKS,
    S3A_IN_TASKS,
    JvmFileSystem,
)
from iceberg_pyspark.storage.store_properties import first_of, is_true

_S3A = "org.apache.hadoop.fs.s3a"
S3A_FILE_SYSTEM = f"{_S3A}.S3AFileSystem"
"""Hadoop's own class for `s3a`."""

_S3A_OF_SESSION = "${fs.s3a.impl}"
_UNKNOWN = JvmFileSystem("")

GOOGLE_CONNECTOR = "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"
"""Google's own class for `gs`; Hadoop has another one, `hadoop-gcp`, with fewer options."""

_GOOGLE_TOKEN = "IcebergPyGoogleToken"
"""This package's class that gives a catalog's token to the connector."""

AZURE_FILE_SYSTEMS = (
    "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
)
"""Hadoop's own classes for `abfs` and `abfss`."""

_AZURE_TOKEN = "IcebergPyAzureToken"
"""This package's class that gives Hadoop SAS tokens, renewed before they expire."""

# These properties decide where bytes come from or whose access is used, and no option sets them.
_UNTOLD = {
    "s3": ("s3.proxy-uri", "s3.profile-name", "client.profile-name"),
    "gs": ("gcs.user-project", "gcs.requester-pays"),
    "abfs": (
        *("adls.connection-string", "adls.tenant-id", "adls.client-id", "adls.account-host"),
        "adls.token",
    ),
}
_S3_ENCRYPTION = {
    "s3": "AES256",
    "aes256": "AES256",
    "kms": "SSE-KMS",
    "aws:kms": "SSE-KMS",
    "dsse-kms": "DSSE-KMS",
    "aws:kms:dsse": "DSSE-KMS",
}
"""S3A's names for the values of `s3.sse.type` and for S3's own names."""

_STORES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfs",
    "abfss": "abfs",
}


def hadoop_options(
    location: str,
    properties: Mapping[str, str],
    *,
    writes: bool = False,
    file_system: JvmFileSystem = _UNKNOWN,
) -> dict[str, str] | None:
    """Return the options for a location's store, or None if a property has no equivalent option.

    With `writes` the options also say how the store encrypts the written files. `file_system` gets
    the options.

    >>> hadoop_options("s3://b/k", {"s3.endpoint": "http://h:9000"})["fs.s3a.endpoint"]
    'http://h:9000'
    """
    scheme, _, rest = location.partition("://")
    store = _STORES.get(scheme.lower())
    if store is None:
        return {}
    if any(name.startswith(_UNTOLD[store]) for name in properties):
        return None
    match store:
        case "s3":
            options = _s3(properties)
            if writes:
                encryption = _s3_encryption(properties)
                if encryption is None:
                    return None
                options |= encryption
        case "gs":
            store_options = _gcs(properties, file_system)
            if store_options is None:
                return None
            options = store_options
        case _:
            store_options = _adls(_host(rest), properties, file_system)
            if store_options is None:
                return None
            options = store_options
    if options and writes and store == "s3":
        # A file name is unique to its write, so S3A need not check whether the file exists.
        options["fs.s3a.create.performance"] = "true"
    return options


def credential_options(
    location: str, properties: Mapping[str, str], file_system: JvmFileSystem
) -> dict[str, str] | None:
    """Return only the options that a renewal of credentials changes, or None if some are missing.

    The arguments are those of `hadoop_options`.
    """
    options = hadoop_options(location, properties, file_system=file_system) or {}
    necessary, optional = _credential_names(location)
    if any(name not in options for name in necessary):
        return None
    return {name: options[name] for name in (*necessary, *optional) if name in options}


def _credential_names(location: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of the options with a store's credentials: the necessary ones, and others.

    Only credentials that may expire count.
    """
    scheme, _, rest = location.partition("://")
    match _STORES[scheme.lower()]:
        case "s3":
            return ("fs.s3a.access.key", "fs.s3a.secret.key"), ("fs.s3a.session.token",)
        case "gs":
            return ("fs.gs.iceberg-py.token",), ()
        case _:
            return (f"fs.azure.sas.fixed.token.{_host(rest)}",), ()


def _s3(properties: Mapping[str, str]) -> dict[str, str]:
    endpoint = properties.get("s3.endpoint")
    key, secret, token = _s3_keys(properties)
    options = _present(
        {
            "endpoint": endpoint,
            "endpoint.region": first_of(properties, "s3.region", "client.region"),
            "path.style.access": _path_style(properties),
            "access.key": key,
            "secret.key": secret,
            "session.token": token,
        }
    )
    if endpoint is not None and endpoint.lower().startswith("http:"):
        options["connection.ssl.enabled"] = "false"
    # The provider is set so that S3A does not try the session's own keys first.
    if is_true(properties, "s3.anonymous"):
        options["aws.credentials.provider"] = f"{_S3A}.AnonymousAWSCredentialsProvider"
    elif "access.key" in options:
        kind = "Simple" if token is None else "Temporary"
        options["aws.credentials.provider"] = f"{_S3A}.{kind}AWSCredentialsProvider"
    return {f"fs.s3a.{name}": value for name, value in options.items()}


def scheme_options(
    location: str,
    jvm_scheme: str,
    options: Mapping[str, str],
    renewal: tuple[str, float] | None,
) -> tuple[str, dict[str, str]]:
    """Return a scheme for a store with these options, and the options that define the scheme.

    `jvm_scheme` is the store's own scheme in the JVM. `renewal` is a handle for the renewal of the
    credentials and the epoch second of their end, or None. With it the scheme stays the same when
    the credentials are renewed.
    """
    identity = dict(options)
    if renewal is not None:
        necessary, optional = _credential_names(location)
        for name in (*necessary, *optional):
            identity.pop(name, None)
        identity["renewal"] = renewal[0]
    scheme = f"{jvm_scheme}-{store_digest(identity)[:12]}"
    match jvm_scheme:
        case "s3a":
            file_system = _S3A_OF_SESSION if renewal is None else S3A_IN_TASKS
        case "gs":
            file_system = GOOGLE_IN_TASKS
        case _:
            file_system = AZURE_IN_TASKS
    of_scheme = {f"fs.{scheme}.impl": file_system}
    if file_system == AZURE_IN_TASKS:
        # Hadoop 3.5 collects metrics in a thread that keeps a driver from ending.
        of_scheme["fs.azure.metrics.collection.enabled"] = "false"
    if renewal is not None:
        handle, end_s = renewal
        of_scheme[f"fs.{scheme}.credentials-renewal"] = handle
        of_scheme[f"fs.{scheme}.credentials-end-ms"] = str(int(end_s * 1000))
        if file_system == AZURE_IN_TASKS:
            host = _host(location.partition("://")[2])
            of_scheme[f"fs.azure.sas.token.provider.type.{host}"] = _AZURE_TOKEN
    return scheme, of_scheme


def without_file_system_cache(jvm_scheme: str) -> dict[str, str]:
    """Return the option by which each file opens a file system of its own."""
    return {f"fs.{jvm_scheme}.impl.disable.cache": "true"}


def store_digest(options: Mapping[str, str]) -> str:
    """Return a digest that is equal for stores with equal Hadoop options."""
    return hashlib.sha256(json.dumps(dict(options), sort_keys=True).encode()).hexdigest()


def _s3_keys(properties: Mapping[str, str]) -> tuple[str | None, str | None, str | None]:
    """Return the access key, the secret key and the session token for S3."""
    return (
        first_of(properties, "s3.access-key-id", "client.access-key-id"),
        first_of(properties, "s3.secret-access-key", "client.secret-access-key"),
        first_of(properties, "s3.session-token", "client.session-token"),
    )


def _s3_encryption(properties: Mapping[str, str]) -> dict[str, str] | None:
    """Return the encryption options for written files, or None if S3A has no such encryption."""
    sse_type = properties.get("s3.sse.type", "none").lower()
    kind = properties.get("s3.server-side-encryption") if sse_type == "none" else sse_type
    algorithm = None if kind is None else _S3_ENCRYPTION.get(kind.lower())
    if kind is not None and algorithm is None:
        return None
    options = _present(
        {
            "encryption.algorithm": algorithm,
            "encryption.key": first_of(properties, "s3.sse-kms-key-id", "s3.sse.key"),
        }
    )
    return {f"fs.s3a.{name}": value for name, value in options.items()}


def _path_style(properties: Mapping[str, str]) -> str | None:
    """Return the setting as in Python: with a custom endpoint, the bucket is in the path."""
    if is_true(properties, "s3.force-virtual-addressing"):
        return "false"
    default = "true" if properties.get("s3.endpoint") else None
    return properties.get("s3.path-style-access", default)


def _gcs(properties: Mapping[str, str], file_system: JvmFileSystem) -> dict[str, str] | None:
    """Return the options, or None if the class has none for an address or a token."""
    host, token = properties.get("gcs.service.host"), properties.get("gcs.oauth2.token")
    anonymous = is_true(properties, "gcs.no-auth")
    if not (host or token or anonymous):
        # Only requests for buckets need the project.
        return {}
    if file_system.name != GOOGLE_CONNECTOR:
        return None
    options = {
        "project.id": properties.get("gcs.project-id"),
        "storage.root.url": host,
        # Requests that only a listing of folders needs: the metadata says that a file exists, the
        # names of new files are unique, and no object must stand for an empty folder.
        "inputstream.fast.fail.on.not.found.enable": "false",
        "create.items.conflict.check.enable": "false",
        "implicit.dir.repair.enable": "false",
    }
    # Releases of the connector before 3.0 have the later options of each pair.
    if anonymous:
        options["auth.type"] = "UNAUTHENTICATED"
        options |= {"auth.null.enable": "true", "auth.service.account.enable": "false"}
    elif token:
        options |= {"auth.type": "ACCESS_TOKEN_PROVIDER", "iceberg-py.token": token}
        options["auth.access.token.provider"] = _GOOGLE_TOKEN
        options["auth.access.token.provider.impl"] = _GOOGLE_TOKEN
    return {f"fs.gs.{name}": value for name, value in _present(options).items()}


def _host(rest: str) -> str:
    """Return the account's host; `rest` is a location for Azure without its scheme."""
    return rest.partition("/")[0].rpartition("@")[2]


def _adls(
    host: str, properties: Mapping[str, str], file_system: JvmFileSystem
) -> dict[str, str] | None:
    """Return the options of the host's account; catalogs vend `adls.sas-token.<account>`.

    Return None if the file system cannot be given the address of another server than Azure's.
    """
    address = _azure_address(properties, file_system)
    if address is None:
        return None
    account = host.partition(".")[0]
    sas = first_of(
        properties, f"adls.sas-token.{host}", f"adls.sas-token.{account}", "adls.sas-token"
    )
    key = first_of(properties, "adls.account-key", "adls.auth.shared-key.account.key")
    if sas is not None:
        return {
            **address,
            f"fs.azure.account.auth.type.{host}": "SAS",
            f"fs.azure.sas.fixed.token.{host}": sas,
        }
    if key is not None:
        return {
            **address,
            f"fs.azure.account.auth.type.{host}": "SharedKey",
            f"fs.azure.account.key.{host}": key,
        }
    return address


def _azure_address(
    properties: Mapping[str, str], file_system: JvmFileSystem
) -> dict[str, str] | None:
    """Return the options for the server with many accounts that the properties may name.

    Such a server, an emulator of Azure, has the interface of blobs alone.
    """
    authority = properties.get("adls.blob-storage-authority")
    scheme = properties.get("adls.blob-storage-scheme", "https")
    if authority is None:
        return {} if scheme == "https" else None
    # Hadoop takes a host with a port only
    if not file_system.has_blob_interface or authority.startswith(".") or ":" not in authority:
        return None
    options = {
        "fs.azure.abfs.endpoint": authority,
        "fs.azure.fns.account.service.type": "BLOB",
        "fs.azure.account.hns.enabled": "false",
    }
    if scheme == "http":
        options |= {
            "fs.azure.always.use.https": "false",
            "fs.azure.iceberg-py.http": "true",
            # the other library fails without TLS
            "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
        }
    return options


def jvm_schemes(scheme: str) -> Sequence[str]:
    """Return the schemes by which the JVM may know a scheme's store, the likeliest first."""
    match scheme.lower():
        case "s3" | "s3n":
            return (scheme, "s3a")
        case "gcs":
            return ("gs",)
        case _:
            return (scheme,)


def _present(options: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in options.items() if value}
