"""The commit loop: refresh, ask every step for its changes, swap; again after a conflict.

A commit ends in one of three ways (`commits/outcomes.py`). Done: it returns. Refused: nothing
happened, and what was written for it is removed. Unknown: the table is looked at for our own
snapshots; found is done, anything else stays unknown, and no file is touched. Which of the three a
swap was, its catalog says by a value (`commits/outcomes.py`).
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.commits.apply import apply_updates
from iceberg_pyspark.commits.changes import Changes, combine_requirements
from iceberg_pyspark.commits.compatibility import check_may_change
from iceberg_pyspark.commits.known_parts import with_known_ids
from iceberg_pyspark.commits.outcomes import (
    Done,
    NotCommitted,
    Outcome,
    Refused,
    Unknown,
    after_commit,
    caused_by,
    unknown,
)
from iceberg_pyspark.commits.requirements import (
    AssertRefSnapshotId,
    TableRequirement,
    check_requirement,
)
from iceberg_pyspark.commits.retry import RetryPolicy, commit_retry_policy, status_check_policy
from iceberg_pyspark.commits.updates import AssignUUID, TableUpdate
from iceberg_pyspark.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    ConcurrentChangeError,
    IcebergError,
    InvalidRequestError,
    NoSuchTableError,
)
from iceberg_pyspark.spec.properties import check_commit_properties
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.syncs import finish_syncs, syncs_together
from iceberg_pyspark.table.changes.commit_turn import commit_turn
from iceberg_pyspark.table.changes.written_files import WrittenFiles


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


Start: TypeAlias = Literal["given", "newest", "own"]
"""What the first attempt of a commit builds on: the table as it was loaded, or as it is now. `own`:
as the same writer left it a moment ago, which needs no look at the catalog; where somebody came
between all the same, the commit begins once more with the newest.
"""


class CommitStep(Protocol):
    """One operation of a commit."""

    def changes(self, metadata: TableMetadata) -> Changes:
        """What it changes about this metadata; asked again after every conflict."""
        ...

    def is_in(self, metadata: TableMetadata) -> bool:
        """Whether the metadata proves that this very step was committed."""
        ...

    def attempt_failed(self, proof: Refused) -> None:
        """The last attempt is not in the table: remove what only it had use for."""
        ...

    def refused(self, proof: NotCommitted) -> None:
        """Nothing of it is in the table, nor will be: remove what was written."""
        ...

    def committed(self, metadata: TableMetadata) -> None:
        """The step is in this metadata: remove what failed attempts have left."""
        ...


@dataclass(frozen=True, slots=True)
class MetadataStep:
    """A change of metadata alone: `build` says what it changes."""

    build: Callable[[TableMetadata], Changes]
    new_uuid: str = field(default_factory=lambda: str(uuid.uuid4()))

    def changes(self, metadata: TableMetadata) -> Changes:
        """See `CommitStep`; a table of version 1 that has no UUID is given one."""
        changes = self.build(metadata)
        if metadata.table_uuid is not None or not changes.updates:
            return changes
        return replace(changes, updates=(AssignUUID(self.new_uuid), *changes.updates))

    def is_in(self, metadata: TableMetadata) -> bool:
        """Never: metadata does not say who changed it."""
        return False

    def attempt_failed(self, proof: Refused) -> None:
        """Nothing was written."""

    def refused(self, proof: NotCommitted) -> None:
        """Nothing was written."""

    def committed(self, metadata: TableMetadata) -> None:
        """Nothing was written."""


def commit_steps(
    catalog: Catalog,
    table: LoadedTable,
    steps: Sequence[CommitStep],
    *,
    written_files: WrittenFiles | None = None,
    start: Start = "given",
    clock: Clock = SYSTEM_CLOCK,
) -> LoadedTable:
    """Commit all steps at once and return the table as committed.

    Takes over `written_files`. Raises `CommitConflictError` when retries are used up,
    `ConcurrentChangeError` when another commit changed what a step is about,
    `CommitStateUnknownError`.
    """
    if written_files is not None:
        written_files.hand_over()
    # version 1 may have no uuid
    with commit_turn(table.metadata.table_uuid or table.metadata.location), syncs_together():
        outcome = _commit(catalog, table, steps, start, clock)
    match outcome:
        case Done(committed):
            _tidy_up(steps, committed)
        case Refused():
            for step in steps:
                step.refused(outcome)
            if written_files is not None:
                written_files.remove(outcome)
        case Unknown():
            pass
    return outcome.result()


def _commit(
    catalog: Catalog,
    table: LoadedTable,
    steps: Sequence[CommitStep],
    start: Start,
    clock: Clock,
) -> Outcome[LoadedTable]:
    if start == "own":
        outcome = _commit_on_own(catalog, table, steps, clock)
        if not isinstance(outcome, Refused):
            return outcome
        newest = _table_after_refusal(catalog, table, steps, outcome)
        if not isinstance(newest, LoadedTable):
            return newest
        table = newest
    try:
        current = catalog.load_table(table.identifier) if start == "newest" else table
        properties = _properties_to_commit_by(steps, current.metadata, clock)
        policy = commit_retry_policy(properties)
    except IcebergError as e:
        return Refused(e)
    started_ms = clock.now_ms()
    pinned: list[TableRequirement] | None = None
    retry = overtaken = 0
    while True:
        if any(step.is_in(current.metadata) for step in steps):
            return Done(current)
        try:
            # before a step writes anything, and again after an upgrade meanwhile
            check_may_change(current.metadata)
            if pinned is not None:
                _check_pinned(pinned, current.metadata)
            updates, requirements = _collect(steps, current.metadata, clock)
        except IcebergError as e:
            # every swap so far was refused
            return Refused(e)
        if pinned is None:
            pinned = [r for r in requirements if not isinstance(r, AssertRefSnapshotId)]
        if not updates:
            return Done(current)
        outcome = _attempt(catalog, current, steps, requirements, updates, properties, clock)
        if not isinstance(outcome, Refused) or not isinstance(outcome.error, CommitConflictError):
            return outcome
        newest = _table_after_refusal(catalog, current, steps, outcome)
        if not isinstance(newest, LoadedTable):
            return newest
        retry += 1
        overtaken += newest.metadata_location != current.metadata_location
        wait_ms = policy.wait_ms(
            retry,
            overtaken=overtaken,
            elapsed_ms=clock.now_ms() - started_ms,
            jitter=clock.random(),
        )
        if wait_ms is None:
            error = CommitConflictError(
                f"table {current.identifier}: gave up after {retry} attempts, because other "
                f"commits came first each time; the last: {outcome.error}"
            )
            return Refused(caused_by(error, outcome.error))
        clock.sleep_ms(wait_ms)
        newer = _reload_after_conflict(catalog, current, outcome)
        if not isinstance(newer, Done):
            return newer
        current = newer.value


def _commit_on_own(
    catalog: Catalog, table: LoadedTable, steps: Sequence[CommitStep], clock: Clock
) -> Outcome[LoadedTable]:
    """One attempt on the table as this writer left it; refused, it says nothing of the steps."""
    try:
        properties = _properties_to_commit_by(steps, table.metadata, clock)
        check_may_change(table.metadata)
        updates, requirements = _collect(steps, table.metadata, clock)
    except IcebergError as e:
        return Refused(e)
    return _attempt(catalog, table, steps, requirements, updates, properties, clock)


def _attempt(
    catalog: Catalog,
    base: LoadedTable,
    steps: Sequence[CommitStep],
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
    properties: Mapping[str, str],
    clock: Clock,
) -> Outcome[LoadedTable]:
    """Send a commit once, and look for it where the catalog does not know what became of it."""
    outcome = send_commit(catalog, base.identifier, requirements, updates, base)
    if not isinstance(outcome, Unknown):
        return outcome
    return find_after_unknown(
        catalog,
        base.identifier,
        outcome,
        lambda metadata: any(step.is_in(metadata) for step in steps),
        status_check_policy(properties),
        clock,
    )


def _table_after_refusal(
    catalog: Catalog, base: LoadedTable, steps: Sequence[CommitStep], refused: Refused
) -> LoadedTable | Outcome[LoadedTable]:
    """The newest table, to try again with, or the outcome where no other attempt may follow.

    A store that repeats requests can refuse the repetition of our own success: look first.
    """
    newest = _reload_after_conflict(catalog, base, refused)
    if not isinstance(newest, Done) or any(s.is_in(newest.value.metadata) for s in steps):
        return newest
    for step in steps:
        step.attempt_failed(refused)
    return newest.value


def builds_on(metadata: TableMetadata, before: TableMetadata, branch: str) -> bool:
    """Whether the newest snapshot of a branch follows the one that was its newest before."""
    newest, old = metadata.refs.get(branch), before.refs.get(branch)
    if newest is None or newest.snapshot_id not in metadata.snapshot_by_id:
        return False
    parent_id = metadata.snapshot_by_id[newest.snapshot_id].parent_snapshot_id
    return parent_id == (None if old is None else old.snapshot_id)


def _properties_to_commit_by(
    steps: Sequence[CommitStep], metadata: TableMetadata, clock: Clock
) -> Mapping[str, str]:
    """The table's properties, each that the commit will need proven readable.

    Those that the commit leaves, where the present ones are not: it may be the one to mend them.
    """
    try:
        check_commit_properties(metadata.properties)
    except InvalidRequestError:
        for step in steps:
            if isinstance(step, MetadataStep):
                metadata = with_changes(metadata, step.changes(metadata), clock)
        check_commit_properties(metadata.properties)
    return metadata.properties


def send_commit(
    catalog: Catalog,
    identifier: TableIdentifier,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
    base: LoadedTable | None = None,
) -> Outcome[LoadedTable]:
    """Ask the catalog for the swap; an error that it raises instead of answering says nothing.

    The files that the commit names are on disk before.
    """
    try:
        finish_syncs()
    except IcebergError as e:
        return Refused(e)
    try:
        return catalog.commit_table(identifier, requirements, updates, base=base)
    except Exception as e:  # noqa: BLE001 - from here on the table may have moved, whatever it is
        return unknown(f"table {identifier}", e)


def _reload_after_conflict(
    catalog: Catalog, table: LoadedTable, refused: Refused
) -> Outcome[LoadedTable]:
    try:
        return Done(catalog.load_table(table.identifier))
    except NoSuchTableError as e:
        return Refused(e)
    except IcebergError as e:
        return unknown(
            f"table {table.identifier}: the commit was refused ({refused.error}), but the table "
            "cannot be read to make sure",
            e,
        )


def _collect(
    steps: Sequence[CommitStep], metadata: TableMetadata, clock: Clock
) -> tuple[list[TableUpdate], list[TableRequirement]]:
    """The changes of all steps, each asked about the metadata the ones before it leave."""
    base, all_changes = metadata, list[Changes]()
    for step in steps:
        changes = step.changes(metadata)
        all_changes.append(changes)
        if len(all_changes) < len(steps):
            metadata = with_changes(metadata, changes, clock)
    updates = [u for changes in all_changes for u in changes.updates]
    return with_known_ids(base, updates), combine_requirements(all_changes)


def with_changes(
    metadata: TableMetadata, changes: Changes, clock: Clock = SYSTEM_CLOCK
) -> TableMetadata:
    """The metadata as changes would leave it, committed by no one."""
    return apply_updates(
        metadata, changes.updates, now_ms=clock.now_ms(), previous_metadata_location=None
    )


def _check_pinned(pinned: Sequence[TableRequirement], metadata: TableMetadata) -> None:
    """What the first attempt was based on, references aside, must not have changed."""
    for requirement in pinned:
        try:
            check_requirement(requirement, metadata)
        except CommitConflictError as e:
            raise ConcurrentChangeError(
                f"{e} (another commit changed what this commit is based on)"
            ) from e


def find_after_unknown(
    catalog: Catalog,
    identifier: TableIdentifier,
    outcome: Unknown,
    is_in: Callable[[TableMetadata], bool],
    policy: RetryPolicy,
    clock: Clock,
) -> Outcome[LoadedTable]:
    """The table with our commit in it, or the unknown outcome once more; deletes nothing."""
    started_ms = clock.now_ms()
    check = 0
    while True:
        try:
            current = catalog.load_table(identifier)
            if is_in(current.metadata):
                return Done(current)
            state = "does not show the commit yet"
        except NoSuchTableError:
            state = "is not there"
        except Exception as e:  # noqa: BLE001 - whatever keeps us from looking
            state = f"could not be read ({e})"
        check += 1
        wait_ms = policy.wait_ms(
            check, elapsed_ms=clock.now_ms() - started_ms, jitter=clock.random()
        )
        if wait_ms is None:
            # absent now is no proof: the catalog may still carry it out
            error = CommitStateUnknownError(
                f"table {identifier}: the commit may have succeeded ({outcome.error}); the table "
                f"{state}; check its history before writing again, and delete no file"
            )
            caused_by(error, outcome.error)
            return Unknown(error)
        clock.sleep_ms(wait_ms)


def _tidy_up(steps: Sequence[CommitStep], committed: LoadedTable) -> None:
    """Have the steps remove what failed attempts left; the commit is done whatever happens here."""
    for step in steps:
        with after_commit(f"tidying up after a commit of {committed.identifier}"):
            step.committed(committed.metadata)
