"""Files and ORC columns that Spark would read differently from Iceberg."""

from __future__ import annotations

import io as streams
import struct
from datetime import date
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark.spark.native_read.reader_differences import (
    OrcFilesRead,
    files_with_old_dates,
    misread_files,
    why_not_by_name,
)
from iceberg_pyspark.spec.entry_columns import FILTER_METRICS, metric_column
from iceberg_pyspark.spec.metadata_columns import FILE, POS, ROW_ID
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    DateType,
    DecimalType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    Type,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.scan_tasks import optional, required

PLAIN = pa.table({"id": [1]})
WITH_ID = PLAIN.cast(pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})]))


class NotingFileIO(MemoryFileIO):
    """A store in memory that records the opened files."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def open_input(self, location: str) -> BinaryIO:
        """Record the location and open the file."""
        self.opened.append(location)
        return super().open_input(location)


def write_file(io: MemoryFileIO, path: str, rows: pa.Table) -> str:
    out = streams.BytesIO()
    pq.write_table(rows, out)
    io.write_bytes(path, out.getvalue())
    return path


def entries(*files: tuple[str, str, list[int] | None]) -> pa.Table:
    paths, formats, offsets = zip(*files, strict=True)
    return pa.table(
        {
            "file_path": pa.array(paths, pa.string()),
            "file_format": pa.array(formats, pa.string()),
            "split_offsets": pa.array(offsets, pa.list_(pa.int64())),
            "file_size_in_bytes": pa.array([1000] * len(paths), pa.int64()),
        }
    )


@pytest.mark.parametrize(
    ("size", "offsets", "wrong"),
    [
        (1000, [4, 999], False),
        (1000, [4, 1000], True),
        (12, [4], True),
        (-1, [4], True),
        (2**42, [4], False),
        (2**62, [4], True),
    ],
)
def test_files_whose_size_cannot_be_true(size: int, offsets: list[int], wrong: bool) -> None:
    io = MemoryFileIO()
    right = entries(("right", "parquet", [4]), ("orc", "orc", [4, 5000]))
    table = entries(("own", "parquet", offsets))
    table = table.set_column(3, "file_size_in_bytes", pa.array([size], pa.int64()))
    misread = misread_files(io, pa.concat_tables([right, table, right]))
    assert misread == ({"own"} if wrong else set())
    # For an ORC file the file system is asked for the size, unless the recorded size is invalid.
    as_orc = table.set_column(1, "file_format", pa.array(["orc"]))
    assert misread_files(io, as_orc) == ({"own"} if size != 1000 and wrong else set())


def test_only_files_without_split_offsets_are_looked_into_and_once() -> None:
    io = NotingFileIO()
    table = entries(
        (write_file(io, "own", PLAIN), "parquet", [4]),
        (write_file(io, "plain", PLAIN), "parquet", None),
        (write_file(io, "empty", PLAIN), "parquet", []),
        (write_file(io, "with-id", WITH_ID), "parquet", None),
        ("avro", "avro", None),
        ("lost", "parquet", None),
    )
    assert misread_files(io, table) == {"plain", "empty"}
    assert set(io.opened) == {"plain", "empty", "with-id", "lost"}
    io.opened.clear()
    assert misread_files(io, table) == {"plain", "empty"}
    assert io.opened == ["lost"]
    assert misread_files(io, entries(("own", "parquet", [4]))) == frozenset()


ID = required(1, "id", LongType())
ANY = OrcFilesRead()


def listed(field_id: int, type_: Type) -> ListType:
    return ListType(element_id=field_id, element_type=type_, element_required=False)


def why(f: NestedField, *older: NestedField) -> str | None:
    """Return why a column is not read by name if each of `older` was in an earlier schema."""
    fields = [*((ID, o) for o in older), (ID, f)]
    schemas = [Schema(fields=f, schema_id=i) for i, f in enumerate(fields)]
    return why_not_by_name(schemas, [f], OrcFilesRead(bounded_dates=frozenset({7})))


@pytest.mark.parametrize(
    "f",
    [
        optional(2, "a", StringType()),
        optional(7, "a", DateType()),
        optional(2, "a", StructType((optional(3, "a", LongType()), optional(4, "id", LongType())))),
        optional(2, "a", listed(3, StructType((optional(4, "a", DecimalType(9, 2)),)))),
        FILE,
    ],
)
def test_a_column_that_always_was_itself_is_read(f: NestedField) -> None:
    assert why(f) is None
    assert why(f, f, optional(9, "other", LongType())) is None


@pytest.mark.parametrize(
    ("f", "older"),
    [
        (optional(2, "a", LongType()), optional(2, "b", LongType())),
        (optional(2, "a", LongType()), optional(2, "A", LongType())),
        (optional(2, "a", LongType()), optional(3, "a", LongType())),
        (optional(2, "a", LongType()), optional(3, "A", LongType())),
        (optional(2, "a", LongType()), optional(2, "a", IntegerType())),
        (optional(2, "a", DecimalType(12, 2)), optional(2, "a", DecimalType(9, 2))),
        (required(2, "a", LongType()), optional(3, "b", LongType())),
        (
            optional(2, "a", StructType((optional(3, "x", LongType()),))),
            optional(2, "a", StructType((optional(3, "y", LongType()),))),
        ),
        (
            optional(2, "a", listed(3, StructType((optional(4, "x", LongType()),)))),
            optional(2, "a", listed(3, StructType((optional(5, "X", LongType()),)))),
        ),
        # a file with such a column is not opened at all
        (optional(2, "a", LongType()), optional(3, "b", TimestamptzType())),
        (optional(2, "a", LongType()), optional(3, "b", listed(4, TimestamptzType()))),
    ],
)
def test_a_column_with_another_past_is_not(f: NestedField, older: NestedField) -> None:
    assert why(f, f) is None
    assert why(f, older) is not None
    assert why(f, older, f) is not None


@pytest.mark.parametrize(
    "f",
    [
        optional(2, "a", TimestampType()),
        optional(2, "a", DateType()),
        optional(2, "a", listed(7, listed(3, DateType()))),
        optional(2, "a", StructType(())),
        optional(2, "a", LongType(), initial_default=1),
        optional(2, "a", StructType((optional(3, "x", LongType(), initial_default=1),))),
        optional(2, "a`b", LongType()),
        POS,
        ROW_ID,
    ],
)
def test_orc_type_that_spark_misreads_is_not_read_natively(f: NestedField) -> None:
    assert why(f) is not None


def test_no_name_is_known_once_schemas_are_gone() -> None:
    schemas = [Schema(fields=(ID,), schema_id=i) for i in (0, 1, 3)]
    assert why_not_by_name(schemas[:2], [ID], ANY) is None
    assert why_not_by_name(schemas, [ID], ANY) is not None


def test_columns_called_by_their_places_are_not_read_by_name() -> None:
    fields = tuple(optional(i, f"_col{i}", LongType()) for i in (2, 3))
    assert why_not_by_name([Schema(fields=fields)], fields, ANY) is not None
    assert why_not_by_name([Schema(fields=(*fields, ID))], fields, ANY) is None


def test_files_may_have_old_dates_unless_bounds_exclude_them() -> None:
    column = optional(7, "day", DateType())
    days = {
        "new": date(1600, 1, 1),
        "old": date(1599, 12, 31),
        "unknown": None,
        "parquet": date(1500, 1, 1),
        "nulls": None,
    }
    count = len(days)
    metrics = {metric_column(m, 7): pa.nulls(count, pa.int64()) for m in FILTER_METRICS}
    metrics[metric_column("value_counts", 7)] = pa.array([5] * count)
    metrics[metric_column("null_value_counts", 7)] = pa.array([0, 0, 0, 0, 5])
    for bound in ("lower_bounds", "upper_bounds"):
        metrics[metric_column(bound, 7)] = pa.array(
            [d and struct.pack("<i", (d - date(1970, 1, 1)).days) for d in days.values()],
            pa.binary(),
        )
    entries = pa.table(
        {
            "file_path": pa.array(days),
            "file_format": pa.array(["parquet" if f == "parquet" else "orc" for f in days]),
            "record_count": pa.array([5] * count),
            **metrics,
        }
    )
    assert files_with_old_dates(entries, [column]) == {"old", "unknown"}
    assert files_with_old_dates(entries, []) == frozenset()


def test_files_with_zones_are_read_for_other_columns_where_spark_opens_them() -> None:
    zoned = optional(2, "at", TimestamptzType())
    opened = OrcFilesRead(with_zones=True)
    schemas = [Schema(fields=(ID, zoned))]
    assert why_not_by_name(schemas, [ID], opened) is None
    assert "at" in (why_not_by_name(schemas, [ID], ANY) or "")
    assert "at" in (why_not_by_name(schemas, [ID, zoned], opened) or "")
