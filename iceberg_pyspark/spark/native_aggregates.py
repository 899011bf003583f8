"""Aggregates that Spark asks of a scan, answered from metadata as the bridge takes rows.

Only columns that Spark sees as they are in the table are answered for, and only conditions that
have a predicate of just their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from pyspark.sql import types as spark_types

from iceberg_pyspark.spark.bridge.filters import comparable_predicate_of
from iceberg_pyspark.spark.native_constants import value_cell
from iceberg_pyspark.spark.types import to_spark_schema
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.table.known_aggregates import Aggregate, AggregateKind, known_aggregates
from iceberg_pyspark.table.scan import TableScan


def aggregate_lines(
    scan: TableScan,
    struct: spark_types.StructType,
    groups: Sequence[str],
    aggregates: Sequence[Sequence[str | None]],
    condition: Any,
) -> str | None:
    """How many rows there are, and each as a line of cells; None where data must be read.

    `struct` has the columns as Spark sees them; an aggregate is its kind and its column.
    """
    schema = scan.context.schemas[0]
    columns = {f.name: _column(schema, f) for f in struct.fields}
    if any(c is None for c in columns.values()):
        return None
    wanted = [
        Aggregate(kind=_kind(kind), column=None if name is None else columns[name])
        for kind, name in aggregates
    ]
    if condition is None and not groups and all(a.kind == "rows" for a in wanted):
        # positions of deleted rows can be counted too
        count = scan.known_count()
        return None if count is None else _lines([(count,) * len(wanted)])
    predicate = comparable_predicate_of(condition, schema)
    if predicate is None:
        return None
    by = [c for c in (columns[g] for g in groups) if c is not None]
    rows = known_aggregates(scan.pruned_by(predicate), by, wanted)
    return None if rows is None else _lines(rows)


def _column(schema: Schema, as_spark_sees_it: spark_types.StructField) -> NestedField | None:
    """The column of the table, if Spark's is the same."""
    found = schema.as_struct.field_named(as_spark_sees_it.name)
    if found is None:
        return None
    (own,) = to_spark_schema(Schema(fields=(found,))).fields
    return found if own.dataType == as_spark_sees_it.dataType else None


def _kind(text: str | None) -> AggregateKind:
    for kind in get_args(AggregateKind):
        if kind == text:
            return kind  # type: ignore[no-any-return]
    raise ValueError(text)


def _lines(rows: Sequence[tuple[Any, ...]]) -> str:
    lines = ["\t".join(value_cell(v) for v in row) for row in rows]
    return "\n".join([str(len(rows)), *lines])
