"""Stores of fsspec without a server: schemes, options, names, and what is sent when."""

from __future__ import annotations

import pickle
import uuid
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from iceberg_pyspark.catalogs.catalog_properties import CatalogProperties
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.errors import FileNotWrittenError, StorageError, UnsupportedFeatureError
from iceberg_pyspark.redaction import redact_text
from iceberg_pyspark.storage.credentials.server_endpoints import SERVER_PROPERTIES
from iceberg_pyspark.storage.credentials.vended_credentials import properties_of_store
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.storage.fsspec_io import FsspecFileIO
from iceberg_pyspark.storage.open_storage import RoutingFileIO, open_storage

SCHEME = "unitstore"


class OtherFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """A file system of another package, in memory."""

    protocol = SCHEME
    store: dict[str, Any] = {}  # noqa: RUF012 - shared by all instances, as in fsspec's own
    pseudo_dirs = [""]  # noqa: RUF012
    arguments: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        type(self).arguments = arguments

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix(f"{SCHEME}://").strip("/")


@pytest.fixture
def folder() -> str:
    fsspec.register_implementation(SCHEME, OtherFileSystem, clobber=True)
    return f"{SCHEME}://{uuid.uuid4()}"


def test_fsspec_io_pickles_with_its_properties() -> None:
    io = FsspecFileIO({"client.region": "x"})
    assert pickle.loads(pickle.dumps(io)) == io


@pytest.mark.parametrize("scheme", ["sftp", "oci"])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    def absent(protocol: str) -> Any:
        raise ImportError("Install this-package to use it")

    monkeypatch.setattr(fsspec, "get_filesystem_class", absent)
    with pytest.raises(StorageError, match=f"missing for '{scheme}': Install this-package"):
        open_storage(f"{scheme}://h/t", {})


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
        "zip://x::s3://b/a.zip",
        "sftp::zip://x",
        "simplecache::s3://b/x",
        "filecache::file:///etc/passwd",
        "reference://x",
        "data://,x",
        "dir://x",
        "git://x",
        "jar:file:/x!/y",
    ],
)
def test_schemes_of_this_machine_and_chains_are_refused(location: str) -> None:
    """fsspec has file systems for most of these schemes."""
    for open_it in (FsspecFileIO().read_bytes, lambda place: open_storage(place, {})):
        with pytest.raises(StorageError, match=r"is not supported|neither scheme"):
            open_it(location)


def test_two_colons_are_a_name_and_no_chain_of_stores(folder: str) -> None:
    io = FsspecFileIO()
    io.write_bytes(f"{folder}/secret", b"secret")
    with pytest.raises(StorageError):
        io.read_bytes(f"{SCHEME}://t/x::{folder}/secret")


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../x", "a//x", "./x", "..\\x", "a\nx", "x ", "a%2Fb", "a?b", "a#b", "%2e%2e/x"],
)
def test_names_that_a_store_may_read_as_others_are_refused(folder: str, name: str) -> None:
    for act in (FsspecFileIO().read_bytes, FsspecFileIO().delete):
        with pytest.raises(StorageError, match="are not supported in stores of fsspec"):
            act(f"{folder}/{name}")


def test_a_store_without_exclusive_creation_is_refused_by_name(folder: str) -> None:
    with pytest.raises(FileNotWrittenError, match=f"scheme '{SCHEME}' cannot create a file"):
        FsspecFileIO().create_exclusive(f"{folder}/v1.metadata.json", b"x")
    own = f"{folder}/00000-{uuid.uuid4()}.metadata.json"
    FsspecFileIO().create_exclusive(own, b"x")
    assert FsspecFileIO().read_bytes(own) == b"x"


def test_a_write_that_fails_or_is_not_closed_sends_nothing(folder: str) -> None:
    io = FsspecFileIO()
    one = io.open_output(f"{folder}/one")
    one.write(b"x")
    one.__exit__(RuntimeError, RuntimeError(), None)
    unclosed = io.open_output(f"{folder}/two")
    unclosed.write(b"x")
    del unclosed
    full = io.open_output(f"{folder}/three")
    full._upload.file.close()  # type: ignore[attr-defined]
    with pytest.raises(StorageError):
        full.write(b"x")
    with pytest.raises(StorageError, match="earlier write failed"):
        full.close()
    assert list(io.list_files(folder)) == []


