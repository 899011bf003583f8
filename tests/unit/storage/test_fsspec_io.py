"""Remote stores: properties, secrets, conditional creates, names that look like fsspec's chains."""

from __future__ import annotations

import pickle
import uuid
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from iceberg_pyspark.errors import (
    FileAlreadyExistsError,
    InvalidRequestError,
    StorageError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.storage import fsspec_io
from iceberg_pyspark.storage.fsspec_io import FsspecFileIO
from iceberg_pyspark.storage.local import LocalFileIO
from iceberg_pyspark.storage.open_storage import RoutingFileIO, open_storage
from iceberg_pyspark.storage.store_properties import file_system_arguments

SECRETS = {
    "s3.access-key-id": "AKIASECRET",
    "s3.secret-access-key": "top/secret",
    "s3.session-token": "vended-token",
}


class Store(MemoryFileSystem):  # type: ignore[misc]
    """A bucket in memory under scheme s3, told per test how to treat a conditional put."""

    protocol = "s3"
    store: dict[str, Any] = {}  # noqa: RUF012 - fsspec's own kind of state
    pseudo_dirs = [""]  # noqa: RUF012
    honours_condition = True
    error: Exception | None = None

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: object) -> None:
        if self.error is not None:
            error, Store.error = self.error, None
            raise error
        if mode == "create" and self.honours_condition and self.exists(path):
            raise PreconditionFailedError
        super().pipe_file(path, value)

    def cat_file(
        self,
        path: str,
        version_id: str | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> bytes:
        # the order of s3fs, which is not that of others
        assert version_id is None
        return bytes(super().cat_file(path, start=start, end=end))


class PreconditionFailedError(Exception):
    response = {"Error": {"Code": "PreconditionFailed"}}  # noqa: RUF012


class ConflictError(Exception):
    response = {"Error": {"Code": "ConditionalRequestConflict"}}  # noqa: RUF012


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> str:
    """The scheme s3 served by `Store`, empty and honouring conditions; gives a new folder."""
    monkeypatch.setattr(Store, "honours_condition", True)
    monkeypatch.setattr(Store, "error", None)
    monkeypatch.setattr(fsspec_io, "_proven", set())
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda protocol: Store)
    return f"s3a://{uuid.uuid4()}/t"


def test_s3_properties_become_arguments_of_s3fs() -> None:
    assert file_system_arguments(
        "s3",
        {
            **SECRETS,
            "s3.endpoint": "http://h:1",
            "s3.region": "eu-1",
            "s3.path-style-access": "true",
            "s3.sse.type": "kms",
            "s3.sse.key": "arn",
            "s3.connect-timeout": "2.5",
            "warehouse": "ignored",
        },
    ) == {
        "key": "AKIASECRET",
        "secret": "top/secret",
        "token": "vended-token",
        "client_kwargs": {"endpoint_url": "http://h:1", "region_name": "eu-1"},
        "config_kwargs": {"s3": {"addressing_style": "path"}, "connect_timeout": 2.5},
        "s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "arn"},
    }


def test_client_properties_stand_in_for_those_of_s3() -> None:
    arguments = file_system_arguments(
        "s3", {"client.region": "r", "client.access-key-id": "k", "s3.anonymous": "true"}
    )
    assert arguments["client_kwargs"] == {"region_name": "r"}
    assert arguments["key"] == "k"
    assert arguments["anon"] is True


def test_gcs_properties_become_arguments_of_gcsfs() -> None:
    assert file_system_arguments(
        "gs", {"gcs.project-id": "p", "gcs.oauth2.token": "t", "gcs.service.host": "http://h"}
    ) == {"project": "p", "token": "t", "endpoint_url": "http://h"}
    assert file_system_arguments("gs", {"gcs.no-auth": "true"}) == {"token": "anon"}


def test_adls_properties_become_arguments_of_adlfs() -> None:
    assert file_system_arguments("abfs", {"adls.account-name": "a", "adls.account-key": "k"}) == {
        "account_name": "a",
        "account_key": "k",
    }
    assert file_system_arguments("abfs", {"adls.sas-token.a.dfs.core.windows.net": "s"}) == {
        "account_name": "a",
        "sas_token": "s",
    }


