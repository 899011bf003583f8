"""Geometry and geography columns: their logical types in Parquet, and the bounds of their files."""

from __future__ import annotations

import io
import math
import struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark.arrow.arrow_schemas import from_arrow_schema
from iceberg_pyspark.arrow.column_metrics import FileMetrics
from iceberg_pyspark.arrow.formats.file_writers import file_writers
from iceberg_pyspark.arrow.write.cast_to_table_schema import compile_cast_to_table_schema
from iceberg_pyspark.changes.compatibility import check_schema
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.spec.bounding_boxes import BoundingBox
from iceberg_pyspark.spec.manifests import FileFormat
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    GeographyType,
    GeometryType,
    NestedField,
    PrimitiveType,
    primitive_from_string,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO

NAN = math.nan


def wkb(kind: int, *numbers: float, count: int | None = None, order: str = "<") -> bytes:
    """Return a point, or with a count a line or the rings of a polygon."""
    head = struct.pack(f"{order}BI", order == "<", kind)
    if count is not None:
        head += struct.pack(f"{order}I", count)
    return head + struct.pack(f"{order}{len(numbers)}d", *numbers)


POINT = wkb(1, 30, 10)
POINTS = [POINT, None, wkb(1, -5, 2, order=">")]
LINE = wkb(2, 1, 2, 3, -4, count=2)
RING = struct.pack("<BIII", 1, 3, 1, 4) + struct.pack("<8d", 0, 0, 5, 0, 5, 5, 0, 0)
MULTI = struct.pack("<BII", 1, 4, 2) + wkb(1, 7, 8) + wkb(1, NAN, 9)
MIXED = struct.pack("<BII", 1, 7, 2) + LINE + RING


def schema_of(type_: PrimitiveType) -> Schema:
    return Schema(fields=(NestedField(field_id=1, name="g", type=type_),))


def written(
    type_: PrimitiveType,
    values: list[bytes | None],
    file_format: FileFormat = "parquet",
    *,
    group: int = 1000,
) -> tuple[bytes, FileMetrics]:
    schema = schema_of(type_)
    rows = pa.RecordBatch.from_pydict({"g": pa.array(values, pa.large_binary())})
    cast = compile_cast_to_table_schema(rows.schema, schema, table="t")
    store = MemoryFileIO()
    writers = file_writers(file_format, schema, {}, target_file_size_in_bytes=1 << 20)
    file = writers.create(store, "f")
    for first in range(0, len(values), group):
        file.write(pa.Table.from_batches([cast(rows.slice(first, group))]))
    metrics = file.close().metrics
    return store.read_bytes("f"), metrics


@pytest.mark.parametrize(
    ("type_", "shown"),
    [
        ("geometry", "Geometry(crs=)"),
        ("geometry(srid:3857)", "Geometry(crs=srid:3857)"),
        ("geometry(projjson:mine)", "Geometry(crs=projjson:mine)"),
        ("geography", "Geography(crs=, algorithm=spherical)"),
        ("geography(EPSG:4269, karney)", "Geography(crs=EPSG:4269, algorithm=karney)"),
        ("geography(OGC:CRS84, vincenty)", "Geography(crs=, algorithm=vincenty)"),
    ],
)
def test_files_have_the_logical_type(type_: str, shown: str) -> None:
    data, _ = written(primitive_from_string(type_), POINTS)
    file = pq.ParquetFile(io.BytesIO(data))
    assert shown in str(file.schema)
    assert file.read().column("g").to_pylist() == POINTS


