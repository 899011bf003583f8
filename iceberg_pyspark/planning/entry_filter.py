"""Filters the entries of a manifest by partition tuple and by metrics, as columns.

Specification, "Scan Planning". Tests compare this module with `expressions/evaluation.py` and
`expressions/file_filters.py`, which evaluate single entries. An entry is dropped only if no row
of its file can match.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.expressions import predicates
from iceberg_pyspark.expressions.evaluation import (
    ValueRange,
    compile_range_filter,
    evaluate_leaf,
    in_java_uuid_order,
)
from iceberg_pyspark.expressions.projection import project_inclusive
from iceberg_pyspark.expressions.rewriting import not_bound, push_not
from iceberg_pyspark.expressions.variant_fields import field_range
from iceberg_pyspark.planning.bound_values import arrow_literal, decode_bounds, java_uuid_keys
from iceberg_pyspark.spec.bounding_boxes import bounds_may_meet
from iceberg_pyspark.spec.entry_columns import MetricMap, metric_column
from iceberg_pyspark.spec.manifests import FileContent
from iceberg_pyspark.spec.partitioning import PartitionSpec, identity_source_ids
from iceberg_pyspark.spec.types import BinaryType, DoubleType, FloatType, StructType, UUIDType

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Counts: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_MAX_LITERALS = 200
"""An IN of more values is evaluated as the range from its least to its greatest value."""


def matching_partitions(table: pa.Table, predicate: predicates.Predicate) -> Mask:
    """Return for each entry whether the partition tuple makes the predicate true."""
    rows = table.num_rows
    if isinstance(predicate, predicates.AlwaysTrue | predicates.AlwaysFalse):
        return np.full(rows, isinstance(predicate, predicates.AlwaysTrue))
    partition = table["partition"].combine_chunks()
    columns = {int(f.name): partition.field(i) for i, f in enumerate(partition.type)}
    result = _evaluate(push_not(predicate), columns, rows)
    return is_true(result)


def _evaluate(predicate: predicates.Predicate, columns: dict[int, pa.Array], rows: int) -> pa.Array:
    """Return true, false or null (unknown) for each entry."""
    match predicate:
        case predicates.AlwaysTrue() | predicates.AlwaysFalse():
            return pa.repeat(isinstance(predicate, predicates.AlwaysTrue), rows)
        case predicates.And(left, right):
            return pc.and_kleene(_evaluate(left, columns, rows), _evaluate(right, columns, rows))
        case predicates.Or(left, right):
            return pc.or_kleene(_evaluate(left, columns, rows), _evaluate(right, columns, rows))
        case predicates.BoundUnary() | predicates.BoundLiteral() | predicates.BoundSet():
            # partition values repeat, so each distinct value is evaluated once
            dictionary = columns[predicate.column.field_id].dictionary_encode(
                null_encoding="encode"
            )
            values = dictionary.dictionary.to_pylist()
            results = pa.array([evaluate_leaf(predicate, v) for v in values], pa.bool_())
            return results.take(dictionary.indices)
        case predicates.Not():
            return _evaluate(push_not(predicate), columns, rows)
        case _:
            raise not_bound(predicate)


class PartitionLeaves:
    """The leaves of row predicates, as the partition values of one spec decide them.

    Each leaf is projected once.
    """

    def __init__(self, spec: PartitionSpec, partition_type: StructType) -> None:
        """Take the spec of the files, and the type of their partition tuples."""
        self.constant_ids = frozenset(identity_source_ids(spec))
        self._inclusive = cache(lambda leaf: project_inclusive(leaf, spec, partition_type))

    def may_match(self, table: pa.Table, leaf: predicates.BoundLeaf) -> Mask:
        """Return for each entry whether its partition may have a row that makes the leaf true."""
        return matching_partitions(table, self._inclusive(leaf))


def matching_metrics(
    table: pa.Table, predicate: predicates.Predicate, partitions: PartitionLeaves | None = None
) -> Mask:
    """Return for each file whether a row may make the bound row predicate true.

    The table must have been read with the metrics of the predicate's columns. See `MetricsFilter`
    for `partitions`.
    """
    return MetricsFilter(table, partitions).matching(predicate)


def matching_deletes(table: pa.Table, predicate: predicates.Predicate) -> Mask:
    """Return for each delete file whether it may delete a row that makes the predicate true.

    Only the metrics of the columns that an equality delete compares describe the rows that it
    deletes: other columns of a delete file may differ from the rows (specification, "Equality
    Delete Files"; docs/conformance.md 27).
    """
    return _DeletesFilter(table).matching(predicate)


class Ranges(Protocol):
    """The values of a column that each file may have; see `ColumnRanges`."""

    may_be_null: Mask
    may_be_nan: Mask
    may_be_value: Mask

    @property
    def lower(self) -> pa.Array:
        """The lower bounds of the values that are neither null nor NaN; null is unknown."""

    @property
    def upper(self) -> pa.Array:
        """The upper bounds, as `lower`."""


class RangesFilter:
    """A filter on ranges of values: of files, or of other sets of rows.

    `ranges` returns the ranges of a column for as many sets as `rows` says.
    """

    def __init__(self, rows: int, ranges: Callable[[predicates.BoundColumn], Ranges]) -> None:
        self._rows = rows
        self._ranges = ranges

    def matching(self, predicate: predicates.Predicate) -> Mask:
        """Return for each set whether a row may make the bound row predicate true."""
        return self._matches(push_not(predicate))

    def _matches(self, predicate: predicates.Predicate) -> Mask:
        match predicate:
            case predicates.AlwaysTrue():
                return np.ones(self._rows, np.bool_)
            case predicates.AlwaysFalse():
                return np.zeros(self._rows, np.bool_)
            case predicates.And(left, right):
                return self._matches(left) & self._matches(right)
            case predicates.Or(left, right):
                return self._matches(left) | self._matches(right)
            case predicates.BoundUnary() | predicates.BoundLiteral() | predicates.BoundSet():
                return self._leaf(predicate)
            case predicates.Not():
                return self._matches(push_not(predicate))
            case _:
                raise not_bound(predicate)

    def _leaf(self, leaf: predicates.BoundLeaf) -> Mask:
        may_match: Mask
        ranges = self._ranges(leaf.column)
        if isinstance(leaf, predicates.BoundUnary):
            may_match = np.full(self._rows, leaf.op in ("not_null", "not_nan"))
        else:
            may_match = _some_value_may_match(leaf, ranges.lower, ranges.upper)
            if isinstance(leaf.column.type, UUIDType):
                in_order = in_java_uuid_order(leaf)
                assert not isinstance(in_order, predicates.BoundUnary)
                bounds = map(java_uuid_keys, (ranges.lower, ranges.upper))
                may_match = may_match | _some_value_may_match(in_order, *bounds)
        may_match = may_match & ranges.may_be_value
        if evaluate_leaf(leaf, None) is True:
            may_match = may_match | ranges.may_be_null
        if _has_nan(leaf.column) and evaluate_leaf(leaf, float("nan")) is True:
            may_match = may_match | ranges.may_be_nan
        return may_match


class MetricsFilter(RangesFilter):
    """A filter on the metric columns of a table; the bounds of each column are decoded once.

    The table must have been read with the metrics of the columns of all evaluated predicates.
    With `partitions`, the partition values decide each leaf too. Rows of a source of an identity
    partition field have the value of the partition, whatever the file and its metrics say.
    """

    def __init__(self, table: pa.Table, partitions: PartitionLeaves | None = None) -> None:
        super().__init__(table.num_rows, cache(lambda column: ColumnRanges(table, column)))
        self._table = table
        self._partitions = partitions

    def _leaf(self, leaf: predicates.BoundLeaf) -> Mask:
        if self._partitions is None:
            return self._metrics(leaf)
        may_match = self._partitions.may_match(self._table, leaf)
        if leaf.column.field_id in self._partitions.constant_ids:
            return may_match
        return may_match & self._metrics(leaf)

    def _metrics(self, leaf: predicates.BoundLeaf) -> Mask:
        if isinstance(leaf, predicates.BoundLiteral) and leaf.op in (
            "intersects",
            "not_intersects",
        ):
            return self._boxes(leaf)
        if isinstance(leaf.column, predicates.ExtractedColumn):
            return self._fields(leaf, leaf.column)
        return super()._leaf(leaf)

    def _boxes(self, leaf: predicates.BoundLiteral) -> Mask:
        """Return whether the box of all geometries in a file may meet the literal."""
        if leaf.op == "not_intersects":
            return np.ones(self._rows, np.bool_)
        bounds = self._encoded_bounds(leaf.column)
        return np.array([bounds_may_meet(*b, leaf.literal) for b in bounds], np.bool_)

    def _fields(self, leaf: predicates.BoundLeaf, column: predicates.ExtractedColumn) -> Mask:
        """Return whether the fields of variants may match; of their nulls nothing is known."""
        has_nan = isinstance(column.type, FloatType | DoubleType)
        if evaluate_leaf(leaf, None) is True or (
            has_nan and evaluate_leaf(leaf, float("nan")) is True
        ):
            return np.ones(self._rows, np.bool_)
        may_match = compile_range_filter(leaf)

        def file_may_match(lower: bytes | None, upper: bytes | None) -> bool:
            least, greatest = field_range(column, lower, upper)
            values = ValueRange(lower=least, upper=greatest, may_be_nan=has_nan)
            return may_match(lambda _: values)

        bounds = self._encoded_bounds(column)
        return np.array([file_may_match(*b) for b in bounds], np.bool_)

    def _encoded_bounds(
        self, column: predicates.BoundColumn
    ) -> list[tuple[bytes | None, bytes | None]]:
        lower, upper = (
            self._table[metric_column(name, column.field_id)].to_pylist()
            for name in ("lower_bounds", "upper_bounds")
        )
        return list(zip(lower, upper, strict=True))


class _DeletesFilter(MetricsFilter):
    """A filter on the entries of delete files, which uses the metrics of compared columns only."""

    def __init__(self, table: pa.Table) -> None:
        super().__init__(table)
        is_equality = pc.equal(table["content"], int(FileContent.EQUALITY_DELETES))
        self._is_equality = mask_of(is_equality)
        self._equality_ids = table["equality_ids"].combine_chunks()

    def _leaf(self, leaf: predicates.BoundLeaf) -> Mask:
        is_compared = lists_with(self._equality_ids, leaf.column.field_id) & self._is_equality
        return super()._leaf(leaf) | ~is_compared


def lists_with(lists: pa.ListArray, value: int) -> Mask:
    """Return for each list whether the list contains the value."""
    has_value = np.zeros(len(lists), np.bool_)
    holding = pc.list_parent_indices(lists).filter(pc.equal(lists.flatten(), value))
    has_value[np.asarray(holding)] = True
    return has_value


class ColumnRanges:
    """The metrics of a column, per file; `expressions/file_filters.column_range` does one file.

    Bounds and counts that contradict each other are unknown.

    The masks tell whether a file may have nulls, NaNs, and other values; `most_nulls` and
    `most_nans` are their greatest possible numbers.
    """

    def __init__(self, table: pa.Table, column: predicates.BoundColumn) -> None:
        self._table, self._column = table, column
        values, has_values = _counts(self._metric("value_counts"))
        nulls, has_nulls = _counts(self._metric("null_value_counts"))
        if _has_nan(column):
            nans, has_nans = _counts(self._metric("nan_value_counts"))
        else:
            nans, has_nans = np.zeros_like(values), np.ones_like(has_values)
        # files that old writers imported have a negative record count, which means unknown
        records, has_records = _counts(table["record_count"].combine_chunks())
        limits = np.where(has_records, records, values)
        # a difference, because the sum of wrong counts may be beyond 64 bits
        is_right = ~(has_records | has_values) | (values <= limits) & (nulls <= limits - nans)
        is_right &= ~has_values | (nulls <= values - nans)
        has_values, has_nulls, has_nans = (
            known & is_right for known in (has_values, has_nulls, has_nans)
        )
        is_complete = has_values & (values == limits)
        is_without_value = is_complete & (nulls == values - nans)
        if is_without_value.any():
            # bounds that are wrong still say that there is a value
            is_complete &= mask_of(pc.and_(*map(pc.is_null, self._decoded)))
            is_without_value &= is_complete
        # value_counts include nulls and NaNs; in an uncounted row, an enclosing struct is null
        is_counted = has_nulls & ~(has_values & (values != limits))
        self.may_be_null = ~is_counted | (nulls != 0)
        self.most_nulls = np.where(is_counted, nulls, limits)
        self.most_nans = np.where(has_nans, nans, limits)
        self.may_be_nan = (~has_nans | (nans != 0)) & ~(is_complete & has_nulls & (nulls == values))
        self.may_be_value = ~is_without_value

    @property
    def lower(self) -> pa.Array:
        """The lower bounds of the values that are neither null nor NaN; null is unknown."""
        return self._bounds[0]

    @property
    def upper(self) -> pa.Array:
        """The upper bounds, as `lower`."""
        return self._bounds[1]

    @cached_property
    def _bounds(self) -> tuple[pa.Array, pa.Array]:
        lower, upper = self._decoded
        is_inverted = is_true(pc.greater(lower, upper))
        if isinstance(self._column.type, UUIDType) and is_inverted.any():
            is_inverted &= is_true(pc.greater(java_uuid_keys(lower), java_uuid_keys(upper)))
        if not is_inverted.any():
            return lower, upper
        # one of the bounds is wrong, and nobody knows which
        unknown = pa.array(is_inverted)
        return pc.if_else(unknown, None, lower), pc.if_else(unknown, None, upper)

    @cached_property
    def _decoded(self) -> tuple[pa.Array, pa.Array]:
        """The bounds; most conditions only ask for nulls, for which none is decoded."""
        lower, upper = self._metric("lower_bounds"), self._metric("upper_bounds")
        return decode_bounds(lower, self._column.type), decode_bounds(upper, self._column.type)

    def _metric(self, name: MetricMap) -> pa.Array:
        return self._table[metric_column(name, self._column.field_id)].combine_chunks()


def _counts(metric: pa.Array) -> tuple[Counts, Mask]:
    """Return the counts, 0 for an unknown count, and a mask of the known counts.

    A negative count is unknown, too.

    The arrays are numpy's: most manifests have few entries, so that a call of Arrow takes longer
    than the comparison itself.
    """
    if metric.null_count:
        metric = pc.fill_null(metric, -1)
    counts = metric.to_numpy()
    return np.maximum(counts, 0), counts >= 0


def _has_nan(column: predicates.BoundColumn) -> bool:
    return isinstance(column.type, FloatType | DoubleType)


def _some_value_may_match(
    leaf: predicates.BoundLiteral | predicates.BoundSet, lower: pa.Array, upper: pa.Array
) -> Mask:
    """Return whether a value between the bounds, neither null nor NaN, may match."""
    rows = len(lower)
    type_ = leaf.column.type
    match leaf:
        case predicates.BoundSet(op="in", literals=literals):
            if len(literals) > _MAX_LITERALS:
                least = arrow_literal(type_, min(literals))
                greatest = arrow_literal(type_, max(literals))
                return _at_most(lower, greatest) & _at_least(upper, least)
            may_match = np.zeros(rows, np.bool_)
            for value in literals:
                literal = arrow_literal(type_, value)
                may_match |= _at_most(lower, literal) & _at_least(upper, literal)
            return may_match
        case predicates.BoundSet():
            # bounds need not be actual values, so bounds never rule out != and NOT IN
            return np.ones(rows, np.bool_)
    literal = arrow_literal(type_, leaf.literal)
    match leaf.op:
        case "lt":
            return possible(pc.less(lower, literal))
        case "lt_eq":
            return _at_most(lower, literal)
        case "gt":
            return possible(pc.greater(upper, literal))
        case "gt_eq":
            return _at_least(upper, literal)
        case "eq":
            return _at_most(lower, literal) & _at_least(upper, literal)
        case "not_eq":
            return np.ones(rows, np.bool_)
        case "starts_with":
            # texts with the prefix are contiguous, and the prefix itself comes first
            start = _first(lower, len(leaf.literal), binary=isinstance(type_, BinaryType))
            return _at_most(start, literal) & _at_least(upper, literal)
        case "not_starts_with":
            both = pc.and_(
                pc.starts_with(lower, pattern=leaf.literal),
                pc.starts_with(upper, pattern=leaf.literal),
            )
            return ~is_true(both)
        case "intersects" | "not_intersects":
            # `MetricsFilter` compares boxes before it decodes bounds
            return np.ones(rows, np.bool_)


def _first(texts: pa.Array, count: int, *, binary: bool) -> pa.Array:
    if binary:
        return pc.binary_slice(texts, 0, count)
    return pc.utf8_slice_codeunits(texts, 0, count)


def _at_most(bound: pa.Array, literal: pa.Scalar) -> Mask:
    return possible(pc.less_equal(bound, literal))


def _at_least(bound: pa.Array, literal: pa.Scalar) -> Mask:
    return possible(pc.greater_equal(bound, literal))


def possible(condition: pa.Array) -> Mask:
    """Return True where the condition is true or unknown."""
    return mask_of(_fill_nulls(condition, True))


def is_true(condition: pa.Array) -> Mask:
    """Return True where the condition is true, False where the condition is unknown."""
    return mask_of(_fill_nulls(condition, False))


def _fill_nulls(condition: pa.Array, unknown: bool) -> pa.Array:
    return pc.fill_null(condition, unknown) if condition.null_count else condition


def mask_of(condition: pa.Array | pa.ChunkedArray) -> Mask:
    """Return booleans without nulls as a NumPy array."""
    if isinstance(condition, pa.ChunkedArray):
        condition = condition.combine_chunks()
    return np.asarray(condition.to_numpy(zero_copy_only=False), np.bool_)
