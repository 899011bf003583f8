"""The values that an UPDATE or a clause of a MERGE assigns, and the conditions of clauses.

A value is a SQL expression as text (`arrow/sql_values.py`), a column of the source, or any other
Python value as a constant. In expressions the table's row is `t`, and the source's row `s`. A name
such as `s.a` is a field of a struct: as in Spark, the other fields keep their values, and a struct
that is null becomes one whose other fields are null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrow_schemas import arrow_type, constant_array
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.types import NestedField, StructType, UnknownType
from iceberg_pyspark.sql_text.names import parse_levels
from iceberg_pyspark.table.row_level.row_target import RowTarget

if TYPE_CHECKING:
    from iceberg_pyspark.arrow.sql_values import SqlEvaluation

TABLE, SOURCE = "t", "s"

Path: TypeAlias = tuple[str, ...]
"""The names of a column and of the fields of structs in it."""


@dataclass(frozen=True)
class SourceColumn:
    """A value that is a column of the source, and is written as an append writes it."""

    name: str


@dataclass(frozen=True, kw_only=True)
class RowValues:
    """The assigned values of one change by column or field of a struct, and its condition."""

    table: str
    sql: SqlEvaluation | None
    texts: Mapping[Path, str]
    plain: Mapping[Path, tuple[str, str]]
    """Columns that are values as they are: the side and the name."""

    constants: Mapping[Path, pa.Scalar]
    condition: str | None
    fields: Mapping[Path, NestedField]

    @property
    def whole_columns(self) -> frozenset[str]:
        """The columns whose old values are not needed to set them."""
        return frozenset(path[0] for path in self.fields if len(path) == 1)

    def columns(self, sides: Mapping[str, pa.RecordBatch], rows: int) -> dict[str, pa.Array]:
        """Return the values of the assigned columns for all rows."""
        arrays = {path: constant_array(v, rows) for path, v in self.constants.items()}
        for path, (side, column) in self.plain.items():
            arrays[path] = sides[side].column(column)
            if path in self.texts:
                arrays[path] = self._stored(path, arrays[path])
        if self.sql is not None and self.texts.keys() - self.plain.keys():
            texts = {path: t for path, t in self.texts.items() if path not in self.plain}
            values = self.sql.values(list(texts.values()), sides, rows)
            for path, array in zip(texts, values, strict=True):
                arrays[path] = self._stored(path, array)
        columns = {path[0]: array for path, array in arrays.items() if len(path) == 1}
        for name in dict.fromkeys(path[0] for path in arrays if len(path) > 1):
            fields = {path[1:]: array for path, array in arrays.items() if path[0] == name}
            columns[name] = _with_fields(sides[TABLE].column(name), fields)
        return columns

    def applies(self, sides: Mapping[str, pa.RecordBatch], rows: int) -> pa.Array | None:
        """Return for which rows the condition is true, or None for all rows."""
        if self.condition is None or self.sql is None:
            return None
        (mask,) = self.sql.values([self.condition], sides, rows)
        if not pa.types.is_boolean(mask.type):
            raise InvalidRequestError(
                f"table {self.table}: the condition {self.condition!r} is a value of type "
                f"{mask.type}; write a comparison"
            )
        return mask.fill_null(False)

    def may_name(self, column: str) -> bool:
        """Return whether an expression may name a column; SQL doubles the backticks of a name."""
        text = column.replace("`", "``")
        return any(text in t for t in (*self.texts.values(), self.condition) if t is not None)

    def _stored(self, path: Path, array: pa.Array) -> pa.Array:
        """Return numbers and times in the column's type; the writer checks all other types."""
        field = self.fields[path]
        type_ = arrow_type(field.type)
        if array.type == type_ or not any(f(array.type) and f(type_) for f in _FAMILIES):
            return array
        try:
            return pc.cast(array, type_, safe=True)
        except pa.ArrowException as e:
            raise InvalidRequestError(
                f"table {self.table}: a value of {self.texts[path]!r} does not fit column "
                f"'{'.'.join(path)}' ({field.type}): {e}; cast or round it in the expression"
            ) from e


def _is_number(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    )


_FAMILIES: tuple[Callable[[pa.DataType], bool], ...] = (_is_number, pa.types.is_timestamp)


