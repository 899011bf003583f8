"""Storage properties as Hadoop options for the JVM, and the locations that the JVM gets."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable

import pytest

from iceberg_pyspark.spark.bridge.features import JvmFileSystem
from iceberg_pyspark.spark.storage import jvm_access as native_storage
from iceberg_pyspark.spark.storage.hadoop_options import (
    AZURE_FILE_SYSTEMS,
    GOOGLE_CONNECTOR,
    hadoop_options,
)
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage
from iceberg_pyspark.storage.credentials.vended_credentials import VENDED_CREDENTIALS

FileSystems = Callable[[str], JvmFileSystem | None]
PROVIDER = "fs.s3a.aws.credentials.provider"
GOOGLE = {
    "fs.gs.inputstream.fast.fail.on.not.found.enable": "false",
    "fs.gs.create.items.conflict.check.enable": "false",
    "fs.gs.implicit.dir.repair.enable": "false",
}
HADOOPS_GOOGLE = "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem"
CONNECTOR = JvmFileSystem(GOOGLE_CONNECTOR)


def session_with(*schemes: str, name: str = "a.Class", **options: str) -> FileSystems:
    """Return what a session answers that has file systems for these schemes alone."""
    return {scheme: JvmFileSystem(name, options) for scheme in schemes}.get


def test_s3_properties_become_options_of_s3a() -> None:
    properties = {
        "s3.endpoint": "http://h:9000",
        "s3.region": "eu-1",
        "client.region": "us-1",
        "s3.path-style-access": "true",
        "s3.access-key-id": "k",
        "s3.secret-access-key": "s",
        "s3.session-token": "t",
        "s3.sse.type": "kms",
        "warehouse": "s3://b",
    }
    assert hadoop_options("s3://b/x", properties) == {
        "fs.s3a.endpoint": "http://h:9000",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.endpoint.region": "eu-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "k",
        "fs.s3a.secret.key": "s",
        "fs.s3a.session.token": "t",
        PROVIDER: "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    }


@pytest.mark.parametrize(
    ("properties", "in_path"),
    [
        ({}, None),
        ({"s3.endpoint": "https://h"}, "true"),
        ({"s3.endpoint": "https://h", "s3.path-style-access": "false"}, "false"),
        ({"s3.endpoint": "https://h", "s3.force-virtual-addressing": "true"}, "false"),
    ],
)
def test_hadoop_addresses_the_bucket_as_python_does(
    properties: dict[str, str], in_path: str | None
) -> None:
    options = hadoop_options("s3://b/x", properties)
    assert options is not None
    assert options.get("fs.s3a.path.style.access") == in_path


def test_keys_without_a_token_and_without_any() -> None:
    keys = {"client.access-key-id": "k", "client.secret-access-key": "s"}
    options = hadoop_options("s3a://b", keys)
    assert options is not None
    assert options[PROVIDER].endswith(".SimpleAWSCredentialsProvider")
    assert hadoop_options("s3://b", {"s3.anonymous": "true"}) == {
        PROVIDER: "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
    }
    assert hadoop_options("s3://b", {}) == {}
    assert hadoop_options("hdfs://h/x", keys) == {}


@pytest.mark.parametrize(
    ("properties", "algorithm", "key"),
    [
        ({}, None, None),
        ({"s3.sse.type": "none"}, None, None),
        ({"s3.sse.type": "S3"}, "AES256", None),
        ({"s3.server-side-encryption": "AES256"}, "AES256", None),
        ({"s3.sse.type": "kms", "s3.sse.key": "k"}, "SSE-KMS", "k"),
        ({"s3.sse.type": "dsse-kms", "s3.sse-kms-key-id": "k"}, "DSSE-KMS", "k"),
    ],
)
def test_written_files_are_encrypted_as_properties_say(
    properties: dict[str, str], algorithm: str | None, key: str | None
) -> None:
    options = hadoop_options("s3://b/x", properties, writes=True)
    assert options is not None
    assert options.get("fs.s3a.encryption.algorithm") == algorithm
    assert options.get("fs.s3a.encryption.key") == key
    assert hadoop_options("s3://b/x", {"s3.sse.type": "custom"}, writes=True) is None
    assert hadoop_options("s3://b/x", {"s3.sse.type": "custom"}) == {}


def test_sas_tokens_and_keys_are_of_an_account() -> None:
    location = "abfss://c@a.dfs.core.windows.net"
    host = "a.dfs.core.windows.net"
    for name in ("adls.sas-token", "adls.sas-token.a", f"adls.sas-token.{host}"):
        options = hadoop_options(location, {name: "sig"})
        assert options is not None
        assert options[f"fs.azure.account.auth.type.{host}"] == "SAS"
        assert options[f"fs.azure.sas.fixed.token.{host}"] == "sig"
    options = hadoop_options(location, {"adls.account-key": "k", "adls.sas-token.other": "sig"})
    assert options is not None
    assert options[f"fs.azure.account.key.{host}"] == "k"


def test_property_without_a_hadoop_option_leaves_the_store_to_python() -> None:
    assert hadoop_options("gs://b", {"gcs.user-project": "p"}) is None
    assert hadoop_options("s3://b", {"s3.profile-name": "me"}) is None
    assert hadoop_options("abfs://c@a.b", {"adls.tenant-id": "t"}) is None


def test_google_s_connector_gets_the_address_and_the_token() -> None:
    properties = {"gcs.project-id": "p", "gcs.service.host": "http://h", "gcs.oauth2.token": "t"}
    assert hadoop_options("gcs://b", properties, file_system=CONNECTOR) == {
        "fs.gs.project.id": "p",
        "fs.gs.storage.root.url": "http://h",
        "fs.gs.auth.type": "ACCESS_TOKEN_PROVIDER",
        "fs.gs.auth.access.token.provider": "IcebergPyGoogleToken",
        "fs.gs.auth.access.token.provider.impl": "IcebergPyGoogleToken",
        "fs.gs.iceberg-py.token": "t",
        **GOOGLE,
    }
    # As in Python, access without a token wins.
    anonymous = {"gcs.no-auth": "true", "gcs.oauth2.token": "t"}
    assert hadoop_options("gs://b", anonymous, file_system=CONNECTOR) == {
        "fs.gs.auth.type": "UNAUTHENTICATED",
        "fs.gs.auth.null.enable": "true",
        "fs.gs.auth.service.account.enable": "false",
        **GOOGLE,
    }
    assert hadoop_options("gs://b", {"gcs.project-id": "p"}, file_system=CONNECTOR) == {}


@pytest.mark.parametrize(
    "properties",
    [{"gcs.service.host": "http://h"}, {"gcs.oauth2.token": "t"}, {"gcs.no-auth": "true"}],
)
def test_hadoop_s_own_class_for_google_takes_no_properties(properties: dict[str, str]) -> None:
    """It would send the requests to Google's own address, with the credentials of the machine."""
    session = session_with("gs", name=HADOOPS_GOOGLE)
    assert NativeStorage(session, properties).location("gs://b/f") is None
    assert NativeStorage(session, {}).location("gs://b/f") == "gs://b/f"


