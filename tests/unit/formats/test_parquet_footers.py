"""Footers of Parquet files read without pyarrow agree with pyarrow."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark.formats.manifest_files.parquet_footers import read_row_groups


def written(**layout: Any) -> bytes:
    rows = pa.table(
        {
            "a": pa.array(range(300), pa.int64()),
            "b": ["x", None, "yy"] * 100,
            "s": [{"c": 1.5, "d": [True, None]}] * 300,
        }
    )
    out = BytesIO()
    pq.write_table(rows, out, **layout)
    return out.getvalue()


@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"row_group_size": 7},
        {"use_dictionary": False, "compression": "zstd"},
        {"compression": "none", "write_statistics": False, "write_page_index": True},
    ],
)
def test_row_groups_are_those_that_pyarrow_reads(layout: dict[str, Any]) -> None:
    data = written(**layout)
    footer = pq.read_metadata(BytesIO(data))
    groups = read_row_groups(memoryview(data))
    assert len(groups) == footer.num_row_groups
    for i, group in enumerate(groups):
        expected = footer.row_group(i)
        assert (group.byte_size, group.row_count) == (expected.total_byte_size, expected.num_rows)
        assert len(group.columns) == expected.num_columns
        for j, column in enumerate(group.columns):
            same = expected.column(j)
            assert column.is_text == (same.physical_type == "BYTE_ARRAY")
            assert (column.codec, column.value_count) == (same.compression, same.num_values)
            place = same.dictionary_page_offset if same.has_dictionary_page else None
            assert column.dictionary == place


def test_damaged_footers_are_errors_that_name_no_memory() -> None:
    data = written()
    for cut in (0, 4, 11, len(data) - 1, len(data) - 9):
        with pytest.raises((ValueError, IndexError)):
            read_row_groups(memoryview(data[:cut]))
    longer = data[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(ValueError, match="longer than the file"):
        read_row_groups(memoryview(longer))
    # a list with more structs than the footer has bytes
    footer = b"\x49" + b"\xfc\xff\xff\xff\xff\x0f"
    file = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(ValueError, match="longer than its bytes"):
        read_row_groups(memoryview(file))


@pytest.mark.parametrize(
    ("footer", "problem"),
    [
        # a skipped number and a read one: the id of a field
        (b"\x16" + b"\xff" * 10 + b"\x01\x00", "more than 64 bits"),
        (b"\x06" + b"\xff" * 10 + b"\x01\x00", "more than 64 bits"),
        (b"\x1c" * 30, "nests too deep"),
        (b"\x1e\x00", "field of type 14"),
    ],
)
def test_values_that_thrift_does_not_write_are_refused(footer: bytes, problem: str) -> None:
    file = b"PAR1" * 2 + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(ValueError, match=problem):
        read_row_groups(memoryview(file))
