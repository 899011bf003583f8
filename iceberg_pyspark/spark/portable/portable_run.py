"""Runs an operation by the format alone: pin the state, one write of changed rows, find its counts.

A conflict with another commit runs the operation again on the new state, at most
`commit.retry.num-retries` times. A source is cached, so that all of its reads agree.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType

from iceberg_pyspark.catalogs.catalog import LoadedTable, check_same_table
from iceberg_pyspark.changes.summary import WRITE_ID
from iceberg_pyspark.display import quoted
from iceberg_pyspark.errors import (
    CommitConflictError,
    ConcurrentChangeError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.portable.format_table import FormatTable
from iceberg_pyspark.spark.portable.portable_operations import PortableOperation
from iceberg_pyspark.spark.portable.portable_target import PortableTarget
from iceberg_pyspark.spark.portable.server_errors import servers_errors
from iceberg_pyspark.spark.portable.skipped_files import ConditionFilter
from iceberg_pyspark.spark.row_changes.change_request import ROW_CHANGES, ChangeRequest
from iceberg_pyspark.spark.row_changes.row_commit import counts_in
from iceberg_pyspark.spark.write.resolved_write import snapshot_of_transaction
from iceberg_pyspark.spec.metadata_columns import FILE as FILE_COLUMN
from iceberg_pyspark.spec.partitioning import PartitionField
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.table_properties import (
    COMMIT_NUM_RETRIES,
    ROW_LEVEL_DISTRIBUTION,
    WAP_ENABLED,
)
from iceberg_pyspark.spec.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from iceberg_pyspark.table.commits.stream_epochs import StreamEpoch
from iceberg_pyspark.table.row_level.isolation import Mode, mode_of
from iceberg_pyspark.table.row_level.touched_rows import RowChanges

_log = get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class PortableRequest:
    """The table of an operation, and the properties of the operation's snapshot."""

    table: FormatTable
    branch: str | None = None
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    transaction: tuple[str, int] | None = None
    epoch: StreamEpoch | None = None
    """The change of a batch of a stream that the operation is, which is committed once."""


def run_portably(
    request: PortableRequest,
    operation: PortableOperation,
    filter_of: Callable[[PortableTarget], ConditionFilter],
    loaded: LoadedTable,
) -> tuple[LoadedTable, RowChanges]:
    """Run and commit an operation; return the table after it, and the counts of changed rows.

    `filter_of` returns a predicate that all rows which matter to the operation fulfil. `loaded` is
    the table as it was loaded before: another one of its name is refused.
    """
    tries = 0
    while True:
        now = check_same_table(loaded, request.table.load())
        target = PortableTarget(table=request.table, loaded=now, branch=request.branch or MAIN)
        target.check()
        _check_no_audit(request.table.spark, now)
        if request.transaction is not None:
            done = snapshot_of_transaction(now.metadata, *request.transaction)
            if done is not None:
                return now, RowChanges(snapshot_id=done.snapshot_id)
        if request.epoch is not None and request.epoch.is_in(now.metadata, target.branch):
            return target.loaded, target.no_changes()
        try:
            return _Attempt(request, operation, target).carry_out(filter_of)
        except CommitConflictError as e:
            target = replace(target, loaded=request.table.load())
            if request.epoch is None or not request.epoch.is_in(target.metadata, target.branch):
                raise
            _log.warning("%s", e)
            return target.loaded, target.no_changes()
        except ConcurrentChangeError as e:
            tries += 1
            if tries > COMMIT_NUM_RETRIES.of(now.metadata.properties):
                raise
            _log.info("%s of %s runs again: %s", operation.name, target.name, e)


def _check_no_audit(spark: SparkSession, loaded: LoadedTable) -> None:
    """Raise `UnsupportedFeatureError` if the session writes to a branch or stages snapshots."""
    if not WAP_ENABLED.of(loaded.metadata.properties):
        return
    for name in ("spark.wap.id", "spark.wap.branch"):
        if spark.conf.get(name, None) is not None:
            raise UnsupportedFeatureError(
                f"table {loaded.identifier}: {name} is set, but the format iceberg-py does not see "
                "settings of sessions; unset it, and name a branch by the argument branch"
            )


