"""Compares all readers of a generated table: ours, Java's and PyIceberg's, in every snapshot."""

from __future__ import annotations

import os
import random
from typing import Any

from pyspark.sql import DataFrame

from iceberg_pyspark.table.metadata_tables.lookup import METADATA_TABLES
from tests.support.java_tables import JavaTables, show_rows
from tests.support.oracle import Oracle
from tests.support.our_tables import pyiceberg_table
from tests.support.random_filters import RandomFilters
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
