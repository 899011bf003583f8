"""The source files of a procedure: files of a folder, or of a table of Spark's own catalog."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from pyspark.sql import SparkSession

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spark.bridge.session_tables import SessionTable, session_table
from iceberg_pyspark.spec.manifests import DataFileFormat
from iceberg_pyspark.table.commits.partition_folders import partition_texts, spelled_as

_FORMATS = get_args(DataFileFormat)
_TIME = re.compile(r'"(type|elementType|keyType|valueType)":"timestamp')


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFiles:
    """The location, format and partitions of source files; `partitions` is None for all of them."""

    location: str
    file_format: DataFileFormat
    partitions: Sequence[Mapping[str, str | None]] | None = None
    is_table: bool = False


def folder_source(levels: Sequence[str]) -> SourceFiles | None:
    """Return the files of a name such as `` `parquet`.`/folder` ``, or None for other names."""
    if len(levels) != 2 or levels[0].lower() not in _FORMATS:
        return None
    return SourceFiles(location=levels[1], file_format=cast("DataFileFormat", levels[0].lower()))


def table_source(spark: SparkSession, levels: Sequence[str]) -> tuple[SessionTable, SourceFiles]:
    """Return a table of Spark's own catalog and its files; raise `UnsupportedFeatureError`."""
    table = session_table(spark, levels)
    if table.type == "VIEW" or table.provider not in _FORMATS:
        kind = "a view" if table.type == "VIEW" else f"of the format {table.provider}"
        raise UnsupportedFeatureError(
            f"{table} is {kind}, and files come from tables of the formats {', '.join(_FORMATS)}; "
            "write its rows to an Iceberg table with CREATE TABLE ... USING iceberg AS SELECT"
        )
    if table.provider == "orc" and _TIME.search(table.schema.json()):
        raise UnsupportedFeatureError(
            f"{table} has timestamp columns in ORC files, which Spark writes in the time zone of "
            "its process and Iceberg would read as other times; copy the rows with CREATE TABLE "
            "... USING iceberg AS SELECT"
        )
    for partition in table.partitions or ():
        # add_files reads a file's partition values from its folders, so they must match the
        # catalog.
        texts = partition_texts(f"{partition.location}/x", table.location)
        if spelled_as(texts, table.partition_columns) != dict(partition.values):
            raise UnsupportedFeatureError(
                f"{table}: its partition {dict(partition.values)} is at {partition.location}, not "
                f"in the folder of {table.location} that is named by the values; add such folders "
                f"as `{table.provider}`.`{partition.location}` with add_files, or copy the rows "
                "with INSERT"
            )
    return table, SourceFiles(
        location=table.location,
        file_format=cast("DataFileFormat", table.provider),
        partitions=None if table.partitions is None else [p.values for p in table.partitions],
        is_table=True,
    )
