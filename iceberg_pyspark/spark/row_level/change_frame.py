"""The DataFrame of changes, built: for each row the first change that is about it.

A change of rows that are written says the new values; columns it does not name keep theirs, or in a
new row get the column's default. An updated row keeps its row id and gets its commit's sequence
number, a copied row keeps both (specification, "Row Lineage").

The JVM makes the plan of a description (`Changes.java`): to name expression by expression from
here takes longer than a small change's job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

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
from iceberg_pyspark.spec.default_values import default_of
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    BinaryType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimeType,
    Type,
    UnknownType,
    UUIDType,
)
from iceberg_pyspark.spec.values import value_to_json

Where: TypeAlias = Literal["any", "both", "source", "target"]
"""Which rows of a join: any, those of both sides, of the source alone, of the target alone."""

_Case: TypeAlias = Sequence[Any] | None
"""What a column is after a change, as the JVM takes it; None for null."""

_NO_MATTER: _Case = ("any",)


@dataclass(frozen=True, kw_only=True)
class Change:
    """What happens to rows that fulfil a condition, None for all; `values` by column.

    `placed` says whether the row is about a target row, whose place then matters.
    """

    op: Op
    where: Where = "any"
    condition: Column | None = None
    values: Assignments = field(default_factory=dict)
    placed: bool = True


@dataclass(slots=True)
class _Given:
    """The columns that a description refers to by number."""

    columns: list[Column] = field(default_factory=list)

    def number(self, column: Column) -> int:
        self.columns.append(column)
        return len(self.columns) - 1


def change_frame(
    target: Target, rows: DataFrame, frame: DataFrame, changes: Sequence[Change]
) -> DataFrame:
    """The changes of the frame's rows; `rows` are the target's among its columns."""
    given = _Given()
    columns = [_described(OP, "integer", [("int", int(c.op)) for c in changes])]
    for name, type_, place in (
        (FILE, "string", metadata_columns.FILE),
        (POS, "long", metadata_columns.POS),
    ):
        cases = [_kept(place) if c.placed else _placeless(c) for c in changes]
        columns.append(_described(name, type_, cases))
    if any(c.op in WRITTEN for c in changes):
        columns += _values(target, rows, frame, changes, given)
    described = {
        "changes": [
            {
                "where": c.where,
                "condition": None if c.condition is None else given.number(c.condition),
            }
            for c in changes
        ],
        "columns": columns,
    }
    made: DataFrame = target.session.bridge.changed(frame, rows, described, given.columns)
    return made


def _described(name: str, type_: str, cases: Sequence[_Case]) -> dict[str, Any]:
    return {"name": name, "type": f'"{type_}"' if type_.isidentifier() else type_, "cases": cases}


def _kept(f: NestedField) -> _Case:
    return ("kept", f.name)


def _placeless(change: Change) -> _Case:
    """A row of the source alone has no place that could be wrong."""
    return _NO_MATTER if change.where == "source" else None


def _fields(target: Target) -> list[NestedField]:
    # no file holds a column of type unknown
    stored = [f for f in target.schema.fields if not isinstance(f.type, UnknownType)]
    return [*stored, *target.lineage]


def _values(
    target: Target,
    rows: DataFrame,
    frame: DataFrame,
    changes: Sequence[Change],
    given: _Given,
) -> list[dict[str, Any]]:
    """A column for each of the table's, and for the row's lineage."""
    struct = to_spark_schema(target.schema)
    types = {f.name: f.dataType.json() for f in struct.fields}
    assigned = [
        {
            name: ("given", given.number(value))
            for name, value in _assigned(target, rows, frame, c, struct).items()
        }
        for c in changes
    ]
    defaults: dict[str, _Case] = {}
    if any(c.op is Op.INSERT for c in changes):
        for f in target.schema.fields:
            default = _default(f)
            defaults[f.name] = None if default is None else ("given", given.number(default))
    return [
        _described(
            f.name,
            types.get(f.name, "long"),
            [_value(target, f, c, a, defaults) for c, a in zip(changes, assigned, strict=True)],
        )
        for f in _fields(target)
    ]


def _assigned(
    target: Target,
    rows: DataFrame,
    frame: DataFrame,
    change: Change,
    struct: spark_types.StructType,
) -> dict[str, Column]:
    """What a change assigns, as values of whole columns of the right types."""
    if not change.values:
        return {}
    case_sensitive = target.session.spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    paths = resolve_paths(change.values, struct, target.name, case_sensitive=case_sensitive)
    types = {path: type_at(struct, path) for path in paths}
    stored = stored_values(target.session.bridge, frame, paths, types, target.name)
    opened = {path[0] for path in paths if len(path) > 1}
    return whole_columns(stored, struct, {name: rows[quoted(name)] for name in opened})


def _value(
    target: Target,
    f: NestedField,
    change: Change,
    assigned: Mapping[str, _Case],
    defaults: Mapping[str, _Case],
) -> _Case:
    """The value of a column after a change."""
    if f in target.lineage:
        stays = change.op is Op.COPY or (
            change.op is Op.UPDATE and f.name == metadata_columns.ROW_ID.name
        )
        return _kept(f) if stays else None
    match change.op:
        case Op.UPDATE:
            return assigned.get(f.name, _kept(f))
        case Op.COPY:
            return _kept(f)
        case Op.INSERT:
            return assigned.get(f.name, defaults[f.name])
        case Op.STAY:
            # not written, and rare: not worth an expression of its own
            return _NO_MATTER
        case _:
            return None


def _default(f: NestedField) -> Column | None:
    """The column's write default; None for null."""
    value = default_of(f, "write")
    if value is None:
        return None
    column = _constant(f.type, value)
    if isinstance(f.type, PrimitiveType):
        return column
    # nulls, and lists of nothing, get their types here
    return column.cast(to_spark_schema(Schema(fields=(f,))).fields[0].dataType)


def _constant(type_: Type, value: Any) -> Column:
    match type_:
        case _ if value is None:
            return sql.lit(None)
        case StructType(fields=fields):
            return sql.struct(*(_constant(f.type, value[f.field_id]).alias(f.name) for f in fields))
        case ListType():
            return sql.array(*(_constant(type_.element_type, v) for v in value))
        case MapType():
            return sql.create_map(
                *(
                    part
                    for k, v in value
                    for part in (_constant(type_.key_type, k), _constant(type_.value_type, v))
                )
            )
        case UUIDType() | StringType():
            return sql.lit(str(value_to_json(type_, value)))
        case BinaryType() | FixedType():
            return sql.lit(value)
        case TimeType():
            return sql.expr(f"TIME '{value_to_json(type_, value)}'")
        case _:
            return sql.expr(sql_literal(type_, value))
