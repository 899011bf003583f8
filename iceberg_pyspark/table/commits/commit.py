"""The commit loop: refresh, collect the changes of every step, swap; repeat after a conflict.

A commit ends in one of three ways (`changes/outcomes.py`). Done: the function returns. Refused: the
table has not changed, and the files written for the commit are removed. Unknown: the loop searches
the table for its own snapshots; if they are found, the commit is done, otherwise it stays unknown
and no file is touched. The catalog returns the outcome of a swap as a value.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.changes.apply import apply_updates
from iceberg_pyspark.changes.changes import (
    AssertRefSnapshotId,
    AssignUUID,
    Changes,
    TableRequirement,
    TableUpdate,
    check_requirement,
    combine_requirements,
)
from iceberg_pyspark.changes.compatibility import check_may_change
from iceberg_pyspark.changes.id_reuse import with_known_ids
from iceberg_pyspark.changes.outcomes import (
    Done,
    NotCommitted,
    Outcome,
    Refused,
    Unknown,
    after_commit,
    caused_by,
    unknown,
)
from iceberg_pyspark.changes.retry import RetryPolicy, commit_retry_policy, status_check_policy
from iceberg_pyspark.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    ConcurrentChangeError,
    IcebergError,
    InvalidRequestError,
    NoSuchTableError,
)
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import check_commit_properties
from iceberg_pyspark.storage.files.syncs import finish_syncs, syncs_together
from iceberg_pyspark.table.commits.clock import SYSTEM_CLOCK, Clock
from iceberg_pyspark.table.commits.commit_turn import commit_turn
from iceberg_pyspark.table.commits.written_files import WrittenFiles

Start: TypeAlias = Literal["given", "newest", "own"]
"""The metadata that the first attempt of a commit builds on.

`given` is the table as it was loaded, `newest` the table as the catalog has it now. `own` is the
table as the same writer has just committed it, which needs no request to the catalog; if another
writer has committed meanwhile, the commit starts again with the newest table.
"""


class CommitStep(Protocol):
    """One operation of a commit; a step that writes no files inherits what follows an attempt."""

    def changes(self, metadata: TableMetadata) -> Changes:
        """Return the changes of this metadata; called again after every conflict."""
        ...

    def is_in(self, metadata: TableMetadata) -> bool:
        """Return whether the metadata proves that this very step was committed."""
        ...

    def after_failed_attempt(self, proof: Refused) -> None:
        """Remove the files that only the last attempt needs, which is not in the table."""
        return

    def after_refusal(self, proof: NotCommitted) -> None:
        """Remove all written files: the table does not refer to them and never will."""
        return

    def after_commit(self, metadata: TableMetadata) -> None:
        """Remove the files that failed attempts left; the step is part of this metadata."""
        return


@dataclass(frozen=True, slots=True)
class MetadataStep(CommitStep):
    """A step that changes only metadata; `build` returns the changes."""

    build: Callable[[TableMetadata], Changes]
    new_uuid: str = field(default_factory=lambda: str(uuid.uuid4()))

    def changes(self, metadata: TableMetadata) -> Changes:
        """See `CommitStep`; a version 1 table without a UUID gets one."""
        changes = self.build(metadata)
        if metadata.table_uuid is not None or not changes.updates:
            return changes
        return replace(changes, updates=(AssignUUID(self.new_uuid), *changes.updates))

    def is_in(self, metadata: TableMetadata) -> bool:
        """Return False: metadata does not tell which writer changed it."""
        return False


class LateSnapshotStep:
    """A `CommitStep` whose `changes` create another step if a snapshot is needed."""

    _snapshot_step: CommitStep | None = None

    def is_in(self, metadata: TableMetadata) -> bool:
        """See `CommitStep`."""
        return self._snapshot_step is not None and self._snapshot_step.is_in(metadata)

    def after_failed_attempt(self, proof: Refused) -> None:
        """See `CommitStep`."""
        if self._snapshot_step is not None:
            self._snapshot_step.after_failed_attempt(proof)

    def after_refusal(self, proof: NotCommitted) -> None:
        """See `CommitStep`."""
        if self._snapshot_step is not None:
            self._snapshot_step.after_refusal(proof)

    def after_commit(self, metadata: TableMetadata) -> None:
        """See `CommitStep`."""
        if self._snapshot_step is not None:
            self._snapshot_step.after_commit(metadata)


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

    Takes ownership of `written_files`. Raises `CommitConflictError` after the last retry,
    `ConcurrentChangeError` if another commit changed what a step is based on, and
    `CommitStateUnknownError`.
    """
    if written_files is not None:
        written_files.hand_over()
    # version 1 tables may have no UUID
    with commit_turn(table.metadata.table_uuid or table.metadata.location), syncs_together():
        outcome = _commit(catalog, table, steps, start, clock)
    match outcome:
        case Done(committed):
            _tidy_up(steps, committed)
        case Refused():
            for step in steps:
                step.after_refusal(outcome)
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
    kept_requirements: list[TableRequirement] | None = None
    retry = overtaken = 0
    while True:
        if any(step.is_in(current.metadata) for step in steps):
            return Done(current)
        try:
            # Check before a step writes anything; another commit may have upgraded the table
            # meanwhile.
            check_may_change(current.metadata)
            if kept_requirements is not None:
                _check_requirements_hold(kept_requirements, current.metadata)
            updates, requirements = _collect(steps, current.metadata, clock)
        except IcebergError as e:
            # all swaps so far were refused
            return Refused(e)
        if kept_requirements is None:
            kept_requirements = [r for r in requirements if not isinstance(r, AssertRefSnapshotId)]
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
    """Make one attempt on the table as this writer committed it.

    A refusal does not mean that the steps are impossible: the metadata may be outdated.
    """
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
    """Send a commit once; if its outcome is unknown, search the table for the commit."""
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
    catalog: Catalog, base: LoadedTable, steps: Sequence[CommitStep], refusal: Refused
) -> LoadedTable | Outcome[LoadedTable]:
    """Return the newest table for another attempt, or the outcome if no other attempt may follow.

    If the transport repeats a request, the repetition of our own success can be refused: so first
    check whether the table contains the steps.
    """
    newest = _reload_after_conflict(catalog, base, refusal)
    if not isinstance(newest, Done) or any(s.is_in(newest.value.metadata) for s in steps):
        return newest
    for step in steps:
        step.after_failed_attempt(refusal)
    return newest.value


