"""Aggregates of a scan and statistics of columns, from metadata, without opening data files.

Aggregates of a file are known if every row is live and matches the predicate, and if bounds are
exact. Bounds of strings and bytes may be truncated, so for these types only partition values count.
NaN is outside the bounds of floats, so a file must be known to have none; a zero as the bound of
floats does not tell the sign of the zeros; and the largest number may stand for an infinity. The
rows of all other files remain to be read.

Column statistics are only good for estimates: deleted rows are counted, and bounds may be wider
than the values. Distinct values are counted by the writer of a statistics file; table metadata
repeats the counts of its theta sketches (Puffin specification, `apache-datasketches-theta-v1`), so
the file itself is not opened. The other values come from manifests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.formats.puffin.theta_sketches import DISTINCT_COUNT, THETA_SKETCH
from iceberg_pyspark.planning.bound_values import comparable_values, decode_bounds
from iceberg_pyspark.planning.entry_filter import is_true
from iceberg_pyspark.planning.proven_files import proven_files
from iceberg_pyspark.planning.scan_plan import PlannedFiles
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.entry_columns import MetricMap, metric_column
from iceberg_pyspark.spec.partitioning import identity_source_ids
from iceberg_pyspark.spec.property_types import count_in
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.reading.table_scan import TableScan

_log = get_logger(__name__)

AggregateKind: TypeAlias = Literal["rows", "count", "min", "max"]

_BOUNDED_TYPES = (
    types.BooleanType,
    types.IntegerType,
    types.LongType,
    types.DateType,
    types.TimestampType,
    types.TimestamptzType,
    types.DecimalType,
)
_GROUPED_TYPES = (*_BOUNDED_TYPES, types.StringType)
_FLOATS = (types.FloatType, types.DoubleType)
_LARGEST = [float(np.finfo(t).max) for t in (np.float32, np.float64)]
"""The bounds that some writers give to infinities, pyarrow 24 for one."""

_COUNTED_TYPES = (
    *_GROUPED_TYPES,
    *_FLOATS,
    types.BinaryType,
    types.FixedType,
    types.UUIDType,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """An aggregate: `rows` counts rows and has no column, `count` counts non-null values."""

    kind: AggregateKind
    column: types.NestedField | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAggregates:
    """The aggregates of those files whose entries tell them.

    `rows` has a row per group: its values, then its aggregates, all physical (`spec/values.py`).
    Without groups there is one row.
    """

    rows: Sequence[tuple[Any, ...]]
    other_files: frozenset[str] = frozenset()
    """The locations of the files whose rows must be read; none with groups."""


_MAX_OTHER_FILES = 10_000
"""The most files to name to a scan of the others."""


def known_aggregates(
    scan: TableScan, groups: Sequence[types.NestedField], aggregates: Sequence[Aggregate]
) -> KnownAggregates | None:
    """Return what metadata tell of the scan's aggregates. None if all rows must be read.

    Columns are top-level columns of the schema that the scan selects.
    """
    columns = [a.column for a in aggregates if a.column is not None]
    if (
        scan.only_files is not None
        or not all(isinstance(g.type, _GROUPED_TYPES) for g in groups)
        or not all(isinstance(c.type, _COUNTED_TYPES) for c in columns)
    ):
        return None
    plan = scan.plan([c.field_id for c in (*groups, *columns)], reads_columns=False)
    tables: list[pa.Table] = []
    other_files: list[str] = []
    for planned_files in plan.files():
        files = _Files(scan, planned_files)
        tables.append(files.table(groups, aggregates))
        other_files += files.unknown_paths()
        if other_files and (groups or len(other_files) > _MAX_OTHER_FILES):
            return None
    if other_files and not sum(t.num_rows for t in tables):
        return None
    rows = list(_combine_tables(tables, groups, aggregates))
    has_zero = any(
        row[len(groups) + i] == 0
        for i, a in enumerate(aggregates)
        if a.kind in ("min", "max") and a.column is not None and isinstance(a.column.type, _FLOATS)
        for row in rows
    )
    return None if has_zero else KnownAggregates(rows=rows, other_files=frozenset(other_files))


class _Files:
    """The aggregates that the entries of one manifest contain, with one value per file."""

    def __init__(self, scan: TableScan, planned_files: PlannedFiles) -> None:
        snapshot = scan.snapshot
        # Entries of root manifests say whether bounds are exact, but this flag is not read.
        self._may_have_loose_bounds = snapshot is not None and snapshot.root_manifest is not None
        self._entries = planned_files.entries
        self._identity = identity_source_ids(planned_files.spec)
        self._retyped_ids = planned_files.retyped_ids
        self._partition = planned_files.entries["partition"].combine_chunks()
        self._rows = planned_files.entries["record_count"].combine_chunks().cast(pa.int64())
        # Files imported by old writers may have a negative count, which means unknown. A scan reads
        # files of no rows too, and may find rows.
        self._known = planned_files.min_live_rows() > 0
        if self._known.any():
            self._known &= proven_files(planned_files, scan.context.predicate)

    def table(
        self, groups: Sequence[types.NestedField], aggregates: Sequence[Aggregate]
    ) -> pa.Table:
        """Return one row for each file whose groups and aggregates are known."""
        columns = {f"g{i}": self._partition_values(g) for i, g in enumerate(groups)}
        columns |= {f"a{i}": self._aggregate(a) for i, a in enumerate(aggregates)}
        columns["rows"] = self._rows
        return pa.table(columns).filter(pa.array(self._known))

    def unknown_paths(self) -> list[str]:
        """Return the locations of the files that `table` leaves out."""
        paths: list[str] = self._entries["file_path"].filter(pa.array(~self._known)).to_pylist()
        return paths

    def _partition_values(self, column: types.NestedField) -> pa.Array:
        position = self._identity.get(column.field_id)
        if position is None or column.field_id in self._retyped_ids:
            self._known[:] = False
            return pa.nulls(len(self._rows))
        return comparable_values(self._partition.field(position), column.type)

    def _aggregate(self, function: Aggregate) -> pa.Array:
        column = function.column
        if column is None:
            return self._rows
        if column.field_id in self._identity:
            values = self._partition_values(column)
            if function.kind == "count":
                return pc.if_else(pc.is_null(values), 0, self._rows)
            if not isinstance(column.type, (*_GROUPED_TYPES, *_FLOATS)):
                self._known[:] = False
            elif pa.types.is_floating(values.type):
                self._know_only(pc.or_kleene(pc.is_null(values), pc.invert(pc.is_nan(values))))
            return values
        nulls = self._nulls(column)
        if function.kind == "count":
            return pc.subtract(self._rows, nulls)
        if not isinstance(column.type, (*_BOUNDED_TYPES, *_FLOATS)) or self._may_have_loose_bounds:
            self._known[:] = False
            return pa.nulls(len(self._rows))
        lower, upper = (
            comparable_values(decode_bounds(self._metric(name, column), column.type), column.type)
            for name in ("lower_bounds", "upper_bounds")
        )
        has_values = pc.less(nulls, self._rows)
        if isinstance(column.type, _FLOATS):
            has_no_nan = pc.equal(self._metric("nan_value_counts", column), 0)
            self._know_only(pc.or_kleene(has_no_nan, pc.invert(has_values)))
        values = lower if function.kind == "min" else upper
        if isinstance(column.type, _FLOATS):
            sizes = pc.abs(values).cast(pa.float64())
            self._know_only(pc.invert(pc.is_in(sizes, value_set=pa.array(_LARGEST))))
        self._know_only(pc.fill_null(pc.less_equal(lower, upper), True))
        self._know_only(pc.or_kleene(pc.is_valid(values), pc.invert(has_values)))
        return pc.if_else(has_values, values, None)

    def _nulls(self, column: types.NestedField) -> pa.Array:
        """Return the null counts; a file without consistent counts is unknown."""
        nulls = self._metric("null_value_counts", column)
        self._know_only(pc.and_(pc.greater_equal(nulls, 0), pc.less_equal(nulls, self._rows)))
        self._know_only(pc.equal(self._metric("value_counts", column), self._rows))
        # a column of nulls has no bounds
        bounds = pc.coalesce(*(self._metric(n, column) for n in ("lower_bounds", "upper_bounds")))
        self._know_only(pc.or_kleene(pc.is_null(bounds), pc.less(nulls, self._rows)))
        return nulls

    def _know_only(self, condition: pa.Array) -> None:
        """Know only files for which the condition is true."""
        self._known &= is_true(condition)

    def _metric(self, metric: MetricMap, column: types.NestedField) -> pa.Array:
        return self._entries[metric_column(metric, column.field_id)].combine_chunks()


_AGGREGATIONS = {"rows": "sum", "count": "sum", "min": "min", "max": "max"}


def _combine_tables(
    tables: Sequence[pa.Table], groups: Sequence[types.NestedField], aggregates: Sequence[Aggregate]
) -> Iterator[tuple[Any, ...]]:
    tables = [t for t in tables if t.num_rows]
    if not tables:
        if not groups:
            yield tuple(0 if _AGGREGATIONS[a.kind] == "sum" else None for a in aggregates)
        return
    by = [f"g{i}" for i in range(len(groups))]
    aggregations = [(f"a{i}", _AGGREGATIONS[a.kind]) for i, a in enumerate(aggregates)]
    sums_and_bounds = pa.concat_tables(tables).group_by(by).aggregate(aggregations)
    names = [*by, *(f"{name}_{how}" for name, how in aggregations)]
    for row in zip(*(sums_and_bounds[name].to_pylist() for name in names), strict=True):
        sums = zip(row[len(by) :], aggregates, strict=True)
        yield (
            *row[: len(by)],
            *(0 if v is None and _AGGREGATIONS[a.kind] == "sum" else v for v, a in sums),
        )


_TYPES_WITHOUT_RANGE = (types.StringType, types.BinaryType, types.FixedType, types.UUIDType)
"""Types whose minimum and maximum no estimate uses."""

_TYPES_WITH_RANGE = (
    types.IntegerType,
    types.LongType,
    types.DecimalType,
    types.DateType,
    types.TimestamptzType,
    types.BooleanType,
)

_MAX_FILES = 100_000
"""The manifests of a table with more data files are not read for an estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatistics:
    """The statistics of one column; `least` and `greatest` are physical values (`spec/values.py`).

    They are None if all values are null, and for types whose order no estimate uses.
    """

    distinct_count: int
    null_count: int
    least: Any = None
    greatest: Any = None


