"""Builds the DataFrame of changes: for each row, the first change that applies to it.

A change of a written row has its new values; other columns keep their values, or in a new row get
their defaults. An updated row keeps its row id and gets the sequence number of the commit; a copied
row keeps both (specification, "Row Lineage"). The JVM builds the plan from a description
(`IcebergPyChangedRows`), so the number of calls does not depend on the number of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.call_arguments import (
    AssignedColumns,
    AssignedValues,
    Cast,
    ChangeCondition,
    ChangedColumn,
    ChangedRows,
    Number,
    Side,
    Sql,
    TargetValue,
    UnusedValue,
    Value,
)
from iceberg_pyspark.spark.options.option_values import is_case_sensitive
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.spark.rows.spark_types import to_spark_schema
from iceberg_pyspark.spark.write.default_expressions import sql_of
from iceberg_pyspark.spec import metadata_columns
from iceberg_pyspark.spec.default_values import default_of
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import NestedField, UnknownType
from iceberg_pyspark.sql_text.names import parse_levels
from iceberg_pyspark.table.row_level.change_task import FILE, OP, POS, WRITE_OPS, Op

Where: TypeAlias = Literal["any", "both", "source", "target"]
"""The rows of a join: any rows, rows with both sides, only the source, or only the target."""

_Case: TypeAlias = Value | None
"""The value of a column after a change; None for null."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of the rows that fulfil a condition, or of all rows if the condition is None.

    `values` are the new values by column. `side` is the side of the join whose columns the
    condition and values name. `has_position` means that a changed row has the position of a
    target row.
    """

    op: Op
    where: Where = "any"
    condition: Value | None = None
    values: Assignments = field(default_factory=dict)
    side: Side = None
    has_position: bool = True


def change_frame(target: Target, rows: Rows, changes: Sequence[Change]) -> DataFrame:
    """Return the changes of a frame's rows as a DataFrame (`ChangeTask`)."""
    columns = [_column(OP, "integer", [Number(int(c.op)) for c in changes])]
    for name, type_, place in (
        (FILE, "string", metadata_columns.FILE),
        (POS, "long", metadata_columns.POS),
    ):
        cases = [_target_value(place) if c.has_position else _no_place(c) for c in changes]
        columns.append(_column(name, type_, cases))
    if any(c.op in WRITE_OPS for c in changes):
        columns += _values(target, rows, changes)
    description = ChangedRows(
        changes=tuple(
            ChangeCondition(where=c.where, condition=c.condition, side=c.side) for c in changes
        ),
        columns=tuple(columns),
    )
    bridge = target.session.bridge
    frame: DataFrame = bridge.row_changes.changed_rows(
        rows.frame, rows.target, rows.source, description
    )
    return frame


def _column(name: str, type_: str, cases: Sequence[_Case]) -> ChangedColumn:
    text = f'"{type_}"' if type_.isidentifier() else type_
    return ChangedColumn(name=name, type=text, cases=tuple(cases))


def _target_value(f: NestedField) -> _Case:
    return TargetValue(f.name)


def _no_place(change: Change) -> _Case:
    """Return null, or a placeholder for rows of the source alone, whose position is null anyway."""
    return UnusedValue() if change.where == "source" else None


def _fields(target: Target) -> list[NestedField]:
    # No file contains a column of type unknown.
    columns_in_files = [f for f in target.schema.fields if not isinstance(f.type, UnknownType)]
    return [*columns_in_files, *target.lineage]


def _values(target: Target, rows: Rows, changes: Sequence[Change]) -> list[ChangedColumn]:
    """Return the columns of the table and of row lineage, with their values after each change."""
    struct = to_spark_schema(target.schema)
    types = {f.name: f.dataType.json() for f in struct.fields}
    new_values = _assignments(target, rows, changes, struct)
    defaults: dict[str, _Case] = {}
    if any(c.op is Op.INSERT for c in changes):
        defaults = {f.name: _default(f) for f in target.schema.fields}
    # A deleted row has no values, which saves sending them. Where files are rewritten, it keeps its
    # old ones, which are not written: a condition on each value of the other rows would cost more.
    # A required column has any values, because Spark's writer needs to know that it has no nulls.
    rewrites = any(c.op is Op.COPY for c in changes)

    def cases(f: NestedField) -> list[_Case]:
        deleted = UnusedValue() if rewrites or f.required else None
        return [
            deleted if c.op is Op.DELETE else _value(target, f, c, a, defaults)
            for c, a in zip(changes, new_values, strict=True)
        ]

    return [_column(f.name, types.get(f.name, "long"), cases(f)) for f in _fields(target)]


