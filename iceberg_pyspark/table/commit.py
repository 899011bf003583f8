"""The commit loop: refresh, ask every step for its changes, swap; again after a conflict.

A commit ends in one of three ways (design section 6). Done: it returns. Refused: nothing
happened, and what was written for it is removed. Unknown: the table is looked at for our own
snapshots; found is done, anything else stays unknown, and no file is touched.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.commits.apply import apply_updates
from iceberg_pyspark.commits.changes import Changes, combine_requirements
from iceberg_pyspark.commits.requirements import (
    AssertRefSnapshotId,
    TableRequirement,
    check_requirement,
)
from iceberg_pyspark.commits.retry import commit_retry_policy, status_check_policy
from iceberg_pyspark.commits.updates import TableUpdate
from iceberg_pyspark.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    ConcurrentChangeError,
    IcebergError,
    NoSuchTableError,
)
from iceberg_pyspark.spec.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Time and chance, so that tests need neither."""

    now_ms: Callable[[], int]
    sleep_ms: Callable[[float], None]
    random: Callable[[], float]


SYSTEM_CLOCK = Clock(
    now_ms=lambda: time.time_ns() // 1_000_000,
    sleep_ms=lambda ms: time.sleep(ms / 1000),
    random=random.random,
)


class CommitStep(Protocol):
    """One operation of a commit."""

    def changes(self, metadata: TableMetadata) -> Changes:
        """What it changes about this metadata; asked again after every conflict."""
        ...

    def is_in(self, metadata: TableMetadata) -> bool:
        """Whether the metadata proves that this very step was committed."""
        ...

    def attempt_failed(self) -> None:
        """The last attempt is proven not to be in the table."""
        ...

    def refused(self) -> None:
        """Nothing of it is in the table, nor will be: remove what was written."""
        ...

    def committed(self, metadata: TableMetadata) -> None:
        """It is in this metadata: remove what failed attempts have left."""
        ...


@dataclass(frozen=True, slots=True)
class MetadataStep:
    """A change of metadata alone: `build` says what it changes."""

    build: Callable[[TableMetadata], Changes]

    def changes(self, metadata: TableMetadata) -> Changes:
        """See `CommitStep`."""
        return self.build(metadata)

    def is_in(self, metadata: TableMetadata) -> bool:
        """Never: metadata does not say who changed it."""
        return False

    def attempt_failed(self) -> None:
        """Nothing was written."""

    def refused(self) -> None:
        """Nothing was written."""

    def committed(self, metadata: TableMetadata) -> None:
        """Nothing was written."""


def commit_steps(
    catalog: Catalog,
    table: LoadedTable,
    steps: Sequence[CommitStep],
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> LoadedTable:
    """Commit all steps at once and return the table as committed.

    Raises `CommitConflictError` when retries are used up, `ConcurrentChangeError` when another
    commit changed what a step is about, `CommitStateUnknownError`.
    """
    policy = commit_retry_policy(table.metadata.properties)
    started_ms = clock.now_ms()
    current = table
    pinned: list[TableRequirement] | None = None
    retry = 0
    while True:
        if any(step.is_in(current.metadata) for step in steps):
            return _done(current, steps)
        try:
            if pinned is not None:
                _check_pinned(pinned, current.metadata)
            updates, requirements = _collect(steps, current.metadata, clock)
            if pinned is None:
                pinned = [r for r in requirements if not isinstance(r, AssertRefSnapshotId)]
            if not updates:
                return current
            committed = catalog.commit_table(current.identifier, requirements, updates)
        except CommitStateUnknownError as e:
            return _done(_find_after_unknown(catalog, current, steps, e, clock), steps)
        except CommitConflictError as e:
            # a store that repeats requests can refuse the repetition of our own success: look first
            current = _reload_after_conflict(catalog, current, e)
            if any(step.is_in(current.metadata) for step in steps):
                return _done(current, steps)
            for step in steps:
                step.attempt_failed()
            retry += 1
            wait_ms = policy.wait_ms(
                retry, elapsed_ms=clock.now_ms() - started_ms, jitter=clock.random()
            )
            if wait_ms is None:
                _refused(steps)
                raise CommitConflictError(
                    f"table {current.identifier}: gave up after {retry} attempts, each overtaken "
                    f"by another commit; the last: {e}"
                ) from e
            clock.sleep_ms(wait_ms)
            current = _reload_after_conflict(catalog, current, e)
        except IcebergError as e:
            if e.safe_to_clean_up:
                _refused(steps)
            raise
        else:
            return _done(committed, steps)


def _reload_after_conflict(
    catalog: Catalog, table: LoadedTable, conflict: CommitConflictError
) -> LoadedTable:
    try:
        return catalog.load_table(table.identifier)
    except NoSuchTableError:
        raise
    except IcebergError as e:
        raise CommitStateUnknownError(
            f"table {table.identifier}: the commit was refused ({conflict}), but the table cannot "
            f"be read to make sure ({e}); look at its history, and delete no file"
        ) from e


def _collect(
    steps: Sequence[CommitStep], metadata: TableMetadata, clock: Clock
) -> tuple[list[TableUpdate], list[TableRequirement]]:
    """The changes of all steps, each asked about the metadata the ones before it leave."""
    found: list[Changes] = []
    for step in steps:
        changes = step.changes(metadata)
        found.append(changes)
        if len(found) < len(steps):
            metadata = apply_updates(
                metadata, changes.updates, now_ms=clock.now_ms(), previous_metadata_location=None
            )
    updates = [u for changes in found for u in changes.updates]
    return updates, combine_requirements(changes.requirements for changes in found)


def _check_pinned(pinned: Sequence[TableRequirement], metadata: TableMetadata) -> None:
    """What the first attempt was based on, references aside, must not have changed."""
    for requirement in pinned:
        try:
            check_requirement(requirement, metadata)
        except CommitConflictError as e:
            raise ConcurrentChangeError(
                f"{e} (another commit changed what this one builds on)"
            ) from e


def _find_after_unknown(
    catalog: Catalog,
    table: LoadedTable,
    steps: Sequence[CommitStep],
    error: CommitStateUnknownError,
    clock: Clock,
) -> LoadedTable:
    """The table with our steps in it, or the unknown outcome once more; deletes nothing."""
    policy = status_check_policy(table.metadata.properties)
    started_ms = clock.now_ms()
    check = 0
    while True:
        try:
            current = catalog.load_table(table.identifier)
            if any(step.is_in(current.metadata) for step in steps):
                return current
        except IcebergError as e:
            looked: IcebergError | None = e
        else:
            looked = None
        check += 1
        wait_ms = policy.wait_ms(
            check, elapsed_ms=clock.now_ms() - started_ms, jitter=clock.random()
        )
        if wait_ms is None:
            # absent now is no proof: the catalog may still carry it out
            found = "could not be read" if looked is not None else "does not show the commit yet"
            raise CommitStateUnknownError(
                f"table {table.identifier}: the commit may have succeeded ({error}); the table "
                f"{found}; look at its history before writing again, and delete no file"
            ) from error
        clock.sleep_ms(wait_ms)


def _done(table: LoadedTable, steps: Sequence[CommitStep]) -> LoadedTable:
    for step in steps:
        step.committed(table.metadata)
    return table


def _refused(steps: Sequence[CommitStep]) -> None:
    for step in steps:
        step.refused()