def test_each_set_of_options_for_google_has_a_scheme_of_its_own(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_storage, "_warnings", set())
    session = session_with("gs", name=GOOGLE_CONNECTOR, size="1")

    def stored(token: str, why_not: str | None = None) -> NativeStorage:
        properties = {"gcs.oauth2.token": token}
        return NativeStorage(session, properties, open_in_tasks=lambda *_: why_not)

    storage = stored("t")
    location = str(storage.location("gcs://b/f"))
    scheme = location.removesuffix("://b/f")
    assert re.fullmatch("gs-[0-9a-f]{12}", scheme)
    assert storage.options[f"fs.{scheme}.impl"] == "IcebergPyGoogleFiles"
    assert storage.options["fs.gs.iceberg-py.token"] == "t"
    assert storage.options["size"] == "1"
    assert stored("t").location("gs://b/f") == location
    assert stored("other").location("gs://b/f") != location
    assert NativeStorage(session, {}).location("gs://b/f") == "gs://b/f"
    without = stored("t", "it does not compile")
    assert without.location("gcs://b/f") is None
    assert without.options == {}
    (record,) = caplog.records
    assert "for gcs:// (it does not compile); Python reads and writes there" in record.getMessage()


def test_an_emulator_of_azure_is_addressed_where_hadoop_has_the_interface_of_blobs() -> None:
    location = "abfss://c@a.dfs.core.windows.net"
    emulator = {"adls.blob-storage-authority": "h:10000", "adls.blob-storage-scheme": "http"}
    newer = JvmFileSystem(AZURE_FILE_SYSTEMS[0], has_blob_interface=True)
    assert hadoop_options(location, emulator, file_system=newer) == {
        "fs.azure.abfs.endpoint": "h:10000",
        "fs.azure.fns.account.service.type": "BLOB",
        "fs.azure.account.hns.enabled": "false",
        "fs.azure.always.use.https": "false",
        "fs.azure.iceberg-py.http": "true",
        "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
    }
    secure = hadoop_options(location, {"adls.blob-storage-authority": "h:1"}, file_system=newer)
    assert secure is not None
    assert "fs.azure.iceberg-py.http" not in secure
    assert hadoop_options(location, emulator, file_system=JvmFileSystem("older")) is None
    domain = {"adls.blob-storage-authority": ".blob.core.usgovcloudapi.net"}
    assert hadoop_options(location, domain, file_system=newer) is None
    assert hadoop_options(location, {"adls.blob-storage-scheme": "http"}, file_system=newer) is None


