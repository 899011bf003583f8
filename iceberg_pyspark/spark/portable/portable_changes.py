"""Builds the DataFrame of changes from standard functions: for each row, the first that applies.

A clause of a MERGE may name the columns of one side or of both, without a prefix where that is
clear. So a join is projected in stages: each stage has only the names that its clauses may use, and
computes the change of the rows that they apply to, which is null in all other rows. A value is
evaluated only for the rows that its clause applies to, as in Spark's own statements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, StructType

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.call_arguments import SourceColumn, Sql, Value
from iceberg_pyspark.spark.portable.portable_target import PortableTarget, column_of
from iceberg_pyspark.spark.portable.stored_values import stored
from iceberg_pyspark.spark.row_level.change_frame import Assignments, ColumnPath, resolve_paths
from iceberg_pyspark.spark.write.default_expressions import sql_of
from iceberg_pyspark.spec import metadata_columns
from iceberg_pyspark.spec.default_values import default_of
from iceberg_pyspark.table.row_level.change_task import FILE, OP, POS, WRITE_OPS, Op

_CHANGE = "__ice_change"
_OP, _PLACED = "op", "placed"


@dataclass(frozen=True, kw_only=True)
class PortableChange:
    """A change of the rows of a stage that `rows` selects and that fulfil the condition, if any.

    `has_position` means that a changed row has the position of a target row.
    """

    op: Op
    rows: Column | None = None
    condition: Value | None = None
    values: Assignments = field(default_factory=dict)
    has_position: bool = True


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Changes whose conditions and values name columns of `frame`.

    `old` has the target's columns of the frame, where rows of the target are changed. `source` has
    the columns of the source, if there is one.
    """

    frame: DataFrame
    changes: Sequence[PortableChange]
    old: Mapping[str, Column] = field(default_factory=dict)
    source: DataFrame | None = None


def old_values(
    target: PortableTarget, frame: DataFrame, names: Collection[str] | None = None
) -> dict[str, Column]:
    """Return the target's columns of a frame that has them: all, or those of some names."""
    has = target.columns.names if names is None else names
    return {name: column_of(frame, name) for name in target.columns.names if name in has}


def change_of(target: PortableTarget, stage: Stage, *, writes: bool) -> Column:
    """Return the change of each row of a stage as a struct; null where nothing changes.

    With `writes` the struct has the values of a row to write, which are null where none is written.
    """
    given = _typed(target, stage) if writes else [{} for _ in stage.changes]
    cases: list[tuple[Column | None, Column]] = []
    for change, values in zip(stage.changes, given, strict=True):
        parts = [
            sql.lit(int(change.op)).alias(_OP),
            sql.lit(change.has_position).alias(_PLACED),
        ]
        if writes:
            parts += _row(target, stage, change, values)
        tests = [] if change.rows is None else [change.rows]
        if change.condition is not None:
            tests.append(as_plain_column(change.condition, stage.source))
        where = reduce(lambda a, b: a & b, tests) if tests else None
        cases.append((where, sql.struct(*parts)))
    result: Column | None = None
    for where, struct in cases:
        condition = sql.lit(True) if where is None else where
        result = sql.when(condition, struct) if result is None else result.when(condition, struct)
    assert result is not None, "a stage has changes"
    return result


def as_plain_column(value: Value, source: DataFrame | None) -> Column:
    """Return a value as a column of the names that are in scope."""
    match value:
        case Sql(text):
            return sql.expr(text)
        case SourceColumn(name):
            assert source is not None, "only a MERGE has a source"
            return source[name]
        case Column():
            return value
        case _:
            raise TypeError(f"not a value of a portable change: {type(value).__name__}")


def changed_rows(target: PortableTarget, frame: DataFrame, *, writes: bool) -> DataFrame:
    """Return the rows for the tasks (`table/row_level/change_task.py`) of a frame of changes.

    The frame is one of `with_change`, with the target's position and lineage under `hidden_name`.
    """
    change = sql.col(_CHANGE)
    op = change.getField(_OP)
    rows = frame.where(change.isNotNull())
    placed = change.getField(_PLACED)
    columns = [
        op.alias(OP),
        sql.when(placed, sql.col(hidden_name(metadata_columns.FILE.name))).alias(FILE),
        sql.when(placed, sql.col(hidden_name(metadata_columns.POS.name))).alias(POS),
    ]
    if writes:
        for number, name in enumerate(target.columns.names):
            columns.append(change.getField(_value_name(number)).alias(name))
        for f in target.lineage:
            # An updated row keeps its id and gets the commit's sequence number; a copied row both.
            keeps = [Op.COPY, Op.UPDATE] if f.name == metadata_columns.ROW_ID.name else [Op.COPY]
            stays = op.isin([int(o) for o in keeps])
            columns.append(sql.when(stays, sql.col(hidden_name(f.name))).alias(f.name))
    return rows.select(*columns)


