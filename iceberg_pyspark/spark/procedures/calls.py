"""CALL: lists the procedures of a catalog, describes their parameters and results, and runs one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, ValuesView
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from iceberg_pyspark.catalogs.catalog import Catalog, Namespace
from iceberg_pyspark.errors import InvalidRequestError, NoSuchTableError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.cached_rows import recache_table
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.bridge.protocol.procedures import (
    Argument,
    ProcedureArgument,
    ProcedureDefinition,
    ProcedureRows,
)
from iceberg_pyspark.spark.procedures import (
    changelog,
    clean_up,
    migrate,
    register,
    rewrites,
    snapshot_table,
    snapshots,
)
from iceberg_pyspark.spark.procedures import executor_sketches as statistics
from iceberg_pyspark.spark.procedures import rewrites as rewrite_table_path
from iceberg_pyspark.spark.procedures.definition import (
    NoTableToCallError,
    Procedure,
    ProcedureRun,
)
from iceberg_pyspark.spark.progress.task_counts import described_jobs
from iceberg_pyspark.spec.display import escape_text
from iceberg_pyspark.sql_text.names import quoted_name
from iceberg_pyspark.table.progress import LoggedProgress

_log = get_logger(__name__)

SYSTEM = "system"
PROCEDURES: Mapping[str, Procedure] = {
    procedure.name: procedure
    for procedure in (
        register.ADD_FILES,
        snapshots.ANCESTORS_OF,
        snapshots.CHERRYPICK_SNAPSHOT,
        statistics.COMPUTE_PARTITION_STATS,
        statistics.COMPUTE_TABLE_STATS,
        changelog.CREATE_CHANGELOG_VIEW,
        clean_up.EXPIRE_SNAPSHOTS,
        snapshots.FAST_FORWARD,
        migrate.MIGRATE,
        snapshots.PUBLISH_CHANGES,
        register.REGISTER_TABLE,
        clean_up.REMOVE_ORPHAN_FILES,
        rewrites.REWRITE_DATA_FILES,
        rewrites.REWRITE_EQUALITY_DELETES,
        rewrites.REWRITE_MANIFESTS,
        rewrites.REWRITE_POSITION_DELETE_FILES,
        rewrite_table_path.REWRITE_TABLE_PATH,
        snapshots.ROLLBACK_TO_SNAPSHOT,
        snapshots.ROLLBACK_TO_TIMESTAMP,
        snapshots.SET_CURRENT_SNAPSHOT,
        snapshot_table.SNAPSHOT,
    )
}
"""All procedures by name."""


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
        description=procedure.description,
        parameters=(
            *_parameters(procedure.required, is_required=True),
            *_parameters(procedure.optional, is_required=False),
        ),
        schema=schema.json(),
    )


def _parameters(types: Mapping[str, str], *, is_required: bool) -> tuple[ProcedureArgument, ...]:
    return tuple(
        ProcedureArgument(name=name, type=type_, is_required=is_required)
        for name, type_ in types.items()
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
    types = {**procedure.required, **procedure.optional}
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
            rows = procedure.run(run)
    except NoTableToCallError as e:
        spark.table(quoted_name(_full_name(run)))
        # a view has the name
        raise NoSuchTableError(str(e)) from e
    if procedure.changes_rows and not run.is_dry:
        # only fast_forward has this argument
        recache_table(bridge, _full_name(run), values.get("branch"))
    return ProcedureRows(rows=rows)


def _full_name(run: ProcedureRun) -> tuple[str, ...]:
    return (run.catalog.name, *run.identifier.levels)


def _is_system(namespace: Namespace) -> bool:
    return len(namespace) == 1 and namespace[0].lower() == SYSTEM
