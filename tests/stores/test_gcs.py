"""Google Cloud Storage: the contracts of files and of the folder catalog, uploads and listings."""

from __future__ import annotations

import contextlib
import traceback
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.errors import FileAlreadyExistsError, FileNotWrittenError, StorageError
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.objects.object_store_io import ALLOW_UNSAFE_COMMITS
from iceberg_pyspark.storage.open_storage import open_storage
from tests.services.gcs import GoogleServer, google_server
from tests.support.catalog_contract import CatalogContract
from tests.support.file_io_contract import FileIOContract

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="session")
def bucket(google: GoogleServer) -> str:
    return f"gs://{google.new_bucket()}"


@pytest.fixture
def store(google: GoogleServer, bucket: str) -> FileIO:
    return open_storage(bucket, google.properties())


@pytest.fixture
def folder(bucket: str) -> str:
    return f"{bucket}/{uuid.uuid4()}"


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[GoogleServer]:
    """Return a server whose front the test changes."""
    with google_server(tmp_path) as server:
        yield server


class TestGoogle(FileIOContract):
    refused_names = ("new\nline",)


class TestFolderCatalogOnGoogle(CatalogContract):
    marks_in_namespaces = "."
    can_rename = False
    can_register = False
    has_namespace_properties = False

    @pytest.fixture
    def catalog(self, google: GoogleServer, folder: str) -> Catalog:
        return FilesystemCatalog("hadoop", {"warehouse": folder, **google.properties()})


def test_an_upload_in_parts_appears_when_it_is_complete(
    google: GoogleServer, store: FileIO, folder: str
) -> None:
    data = bytes(range(256)) * 80_000
    before = len(google.requests)
    with store.open_output(f"{folder}/large") as stream:
        for start in range(0, len(data), 1_000_000):
            stream.write(data[start : start + 1_000_000])
        assert not store.exists(f"{folder}/large")
    parts = [r for r in google.requests[before:] if "partNumber" in r.query]
    assert len(parts) == 3
    assert store.read_bytes(f"{folder}/large") == data


def test_an_upload_that_is_given_up_leaves_nothing(
    google: GoogleServer, store: FileIO, folder: str
) -> None:
    with (
        contextlib.suppress(ZeroDivisionError),
        store.open_output(f"{folder}/f") as stream,
    ):
        stream.write(bytes(20_000_000))
        raise ZeroDivisionError
    assert google.front.uploads == {}
    assert list(store.list_files(folder)) == []


def test_all_pages_of_a_listing_are_read(own_server: GoogleServer) -> None:
    folder = f"gs://{own_server.new_bucket()}/t"
    store = open_storage(folder, own_server.properties())
    expected = [f"{folder}/{n % 2}/{n}" for n in range(10)]
    for location in expected:
        store.write_bytes(location, b"x")
    own_server.front.page_size = 3
    assert sorted(f.location for f in store.list_files(folder)) == sorted(expected)


def test_a_store_that_ignores_the_generation_is_refused_by_name(own_server: GoogleServer) -> None:
    own_server.front.heeds_conditions = False
    bucket = f"gs://{own_server.new_bucket()}"
    store = open_storage(bucket, own_server.properties())
    for _ in range(2):
        with pytest.raises(FileNotWrittenError, match=f"{bucket} ignores the condition"):
            store.create_exclusive(f"{bucket}/t/v1", b"one")
    assert list(store.list_files(bucket)) == []
    unsafe = open_storage(bucket, {**own_server.properties(), ALLOW_UNSAFE_COMMITS: "true"})
    unsafe.create_exclusive(f"{bucket}/t/v1", b"one")
    with pytest.raises(FileAlreadyExistsError):
        unsafe.create_exclusive(f"{bucket}/t/v1", b"two")


def test_requests_carry_the_token_and_errors_do_not(own_server: GoogleServer) -> None:
    bucket = f"gs://{own_server.new_bucket()}"
    own_server.front.tokens = {"ya29.right"}
    host = {"gcs.service.host": own_server.endpoint}
    store = open_storage(bucket, {**host, "gcs.oauth2.token": "ya29.right"})
    with store.open_output(f"{bucket}/large") as stream:
        stream.write(bytes(20_000_000))
    store.create_exclusive(f"{bucket}/v1", b"one")
    assert store.size(f"{bucket}/large") == 20_000_000
    assert len(list(store.list_files(bucket))) == 2
    store.delete(f"{bucket}/v1")
    wrong = open_storage(bucket, {**host, "gcs.oauth2.token": "ya29.Zq1-wrong"})
    with pytest.raises(StorageError, match=f"{bucket}/large") as caught:
        wrong.read_bytes(f"{bucket}/large")
    assert "Zq1-wrong" not in "".join(traceback.format_exception(caught.value))
