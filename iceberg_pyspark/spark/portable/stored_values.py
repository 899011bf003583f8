"""Values as a table stores them, by the rules of Spark's ANSI store assignment.

The fields of structs are found by name, at every depth. A missing or unknown field and an unsafe
cast are refused; a number that does not fit its type is an error of the job in every session, also
where Spark's casts would give null. The writer refuses nulls in required columns.
"""

from __future__ import annotations

from pyspark.sql import Column, types
from pyspark.sql import functions as sql

from iceberg_pyspark.errors import InvalidRequestError

_MOMENTS = (types.DateType, types.TimestampType, types.TimestampNTZType)


def stored(
    value: Column,
    given: types.DataType,
    wanted: types.DataType,
    *,
    path: str,
    table: str,
    case_sensitive: bool,
) -> Column:
    """Return a value of type `given` as one of type `wanted`; `path` names the column or field.

    Raises `InvalidRequestError` for a value that cannot be stored in the column.
    """
    return _Assignment(table, case_sensitive).stored(value, given, wanted, path)


class _Assignment:
    def __init__(self, table: str, case_sensitive: bool) -> None:
        self._table = table
        self._case_sensitive = case_sensitive

    def stored(
        self, value: Column, given: types.DataType, wanted: types.DataType, path: str
    ) -> Column:
        if _plain(given) == _plain(wanted):
            return value
        match (given, wanted):
            case (types.NullType(), _):
                return sql.lit(None).cast(wanted)
            case (types.StructType(), types.StructType()):
                return _unless_null(value, self._struct(value, given, wanted, path))
            case (types.ArrayType(), types.ArrayType()):
                return sql.transform(
                    value,
                    lambda element: self.stored(
                        element, given.elementType, wanted.elementType, f"{path}.element"
                    ),
                )
            case (types.MapType(), types.MapType()):
                keys = sql.transform_keys(
                    value,
                    lambda key, _: self.stored(key, given.keyType, wanted.keyType, f"{path}.key"),
                )
                return sql.transform_values(
                    keys,
                    lambda _, of_key: self.stored(
                        of_key, given.valueType, wanted.valueType, f"{path}.value"
                    ),
                )
        if not _may_be_stored(given, wanted):
            raise self._refusal(
                path, f"a {given.simpleString()} cannot be stored as {wanted.simpleString()}"
            )
        if not isinstance(given, types.NumericType) or not isinstance(wanted, types.NumericType):
            return value.cast(wanted)
        # `cast` would wrap around or give null in sessions without ANSI mode.
        fitting = value.try_cast(wanted)
        problem = (
            f"[CAST_OVERFLOW_IN_TABLE_INSERT] column {path} of table {self._table}: a value of "
            f"type {given.simpleString()} does not fit {wanted.simpleString()}"
        )
        does_not_fit = value.isNotNull() & fitting.isNull()
        return sql.when(does_not_fit, sql.raise_error(problem).cast(wanted)).otherwise(fitting)

    def _struct(
        self, value: Column, given: types.StructType, wanted: types.StructType, path: str
    ) -> Column:
        fields, used = [], set()
        for f in wanted.fields:
            matches = [g for g in given.fields if self._key(g.name) == self._key(f.name)]
            if len(matches) != 1:
                found = "several fields" if matches else "no field"
                raise self._refusal(f"{path}.{f.name}", f"the value has {found} of this name")
            used.add(matches[0].name)
            own = self.stored(
                value.getField(matches[0].name), matches[0].dataType, f.dataType, f"{path}.{f.name}"
            )
            fields.append(own.alias(f.name))
        unknown = [g.name for g in given.fields if g.name not in used]
        if unknown:
            raise self._refusal(path, f"it has no field {', '.join(unknown)}, but the value does")
        return sql.struct(*fields)

    def _key(self, name: str) -> str:
        return name if self._case_sensitive else name.lower()

    def _refusal(self, path: str, reason: str) -> InvalidRequestError:
        return InvalidRequestError(
            f"[INCOMPATIBLE_DATA_FOR_TABLE] column {path} of table {self._table}: {reason}; give a "
            "value of the column's type"
        )


def _unless_null(value: Column, otherwise: Column) -> Column:
    return sql.when(value.isNotNull(), otherwise)


def _may_be_stored(given: types.DataType, wanted: types.DataType) -> bool:
    """Return whether Spark's ANSI store assignment casts one type without parts to the other."""
    complex_ = (types.StructType, types.ArrayType, types.MapType)
    if isinstance(given, complex_) or isinstance(wanted, complex_):
        return False
    if isinstance(wanted, types.StringType):
        return not isinstance(given, types.CalendarIntervalType)
    if isinstance(given, types.NumericType) and isinstance(wanted, types.NumericType):
        return True
    return isinstance(given, _MOMENTS) and isinstance(wanted, _MOMENTS)


def _plain(type_: types.DataType) -> types.DataType:
    """Return a type whose parts may all be null, and have no comments."""
    match type_:
        case types.StructType():
            return types.StructType(
                [types.StructField(f.name, _plain(f.dataType)) for f in type_.fields]
            )
        case types.ArrayType():
            return types.ArrayType(_plain(type_.elementType))
        case types.MapType():
            return types.MapType(_plain(type_.keyType), _plain(type_.valueType))
        case types.CharType() | types.VarcharType():
            return types.StringType()
    return type_
