"""Tables in a real S3 store whose requests the catalog's server signs."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator

import pytest

from iceberg_pyspark.storage.credentials.table_services import SIGNING
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.open_storage import open_storage
from tests.services.s3 import ACCESS_KEY, REGION, S3Server
from tests.support.file_io_contract import FileIOContract
from tests.support.http_server import TestServer, http_server
from tests.support.signer_double import SignerDouble, signing_text

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def signer(s3: S3Server) -> Iterator[tuple[SignerDouble, TestServer]]:
    double = SignerDouble(ACCESS_KEY, s3.secret, cache="private")
    with http_server(double) as server:
        yield double, server


@pytest.fixture(scope="module")
def properties(s3: S3Server, signer: tuple[SignerDouble, TestServer]) -> dict[str, str]:
    return {
        "s3.remote-signing-enabled": "true",
        "s3.endpoint": s3.endpoint,
        "s3.region": REGION,
        SIGNING: signing_text(f"{signer[1].uri}/sign"),
    }


class TestSignedS3(FileIOContract):
    refused_names = ("new\nline",)

    @pytest.fixture
    def store(self, properties: dict[str, str], bucket: str) -> FileIO:
        return open_storage(f"s3://{bucket}/t", properties)

    @pytest.fixture
    def folder(self, bucket: str) -> str:
        return f"s3://{bucket}/{uuid.uuid4()}"


@pytest.mark.parametrize("size", [10, 20_000_000])
def test_an_upload_ends_whole_or_leaves_nothing(
    s3: S3Server, bucket: str, properties: dict[str, str], size: int
) -> None:
    store = open_storage(f"s3://{bucket}", properties)
    folder = f"s3://{bucket}/{uuid.uuid4()}"
    with contextlib.suppress(ZeroDivisionError), store.open_output(f"{folder}/f") as stream:
        stream.write(bytes(size))
        raise ZeroDivisionError
    assert list(store.list_files(folder)) == []
    assert s3.unfinished_uploads(bucket) == []
    data = bytes(range(250)) * (size // 250 + 1)
    with store.open_output(f"{folder}/f") as stream:
        stream.write(data[:7])
        stream.write(data[7:])
        assert not store.exists(f"{folder}/f")
    assert store.read_bytes(f"{folder}/f") == data
    assert s3.unfinished_uploads(bucket) == []