def corners(*coordinates: float) -> bytes:
    return struct.pack(f"<{len(coordinates)}d", *coordinates)


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
@pytest.mark.parametrize(
    ("values", "lower", "upper"),
    [
        (POINTS, corners(-5, 2), corners(30, 10)),
        ([LINE, RING], corners(0, -4), corners(5, 5)),
        ([MULTI, MIXED], corners(0, -4), corners(7, 9)),
        ([wkb(1001, 1, 2, 3), wkb(1, 4, 5)], corners(1, 2, 3), corners(4, 5, 3)),
        ([wkb(2001, 1, 2, 3)], corners(1, 2, NAN, 3), corners(1, 2, NAN, 3)),
        ([wkb(3001, 1, 2, 3, 4)], corners(1, 2, 3, 4), corners(1, 2, 3, 4)),
        ([wkb(1, 1, NAN), wkb(1, 3, 7)], corners(1, 7), corners(3, 7)),
        ([wkb(1, NAN, NAN), None, wkb(2, count=0)], None, None),
        ([None], None, None),
        ([wkb(1, 1, 2), b"junk"], None, None),
    ],
    ids=["xy", "lines", "nested", "z", "m", "zm", "nan", "empty", "null", "junk"],
)
def test_bounds_are_the_corners_of_all_geometries(
    values: list[bytes | None], lower: bytes | None, upper: bytes | None, file_format: FileFormat
) -> None:
    """docs/conformance.md 50."""
    _, metrics = written(GeometryType(), values, file_format)
    assert metrics["lower_bounds"] == ({} if lower is None else {1: lower})
    assert metrics["upper_bounds"] == ({} if upper is None else {1: upper})
    assert metrics["value_counts"] == {1: len(values)}
    assert metrics["null_value_counts"] == {1: values.count(None)}


def test_row_groups_have_one_box_unless_one_of_them_is_unknown() -> None:
    """docs/conformance.md 50."""
    _, metrics = written(GeometryType(), [*POINTS, LINE], group=1)
    assert metrics["lower_bounds"] == {1: corners(-5, -4)}
    assert metrics["null_value_counts"] == {1: 1}
    # Parquet's statistics of the first group lack its X, which other readers may compare.
    _, metrics = written(GeometryType(), [wkb(1, 1, NAN), wkb(1, 3, 7)], group=1)
    assert metrics["lower_bounds"] == {}


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_geographies_have_counts_and_no_bounds(file_format: FileFormat) -> None:
    """docs/conformance.md 50."""
    for type_ in (GeographyType(), GeographyType("OGC:CRS84", "thomas")):
        _, metrics = written(type_, POINTS, file_format)
        assert metrics["lower_bounds"] == metrics["upper_bounds"] == {}
        assert metrics["null_value_counts"] == {1: 1}


@pytest.mark.parametrize(
    "damaged", [b"", b"\x01", b"\x02" + POINT[1:], POINT + b"\x00", wkb(9, 1, 2), LINE[:-1]]
)
def test_what_is_no_wkb_has_no_box(damaged: bytes) -> None:
    with pytest.raises(ValueError, match=r"cut short|byte order|follow|type"):
        BoundingBox().add_wkb(damaged)


def test_arrow_tables_of_other_tools_have_their_types() -> None:
    def type_of(metadata: bytes) -> Any:
        marks = {b"ARROW:extension:name": b"geoarrow.wkb", b"ARROW:extension:metadata": metadata}
        field = pa.field("g", pa.binary(), metadata=marks)
        return from_arrow_schema(pa.schema([field])).fields[0].type

    assert type_of(b"") == GeometryType()
    assert type_of(b'{"crs": "EPSG:3857"}') == GeometryType("EPSG:3857")
    assert type_of(b'{"crs": "3857", "crs_type": "srid"}') == GeometryType("srid:3857")
    assert type_of(b'{"crs": {"id": {"authority": "EPSG", "code": 2056}}}') == GeometryType(
        "EPSG:2056"
    )
    assert type_of(b'{"edges": "vincenty"}') == GeographyType("OGC:CRS84", "vincenty")


@pytest.mark.parametrize(
    ("type_", "why"),
    [
        (GeographyType("OGC:CRS84", "flat"), "algorithms of geography are spherical"),
        (GeographyType("srid:3857"), "a system on a plane"),
        (GeographyType("EPSG:32632"), "a system on a plane"),
    ],
    ids=str,
)
def test_wrong_types_are_not_made(type_: PrimitiveType, why: str) -> None:
    with pytest.raises(InvalidRequestError, match=why):
        check_schema(schema_of(type_), 3)
    check_schema(schema_of(GeographyType("EPSG:4269", "andoyer")), 3)


def test_orc_refuses_geometries_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"column 'g' has type geometry, .* to ORC"):
        written(GeometryType(), POINTS, "orc")
