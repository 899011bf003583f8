"""Rewrites the rows of one group of files in the order of the rewrite, and reports its progress.

A group may be large, so its data files count as read one by one. They count as rewritten when the
whole group is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, runtime_checkable

import pyarrow as pa

from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.arrow.write.range_sort import RangeSort, SortMemory, Source, sorted_rows
from iceberg_pyspark.arrow.write.row_order import RowOrder
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.planning.scan_tasks import ScanContext, ScanTask
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.written_files import WrittenFiles
from iceberg_pyspark.table.maintenance.rewrites.file_groups import FileGroup
from iceberg_pyspark.table.maintenance.rewrites.rewrite_strategy import partition_first
from iceberg_pyspark.table.progress import Progress, StepQueue

_SMALL_GROUP = 32 * 1024 * 1024
_MAX_SAMPLED_FILES = 200


@runtime_checkable
class GroupRunner(Protocol):
    """A place where the groups of a rewrite are written: threads or Spark's executors."""

    @property
    def max_at_once(self) -> int:
        """The number of groups that are written at a time."""
        ...

    def write(
        self, writer: GroupWriter, group: FileGroup, steps: GroupSteps, io: FileIO
    ) -> list[DataFile]:
        """Write a group; see `GroupWriter.write`."""
        ...


@dataclass(frozen=True, kw_only=True)
class GroupWriter:
    """A reader and writer of groups; with `order` None, rows stay in the order of their files."""

    scan: ScanContext
    writes: WriteContext
    order: RowOrder | None = None
    memory: SortMemory = field(default_factory=SortMemory)

    @property
    def partition_type(self) -> StructType:
        """The type of the partition of new files."""
        writes = self.writes
        return partition_type(writes.spec, [writes.schema, *writes.schemas])

    def write(
        self, group: FileGroup, steps: GroupSteps, io: FileIO, threads: int
    ) -> list[DataFile]:
        """Write a group and return its new files; after an error, no new file is left.

        The number of `steps` distinguishes the names of its files from those of other groups.
        """
        context = self.context(group)
        order = self.order_of(group)
        if order is None:
            return self._write_parts(
                [partial(self._rows, tasks, io, steps) for tasks in group.parts()],
                *(context, io, steps, threads),
            )
        if group.output_file_count == 1 and group.size <= _SMALL_GROUP:
            source = partial(self._rows, group.tasks, io, steps)
            rows = partial(sorted_rows, source, order, self.memory)
            return self._write_parts([rows], context, io, steps, 1)
        count = group.output_file_count
        with RangeSort(
            order,
            sample=partial(self.sample, group, order, io),
            count=count * self.memory.ranges_per_file(group.size, count),
            memory=self.memory,
        ) as sort:
            sort.read([partial(self._rows, [t], io, steps) for t in group.tasks], threads)
            parts = sort.parts(count)
            return self._write_parts(parts, context, io, steps, threads)

    def context(self, group: FileGroup) -> WriteContext:
        """Return the context for writing the files of a group."""
        return replace(self.writes, target_file_size_in_bytes=group.output_file_size)

    def order_of(self, group: FileGroup) -> RowOrder | None:
        """Return the order of a group's rows; it begins with the partition if there are several."""
        if self.order is None or group.partition is not None:
            return self.order
        return partition_first(self.order, self.writes.spec)

    def _write_parts(
        self,
        parts: Sequence[Source],
        context: WriteContext,
        io: FileIO,
        steps: GroupSteps,
        threads: int,
    ) -> list[DataFile]:
        """Write consecutive parts, several at a time, and return their files in order."""

        def write(part: int) -> list[DataFile]:
            files = write_data_files(
                context, parts[part](), io, partition_id=steps.number, task_id=part
            )
            steps.add_written(len(files))
            return files

        with (
            WrittenFiles(io) as written_files,
            ThreadPoolExecutor(max(threads, 1), thread_name_prefix="rewrite-part") as pool,
        ):
            futures = [pool.submit(write, part) for part in range(len(parts))]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                for future in futures:
                    future.cancel()
                wait(futures)
                for future in futures:
                    if not future.cancelled() and future.exception() is None:
                        written_files.add(future.result())
            # Parts start in order, so a failed part comes before the cancelled parts.
            return [file for future in futures for file in future.result()]

    def _rows(
        self, tasks: Iterable[ScanTask], io: FileIO, steps: GroupSteps
    ) -> Iterator[pa.RecordBatch]:
        for task in tasks:
            yield from read_task(self.scan, task, io)
            steps.add_read(1)

    def sample(self, group: FileGroup, order: RowOrder, io: FileIO) -> Iterator[pa.RecordBatch]:
        """Yield the sort columns of some of the group's files; deleted rows do no harm.

        If these files have no rows, the other files follow: there is a sample of any rows.
        """
        names = self._columns_of(order.source_ids)
        projection = Schema(fields=tuple(f for f in self.scan.projection.fields if f.name in names))
        context = replace(self.scan, projection=projection)
        step = -(-len(group.tasks) // _MAX_SAMPLED_FILES)
        for first in range(step):
            has_rows = False
            for task in group.tasks[first::step]:
                for batch in read_task(context, replace(task, deletes=()), io):
                    has_rows = has_rows or batch.num_rows > 0
                    yield batch
            if has_rows:
                return

    def _columns_of(self, source_ids: Sequence[int]) -> set[str]:
        """Return the names of the top-level columns that contain the fields."""
        schema = self.writes.schema
        columns = set()
        for source_id in source_ids:
            top = source_id
            while (parent := schema.parent_by_id.get(top)) is not None:
                top = parent
            columns.add(schema.field_by_id[top].name)
        return columns


REWRITTEN = "data files rewritten"
READ = "data files read"
WRITING_PHASE = "new data files written"


@dataclass(frozen=True, slots=True)
class _Step:
    group_number: int
    read_count: int = 0
    written_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSteps:
    """The number of a group, from 0, among all groups of a rewrite; counts the group's steps.

    The methods are thread-safe, and do not wait for the receiver of the progress.
    """

    number: int
    group_count: int
    add: Callable[[_Step], None]

    def add_read(self, file_count: int) -> None:
        """Count data files of the group whose rows were read to the end."""
        self.add(_Step(self.number, read_count=file_count))

    def add_written(self, file_count: int) -> None:
        """Count new data files of the group."""
        self.add(_Step(self.number, written_count=file_count))


class RewriteProgress:
    """The progress of one rewrite; all methods are for the thread that runs the rewrite."""

    def __init__(self, progress: Progress, groups: Sequence[FileGroup]) -> None:
        self._progress = progress
        self._file_counts = [len(g.tasks) for g in groups]
        self._total = sum(self._file_counts)
        self._read_counts = [0] * len(groups)
        self._read_count = 0
        self._written_count = 0
        self._rewritten_count = 0
        self._steps = StepQueue[_Step]()
        progress(REWRITTEN, 0, self._total)

    def steps_of(self, group_number: int) -> GroupSteps:
        """Return the object that counts the steps of a group."""
        return GroupSteps(
            number=group_number, group_count=len(self._file_counts), add=self._steps.add
        )

    def report_while_writing(self, writing: Future[list[DataFile]]) -> None:
        """Report the steps of all groups until the writing of one group has ended."""
        for step in self._steps.wait_for(writing):
            self._add_read(step.group_number, step.read_count)
            if step.written_count:
                self._written_count += step.written_count
                self._progress(WRITING_PHASE, self._written_count, None)

    def end_group(self, group_number: int) -> None:
        """Report that the files of a group are rewritten, or skipped after an error."""
        self._add_read(group_number, self._file_counts[group_number])
        self._rewritten_count += self._file_counts[group_number]
        self._progress(REWRITTEN, self._rewritten_count, self._total)

    def end(self) -> None:
        """Report the number of new data files, unless there are none."""
        if self._written_count:
            self._progress(WRITING_PHASE, self._written_count, self._written_count)

    def _add_read(self, group_number: int, file_count: int) -> None:
        """Count files as read; a sort in little memory reads a file more than once."""
        before = self._read_counts[group_number]
        after = min(before + file_count, self._file_counts[group_number])
        if after > before:
            self._read_counts[group_number] = after
            self._read_count += after - before
            self._progress(READ, self._read_count, self._total)
