"""Rewritten data files are fewer and lack deleted rows; all other rows are unchanged."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from iceberg_pyspark import Table, TableCatalog, load_catalog
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.snapshot_changes import RowDelta
from iceberg_pyspark.errors import (
    ConcurrentChangeError,
    InvalidRequestError,
    NoSuchSnapshotError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import PrimitiveType
from iceberg_pyspark.sql_text.names import quoted_name
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.new_data import write_context_of
from iceberg_pyspark.table.maintenance.rewrites.file_groups import RewriteOptions, plan_groups
from tests.support.deleted_rows import delete_rows, list_positions
from tests.support.encrypted_tables import key_properties
from tests.support.frames import append_rows, create_path_table, path_table
from tests.support.history_model import ID
from tests.support.hooked_storage import HookedFileIO, once
from tests.support.plain_values import UNORDERED_TYPES
from tests.support.table_histories import a_history

LINEAGE = ["_row_id", "_last_updated_sequence_number"]


def a_table(folder: Path, version: int = 3, *, files: int = 6, **options: Any) -> Table:
    table = create_path_table(
        folder, "id BIGINT, p INT", properties={"format-version": str(version)}, **options
    )
    for number in range(files):
        append_rows(table, [{"id": 2 * number + i, "p": i} for i in range(2)])
    return table


def rows(table: Table) -> list[Any]:
    lineage = LINEAGE if table.metadata.format_version >= 3 else []
    result = table.scan(columns=["id", "p", *lineage]).to_arrow().to_pylist()
    return sorted(result, key=lambda row: int(row["id"]))


def files(table: Table) -> list[ScanTask]:
    return list(table.scan().plan_files())


def delete_ids(table: Table, ids: Sequence[int]) -> None:
    delete_rows(table, "id", ids)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_small_files_become_one(tmp_path: Path, version: int) -> None:
    table = a_table(tmp_path / "t", version)
    before, old = rows(table), files(table)
    maintenance = table.maintenance()
    plan = maintenance.rewrite_data_files(dry_run=True)
    assert files(table) == old
    done = maintenance.rewrite_data_files()
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (6, 1)
    assert (plan.rewritten_data_files_count, plan.added_data_files_count) == (6, 0)
    assert done.rewritten_bytes_count == sum(t.file_size_in_bytes for t in old)
    [new] = files(table)
    assert rows(table) == before
    assert new.data_sequence_number == max(t.data_sequence_number for t in old)
    snapshot = table.current_snapshot
    assert snapshot is not None
    assert snapshot.operation == "replace"
    assert snapshot.summary["total-records"] == "12"
    again = table.maintenance().rewrite_data_files()
    assert again.file_group_count == again.rewritten_data_files_count == 0
    assert table.current_snapshot == snapshot


@pytest.mark.parametrize("version", [2, 3])
def test_deleted_rows_go(tmp_path: Path, version: int) -> None:
    table = a_table(tmp_path / "t", version)
    delete_ids(table, [0, 5, 6, 7])
    before = rows(table)
    assert len(before) == 8
    done = table.maintenance().rewrite_data_files()
    assert done.added_data_files_count == 1
    assert rows(table) == before
    [new] = files(table)
    assert (new.record_count, new.deletes) == (8, ())
    assert table.metadata_table("delete_files").to_arrow().num_rows == 0


def test_partitions_stay_apart_and_where_chooses(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", partitioned_by=["p"])
    before = rows(table)
    done = table.maintenance().rewrite_data_files(where="p = 0")
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (6, 1)
    assert sorted(t.record_count for t in files(table)) == [1] * 6 + [6]
    assert table.maintenance().rewrite_data_files().file_group_count == 1
    assert sorted(t.partition for t in files(table)) == [(0,), (1,)]
    assert rows(table) == before


def test_rewrite_with_where_keeps_all_rows(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", 2)
    delete_ids(table, [2])
    before = rows(table)
    table.maintenance().rewrite_data_files(where="id = 3", options={"rewrite-all": True})
    assert rows(table) == before
    assert len(files(table)) == 6


def test_files_of_an_older_spec_get_the_new_one(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    table.update_spec().add_field("p").commit()
    before = rows(table)
    table.maintenance().rewrite_data_files()
    assert sorted((t.spec_id, t.partition) for t in files(table)) == [(1, (0,)), (1, (1,))]
    assert rows(table) == before
    done = table.maintenance().rewrite_data_files(
        options={"output-spec-id": 0, "rewrite-all": True}
    )
    assert done.added_data_files_count == 1
    assert rows(table) == before


@pytest.mark.parametrize("partial", [False, True])
def test_files_of_several_specs_are_rewritten_once(tmp_path: Path, partial: bool) -> None:
    """Rewritten rows and small files of the same new partition are rewritten together."""
    table = a_table(tmp_path / "t")
    table.update_spec().add_field("p").commit()
    for number in range(6, 11):
        append_rows(table, [{"id": 2 * number + i, "p": i} for i in range(2)])
    table.refresh()
    before = rows(table)
    options = {"partial-progress.enabled": partial, "min-input-files": 2}
    maintenance = table.maintenance()
    plan = maintenance.rewrite_data_files(options=options, dry_run=True)
    done = maintenance.rewrite_data_files(options=options)
    assert plan.rewritten_data_files_count == 16 < done.rewritten_data_files_count
    assert rows(table) == before
    snapshot = table.current_snapshot
    again = table.maintenance().rewrite_data_files(options=options)
    assert again.rewritten_data_files_count == 0
    assert table.refresh().current_snapshot == snapshot


def test_at_most_so_many_files_of_several_specs(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    table.update_spec().add_field("p").commit()
    append_rows(table, [{"id": 12, "p": 0}])
    done = table.maintenance().rewrite_data_files(
        options={"min-input-files": 2, "max-files-to-rewrite": 6}
    )
    assert done.rewritten_data_files_count == 6


def test_partial_progress_commits_group_by_group(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", partitioned_by=["p"])
    before, snapshots = rows(table), len(table.snapshots)
    options = {"partial-progress.enabled": "true", "rewrite-job-order": "files-desc"}
    table.maintenance().rewrite_data_files(options=options)
    assert len(table.snapshots) == snapshots + 2
    assert rows(table) == before


@pytest.mark.parametrize(("max_commits", "expected"), [(1, 1), (2, 2), (3, 2), (9, 4)])
def test_partial_progress_makes_at_most_so_many_commits(
    tmp_path: Path, max_commits: int, expected: int
) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT, p INT", partitioned_by=["p"])
    for number in range(2):
        append_rows(table, [{"id": 4 * number + p, "p": p} for p in range(4)])
    before, snapshots = rows(table.refresh()), len(table.snapshots)
    options = {
        "min-input-files": 2,
        "partial-progress.enabled": True,
        "partial-progress.max-commits": max_commits,
        "max-concurrent-file-group-rewrites": 2,
    }
    done = table.maintenance().rewrite_data_files(options=options)
    assert (done.file_group_count, done.rewritten_data_files_count) == (4, 8)
    assert len(table.refresh().snapshots) == snapshots + expected
    assert rows(table) == before


def test_too_many_failed_commits_end_a_rewrite(tmp_path: Path) -> None:
    options = {"partial-progress.enabled": True, "partial-progress.max-failed-commits": 0}
    table = a_table(tmp_path / "t", partitioned_by=["p"])
    both = racing(table, lambda other: delete_ids(other, [2, 3]))
    with pytest.raises(ConcurrentChangeError):
        both.maintenance().rewrite_data_files(options=options)
    assert [row["id"] for row in rows(table.refresh())] == [i for i in range(12) if i not in (2, 3)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("none", [0, 1, 2]),
        ("bytes-asc", [2, 0, 1]),
        ("bytes-desc", [1, 0, 2]),
        ("files-asc", [1, 0, 2]),
        ("files-desc", [2, 0, 1]),
    ],
)
def test_groups_are_in_the_order_of_the_job(order: str, expected: list[int]) -> None:
    sizes = [[200] * 6, [700, 700], [100] * 7]
    tasks = [
        task(10 * p + i, size, partition=p)
        for p, of_one in enumerate(sizes)
        for i, size in enumerate(of_one)
    ]
    groups = plan_groups(tasks, options(rewrite_job_order=order), 0)
    assert [g.partition for g in groups] == [(p,) for p in expected]


@pytest.mark.parametrize(("threshold", "expected"), [(2, 1), (3, 0)])
def test_files_with_many_delete_files_are_chosen(
    tmp_path: Path, threshold: int, expected: int
) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT", properties={"format-version": "2"})
    append_rows(table, [{"id": n} for n in range(100)])
    [path] = [t.file_path for t in files(table.refresh())]
    for position in range(2):
        columns = {"file_path": [path], "pos": pa.array([position], pa.int64())}
        list_positions(table, pa.table(columns), {})
    table.refresh()
    arguments = {"delete-file-threshold": threshold, "min-file-size-bytes": 1}
    done = table.maintenance().rewrite_data_files(options=arguments)
    assert done.rewritten_data_files_count == expected
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == list(range(2, 100))


# concurrent commits


def racing(table: Table, act: Callable[[Table], object]) -> Table:
    """Return the table with a store in which `act` runs before the first new file begins."""
    other = path_table(Path(table.location))
    io = HookedFileIO(table.io, once("open_output", "before", lambda: act(other)))
    return Table(table.catalog, table.loaded, io=io)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("partial", [False, True])
def test_a_row_that_is_deleted_meanwhile_does_not_come_back(
    tmp_path: Path, version: int, partial: bool
) -> None:
    table = a_table(tmp_path / "t", version)
    both = racing(table, lambda other: delete_ids(other, [3]))
    data = sorted(Path(table.location).glob("data/*.parquet"))
    if partial:
        done = both.maintenance().rewrite_data_files(options={"partial-progress.enabled": True})
        assert (done.rewritten_data_files_count, done.failed_data_files_count) == (0, 6)
    else:
        with pytest.raises(ConcurrentChangeError):
            both.maintenance().rewrite_data_files()
    table.refresh()
    assert [row["id"] for row in rows(table)] == [i for i in range(12) if i != 3]
    # Only the files that the rewrite wrote are deleted.
    remaining = set(Path(table.location).glob("data/*.parquet"))
    assert remaining >= set(data)
    table_files = {
        Path(f["file_path"]) for f in table.metadata_table("files").to_arrow().to_pylist()
    }
    assert remaining <= table_files | set(data)
    table.maintenance().rewrite_data_files()
    assert [row["id"] for row in rows(table)] == [i for i in range(12) if i != 3]


def test_rows_that_are_appended_meanwhile_stay(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    both = racing(table, lambda other: append_rows(other, [{"id": 99, "p": 0}]))
    both.maintenance().rewrite_data_files()
    table.refresh()
    assert [row["id"] for row in rows(table)] == [*range(12), 99]
    assert len(files(table)) == 2


def delete_keys(table: Table, ids: Sequence[int], spec_id: int | None = None) -> None:
    """Delete ids by an equality delete, in the partition of one spec in which `p` is id % 2."""
    spec = None if spec_id is None else table.metadata.spec_by_id[spec_id]
    context = write_context_of("t", table.metadata, table.io, write_id=str(uuid.uuid4()), spec=spec)
    parts = pa.array([i % 2 for i in ids], pa.int32())
    keys = pa.record_batch({"id": pa.array(ids, pa.int64()), "p": parts})
    [written] = write_data_files(context, [keys], table.io, partition_id=0, task_id=0)
    file = DataFile(
        content=FileContent.EQUALITY_DELETES,
        file_path=written.file_path,
        record_count=len(ids),
        file_size_in_bytes=written.file_size_in_bytes,
        spec_id=written.spec_id,
        partition=written.partition,
        equality_ids=(1,),
    )
    checks = ConflictChecks(base_snapshot_id=table.metadata.current_snapshot_id)
    commit_action(
        table.catalog, table.loaded, table.io, RowDelta(delete_files=(file,), checks=checks)
    )
    table.refresh()


@pytest.mark.parametrize("spec_id", [0, 1])
def test_an_equality_delete_of_one_spec_is_not_lost_by_files_of_another(
    tmp_path: Path, spec_id: int
) -> None:
    """A delete of spec 0 applies to the old files; one of spec 1 only to the new files."""
    table = a_table(tmp_path / "t", 2, partitioned_by=["p"])
    table.update_spec().add_field("id", "bucket[2]").commit()
    both = racing(table, lambda other: delete_keys(other, [3], spec_id))
    with pytest.raises(ConcurrentChangeError):
        both.maintenance().rewrite_data_files()
    table.refresh()
    remaining_ids = [i for i in range(12) if i != 3 or spec_id == 1]
    assert [row["id"] for row in rows(table)] == remaining_ids
    table.maintenance().rewrite_data_files()
    assert [row["id"] for row in rows(table)] == remaining_ids


def test_an_upgrade_meanwhile_keeps_row_ids(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", 2)

    def upgrade(other: Table) -> None:
        other.update_properties().set({"format-version": "3"}).commit()
        append_rows(other, [{"id": 99, "p": 0}])

    with pytest.raises(ConcurrentChangeError, match="upgraded to format version 3"):
        racing(table, upgrade).maintenance().rewrite_data_files()
    table.refresh()
    before = rows(table)
    assert None not in [row["_row_id"] for row in before]
    table.maintenance().rewrite_data_files()
    assert rows(table) == before


@pytest.mark.parametrize("keeps_number", [True, False])
def test_an_equality_delete_meanwhile_still_applies(tmp_path: Path, keeps_number: bool) -> None:
    table = a_table(tmp_path / "t", 2)
    both = racing(table, lambda other: delete_keys(other, [3, 4]))
    options = {"use-starting-sequence-number": keeps_number}
    if keeps_number:
        both.maintenance().rewrite_data_files(options=options)
    else:
        with pytest.raises(ConcurrentChangeError):
            both.maintenance().rewrite_data_files(options=options)
    table.refresh()
    assert len(files(table)) == (1 if keeps_number else 6)
    assert [row["id"] for row in rows(table)] == [i for i in range(12) if i not in (3, 4)]
    table.maintenance().rewrite_data_files(options={"rewrite-all": True})
    assert [row["id"] for row in rows(table)] == [i for i in range(12) if i not in (3, 4)]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> TableCatalog:
    folder = tmp_path_factory.mktemp("rewritten")
    keys = key_properties(folder)
    return load_catalog("rewritten", type="hadoop", warehouse=str(folder), **keys)


def a_sort_order(schema: Schema) -> Iterator[str]:
    """Yield sort orders over columns whose values can be ordered."""
    names = [
        quoted_name([f.name])
        for f in schema.fields
        if isinstance(f.type, PrimitiveType) and not isinstance(f.type, UNORDERED_TYPES)
    ]
    for one, other in pairwise(names):
        yield f"{one} DESC NULLS FIRST, {other}"
        yield f"hilbert({one}, {other})"


@settings(max_examples=settings().max_examples // 4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_tables_have_the_same_rows_after_it(
    catalog: TableCatalog, data: st.DataObject
) -> None:
    history = a_history(data.draw, catalog, key_id="keyA")
    assume(history.moments)
    table = history.table.refresh()
    columns = [f.name for f in table.schema.fields]
    # The first commit after an upgrade assigns row ids, whatever the commit does.
    snapshot = table.current_snapshot
    if snapshot is not None and snapshot.first_row_id is not None:
        columns += LINEAGE

    def now() -> str:
        # Compare the text, because NaN does not equal itself.
        return str(table.scan(columns=columns).to_arrow().sort_by(ID).to_pylist())

    before = now()
    target = data.draw(st.sampled_from([1000, 10_000_000]))
    sort_order = data.draw(st.sampled_from([None, None, *a_sort_order(table.schema)]))
    try:
        done = table.maintenance().rewrite_data_files(
            sort_order=sort_order,
            options={"rewrite-all": True, "target-file-size-bytes": target},
        )
    except UnsupportedFeatureError:
        # a type that can be read but not written
        return
    except InvalidRequestError as e:
        # The table's spec is newer than a row that has no valid partition in it.
        assume("partition" not in str(e))
        raise
    assert now() == before
    if table.current_snapshot is not None and done.rewritten_data_files_count:
        # Position deletes that span several files stay, but none refers to a new file.
        left_over = [d for t in table.scan().plan_files() for d in t.deletes]
        assert {d.content for d in left_over} <= {FileContent.POSITION_DELETES}
        assert not any(d.is_of_one_file for d in left_over)


# choice of files


def task(number: int, size: int, *, partition: int = 0, spec_id: int = 0) -> ScanTask:
    return ScanTask(
        file_path=f"f{number}",
        file_format="parquet",
        file_size_in_bytes=size,
        record_count=10,
        start=0,
        length=size,
        spec_id=spec_id,
        partition=(partition,),
        data_sequence_number=1,
    )


def options(**arguments: object) -> RewriteOptions:
    names = {name.replace("_", "-"): str(value) for name, value in arguments.items()}
    return RewriteOptions.of({"target-file-size-bytes": "1000", **names}, {})


@pytest.mark.parametrize(
    ("sizes", "arguments", "expected"),
    [
        ([749, 1801, 750, 1800, 1000], {}, [[749, 1801]]),
        ([100] * 4, {}, []),
        ([100] * 5, {}, [[100] * 5]),
        ([600, 600], {}, [[600, 600]]),
        ([1900], {}, [[1900]]),
        ([1500], {}, []),
        ([1500], {"max_file_size_bytes": 1200}, [[1500]]),
        ([400], {"min_input_files": 1}, []),
        ([1000, 1000], {"rewrite_all": "true"}, [[1000, 1000]]),
        ([700] * 4, {"max_file_group_size_bytes": 1400}, [[700, 700], [700, 700]]),
    ],
)
def test_which_files_are_chosen(
    sizes: list[int], arguments: dict[str, object], expected: list[list[int]]
) -> None:
    tasks = [task(i, size) for i, size in enumerate(sizes)]
    groups = plan_groups(tasks, options(**arguments), 0)
    assert [[t.file_size_in_bytes for t in g.tasks] for g in groups] == expected


@given(
    sizes=st.lists(st.integers(1, 4000), max_size=30),
    parts=st.integers(1, 3),
    most=st.integers(500, 9000),
)
def test_groups_partition_the_files(sizes: list[int], parts: int, most: int) -> None:
    tasks = [task(i, size, partition=i % parts, spec_id=i % 2) for i, size in enumerate(sizes)]
    groups = plan_groups(tasks, options(max_file_group_size_bytes=most), 0)
    paths = [t.file_path for g in groups for t in g.tasks]
    assert len(paths) == len(set(paths))
    for group in groups:
        assert group.size <= most or len(group.tasks) == 1
        assert len({(t.spec_id, t.partition) for t in group.tasks}) == 1 or group.spec_id is None
        assert 750 <= group.output_file_size <= 1800


@pytest.mark.parametrize(
    ("raw_options", "message"),
    [
        ({"nothing": 1}, "has no option 'nothing'"),
        ({"min-input-files": 0}, "min-input-files=0 is less than 1"),
        ({"target-file-size-bytes": "x"}, "target-file-size-bytes=x is not an integer"),
        ({"min-file-size-bytes": 2**40}, "must be less than"),
        ({"rewrite-job-order": "up"}, "rewrite-job-order=up"),
        ({"output-spec-id": 7}, "has no partition spec 7"),
        ({"delete-ratio-threshold": 2}, "delete-ratio-threshold=2"),
        ({"delete-ratio-threshold": 0}, "delete-ratio-threshold=0"),
    ],
)
def test_wrong_options_are_refused(
    tmp_path: Path, raw_options: dict[str, object], message: str
) -> None:
    table = a_table(tmp_path / "t", files=0)
    with pytest.raises(InvalidRequestError, match=message):
        table.maintenance().rewrite_data_files(options=raw_options)
    assert table.maintenance().rewrite_data_files().file_group_count == 0


def test_a_branch_that_cannot_be_committed_to_is_refused_as_by_a_write(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", files=1)
    table.manage_snapshots().create_tag("v1").commit()
    for refused, error, message in (
        ("x", NoSuchSnapshotError, "has no branch or tag 'x'; there are: main, v1"),
        ("v1", InvalidRequestError, "'v1' is a tag; commits go to branches"),
    ):
        with pytest.raises(error, match=message):
            table.maintenance().rewrite_data_files(branch=refused)
        with pytest.raises(error, match=message):
            table.append(table.scan().to_arrow(), branch=refused)