def row_values(
    values: Mapping[str, Any],
    target: RowTarget,
    sides: Mapping[str, Sequence[str]],
    condition: str | None = None,
) -> RowValues:
    """Return the values for columns of the target; raise `InvalidRequestError` for unknown ones.

    `sides` has the names of the columns of each side that expressions may name.
    """
    texts: dict[Path, str] = {}
    plain: dict[Path, tuple[str, str]] = {}
    constants: dict[Path, pa.Scalar] = {}
    fields: dict[Path, NestedField] = {}
    for name, value in values.items():
        path, field = _field(name, target)
        if any(path[: len(p)] == p or p[: len(path)] == path for p in fields):
            raise InvalidRequestError(f"table {target.name}: column '{name}' is set twice")
        if len(path) > 1 and TABLE not in sides:
            raise InvalidRequestError(
                f"table {target.name}: a new row has no struct whose field '{name}' could be set; "
                f"set the whole column '{path[0]}'"
            )
        fields[path] = field
        if isinstance(value, SourceColumn):
            plain[path] = SOURCE, value.name
        elif isinstance(value, str):
            texts[path] = value
            column = _plain_column(value, sides)
            if column is not None:
                plain[path] = column
        else:
            constants[path] = _constant(field, value, target.name)
    sql = None
    if texts.keys() - plain.keys() or condition is not None:
        # DataFusion takes time to import, and few programs use expressions
        from iceberg_pyspark.arrow.sql_values import SqlEvaluation  # noqa: PLC0415

        sql = SqlEvaluation()
    return RowValues(
        table=target.name,
        sql=sql,
        texts=texts,
        plain=plain,
        constants=constants,
        condition=condition,
        fields=fields,
    )


def _plain_column(text: str, sides: Mapping[str, Sequence[str]]) -> tuple[str, str] | None:
    """Return the side and the name if an expression is only a column, as in `s.v`; else None."""
    if "`" in text:
        try:
            levels = parse_levels(text)
        except InvalidRequestError:
            return None
    else:
        levels = tuple(text.split(".", 1))
    if len(levels) > 2:
        return None
    if len(levels) == 2:
        side, name = levels
        return (side, name) if name in sides.get(side, ()) else None
    named = [(side, levels[0]) for side, names in sides.items() if levels[0] in names]
    return named[0] if len(named) == 1 else None


def _field(name: str, target: RowTarget) -> tuple[Path, NestedField]:
    """Return the path and the type of a column, or of a field of a struct such as `s.a`."""
    field = target.column(name)
    if field is not None:
        return (field.name,), field
    for column in target.schema.fields:
        path = _path_in(column, name, target)
        if path is not None:
            return path
    parent, _, last = name.rpartition(".")
    hint = f"its columns are {', '.join(target.column_names)}"
    if parent:
        _, field = _field(parent, target)
        hint = f"'{parent}' is no struct: set the whole column '{parent}'"
        if isinstance(field.type, StructType):
            names = ", ".join(f.name for f in field.type.fields)
            hint = f"'{parent}' has no field '{last}'; its fields are {names}"
    raise InvalidRequestError(f"table {target.name} has no column '{name}' to set; {hint}")


def _path_in(field: NestedField, name: str, target: RowTarget) -> tuple[Path, NestedField] | None:
    own = name[: len(field.name)]
    if own != field.name and (target.case_sensitive or own.lower() != field.name.lower()):
        return None
    rest = name[len(field.name) :]
    if not rest:
        return (field.name,), field
    if not rest.startswith(".") or not isinstance(field.type, StructType):
        return None
    found = (_path_in(f, rest[1:], target) for f in field.type.fields)
    return next((((field.name, *path), leaf) for path, leaf in filter(None, found)), None)


def _with_fields(structs: pa.StructArray, fields: Mapping[Path, pa.Array]) -> pa.StructArray:
    """Return structs, none of them null, with some fields replaced."""
    children = []
    for field, child in zip(structs.type, structs.flatten(), strict=True):
        inner = {path[1:]: array for path, array in fields.items() if path[0] == field.name}
        if () in inner:
            child = inner[()]
        elif inner:
            child = _with_fields(child, inner)
        children.append(child)
    names = [f.name for f in structs.type]
    return pa.StructArray.from_arrays(children, names)


def _constant(field: NestedField, value: Any, table: str) -> pa.Scalar:
    if isinstance(value, pa.Scalar):
        return value
    if isinstance(field.type, UnknownType):
        return pa.scalar(value)
    type_ = arrow_type(field.type)
    try:
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            # with its type given, `pa.scalar` truncates numbers
            number = pa.scalar(value)
            return pc.cast(number, type_, safe=True) if _is_number(type_) else number
        return pa.scalar(value) if isinstance(value, bool) else pa.scalar(value, type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as e:
        raise InvalidRequestError(
            f"table {table}: {value!r} is no value of column '{field.name}' ({field.type}): {e}; "
            "an expression is given as text"
        ) from e
