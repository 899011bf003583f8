"""Rewrites data files on Spark's executors: the groups of a rewrite as Spark jobs.

For files whose rows keep their order, one task writes each new file. Sorted rows go through a
shuffle of Arrow data by new file; the driver determines the bounds of the files from a sample. Each
task of the second stage sorts the rows of one new file, in ranges that fit into memory.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import Accumulator, TaskContext
from pyspark.errors import PySparkException

from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.arrow.write.range_sort import (
    SHORT_TEXTS,
    SortMemory,
    Spill,
    parts_of_ranges,
    pieces_by_range,
    sample_of,
)
from iceberg_pyspark.arrow.write.row_order import Ranges, RowOrder
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spark.bridge.py4j_names import Py4JError
from iceberg_pyspark.spark.error_text import error_of_job
from iceberg_pyspark.spark.job_progress import described_jobs, task_count
from iceberg_pyspark.spark.rows.worker_steps import worker_step
from iceberg_pyspark.spark.write.file_job import paths_of_finished_tasks
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.maintenance.rewrites.file_groups import FileGroup
from iceberg_pyspark.table.maintenance.rewrites.group_writer import GroupSteps, GroupWriter

if TYPE_CHECKING:
    from pyspark import SparkContext

Piece: TypeAlias = tuple[int, bytes]
"""Some rows of one new file: the file's number, and an Arrow stream."""

_COMPRESSION = pa.ipc.IpcWriteOptions(compression="lz4")

# Spark keeps these properties per thread, and the groups are written in threads of their own.
_OF_THE_CALLER = (
    "spark.jobGroup.id",
    "spark.job.interruptOnCancel",
    "spark.job.tags",
    "spark.scheduler.pool",
)


