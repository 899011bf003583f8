"""The rows of a DataFrame as data files of a table, written by Spark's own Parquet writer.

Where the files come out as those of `write_frame.py` do, no task need hand its rows to Python.
Spark writes below a folder of this write's own, next to the table's files; from there they are
moved, so this serves where a file can be given another name: on local file systems.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from iceberg_pyspark.arrow.partition_batches import PartitionTuple
from iceberg_pyspark.arrow.write_context import WriteContext
from iceberg_pyspark.arrow.written_parquet import written_metrics, written_partition
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.native_write_columns import columns_to_write, partition_columns
from iceberg_pyspark.spark.native_write_options import parquet_options, session_settings
from iceberg_pyspark.spark.write_layout import WriteLayout, distributed, in_order
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import partition_path
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.local import is_local
from iceberg_pyspark.storage.local_moves import files_below, publish_file, remove_folder
from iceberg_pyspark.storage.locations import data_file_name, location_provider

_THREADS = 8
_FILE = re.compile(r"part-(\d+)-.*\.parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """A file that a task has left: where, in which folder of this write, which task."""

    location: str
    folder: str
    task: int


def write_natively(
    bridge: Bridge, frame: DataFrame, context: WriteContext, layout: WriteLayout, io: FileIO
) -> list[DataFile] | None:
    """Write all rows in their layout; None where Spark's writer would not write the same files."""
    data = location_provider(context.table_location, context.properties).data_location
    # a JVM that was started without a locale has no other letters for names
    if not is_local(data) or not data.isascii():
        return None
    options = parquet_options(context)
    columns = columns_to_write(bridge, frame, context.schema)
    parts = partition_columns(bridge, context.schema, context.spec)
    if options is None or columns is None or parts is None:
        return None
    rows = distributed(bridge, frame.select(*columns), layout)
    rows = in_order(bridge, rows.select("*", *parts.values()), layout, list(parts))
    # no other write has it: Spark removes what is in it when one fails
    folder = f"{data}/writing-{uuid.uuid4()}"
    try:
        bridge.write_parquet(
            rows,
            folder,
            job=context.write_id,
            partitioned_by=list(parts),
            settings=session_settings(0 if layout.sorts_rows else context.max_open_files),
            options=options,
        )
        return _publish(context, _files_of_tasks(folder), io)
    finally:
        remove_folder(folder)


def _files_of_tasks(folder: str) -> list[_Written]:
    found = [
        _Written(location=f"{folder}/{below}/{name}", folder=below, task=int(m[1]))
        for below, name in files_below(folder)
        if (m := _FILE.fullmatch(name))
    ]
    return sorted(found, key=lambda f: f.task)


def _publish(context: WriteContext, written: Sequence[_Written], io: FileIO) -> list[DataFile]:
    """Move files to where the table has its own, and describe them."""
    with ThreadPoolExecutor(_THREADS) as pool:
        files = list(pool.map(lambda f: _described(context, f), written))
        rows = [(w, f) for w, f in zip(written, files, strict=True) if f.record_count]
        folders = {w.folder: w for w, _ in rows} if context.spec.fields else {}
        tuples = pool.map(lambda w: written_partition(context, w.location), folders.values())
        partitions = dict(zip(folders, tuples, strict=True))
        named = _named(context, rows, partitions)
        try:
            return list(pool.map(_publish_one, (w for w, _ in rows), named))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            for f in named:
                # the failure that led here is the one to report; what stays is an orphan
                with contextlib.suppress(StorageError):
                    io.delete(f.file_path)
            raise


def _described(context: WriteContext, written: _Written) -> DataFile:
    """All that the file says of itself; its place, size and partition come later."""
    return DataFile(
        file_path=written.location,
        file_format=context.file_format,
        spec_id=context.spec.spec_id,
        partition=(),
        file_size_in_bytes=0,
        sort_order_id=context.sort_order_id,
        **written_metrics(context, written.location),
    )


def _named(
    context: WriteContext,
    files: Sequence[tuple[_Written, DataFile]],
    partitions: dict[str, PartitionTuple],
) -> list[DataFile]:
    """The files with the partitions and the names that they get in the table."""
    locations = location_provider(context.table_location, context.properties)
    schemas = (context.schema, *context.schemas)
    named = []
    for task, group in itertools.groupby(files, key=lambda f: f[0].task):
        for count, (written, file) in enumerate(group, 1):
            values = partitions.get(written.folder, ())
            path = None
            if not context.spec.is_unpartitioned:
                path = partition_path(context.spec, schemas, values)
            name = data_file_name(
                partition_id=task,
                task_id=task,
                operation_id=context.write_id,
                file_count=count,
                extension=context.file_format,
            )
            location = locations.new_data_location(name, path)
            named.append(replace(file, file_path=location, partition=values))
    return named


def _publish_one(written: _Written, file: DataFile) -> DataFile:
    return replace(file, file_size_in_bytes=publish_file(written.location, file.file_path))
