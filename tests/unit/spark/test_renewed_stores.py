"""Credentials of the JVM's tasks: which stores renew them, and what the driver answers."""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Mapping

import pytest

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.spark.answers.credentials import renew_credentials
from iceberg_pyspark.spark.bridge.file_systems import JvmFileSystem
from iceberg_pyspark.spark.bridge.protocol.credentials import CredentialsRenew, RenewedCredentials
from iceberg_pyspark.spark.native_read import storage as native_storage
from iceberg_pyspark.spark.native_read.storage import NativeStorage
from iceberg_pyspark.storage.credential_renewal import (
    RENEWAL,
    Renewal,
    register_source,
    with_credentials_of,
)
from iceberg_pyspark.storage.vended_credentials import VENDED_CREDENTIALS

END_S = int(time.time()) + 3600
FILE = "s3://bucket/t/data/f"


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
        register_source(self.name, self)

    def renewed(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        return with_credentials_of(properties, self.latest)

    def properties(self, credentials: Mapping[str, str]) -> dict[str, str]:
        renewal = Renewal(source=self.name).to_text()
        return {"s3.region": "r", **credentials, RENEWAL: renewal}


@pytest.fixture
def source() -> Source:
    return Source()


file_systems = {scheme: JvmFileSystem("a.Class") for scheme in ("s3a", "abfss")}


def stored(properties: Mapping[str, str], why_not: str | None = None) -> NativeStorage:
    return NativeStorage(file_systems.get, properties, renew_in_tasks=lambda: why_not)


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


def test_the_driver_answers_with_the_current_credentials(source: Source) -> None:
    storage = stored(source.properties(vended(1)))
    storage.location(FILE)
    question = CredentialsRenew(renewal=handle_in(storage.options))
    assert renew_credentials(None, question) == RenewedCredentials(
        access_key_id="key-2",
        secret_access_key="secret-2",
        session_token="token-2",
        expires_at_ms=(END_S + 3600) * 1000,
    )
    source.latest = vended(3, prefix="s3://bucket/another")
    with pytest.raises(StorageError, match="sent no credentials for this location"):
        renew_credentials(None, question)
    with pytest.raises(StorageError, match="no source of new credentials"):
        renew_credentials(None, CredentialsRenew(renewal="guessed"))


@pytest.mark.parametrize("kind", ["no source", "no class", "another store"])
def test_one_line_says_where_tasks_cannot_renew(
    source: Source, kind: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_storage, "_warnings", set())
    host = "acc.dfs.core.windows.net"
    location, properties = FILE, source.properties(vended(1))
    reason = "it has another class"
    if kind == "no source":
        properties[RENEWAL] = Renewal(source="elsewhere").to_text()
        reason = "their catalog offers no renewal in this process"
    if kind == "another store":
        location, reason = f"abfss://c@{host}/f", "only S3A asks the driver for new ones"
        sas = {f"adls.sas-token.{host}": "s", f"adls.sas-token-expires-at-ms.{host}": f"{END_S}000"}
        properties = source.properties(sas)
    for _ in range(2):
        storage = stored(properties, "it has another class" if kind == "no class" else None)
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
