"""Stores through fsspec: a closed list of schemes, no chained URLs, no commits."""

from __future__ import annotations

import pickle
import uuid
from typing import Any

import fsspec
import pytest

from iceberg_pyspark.errors import FileNotWrittenError, StorageError
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.storage.files.memory import MemoryFileIO
from iceberg_pyspark.storage.fsspec_io import FsspecFileIO
from iceberg_pyspark.storage.open_storage import RoutingFileIO, open_storage


def test_it_pickles_with_its_properties() -> None:
    io = FsspecFileIO({"client.region": "x"})
    assert pickle.loads(pickle.dumps(io)) == io


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(protocol: str) -> Any:
        raise ImportError("no aiohttp")

    monkeypatch.setattr(fsspec, "get_filesystem_class", absent)
    with pytest.raises(StorageError, match=r"pip install 'iceberg-pyspark\[http\]'"):
        open_storage("https://h/t", {})


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
    """fsspec has file systems for most of these schemes."""
    for open_it in (FsspecFileIO().read_bytes, lambda place: open_storage(place, {})):
        with pytest.raises(StorageError, match=r"is not supported|neither scheme"):
            open_it(location)


def test_two_colons_are_a_name_and_no_chain_of_stores() -> None:
    io = FsspecFileIO(more_schemes=("memory",))
    folder = f"memory://{uuid.uuid4()}"
    io.write_bytes(f"{folder}/secret", b"secret")
    with pytest.raises(StorageError):
        io.read_bytes(f"memory://t/x::{folder}/secret")
    with pytest.raises(StorageError):
        io.read_bytes(f"simplecache::{folder}/secret")


def test_a_store_without_exclusive_creation_is_refused_by_name() -> None:
    with pytest.raises(FileNotWrittenError, match="scheme 'local'"):
        FsspecFileIO(more_schemes=("local",)).create_exclusive("local:///t/v1", b"x")


def test_a_failed_upload_is_never_published(monkeypatch: pytest.MonkeyPatch) -> None:
    published = []

    class Upload(fsspec.spec.AbstractBufferedFile):  # type: ignore[misc]
        def write(self, data: bytes) -> int:
            raise ConnectionResetError("gone")

        def close(self) -> None:
            published.append(self.path)

        def discard(self) -> None:
            pass

    kind = fsspec.get_filesystem_class("memory")
    monkeypatch.setattr(kind, "_open", lambda self, path, mode, **kwargs: Upload(self, path, mode))
    stream = FsspecFileIO(more_schemes=("memory",)).open_output(f"memory://{uuid.uuid4()}/data")
    stream.write(b"x")
    with pytest.raises(StorageError, match="gone"):
        stream.flush()
    with pytest.raises(StorageError, match="earlier write failed"):
        stream.close()
    assert published == []


def test_local_and_other_locations_share_one_store(tmp_path: Any) -> None:
    io = RoutingFileIO(
        local=LocalFileIO(),
        objects=MemoryFileIO(),
        remote=MemoryFileIO(),
    )
    remote = "https://host/f"
    io.create_exclusive(f"{tmp_path}/f", b"local")
    io.create_exclusive("s3://b/f", b"object")
    io.create_exclusive(remote, b"remote")
    assert io.read_bytes(f"file:{tmp_path}/f") == b"local"
    assert io.read_bytes("s3://b/f") == b"object"
    assert io.read_bytes(remote) == b"remote"
