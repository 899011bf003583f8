"""Reads the metadata table `changes` in a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from iceberg_pyspark.spec.metadata_columns import ROW_ID
from iceberg_pyspark.sql_text.names import is_path, quoted_name

ReadChanges: TypeAlias = Callable[[Mapping[str, Any], bool], DataFrame]
"""A function that reads a table's changes by read options; with True, also the column `_row_id`."""

FORMAT = "iceberg-py"
"""The name of the data source."""

_CHANGES = "changes"


def changes_of_catalog(spark: SparkSession, levels: Sequence[str]) -> ReadChanges:
    """Return a reader of the changes of a table; `levels` begin with the session's catalog name."""

    def read(options: Mapping[str, Any], with_row_id: bool) -> DataFrame:
        changes = spark.read.options(**options).table(quoted_name((*levels, _CHANGES)))
        return changes.select("*", ROW_ID.name) if with_row_id else changes

    return read


def changes_of_source(spark: SparkSession, name: str, settings: Mapping[str, str]) -> ReadChanges:
    """Return a reader of the changes of a table that the data source finds by name or path."""
    place = f"{name}#{_CHANGES}" if is_path(name) else f"{name}.{_CHANGES}"

    def read(options: Mapping[str, Any], with_row_id: bool) -> DataFrame:
        reader = spark.read.format(FORMAT).options(**settings, **options)
        changes = reader.load(place)
        if not with_row_id:
            return changes
        schema = StructType([*changes.schema.fields, StructField(ROW_ID.name, LongType())])
        return reader.schema(schema).load(place)

    return read
