"""Pages of our Parquet files have checksums, and only the checksums reveal a flipped bit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.errors import StorageError

PLAIN = {"write.parquet.compression-codec": "uncompressed", "format-version": "2"}
OFF = {"read.parquet.verify-checksum": "false"}
VALUE = 0x1122334455667788


def table_of(folder: Path, **properties: str) -> Table:
    catalog = load_catalog("c", type="hadoop", warehouse=str(folder))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema="id BIGINT", properties={**PLAIN, **properties})
    table.append(pa.table({"id": pa.array([VALUE])}))
    return table


def data_file(folder: Path) -> Path:
    (file,) = folder.rglob("data/*.parquet")
    return file


def flip(path: Path) -> None:
    """Flip a bit of the value at its first place in the file, which is its page."""
    data = bytearray(path.read_bytes())
    data[data.index(VALUE.to_bytes(8, "little"))] ^= 1
    path.write_bytes(bytes(data))


def test_a_flipped_bit_of_a_page_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    assert table.scan().to_arrow()["id"].to_pylist() == [VALUE]
    flip(data_file(tmp_path))
    with pytest.raises(StorageError, match=r"\.parquet.*checksum.*read\.parquet\.verify-checksum"):
        table.scan().to_arrow()


def test_switched_off_the_wrong_value_is_read(tmp_path: Path) -> None:
    table = table_of(tmp_path, **OFF)
    flip(data_file(tmp_path))
    assert table.scan().to_arrow()["id"].to_pylist() == [VALUE ^ 1]