def distinct_counts(metadata: TableMetadata, snapshot: Snapshot | None) -> dict[int, int]:
    """Return the distinct counts in the snapshot's statistics files, by column id."""
    counts: dict[int, int] = {}
    for file in metadata.statistics:
        if snapshot is None or file.snapshot_id != snapshot.snapshot_id:
            continue
        for blob in file.blob_metadata:
            if blob.type != THETA_SKETCH or len(blob.fields) != 1:
                continue
            text = blob.properties.get(DISTINCT_COUNT, "")
            count = count_in(text)
            if count is None:
                _log.info(
                    "%s does not say how many values column %d has (%s=%.40r): it is left out of "
                    "estimates; compute the statistics again",
                    file.statistics_path,
                    blob.fields[0],
                    DISTINCT_COUNT,
                    text,
                )
            else:
                counts[blob.fields[0]] = count
    return counts


def column_statistics(
    scan: TableScan, columns: Iterable[types.NestedField]
) -> Mapping[int, ColumnStatistics]:
    """Return complete statistics of columns by id, for the whole snapshot, ignoring the filter.

    Columns without null counts or bounds are left out: if Spark 4.1 has only a distinct count, it
    assumes that a column has nulls only.
    """
    # the distinct counts are those of the whole snapshot
    counts = distinct_counts(scan.metadata, scan.snapshot) if scan.appends is None else {}
    totals = {
        c.field_id: _Totals(c)
        for c in columns
        if c.field_id in counts and isinstance(c.type, _TYPES_WITH_RANGE + _TYPES_WITHOUT_RANGE)
    }
    files = 0 if scan.snapshot is None else scan.snapshot.number("total-data-files")
    if not totals or files is None or files > _MAX_FILES:
        return {}
    for planned_files in scan.plan(list(totals), reads_columns=False).files():
        for total in totals.values():
            total.add(planned_files)
    return {
        i: ColumnStatistics(
            distinct_count=counts[i],
            null_count=total.nulls,
            least=total.least,
            greatest=total.greatest,
        )
        for i, total in totals.items()
        if total.complete
    }


