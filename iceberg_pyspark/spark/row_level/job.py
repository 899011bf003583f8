"""The one Spark job of a row-level operation: new rows laid out and written, old ones noted.

If it fails, what its finished tasks have written is removed; a task removes its own.
"""

from __future__ import annotations

import contextlib
import pickle
from dataclasses import replace

from pyspark.sql import DataFrame

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.spark.row_level.change_task import ChangeTask
from iceberg_pyspark.spark.row_level.isolation import Mode, OperationName
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.spark.row_level.touched_rows import TouchedRows, unite
from iceberg_pyspark.spark.write_command import context_and_layout
from iceberg_pyspark.spark.write_frame import WrittenPaths
from iceberg_pyspark.spark.write_layout import DISTRIBUTION_MODE, lay_out
from iceberg_pyspark.spark.write_settings import WriteSettings
from iceberg_pyspark.spec.table_metadata import TableMetadata

_ADVISORY_BYTES = 64 * 1024 * 1024


def run_job(
    target: Target,
    frame: DataFrame,
    settings: WriteSettings,
    *,
    operation: OperationName,
    mode: Mode,
    writes_rows: bool,
) -> TouchedRows:
    """Carry out the changes of a frame (`change_columns.py`)."""
    context = None
    if writes_rows:
        properties = _distribution(settings, target.metadata, operation, mode)
        context, layout = context_and_layout(
            target.name, target.metadata, replace(settings, properties=properties)
        )
        schema = context.schema
        context = replace(context, schema=replace(schema, fields=(*schema.fields, *target.lineage)))
        bridge = target.session.bridge
        if mode == "merge-on-read" and layout.mode == "none":
            # few rows of many files: not a file for each task that has one
            frame = bridge.rebalanced(frame, [], layout.partition_bytes or _ADVISORY_BYTES)
        frame = lay_out(bridge, frame, layout)
    written = target.session.spark.sparkContext.accumulator([], WrittenPaths())
    task = ChangeTask(context=context, io=target.io, written=written)
    try:
        results = frame.mapInArrow(task, "changes binary").collect()
    except BaseException:
        for path in written.value:
            # the failure that led here is the one to report; what stays is an orphan
            with contextlib.suppress(StorageError):
                target.io.delete(path)
        raise
    finally:
        # Spark keeps the accumulator for as long as the process lives
        written.value = []
    return unite(pickle.loads(r.changes) for r in results)


def _distribution(
    settings: WriteSettings, metadata: TableMetadata, operation: OperationName, mode: Mode
) -> dict[str, str]:
    """The properties with the operation's own distribution mode, `hash` unless they say one.

    A merge that rewrites the files of an unpartitioned table distributes as any write does.
    """
    properties = dict(settings.properties)
    asked = properties.get(f"write.{operation}.distribution-mode")
    as_a_write = (
        operation == "merge" and mode == "copy-on-write" and metadata.default_spec.is_unpartitioned
    )
    if asked is not None or not as_a_write:
        properties[DISTRIBUTION_MODE] = asked or "hash"
    return properties
