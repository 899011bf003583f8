"""Compares all readers of a generated table: ours, Java's and PyIceberg's, in every snapshot."""

from __future__ import annotations

import datetime as dt
import math
import os
import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame

from iceberg_pyspark.spec.types import (
    DoubleType,
    FloatType,
    PrimitiveType,
    StringType,
    StructType,
    UnknownType,
)
from iceberg_pyspark.table.metadata_tables.lookup import METADATA_TABLES
from tests.support.java_tables import JavaTables, show_rows
from tests.support.oracle import Oracle
from tests.support.our_tables import pyiceberg_table
from tests.support.readings import (
    assert_filters_alike,
    assert_read_alike,
    java_rows,
    native_frame,
    our_frame,
    our_rows,
    our_table,
)
from tests.support.rows import plain_value, spark_rows
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


SEED, FILTERS = map(int, os.environ.get("ICEBERG_RANDOM_QUERIES", "1:20").split(":"))


def assert_generated_alike(
    java: JavaTables,
    name: str,
    *,
    by_spark: bool = True,
    by_pyiceberg: bool = True,
    by_generics: bool = True,
    metadata: bool = True,
    filters: bool = True,
) -> None:
    """Assert that all readers see the same rows, snapshots and metadata tables.

    `by_spark` says that Spark has types for the columns, and Python for their values; `by_generics`
    that Java can read the table without Spark. Without `metadata`, or without `filters`, metadata
    tables and random filters are not compared.
    """
    oracle = java.oracle
    _assert_exactly_alike(java, name, by_pyiceberg=by_pyiceberg, by_generics=by_generics)
    if metadata:
        _assert_metadata_alike(oracle, name, as_text=not by_spark)
    if not by_spark:
        return
    assert_read_alike(oracle, name, through_spark=True)
    if our_table(oracle, name).metadata.format_version >= 3:
        frame = oracle.sql(f"SELECT *, _row_id, _last_updated_sequence_number FROM {name}")
        columns = ",".join(f"`{c}`" for c in frame.columns)
        assert our_rows(oracle, name, columns=columns) == java_rows(oracle, frame)
    for clause, option in _moments(oracle, name):
        frame = oracle.sql(f"SELECT * FROM {name} {clause}")
        assert our_rows(oracle, name, **option) == java_rows(oracle, frame), clause
        assert spark_rows(native_frame(oracle, name, **option).collect()) == (
            java_rows(oracle, frame)
        ), clause
    if filters:
        _assert_filters_alike(oracle, name)


def _moments(oracle: Oracle, name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return Java's clause and our option for every snapshot and every reference of a table."""
    table = our_table(oracle, name)
    result: list[tuple[str, dict[str, Any]]] = [
        (f"VERSION AS OF {s.snapshot_id}", {"snapshot_id": str(s.snapshot_id)})
        for s in table.snapshots
    ]
    for ref, value in table.metadata.refs.items():
        if ref != "main":
            result.append((f"VERSION AS OF '{ref}'", {value.type: ref}))
    return result


def _assert_exactly_alike(
    java: JavaTables, name: str, *, by_pyiceberg: bool, by_generics: bool
) -> None:
    """Compare the bits of numbers, which rows of Spark do not show."""
    rows = show_rows(our_table(java.oracle, name).scan().to_arrow())
    if by_generics:
        assert rows == java.rows(name)
    if by_pyiceberg:
        with pyiceberg_table(java.oracle, name) as theirs:
            assert rows == show_rows(theirs.scan().to_arrow())


def _assert_metadata_alike(oracle: Oracle, name: str, *, as_text: bool) -> None:
    """Compare the metadata tables, as Spark's texts if Python cannot hold values in them."""
    for kind in METADATA_TABLES:
        if kind != "changes":
            ours = our_frame(oracle, f"{name}.{kind}")
            java = oracle.spark.table(f"{name}.{kind}")
            assert _shown(ours, as_text) == _shown(java, as_text), kind


def _shown(frame: DataFrame, as_text: bool) -> list[Any]:
    if as_text:
        frame = frame.selectExpr(*(f"CAST({column} AS STRING)" for column in frame.columns))
    return sorted((plain_value(row) for row in frame.collect()), key=repr)


def _assert_filters_alike(oracle: Oracle, name: str) -> None:
    table = our_table(oracle, name)
    rows = table.scan().to_arrow()
    if not rows.num_rows:
        return
    choose = random.Random(f"{SEED} {name}")
    filters = RandomFilters(choose, table.schema.as_struct, rows.to_pylist()).take(FILTERS)
    first = f"`{rows.column_names[0]}`"
    assert_filters_alike(oracle, name, filters, first, natively=True, may_be_empty=True)
