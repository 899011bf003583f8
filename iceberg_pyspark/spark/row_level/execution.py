"""Runs a row-level operation: read one snapshot, run one job, commit.

If a concurrent commit conflicts with what was read, the whole operation runs again on the new
snapshot; `commit.retry.num-retries` limits the number of attempts. An operation whose source is
pinned to older snapshots is not repeated: the conflict is raised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier, newest_version
from iceberg_pyspark.errors import CommitConflictError, ConcurrentChangeError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.row_changes.row_commit import RowCommit
from iceberg_pyspark.spark.row_level.key_range import rows_that_sources_select
from iceberg_pyspark.spark.row_level.operation import Operation
from iceberg_pyspark.spark.row_level.row_level_job import run_job
from iceberg_pyspark.spark.row_level.target import (
    OtherStateError,
    RowLevelSession,
    Target,
    TargetRead,
    pin_table,
)
from iceberg_pyspark.spark.write.resolved_write import (
    ResolvedWrite,
    resolve_write,
    snapshot_of_transaction,
    write_settings,
)
from iceberg_pyspark.spark.write.write_options import SNAPSHOT_PROPERTY, TXN_APP_ID, TXN_VERSION
from iceberg_pyspark.spec import metadata_columns
from iceberg_pyspark.spec.table_properties import COMMIT_NUM_RETRIES
from iceberg_pyspark.table.commits.commit import CommitStep, MetadataStep
from iceberg_pyspark.table.commits.stream_epochs import StreamEpoch
from iceberg_pyspark.table.row_level.isolation import Mode, mode_of
from iceberg_pyspark.table.row_level.touched_rows import RowChanges, TouchedRows

_log = get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class RowLevelRequest:
    """The table of an operation, and the options of its write.

    If `branch` is None, the operation writes to main or to the branch of the session's
    `spark.wap.branch`.
    """

    session: RowLevelSession
    catalog: Catalog
    table: LoadedTable
    branch: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """The options of the write, such as those of `snapshot-property.`."""

    before: Sequence[CommitStep] = ()
    """Steps of the operation's commit that come first."""
    transaction: tuple[str, int] | None = None
    """The application and its version, which is committed once."""

    epoch: StreamEpoch | None = None
    """The change of a batch of a stream that the operation is, which is committed once."""

    statement_columns: Any = None
    """Spark's statement, whose column ids the table's rows get."""

    schema_id: int | None = None
    """The schema that the statement's columns belong to."""

    analysed_table: LoadedTable | None = None
    """The state that the statement also reads its own table in, for the first attempt; None: load
    the current state.
    """

    @property
    def identifier(self) -> TableIdentifier:
        """The identifier of the table."""
        return self.table.identifier

    def load(self) -> LoadedTable:
        """Return the table's current state; raise `TableRecreatedError` if it is another table."""
        return newest_version(self.catalog, self.table)

    def resolve(self, loaded_table: LoadedTable) -> ResolvedWrite:
        """Return the write of the operation to the loaded table."""
        environment = self.session.bridge.row_changes.environment()
        options = dict(self.options)
        if self.transaction is not None:
            app, version = self.transaction
            options |= {TXN_APP_ID: app, TXN_VERSION: str(version)}
        if self.epoch is not None:
            own = self.epoch.summary().items()
            options |= {f"{SNAPSHOT_PROPERTY}{name}": value for name, value in own}
        settings = write_settings(
            options, environment.session, loaded_table.metadata.properties, branch=self.branch
        )
        return resolve_write(
            str(self.identifier), self.catalog, loaded_table, settings, environment
        )


def run(request: RowLevelRequest, operation: Operation) -> tuple[LoadedTable, RowChanges]:
    """Run and commit an operation; return the table after the commit and the counts of changed
    rows.
    """
    tries = 0
    analysed_table = request.analysed_table
    while True:
        reads_itself = analysed_table is not None
        loaded_table = request.load() if analysed_table is None else analysed_table
        analysed_table = None
        _check_schema(request, loaded_table)
        write = request.resolve(loaded_table)
        if request.transaction is not None:
            done = snapshot_of_transaction(loaded_table.metadata, *request.transaction)
            if done is not None:
                return loaded_table, RowChanges(snapshot_id=done.snapshot_id)
        epoch, branch = request.epoch, write.settings.branch
        before = request.before
        if epoch is not None:
            if epoch.is_in(write.metadata, branch):
                return loaded_table, _no_changes(write)
            before = [MetadataStep(partial(epoch.check_absent, branch=branch)), *before]
        with pin_table(request.session, write, request.statement_columns) as target:
            target.reads.reads_itself = reads_itself
            try:
                return _Run(operation, target, before).carry_out()
            except CommitConflictError as e:
                now = request.load()
                if epoch is None or not epoch.is_in(now.metadata, branch):
                    raise
                _log.warning("%s", e)
                return now, _no_changes(request.resolve(now))
            except ConcurrentChangeError as e:
                tries += 1
                most = COMMIT_NUM_RETRIES.of(loaded_table.metadata.properties)
                if tries > most or not operation.may_run_again:
                    raise
                if isinstance(e, OtherStateError):
                    # It may be of rows that Spark has cached, and a newer state would not fit.
                    analysed_table = e.state
                _log.info("%s of %s runs again: %s", operation.name, target.name, e)


