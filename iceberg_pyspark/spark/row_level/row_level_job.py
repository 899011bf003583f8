"""The Spark job of a row-level operation: writes new rows, collects positions of old rows.

Spark's own writer writes the rows, if its files are correct for the table; else Python tasks do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from iceberg_pyspark.arrow.arrow_schemas import stored_schema
from iceberg_pyspark.spark.bridge.features import CHANGE_JOBS
from iceberg_pyspark.spark.bridge.spark_writes import TouchedPositions
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.spark.write.distribution import context_and_distribution, distribute_and_sort
from iceberg_pyspark.spark.write.file_job import run_writing_job
from iceberg_pyspark.spark.write.native_writer import write_natively
from iceberg_pyspark.spark.write.resolved_write import WriteSettings
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import DISTRIBUTION_MODE, ROW_LEVEL_DISTRIBUTION
from iceberg_pyspark.table.row_level.change_task import FILE, POS, ChangeTask, Op, TaskChanges
from iceberg_pyspark.table.row_level.isolation import Mode, OperationName
from iceberg_pyspark.table.row_level.touched_rows import TouchedRows, unite

_ADVISORY_BYTES = 64 * 1024 * 1024
_LOG_OF_NEIGHBOURS = 12


def run_job(
    target: Target,
    frame: DataFrame,
    *,
    operation: OperationName,
    mode: Mode,
    writes_rows: bool,
    needs_no_rebalance: Callable[[], bool],
) -> TouchedRows:
    """Run the job that carries out the changes of a frame (`ChangeTask`).

    `needs_no_rebalance` says whether the changes need no rebalancing; it is only called if they
    might.
    """
    bridge = target.session.bridge
    is_native = bridge.has(CHANGE_JOBS)
    context = None
    if writes_rows:
        settings = target.write.settings
        properties = _distribution(settings, target.metadata, operation, mode)
        write = replace(target.write, settings=replace(settings, properties=properties))
        context, distribution = context_and_distribution(write)
        schema = context.schema
        context = replace(context, schema=replace(schema, fields=(*schema.fields, *target.lineage)))
        # Columns that cannot be written are refused here, not in every task.
        stored_schema(context.schema)
        is_a_write = _is_a_write(target.metadata, operation, mode)
        advised_bytes = None if is_a_write else distribution.advised_bytes
        has_no_keys = (
            distribution.mode == "none" and properties.get(DISTRIBUTION_MODE.name) != "none"
        )
        if has_no_keys and advised_bytes is not None and _is_adaptive(target.session.spark):
            # Spark splits this one group by the tasks that have read its rows, if it is larger.
            frame = bridge.writes.rebalance(frame, [sql.lit(0)], advised_bytes)
        elif has_no_keys and mode == "merge-on-read" and not needs_no_rebalance():
            # The rows are few and come from many files: without this, each task would write a file.
            by = _neighbours() if operation == "update" else []
            frame = bridge.writes.rebalance(
                frame, by, distribution.partition_bytes or _ADVISORY_BYTES
            )
        if is_native:
            change_format = bridge.writes.change_format()
            files = write_natively(
                bridge, frame, context, distribution, target.io, change_format=change_format
            )
            if files is not None:
                return unite(_changes(bridge.writes.touched_by_files(change_format)), files)
        frame = distribute_and_sort(bridge, frame, distribution)
    elif is_native:
        return unite(_changes(bridge.writes.touched_by_rows(frame)))
    task = ChangeTask(context=context, io=target.io)
    return unite(run_writing_job(frame, task, target.io))


def _changes(touched: Iterable[TouchedPositions]) -> Iterator[TaskChanges]:
    for one in touched:
        yield TaskChanges(
            data_files=(),
            removed_positions=one.removed,
            unchanged_positions=one.unchanged,
            duplicate_match=one.twice,
            counts={op: one.counts[op] for op in Op if one.counts[op]},
        )


def _distribution(
    settings: WriteSettings, metadata: TableMetadata, operation: OperationName, mode: Mode
) -> dict[str, str]:
    """Return the properties with the operation's own distribution mode, which is `hash` by default.

    A merge that rewrites the files of an unpartitioned table is distributed like any other write.
    """
    properties = dict(settings.properties)
    own = ROW_LEVEL_DISTRIBUTION[operation]
    if own.name in properties or not _is_a_write(metadata, operation, mode):
        properties[DISTRIBUTION_MODE.name] = own.of(properties)
    return properties


def _is_a_write(metadata: TableMetadata, operation: OperationName, mode: Mode) -> bool:
    """Return whether the rows are distributed like those of any other write."""
    return (
        operation == "merge" and mode == "copy-on-write" and metadata.default_spec.is_unpartitioned
    )


def _neighbours() -> list[Column]:
    """Return columns by which rows are spread, but not those that stand together in a file.

    Without columns, Spark sorts the rows of each task by a hash of the whole row before it spreads
    them. The rows of a merge may be new, without a place.
    """
    return [sql.col(FILE), sql.shiftright(sql.col(POS), _LOG_OF_NEIGHBOURS)]


def _is_adaptive(spark: SparkSession) -> bool:
    """Return whether Spark splits and merges the partitions of a shuffle by their size."""
    return spark.conf.get("spark.sql.adaptive.enabled", "true") == "true"
