"""An Iceberg table of the files of a table of Spark's own catalog, which stays as it is."""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.commits.new_table import NewTable
from iceberg_pyspark.errors import (
    InvalidRequestError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spark.bridge.session_tables import SESSION_CATALOG, SessionTable
from iceberg_pyspark.spark.procedures.definition import Column, Procedure, ProcedureRun, Row
from iceberg_pyspark.spark.procedures.source_tables import SourceFiles, table_source
from iceberg_pyspark.spark.rows.types import from_spark_schema
from iceberg_pyspark.spec.properties import GC_ENABLED
from iceberg_pyspark.sql_text.ddl import parse_partitioning
from iceberg_pyspark.sql_text.names import parse_levels, quoted
from iceberg_pyspark.storage.places import is_below
from iceberg_pyspark.table.changes.add_files import AddedFiles, FileImport
from iceberg_pyspark.table.changes.commit import SYSTEM_CLOCK
from iceberg_pyspark.table.changes.commit_options import CommitOptions
from iceberg_pyspark.table.changes.create_table import (
    create_namespace_if_absent,
    new_table_properties,
    planned_table,
)
from iceberg_pyspark.table.table_storage import table_io

_SNAPSHOT = "snapshot"


def _snapshot(run: ProcedureRun) -> tuple[Row, ...]:
    spark = run.spark
    source, files = table_source(spark, parse_levels(run.required("source_table")))
    _check_name_is_free(run)
    given = run.given.get("properties", {})
    if GC_ENABLED.of({GC_ENABLED.name: "false", **given}):
        raise InvalidRequestError(
            f"snapshot: {GC_ENABLED.name} of a snapshot is false, so that nothing deletes files of "
            f"{source}; set it later, once that table is gone"
        )
    properties = {
        **source.properties,
        **given,
        _SNAPSHOT: "true",
        GC_ENABLED.name: "false",
    }
    planned = _planned(run, source, properties, run.given.get("location"))
    location = planned.metadata.location
    if is_below(location, source.location) or is_below(source.location, location):
        raise InvalidRequestError(
            f"snapshot: the table would lie at {location}, and the files of {source} at "
            f"{source.location}; give a location apart from it"
        )
    _, added = _import(run, planned, files)
    return ((added.added_files_count,),)


def _check_name_is_free(run: ProcedureRun) -> None:
    """No name hides a table of Spark's."""
    if run.catalog.name != SESSION_CATALOG:
        return
    levels = (*run.identifier.namespace, run.identifier.name)
    catalog = run.spark.catalog
    if catalog.tableExists(".".join(quoted(level) for level in (SESSION_CATALOG, *levels))):
        raise TableAlreadyExistsError(f"{SESSION_CATALOG}.{run.identifier} is there already")
    create_namespace_if_absent(run.catalog, run.identifier.namespace)


def _planned(
    run: ProcedureRun,
    source: SessionTable,
    properties: Mapping[str, str],
    location: str | None,
) -> LoadedTable:
    """The table as it will be, which no catalog has yet."""
    if source.is_bucketed:
        raise UnsupportedFeatureError(
            f"{source} is bucketed, and the buckets of Spark's own tables are not Iceberg's; copy "
            "its rows with CREATE TABLE ... USING iceberg AS SELECT"
        )
    schema = from_spark_schema(source.schema, all_optional=True)
    return planned_table(
        run.catalog,
        run.identifier,
        NewTable(
            schema=schema,
            spec=parse_partitioning([quoted(c) for c in source.partition_columns], schema),
            location=location,
            properties=new_table_properties(run.catalog.properties, properties),
        ),
    )


def _import(
    run: ProcedureRun, planned: LoadedTable, files: SourceFiles
) -> tuple[LoadedTable, AddedFiles]:
    return FileImport(
        catalog=run.catalog,
        table=planned,
        io=table_io(planned, run.catalog),
        source=files.location,
        file_format=files.file_format,
        options=CommitOptions(),
        clock=SYSTEM_CLOCK,
        partition_filter={},
        partitions=files.partitions,
        may_be_empty=True,
    ).create()


SNAPSHOT = Procedure(
    name="snapshot",
    description="Makes a table of the files of a table of Spark's own, which stays as it is",
    required={"source_table": "string", "table": "string"},
    optional={
        "location": "string",
        "properties": "map<string,string>",
        "parallelism": "int",
    },
    columns={"imported_files_count": Column(type="long")},
    run=_snapshot,
)
