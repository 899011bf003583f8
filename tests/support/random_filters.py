"""Random filters on a table, as texts, with values that are in the table or beside them."""

from __future__ import annotations

import datetime as dt
import math
import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from iceberg_pyspark.spec.types import (
    DoubleType,
    FloatType,
    PrimitiveType,
    StringType,
    StructType,
    UnknownType,
)
from tests.support.sql_conditions import Column, columns_of, literal_text

_OPERATORS = ("<", "<=", ">", ">=", "=", "<>", "<=>")


class RandomFilters:
    """A generator of filters on the columns of a table, at any depth of structs.

    `rows` are rows of the table as dicts, whose values the filters compare with.
    """

    def __init__(
        self, choose: random.Random, struct: StructType, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        self._choose = choose
        self._columns = list(columns_of(struct))
        self._rows = rows

    def take(self, count: int) -> Iterator[str]:
        """Yield filters."""
        for _ in range(count):
            yield self._filter(2)

    def _filter(self, depth: int) -> str:
        kind = self._choose.random()
        if depth and kind < 0.2:
            return f"({self._filter(depth - 1)} AND {self._filter(depth - 1)})"
        if depth and kind < 0.35:
            return f"({self._filter(depth - 1)} OR {self._filter(depth - 1)})"
        if depth and kind < 0.5:
            return f"(NOT {self._filter(depth - 1)})"
        return self._leaf(self._choose.choice(self._columns))

    def _leaf(self, column: Column) -> str:
        is_null = self._choose.choice([f"{column.text} IS NULL", f"{column.text} IS NOT NULL"])
        if not isinstance(column.type, PrimitiveType) or isinstance(column.type, UnknownType):
            return is_null
        values = [v for v in map(column.of, self._rows) if v is not None]
        if not values:
            return is_null
        value = self._near(self._choose.choice(values))
        match self._choose.randrange(8):
            case 0:
                return is_null
            case 1:
                others = [literal_text(column.type, self._choose.choice(values)) for _ in range(2)]
                negated = self._choose.choice(["", "NOT "])
                literal = literal_text(column.type, value)
                return f"{column.text} {negated}IN ({', '.join([literal, *others])})"
            case 2 if isinstance(column.type, StringType) and not set(value) & set("%_\\"):
                prefix = value[: self._choose.randrange(len(value) + 1)]
                return f"{column.text} LIKE {literal_text(column.type, prefix + '%')}"
            case 2 if isinstance(column.type, FloatType | DoubleType):
                return f"isnan({column.text})"
        operator = self._choose.choice(_OPERATORS)
        return f"{column.text} {operator} {literal_text(column.type, value)}"

    def _near(self, value: Any) -> Any:
        """Return the value in the form that `literal_text` takes, at times the next one."""
        is_same = self._choose.random() < 0.6
        match value:
            case uuid.UUID():
                return value.bytes
            case bool() | dt.time():
                return value
            case int():
                return value if is_same or abs(value) >= 2**31 - 1 else value + 1
            case float():
                return value if is_same or math.isinf(value) else value / 2 + 0.5
            case str():
                return value if is_same else value[:-1] + "a"
            case bytes():
                return value
            case Decimal():
                return value
            case dt.datetime() if dt.date(1, 1, 2) < value.date() < dt.date(9999, 12, 30):
                return value if is_same else value + dt.timedelta(microseconds=1)
            case dt.date() if not isinstance(value, dt.datetime) and value.year < 9999:
                return value if is_same else value + dt.timedelta(days=1)
        return value
