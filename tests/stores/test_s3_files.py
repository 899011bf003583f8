"""Files in S3: the `FileIO` contract, request counts, uploads, and stores unfit for tables."""

from __future__ import annotations

import contextlib
import sys
import traceback
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark import load_catalog
from iceberg_pyspark.arrow.formats import parquet_reader
from iceberg_pyspark.arrow.formats.parquet_reader import ParquetFileReader
from iceberg_pyspark.errors import (
    FileAlreadyExistsError,
    FileNotWrittenError,
    IcebergError,
    StorageError,
)
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.objects import object_store_io, object_streams
from iceberg_pyspark.storage.objects.object_store_io import ALLOW_UNSAFE_COMMITS
from iceberg_pyspark.storage.open_storage import open_storage
from tests.services.s3 import ACCESS_KEY, S3Server
from tests.services.s3rver import HeedlessS3, heedless_s3
from tests.support.file_io_contract import FileIOContract

pytestmark = pytest.mark.nightly


class TestS3(FileIOContract):
    refused_names = ("new\nline",)

    @pytest.fixture
    def store(self, s3: S3Server, bucket: str) -> FileIO:
        return open_storage(f"s3://{bucket}/t", s3.properties())

    @pytest.fixture
    def folder(self, bucket: str) -> str:
        return f"s3://{bucket}/{uuid.uuid4()}"


def test_a_file_of_many_parts_is_uploaded_whole(s3: S3Server, bucket: str) -> None:
    store = open_storage(f"s3://{bucket}", s3.properties())
    location = f"s3://{bucket}/{uuid.uuid4()}/large"
    data = bytes(range(256)) * 80_000
    with store.open_output(location) as stream:
        for start in range(0, len(data), 1_000_000):
            stream.write(data[start : start + 1_000_000])
        assert not store.exists(location)
    assert store.read_bytes(location) == data


@pytest.mark.parametrize("size", [10, 20_000_000])
def test_an_upload_that_is_given_up_leaves_nothing(s3: S3Server, bucket: str, size: int) -> None:
    store = open_storage(f"s3://{bucket}", s3.properties())
    folder = f"s3://{bucket}/{uuid.uuid4()}"
    before = s3.requests()
    with (
        contextlib.suppress(ZeroDivisionError),
        store.open_output(f"{folder}/f") as stream,
    ):
        stream.write(bytes(size))
        raise ZeroDivisionError
    request = s3.requests() - before
    assert request["AbortMultipartUpload"] == request["CreateMultipartUpload"] == (size > 1_000_000)
    assert list(store.list_files(folder)) == []
    assert s3.unfinished_uploads(bucket) == []


def test_columns_are_read_in_few_requests(s3: S3Server, bucket: str) -> None:
    """One request reads the footer, and one reads all close columns of a row group."""
    store = open_storage(f"s3://{bucket}", s3.properties())
    location = f"s3://{bucket}/{uuid.uuid4()}/f.parquet"
    rows = pa.table({f"c{n}": np.random.default_rng(n).random(100_000) for n in range(8)})
    with store.open_output(location) as stream:
        pq.write_table(rows, stream, row_group_size=50_000, compression="none")
    before = s3.requests()
    with ParquetFileReader(store, location) as reader:
        assert s3.requests() - before == Counter({"GetObject": 1})
        batches = [batch for _, batch in reader.batches([0, 1, 7])]
    assert s3.requests() - before <= Counter({"GetObject": 5})
    assert pa.Table.from_batches(batches).equals(rows.select(["c0", "c1", "c7"]))


