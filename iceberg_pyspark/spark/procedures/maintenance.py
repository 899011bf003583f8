"""The procedures of `table.maintenance()`, with what Spark adds: executors, and views as input."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import SparkSession

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.procedures.executor_sketches import sketches_by_executors
from iceberg_pyspark.spark.procedures.procedure_run import ProcedureRun, Result, Run
from iceberg_pyspark.spark.write.executors import Executors, has_executors
from iceberg_pyspark.spec.property_types import BoolProperty
from iceberg_pyspark.table.maintenance import procedures
from iceberg_pyspark.table.maintenance.removal.orphan_files import Inventory
from iceberg_pyspark.table.maintenance.removal.remove_orphan_files import OrphanFiles
from iceberg_pyspark.table.maintenance.rewrites.rewrite_data_files import RewrittenDataFiles
from iceberg_pyspark.table.statistics.table_statistics import ComputedTableStatistics


def _maintain(run: ProcedureRun) -> Result:
    return getattr(run.maintenance, run.procedure)(**run.given_arguments)


USE_EXECUTORS = BoolProperty("use-executors", False)
"""Whether executors write the files; by default, unless the master is `local` or `local[...]`."""


def _rewrite_data_files(run: ProcedureRun) -> RewrittenDataFiles:
    arguments = dict(run.given_arguments)
    options = dict(arguments.pop("options", {}))
    context = run.spark.sparkContext
    on_executors = options.pop(USE_EXECUTORS.name, None)
    if on_executors is None:
        on_executors = "true" if has_executors(context) else "false"
    if (problem := USE_EXECUTORS.problem(on_executors)) is not None:
        raise InvalidRequestError(
            f"rewrite_data_files: {USE_EXECUTORS.name}={on_executors} {problem}"
        )
    runner = Executors(context) if USE_EXECUTORS.of({USE_EXECUTORS.name: on_executors}) else None
    return run.maintenance.rewrite_data_files(**arguments, options=options, runner=runner)


def _compute_table_stats(run: ProcedureRun) -> ComputedTableStatistics:
    context = run.spark.sparkContext
    sketch = None
    if has_executors(context):
        sketch = partial(sketches_by_executors, context, progress=run.progress)
    return run.maintenance.compute_table_stats(**run.given_arguments, sketch_scan=sketch)


def _remove_orphan_files(run: ProcedureRun) -> OrphanFiles:
    arguments = dict(run.given_arguments)
    if (view := arguments.pop("file_list_view", None)) is not None:
        arguments["inventory"] = _inventory(run.spark, view)
    if "prefix_mismatch_mode" in arguments:
        arguments["prefix_mismatch_mode"] = str(arguments["prefix_mismatch_mode"]).lower()
    return run.maintenance.remove_orphan_files(**arguments)


def _inventory(spark: SparkSession, view: str) -> Inventory:
    """Return a function that yields the files in a view; each call reads the view again."""
    files = spark.table(view)
    types = {f.name: f.dataType.simpleString() for f in files.schema.fields}
    if types.get("file_path") != "string" or types.get("last_modified") != "timestamp":
        column_list = ", ".join(f"{name} {type_}" for name, type_ in types.items())
        raise InvalidRequestError(
            f"remove_orphan_files: file_list_view {view} must have the columns file_path STRING "
            f"and last_modified TIMESTAMP; it has {column_list}"
        )
    listing = files.where("file_path IS NOT NULL").selectExpr(
        "file_path", "unix_millis(last_modified) AS modified_ms"
    )
    return lambda: ((row.file_path, row.modified_ms) for row in listing.toLocalIterator())


RUNS: Mapping[str, Run] = {
    **{p.name: _maintain for p in procedures.MAINTENANCE if p is not procedures.ADD_FILES},
    procedures.COMPUTE_TABLE_STATS.name: _compute_table_stats,
    procedures.REMOVE_ORPHAN_FILES.name: _remove_orphan_files,
    procedures.REWRITE_DATA_FILES.name: _rewrite_data_files,
}
