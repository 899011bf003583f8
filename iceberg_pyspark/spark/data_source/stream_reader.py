"""The portable stream: one process plans the batches of a query, other processes read the rows.

The planning process lives as long as the query, and keeps the table's metadata. Spark does not
store the offset at which a query begins, so the end of the first batch contains it: if that batch
runs again after a crash, it begins at the same place. Before Spark 4.2, a stream is not told where
a batch begins, and remembers where the last one ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from iceberg_pyspark.arrow.read.read_task import read_group
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.planning.scan_tasks import ScanContext, ScanTaskGroup
from iceberg_pyspark.spark.rows.batches import compile_to_spark
from iceberg_pyspark.spark.rows.worker_steps import worker_step
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.reading.stream_offsets import START, StreamOffset, read_offset

if TYPE_CHECKING:
    # Executors import this module to run `read` and plan no batches.
    from iceberg_pyspark.spark.data_source.open_stream import OpenStream
    from iceberg_pyspark.table.metadata_tables.changes_table import ChangeScanTask, ComparedChanges
    from iceberg_pyspark.table.reading.stream_rules import BatchLimits
    from iceberg_pyspark.table.reading.table_scan import TableScan

_BEGIN = "begin"
"""The key of the query's first offset in the end of its first batch."""


@dataclass(frozen=True)
class StreamPartition(InputPartition):
    """A Spark partition of a batch; `changed` replaces what the reader had when it was made."""

    group: ScanTaskGroup | ChangeScanTask | ComparedChanges
    changed: tuple[ScanContext, FileIO] | None


class IcebergStreamReader(DataSourceStreamReader):
    """A reader of the rows that a table gets, for releases of Spark that know no limits."""

    def __init__(self, stream: OpenStream, scan: TableScan) -> None:
        """`scan` has the columns to read, by the table as the query began with it."""
        self._stream: OpenStream | None = stream
        self._context = scan.context
        self._io = scan.io
        self._config = stream.loaded_table.config
        self._first: StreamOffset | None = None
        self._until: StreamOffset | None = None
        self._at: StreamOffset | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Executors need no metadata of the table, and no access to its catalog.
        return {**self.__dict__, "_stream": None, "_config": {}}

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before all others; the first batch says where it begins."""
        with worker_step():
            self._beginning()
        return offset_content(START)

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        """Return the end of the batch that begins where the last one has ended."""
        with worker_step():
            start = offset_content(START) if self._at is None else offset_content(self._at)
            end = self._end(start, self._open.options.limits)
            self._at = read_offset(json.dumps(end))
            return end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan the task groups of a batch."""
        with worker_step():
            first, last = self._offset(start, end), read_offset(json.dumps(end))
            if self._at is None:
                # a query that goes on from its checkpoint
                self._at = last
            if first == last:
                return []
            scan, groups = self._planned(first, last)
            changed = None
            if scan.context != self._context or self._open.loaded_table.config != self._config:
                changed = (scan.context, scan.io)
            return [StreamPartition(group, changed) for group in groups]

    def _planned(
        self, first: StreamOffset, last: StreamOffset
    ) -> tuple[TableScan, Sequence[ScanTaskGroup | ChangeScanTask | ComparedChanges]]:
        if not self._open.has_changes:
            scan = self._open.scan(first, last, lambda *_: self._context.projection)
            return scan, scan.plan_groups()
        scan, changes = self._open.changes(last, lambda *_: self._context.projection)
        return scan, changes.plan(first, last).change_tasks()

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition, on an executor."""
        if not isinstance(partition, StreamPartition):
            return
        with worker_step():
            context, io = partition.changed or (self._context, self._io)
            to_spark = compile_to_spark(context.projection)
            group = partition.group
            if isinstance(group, ScanTaskGroup):
                batches = read_group(context, group, io)
            else:
                # Executors that read appended rows need less.
                from iceberg_pyspark.table.change_feed.net_changes import (  # noqa: PLC0415
                    net_change_rows,
                )

                batches = net_change_rows(context).read(io, group, context.projection)
            for batch in batches:
                yield to_spark(batch)

    @property
    def _open(self) -> OpenStream:
        assert self._stream is not None, "batches are planned where the reader was made"
        return self._stream

    def _beginning(self) -> StreamOffset:
        """Return where a new query begins; it stays there until the query has read something."""
        if self._first is None:
            self._open.refresh()
            self._first = self._open.offsets().initial()
        return self._first

    def _offset(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> StreamOffset:
        offset = read_offset(json.dumps(start))
        if offset != START:
            return offset
        if _BEGIN in end:
            return read_offset(json.dumps(end[_BEGIN]))
        begin = self._open.options.rules.from_snapshot
        if begin in (None, "earliest"):
            return offset
        raise InvalidRequestError(
            f"table {self._context.table}: the first batch of the checkpoint does not say where it "
            f"begins, because Spark's own readers began it, and stream-from-snapshot={begin} may "
            "mean another snapshot by now; complete that batch where Iceberg is installed in the "
            "session, or start a new checkpoint"
        )

    def _end(self, start: dict[str, Any], limits: BatchLimits) -> dict[str, Any]:
        """Return the end of the batch that begins at an offset, or that offset."""
        offset = read_offset(json.dumps(start))
        is_first = offset == START
        if is_first:
            offset = self._beginning()
        self._open.refresh()
        end = self._open.offsets().next(offset, until=self._until, limits=limits)
        if end is None:
            return start
        return (
            {**offset_content(end), _BEGIN: offset_content(offset)}
            if is_first
            else offset_content(end)
        )


def offset_content(offset: StreamOffset) -> dict[str, Any]:
    """Return an offset as Spark takes it."""
    content: dict[str, Any] = json.loads(offset.json())
    return content
