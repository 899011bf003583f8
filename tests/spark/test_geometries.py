"""Geometry and geography columns in Spark: its own types where it can store them, else binary."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.rows.geo_types import geo_spark_type
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spec.types import GeometryType
from tests.support.frames import load
from tests.support.native_lake import sqlite_lake

HAS_TYPES = geo_spark_type(GeometryType()) is not None
COLUMNS = {
    "g": ("geometry", "geometry(4326)"),
    "o": ("geometry(srid:3857)", "geometry(3857)"),
    "gg": ("geography", "geography(4326)"),
    "odd": ("geometry(projjson:mine)", "binary"),
    "round": ("geography(OGC:CRS84, karney)", "binary"),
}


def point(x: float, y: float) -> bytes:
    return struct.pack("<BI2d", 1, 1, x, y)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("geo"), "geo") as session:
        yield session


def value(column: str, wkb: str) -> str:
    """Return an expression of the column's type from an expression of WKB."""
    shown = COLUMNS[column][1]
    if not HAS_TYPES or shown == "binary":
        return wkb
    kind, _, number = shown.rstrip(")").partition("(")
    return f"st_setsrid(st_geo{'m' if kind == 'geometry' else 'g'}fromwkb({wkb}), {number})"


def wkb_of(column: str) -> str:
    is_binary = not HAS_TYPES or COLUMNS[column][1] == "binary"
    return column if is_binary else f"st_asbinary({column}) {column}"


@pytest.mark.parametrize(
    "file_format", ["parquet", pytest.param("avro", marks=pytest.mark.nightly)]
)
def test_geometries_are_written_changed_and_read(lake: IcebergSession, file_format: str) -> None:
    name = f"geo.db.{file_format}"
    lake.spark.sql(
        f"create table {name} (id bigint) tblproperties ('format-version' = '3', "
        f"'write.format.default' = '{file_format}', 'write.delete.mode' = 'merge-on-read')"
    )
    table = lake.table(name)
    update = table.update_schema()
    for column, (type_, _) in COLUMNS.items():
        update.add_column(column, type_)
    update.add_column("z", "string").commit()
    wkb = "concat(X'0101000000000000000000', if(id = 1, X'0040', X'f03f'), X'0000000000000840')"
    values = ", ".join(f"if(id = 3, null, {value(c, wkb)}) {c}" for c in COLUMNS)
    lake.spark.sql(f"insert into {name} select id, {values}, concat('z', id) z from range(5)")
    lake.spark.sql(f"update {name} set z = 'u' where id = 2")
    lake.spark.sql(f"delete from {name} where id = 4")
    types = {n: t for n, t in lake.spark.table(name).dtypes if n in COLUMNS}
    assert types == {c: shown if HAS_TYPES else "binary" for c, (_, shown) in COLUMNS.items()}
    shown = ", ".join(map(wkb_of, COLUMNS))
    expected = [
        (0, *[point(1, 3)] * 5, "z0"),
        (1, *[point(2, 3)] * 5, "z1"),
        (2, *[point(1, 3)] * 5, "u"),
        (3, *[None] * 5, "z3"),
    ]
    query = f"select id, {shown}, z from {{}} order by id"
    assert [tuple(r) for r in lake.spark.sql(query.format(name)).collect()] == expected
    portable = load(lake.spark, lake.table(name).location, {"native": "false"})
    portable.createOrReplaceTempView("portable_geometries")
    assert [
        tuple(r) for r in lake.spark.sql(query.format("portable_geometries")).collect()
    ] == expected
    lows = [
        dict(f["lower_bounds"])
        for f in lake.table(name).inspect.files().to_pylist()
        if f["lower_bounds"]
    ]
    assert {low[i] for low in lows for i in (2, 3) if i in low} >= {struct.pack("<2d", 1, 3)}
    assert not any({4, 6} & low.keys() for low in lows)
    arrow = lake.table(name).scan("id = 1").to_arrow()
    assert arrow["odd"].to_pylist() == [point(2, 3)]
    assert arrow.schema.field("g").metadata[b"ARROW:extension:name"] == b"geoarrow.wkb"
    assert arrow.schema.field("g").type == pa.binary()
