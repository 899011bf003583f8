"""Creates an Iceberg table from the files of one of Spark's own tables, which stays unchanged."""

from __future__ import annotations

from iceberg_pyspark.errors import InvalidRequestError, TableAlreadyExistsError
from iceberg_pyspark.spark.bridge.session_tables import SESSION_CATALOG
from iceberg_pyspark.spark.procedures.adoption import (
    check_folders,
    import_of,
    plan_of,
    properties_of,
    table_source,
)
from iceberg_pyspark.spark.procedures.definition import (
    DRY_RUN,
    Column,
    Procedure,
    ProcedureRun,
    Row,
)
from iceberg_pyspark.spec.properties import GC_ENABLED
from iceberg_pyspark.sql_text.names import parse_levels, quoted_name
from iceberg_pyspark.storage.files.places import is_below
from iceberg_pyspark.table.commits.create_table import create_namespace_if_absent

_SNAPSHOT = "snapshot"


def _snapshot(run: ProcedureRun) -> tuple[Row, ...]:
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
        _SNAPSHOT: "true",
        GC_ENABLED.name: "false",
    }
    planned_table = plan_of(
        run.catalog, run.identifier, source, properties, run.given_arguments.get("location")
    )
    location = planned_table.metadata.location
    if is_below(location, source.location) or is_below(source.location, location):
        raise InvalidRequestError(
            f"snapshot: the new table would be at {location}, in the same folders as {source} at "
            f"{source.location}; give a location outside of them"
        )
    creation = import_of(run.catalog, planned_table, files, run.progress)
    if not run.given_arguments.get("ignore_missing_files", False):
        check_folders(spark, source, creation.partitions_without_files)
    result = creation.plan_creation() if run.is_dry else creation.create()[1]
    return ((result.added_files_count,),)


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


SNAPSHOT = Procedure(
    name="snapshot",
    description="Makes a table of the files of a table of Spark's own, which stays as it is",
    required={"source_table": "string", "table": "string"},
    optional={
        "location": "string",
        "properties": "map<string,string>",
        "parallelism": "int",
        "ignore_missing_files": "boolean",
        DRY_RUN: "boolean",
    },
    columns={"imported_files_count": Column(type="long")},
    run=_snapshot,
)
