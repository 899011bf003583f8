"""The procedures that compute statistics."""

from __future__ import annotations

from functools import partial

from iceberg_pyspark.spark.procedures.definition import (
    DRY_RUN,
    Column,
    Procedure,
    ProcedureRun,
    Row,
)
from iceberg_pyspark.spark.procedures.executor_sketches import sketches_by_executors
from iceberg_pyspark.spark.write.executors import has_executors


def _compute_table_stats(run: ProcedureRun) -> tuple[Row, ...]:
    context = run.spark.sparkContext
    sketch = None
    if has_executors(context):
        sketch = partial(sketches_by_executors, context, progress=run.progress)
    result = run.maintenance.compute_table_stats(**run.given_arguments, sketch_scan=sketch)
    return _rows(result.statistics_file, run, has_work=bool(result.distinct_counts))


def _compute_partition_stats(run: ProcedureRun) -> tuple[Row, ...]:
    result = run.maintenance.compute_partition_stats(**run.given_arguments)
    return _rows(result.partition_statistics_file, run, has_work=result.partition_count > 0)


def _rows(file: str | None, run: ProcedureRun, *, has_work: bool) -> tuple[Row, ...]:
    """Return a row with the file; a dry run, which has no file, has a null in the row."""
    return () if file is None and not (run.is_dry and has_work) else ((file,),)


COMPUTE_TABLE_STATS = Procedure(
    name="compute_table_stats",
    description="Counts the distinct values of columns, for plans of joins",
    required={"table": "string"},
    optional={"snapshot_id": "bigint", "columns": "array<string>", DRY_RUN: "boolean"},
    columns={"statistics_file": Column(type="string", is_nullable=True)},
    run=_compute_table_stats,
)

COMPUTE_PARTITION_STATS = Procedure(
    name="compute_partition_stats",
    description="Counts rows, files and deletes of each partition",
    required={"table": "string"},
    optional={"snapshot_id": "bigint", DRY_RUN: "boolean"},
    columns={"partition_statistics_file": Column(type="string", is_nullable=True)},
    run=_compute_partition_stats,
)
