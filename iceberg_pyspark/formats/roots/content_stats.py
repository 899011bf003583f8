"""Convert metrics of files to the statistics of content entries: one typed struct per column.

Specification of version 4, `content_stats`. Only columns of primitive types outside lists and maps
have statistics; metrics of other columns are not written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from iceberg_pyspark.formats.encoding.bound_bytes import typed_bounds
from iceberg_pyspark.formats.manifest_files.parquet_fields import (
    Column,
    parquet_field,
    struct_column,
    unlike,
)
from iceberg_pyspark.spec.content_entries import StatsField, stats_field_id
from iceberg_pyspark.spec.manifests import ColumnSummary, DataFile
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    DoubleType,
    FloatType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    UnknownType,
)

CONTENT_STATS = 149
_NOTHING: Mapping[int, Any] = {}
_METRICS: Mapping[StatsField, str] = {
    StatsField.LOWER_BOUND: "lower_bounds",
    StatsField.UPPER_BOUND: "upper_bounds",
    StatsField.VALUE_COUNT: "value_counts",
    StatsField.NULL_VALUE_COUNT: "null_value_counts",
    StatsField.NAN_VALUE_COUNT: "nan_value_counts",
}
"""The fields in the order in which they are written, and the metric of a `DataFile` for each."""

_COUNTS = frozenset(
    (StatsField.VALUE_COUNT, StatsField.NULL_VALUE_COUNT, StatsField.NAN_VALUE_COUNT)
)


StatsSource: TypeAlias = DataFile | Sequence[ColumnSummary] | None
"""The source of statistics: a file, or the column summaries of a manifest, or None for neither."""


def content_stats(sources: Sequence[StatsSource], schema: Schema) -> Column | None:
    """Return the column `content_stats` of entries, or None if nothing is known about any entry.

    The value of an entry is null if nothing is known about it. The column has a struct for each
    schema column with known metrics, and the struct has the fields that any file has. Bounds are
    values of the column's type in this schema; bounds that cannot be read as the type are omitted.
    Whether bounds are tight is unknown and is not written.
    """
    metrics = {
        field: [_metric(source, name) for source in sources] for field, name in _METRICS.items()
    }
    ids_by_metric = {field: set[int]().union(*maps) for field, maps in metrics.items()}
    used_names = set[str]()
    columns: list[Column] = []
    for column in _columns_with_stats(schema.fields):
        struct_id = stats_field_id(column.field_id)
        if struct_id is None:
            continue
        children = [
            (parquet_field(struct_id + field, field.name.lower(), array.type), array)
            for field, maps in metrics.items()
            if column.field_id in ids_by_metric[field]
            and (array := _values(field, maps, column)) is not None
        ]
        if children:
            name = unlike(used_names, schema.name_by_id[column.field_id], column.field_id)
            columns.append(struct_column(struct_id, name, children))
    if not columns:
        return None
    has_stats = np.array([any(row) for row in zip(*metrics.values(), strict=True)], np.bool_)
    return struct_column(CONTENT_STATS, "content_stats", columns, has_stats)


def _metric(source: StatsSource, name: str) -> Mapping[int, Any]:
    if not source:
        return _NOTHING
    if isinstance(source, DataFile):
        return getattr(source, name) or _NOTHING
    values = ((c.field_id, getattr(c, name.removesuffix("s"))) for c in source)
    return {field_id: value for field_id, value in values if value is not None}


def _columns_with_stats(fields: Sequence[NestedField]) -> Iterator[NestedField]:
    for field in fields:
        if isinstance(field.type, StructType):
            yield from _columns_with_stats(field.type.fields)
        elif isinstance(field.type, PrimitiveType) and not isinstance(field.type, UnknownType):
            yield field


def _values(
    field: StatsField, maps: Sequence[Mapping[int, Any]], column: NestedField
) -> pa.Array | None:
    """Return a metric of a column in all entries; None if there is no such metric or value."""
    if field is StatsField.NAN_VALUE_COUNT and not _has_nan(column.type):
        return None
    field_id = column.field_id
    values = [metric.get(field_id) for metric in maps]
    if field in _COUNTS:
        array = pa.array(values, pa.int64())
    else:
        try:
            array = typed_bounds(values, column.type)
        except TypeError:
            return None
    return None if array.null_count == len(array) else array


def _has_nan(type_: Type) -> bool:
    return isinstance(type_, FloatType | DoubleType)
