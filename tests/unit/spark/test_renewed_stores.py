"""Credentials of the JVM's tasks: which stores renew them, and the responses of the driver."""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.spark.bridge.features import JvmFileSystem
from iceberg_pyspark.spark.bridge.protocol.source_messages import (
    CredentialsRenew,
    RenewedCredentials,
)
from iceberg_pyspark.spark.requests.source_requests import renew_credentials
from iceberg_pyspark.spark.storage import jvm_access as native_storage
from iceberg_pyspark.spark.storage.hadoop_options import (
    AZURE_FILE_SYSTEMS,
    GOOGLE_CONNECTOR,
    S3A_FILE_SYSTEM,
)
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage
from iceberg_pyspark.storage.credentials.credential_renewal import (
    RENEWAL,
    SOURCES,
    Renewal,
    with_credentials_of,
)
from iceberg_pyspark.storage.credentials.vended_credentials import VENDED_CREDENTIALS

END_S = int(time.time()) + 3600
FILE = "s3://bucket/t/data/f"
HOST = "acc.dfs.core.windows.net"


def vended(number: int, end_s: int = END_S, prefix: str = "s3://bucket/t") -> dict[str, str]:
    config = {
        "s3.access-key-id": f"key-{number}",
        "s3.secret-access-key": f"secret-{number}",
        "s3.session-token": f"token-{number}",
        "s3.session-token-expires-at-ms": str(end_s * 1000),
    }
    return {VENDED_CREDENTIALS: json.dumps([{"prefix": prefix, "config": config}])}


