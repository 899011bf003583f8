"""Converts a bound predicate to an equivalent Spark condition, exact in three-valued logic.

Predicates select rows as SQL does, with NaN above all other values (`arrow/read/row_filter.py`), so
each leaf has one counterpart. A column or type without an exact counterpart makes the scan
portable.

Run-time filters: skips files by the join keys of the other side of a join.

Spark asks which columns support such filters, and passes the values as conditions. A file is
skipped if no row can match: by its partition, whatever the transform, or by its column bounds. This
only affects speed, because the join still compares the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as sql

from iceberg_pyspark.expressions import predicates
from iceberg_pyspark.expressions.rewriting import not_bound
from iceberg_pyspark.spark.bridge.type_agreement import COMPARED_TYPES
from iceberg_pyspark.spark.native_read.columns import sql_literal
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import VoidTransform
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.sql_text.names import quoted
from iceberg_pyspark.table.reading.table_scan import TableScan


def columns_for_skipping(metadata: TableMetadata) -> Iterator[NestedField]:
    """Yield the top-level columns by whose values files are likely to differ.

    These are the columns that files are partitioned by, and the first column of the sort order.
    Floats are excluded: a join treats 0.0 and -0.0 as equal, but bounds do not.
    """
    ids = {
        f.source_id
        for spec in metadata.partition_specs
        for f in spec.fields
        if not isinstance(f.transform, VoidTransform)
    }
    ids |= {f.source_id for f in metadata.default_sort_order.fields[:1]}
    for f in metadata.current_schema.fields:
        if f.field_id in ids and isinstance(f.type, COMPARED_TYPES):
            yield f


def remaining_locations(scan: TableScan) -> tuple[str, ...]:
    """Return the locations of the data files of a pruned scan, as its table has them."""
    return tuple(
        path
        for planned_files in scan.plan().files()
        for path in planned_files.entries["file_path"].to_pylist()
    )


_EXACT_TYPES = (*COMPARED_TYPES, types.FloatType, types.DoubleType)
_DAYS = range(-719_162, 2_932_897)
"""The years 1 to 9999, whose dates Spark and Iceberg write alike as text."""
_MICROS = range(_DAYS.start * 86_400_000_000, _DAYS.stop * 86_400_000_000)


def is_exact(predicate: predicates.Predicate) -> bool:
    """Return whether `condition_of` has a condition that selects exactly the same rows."""
    match predicate:
        case predicates.AlwaysTrue() | predicates.AlwaysFalse():
            return True
        case predicates.And(left, right) | predicates.Or(left, right):
            return is_exact(left) and is_exact(right)
        case predicates.Not(child):
            return is_exact(child)
        case predicates.BoundUnary(column=column):
            return _is_native(column)
        case predicates.BoundLiteral(column=column, literal=literal):
            return _is_native(column) and _is_near(column, literal)
        case predicates.BoundSet(column=column, literals=literals):
            return _is_native(column) and all(_is_near(column, v) for v in literals)
        case _:
            raise not_bound(predicate)


def condition_of(predicate: predicates.Predicate, names: Mapping[int, str]) -> Column:
    """Return the condition; `names` maps field ids to column names."""
    match predicate:
        case predicates.AlwaysTrue():
            return sql.lit(True)
        case predicates.AlwaysFalse():
            return sql.lit(False)
        case predicates.And(left, right):
            return condition_of(left, names) & condition_of(right, names)
        case predicates.Or(left, right):
            return condition_of(left, names) | condition_of(right, names)
        case predicates.Not(child):
            return ~condition_of(child, names)
        case predicates.BoundUnary():
            return _test(predicate, _column(predicate.column, names))
        case predicates.BoundLiteral():
            return _comparison(predicate, _column(predicate.column, names))
        case predicates.BoundSet():
            is_in = _column(predicate.column, names).isin(
                [_literal(predicate.column, v) for v in predicate.literals]
            )
            return ~is_in if predicate.op == "not_in" else is_in
        case _:
            raise not_bound(predicate)


def _is_native(column: predicates.BoundColumn) -> bool:
    is_field = isinstance(column, predicates.ExtractedColumn)
    return isinstance(column.type, _EXACT_TYPES) and not is_field


def _is_near(column: predicates.BoundColumn, value: object) -> bool:
    if isinstance(column.type, types.TimestampType | types.TimestamptzType):
        return value in _MICROS
    if isinstance(column.type, types.DateType):
        return value in _DAYS
    return True


def _column(column: predicates.BoundColumn, names: Mapping[int, str]) -> Column:
    return sql.col(quoted(names[column.field_id]))


def _literal(column: predicates.BoundColumn, value: object) -> Column:
    if isinstance(column.type, types.StringType):
        # An SQL literal would depend on the session's escape settings.
        return sql.lit(value)
    return sql.expr(sql_literal(column.type, value))


def _test(leaf: predicates.BoundUnary, column: Column) -> Column:
    match leaf.op:
        case "is_null":
            return column.isNull()
        case "not_null":
            return column.isNotNull()
    is_nan = (
        sql.isnan(column)
        if isinstance(leaf.column.type, types.FloatType | types.DoubleType)
        else sql.lit(False)
    )
    return is_nan if leaf.op == "is_nan" else ~is_nan


def _comparison(leaf: predicates.BoundLiteral, column: Column) -> Column:
    literal = _literal(leaf.column, leaf.literal)
    match leaf.op:
        case "lt":
            return column < literal
        case "lt_eq":
            return column <= literal
        case "gt":
            return column > literal
        case "gt_eq":
            return column >= literal
        case "eq":
            return column == literal
        case "not_eq":
            return column != literal
    starts = column.startswith(literal)
    return ~starts if leaf.op == "not_starts_with" else starts