def with_change(frame: DataFrame, change: Column, *others: Column) -> DataFrame:
    """Return a frame of a column of changes and of other columns."""
    return frame.select(change.alias(_CHANGE), *others)


def hidden_columns(target: PortableTarget, rows: DataFrame) -> list[Column]:
    """Return the positions and the lineage of the target's rows under names that no table has."""
    names = [f.name for f in (metadata_columns.FILE, metadata_columns.POS, *target.lineage)]
    return [column_of(rows, name).alias(hidden_name(name)) for name in names]


def hidden_names(target: PortableTarget) -> list[str]:
    """Return the names of `hidden_columns`."""
    names = [f.name for f in (metadata_columns.FILE, metadata_columns.POS, *target.lineage)]
    return [hidden_name(name) for name in names]


def hidden_name(name: str) -> str:
    """Return the name of a metadata column of the target in the frame of changes."""
    return f"__ice_at{name}"


def _value_name(number: int) -> str:
    return f"v{number}"


def _row(
    target: PortableTarget,
    stage: Stage,
    change: PortableChange,
    values: Mapping[str, Column],
) -> list[Column]:
    columns = []
    for number, f in enumerate(target.columns.fields):
        if change.op not in WRITE_OPS:
            value = sql.lit(None).cast(f.dataType)
        elif f.name in values:
            value = values[f.name]
        elif change.op is Op.INSERT:
            value = _default(target, f.name).cast(f.dataType)
        else:
            value = stage.old[f.name]
        columns.append(value.alias(_value_name(number)))
    return columns


def kept_columns(target: PortableTarget, values: Assignments) -> frozenset[str]:
    """Return the columns that an update with these assignments does not replace as a whole."""
    paths = resolve_paths(values, target.columns, target.name, case_sensitive=target.case_sensitive)
    return frozenset(target.columns.names) - {path[0] for path in paths if len(path) == 1}


def _default(target: PortableTarget, name: str) -> Column:
    f = target.schema.as_struct.field_named(name)
    assert f is not None, "the columns are those of the schema"
    value = default_of(f, "write")
    return sql.lit(None) if value is None else sql.expr(sql_of(f.type, value))


def _typed(target: PortableTarget, stage: Stage) -> list[dict[str, Column]]:
    """Return the new values of whole columns after each change, as the table stores them."""
    paths = [_paths(target, c) for c in stage.changes]
    given = [(path, value) for of in paths for path, value in of.items()]
    if not given:
        return [{} for _ in paths]
    columns = [as_plain_column(value, stage.source) for _, value in given]
    # One question to Spark tells the types of all values.
    typed = stage.frame.select(*(c.alias(f"v{i}") for i, c in enumerate(columns))).schema
    types = iter(zip(columns, (f.dataType for f in typed.fields), strict=True))
    result = []
    for of in paths:
        values: dict[str, Column] = {}
        for path in of:
            column, type_ = next(types)
            wanted = target.columns[path[0]].dataType
            for name in path[1:]:
                wanted = wanted[name].dataType  # type: ignore[index]
            value = stored(
                column,
                type_,
                wanted,
                path=".".join(path),
                table=target.name,
                case_sensitive=target.case_sensitive,
            )
            if len(path) > 1:
                whole = values.get(path[0], stage.old[path[0]])
                value = _with_field(whole, target.columns[path[0]].dataType, path[1:], value)
            values[path[0]] = value
        result.append(values)
    return result


def _with_field(whole: Column, type_: DataType, path: Sequence[str], value: Column) -> Column:
    """Return a struct with another value of a field; of a null, as in SQL, a struct of nulls."""
    assert isinstance(type_, StructType), "a path leads through structs"
    fields = []
    for f in type_.fields:
        own = whole.getField(f.name)
        if f.name == path[0]:
            own = value if len(path) == 1 else _with_field(own, f.dataType, path[1:], value)
        fields.append(own.alias(f.name))
    return sql.struct(*fields)


def _paths(target: PortableTarget, change: PortableChange) -> dict[ColumnPath, Value]:
    paths = resolve_paths(
        change.values, target.columns, target.name, case_sensitive=target.case_sensitive
    )
    fields = [".".join(path) for path in paths if len(path) > 1]
    if fields and change.op is Op.INSERT:
        raise InvalidRequestError(
            f"an insert into table {target.name} assigns to {', '.join(fields)}, but a new row "
            "gets whole columns; assign a struct to the column"
        )
    return paths
