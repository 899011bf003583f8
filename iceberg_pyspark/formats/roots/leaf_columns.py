"""Column statistics of a whole leaf, aggregated from the statistics of its entries.

Specification of version 4, `content_stats`, and the proposal "Single-file commits": the statistics
of a manifest's entry aggregate those of the entries in the manifest. If a value is unknown for one
entry, the aggregate is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.formats.encoding.bound_bytes import bound_bytes
from iceberg_pyspark.formats.manifest_files.parquet_fields import Column
from iceberg_pyspark.spec.content_entries import STATS_BASE, STATS_WIDTH, StatsField
from iceberg_pyspark.spec.manifests import ColumnSummary, PartitionFieldSummary
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.transforms import IdentityTransform


def columns_of_entries(stats: Column | None) -> tuple[ColumnSummary, ...]:
    """Return the column statistics over all entries, from the column `content_stats` of a leaf."""
    if stats is None:
        return ()
    field, array = stats
    if array.null_count:
        return ()
    return tuple(_summaries(field.type, array))


def columns_of_partitions(
    spec: PartitionSpec, summaries: Sequence[PartitionFieldSummary]
) -> tuple[ColumnSummary, ...]:
    """Return column statistics from a manifest list's summaries of identity partition fields."""
    if len(summaries) != len(spec.fields):
        # damaged; the code that reads the partitions reports the error
        return ()
    return tuple(
        ColumnSummary(
            field_id=field.source_ids[0],
            null_value_count=None if summary.contains_null else 0,
            nan_value_count=0 if summary.contains_nan is False else None,
            lower_bound=summary.lower_bound,
            upper_bound=summary.upper_bound,
        )
        for field, summary in zip(spec.fields, summaries, strict=True)
        if isinstance(field.transform, IdentityTransform)
    )


def _summaries(struct: pa.StructType, array: pa.StructArray) -> Iterator[ColumnSummary]:
    for column, values in zip(struct, array.flatten(), strict=True):
        column_id = _field_id(column)
        stats = {
            StatsField(_field_id(child) - column_id): of_field
            for child, of_field in zip(column.type, values.flatten(), strict=True)
        }
        has_values = _has_values(stats)
        summary = ColumnSummary(
            field_id=(column_id - STATS_BASE) // STATS_WIDTH,
            value_count=_sum(stats.get(StatsField.VALUE_COUNT)),
            null_value_count=_sum(stats.get(StatsField.NULL_VALUE_COUNT)),
            nan_value_count=_sum(stats.get(StatsField.NAN_VALUE_COUNT)),
            lower_bound=_bound(stats.get(StatsField.LOWER_BOUND), has_values, "min"),
            upper_bound=_bound(stats.get(StatsField.UPPER_BOUND), has_values, "max"),
        )
        yield summary


def _has_values(stats: dict[StatsField, pa.Array]) -> pa.Array | None:
    """Return which entries may have a non-null value, and so bounds; None if counts are missing."""
    values, nulls = stats.get(StatsField.VALUE_COUNT), stats.get(StatsField.NULL_VALUE_COUNT)
    if values is None or nulls is None:
        return None
    return pc.fill_null(pc.not_equal(values, nulls), True)


def _sum(counts: pa.Array | None) -> int | None:
    if counts is None or counts.null_count:
        return None
    total: int | None = pc.sum(counts).as_py()
    return total


def _bound(bounds: pa.Array | None, has_values: pa.Array | None, function: str) -> bytes | None:
    if bounds is None:
        return None
    if has_values is not None:
        bounds = bounds.filter(has_values)
    if isinstance(bounds, pa.ExtensionArray):
        # readers order uuids in two different ways
        return None
    if not len(bounds) or bounds.null_count:
        return None
    if pa.types.is_fixed_size_binary(bounds.type):
        bounds = bounds.cast(pa.binary())
    at = pc.index(bounds, pc.call_function(function, [bounds]))
    bound: bytes | None = bound_bytes(bounds.take(pa.array([at.as_py()])))[0].as_py()
    return bound


def _field_id(field: pa.Field) -> int:
    return int((field.metadata or {})[b"PARQUET:field_id"])
