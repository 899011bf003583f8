"""Options of rewrite_data_files: what each one changes in the files and in the commits."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.errors import ConcurrentChangeError
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.maintenance.rewrites.file_groups import FileGroup
from iceberg_pyspark.table.maintenance.rewrites.group_writer import GroupSteps, GroupWriter
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from tests.support.deleted_rows import delete_positions
from tests.support.frames import append_rows, create_path_table, data_files, path_table
from tests.unit.table.maintenance.test_rewrite_data_files import (
    a_table,
    delete_ids,
    files,
    racing,
    rows,
)

AUDIT = SnapshotSelector(branch="audit")
PARTITIONS = 4
FILES = 3


def partitioned(folder: Path, version: int = 3) -> Table:
    """Create four partitions with three files of two rows each; p is half of the id modulo 8."""
    table = create_path_table(
        folder,
        "id BIGINT, p INT",
        partitioned_by=["p"],
        properties={"format-version": str(version)},
    )
    for number in range(FILES):
        ids = range(8 * number, 8 * number + 8)
        append_rows(table, [{"id": i, "p": i % 8 // 2} for i in ids])
    return table.refresh()


def live_files(table: Table) -> set[Path]:
    return {Path(t.file_path) for t in files(table)}


@pytest.mark.parametrize("version", [2, 3])
def test_a_conflict_in_one_partition_leaves_only_its_files(tmp_path: Path, version: int) -> None:
    table = partitioned(tmp_path / "t", version)
    before = rows(table)
    of_partition_2 = {Path(t.file_path) for t in files(table) if t.partition == (2,)}
    written_before = set(data_files(Path(table.location)))
    snapshot_count = len(table.snapshots)
    options = {
        "min-input-files": 2,
        "partial-progress.enabled": True,
        "partial-progress.max-commits": 4,
        "partial-progress.max-failed-commits": 1,
    }
    both = racing(table, lambda other: delete_ids(other, [12]))
    done = both.maintenance().rewrite_data_files(options=options)
    assert (done.file_group_count, done.added_data_files_count) == (4, 3)
    assert (done.rewritten_data_files_count, done.failed_data_files_count) == (9, 3)
    table.refresh()
    # the delete, and three of four commits
    assert len(table.snapshots) == snapshot_count + 1 + 3
    assert rows(table) == [row for row in before if row["id"] != 12]
    by_partition = {p: [t for t in files(table) if t.partition == (p,)] for p in range(PARTITIONS)}
    assert [len(by_partition[p]) for p in range(PARTITIONS)] == [1, 1, FILES, 1]
    assert {Path(t.file_path) for t in by_partition[2]} == of_partition_2
    assert sum(len(t.deletes) for t in by_partition[2]) == 1
    # the new file of the failed commit is gone
    new = set(data_files(Path(table.location))) - written_before
    deletes = {Path(d.file_path) for t in files(table) for d in t.deletes}
    assert new <= live_files(table) | deletes
    again = table.maintenance().rewrite_data_files(options=options)
    assert (again.rewritten_data_files_count, again.failed_data_files_count) == (3, 0)
    assert rows(table) == [row for row in before if row["id"] != 12]


def test_more_failed_commits_than_allowed_end_the_rewrite(tmp_path: Path) -> None:
    table = partitioned(tmp_path / "t")
    before = rows(table)
    partition_of = {p: {t.file_path for t in files(table) if t.partition == (p,)} for p in (0, 3)}
    options = {
        "min-input-files": 2,
        "partial-progress.enabled": True,
        "partial-progress.max-commits": 4,
        "partial-progress.max-failed-commits": 1,
    }
    both = racing(table, lambda other: delete_ids(other, [0, 7]))
    with pytest.raises(ConcurrentChangeError):
        both.maintenance().rewrite_data_files(options=options)
    table.refresh()
    assert rows(table) == [row for row in before if row["id"] not in (0, 7)]
    for p, paths in partition_of.items():
        assert {t.file_path for t in files(table) if t.partition == (p,)} == paths


@pytest.mark.parametrize(("deleted", "expected"), [([0, 1], 1), ([0], 0)])
def test_only_files_without_rows_have_the_highest_delete_ratio(
    tmp_path: Path, deleted: list[int], expected: int
) -> None:
    table = a_table(tmp_path / "t", files=2)
    [path, _] = [t.file_path for t in files(table)]
    delete_positions(table, {path: deleted})
    before = rows(table.refresh())
    done = table.maintenance().rewrite_data_files(
        options={"delete-ratio-threshold": 1.0, "min-file-size-bytes": 1}
    )
    assert done.rewritten_data_files_count == expected
    assert rows(table.refresh()) == before


class CountedWrites:
    """A runner of groups that records how many it writes at a time.

    The first groups wait for `expected` groups, and each group waits a little for one more.
    """

    max_at_once = 8

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._changed = threading.Condition()
        self._active = 0
        self.peak = 0

    def write(
        self, writer: GroupWriter, group: FileGroup, steps: GroupSteps, io: FileIO
    ) -> list[DataFile]:
        with self._changed:
            self._active += 1
            self.peak = max(self.peak, self._active)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.peak >= self._expected, timeout=30)
            self._changed.wait_for(lambda: self._active > self._expected, timeout=0.05)
        try:
            return writer.write(group, steps, io, 1)
        finally:
            with self._changed:
                self._active -= 1


@pytest.mark.parametrize("count", [1, 3])
def test_max_concurrent_file_group_rewrites_limits_groups(tmp_path: Path, count: int) -> None:
    table = partitioned(tmp_path / "t")
    before = rows(table)
    runner = CountedWrites(count)
    done = table.maintenance().rewrite_data_files(
        options={"min-input-files": 2, "max-concurrent-file-group-rewrites": count}, runner=runner
    )
    assert done.file_group_count == PARTITIONS
    assert runner.peak == count
    assert rows(table.refresh()) == before


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("keeps_number", [True, False])
def test_the_sequence_number_of_new_files(tmp_path: Path, version: int, keeps_number: bool) -> None:
    table = a_table(tmp_path / "t", version)
    start = table.current_snapshot
    before = rows(table)
    table.maintenance().rewrite_data_files(options={"use-starting-sequence-number": keeps_number})
    end = table.refresh().current_snapshot
    assert start is not None
    assert end is not None
    assert end.sequence_number == start.sequence_number + 1
    [new] = files(table)
    assert new.data_sequence_number == (start if keeps_number else end).sequence_number
    assert rows(table) == before


@pytest.mark.parametrize("spec_id", [0, 1])
def test_new_files_have_the_partition_spec_of_the_option(tmp_path: Path, spec_id: int) -> None:
    table = a_table(tmp_path / "t")
    table.update_spec().add_field("p").commit()
    for number in range(3):
        append_rows(table, [{"id": 12 + number, "p": 0}])
    before = rows(table.refresh())
    assert {t.spec_id for t in files(table)} == {0, 1}
    # without the option, the table's own spec
    options = {"rewrite-all": True, **({"output-spec-id": 0} if spec_id == 0 else {})}
    table.maintenance().rewrite_data_files(options=options)
    assert {t.spec_id for t in files(table.refresh())} == {spec_id}
    expected = [()] if spec_id == 0 else [(0,), (1,)]
    assert sorted({t.partition for t in files(table)}) == expected
    assert rows(table) == before


def test_the_files_of_a_branch(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    table.manage_snapshots().create_branch("audit").commit()
    append_rows(table, [{"id": 99, "p": 0}], branch="audit")
    main, main_files = table.refresh().current_snapshot, live_files(table)
    before = table.scan(selector=AUDIT).to_arrow().sort_by("id")
    assert before["id"].to_pylist() == [*range(12), 99]
    done = table.maintenance().rewrite_data_files(branch="audit")
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (7, 1)
    table = path_table(Path(table.location))
    assert table.scan(selector=AUDIT).to_arrow().sort_by("id") == before
    assert len(list(table.scan(selector=AUDIT).plan_files())) == 1
    assert table.current_snapshot == main
    assert live_files(table) == main_files
    again = table.maintenance().rewrite_data_files(branch="audit")
    assert again.file_group_count == 0
