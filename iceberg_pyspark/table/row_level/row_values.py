"""The values that an UPDATE or a clause of a MERGE assigns, and the conditions of clauses.

A value is a SQL expression as text (`arrow/sql_values.py`), a column of the source, or any other
Python value as a constant. In expressions the table's row is `t`, and the source's row `s`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrow_schemas import arrow_type, constant_array
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.types import NestedField, UnknownType
from iceberg_pyspark.table.row_level.row_target import RowTarget

if TYPE_CHECKING:
    from iceberg_pyspark.arrow.sql_values import SqlEvaluation

TABLE, SOURCE = "t", "s"


@dataclass(frozen=True)
class SourceColumn:
    """A value that is a column of the source, and is written as an append writes it."""

    name: str


@dataclass(frozen=True, kw_only=True)
class RowValues:
    """The assigned values of one change by column, and its condition."""

    table: str
    sql: SqlEvaluation | None
    texts: Mapping[str, str]
    plain: Mapping[str, tuple[str, str]]
    """Columns that are values as they are: the side and the name."""

    constants: Mapping[str, pa.Scalar]
    condition: str | None
    fields: Mapping[str, NestedField]

    def columns(self, sides: Mapping[str, pa.RecordBatch], rows: int) -> dict[str, pa.Array]:
        """Return the values of the assigned columns for all rows."""
        columns = {name: constant_array(v, rows) for name, v in self.constants.items()}
        for name, (side, column) in self.plain.items():
            columns[name] = sides[side].column(column)
            if name in self.texts:
                columns[name] = self._stored(self.fields[name], columns[name])
        if self.sql is not None and self.texts.keys() - self.plain.keys():
            texts = {name: t for name, t in self.texts.items() if name not in self.plain}
            values = self.sql.values(list(texts.values()), sides, rows)
            for name, array in zip(texts, values, strict=True):
                columns[name] = self._stored(self.fields[name], array)
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

    @property
    def all_texts(self) -> tuple[str, ...]:
        """All expressions."""
        return (*self.texts.values(), *([] if self.condition is None else [self.condition]))

    def _stored(self, field: NestedField, array: pa.Array) -> pa.Array:
        """Return numbers and times in the column's type; the writer checks all other types."""
        type_ = arrow_type(field.type)
        if array.type == type_ or not any(f(array.type) and f(type_) for f in _FAMILIES):
            return array
        try:
            return pc.cast(array, type_, safe=True)
        except pa.ArrowException as e:
            raise InvalidRequestError(
                f"table {self.table}: a value of {self.texts[field.name]!r} does not fit column "
                f"'{field.name}' ({field.type}): {e}; cast or round it in the expression"
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
    texts: dict[str, str] = {}
    plain: dict[str, tuple[str, str]] = {}
    constants: dict[str, pa.Scalar] = {}
    fields: dict[str, NestedField] = {}
    for name, value in values.items():
        field = _field(name, target)
        if field.name in fields:
            raise InvalidRequestError(f"table {target.name}: column '{field.name}' is set twice")
        fields[field.name] = field
        if isinstance(value, SourceColumn):
            plain[field.name] = SOURCE, value.name
        elif isinstance(value, str):
            texts[field.name] = value
            column = _plain_column(value, sides)
            if column is not None:
                plain[field.name] = column
        else:
            constants[field.name] = _constant(field, value, target.name)
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
    side, dot, name = text.partition(".")
    if dot:
        return (side, name) if name in sides.get(side, ()) else None
    named = [(s, text) for s, names in sides.items() if text in names and text not in sides]
    return named[0] if len(named) == 1 else None


def _field(name: str, target: RowTarget) -> NestedField:
    field = target.column(name)
    if field is not None:
        return field
    nested = name.partition(".")[0]
    hint = (
        f"set the whole column '{nested}'"
        if target.column(nested) is not None
        else f"its columns are {', '.join(target.column_names)}"
    )
    raise InvalidRequestError(f"table {target.name} has no column '{name}' to set; {hint}")


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