def _check_schema(request: RowLevelRequest, loaded_table: LoadedTable) -> None:
    if request.schema_id not in (None, loaded_table.metadata.current_schema_id):
        raise ConcurrentChangeError(
            f"the schema of table {request.identifier} was changed while Spark analysed the "
            "statement; run it again"
        )


def _no_changes(write: ResolvedWrite) -> RowChanges:
    """Return the counts of an operation that has changed nothing."""
    return RowChanges(snapshot_id=None if write.base is None else write.base.snapshot_id)


@dataclass(frozen=True)
class _Run:
    """One attempt at an operation."""

    operation: Operation
    target: Target
    before: Sequence[CommitStep] = ()

    def carry_out(self) -> tuple[LoadedTable, RowChanges]:
        """Determine the changes and commit them."""
        mode = mode_of(self.target.metadata, self.operation.name)
        selection = self.operation.selection(self.target)
        target = self.target.narrow(selection)
        if selection is not None and not selection.partial:
            return self._commit(target, TouchedRows())
        source = self.operation.source if mode == "copy-on-write" else None
        if source is not None and target.session.bridge.joins.needs_no_cache(source):
            # To find files, only the columns of keys are read.
            source = None
        with _cache(source):
            rewritten_paths: frozenset[str] | None = None
            if mode == "copy-on-write":
                touched_files = self.operation.touched_files(target)
                if touched_files is not None:
                    touched_files = target.pin(touched_files)
                    rewritten_paths = _files_of(touched_files)
            if (
                rewritten_paths is not None
                and not rewritten_paths
                and self.operation.source is None
            ):
                # Spark analyses the values, and refuses those that fit no column.
                self.operation.changes(target, target.rows(), mode)
                return self._commit(target, TouchedRows(), rewritten_paths)
            mode = mode if rewritten_paths is not None else "merge-on-read"
            target_read = target.read(rewritten_paths)
            rows = self._run_job(target, target_read.rows, mode)
            return self._commit(target, rows, rewritten_paths, target_read)

    def _run_job(self, target: Target, rows: DataFrame, mode: Mode) -> TouchedRows:
        operation = self.operation
        return run_job(
            target,
            target.pin(operation.changes(target, rows, mode)),
            operation=operation.name,
            mode=mode,
            writes_rows=operation.writes_rows(mode),
            needs_no_rebalance=partial(operation.needs_no_rebalance, target),
        )

    def _commit(
        self,
        target: Target,
        rows: TouchedRows,
        rewritten_paths: frozenset[str] | None = None,
        target_read: TargetRead | None = None,
    ) -> tuple[LoadedTable, RowChanges]:
        """Commit the rows; remove the `rewritten_paths` files and the whole files of the selection.

        `target_read` is the read whose rows the job changed, or None if there was no job.
        """
        return RowCommit(
            operation=self.operation.name,
            write=target.write,
            rows=rows,
            files=lambda paths: {} if target_read is None else target_read.files(paths),
            read_predicate=target.read_predicate,
            source_predicate=lambda: rows_that_sources_select(
                target, partial(self.operation.sources, target)
            ),
            requires_single_match=self.operation.requires_single_match,
            summary=self.operation.summary,
            rewritten_paths=rewritten_paths,
            whole={} if target.selection is None else target.selection.whole,
            before=self.before,
        ).commit()


@contextmanager
def _cache(source: DataFrame | None) -> Iterator[None]:
    """Cache a source that is read twice, to find files and to change rows: the rows must agree."""
    if source is None or source.is_cached:
        yield
        return
    source.persist()
    try:
        yield
    finally:
        source.unpersist()


def _files_of(rows: DataFrame) -> frozenset[str]:
    """Return the data files of a frame's rows."""
    return frozenset(f for (f,) in rows.select(metadata_columns.FILE.name).distinct().collect())