@dataclass(frozen=True)
class _Attempt:
    request: PortableRequest
    operation: PortableOperation
    target: PortableTarget

    def carry_out(
        self, filter_of: Callable[[PortableTarget], ConditionFilter]
    ) -> tuple[LoadedTable, RowChanges]:
        operation, target = self.operation, self.target
        selected = filter_of(target)
        # Metadata show which files such a DELETE deletes as a whole.
        whole = selected.is_exact and operation.name == "delete"
        predicate = target.filter(selected.predicate)
        reads = None if operation.by_source_ops() else predicate
        mode: Mode = mode_of(target.metadata, operation.name)
        if mode == "copy-on-write" and operation.reads_once:
            if target.metadata.format_version < 2:
                raise UnsupportedFeatureError(
                    f"table {target.name}: a merge into a table of format version 1 reads its "
                    "source twice, and this session cannot cache it; upgrade the table, or write "
                    "the source to a table first"
                )
            mode = "merge-on-read"
        rewritten: tuple[str, ...] | None = None
        if mode == "copy-on-write":
            columns = operation.columns_of_conditions(target)
            rows = target.rows(reads, columns=columns, without_whole_files=whole)
            touched = operation.touched_rows(target, rows)
            if touched is None:
                mode = "merge-on-read"
            else:
                with servers_errors():
                    files = touched.select(quoted(FILE_COLUMN.name)).distinct().collect()
                rewritten = tuple(sorted(r[0] for r in files))
                rows = target.rows(data_files=rewritten)
                if whole and not rewritten:
                    rewritten, mode = None, "merge-on-read"
        if mode == "merge-on-read":
            columns = operation.columns_of_changes(target)
            rows = target.rows(reads, columns=columns, without_whole_files=whole)
        with servers_errors():
            frame = operation.changes(target, rows, mode)
        # values that no column takes have been refused, though no row would get them
        if rewritten == () and operation.name != "merge":
            return target.loaded, target.no_changes()
        if operation.writes_rows(mode):
            frame = self._distributed(frame)
        return self._write(frame, reads, rewritten, whole)

    def _write(
        self, frame: DataFrame, reads: object, rewritten: tuple[str, ...] | None, whole: bool
    ) -> tuple[LoadedTable, RowChanges]:
        operation, target, epoch = self.operation, self.target, self.request.epoch
        change = ChangeRequest(
            operation=operation.name,
            metadata_location=target.loaded.metadata_location,
            write_id=str(uuid.uuid4()),
            filter=reads,
            rewritten_files=rewritten,
            requires_single_match=operation.requires_single_match,
            transaction=self.request.transaction,
            matched=tuple(map(int, operation.matched_ops())),
            not_matched_by_source=tuple(map(int, operation.by_source_ops())),
            epoch=None if epoch is None else astuple(epoch),
            deletes_whole_files=whole,
        )
        properties = self.request.snapshot_properties.items()
        options = {
            ROW_CHANGES: change.text(),
            **{f"snapshot-property.{name}": value for name, value in properties},
        }
        if self.request.branch is not None:
            options["branch"] = self.request.branch
        target.table.write(frame, options)
        now = check_same_table(target.loaded, target.table.load())
        if self.request.transaction is not None:
            snapshot = snapshot_of_transaction(now.metadata, *self.request.transaction)
        else:
            snapshot = next(
                (
                    s
                    for s in reversed(now.metadata.snapshots)
                    if s.has_value(WRITE_ID, change.write_id)
                ),
                None,
            )
        if snapshot is None:
            return now, target.no_changes()
        return now, counts_in(snapshot)

    def _distributed(self, frame: DataFrame) -> DataFrame:
        """Return the rows with those of a partition together, as far as Spark has a function."""
        target = self.target
        metadata = target.metadata
        if ROW_LEVEL_DISTRIBUTION[self.operation.name].of(metadata.properties) == "none":
            return frame
        keys = [key for f in metadata.default_spec.fields if (key := _key(target, f)) is not None]
        # The hint takes names alone.
        names = [f"__ice_key{i}" for i in range(len(keys))]
        for name, key in zip(names, keys, strict=True):
            frame = frame.withColumn(name, key)
        return frame.hint("rebalance", *map(sql.col, names)).drop(*names)


def _key(target: PortableTarget, f: PartitionField) -> Column | None:
    """Return what rows of a partition have in common, or None if Spark has no function for it."""
    name = target.schema.name_by_id.get(f.source_id)
    if name not in target.columns.names:
        return None
    column = sql.col(quoted(name))
    is_text = isinstance(target.columns[name].dataType, StringType)
    match f.transform:
        case IdentityTransform():
            return column
        case TruncateTransform(width=width) if is_text:
            return sql.substring(column, 1, width)
        case YearTransform():
            return sql.date_trunc("year", column)
        case MonthTransform():
            return sql.date_trunc("month", column)
        case DayTransform():
            return sql.date_trunc("day", column)
        case HourTransform():
            return sql.date_trunc("hour", column)
    return None


@contextmanager
def cached(source: DataFrame) -> Iterator[bool]:
    """Cache a source for the block; yield whether that is possible in this session."""
    level = source.storageLevel
    if level.useMemory or level.useDisk or level.useOffHeap:
        # It is the user's, who may need it later.
        yield True
        return
    try:
        source.persist()
    except PySparkException as e:
        _log.info("the source of a merge is not cached: %s", e)
        yield False
        return
    try:
        yield True
    finally:
        source.unpersist()