@pytest.mark.parametrize("name", AZURE_FILE_SYSTEMS)
def test_each_set_of_options_for_azure_has_a_scheme_of_its_own(name: str) -> None:
    def stored(key: str) -> NativeStorage:
        properties = {"adls.account-key": key}
        return NativeStorage(
            session_with("abfss", name=name), properties, open_in_tasks=lambda *_: None
        )

    storage = stored("k")
    location = str(storage.location("abfss://c@a.b/f"))
    scheme = location.removesuffix("://c@a.b/f")
    assert re.fullmatch("abfss-[0-9a-f]{12}", scheme)
    assert storage.options[f"fs.{scheme}.impl"] == "IcebergPyAzureFiles"
    assert stored("k").location("abfss://c@a.b/f") == location
    assert stored("other").location("abfss://c@a.b/f") != location


def test_files_of_azure_without_our_class_open_a_file_system_each() -> None:
    """Hadoop would else read with the keys of the table that was read first."""
    key = {"adls.account-key": "k"}
    for name in ("a.Class", AZURE_FILE_SYSTEMS[0]):
        storage = NativeStorage(session_with("abfss", name=name), key)
        assert storage.location("abfss://c@a.b/f") == "abfss://c@a.b/f"
        assert storage.options["fs.abfss.impl.disable.cache"] == "true"


def test_locations_by_a_scheme_that_the_jvm_knows(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_storage, "_warnings", set())
    storage = NativeStorage(session_with("s3a", "gs"), {"s3.region": "r"})
    assert storage.location("/a/b") == "/a/b"
    assert storage.location("file:/a/b") == "file:/a/b"
    assert storage.options == {}
    location = storage.location("s3://b/k?x=1")
    assert location is not None
    scheme = location.removesuffix("://b/k?x=1")
    # The scheme is unique to these options: Hadoop caches file systems by scheme and bucket.
    assert re.fullmatch("s3a-[0-9a-f]{12}", scheme)
    assert storage.options[f"fs.{scheme}.impl"] == "${fs.s3a.impl}"
    assert NativeStorage(session_with("s3a"), {}).location("s3://b/k") == "s3a://b/k"
    other = NativeStorage(session_with("s3a"), {"s3.region": "other"}).location("s3://b/k")
    assert str(other).startswith("s3a-")
    assert not str(other).startswith(scheme)
    assert storage.location("gcs://b/k") == "gs://b/k"
    assert storage.options["fs.s3a.endpoint.region"] == "r"
    for n in range(3):
        assert storage.location(f"abfss://c@a.b/{n}") is None
    assert NativeStorage(session_with("s3a"), {}).location("abfss://d@a.b/0") is None
    assert NativeStorage(session_with("s3"), {}).location("s3://b/k") == "s3://b/k"
    assert NativeStorage(session_with("s3a"), {"s3.proxy-uri": "p"}).location("s3://b/k") is None
    assert [(r.levelno, r.getMessage().partition(";")[0]) for r in caplog.records] == [
        (
            logging.WARNING,
            "the JVM has no file system for abfss:// (start Spark with --packages "
            "org.apache.hadoop:hadoop-azure:<version of Spark's hadoop-client-api>)",
        ),
        (logging.WARNING, "the JVM cannot be given all storage properties for s3://"),
    ]


def test_credentials_vended_by_prefix_are_the_scans_if_they_are_one_set() -> None:
    def vended(*entries: tuple[str, str]) -> NativeStorage:
        configs = [
            {"prefix": p, "config": {"s3.access-key-id": k, "s3.secret-access-key": "s"}}
            for p, k in entries
        ]
        return NativeStorage(session_with("s3a"), {VENDED_CREDENTIALS: json.dumps(configs)})

    of_table = vended(("s3://b/t", "k"))
    assert str(of_table.location("s3://b/t/f")).endswith("://b/t/f")
    assert of_table.options["fs.s3a.access.key"] == "k"
    assert str(of_table.location("s3://b/t/data/g")).endswith("://b/t/data/g")
    assert of_table.location("s3://b/other/f") is None
    of_buckets = vended(("s3://a", "k"), ("s3://b", "other"))
    assert str(of_buckets.location("s3://a/f")).endswith("://a/f")
    assert of_buckets.location("s3://b/f") is None


@pytest.mark.parametrize(
    ("properties", "bucket_options", "is_opened"),
    [
        ({"s3.endpoint": "http://h", "s3.anonymous": "true"}, ("b.access.key",), False),
        ({"s3.access-key-id": "k", "s3.secret-access-key": "s"}, ("b.endpoint",), False),
        ({"s3.region": "eu"}, ("b.endpoint.region",), False),
        ({"s3.region": "eu"}, ("b.access.key",), True),
        ({"s3.endpoint": "http://h"}, ("b2.access.key", "probe"), True),
        ({}, ("b.access.key", "b.endpoint"), True),
    ],
)
def test_options_of_the_session_for_one_bucket_replace_none_of_the_catalog(
    properties: dict[str, str], bucket_options: tuple[str, ...], is_opened: bool
) -> None:
    """S3A prefers them: a server's address would get the session's keys, or another the table's."""
    file_system = JvmFileSystem("a.S3A", bucket_options=bucket_options)
    storage = NativeStorage({"s3a": file_system}.get, properties)
    assert (storage.location("s3://b/t/f") is not None) == is_opened