@dataclass(frozen=True)
class FileRanges:
    """The new file of each row, and the ranges into which the task of a file divides its rows."""

    ranges: Ranges
    file_numbers: NDArray[np.intp]

    @staticmethod
    def of_group(
        group: FileGroup, order: RowOrder, sample: pa.RecordBatch, memory: SortMemory
    ) -> FileRanges:
        """Return the files and ranges of a group's rows, of which `sample` is a part."""
        files = group.output_file_count
        count = files * memory.ranges(group.size // files)
        ranges = order.ranges(sample, count, SHORT_TEXTS)
        # Each bound may be a range of its own, and there is at least one bound.
        rows = np.bincount(ranges.of(sample), minlength=2 * max(count, 2) - 1)
        numbers = parts_of_ranges(dict(enumerate(rows.tolist())), files)
        return FileRanges(ranges, np.array([*numbers.values()], np.intp))

    def of(self, batch: pa.RecordBatch) -> NDArray[np.intp]:
        """Return the number of the new file of each row."""
        return self.file_numbers[self.ranges.of(batch)]


def has_executors(context: SparkContext) -> bool:
    """Return whether Spark runs tasks in other processes than this process and its workers."""
    return not str(context.master).startswith("local[") and context.master != "local"


class Executors:
    """A `GroupRunner` of `rewrite_data_files` that runs on Spark's executors.

    The jobs have the job group, the tags and the scheduler pool of the thread that creates the
    runner; their descriptions name the table and the group of files.
    """

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._properties = {name: context.getLocalProperty(name) for name in _OF_THE_CALLER}

    @property
    def max_at_once(self) -> int:
        """The number of groups that run at a time, equal to the number of parallel tasks."""
        return self._context.defaultParallelism

    def write(
        self, writer: GroupWriter, group: FileGroup, steps: GroupSteps, io: FileIO
    ) -> list[DataFile]:
        """Write the new files of a group; remove the files of finished tasks if its job fails."""
        self._set_properties(self._properties)
        description = (
            f"iceberg-py rewrite_data_files {writer.writes.table}: group {steps.number + 1} of "
            f"{steps.group_count}, {len(group.tasks)} files, {group.size:,} bytes"
        )
        try:
            with (
                paths_of_finished_tasks(self._context, io) as paths,
                described_jobs(self._context, description),
                task_count(self._context, steps.add_read) as read_count,
                task_count(self._context, steps.add_written) as written_count,
            ):
                context = writer.context(group)
                tasks = _Tasks(writer, context, io, steps.number, paths, read_count, written_count)
                return self._collect(tasks, group)
        except (PySparkException, Py4JError) as e:
            raise error_of_job(e, f"rewrite_data_files of {writer.writes.table}") from e
        finally:
            self._set_properties(dict.fromkeys(self._properties))

    def _collect(self, tasks: _Tasks, group: FileGroup) -> list[DataFile]:
        writer = tasks.writer
        order = writer.order_of(group)
        sample = None if order is None else sample_of(writer.sample(group, order, tasks.io))
        if order is None or sample is None:
            parts = group.parts()
            job = self._context.parallelize(parts, len(parts)).mapPartitions(tasks.write_parts)
        else:
            order = order.fit(sample)
            files = FileRanges.of_group(group, order, sample, writer.memory)
            count = min(len(group.tasks), 4 * self.max_at_once)
            pieces = self._context.parallelize(group.tasks, count).mapPartitions(
                partial(tasks.split, files)
            )
            job = pieces.partitionBy(group.output_file_count, int).mapPartitions(
                partial(tasks.write_sorted, order, files.ranges)
            )
        return [file for files in job.collect() for file in pickle.loads(files)]

    def _set_properties(self, properties: Mapping[str, str | None]) -> None:
        for name, value in properties.items():
            self._context.setLocalProperty(name, value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Tasks:
    """The functions of the tasks that write one group."""

    writer: GroupWriter
    context: WriteContext
    io: FileIO
    group_number: int
    paths: Accumulator[list[str]]
    read_count: Accumulator[int]
    written_count: Accumulator[int]

    def write_parts(self, parts: Iterable[tuple[ScanTask, ...]]) -> Iterator[bytes]:
        """Write the rows of some files in the order of the files."""
        with worker_step():
            yield self._write(self._rows(task for part in parts for task in part))

    def split(self, files: FileRanges, tasks: Iterable[ScanTask]) -> Iterator[Piece]:
        """Yield the rows of some files by new file, in pieces as large as memory allows."""
        pending_batches: dict[int, list[pa.RecordBatch]] = {}
        size = 0
        with worker_step():
            for batch in self._rows(tasks):
                for number, rows in pieces_by_range(files, batch):
                    pending_batches.setdefault(number, []).append(rows)
                size += batch.nbytes
                if size > self.writer.memory.buffered:
                    yield from map(_serialize, pending_batches.items())
                    pending_batches, size = {}, 0
            yield from map(_serialize, pending_batches.items())

    def write_sorted(
        self, order: RowOrder, ranges: Ranges, pieces: Iterable[Piece]
    ) -> Iterator[bytes]:
        """Sort and write the rows of one new file."""
        with worker_step(), tempfile.TemporaryDirectory(prefix="iceberg-sort-") as folder:
            spill = Spill(Path(folder), self.writer.memory.buffered)
            try:
                for _, stream in pieces:
                    with pa.ipc.open_stream(stream) as reader:
                        for batch in reader:
                            spill.add(pieces_by_range(ranges, batch))
            finally:
                spill.close()
            rows = chain.from_iterable(
                spill.sorted(n, order, self.writer.memory) for n in sorted(spill.sizes())
            )
            yield self._write(rows)

    def _rows(self, tasks: Iterable[ScanTask]) -> Iterator[pa.RecordBatch]:
        for task in tasks:
            yield from read_task(self.writer.scan, task, self.io)
            self.read_count.add(1)

    def _write(self, rows: Iterable[pa.RecordBatch]) -> bytes:
        """Write the files of a task under names that are unique to the attempt; pickle them."""
        task = TaskContext.get()
        assert task is not None, "Spark runs this in a task"
        files = write_data_files(
            self.context,
            rows,
            self.io,
            partition_id=self.group_number,
            task_id=task.taskAttemptId(),
        )
        self.paths.add([f.file_path for f in files])
        self.written_count.add(len(files))
        return pickle.dumps(files)


def _serialize(piece: tuple[int, list[pa.RecordBatch]]) -> Piece:
    number, batches = piece
    rows = pa.Table.from_batches(batches).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_COMPRESSION) as stream:
        stream.write_table(rows)
    return number, sink.getvalue().to_pybytes()
