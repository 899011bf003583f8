"""Which changes of another writer are conflicts of a commit, in every format version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from iceberg_pyspark.changes.conflicts import ConflictChecks, TouchedFile
from iceberg_pyspark.changes.ref_changes import set_current_snapshot
from iceberg_pyspark.changes.snapshot_changes import (
    RewriteFiles,
    RowDelta,
)
from iceberg_pyspark.errors import ConcurrentChangeError
from iceberg_pyspark.expressions.predicates import LiteralPredicate
from iceberg_pyspark.spec.manifests import (
    FileContent,
)
from iceberg_pyspark.table.commits.commit import MetadataStep, commit_steps
from tests.support.commit_tables import commit_table, data_file
from tests.support.snapshot_commits import (
    act,
    append,
    deletes_of,
    head,
    overwrite,
    position_deletes,
)

pytestmark = pytest.mark.usefixtures("each_version")


def test_a_rewrite_fails_when_rows_of_its_files_were_deleted_meanwhile() -> None:
    """docs/conformance.md 95."""
    t = commit_table()
    append(t, data_file("a"))
    read = t.loaded
    checks = ConflictChecks(
        base_snapshot_id=head(t),
        still_live=frozenset({"mem://t/data/a"}),
        no_new_deletes_for=(TouchedFile(file_path="mem://t/data/a", spec_id=0, partition=()),),
    )
    rewrite = RewriteFiles(
        removed_data_paths=frozenset({"mem://t/data/a"}),
        data_files=(data_file("c"),),
        checks=checks,
    )
    deletes = deletes_of("d", "a")
    act(t, RowDelta(delete_files=(deletes,), checks=ConflictChecks(base_snapshot_id=head(t))))
    before = t.metadata_files()
    with pytest.raises(ConcurrentChangeError, match="added deletes"):
        act(t, rewrite, read)
    assert t.metadata_files() == before


def test_equality_deletes_do_not_disturb_a_rewrite_that_keeps_sequence_numbers() -> None:
    t = commit_table()
    append(t, data_file("a"))
    read = t.loaded
    checks = ConflictChecks(
        base_snapshot_id=head(t),
        no_new_deletes_for=(TouchedFile(file_path="mem://t/data/a", spec_id=0, partition=()),),
        equality_deletes_still_apply=True,
    )
    deletes = replace(
        position_deletes("d"), content=FileContent.EQUALITY_DELETES, equality_ids=(1,)
    )
    act(t, RowDelta(delete_files=(deletes,), checks=ConflictChecks(base_snapshot_id=head(t))))
    rewrite = RewriteFiles(
        removed_data_paths=frozenset({"mem://t/data/a"}),
        data_files=(data_file("c"),),
        data_sequence_number=1,
        checks=checks,
    )
    act(t, rewrite, read)
    assert t.live() == ["mem://t/data/c", "mem://t/data/d"]
    strict = replace(rewrite, checks=replace(checks, equality_deletes_still_apply=False))
    with pytest.raises(ConcurrentChangeError, match="added deletes"):
        act(t, strict, read)


def test_a_row_delta_fails_when_its_data_file_is_gone() -> None:
    """docs/conformance.md 95."""
    t = commit_table()
    append(t, data_file("a"))
    read = t.loaded
    checks = ConflictChecks(base_snapshot_id=head(t), still_live=frozenset({"mem://t/data/a"}))
    overwrite(t, "static", data_file("b"))
    with pytest.raises(ConcurrentChangeError, match="removed mem://t/data/a"):
        act(t, RowDelta(delete_files=(deletes_of("d", "a"),), checks=checks), read)


@pytest.mark.parametrize(
    ("isolation", "refused"), [(None, False), ("snapshot", False), ("serializable", True)]
)
def test_isolation_decides_over_rows_added_meanwhile(isolation: Any, refused: bool) -> None:
    """docs/conformance.md 95."""
    t = commit_table(partitioned=True)
    append(t, data_file("a", "x"))
    read = t.loaded
    append(t, data_file("b", "x"))
    append(t, data_file("elsewhere", "y"))

    def dynamic() -> None:
        overwrite(t, "dynamic", data_file("c", "x"), since=read, isolation=isolation)

    if refused:
        with pytest.raises(ConcurrentChangeError, match="mem://t/data/b"):
            dynamic()
    else:
        dynamic()
        assert t.live() == ["mem://t/data/c", "mem://t/data/elsewhere"]


def test_rows_added_elsewhere_disturb_no_overwrite() -> None:
    t = commit_table(partitioned=True)
    append(t, data_file("a", "x"))
    read = t.loaded
    append(t, data_file("b", "y"))
    overwrite(
        t,
        LiteralPredicate("eq", "part", "x"),
        data_file("c", "x"),
        since=read,
        isolation="serializable",
    )
    assert t.live() == ["mem://t/data/b", "mem://t/data/c"]


def test_rows_removed_meanwhile_disturb_snapshot_isolation_too() -> None:
    t = commit_table(partitioned=True)
    append(t, data_file("a", "x"))
    read = t.loaded
    overwrite(t, "dynamic", data_file("b", "x"))
    with pytest.raises(ConcurrentChangeError, match="removed mem://t/data/a"):
        overwrite(t, "dynamic", data_file("c", "x"), since=read, isolation="snapshot")


def test_concurrent_compaction_does_not_break_isolation() -> None:
    t = commit_table(partitioned=True)
    append(t, data_file("a", "x"))
    read = t.loaded
    act(
        t,
        RewriteFiles(
            removed_data_paths=frozenset({"mem://t/data/a"}),
            data_files=(data_file("a2", "x"),),
            checks=ConflictChecks(base_snapshot_id=head(t)),
        ),
    )
    overwrite(t, "dynamic", data_file("c", "x"), since=read, isolation="serializable")
    assert t.live() == ["mem://t/data/c"]


def test_a_base_that_was_rolled_back_is_a_conflict() -> None:
    t = commit_table()
    append(t, data_file("a"))
    first = head(t)
    assert first is not None
    append(t, data_file("b"))
    read = t.loaded
    commit_steps(
        t.catalog,
        t.loaded,
        [MetadataStep(lambda m: set_current_snapshot(m, first))],
        clock=t.clock.clock,
    )
    with pytest.raises(ConcurrentChangeError, match="rolled back"):
        overwrite(t, "static", since=read, isolation="snapshot")
