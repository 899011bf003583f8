"""Checks the column bounds that root manifests state: those of entries, and those of leaves.

Specification of version 4, `content_stats`, and the proposal "Single-file commits": the statistics
of a leaf aggregate those of its entries, and are not tight while a deletion vector of the manifest
applies. Rows of data files are not read, so bounds of a data file can be incomplete but not wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_files.open_manifest import EncodedManifest
from iceberg_pyspark.planning.bound_values import decode_bounds
from iceberg_pyspark.spec.content_entries import PROFILES, STATS_BASE, STATS_WIDTH, StatsField
from iceberg_pyspark.spec.entry_columns import MetricMap, metric_column
from iceberg_pyspark.spec.manifests import ColumnSummary, ManifestFile
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.verify.findings import Problem

_STATS = [f"_{profile.paths['content_stats'][0]}" for profile in PROFILES]
_COUNTS = (StatsField.VALUE_COUNT, StatsField.NULL_VALUE_COUNT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBounds:
    """The bounds of one column in one entry; `may_have_values` tells if bounds are needed."""

    is_tight: bool
    lower: Any
    upper: Any
    may_have_values: bool


UNKNOWN_BOUNDS = ColumnBounds(is_tight=False, lower=None, upper=None, may_have_values=True)


def bounds_by_column(manifest_file: EncodedManifest) -> Mapping[int, list[ColumnBounds]]:
    """Return the bounds of each entry, by column id, for columns with a tight bound in any entry.

    Bounding boxes of geometries have no `tight_bounds` and are left out.
    """
    raw = manifest_file.raw_entries()
    by_column: dict[int, list[ColumnBounds]] = {}
    for name in _STATS:
        if name not in raw.column_names or not pa.types.is_struct(raw.schema.field(name).type):
            continue
        stats = raw.column(name).combine_chunks()
        for child, array in zip(stats.type, stats.flatten(), strict=True):
            field_id, rest = divmod(int(child.name[1:]) - STATS_BASE, STATS_WIDTH)
            if field_id < 0 or rest or not pa.types.is_struct(array.type):
                continue
            columns = {f.name: a for f, a in zip(array.type, array.flatten(), strict=True)}
            tight = _column(columns, field_id, StatsField.TIGHT_BOUNDS)
            if tight is not None and pa.types.is_boolean(tight.type) and pc.any(tight).as_py():
                by_column[field_id] = _bounds(columns, field_id, tight)
    return by_column


def _column(
    columns: Mapping[str, pa.Array], field_id: int, stats_field: StatsField
) -> pa.Array | None:
    return columns.get(f"_{STATS_BASE + STATS_WIDTH * field_id + stats_field}")


def _bounds(columns: Mapping[str, pa.Array], field_id: int, tight: pa.Array) -> list[ColumnBounds]:
    def values(stats_field: StatsField) -> list[Any]:
        column = _column(columns, field_id, stats_field)
        column_values: list[Any] = [None] * len(tight) if column is None else column.to_pylist()
        return column_values

    nans = [count or 0 for count in values(StatsField.NAN_VALUE_COUNT)]
    return [
        ColumnBounds(
            is_tight=bool(is_tight),
            lower=lower,
            upper=upper,
            may_have_values=None in (count, nulls) or count > nulls + nan,
        )
        for is_tight, lower, upper, count, nulls, nan in zip(
            tight.to_pylist(),
            values(StatsField.LOWER_BOUND),
            values(StatsField.UPPER_BOUND),
            *map(values, _COUNTS),
            nans,
            strict=True,
        )
    ]


def incomplete_bounds(manifest_file: EncodedManifest) -> Iterator[tuple[int, str]]:
    """Yield each entry, by its position, with tight bounds of which one is missing."""
    for field_id, entries in bounds_by_column(manifest_file).items():
        for ordinal, bounds in enumerate(entries):
            if bounds.is_tight and bounds.may_have_values and None in (bounds.lower, bounds.upper):
                missing = "lower_bound" if bounds.lower is None else "upper_bound"
                yield ordinal, f"tight_bounds of column {field_id} without {missing}"


def leaf_bound_problems(
    leaf_bounds: Mapping[int, ColumnBounds], leaf: EncodedManifest
) -> Iterator[str]:
    """Yield the columns whose bounds in the root are not those of the entries of the leaf."""
    in_leaf = bounds_by_column(leaf)
    for field_id, bounds in leaf_bounds.items():
        entries = in_leaf.get(field_id, [UNKNOWN_BOUNDS] * leaf.record_count)
        with_values = [e for e in entries if e.may_have_values]
        if any(not e.is_tight or None in (e.lower, e.upper) for e in with_values):
            yield (
                f"tight_bounds of column {field_id}, and the bounds of an entry of the leaf are "
                "not tight"
            )
        elif with_values:
            least, greatest = min(e.lower for e in with_values), max(e.upper for e in with_values)
            for name, bound, expected_bound in (
                ("lower_bound", bounds.lower, least),
                ("upper_bound", bounds.upper, greatest),
            ):
                if bound is not None and bound != expected_bound:
                    yield (
                        f"tight_bounds of column {field_id} with {name} {bound}, and that of the "
                        f"entries of the leaf is {expected_bound}"
                    )


_RULE = "content-stats"
_LEAF_COUNTS: tuple[MetricMap, ...] = ("value_counts", "null_value_counts", "nan_value_counts")


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
    for metric in _LEAF_COUNTS:
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
