"""Scan tasks over the files of a write task return the written rows."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.planning.scan_tasks import ScanContext, ScanTask
from iceberg_pyspark.spec.manifests import DataFile, FileFormat
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    IdentityTransform,
    Transform,
    VoidTransform,
    accepts,
)
from iceberg_pyspark.spec.types import (
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    Type,
    UnknownType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.strategies import PRIMITIVE_TYPES, STORED_TYPES, nullable, values

LOOSELY_BOUNDED: tuple[type[Type], ...] = (GeometryType, GeographyType)
if int(pa.__version__.partition(".")[0]) < 25:
    # it gives infinities the largest numbers as bounds
    LOOSELY_BOUNDED += (FloatType, DoubleType)

# ORC refuses some types, far times, and times before 1970 with a fraction of a second
# (test_orc_and_avro_writers.py).
NOT_IN_ORC = (
    TimestampType(),
    TimestamptzType(),
    TimestampNsType(),
    TimestamptzNsType(),
    *(set(STORED_TYPES) - set(PRIMITIVE_TYPES)),
)
MODES = ("full", "truncate(2)", "counts", "none")
COUNTS = ("record_count", "value_counts", "null_value_counts", "nan_value_counts")
TRANSFORMS: tuple[Transform, ...] = (IdentityTransform(), BucketTransform(2), VoidTransform())


def comparable(value: Any) -> Any:
    """Return a comparable form in which NaN equals itself and zeros differ, at any depth."""
    match value:
        case float():
            return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
        case dict():
            return {k: comparable(v) for k, v in value.items()}
        case list() | tuple():
            return [comparable(v) for v in value]
        case _:
            return value


@settings(max_examples=settings().max_examples * 6 // 5, deadline=None)
@given(st.data())
def test_written_rows_are_read_back(data: st.DataObject) -> None:
    file_format: FileFormat = data.draw(st.sampled_from(("parquet", "orc", "avro")))
    types = [t for t in STORED_TYPES if file_format != "orc" or t not in NOT_IN_ORC]
    plain, inner, partitioned = (data.draw(st.sampled_from(types)) for _ in range(3))
    # Readers return the partition value of an identity column, and there NaN has only one form.
    transform = data.draw(st.sampled_from([t for t in TRANSFORMS if accepts(t, partitioned)]))
    struct = StructType(
        (
            NestedField(field_id=3, name="x", type=inner),
            NestedField(field_id=4, name="y", type=StringType(), required=True),
        )
    )
    schema = Schema(
        fields=(
            NestedField(field_id=1, name="c", type=plain),
            NestedField(field_id=2, name="s", type=struct),
            NestedField(field_id=5, name="l", type=ListType(element_id=6, element_type=inner)),
            NestedField(
                field_id=7,
                name="m",
                type=MapType(key_id=8, key_type=StringType(), value_id=9, value_type=inner),
            ),
            NestedField(field_id=10, name="u", type=UnknownType()),
            NestedField(field_id=11, name="p", type=partitioned),
            NestedField(field_id=12, name="row", type=LongType(), required=True),
        )
    )
    spec = PartitionSpec(
        spec_id=1,
        fields=(
            PartitionField(source_ids=(11,), field_id=1000, name="p_part", transform=transform),
        ),
    )
    row = st.fixed_dictionaries(
        {
            "c": nullable(plain),
            "s": st.none()
            | st.fixed_dictionaries({"x": nullable(inner), "y": values(StringType())}),
            "l": st.none() | st.lists(nullable(inner), max_size=3),
            "m": st.none()
            | st.lists(
                st.tuples(values(StringType()), nullable(inner)),
                max_size=2,
                unique_by=lambda kv: kv[0],
            ),
            "u": st.none(),
            "p": nullable(partitioned),
        }
    )
    rows = [{**r, "row": i} for i, r in enumerate(data.draw(st.lists(row, max_size=8)))]
    arrow_schema = to_arrow_schema(schema)
    table = pa.Table.from_pylist(rows, schema=arrow_schema)
    store = MemoryFileIO()
    written_as = WriteContext(
        table="t",
        table_location="mem/t",
        schema=schema,
        spec=spec,
        write_id="w",
        file_format=file_format,
        properties={"write.metadata.metrics.default": data.draw(st.sampled_from(MODES))},
    )
    batches = table.to_batches(max_chunksize=3)
    files = write_data_files(written_as, batches, store, partition_id=0, task_id=0)
    # Metrics of other formats equal the metrics from Parquet's footers.
    as_parquet = replace(written_as, file_format="parquet")
    parquet = write_data_files(as_parquet, batches, MemoryFileIO(), partition_id=0, task_id=0)
    # Footers leave out some of the ranges of coordinates that have an infinite end.
    endless = {
        field_id
        for field_id, type_ in ((1, plain), (3, inner), (11, partitioned))
        if isinstance(type_, LOOSELY_BOUNDED)
        and any(has_infinity((b or {}).get(field_id, b"")) for f in files for b in bounds_of(f))
    }
    assert [measured(f, endless) for f in files] == [measured(f, endless) for f in parquet]
    context = ScanContext(
        table="t",
        table_location="mem/t",
        projection=schema,
        schemas=(schema,),
        specs={spec.spec_id: spec},
    )
    batches = [
        batch
        for f in files
        for batch in read_task(
            context,
            ScanTask(
                file_path=f.file_path,
                file_format=f.file_format,
                file_size_in_bytes=f.file_size_in_bytes,
                record_count=f.record_count,
                start=0,
                length=f.file_size_in_bytes,
                spec_id=f.spec_id,
                partition=f.partition,
                data_sequence_number=1,
            ),
            store,
        )
    ]
    read = pa.Table.from_batches(batches, schema=arrow_schema).sort_by("row")
    # Temporal values beyond Python's years are compared as integers.
    assert read.num_rows == len(rows)
    for name in arrow_schema.names:
        assert comparable(bits(read[name])) == comparable(bits(table[name]))


def measured(file: DataFile, without_bounds: set[int]) -> list[object]:
    bounds = [
        b and {k: v for k, v in b.items() if k not in without_bounds} for b in bounds_of(file)
    ]
    counts = (getattr(file, name) for name in COUNTS)
    return [comparable(file.partition), *counts, *bounds]


def bounds_of(file: DataFile) -> list[Mapping[int, bytes] | None]:
    return [file.lower_bounds, file.upper_bounds]


def has_infinity(bound: bytes) -> bool:
    numbers = "f" if len(bound) == 4 else f"{len(bound) // 8}d"
    return any(map(math.isinf, struct.unpack(f"<{numbers}", bound)))


def bits(column: pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values, for any years."""
    return [plain_value(v) for v in column]


def plain_value(scalar: pa.Scalar) -> Any:
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.StructScalar):
        return {k: plain_value(scalar[k]) for k in scalar}
    if isinstance(scalar, pa.MapScalar):
        entries = scalar.values
        return [
            [plain_value(k), plain_value(v)]
            for k, v in zip(entries.field(0), entries.field(1), strict=True)
        ]
    if isinstance(scalar, pa.ListScalar):
        return [plain_value(v) for v in scalar.values]
    if pa.types.is_temporal(scalar.type):
        return scalar.value
    return scalar.as_py()