def _assignments(
    target: Target, rows: Rows, changes: Sequence[Change], struct: spark_types.StructType
) -> list[dict[str, Value]]:
    """Return the assignments of each change as whole columns, of the columns' types."""
    if not any(c.values for c in changes):
        return [{} for _ in changes]
    case_sensitive = is_case_sensitive(target.session.spark)
    paths_by_change = [
        resolve_paths(c.values, struct, target.name, case_sensitive=case_sensitive) for c in changes
    ]
    for change, paths in zip(changes, paths_by_change, strict=True):
        fields = [".".join(path) for path in paths if len(path) > 1]
        if fields and change.op is Op.INSERT:
            raise InvalidRequestError(
                f"an insert into table {target.name} assigns to {', '.join(fields)}, but a new row "
                "gets whole columns; assign a struct to the column"
            )
    columns = AssignedColumns(
        table=target.name,
        schema=struct.json(),
        changes=tuple(
            AssignedValues(paths=tuple(paths), values=tuple(paths.values()), side=c.side)
            for c, paths in zip(changes, paths_by_change, strict=True)
        ),
    )
    assigned: list[dict[str, Value]] = target.session.bridge.row_changes.assign(
        rows.frame, rows.target, rows.source, columns
    )
    return assigned


def _value(
    target: Target,
    f: NestedField,
    change: Change,
    new_values: Mapping[str, Value],
    defaults: Mapping[str, _Case],
) -> _Case:
    """Return the value of a column after a change."""
    if f in target.lineage:
        stays = change.op is Op.COPY or (
            change.op is Op.UPDATE and f.name == metadata_columns.ROW_ID.name
        )
        return _target_value(f) if stays else None
    match change.op:
        case Op.UPDATE:
            return new_values.get(f.name, _target_value(f))
        case Op.COPY:
            return _target_value(f)
        case Op.INSERT:
            return new_values.get(f.name, defaults[f.name])
        case _:
            # The row is not written, so its value does not matter.
            return UnusedValue()


def _default(f: NestedField) -> Value | None:
    """Return the column's write default, cast to the column's type; None for null."""
    value = default_of(f, "write")
    if value is None:
        return None
    type_ = to_spark_schema(Schema(fields=(f,))).fields[0].dataType
    return Cast(Sql(sql_of(f.type, value)), type_.json())


ColumnPath: TypeAlias = tuple[str, ...]
Assignments: TypeAlias = Mapping[ColumnPath, Value]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows that values refer to: a frame of a table's rows and perhaps a source's rows."""

    frame: DataFrame
    target: DataFrame
    source: DataFrame | None = None


def as_column(condition: str | Column) -> Column:
    """Return a condition, given as a Spark SQL expression or a column, as a column."""
    return sql.expr(condition) if isinstance(condition, str) else condition


def as_value(value: str | Column) -> Value:
    """Return a value that is given as a Spark SQL expression or a column."""
    return Sql(value) if isinstance(value, str) else value


def parse_assignments(assignments: Mapping[str, str | Column]) -> dict[ColumnPath, Value]:
    """Return the assignments keyed by the paths of the assigned columns and fields."""
    return {tuple(parse_levels(name)): as_value(value) for name, value in assignments.items()}


def resolve_paths(
    assignments: Assignments, schema: spark_types.StructType, table: str, *, case_sensitive: bool
) -> dict[ColumnPath, Value]:
    """Return the assignments with the names as in the table's schema.

    Raise `InvalidRequestError` for an unknown name, and if two assignments overlap.
    """
    value_by_path: dict[ColumnPath, Value] = {}
    for path, value in assignments.items():
        resolved_path = _resolve_path(path, schema, table, case_sensitive=case_sensitive)
        for other in value_by_path:
            if other[: len(resolved_path)] == resolved_path or resolved_path[: len(other)] == other:
                raise InvalidRequestError(
                    f"column '{'.'.join(resolved_path)}' of table {table} is assigned twice; leave "
                    "one assignment out"
                )
        value_by_path[resolved_path] = value
    return value_by_path


def _resolve_path(
    path: ColumnPath, schema: spark_types.StructType, table: str, *, case_sensitive: bool
) -> ColumnPath:
    resolved_path: list[str] = []
    type_: spark_types.DataType = schema
    for name in path:
        fields = type_.fields if isinstance(type_, spark_types.StructType) else []
        matches = [f for f in fields if f.name == name]
        if not matches and not case_sensitive:
            matches = [f for f in fields if f.name.lower() == name.lower()]
        if len(matches) != 1:
            names = ", ".join(f.name for f in fields) or "no fields"
            raise InvalidRequestError(
                f"table {table} has no column '{'.'.join(path)}' to assign to; "
                f"{'.'.join(resolved_path) or 'it'} has {names}"
            )
        resolved_path.append(matches[0].name)
        type_ = matches[0].dataType
    return tuple(resolved_path)