class Source:
    """A source of credentials; `latest` are those that it returns."""

    def __init__(self) -> None:
        self.name = uuid.uuid4().hex
        self.latest: Mapping[str, str] = vended(2, END_S + 3600)
        SOURCES.register(self.name, self)

    def renew(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        return with_credentials_of(properties, self.latest)

    def properties(self, credentials: Mapping[str, str]) -> dict[str, str]:
        renewal = Renewal(source=self.name).to_text()
        return {"s3.region": "r", **credentials, RENEWAL: renewal}


@pytest.fixture
def source() -> Source:
    return Source()


FILE_SYSTEMS = {
    "s3a": JvmFileSystem(S3A_FILE_SYSTEM),
    "gs": JvmFileSystem(GOOGLE_CONNECTOR),
    "abfss": JvmFileSystem(AZURE_FILE_SYSTEMS[1]),
}


def stored(properties: Mapping[str, str], why_not: str | None = None) -> NativeStorage:
    return NativeStorage(FILE_SYSTEMS.get, properties, open_in_tasks=lambda *_: why_not)


def handle_in(options: Mapping[str, str]) -> str:
    return next(v for k, v in options.items() if k.endswith(".credentials-renewal"))


def test_locations_stay_the_same_when_their_credentials_are_renewed(source: Source) -> None:
    """A run-time filter names files that were planned with earlier credentials."""
    first, later = stored(source.properties(vended(1))), stored(source.properties(vended(2)))
    location = first.location(FILE)
    assert location is not None
    assert location == later.location(FILE)
    scheme = location.partition("://")[0]
    assert first.options[f"fs.{scheme}.impl"] == "IcebergPyRenewedS3A"
    assert first.options[f"fs.{scheme}.credentials-end-ms"] == str(END_S * 1000)
    assert first.options["fs.s3a.access.key"] == "key-1"
    assert later.options["fs.s3a.access.key"] == "key-2"
    other = stored({**source.properties(vended(1)), "s3.region": "other"})
    assert other.location(FILE) != location
    assert stored(Source().properties(vended(1))).location(FILE) != location


def test_the_driver_responds_with_the_current_credentials(source: Source) -> None:
    storage = stored(source.properties(vended(1)))
    storage.location(FILE)
    request = CredentialsRenew(renewal=handle_in(storage.options))
    assert renew_credentials(None, request) == RenewedCredentials(
        options={
            "fs.s3a.access.key": "key-2",
            "fs.s3a.secret.key": "secret-2",
            "fs.s3a.session.token": "token-2",
        },
        expires_at_ms=(END_S + 3600) * 1000,
    )
    source.latest = vended(3, prefix="s3://bucket/another")
    with pytest.raises(StorageError, match="sent no credentials for this location"):
        renew_credentials(None, request)
    with pytest.raises(StorageError, match="no source of new credentials"):
        renew_credentials(None, CredentialsRenew(renewal="guessed"))


@dataclass(frozen=True)
class TokenCase:
    """A store with one token, by the names of Iceberg's properties and of Hadoop's option."""

    location: str
    name: str
    end_name: str
    option: str
    file_system: str

    def vended(self, number: int, end_s: int = END_S) -> dict[str, str]:
        return {self.name: f"token-{number}", self.end_name: f"{end_s}000"}


TOKENS = [
    TokenCase(
        location="gs://bucket/t/f",
        name="gcs.oauth2.token",
        end_name="gcs.oauth2.token-expires-at",
        option="fs.gs.iceberg-py.token",
        file_system="IcebergPyGoogleFiles",
    ),
    TokenCase(
        location=f"abfss://c@{HOST}/t/f",
        name=f"adls.sas-token.{HOST}",
        end_name=f"adls.sas-token-expires-at-ms.{HOST}",
        option=f"fs.azure.sas.fixed.token.{HOST}",
        file_system="IcebergPyAzureFiles",
    ),
]


@pytest.mark.parametrize("case", TOKENS, ids=["google", "azure"])
def test_the_driver_renews_tokens_of_google_and_azure(source: Source, case: TokenCase) -> None:
    first, later = (stored(source.properties(case.vended(n))) for n in (1, 2))
    location = str(first.location(case.location))
    scheme = location.partition("://")[0]
    assert first.options[f"fs.{scheme}.impl"] == case.file_system
    assert first.options[f"fs.{scheme}.credentials-end-ms"] == f"{END_S}000"
    assert first.options[case.option] == "token-1"
    assert later.location(case.location) == location
    assert later.options[case.option] == "token-2"
    assert stored(case.vended(1)).location(case.location) != location
    source.latest = case.vended(3, END_S + 60)
    request = CredentialsRenew(renewal=handle_in(first.options))
    assert renew_credentials(None, request) == RenewedCredentials(
        options={case.option: "token-3"}, expires_at_ms=(END_S + 60) * 1000
    )


def test_hadoop_asks_for_a_sas_token_only_where_it_is_renewed(source: Source) -> None:
    case = TOKENS[1]
    provider = f"fs.azure.sas.token.provider.type.{HOST}"
    renewed = stored(source.properties(case.vended(1)))
    assert renewed.location(case.location) is not None
    assert renewed.options[provider] == "IcebergPyAzureToken"
    lasting = stored(source.properties({case.name: "t"}))
    assert lasting.location(case.location) is not None
    assert provider not in lasting.options


@pytest.mark.parametrize("kind", ["no source", "no class", "another class", "no class for Azure"])
def test_one_line_says_where_tasks_cannot_renew(
    source: Source, kind: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_storage, "_warnings", set())
    location, properties = FILE, source.properties(vended(1))
    reason = "it does not compile"
    if kind == "no source":
        properties[RENEWAL] = Renewal(source="elsewhere").to_text()
        reason = "their catalog offers no renewal in this process"
    if kind == "another class":
        monkeypatch.setitem(FILE_SYSTEMS, "s3a", JvmFileSystem("a.Class"))
        reason = "the session's file system for s3a:// is a a.Class"
    if kind == "no class for Azure":
        location, properties = TOKENS[1].location, source.properties(TOKENS[1].vended(1))
    for _ in range(2):
        storage = stored(properties, "it does not compile" if "no class" in kind else None)
        assert storage.location(location) is not None
        assert "IcebergPyRenewedS3A" not in storage.options.values()
    (record,) = caplog.records
    line = record.getMessage()
    assert record.levelno == logging.WARNING
    assert f"tasks of the JVM cannot renew them ({reason})" in line
    assert "native=false" in line
    assert "native-writer-enabled=false" in line


def test_keys_without_an_end_are_not_renewed(
    source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    keys = {"s3.access-key-id": "k", "s3.secret-access-key": "s"}
    storage = stored(source.properties(keys))
    location = storage.location(FILE)
    assert location is not None
    assert storage.options[f"fs.{location.partition('://')[0]}.impl"] == "${fs.s3a.impl}"
    assert not caplog.records
