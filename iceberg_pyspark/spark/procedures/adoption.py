"""Creates an Iceberg table from the files of a Spark table, for `snapshot` and `migrate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.errors import StorageError, UnsupportedFeatureError
from iceberg_pyspark.spark.bridge.session_table_entries import folder_exists
from iceberg_pyspark.spark.bridge.session_tables import SessionTable
from iceberg_pyspark.spark.procedures.source_tables import SourceFiles
from iceberg_pyspark.spark.rows.types import from_spark_schema
from iceberg_pyspark.sql_text.ddl import parse_partitioning
from iceberg_pyspark.sql_text.names import quoted
from iceberg_pyspark.table.commits.add_files import FileImport
from iceberg_pyspark.table.commits.commit import SYSTEM_CLOCK
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.create_table import new_table_properties, planned_table
from iceberg_pyspark.table.progress import Progress
from iceberg_pyspark.table.table_storage import table_io


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTable:
    """The result of `snapshot`: the number of files of the new table."""

    imported_files_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MigratedTable:
    """The result of `migrate`: the number of files of the table, which are where they were."""

    migrated_files_count: int


_OF_SPARK_ALONE = frozenset({"path", "transient_lastDdlTime", "serialization.format"})
"""Properties that describe the source table and mean nothing for an Iceberg table."""


def properties_of(source: SessionTable) -> dict[str, str]:
    """Return the properties of a source table that the Iceberg table gets too."""
    return {k: v for k, v in source.properties.items() if k not in _OF_SPARK_ALONE}


def plan_of(
    catalog: Catalog,
    identifier: TableIdentifier,
    source: SessionTable,
    properties: Mapping[str, str],
    location: str | None,
) -> LoadedTable:
    """Return the planned table, which no catalog has yet; raise `UnsupportedFeatureError`."""
    if source.is_bucketed:
        raise UnsupportedFeatureError(
            f"{source} is bucketed, and the buckets of Spark's own tables are not Iceberg's; copy "
            "its rows with CREATE TABLE ... USING iceberg AS SELECT"
        )
    schema = from_spark_schema(source.schema, all_optional=True)
    return planned_table(
        catalog,
        identifier,
        NewTable(
            schema=schema,
            spec=parse_partitioning([quoted(c) for c in source.partition_columns], schema),
            location=location,
            properties=new_table_properties(catalog.properties, properties),
        ),
    )


def import_of(
    catalog: Catalog, planned_table: LoadedTable, files: SourceFiles, progress: Progress
) -> FileImport:
    """Return the import that creates the planned table with the files."""
    return FileImport(
        catalog=catalog,
        table=planned_table,
        io=table_io(planned_table, catalog),
        source=files.location,
        file_format=files.file_format,
        options=CommitOptions(),
        clock=SYSTEM_CLOCK,
        partition_filter={},
        partitions=files.partitions,
        may_be_empty=True,
        nested_folders=False,
        progress=progress,
    )


def check_folders(
    spark: SparkSession, table: SessionTable, without_files: list[Mapping[str, str | None]]
) -> None:
    """Raise `StorageError` if a folder that should have files of the table does not exist.

    `without_files` are the partitions in which an import has found no files.
    """
    empty = [dict(values) for values in without_files]
    folders = [p.location for p in table.partitions or () if dict(p.values) in empty]
    if not table.partition_columns:
        folders = [table.location]
    for folder in folders:
        if not folder_exists(spark, folder):
            raise StorageError(
                f"{folder} is not there, where Spark's catalog has files of {table}; drop that "
                "partition, or give ignore_missing_files => true"
            )
