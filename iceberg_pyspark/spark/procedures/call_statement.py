"""CALL: lists the procedures of a catalog, describes their parameters and results, and runs one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, ValuesView
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from iceberg_pyspark.catalogs.catalog import Catalog, Namespace
from iceberg_pyspark.display import escape_text
from iceberg_pyspark.errors import InvalidRequestError, NoSuchTableError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.jvm import Bridge, recache_table
from iceberg_pyspark.spark.bridge.protocol.catalog_messages import (
    Argument,
    ProcedureArgument,
    ProcedureDefinition,
    ProcedureRows,
)
from iceberg_pyspark.spark.job_progress import described_jobs
from iceberg_pyspark.spark.procedures import adoption, migrate, table_procedures
from iceberg_pyspark.spark.procedures.procedure_run import (
    NoTableToCallError,
    ProcedureRun,
    Result,
    Row,
    Run,
)
from iceberg_pyspark.sql_text.names import quoted_name
from iceberg_pyspark.table.maintenance.copy.rewrite_table_path import RewrittenTablePath
from iceberg_pyspark.table.maintenance.procedure_parts import Procedure
from iceberg_pyspark.table.maintenance.procedures import PROCEDURES
from iceberg_pyspark.table.maintenance.removal.remove_orphan_files import OrphanFiles
from iceberg_pyspark.table.progress import LoggedProgress
from iceberg_pyspark.table.statistics.partition_statistics import ComputedPartitionStatistics
from iceberg_pyspark.table.statistics.table_statistics import ComputedTableStatistics

_log = get_logger(__name__)

SYSTEM = "system"
RUNS: Mapping[str, Run] = {
    **adoption.RUNS,
    **migrate.RUNS,
    **table_procedures.RUNS,
}
"""The functions of all procedures by name."""

_NO_LIST = "N/A"


def procedure_names(namespace: Namespace) -> tuple[str, ...]:
    """Return the names of the procedures in a namespace."""
    return tuple(PROCEDURES) if _is_system(namespace) else ()


def procedure_definition(namespace: Namespace, name: str) -> ProcedureDefinition:
    """Return a procedure's signature for Spark; raise `InvalidRequestError` if there is none."""
    procedure = PROCEDURES.get(name.lower()) if _is_system(namespace) else None
    if procedure is None:
        raise InvalidRequestError(
            f"there is no procedure {'.'.join((*namespace, name))}; those of a catalog of "
            f"iceberg_pyspark are {', '.join(f'{SYSTEM}.{n}' for n in PROCEDURES)}"
        )
    schema = spark_types.StructType()
    for column_name, column in procedure.columns.items():
        schema = schema.add(column_name, column.type, column.is_nullable)
    return ProcedureDefinition(
        name=procedure.name,
        description=procedure.help,
        parameters=tuple(
            ProcedureArgument(name=p.name, type=p.type, is_required=p.is_required)
            for p in procedure.call_parameters
        ),
        schema=schema.json(),
    )


def call_procedure(
    spark: SparkSession,
    bridge: Bridge,
    catalog: Catalog,
    name: str,
    arguments: Mapping[str, Argument],
    current_namespace: Namespace,
    open_catalog: Callable[[str], Catalog],
) -> ProcedureRows:
    """Run a procedure and return its result rows; log its progress.

    For a missing table, Spark's own error is raised, with the condition `TABLE_OR_VIEW_NOT_FOUND`.
    """
    procedure = PROCEDURES[name]
    types = {p.name: p.type for p in procedure.call_parameters}
    values: dict[str, Any] = dict(arguments)
    for parameter, value in values.items():
        items = value.values() if isinstance(value, dict) else value
        if isinstance(items, tuple | ValuesView) and None in items:
            raise InvalidRequestError(
                f"{name}: the argument {parameter} holds a null; leave that item out"
            )
        if types[parameter] == "timestamp" and value is not None:
            values[parameter] = value // 1000
    subject = f"{name} {escape_text(str(values.get('table')))}"
    progress = LoggedProgress(_log, subject=subject)
    run = ProcedureRun(name, spark, catalog, values, current_namespace, open_catalog, progress)
    try:
        with described_jobs(spark.sparkContext, f"iceberg-py {subject}"):
            rows = _rows(procedure, RUNS[name](run))
    except NoTableToCallError as e:
        spark.table(quoted_name(_full_name(run)))
        # a view has the name
        raise NoSuchTableError(str(e)) from e
    if procedure.changes_rows and not run.is_dry:
        # only fast_forward has this argument
        recache_table(bridge, _full_name(run), values.get("branch"))
    return ProcedureRows(rows=rows)


def _rows(procedure: Procedure, result: Result) -> tuple[Row, ...]:
    """Return a result as the rows of CALL, which are those of the JVM connector."""
    match result:
        case tuple():
            return result
        case OrphanFiles():
            return tuple((location,) for location in result.orphan_file_locations)
        case RewrittenTablePath(file_list_location=None):
            result = replace(result, file_list_location=_NO_LIST)
        # a dry run, which has no file, has a null in the row
        case ComputedTableStatistics(statistics_file=None) if not result.distinct_counts:
            return ()
        case ComputedPartitionStatistics(partition_statistics_file=None) if (
            not result.partition_count
        ):
            return ()
    return (tuple(getattr(result, name) for name in procedure.columns),)


def _full_name(run: ProcedureRun) -> tuple[str, ...]:
    return (run.catalog.name, *run.identifier.levels)


def _is_system(namespace: Namespace) -> bool:
    return len(namespace) == 1 and namespace[0].lower() == SYSTEM
