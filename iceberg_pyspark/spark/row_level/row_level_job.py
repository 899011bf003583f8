"""The Spark job of a row-level operation: writes new rows, collects positions of old rows.

Merges the results of a job's tasks: the deleted positions by file, and the check for duplicates.

At most one source row may match a target row, in all tasks together, because the result would be
ambiguous otherwise. Spark's MERGE raises the same error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from iceberg_pyspark.arrow.arrow_schemas import stored_schema
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.row_level.change_task import ChangeTask, Op, TaskChanges
from iceberg_pyspark.spark.row_level.operation import Mode, OperationName
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.spark.write.distribution import context_and_distribution, distribute_and_sort
from iceberg_pyspark.spark.write.file_job import run_writing_job
from iceberg_pyspark.spark.write.resolved_write import WriteSettings
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import DISTRIBUTION_MODE, ROW_LEVEL_DISTRIBUTION


@dataclass(frozen=True, kw_only=True)
class TouchedRows:
    """The new files and the removed rows, by data file path, of a whole operation."""

    data_files: tuple[DataFile, ...] = ()
    removed_positions: Mapping[str, BitMap64] = field(default_factory=dict)
    duplicate_match: str | None = None
    counts: Mapping[Op, int] = field(default_factory=dict)

    def check_single_matches(self, table: str) -> None:
        """Raise `InvalidRequestError` if several source rows match one target row."""
        if self.duplicate_match is not None:
            raise InvalidRequestError(
                f"MERGE into {table}: several rows of the source match one row of the table (in "
                f"{self.duplicate_match}), so the result is ambiguous; make the source's "
                "keys unique, or the condition more precise"
            )


def unite(tasks: Iterable[TaskChanges]) -> TouchedRows:
    """Return the merged changes of all tasks; bitmaps are merged one task at a time."""
    files: list[DataFile] = []
    removed: dict[str, BitMap64] = {}
    unchanged: dict[str, BitMap64] = {}
    counts: dict[Op, int] = {}
    duplicate_match: str | None = None
    for task in tasks:
        files.extend(task.data_files)
        for op, count in task.counts.items():
            counts[op] = counts.get(op, 0) + count
        duplicate_match = duplicate_match or task.duplicate_match
        for serialized, bitmaps in (
            (task.removed_positions, removed),
            (task.unchanged_positions, unchanged),
        ):
            for path, data in serialized.items():
                duplicate_match = _add(bitmaps, path, data) or duplicate_match
    for path, bitmap in unchanged.items():
        if path in removed and removed[path].intersect(bitmap):
            duplicate_match = path
    return TouchedRows(
        data_files=tuple(files),
        removed_positions=removed,
        duplicate_match=duplicate_match,
        counts=counts,
    )


def _add(bitmaps: dict[str, BitMap64], path: str, data: bytes) -> str | None:
    """Add a bitmap; return the path if a position was already in the earlier bitmap."""
    bitmap = BitMap64.deserialize(data)
    earlier = bitmaps.get(path)
    if earlier is None:
        bitmaps[path] = bitmap
        return None
    twice = path if earlier.intersect(bitmap) else None
    bitmaps[path] = earlier | bitmap
    return twice


_ADVISORY_BYTES = 64 * 1024 * 1024


def run_job(
    target: Target,
    frame: DataFrame,
    *,
    operation: OperationName,
    mode: Mode,
    writes_rows: bool,
    needs_no_rebalance: Callable[[], bool],
) -> TouchedRows:
    """Run the job that carries out the changes of a frame (`change_task.py`).

    `needs_no_rebalance` says whether the changes need no rebalancing; it is only called if they
    might.
    """
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
        bridge = target.session.bridge
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
            frame = bridge.writes.rebalance(
                frame, [], distribution.partition_bytes or _ADVISORY_BYTES
            )
        frame = distribute_and_sort(bridge, frame, distribution)
    task = ChangeTask(context=context, io=target.io)
    return unite(run_writing_job(frame, task, target.io))


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


def _is_adaptive(spark: SparkSession) -> bool:
    """Return whether Spark splits and merges the partitions of a shuffle by their size."""
    return spark.conf.get("spark.sql.adaptive.enabled", "true") == "true"