class _Totals:
    """The null count and bounds of one column in the manifests read so far."""

    def __init__(self, column: types.NestedField) -> None:
        self._column = column
        self.complete = True
        self.nulls = 0
        self.least: Any = None
        self.greatest: Any = None

    def add(self, planned_files: PlannedFiles) -> None:
        rows = planned_files.entries["record_count"].combine_chunks()
        nulls = self._metric(planned_files, "null_value_counts")
        if self._column.required:
            nulls = pc.fill_null(nulls, 0)
        # a negative count is unknown, and more nulls than rows are wrong
        is_right = pc.and_(pc.greater_equal(nulls, 0), pc.less_equal(nulls, rows))
        if not pc.all(pc.fill_null(is_right, False)).as_py():
            self.complete = False
            return
        self.nulls += pc.sum(nulls).as_py() or 0
        if isinstance(self._column.type, _TYPES_WITHOUT_RANGE):
            return
        has_values = pc.less(nulls, rows)
        least = self._bounds(planned_files, "lower_bounds")
        greatest = self._bounds(planned_files, "upper_bounds")
        has_bounds = pc.and_(pc.is_valid(least), pc.is_valid(greatest))
        if pc.any(pc.and_not(has_values, has_bounds)).as_py():
            self.complete = False
            return
        bounds = [self.least, pc.min(least).as_py()]
        self.least = min((v for v in bounds if v is not None), default=None)
        bounds = [self.greatest, pc.max(greatest).as_py()]
        self.greatest = max((v for v in bounds if v is not None), default=None)

    def _bounds(self, planned_files: PlannedFiles, metric: MetricMap) -> pa.Array:
        return decode_bounds(self._metric(planned_files, metric), self._column.type)

    def _metric(self, planned_files: PlannedFiles, metric: MetricMap) -> pa.Array:
        return planned_files.entries[metric_column(metric, self._column.field_id)].combine_chunks()
