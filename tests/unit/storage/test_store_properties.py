"""Iceberg's storage properties as settings of stores, and their scope by location."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest

from iceberg_pyspark.errors import (
    InvalidMetadataError,
    InvalidRequestError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.storage.credentials.vended_credentials import VENDED_CREDENTIALS, properties_at
from iceberg_pyspark.storage.objects.object_stores import open_object_store
from iceberg_pyspark.storage.store_properties import (
    StoreSettings,
    azure_settings,
    gcs_settings,
    s3_settings,
)

SECRETS = {
    "s3.access-key-id": "AKIASECRET",
    "s3.secret-access-key": "top/secret",
    "s3.session-token": "vended-token",
}
HOST = "acc.dfs.core.windows.net"


def test_properties_of_s3() -> None:
    settings = s3_settings(
        "b",
        {
            **SECRETS,
            "s3.session-token-expires-at-ms": "86400000",
            "s3.endpoint": "http://h:1",
            "s3.region": "eu-1",
            "s3.path-style-access": "true",
            "s3.sse.type": "kms",
            "s3.sse.key": "arn",
            "s3.connect-timeout": "2.5",
            "s3.request-timeout": "7",
            "s3.retry.num-retries": "3",
            "s3.retry.min-wait-ms": "5",
            "warehouse": "ignored",
        },
    )
    assert settings.config == {
        "endpoint": "http://h:1",
        "region": "eu-1",
        "server_side_encryption": "aws:kms",
        "sse_kms_key_id": "arn",
    }
    assert settings.credentials == {
        "access_key_id": "AKIASECRET",
        "secret_access_key": "top/secret",
        "token": "vended-token",
        "expires_at": datetime(1970, 1, 2, tzinfo=timezone.utc),
    }
    assert settings.client_options["allow_http"] is True
    assert settings.client_options["connect_timeout"] == timedelta(seconds=2.5)
    assert settings.client_options["read_timeout"] == timedelta(seconds=7)
    assert settings.retry_config["max_retries"] == 3
    assert settings.retry_config["backoff"]["init_backoff"] == timedelta(milliseconds=5)


def test_client_properties_are_defaults_of_s3_properties() -> None:
    settings = s3_settings(
        "b", {"client.region": "r", "client.access-key-id": "k", "client.secret-access-key": "s"}
    )
    assert settings.config == {"region": "r"}
    assert settings.credentials is not None
    assert settings.credentials["access_key_id"] == "k"


def test_half_a_pair_of_keys_is_refused() -> None:
    """The other half might come from the environment and belong to another key."""
    with pytest.raises(InvalidRequestError, match=r"s3\.secret-access-key belong together"):
        s3_settings("b", {"s3.access-key-id": "k"})


@pytest.mark.parametrize(
    ("properties", "endpoint", "virtual"),
    [
        ({}, "https://h:1", None),
        ({"s3.path-style-access": "true"}, "https://h:1", None),
        ({"s3.path-style-access": "false"}, "https://b.h:1", True),
        ({"s3.force-virtual-addressing": "true"}, "https://b.h:1", True),
    ],
)
def test_s3_endpoint_has_bucket_in_path_or_host(
    properties: dict[str, str], endpoint: str, virtual: bool | None
) -> None:
    config = s3_settings("b", {"s3.endpoint": "https://h:1", **properties}).config
    assert config["endpoint"] == endpoint
    assert config.get("virtual_hosted_style_request") is virtual


def test_properties_of_google() -> None:
    settings = gcs_settings({"gcs.oauth2.token": "t", "gcs.service.host": "http://h"})
    assert settings.config == {"base_url": "http://h"}
    assert settings.credentials == {"token": "t", "expires_at": None}
    anonymous = gcs_settings({"gcs.no-auth": "true", "gcs.oauth2.token": "t"})
    assert json.loads(anonymous.config["service_account_key"])["disable_oauth"] is True
    assert anonymous.credentials is None


@pytest.mark.parametrize(
    ("host", "properties", "config"),
    [
        (None, {"adls.account-name": "a", "adls.account-key": "k"}, ("a", "k", None, None)),
        (HOST, {"adls.sas-token.acc": "s"}, ("acc", None, "s", None)),
        (
            HOST,
            {"adls.blob-storage-authority": "h:1", "adls.blob-storage-scheme": "http"},
            ("acc", None, None, "http://h:1/acc"),
        ),
        (
            HOST,
            {"adls.blob-storage-authority": ".blob.gov.example"},
            ("acc", None, None, "https://acc.blob.gov.example"),
        ),
        (HOST, {f"adls.sas-token.{HOST}": "s"}, ("acc", None, "s", None)),
        (HOST, {"adls.sas-token.other": "s", "adls.account-key": "k"}, ("acc", "k", None, None)),
        (
            None,
            {"adls.connection-string": "AccountName=a;AccountKey=k==;BlobEndpoint=http://h:1/a/"},
            ("a", "k==", None, "http://h:1/a"),
        ),
        (
            "acc.dfs.core.usgovcloudapi.net",
            {"adls.account-key": "k"},
            ("acc", "k", None, "https://acc.blob.core.usgovcloudapi.net"),
        ),
        (
            None,
            {"adls.account-name": "a", "adls.account-host": "h"},
            ("a", None, None, "https://h"),
        ),
    ],
)
def test_properties_of_azure(
    host: str | None, properties: dict[str, str], config: tuple[str | None, ...]
) -> None:
    settings = azure_settings(host, properties)
    values = {**settings.config, **(settings.credentials or {})}
    names = ("account_name", "access_key", "sas_token", "endpoint")
    assert tuple(values.get(name) for name in names) == config


def test_azure_without_an_account_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"adls\.account-name"):
        azure_settings(None, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("s3.signer", "S3V4RestSigner"),
        ("client.factory", "com.example.Factory"),
        ("client.assume-role.arn", "arn"),
        ("s3.sse.type", "custom"),
        ("gcs.encryption-key", "k"),
        ("gcs.requester-pays", "true"),
    ],
)
def test_unsupported_store_property_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=name.replace(".", r"\.")):
        gcs_settings({name: value}) if name.startswith("gcs") else s3_settings("b", {name: value})


def test_remote_signing_without_a_server_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"s3\.remote-signing-enabled.* set it to fa"):
        open_object_store("s3://b/t", {"s3.remote-signing-enabled": "true"})


def test_remote_signing_can_be_off() -> None:
    assert s3_settings("b", {"s3.remote-signing-enabled": "false"}).credentials is None


@pytest.mark.parametrize("value", ["-1", "1" + "0" * 30])
def test_a_number_must_be_in_reason(value: str) -> None:
    for name in ("s3.retry.max-wait-ms", "s3.retry.num-retries"):
        with pytest.raises(InvalidRequestError, match="must be a number from 0 to"):
            s3_settings("b", {name: value})
    with pytest.raises(InvalidRequestError, match=r"s3\.session-token-expires-at-ms"):
        s3_settings("b", {**SECRETS, "s3.session-token-expires-at-ms": value})


@pytest.mark.parametrize("name", ["s3.request-timeout", "s3.retry.num-retries"])
def test_a_number_must_be_one(name: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"{name} = soon"):
        s3_settings("b", {name: "soon"})


def test_settings_are_never_shown() -> None:
    for settings in (s3_settings("b", SECRETS), azure_settings(HOST, {"adls.account-key": "kkk"})):
        assert isinstance(settings, StoreSettings)
        assert not any(s in repr(settings) for s in (*SECRETS.values(), "kkk"))


def vended(*entries: tuple[str, str]) -> dict[str, str]:
    text = json.dumps([{"prefix": p, "config": {"s3.access-key-id": k}} for p, k in entries])
    return {"s3.access-key-id": "own", "s3.region": "r", VENDED_CREDENTIALS: text}


@pytest.mark.parametrize(
    ("location", "key"),
    [
        ("s3://b/t/data/f", "long"),
        ("s3a://b/t/data/f", "long"),
        ("s3://b/t/metadata/f", "short"),
        ("s3://b/t2/f", "own"),
        ("s3://b/t/../t2/f", "own"),
        ("s3://other/t/f", "own"),
    ],
)
def test_the_longest_prefix_wins_and_ends_at_a_slash(location: str, key: str) -> None:
    credentials = properties_at(location, vended(("s3://b/t", "short"), ("s3://b/t/data/", "long")))
    assert credentials == {"s3.access-key-id": key, "s3.region": "r"}


def test_credentials_may_be_vended_for_all_buckets() -> None:
    for prefix in ("s3", "s3://"):
        credentials = properties_at("s3://any/f", vended((prefix, "all")))
        assert credentials["s3.access-key-id"] == "all"


def test_credentials_that_cannot_be_read_are_not_shown() -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        properties_at("s3://b/t", {VENDED_CREDENTIALS: '{"s3.access-key-id": "AKIASECRET"'})
    assert "AKIA" not in f"{caught.value} {caught.value.__cause__}"


def test_pauses_between_retries_grow_up_to_a_limit() -> None:
    own = {"s3.retry.min-wait-ms": "7", "s3.retry.max-wait-ms": "900"}
    for settings, least, most in (
        (s3_settings("b", {}), 100, 15_000),
        (gcs_settings({}), 100, 15_000),
        (azure_settings(HOST, {}), 100, 15_000),
        (s3_settings("b", own), 7, 900),
    ):
        assert settings.retry_config["backoff"] == {
            "init_backoff": timedelta(milliseconds=least),
            "max_backoff": timedelta(milliseconds=most),
            "base": 2,
        }
        assert settings.retry_config["retry_timeout"] == timedelta(minutes=3)