def snapshot_to_build_on(
    metadata: TableMetadata, branch: str, *, creates_branch: bool = False
) -> Snapshot | None:
    """Return the snapshot that a commit to a branch builds on, or None if there is none yet.

    Raises `NoSuchSnapshotError` for a missing branch, unless the commit creates it, and
    `InvalidRequestError` for a tag.
    """
    ref = metadata.refs.get(branch)
    if ref is None and (branch == MAIN or creates_branch):
        # The new branch has main's rows, so its totals continue from main's; in Java they start at
        # 0.
        return metadata.current_snapshot
    snapshot = metadata.ref_snapshot(branch)
    if ref is not None and ref.type == "tag":
        raise InvalidRequestError(
            f"table {metadata.location}: '{branch}' is a tag; commits go to branches"
        )
    return snapshot


def builds_on(metadata: TableMetadata, before: TableMetadata, branch: str) -> bool:
    """Return whether the branch's newest snapshot is a child of its newest one in `before`."""
    newest, old = metadata.refs.get(branch), before.refs.get(branch)
    if newest is None or newest.snapshot_id not in metadata.snapshot_by_id:
        return False
    parent_id = metadata.snapshot_by_id[newest.snapshot_id].parent_snapshot_id
    return parent_id == (None if old is None else old.snapshot_id)


def _properties_to_commit_by(
    steps: Sequence[CommitStep], metadata: TableMetadata, clock: Clock
) -> Mapping[str, str]:
    """Return the table's properties after checking those that the commit will need.

    If the present properties are invalid, return the properties after the commit, which may repair
    them.
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
    """Ask the catalog for the swap; an exception of the catalog is an unknown outcome.

    Before the request, the files that the commit refers to are synced to disk.
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
    catalog: Catalog, table: LoadedTable, refusal: Refused
) -> Outcome[LoadedTable]:
    try:
        return Done(catalog.load_table(table.identifier))
    except NoSuchTableError as e:
        return Refused(e)
    except IcebergError as e:
        return unknown(
            f"table {table.identifier}: the commit was refused ({refusal.error}), but the table "
            "cannot be read to make sure",
            e,
        )


def _collect(
    steps: Sequence[CommitStep], metadata: TableMetadata, clock: Clock
) -> tuple[list[TableUpdate], list[TableRequirement]]:
    """Return the changes of all steps; each step gets the metadata that the earlier steps leave."""
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
    """Return the metadata as the changes would leave it, without committing them."""
    return apply_updates(
        metadata, changes.updates, now_ms=clock.now_ms(), previous_metadata_location=None
    )


def _check_requirements_hold(
    requirements: Sequence[TableRequirement], metadata: TableMetadata
) -> None:
    """Raise `ConcurrentChangeError` if a requirement of the first attempt no longer holds.

    References are not checked here.
    """
    for requirement in requirements:
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
    """Return the table if it contains our commit, or else an unknown outcome; delete nothing."""
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
            # The table without the commit proves nothing: the catalog may still carry it out.
            error = CommitStateUnknownError(
                f"table {identifier}: the commit may have succeeded ({outcome.error}); the table "
                f"{state}; check its history before writing again, and delete no file"
            )
            caused_by(error, outcome.error)
            return Unknown(error)
        clock.sleep_ms(wait_ms)


def _tidy_up(steps: Sequence[CommitStep], new_table: LoadedTable) -> None:
    """Let the steps remove the files of failed attempts; an error here does not undo the commit."""
    for step in steps:
        with after_commit(f"tidying up after a commit of {new_table.identifier}"):
            step.after_commit(new_table.metadata)
