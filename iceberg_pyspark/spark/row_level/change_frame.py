"""The DataFrame of changes, built: for each row the first change whose condition holds.

A change of rows that are written says the new values; columns it does not name keep theirs, or in a
new row get the column's default. An updated row keeps its row id and gets its commit's sequence
number, a copied row keeps both (specification, "Row Lineage").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from iceberg_pyspark.spark.native_columns import sql_literal
from iceberg_pyspark.spark.read_names import quoted
from iceberg_pyspark.spark.row_level.assignments import (
    Assignments,
    resolve_paths,
    type_at,
    whole_columns,
)
from iceberg_pyspark.spark.row_level.change_columns import FILE, OP, POS, WRITTEN, Op
from iceberg_pyspark.spark.row_level.store_assignment import stored_values
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.spark.types import to_spark_schema
from iceberg_pyspark.spec import metadata_columns
from iceberg_pyspark.spec.types import (
    BinaryType,
    FixedType,
    NestedField,
    PrimitiveType,
    StringType,
    TimeType,
    UnknownType,
    UUIDType,
)
from iceberg_pyspark.spec.values import value_to_json

_CHOSEN = "__ice_change"


@dataclass(frozen=True, kw_only=True)
class Change:
    """What happens to the rows that fulfil a condition; `values` by column.

    `placed` says whether the row is about a target row, whose place then matters.
    """

    condition: Column
    op: Op
    values: Assignments = field(default_factory=dict)
    placed: bool = True


def change_frame(
    target: Target, rows: DataFrame, frame: DataFrame, changes: Sequence[Change]
) -> DataFrame:
    """The changes of the frame's rows; `rows` are the target's among its columns."""
    chosen = sql.lit(None).cast("int")
    for number in reversed(range(len(changes))):
        chosen = sql.when(changes[number].condition, sql.lit(number)).otherwise(chosen)
    selected = frame.select("*", chosen.alias(_CHOSEN)).where(sql.col(_CHOSEN).isNotNull())
    place = {
        FILE: rows[metadata_columns.FILE.name],
        POS: rows[metadata_columns.POS.name],
    }
    columns = [_case([sql.lit(int(c.op)) for c in changes]).cast("int").alias(OP)]
    columns += [
        _case([column if c.placed else None for c in changes]).alias(name)
        for name, column in place.items()
    ]
    if any(c.op in WRITTEN for c in changes):
        by_name = {f.name: rows[quoted(f.name)] for f in _fields(target)}
        columns += _values(target, frame, changes, by_name)
    return selected.select(*columns)


def _fields(target: Target) -> list[NestedField]:
    # no file holds a column of type unknown
    stored = [f for f in target.schema.fields if not isinstance(f.type, UnknownType)]
    return [*stored, *target.lineage]


def _values(
    target: Target,
    frame: DataFrame,
    changes: Sequence[Change],
    by_name: Mapping[str, Column],
) -> list[Column]:
    """A column for each of the table's, and for the row's lineage."""
    struct = to_spark_schema(target.schema)
    types = {f.name: f.dataType for f in struct.fields}
    assigned = [_assigned(target, frame, c, struct, by_name) for c in changes]
    columns = []
    for f in _fields(target):
        kept = by_name[f.name]
        cases = [_value(target, f, c, a, kept) for c, a in zip(changes, assigned, strict=True)]
        type_ = types.get(f.name, "bigint")
        columns.append(_case(cases).cast(type_).alias(f.name))
    return columns


def _assigned(
    target: Target,
    frame: DataFrame,
    change: Change,
    struct: spark_types.StructType,
    by_name: Mapping[str, Column],
) -> dict[str, Column]:
    """What a change assigns, as values of whole columns of the right types."""
    case_sensitive = target.session.spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    paths = resolve_paths(change.values, struct, target.name, case_sensitive=case_sensitive)
    types = {path: type_at(struct, path) for path in paths}
    stored = stored_values(target.session.bridge, frame, paths, types, target.name)
    return whole_columns(stored, struct, by_name)


def _value(
    target: Target,
    f: NestedField,
    change: Change,
    assigned: Mapping[str, Column],
    kept: Column,
) -> Column | None:
    """The value of a column after a change; None for null."""
    if f in target.lineage:
        stays = change.op is Op.COPY or (
            change.op is Op.UPDATE and f.name == metadata_columns.ROW_ID.name
        )
        return kept if stays else None
    match change.op:
        case Op.UPDATE:
            return assigned.get(f.name, kept)
        case Op.COPY:
            return kept
        case Op.INSERT:
            if f.name in assigned:
                return assigned[f.name]
            return _default(f)
        case _:
            return None


def _default(f: NestedField) -> Column | None:
    """The column's write default; None for null."""
    match f.type:
        case _ if f.write_default is None:
            return None
        case UUIDType() | StringType():
            return sql.lit(str(value_to_json(f.type, f.write_default)))
        case BinaryType() | FixedType():
            return sql.lit(f.write_default)
        case TimeType():
            return sql.expr(f"TIME '{value_to_json(f.type, f.write_default)}'")
        case PrimitiveType():
            return sql.expr(sql_literal(f.type, f.write_default))
        case _:
            return None


def _case(values: Sequence[Column | None]) -> Column:
    """The value of the change that was chosen; one for all where they are the same."""
    first = values[0]
    if first is not None and all(v is first for v in values):
        return first
    case = sql.lit(None)
    for number in reversed(range(len(values))):
        value = values[number]
        if value is None:
            continue
        case = sql.when(sql.col(_CHOSEN) == number, value).otherwise(case)
    return case