def test_row_groups_larger_than_what_is_held_are_read_in_slices(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_streams, "_SLICE_BYTES", 1 << 20)
    monkeypatch.setattr(parquet_reader, "_WHOLE_CHUNKS_BYTES", 1 << 20)
    store = open_storage(f"s3://{bucket}", s3.properties())
    location = f"s3://{bucket}/{uuid.uuid4()}/f.parquet"
    rows = pa.table({f"c{n}": np.random.default_rng(n).random(400_000) for n in range(3)})
    with store.open_output(location) as stream:
        pq.write_table(rows, stream, row_group_size=300_000)
    with ParquetFileReader(store, location) as reader:
        peak_bytes = 0
        batches = []
        for _, batch in reader.batches([0, 2]):
            batches.append(batch)
            groups = reader._stream._groups  # type: ignore[attr-defined]
            peak_bytes = max(
                peak_bytes, sum(len(d) for g in groups for d in g.fetched_parts.values())
            )
    assert pa.Table.from_batches(batches).equals(rows.select(["c0", "c2"]))
    assert 0 < peak_bytes < 3 << 20


@pytest.fixture
def heedless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeedlessS3]:
    """A server of which this process does not know yet that it ignores conditions."""
    monkeypatch.setattr(object_store_io, "_honours_conditions", {})
    with heedless_s3(tmp_path) as server:
        yield server


def test_a_store_that_ignores_the_condition_is_refused_by_name(heedless: HeedlessS3) -> None:
    properties = heedless.properties()
    root = f"s3://{heedless.bucket}"
    store = open_storage(root, properties)
    for _ in range(2):
        with pytest.raises(FileNotWrittenError, match=f"{root} ignores the condition"):
            store.create_exclusive(f"{root}/t/v1", b"one")
    assert heedless.names() == []
    # The store is tested once, with two puts of one name.
    assert len(heedless.probes()) == 2
    # No other writer can have a name with a new UUID, so nothing depends on the condition.
    own = f"t/00001-{uuid.uuid4()}.metadata.json"
    store.create_exclusive(f"{root}/{own}", b"own")
    assert heedless.names() == [own]
    store.delete(f"{root}/{own}")
    unsafe = open_storage(root, {**properties, ALLOW_UNSAFE_COMMITS: "true"})
    unsafe.create_exclusive(f"{root}/t/v1", b"one")
    with pytest.raises(FileAlreadyExistsError):
        unsafe.create_exclusive(f"{root}/t/v1", b"two")
    assert store.read_bytes(f"{root}/t/v1") == b"one"
    assert len(heedless.probes()) == 2


def test_tables_on_a_store_that_ignores_the_condition_get_no_commit(heedless: HeedlessS3) -> None:
    settings = {"type": "hadoop", "warehouse": f"s3://{heedless.bucket}/wh"}
    settings |= heedless.properties()
    unsafe = load_catalog("lake", **settings, **{ALLOW_UNSAFE_COMMITS: "true"})
    unsafe.create_namespace("db")
    rows = pa.table({"id": pa.array([1], pa.int64())})
    table = unsafe.create_table("db.t", "id BIGINT")
    for _ in range(2):
        table.append(rows)
    before = heedless.names()
    safe = load_catalog("lake", **settings)
    with pytest.raises(IcebergError, match="ignores the condition"):
        safe.create_table("db.other", "id BIGINT")
    with pytest.raises(IcebergError, match="ignores the condition"):
        safe.load_table("db.t").append(rows)
    assert heedless.names() == before
    assert safe.load_table("db.t").scan().to_arrow().num_rows == 2
    assert len(heedless.probes()) == 2


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    for scheme, extra in (("s3", "s3"), ("gs", "gcs"), ("az", "azure")):
        with pytest.raises(StorageError, match=rf"pip install 'iceberg-pyspark\[{extra}\]'"):
            open_storage(f"{scheme}://no-{extra}/t", {"adls.account-name": "a"})


def test_a_wrong_key_is_an_error_without_it(s3: S3Server, bucket: str) -> None:
    wrong = {**s3.properties(), "s3.secret-access-key": "Zq1-wrong-secret"}
    with pytest.raises(StorageError, match=f"s3://{bucket}/f") as caught:
        open_storage(f"s3://{bucket}", wrong).read_bytes(f"s3://{bucket}/f")
    shown = "".join(traceback.format_exception(caught.value))
    assert "Zq1-wrong-secret" not in shown
    assert ACCESS_KEY not in str(caught.value)
