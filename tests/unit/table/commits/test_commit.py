"""The outcomes of commits if the catalog refuses, loses replies, or repeats requests."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.changes import SetProperties
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.changes.outcomes import Done, Outcome, Refused, Unknown
from iceberg_pyspark.changes.schema_changes import SchemaChanges
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    ConcurrentChangeError,
    InvalidRequestError,
    NoSuchSnapshotError,
    StorageError,
)
from iceberg_pyspark.table.commits.commit import MetadataStep, commit_steps
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.commit_snapshot import SnapshotStep
from iceberg_pyspark.table.commits.create_table import create_table
from tests.support.commit_tables import (
    IDENTIFIER,
    SCHEMA,
    CommitTable,
    commit_table,
    data_file,
)
from tests.support.file_commits import commit_append

pytestmark = pytest.mark.usefixtures("each_version")

Answer = Outcome[LoadedTable]
Commit = Callable[[], Answer]


def files_of_an_append(t: CommitTable) -> int:
    """Return the number of metadata files of an append: manifest and list, or one root manifest."""
    return 1 if t.metadata.format_version >= 4 else 2


def append(t: CommitTable, *names: str, write_id: str | None = None) -> LoadedTable:
    return commit_append(
        t.catalog,
        t.loaded,
        t.io,
        [data_file(name) for name in names],
        CommitOptions(write_id=write_id),
        clock=t.clock.clock,
    )


def refuse(commit: Commit) -> Answer:
    return Refused(CommitConflictError("refused"))


def applied_but_unknown(commit: Commit) -> Answer:
    answer = commit()
    if isinstance(answer, Done):
        return Unknown(CommitStateUnknownError("the reply was lost"))
    return answer


def applied_but_refused(commit: Commit) -> Answer:
    commit()
    return Refused(CommitConflictError("the repetition of the request was refused"))


def applied_but_raised(commit: Commit) -> Answer:
    answer = commit()
    if isinstance(answer, Done):
        raise RuntimeError("an error of the catalog's own, when all was done")
    return answer


def lost(commit: Commit) -> Answer:
    return Unknown(CommitStateUnknownError("the request was lost"))


@pytest.mark.parametrize("conflicts", [1, 2, 4])
@pytest.mark.with_lists("the files of an append are in the root itself")
def test_conflicts_are_retried_with_the_manifests_that_are_there(conflicts: int) -> None:
    """docs/conformance.md 7 and 96."""
    t = commit_table()
    append(t, "a")
    t.catalog.faults = [refuse] * conflicts
    append(t, "b")
    assert t.live() == ["mem://t/data/a", "mem://t/data/b"]
    assert len(t.metadata.snapshots) == 2
    assert t.metadata_files() == t.referenced()
    assert t.clock.sleeps == [100.0, 200.0, 400.0, 800.0][:conflicts]
    manifests = [f for f in t.metadata_files() if "-m" in f.rsplit("/", 1)[1]]
    assert len(manifests) == 2, "the second attempt wrote no manifest"


def test_retries_end_and_leave_nothing_behind() -> None:
    """docs/conformance.md 96."""
    t = commit_table(properties={"commit.retry.num-retries": "2"})
    append(t, "a")
    t.catalog.faults = [refuse] * 3
    with pytest.raises(CommitConflictError, match="gave up after 3 attempts"):
        append(t, "b")
    assert t.live() == ["mem://t/data/a"]
    assert t.metadata_files() == t.referenced()


def test_a_lost_reply_is_found_by_our_write_id() -> None:
    t = commit_table()
    t.catalog.faults = [applied_but_unknown]
    append(t, "a")
    assert t.live() == ["mem://t/data/a"]
    assert len(t.metadata.snapshots) == 1
    assert t.metadata_files() == t.referenced()


def test_a_lost_reply_is_found_below_another_commit() -> None:
    t = commit_table()

    def overtaken(commit: Commit) -> Answer:
        commit()
        append(t, "other")
        return Unknown(CommitStateUnknownError("the reply was lost"))

    t.catalog.faults = [overtaken]
    append(t, "a")
    assert t.live() == ["mem://t/data/a", "mem://t/data/other"]
    assert t.metadata_files() == t.referenced()


def test_a_lost_request_stays_unknown_and_deletes_nothing() -> None:
    t = commit_table()
    t.catalog.faults = [lost]
    with pytest.raises(CommitStateUnknownError, match="does not show the commit yet"):
        append(t, "a")
    assert len(t.clock.sleeps) == 3, "commit.status-check.num-retries"
    assert len(t.metadata_files()) == files_of_an_append(t), "the catalog may carry it out later"


def test_a_commit_carried_out_after_the_last_look_is_whole() -> None:
    t = commit_table()
    late: list[Commit] = []

    def later(commit: Commit) -> Answer:
        late.append(commit)
        return Unknown(CommitStateUnknownError("the gateway timed out"))

    t.catalog.faults = [later]
    with pytest.raises(CommitStateUnknownError):
        append(t, "a")
    late[0]()
    assert t.live() == ["mem://t/data/a"]


def test_the_refused_repetition_of_our_own_success_is_a_success() -> None:
    t = commit_table()
    t.catalog.faults = [applied_but_refused]
    append(t, "a")
    assert t.live() == ["mem://t/data/a"]
    assert len(t.metadata.snapshots) == 1
    assert t.metadata_files() == t.referenced()


def test_a_refusal_that_cannot_be_checked_is_unknown() -> None:
    t = commit_table()
    append(t, "a")

    def refuse_and_go_down(commit: Commit) -> Answer:
        t.catalog.is_down = True
        return Refused(CommitConflictError("refused"))

    t.catalog.faults = [refuse_and_go_down]
    with pytest.raises(CommitStateUnknownError, match="cannot be read"):
        append(t, "b")
    t.catalog.is_down = False
    assert t.referenced() < t.metadata_files()


def test_the_same_write_again_is_registered_once() -> None:
    t = commit_table()
    append(t, "a", write_id="w")
    append(t, "a", write_id="w")
    assert len(t.metadata.snapshots) == 1
    assert t.live() == ["mem://t/data/a"]


def test_another_error_of_the_catalog_removes_what_was_written() -> None:
    t = commit_table()

    def full(commit: Commit) -> Answer:
        return Refused(StorageError("no space left"))

    t.catalog.faults = [full]
    with pytest.raises(StorageError, match="no space left"):
        append(t, "a")
    assert t.metadata_files() == set()


@pytest.mark.parametrize(
    "error", [RuntimeError("a bug"), MemoryError(), StorageError("EIO"), CommitConflictError("?")]
)
def test_error_of_the_catalog_leaves_the_outcome_unknown(error: Exception) -> None:
    for applied in (True, False):
        t = commit_table()

        def fail(commit: Commit, applied: bool = applied) -> Answer:
            if applied:
                commit()
            raise error

        t.catalog.faults = [fail]
        if applied:
            append(t, "a")
            assert t.live() == ["mem://t/data/a"]
            continue
        with pytest.raises(CommitStateUnknownError, match="may have succeeded"):
            append(t, "a")
        assert len(t.metadata_files()) == files_of_an_append(t), (
            "the catalog may carry it out later"
        )


def test_interrupt_removes_no_file() -> None:
    t = commit_table()

    def interrupted(commit: Commit) -> Answer:
        commit()
        raise KeyboardInterrupt

    t.catalog.faults = [interrupted]
    with pytest.raises(KeyboardInterrupt):
        append(t, "a")
    assert t.live() == ["mem://t/data/a"]


def test_commit_to_a_recreated_table_is_refused() -> None:
    t = commit_table()
    before = t.loaded
    t.catalog.drop_table(IDENTIFIER)
    create_table(t.catalog, IDENTIFIER, NewTable(schema=SCHEMA, location="mem://t"))
    step = SnapshotStep(
        AppendFiles(data_files=(data_file("a"),)),
        t.io,
        table_uuid=before.metadata.table_uuid,
        clock=t.clock.clock,
    )
    with pytest.raises(ConcurrentChangeError, match="table-uuid"):
        commit_steps(t.catalog, t.loaded, [step], clock=t.clock.clock)
    assert t.metadata.snapshots == ()
    assert t.metadata_files() == set()


def test_a_missing_branch_is_named_and_a_tag_takes_no_commits() -> None:
    t = commit_table()
    append(t, "a")
    with pytest.raises(NoSuchSnapshotError, match="'audit'"):
        commit_append(t.catalog, t.loaded, t.io, [data_file("b")], CommitOptions(branch="audit"))


def test_commit_without_steps_writes_nothing() -> None:
    t = commit_table()
    before = t.loaded
    after = commit_steps(t.catalog, before, [], clock=t.clock.clock)
    assert after.metadata_location == before.metadata_location


def test_a_changed_schema_is_not_overruled_by_a_retry() -> None:
    """docs/conformance.md 95."""
    t = commit_table()
    before = t.loaded
    ours = SchemaChanges(before.metadata).add_column("x", "int")
    theirs = SchemaChanges(before.metadata).add_column("y", "string")
    commit_steps(t.catalog, before, [MetadataStep(theirs.changes)], clock=t.clock.clock)
    with pytest.raises(ConcurrentChangeError, match="current-schema-id"):
        commit_steps(t.catalog, before, [MetadataStep(ours.changes)], clock=t.clock.clock)
    assert [f.name for f in t.metadata.current_schema.fields] == ["id", "part", "y"]


FAULTS = {
    "refuse": refuse,
    "applied_but_unknown": applied_but_unknown,
    "applied_but_refused": applied_but_refused,
    "applied_but_raised": applied_but_raised,
}


@settings(max_examples=settings().max_examples * 60 // 100, deadline=None)
@given(
    version=st.sampled_from([1, 2, 3]),
    merge_at=st.sampled_from([0, 2, 100]),
    script=st.lists(
        st.tuples(st.integers(1, 3), st.lists(st.sampled_from(sorted(FAULTS)), max_size=2)),
        min_size=1,
        max_size=5,
    ),
    rivals=st.lists(st.booleans(), max_size=8),
)
def test_any_interleaving_leaves_a_valid_table_with_every_file_once(
    version: int,
    merge_at: int,
    script: list[tuple[int, list[str]]],
    rivals: list[bool],
) -> None:
    t = commit_table(
        format_version=version,
        properties={"commit.manifest.min-count-to-merge": str(merge_at)},
    )
    expected: list[str] = []
    rival = iter(rivals)
    inside = False

    def maybe_overtaken(
        fault: Callable[[Commit], Answer] | None,
    ) -> Callable[[Commit], Answer]:
        def commit_with_rival(commit: Commit) -> Answer:
            nonlocal inside
            if next(rival, False) and not inside:
                inside = True
                name = f"rival{len(expected)}"
                expected.append(name)
                append(t, name)
                inside = False
            return fault(commit) if fault is not None else commit()

        return commit_with_rival

    for number, (count, faults) in enumerate(script):
        names = [f"f{number}-{i}" for i in range(count)]
        expected.extend(names)
        queued = [maybe_overtaken(FAULTS[name]) for name in faults] + [maybe_overtaken(None)]
        # A rival commits through the same catalog and must not meet our faults.
        t.catalog.faults = [_once(t, queued)]
        append(t, *names)
        t.catalog.faults = []
    assert t.live() == sorted(f"mem://t/data/{name}" for name in expected)
    assert t.metadata_files() == t.referenced()
    sequence = [s.sequence_number for s in t.metadata.snapshots]
    if version > 1:
        assert sequence == list(range(1, len(sequence) + 1))
    if version == 3:
        ids = [e.data_file.first_row_id for e in t.entries()]
        assert None not in ids
        assert len(set(ids)) == len(ids)


def _once(t: CommitTable, queued: list[Callable[[Commit], Answer]]) -> Callable[[Commit], Answer]:
    """Return the queue's first fault; queue the rest for the next attempt of the same writer."""

    def run(commit: Commit) -> Answer:
        first, rest = queued[0], queued[1:]
        t.catalog.faults = []
        try:
            return first(commit)
        finally:
            if rest:
                t.catalog.faults = [_once(t, rest)]

    return run


WRONG = {
    "commit.retry.num-retries": "3x",
    "commit.status-check.num-retries": "3x",
    "commit.manifest.target-size-bytes": "big",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_property_no_commit_can_work_with_is_refused_before_anything_is_written(
    name: str,
) -> None:
    t = commit_table()
    append(t, "a")
    before = t.metadata_files()
    # as another writer may have left the property
    t.catalog.commit_table(IDENTIFIER, (), (SetProperties({name: WRONG[name]}),)).result()
    t.catalog.faults = [applied_but_unknown]
    with pytest.raises(InvalidRequestError, match=name):
        append(t, "b")
    assert t.metadata_files() == before
    table = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
    with pytest.raises(InvalidRequestError, match=name):
        table.append(pa.table({"id": pa.array([1], pa.int64())}))
    assert not list(t.io.list_files("mem://t/data"))
    t.catalog.faults = []
    table.update_properties().remove(name).commit()
    append(t, "b")
    assert t.live() == ["mem://t/data/a", "mem://t/data/b"]
