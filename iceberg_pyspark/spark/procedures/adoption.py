"""The procedures that adopt existing files: `add_files`, `register_table`, `snapshot`.

Their source files, also those of `migrate`, are in a folder or in a table of Spark's own catalog.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from pyspark.sql import SparkSession

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.errors import (
    InvalidRequestError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spark.bridge.session_tables import (
    SESSION_CATALOG,
    SessionTable,
    folder_exists,
    session_table,
)
from iceberg_pyspark.spark.procedures.procedure_run import ProcedureRun, Row, Run
from iceberg_pyspark.spark.rows.spark_types import from_spark_schema
from iceberg_pyspark.spec.manifests import DataFileFormat
from iceberg_pyspark.spec.table_properties import GC_ENABLED
from iceberg_pyspark.sql_text.ddl import parse_partitioning
from iceberg_pyspark.sql_text.names import is_path, parse_levels, quoted, quoted_name
from iceberg_pyspark.storage.files.places import is_below
from iceberg_pyspark.table.commits.add_files import AddedFiles, FileImport
from iceberg_pyspark.table.commits.clock import SYSTEM_CLOCK
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.create_table import (
    create_namespace_if_absent,
    new_table_properties,
    planned_table,
)
from iceberg_pyspark.table.commits.partition_folders import partition_texts, spelled_as
from iceberg_pyspark.table.maintenance import procedures
from iceberg_pyspark.table.progress import Progress
from iceberg_pyspark.table.table_storage import table_io

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
    *,
    takes_folder: bool = False,
) -> LoadedTable:
    """Return the planned table, which no catalog has yet; raise `UnsupportedFeatureError`.

    `takes_folder` if its location is the folder of the source.
    """
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
        takes_folder=takes_folder,
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


_TOTALS = ("total-records", "total-data-files")


def _register_table(run: ProcedureRun) -> tuple[Row, ...]:
    table = run.catalog.register_table(
        run.identifier, run.required("metadata_file"), dry_run=run.is_dry
    )
    snapshot = table.metadata.current_snapshot
    if snapshot is None:
        return ((None, None, None),)
    totals = (snapshot.summary.get(name) for name in _TOTALS)
    return ((snapshot.snapshot_id, *(None if t is None else int(t) for t in totals)),)


def _add_files(run: ProcedureRun) -> AddedFiles:
    source = _source(run)
    # add_files always looks for files that the table already has, whatever check_duplicate_files
    # says, and it chooses its own parallelism.
    return run.table.add_files(
        source.location,
        file_format=source.file_format,
        partition_filter=run.given_arguments.get("partition_filter"),
        partitions=source.partitions,
        nested_folders=not source.is_table,
        dry_run=run.is_dry,
        progress=run.progress,
    )


def _source(run: ProcedureRun) -> SourceFiles:
    """Return the files of `source_table` of CALL, or of `source` in the job."""
    name = run.given_arguments.get("source")
    if name is None:
        name = run.required("source_table")
    elif is_path(name):
        return SourceFiles(location=name, file_format=run.given_arguments["file_format"])
    levels = parse_levels(name)
    return folder_source(levels) or table_source(run.spark, levels)[1]


def snapshot(run: ProcedureRun) -> SnapshotTable:
    """Create a table from the files of one of Spark's own tables, which stays unchanged."""
    spark = run.spark
    source, files = table_source(spark, parse_levels(run.required("source_table")))
    _check_name_is_free(run)
    new_properties = run.given_arguments.get("properties", {})
    if GC_ENABLED.of({GC_ENABLED.name: "false", **new_properties}):
        raise InvalidRequestError(
            f"snapshot: {GC_ENABLED.name} must be false, so that nothing deletes files of "
            f"{source}; leave the property out, and set it once {source} no longer exists"
        )
    properties = {
        **properties_of(source),
        **new_properties,
        "snapshot": "true",
        GC_ENABLED.name: "false",
    }
    planned = plan_of(
        run.catalog, run.identifier, source, properties, run.given_arguments.get("location")
    )
    location = planned.metadata.location
    if is_below(location, source.location) or is_below(source.location, location):
        raise InvalidRequestError(
            f"snapshot: the new table would be at {location}, in the same folders as {source} at "
            f"{source.location}; give a location outside of them"
        )
    creation = import_of(run.catalog, planned, files, run.progress)
    if not run.given_arguments.get("ignore_missing_files", False):
        check_folders(spark, source, creation.partitions_without_files)
    result = creation.plan_creation() if run.is_dry else creation.create()[1]
    return SnapshotTable(imported_files_count=result.added_files_count)


def _check_name_is_free(run: ProcedureRun) -> None:
    """Raise `TableAlreadyExistsError` if the name would hide one of Spark's own tables."""
    if run.catalog.name != SESSION_CATALOG:
        return
    levels = run.identifier.levels
    catalog = run.spark.catalog
    if catalog.tableExists(quoted_name((SESSION_CATALOG, *levels))):
        raise TableAlreadyExistsError(
            f"{SESSION_CATALOG}.{run.identifier} already exists; give the new table another name"
        )
    if not run.is_dry:
        create_namespace_if_absent(run.catalog, run.identifier.namespace)


RUNS: Mapping[str, Run] = {
    procedures.ADD_FILES.name: _add_files,
    procedures.REGISTER_TABLE.name: _register_table,
    procedures.SNAPSHOT.name: snapshot,
}
