"""Iceberg's storage properties (`s3.*`, `gcs.*`, `adls.*`) as arguments of fsspec's file systems.

A property that would change where bytes go or how they are protected, and that we cannot honour, is
refused by name: ignoring it could write unencrypted, or with the wrong identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError

_S3_ENCRYPTION = {"s3": "AES256", "kms": "aws:kms", "dsse-kms": "aws:kms:dsse"}

_REFUSED = {
    "s3.signer": "sign requests with keys (s3.access-key-id) instead",
    "s3.role-arn": "assume the role outside and give s3.session-token",
    "client.role-arn": "assume the role outside and give s3.session-token",
    "client.assume-role.arn": "assume the role outside and give s3.session-token",
    "client.factory": "it names a Java class",
    "client.credentials-provider": "it names a Java class",
    "gcs.encryption-key": "customer keys are not supported",
    "gcs.decryption-key": "customer keys are not supported",
}
_REFUSED_IF_TRUE = {
    "s3.remote-signing-enabled": "ask the catalog for vended credentials instead",
}


def file_system_arguments(protocol: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """The arguments for fsspec's file system of `protocol`; none where Iceberg has no names."""
    match protocol:
        case "s3":
            return _s3(properties)
        case "gs":
            return _gcs(properties)
        case "abfs" | "az":
            return _adls(properties)
        case _:
            return {}


def _s3(properties: Mapping[str, str]) -> dict[str, Any]:
    _refuse("s3.", "client.", properties=properties)
    client = _present(
        endpoint_url=properties.get("s3.endpoint"),
        region_name=_first(properties, "s3.region", "client.region"),
    )
    config = _present(
        connect_timeout=_seconds(properties, "s3.connect-timeout"),
        read_timeout=_seconds(properties, "s3.request-timeout"),
    )
    if proxy := properties.get("s3.proxy-uri"):
        config["proxies"] = {"http": proxy, "https": proxy}
    if _is_true(properties, "s3.path-style-access"):
        config["s3"] = {"addressing_style": "path"}
    elif _is_true(properties, "s3.force-virtual-addressing"):
        config["s3"] = {"addressing_style": "virtual"}
    arguments = _present(
        key=_first(properties, "s3.access-key-id", "client.access-key-id"),
        secret=_first(properties, "s3.secret-access-key", "client.secret-access-key"),
        token=_first(properties, "s3.session-token", "client.session-token"),
        profile=_first(properties, "s3.profile-name", "client.profile-name"),
    )
    if _is_true(properties, "s3.anonymous"):
        arguments["anon"] = True
    encryption = _s3_encryption(properties)
    if encryption:
        arguments["s3_additional_kwargs"] = encryption
    return {**arguments, "client_kwargs": client, "config_kwargs": config}


def _s3_encryption(properties: Mapping[str, str]) -> dict[str, str]:
    kind = properties.get("s3.sse.type", "none").lower()
    if kind != "none" and kind not in _S3_ENCRYPTION:
        raise UnsupportedFeatureError(
            f"s3.sse.type = {kind} is not supported; use none, s3, kms or dsse-kms"
        )
    return _present(
        ServerSideEncryption=_S3_ENCRYPTION.get(kind, properties.get("s3.server-side-encryption")),
        SSEKMSKeyId=_first(properties, "s3.sse-kms-key-id", "s3.sse.key"),
    )


def _gcs(properties: Mapping[str, str]) -> dict[str, Any]:
    _refuse("gcs.", properties=properties)
    arguments = _present(
        project=properties.get("gcs.project-id"),
        token=properties.get("gcs.oauth2.token"),
        endpoint_url=properties.get("gcs.service.host"),
        requester_pays=properties.get("gcs.user-project"),
        default_location=properties.get("gcs.default-bucket-location"),
    )
    if _is_true(properties, "gcs.requester-pays"):
        arguments.setdefault("requester_pays", True)
    if _is_true(properties, "gcs.no-auth"):
        arguments["token"] = "anon"
    return arguments


def _adls(properties: Mapping[str, str]) -> dict[str, Any]:
    if "adls.token" in properties:
        raise UnsupportedFeatureError("adls.token is not supported; use adls.sas-token or a key")
    arguments = _present(
        account_name=_first(properties, "adls.account-name", "adls.auth.shared-key.account.name"),
        account_key=_first(properties, "adls.account-key", "adls.auth.shared-key.account.key"),
        connection_string=properties.get("adls.connection-string"),
        sas_token=properties.get("adls.sas-token"),
        tenant_id=properties.get("adls.tenant-id"),
        client_id=properties.get("adls.client-id"),
        client_secret=properties.get("adls.client-secret"),
        account_host=properties.get("adls.account-host"),
    )
    # catalogs vend `adls.sas-token.<account>`, some with the host's domain behind the account
    for name, argument in (("sas-token", "sas_token"), ("connection-string", "connection_string")):
        by_account = {
            key.removeprefix(f"adls.{name}."): value
            for key, value in properties.items()
            if key.startswith(f"adls.{name}.")
        }
        if len({account.split(".")[0] for account in by_account}) > 1:
            raise UnsupportedFeatureError(f"adls.{name}.*: several accounts are not supported")
        for account, value in by_account.items():
            arguments.setdefault(argument, value)
            arguments.setdefault("account_name", account.split(".")[0])
    return arguments


def _refuse(*prefixes: str, properties: Mapping[str, str]) -> None:
    for name, remedy in {**_REFUSED, **_REFUSED_IF_TRUE}.items():
        if not name.startswith(prefixes) or name not in properties:
            continue
        if name in _REFUSED or _is_true(properties, name):
            raise UnsupportedFeatureError(f"storage property {name} is not supported: {remedy}")


def _present(**arguments: Any) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _first(properties: Mapping[str, str], *names: str) -> str | None:
    return next((properties[name] for name in names if properties.get(name)), None)


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "false").lower() == "true"


def _seconds(properties: Mapping[str, str], name: str) -> float | None:
    text = properties.get(name)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError as e:
        raise InvalidRequestError(f"{name} = {text}: must be a number of seconds") from e