def test_options_are_typed_and_reach_the_file_system(folder: str) -> None:
    options = {
        "port": ("22", 22),
        "password": ("22", "22"),
        "user": ('"22"', "22"),
        "auth": ('["me", "secret"]', ("me", "secret")),
        "verify": ("false", False),
        "endpoint": ("http://h", "http://h"),
    }
    own = {f"fsspec.{SCHEME}.{name}": text for name, (text, _) in options.items()}
    FsspecFileIO({**own, "fsspec.sftp.port": "1"}).exists(f"{folder}/f")
    assert OtherFileSystem.arguments == {name: value for name, (_, value) in options.items()}


def test_tasks_get_the_options_of_their_scheme_alone() -> None:
    properties = {"fsspec.sftp.password": "a", "fsspec.webdav.auth": "b", "hf.token": "c"}
    assert properties_of_store("sftp://h/t", properties) == {"fsspec.sftp.password": "a"}
    assert properties_of_store("hf://datasets/t", properties) == {"hf.token": "c"}
    assert properties_of_store("s3://b/t", properties) == {}


@pytest.mark.parametrize(
    ("own", "is_refused"),
    [
        ({}, False),
        ({"fsspec.ftp.password": "pw"}, False),
        ({"fsspec.ftp.password": "pw", "fsspec.ftp.host": "127.0.0.1"}, False),
        ({"fsspec.ftp.password": "pw", "fsspec.ftp.host": "other"}, True),
        ({"fsspec.ftp.password": "pw", SERVER_PROPERTIES: "[]"}, True),
        ({"fsspec.ftp.host": "127.0.0.1", SERVER_PROPERTIES: "[]"}, False),
        ({SERVER_PROPERTIES: "[]"}, False),
    ],
)
def test_a_password_goes_to_no_host_that_a_server_chose(
    own: dict[str, str], is_refused: bool
) -> None:
    """The server of a REST catalog sends the location of a table."""
    expected = "options fsspec.ftp.\\* go only to the host" if is_refused else "cannot look for"
    with pytest.raises(StorageError, match=expected):
        FsspecFileIO(own).exists("ftp://127.0.0.1:9/t/f")


def test_options_are_never_shown(folder: str) -> None:
    own = {f"fsspec.{SCHEME}.auth": '["me", "hunter2"]', f"fsspec.{SCHEME}.base_url": "http://h"}
    shown = f"{CatalogProperties(own)!r} {FsspecFileIO(own)!r} {redact_text(str(own))}"
    assert redact_text("{'fsspec.sftp.port': '22'}") == "{'fsspec.sftp.port': '***'}"
    assert "hunter2" not in shown
    assert "http://h" not in shown


def test_an_error_hides_the_parts_of_an_option(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, path: str, **_: Any) -> None:
        raise OSError("login of me with hunter2 failed")

    monkeypatch.setattr(OtherFileSystem, "info", fail)
    with pytest.raises(StorageError, match=r"login of me with \*\*\* failed"):
        FsspecFileIO({f"fsspec.{SCHEME}.auth": '["me", "hunter2"]'}).size(f"{folder}/f")


def test_options_that_the_file_system_lacks_are_named(folder: str) -> None:
    pytest.importorskip("webdav4")
    with pytest.raises(StorageError, match=r"base_url.*fsspec\.webdav\.<option>"):
        FsspecFileIO().exists("webdav://lake/f")


@pytest.mark.parametrize("name", ["my.FileIO", "org.apache.iceberg.aws.s3.S3FileIO"])
def test_an_unknown_class_of_files_is_refused_by_name(tmp_path: Any, name: str) -> None:
    where = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": str(tmp_path)}
    with pytest.raises(UnsupportedFeatureError, match=f"py-io-impl = {name} is a class"):
        load_catalog("lake", **where, **{"py-io-impl": name})


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