@pytest.mark.parametrize(
    ("protocol", "name", "value"),
    [
        ("s3", "s3.signer", "S3V4RestSigner"),
        ("s3", "s3.remote-signing-enabled", "true"),
        ("s3", "client.factory", "com.example.Factory"),
        ("s3", "client.assume-role.arn", "arn"),
        ("s3", "s3.sse.type", "custom"),
        ("gs", "gcs.encryption-key", "k"),
        ("abfs", "adls.token", "t"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(protocol: str, name: str, value: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=name.replace(".", r"\.")):
        file_system_arguments(protocol, {name: value})


def test_remote_signing_that_is_off_is_no_error() -> None:
    assert file_system_arguments("s3", {"s3.remote-signing-enabled": "false"})


def test_a_timeout_must_be_a_number() -> None:
    with pytest.raises(InvalidRequestError, match="soon"):
        file_system_arguments("s3", {"s3.request-timeout": "soon"})


def test_secrets_are_in_no_repr() -> None:
    text = repr(FsspecFileIO(SECRETS)) + repr(open_storage("/t", SECRETS))
    assert "s3.session-token" in text
    assert not any(secret in text for secret in SECRETS.values())


def test_secrets_are_in_no_error(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "error", RuntimeError("403 for ?token=vended-token&x"))
    with pytest.raises(StorageError, match=r"token=\*\*\*&x") as caught:
        FsspecFileIO(SECRETS).write_bytes(f"{s3}/f", b"x")
    assert caught.value.__cause__ is None
    assert "vended" not in str(caught.value)


def test_it_pickles_with_its_properties() -> None:
    io = FsspecFileIO(SECRETS)
    assert pickle.loads(pickle.dumps(io)) == io


def test_a_missing_package_is_named() -> None:
    try:
        fsspec.get_filesystem_class("gs")
    except ImportError:
        with pytest.raises(StorageError, match="pip install gcsfs"):
            open_storage("gs://b/t", {})


def test_an_unknown_scheme_is_named() -> None:
    with pytest.raises(StorageError, match="'nosuch'"):
        open_storage("nosuch://b/t", {})
    with pytest.raises(StorageError, match="neither scheme nor /"):
        open_storage("warehouse/t", {})


@pytest.mark.parametrize(
    "location",
    [
        "memory://t/x",
        "local:///etc/passwd",
        "FTP://h/x",
        "github://o:r@main/x",
        "zip://x::s3://b/a.zip",
        "simplecache::s3://b/x",
        "filecache::file:///etc/passwd",
        "reference://x",
        "sftp://h/x",
        "smb://h/x",
        "webhdfs://h/x",
        "data://,x",
        "dir://x",
        "jar:file:/x!/y",
    ],
)
def test_schemes_are_a_closed_list(location: str) -> None:
    """fsspec has file systems for most of these."""
    for open_it in (FsspecFileIO().read_bytes, lambda place: open_storage(place, {})):
        with pytest.raises(StorageError, match=r"none of those that locations may|neither scheme"):
            open_it(location)


def test_two_colons_are_a_name_and_no_chain_of_stores() -> None:
    io = FsspecFileIO(more_schemes=("memory",))
    folder = f"memory://{uuid.uuid4()}"
    io.write_bytes(f"{folder}/secret", b"secret")
    with pytest.raises(StorageError):
        io.read_bytes(f"memory://t/x::{folder}/secret")
    with pytest.raises(StorageError):
        io.read_bytes(f"simplecache::{folder}/secret")


def test_a_conditional_put_decides_who_creates(s3: str) -> None:
    io = FsspecFileIO()
    io.create_exclusive(f"{s3}/v1", b"one")
    with pytest.raises(FileAlreadyExistsError):
        io.create_exclusive(f"{s3}/v1", b"two")
    assert io.read_bytes(f"{s3}/v1") == b"one"
    assert [f.location for f in io.list_files(s3)] == [f"{s3}/v1"]


def test_a_range_is_asked_for_by_name(s3: str) -> None:
    io = FsspecFileIO()
    io.write_bytes(f"{s3}/f", b"0123456789")
    assert io.read_range(f"{s3}/f", 3, 4) == b"3456"


def test_a_store_that_ignores_the_condition_is_refused(
    s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "honours_condition", False)
    for _ in range(2):
        with pytest.raises(StorageError, match="ignores the condition"):
            FsspecFileIO().create_exclusive(f"{s3}/v1", b"one")
    assert list(FsspecFileIO().list_files(s3)) == []


def test_a_conflicting_conditional_put_is_tried_again(
    s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    io = FsspecFileIO()
    io.create_exclusive(f"{s3}/v1", b"one")
    monkeypatch.setattr(Store, "error", ConflictError("busy"))
    io.create_exclusive(f"{s3}/v2", b"two")
    assert io.read_bytes(f"{s3}/v2") == b"two"


def test_a_store_without_conditional_put_is_refused_by_name() -> None:
    with pytest.raises(StorageError, match="scheme 'local'"):
        FsspecFileIO(more_schemes=("local",)).create_exclusive("local:///t/v1", b"x")


def test_a_failed_upload_is_never_published(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    published = []

    class Upload(fsspec.spec.AbstractBufferedFile):  # type: ignore[misc]
        def write(self, data: bytes) -> int:
            raise ConnectionResetError("gone")

        def close(self) -> None:
            published.append(self.path)

        def discard(self) -> None:
            pass

    monkeypatch.setattr(Store, "_open", lambda self, path, mode, **kwargs: Upload(self, path, mode))
    stream = FsspecFileIO().open_output(f"{s3}/data")
    stream.write(b"x")
    with pytest.raises(StorageError, match="gone"):
        stream.flush()
    with pytest.raises(StorageError, match="earlier write failed"):
        stream.close()
    assert published == []


def test_local_and_remote_locations_share_one_store(tmp_path: Any) -> None:
    io = RoutingFileIO(local=LocalFileIO(), remote=FsspecFileIO(more_schemes=("memory",)))
    remote = f"memory://{uuid.uuid4()}/f"
    io.create_exclusive(f"{tmp_path}/f", b"local")
    io.create_exclusive(remote, b"remote")
    assert io.read_bytes(f"file:{tmp_path}/f") == b"local"
    assert io.read_bytes(remote) == b"remote"
    assert pickle.loads(pickle.dumps(io)) == io
