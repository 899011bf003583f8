"""Checks a root manifest's column summaries of a leaf against the entries of the leaf."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.planning.bound_values import decode_bounds
from iceberg_pyspark.spec.entry_columns import MetricMap, metric_column
from iceberg_pyspark.spec.manifests import ColumnSummary, ManifestFile
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.verify.findings import Problem

_RULE = "content-stats"
_COUNTS: tuple[MetricMap, ...] = ("value_counts", "null_value_counts", "nan_value_counts")


def leaf_column_problems(
    io: FileIO, metadata: TableMetadata, leaf: ManifestFile
) -> Iterator[Problem]:
    """Yield the wrong column summaries, because of which a filter could skip matching files.

    Metrics that an entry lacks are no proof of a problem.
    """
    spec = metadata.spec_by_id[leaf.partition_spec_id]
    entries = read_entries(
        io,
        replace(leaf, dead_positions=None, dead_count=0),
        partition_type(spec, metadata.schemas_newest_first),
        drop_deleted=False,
        metrics=frozenset(c.field_id for c in leaf.columns),
    )
    for column in leaf.columns:
        field = _field(metadata, column.field_id)
        if field is not None:
            yield from _count_problems(entries, column, field)
            yield from _bound_problems(entries, column, field)


def _field(metadata: TableMetadata, field_id: int) -> NestedField | None:
    for schema in metadata.schemas_newest_first:
        if field_id in schema.field_by_id:
            return schema.field_by_id[field_id]
    return None


def _count_problems(
    entries: pa.Table, column: ColumnSummary, field: NestedField
) -> Iterator[Problem]:
    for metric in _COUNTS:
        name = metric.removesuffix("s")
        total, counts = getattr(column, name), entries[metric_column(metric, field.field_id)]
        if total is not None and not counts.null_count and (pc.sum(counts).as_py() or 0) != total:
            yield (
                _RULE,
                f"{name} of column '{field.name}' is {total}, and its entries have "
                f"{pc.sum(counts).as_py()}",
            )


def _bound_problems(
    entries: pa.Table, column: ColumnSummary, field: NestedField
) -> Iterator[Problem]:
    sides: tuple[tuple[MetricMap, bytes | None, str], ...] = (
        ("lower_bounds", column.lower_bound, "less"),
        ("upper_bounds", column.upper_bound, "greater"),
    )
    for metric, bound_bytes, beyond in sides:
        bound = decode_bounds(pa.array([bound_bytes], pa.binary()), field.type)[0]
        if not bound.is_valid:
            continue
        array = entries[metric_column(metric, field.field_id)].combine_chunks()
        wrong = pc.call_function(beyond, [decode_bounds(array, field.type), bound])
        if pc.any(wrong).as_py():
            at = pc.index(wrong, True).as_py()
            yield (
                _RULE,
                f"the {metric.removesuffix('s').replace('_', ' ')} of column '{field.name}' does "
                f"not hold for {entries['file_path'][at]}",
            )
