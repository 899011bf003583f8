"""Spark's types of geometries and geographies. Executors load this module, and not all types."""

from __future__ import annotations

import pyspark
from pyspark.errors import IllegalArgumentException
from pyspark.sql import types as spark_types

from iceberg_pyspark.spec import types as ice

# Spark 4.1 has the types, but cannot store them; earlier releases have none.
_STORES_GEOMETRY = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)


def geo_spark_type(type_: ice.Type) -> spark_types.DataType | None:
    """Return Spark's type of geometries or geographies, or None if a column of it is binary."""
    if not _STORES_GEOMETRY or not isinstance(type_, ice.GeometryType | ice.GeographyType):
        return None
    number = ice.crs_number(type_.crs)
    if number is None:
        return None
    try:
        if isinstance(type_, ice.GeometryType):
            return spark_types.GeometryType(number)
        return spark_types.GeographyType(number) if type_.algorithm == "spherical" else None
    except IllegalArgumentException:
        return None


def geo_type_of(type_: spark_types.DataType) -> ice.PrimitiveType | None:
    """Return the Iceberg type of Spark's geometries with one reference system, or None."""
    if not _STORES_GEOMETRY or getattr(type_, "srid", -1) < 0:
        return None
    if isinstance(type_, spark_types.GeometryType):
        return ice.GeometryType(ice.crs_of_number(type_.srid))
    if isinstance(type_, spark_types.GeographyType):
        return ice.GeographyType(ice.crs_of_number(type_.srid))
    return None
