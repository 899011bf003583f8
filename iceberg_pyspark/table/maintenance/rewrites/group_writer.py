"""Rewrites the rows of one group of files in the order of the rewrite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
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
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.written_files import WrittenFiles
from iceberg_pyspark.table.maintenance.rewrites.file_groups import FileGroup
from iceberg_pyspark.table.maintenance.rewrites.group_progress import GroupSteps
from iceberg_pyspark.table.maintenance.rewrites.rewrite_strategy import partition_first

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
