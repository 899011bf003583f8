"""The interface of file stores, and deletion of many files."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.credentials.vended_credentials import VENDED_CREDENTIALS
from iceberg_pyspark.storage.files.file_io import FileIO, delete_files, files_per_request
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO, open_process_memory
from iceberg_pyspark.storage.objects.object_store_io import ObjectStoreFileIO
from iceberg_pyspark.storage.open_storage import RoutingFileIO, open_storage
from iceberg_pyspark.storage.own_folders import OwnFolders
from iceberg_pyspark.storage.restricted_io import RestrictedFileIO
from tests.support.file_io_contract import FileIOContract
from tests.support.hooked_storage import HookedFileIO
from tests.support.http_server import TestServer, http_server
from tests.support.s3_double import S3Double


class TestMemory(FileIOContract):
    @pytest.fixture
    def store(self) -> FileIO:
        return MemoryFileIO()

    @pytest.fixture
    def folder(self) -> str:
        return "mem:/t"


class TestLocalPath(FileIOContract):
    @pytest.fixture
    def store(self) -> FileIO:
        return LocalFileIO()

    @pytest.fixture
    def folder(self, tmp_path: Path) -> str:
        return str(tmp_path / "t")


class TestLocalUri(TestLocalPath):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> str:
        return f"file:{tmp_path}/t"


class TestLocalUriWithEmptyHost(TestLocalPath):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/t"


class TestRoutedToMemory(FileIOContract):
    @pytest.fixture
    def store(self, folder: str) -> FileIO:
        open_process_memory(folder)
        return open_storage(folder, {})

    @pytest.fixture
    def folder(self) -> str:
        return f"memory://{uuid.uuid4()}/t"


class TestRestricted(TestLocalPath):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FileIO:
        inside = open_storage(str(tmp_path), {})
        folder = str(tmp_path)
        return RestrictedFileIO(
            io=inside,
            known_location=folder,
            folders=(folder,),
            hint="table db.t",
            own=OwnFolders((folder,)),
        )


FILES = [f"s3://b/t/{n}" for n in range(1500)]


@dataclass
class BulkStore(MemoryFileIO):
    """A store that records its requests to delete."""

    requests: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def files_per_request(self, location: str) -> int:
        return 1000

    def delete_files(self, locations: Sequence[str]) -> dict[str, StorageError]:
        self.requests.append(list(locations))
        return {}


@pytest.fixture
def s3() -> Iterator[tuple[S3Double, TestServer, FileIO]]:
    double = S3Double({"key"})
    with http_server(double) as server:
        io = open_storage("s3://b/t", properties(server))
        double.objects.update((f.removeprefix("s3:/"), b"x") for f in FILES)
        yield double, server, io


def properties(server: TestServer, key: str = "key") -> dict[str, str]:
    return {
        "s3.endpoint": server.uri,
        "s3.access-key-id": key,
        "s3.secret-access-key": "s",
        "s3.region": "r",
    }


def test_a_request_deletes_a_thousand_files(s3: tuple[S3Double, TestServer, FileIO]) -> None:
    double, server, io = s3
    assert files_per_request(io, FILES[0]) == 1000
    assert delete_files(io, [*FILES, "s3a://b/t/1", "s3://b/t/missing"]) == {}
    assert double.objects == {}
    assert len(server.requests) == 2


def test_a_file_that_fails_is_reported_and_the_others_are_deleted(
    s3: tuple[S3Double, TestServer, FileIO],
) -> None:
    double, server, io = s3
    double.protected = {"/b/t/7", "/b/t/1400"}
    failures = delete_files(io, FILES)
    assert set(failures) == {"s3://b/t/7", "s3://b/t/1400"}
    assert set(double.objects) == double.protected
    assert "cannot delete s3://b/t/7" in str(failures["s3://b/t/7"])
    assert "AccessDenied" in str(failures["s3://b/t/7"])
    # two requests, and for each failure 33 for the parts of its request and one for each file of
    # the failed part
    assert len(server.requests) < 2 + 2 * (33 + 32)


def test_names_that_the_store_cannot_serve_are_reported(
    s3: tuple[S3Double, TestServer, FileIO],
) -> None:
    double, _, io = s3
    failures = delete_files(io, ["s3://b/t/../x", FILES[0], "s3:///x", FILES[1]])
    assert set(failures) == {"s3://b/t/../x", "s3:///x"}
    assert len(double.objects) == len(FILES) - 2


def test_files_with_their_own_credentials_have_their_own_request() -> None:
    double = S3Double({"one", "two"}, {"/b/t1/f": b"x", "/b/t2/f": b"x"})
    with http_server(double) as server:
        vended = (
            '[{"prefix": "s3://b/t1", "config": {"s3.access-key-id": "one"}},'
            ' {"prefix": "s3://b/t2", "config": {"s3.access-key-id": "two"}}]'
        )
        io = ObjectStoreFileIO({**properties(server, key="wrong"), VENDED_CREDENTIALS: vended})
        assert delete_files(io, ["s3://b/t1/f", "s3://b/t2/f", "s3://b/t1/g"]) == {}
    assert double.objects == {}
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("location", "count"),
    [("s3a://b/f", 1000), ("gs://b/f", 1), ("abfss://c@a.dfs.core.windows.net/f", 256)],
)
def test_the_store_determines_how_many_files_a_request_has(location: str, count: int) -> None:
    io = ObjectStoreFileIO({})
    assert files_per_request(io, location) == count
    routing = RoutingFileIO(local=MemoryFileIO(), objects=io, remote=MemoryFileIO())
    assert files_per_request(routing, location) == count
    assert files_per_request(routing, "file:/x") == files_per_request(routing, "x://b/f") == 1


def test_each_store_gets_its_own_files() -> None:
    local, objects, remote = MemoryFileIO(), BulkStore(), MemoryFileIO()
    for location in ("/t/f", "/t/g", "ftp://h/f"):
        (remote if "://" in location else local).write_bytes(location, b"x")
    io = RoutingFileIO(local=local, objects=objects, remote=remote)
    assert delete_files(io, ["/t/f", "s3://b/f", "ftp://h/f", "s3://b/g"]) == {}
    assert objects.requests == [["s3://b/f", "s3://b/g"]]
    assert [f.location for f in local.list_files("/t")] == ["/t/g"]
    assert not remote.exists("ftp://h/f")


def test_a_restricted_location_is_refused_before_anything_is_deleted() -> None:
    store = BulkStore()
    io = RestrictedFileIO(
        io=store,
        known_location="s3://b/wh/t/metadata/v1.metadata.json",
        folders=("s3://b/wh/t", "s3://b/wh/other"),
        hint="table db.t",
        own=OwnFolders(("s3://b/wh/t",)),
    )
    outside = ["s3://b/wh/other/f", "s3://b/wh/t/../other/f", "s3://b2/wh/t/f", "/etc/passwd"]
    inside = ["s3://b/wh/t/f", "s3://b/wh/t/data/g"]
    assert files_per_request(io, inside[0]) == 1000
    failures = delete_files(io, [inside[0], *outside, inside[1]])
    assert store.requests == [inside]
    assert set(failures) == set(outside)
    assert all("not deleted, because it is outside" in str(e) for e in failures.values())


def test_a_store_without_such_requests_deletes_one_by_one() -> None:
    """A wrapper that knows nothing of many files sees each deletion, and may fail it."""
    memory, deleted = MemoryFileIO(), []

    def hook(operation: str, location: str, moment: str) -> None:
        if (operation, moment) == ("delete", "before"):
            deleted.append(location)
            if location == "m:/b":
                raise StorageError("m:/b: refused")

    for name in "abc":
        memory.write_bytes(f"m:/{name}", b"x")
    io = HookedFileIO(memory, hook)
    assert files_per_request(io, "m:/a") == 1
    failures = delete_files(io, ["m:/a", "m:/b", "m:/c", "m:/missing"])
    assert {k: str(v) for k, v in failures.items()} == {"m:/b": "m:/b: refused"}
    assert deleted == ["m:/a", "m:/b", "m:/c", "m:/missing"]
    assert [f.location for f in memory.list_files("m:")] == ["m:/b"]
