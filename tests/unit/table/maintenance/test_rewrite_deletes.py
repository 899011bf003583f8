"""Rewritten delete files delete the same rows: fewer files, vectors, no equality deletes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iceberg_pyspark import TableCatalog, load_catalog
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.snapshot_changes import RewriteFiles
from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.new_data import write_rows
from iceberg_pyspark.table.maintenance.rewrites.rewrite_deletes import RewrittenDeleteFiles
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import CommitTable, commit_table
from tests.support.deleted_rows import delete_keys, delete_positions, list_positions
from tests.support.encrypted_tables import key_properties
from tests.support.history_model import ID
from tests.support.hooked_storage import HookedFileIO, once
from tests.support.table_histories import a_history
from tests.support.table_integrity import table_problems

FILES, ROWS = 3, 4
LINEAGE = ("_row_id", "_last_updated_sequence_number")
DATA_FILES = "data files and their deletes"
NOTHING = RewrittenDeleteFiles()


def a_table(version: int, **properties: str) -> CommitTable:
    """Create a table with ids 0 to 11, four in each of three files."""
    t = commit_table(
        format_version=version,
        location="mem://wh/t",
        properties={k.replace("_", "."): v for k, v in properties.items()},
    )
    for number in range(FILES):
        append(t, *range(number * ROWS, number * ROWS + ROWS))
    return t


def append(t: CommitTable, *ids: int) -> None:
    users(t).append(pa.table({"id": pa.array(ids, pa.int64()), "part": ["p"] * len(ids)}))


def users(t: CommitTable, io: Any = None) -> Table:
    return Table(t.catalog, t.loaded, io=io or t.io, clock=t.clock.clock)


def set_version(t: CommitTable, version: int) -> None:
    users(t).update_properties().set({"format-version": str(version)}).commit()


def paths(t: CommitTable) -> list[str]:
    """Return the data files, oldest first."""
    tasks = users(t).scan().plan_files()
    return [p.file_path for p in sorted(tasks, key=lambda p: p.data_sequence_number)]


def delete_rows(t: CommitTable, *rows: tuple[str, int], **overrides: Any) -> None:
    """Commit a position delete file, in any format version of the table."""
    columns = {
        DELETE_FILE_PATH.name: [path for path, _ in rows],
        DELETE_FILE_POS.name: pa.array([pos for _, pos in rows], pa.int64()),
    }
    list_positions(users(t), pa.table(columns), {}, **overrides)


def rows_of(t: CommitTable) -> list[Any]:
    lineage = LINEAGE if t.metadata.format_version >= 3 else ()
    result = users(t).scan(columns=["id", *lineage]).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in result)


def ids(t: CommitTable) -> list[int]:
    return [row[0] for row in rows_of(t)]


def deletes(t: CommitTable) -> list[DataFile]:
    result = [e.data_file for e in t.entries() if e.is_live]
    return [f for f in result if f.content is not FileContent.DATA]


def positions(t: CommitTable, io: Any = None, **arguments: Any) -> RewrittenDeleteFiles:
    return users(t, io).maintenance().rewrite_position_delete_files(**arguments)


def equality(t: CommitTable, io: Any = None, **arguments: Any) -> RewrittenDeleteFiles:
    return users(t, io).maintenance().rewrite_equality_deletes(**arguments)


def counts(done: RewrittenDeleteFiles) -> tuple[int, int]:
    return done.rewritten_delete_files_count, done.added_delete_files_count


def is_unchanged_by(t: CommitTable, act: Callable[[], RewrittenDeleteFiles]) -> bool:
    location = t.loaded.metadata_location
    return act() == NOTHING and t.loaded.metadata_location == location


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_position_delete_files_become_fewer(granularity: str) -> None:
    t = a_table(2, write_delete_granularity=granularity)
    first, second, _ = paths(t)
    for i in range(3):
        delete_rows(t, (first, i), (second, i))
    assert is_unchanged_by(t, lambda: positions(t))
    before, files = ids(t), {f.location for f in t.io.list_files("mem://")}
    plan = positions(t, options={"min-input-files": "3"}, dry_run=True)
    assert {f.location for f in t.io.list_files("mem://")} == files
    done = positions(t, options={"min-input-files": "3"})
    assert done == plan
    assert counts(done) == (3, 2 if granularity == "file" else 1)
    assert done.rewritten_bytes_count > 0
    assert done.added_bytes_count == sum(f.file_size_in_bytes for f in deletes(t))
    assert ids(t) == before == [3, 7, 8, 9, 10, 11]
    assert sum(f.record_count for f in deletes(t)) == 6
    snapshot = t.metadata.current_snapshot
    assert snapshot is not None
    assert snapshot.operation == "replace"
    assert is_unchanged_by(t, lambda: positions(t, options={"min-input-files": "2"}))
    assert table_problems(users(t)) == []


@pytest.mark.parametrize("version", [2, 3, 4])
def test_progress_is_reported(version: int) -> None:
    t = a_table(2)
    for path in paths(t)[:2]:
        delete_rows(t, (path, 0))
    delete_keys(users(t), "id", [9])
    set_version(t, version)
    messages: list[tuple[str, int, int | None]] = []

    def listen(phase: str, done: int, total: int | None) -> None:
        messages.append((phase, done, total))

    maintenance = users(t).maintenance(progress=listen)
    maintenance.rewrite_position_delete_files(options={"rewrite-all": True})
    step, count = ("groups of delete files", 1) if version == 2 else (DATA_FILES, FILES)
    assert messages == [(step, n, count) for n in range(count + 1)]
    messages.clear()
    users(t).maintenance(progress=listen).rewrite_equality_deletes()
    assert messages == [(DATA_FILES, n, FILES) for n in range(FILES + 1)]


def test_rows_of_files_that_are_gone_are_left_out() -> None:
    t = a_table(2, write_delete_granularity="partition")
    first, second, third = paths(t)
    delete_rows(t, (first, 0), (second, 0), (third, 0))
    delete_rows(t, (first, 1))
    users(t).delete("id < 4")
    assert counts(positions(t, options={"rewrite-all": True, "min-input-files": 2})) == (2, 1)
    [f] = deletes(t)
    assert f.record_count == 2
    assert ids(t) == [5, 6, 7, 9, 10, 11]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_files_that_delete_nothing_go(version: int) -> None:
    t = a_table(2)
    deleted = "mem://wh/t/data/gone.parquet"
    bounds = {DELETE_FILE_PATH.field_id: deleted.encode()}
    delete_rows(t, (deleted, 1), lower_bounds=bounds, upper_bounds=bounds)
    set_version(t, version)
    assert positions(t, where="id = 1") == NOTHING
    assert counts(positions(t)) == (1, 0)
    assert deletes(t) == []
    assert len(ids(t)) == 12


def test_vectors_in_version_3() -> None:
    t = a_table(2)
    first, second, third = paths(t)
    delete_rows(t, (first, 0), (second, 1))
    delete_rows(t, (first, 3))
    set_version(t, 3)
    # The deletion vector contains all earlier deletes of its file, which are then obsolete.
    delete_positions(users(t), {third: [0]})
    before = rows_of(t)
    assert counts(positions(t)) == (2, 2)
    assert rows_of(t) == before
    assert {f.referenced_data_file: f.record_count for f in deletes(t)} == {
        first: 2,
        second: 1,
        third: 1,
    }
    assert all(f.is_deletion_vector for f in deletes(t))
    assert len({f.file_path for f in deletes(t)}) == 2
    assert is_unchanged_by(t, lambda: positions(t))
    assert table_problems(users(t)) == []


def test_position_deletes_under_a_vector_go() -> None:
    t = a_table(2)
    first, second, _ = paths(t)
    delete_rows(t, (first, 0), (second, 0))
    set_version(t, 3)
    delete_positions(users(t), {first: [0, 1]})
    assert counts(positions(t, where="id = 1")) == (0, 0)
    assert counts(positions(t, where="id = 4")) == (1, 1)
    assert sorted(f.record_count for f in deletes(t)) == [1, 2]
    assert ids(t) == [2, 3, 5, 6, 7, 8, 9, 10, 11]


def test_a_file_without_rows_goes() -> None:
    t = a_table(2)
    first, *_ = paths(t)
    delete_rows(t, *((first, i) for i in range(ROWS)))
    set_version(t, 3)
    done = positions(t)
    assert (*counts(done), done.removed_data_files_count) == (1, 0, 1)
    assert ids(t) == list(range(ROWS, 12))
    assert len(paths(t)) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min-files": "3"}, "has no option 'min-files'; its options are target-file-size-bytes"),
        ({"min-input-files": "0"}, "min-input-files"),
        ({"rewrite-all": "maybe"}, "rewrite-all=maybe is neither true nor false"),
        ({"min-file-size-bytes": "70000000"}, "must be less than target-file-size-bytes"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        positions(a_table(2), options=options)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_equality_deletes(version: int) -> None:
    t = a_table(version)
    first, *_ = paths(t)
    delete_keys(users(t), "id", [1, 4, 77])
    append(t, 1, 4)
    delete_keys(users(t), "id", [5])
    if version >= 3:
        delete_positions(users(t), {first: [0]})
    else:
        delete_rows(t, (first, 0))
    before = rows_of(t)
    expected = [1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert ids(t) == expected
    plan = equality(t, dry_run=True)
    done = equality(t)
    assert done == plan
    # The delete of the first file is replaced too.
    assert counts(done) == (3, 2)
    assert rows_of(t) == before
    assert {f.content for f in deletes(t)} == {FileContent.POSITION_DELETES}
    assert all(f.is_deletion_vector for f in deletes(t)) == (version >= 3)
    assert is_unchanged_by(t, lambda: equality(t))
    assert table_problems(users(t)) == []
    snapshot = t.metadata.current_snapshot
    assert snapshot is not None
    assert (snapshot.operation, snapshot.summary["total-equality-deletes"]) == ("replace", "0")


def test_equality_deletes_that_delete_nothing_go() -> None:
    t = a_table(3)
    first, *_ = paths(t)
    delete_positions(users(t), {first: [1]})
    delete_keys(users(t), "id", [99])
    delete_keys(users(t), "id", [1])
    before = rows_of(t)
    assert counts(equality(t)) == (2, 0)
    assert rows_of(t) == before
    assert [f.record_count for f in deletes(t)] == [1]


def meanwhile(t: CommitTable, act: Callable[[], object]) -> HookedFileIO:
    """Return a store in which another client acts before the rewrite writes its first file."""
    return HookedFileIO(t.io, once("open_output", "before", act))


KINDS = [positions, equality]


def with_deletes(kind: Any, version: int = 3) -> CommitTable:
    """Create a table with deletes of row 0 of the first file, for this kind of rewrite."""
    t = a_table(2)
    if kind is positions:
        for _ in range(5):
            delete_rows(t, (paths(t)[0], 0))
    else:
        delete_keys(users(t), "id", [0])
    set_version(t, version)
    return t


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_concurrent_append_survives_a_rewrite_of_deletes(kind: Any, version: int) -> None:
    t = with_deletes(kind, version)
    done = kind(t, meanwhile(t, lambda: append(t, 0)))
    assert done.added_delete_files_count == 1
    assert ids(t) == list(range(12))
    assert table_problems(users(t)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_equality_deletes_meanwhile_still_apply(kind: Any) -> None:
    t = with_deletes(kind)
    kind(t, meanwhile(t, lambda: delete_keys(users(t), "id", [2])))
    assert ids(t) == [1, *range(3, 12)]
    assert equality(t).rewritten_delete_files_count == 2
    assert ids(t) == [1, *range(3, 12)]
    assert len(deletes(t)) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_vector_meanwhile_is_not_lost(kind: Any) -> None:
    t = with_deletes(kind)
    first = paths(t)[0]
    io = meanwhile(t, lambda: delete_positions(users(t), {first: [0, 3]}))
    with pytest.raises(ConcurrentChangeError, match=r"added deletes in .* for rows this operation"):
        kind(t, io)
    assert ids(t) == [1, 2, *range(4, 12)]
    kind(t)
    assert ids(t) == [1, 2, *range(4, 12)]
    assert table_problems(users(t)) == []


@pytest.mark.parametrize("version", [2, 3, 4])
def test_position_deletes_meanwhile_are_not_lost(version: int) -> None:
    t = with_deletes(equality, version)
    first = paths(t)[0]

    def act() -> None:
        if version == 2:
            delete_rows(t, (first, 3))
        else:
            delete_positions(users(t), {first: [3]})

    with pytest.raises(ConcurrentChangeError):
        equality(t, meanwhile(t, act))
    equality(t)
    assert ids(t) == [1, 2, *range(4, 12)]


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_compaction_meanwhile_brings_no_row_back(kind: Any, version: int) -> None:
    """Rewritten data files that keep an old sequence number would escape a removed delete."""
    t = with_deletes(kind, version)
    first = paths(t)[0]
    metadata = t.metadata

    def compact() -> None:
        rows = pa.table({"id": pa.array([0, 1, 2, 3], pa.int64()), "part": ["p"] * 4})
        if kind is positions:
            rows = rows.slice(1)
        _, files = write_rows(t.loaded.identifier, metadata, t.io, rows)
        action = RewriteFiles(
            removed_data_paths=frozenset({first}),
            data_files=tuple(files),
            data_sequence_number=1,
            checks=ConflictChecks(base_snapshot_id=metadata.current_snapshot_id),
        )
        commit_action(t.catalog, t.loaded, t.io, action, clock=t.clock.clock)

    with pytest.raises(ConcurrentChangeError, match=r"removed .*, which holds rows this operation"):
        kind(t, meanwhile(t, compact))
    assert ids(t) == list(range(1, 12))
    kind(t)
    assert ids(t) == list(range(1, 12))
    assert table_problems(users(t)) == []


def test_files_written_before_a_conflict_are_removed() -> None:
    t = with_deletes(equality)
    first = paths(t)[0]
    locations: set[str] = set()

    def act() -> None:
        delete_positions(users(t), {first: [3]})
        locations.update(f.location for f in t.io.list_files("mem://"))

    with pytest.raises(ConcurrentChangeError):
        equality(t, meanwhile(t, act))
    assert {f.location for f in t.io.list_files("mem://")} == locations


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> TableCatalog:
    folder = tmp_path_factory.mktemp("rewritten")
    keys = key_properties(folder)
    return load_catalog("rewritten", type="hadoop", warehouse=str(folder), **keys)


@settings(max_examples=settings().max_examples // 4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_same_rows_whatever_came_before(catalog: TableCatalog, data: st.DataObject) -> None:
    """For all types, specs, versions and deletes: no row appears or disappears."""
    history = a_history(data.draw, catalog, key_id="keyA")
    table = history.table
    alive = sorted(row[1] for row in history.live())

    def check(done: RewrittenDeleteFiles, again: Callable[[], RewrittenDeleteFiles]) -> None:
        assert sorted(table.refresh().scan().to_arrow()[ID].to_pylist()) == alive
        assert table_problems(table) == []
        assert again() == NOTHING

    maintenance = table.refresh().maintenance()
    small = {"min-input-files": "2"}
    steps: list[Callable[[], RewrittenDeleteFiles]] = [
        lambda: maintenance.rewrite_position_delete_files(options=small),
        maintenance.rewrite_equality_deletes,
    ]
    for step in data.draw(st.permutations(steps)):
        check(step(), step)
    remaining_contents = {
        f["content"] for f in table.metadata_table("delete_files").to_arrow().to_pylist()
    }
    assert remaining_contents <= {int(FileContent.POSITION_DELETES)}
