"""A table as its users see it: rows, evolution, transactions, files deleted or kept."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.outcomes import Unknown
from iceberg_pyspark.errors import (
    AlreadyExistsError,
    CommitStateUnknownError,
    ConcurrentChangeError,
    InvalidRequestError,
    StorageError,
    TableRecreatedError,
)
from iceberg_pyspark.spec.table_metadata import metadata_to_json
from iceberg_pyspark.storage.restricted_io import check_read
from iceberg_pyspark.table.table import Table, load_table
from iceberg_pyspark.table.table_storage import table_io
from tests.support.commit_tables import IDENTIFIER, CommitTable, commit_table
from tests.support.frames import create_path_table
from tests.support.hooked_storage import HookedFileIO


class _UserError(Exception):
    """An error in a user's own code."""


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([i for i, _ in pairs], pa.int64()),
            "part": pa.array([p for _, p in pairs], pa.string()),
        }
    )


def table(t: CommitTable) -> Table:
    return Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)


def ids(of: Table, **options: Any) -> list[int]:
    row_ids: list[int] = of.scan(**options).to_arrow().column("id").to_pylist()
    return sorted(row_ids)


def data_files(t: CommitTable) -> set[str]:
    return {f.location for f in t.io.list_files("mem://t/data")}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_are_appended_overwritten_and_deleted(version: int) -> None:
    t = commit_table(format_version=version, partitioned=True)
    users = table(t)
    users.append(rows((1, "a"), (2, "b")))
    users.append(rows((3, "a")).to_batches()[0])
    assert ids(users) == [1, 2, 3]
    users.overwrite(rows((4, "b")), dynamic=True)
    assert ids(users) == [1, 3, 4]
    users.overwrite(rows((5, "a")), "part = 'a'")
    assert ids(users) == [4, 5]
    users.delete("part = 'b'")
    assert ids(users) == [5]
    users.overwrite(rows((6, None)))
    assert ids(users) == [6]
    assert ids(table(t)) == [6]


def test_a_table_shows_what_its_metadata_says() -> None:
    t = commit_table(partitioned=True, properties={"k": "v"})
    users = load_table(t.catalog, IDENTIFIER)
    assert users.identifier == IDENTIFIER
    assert users.location == "mem://t"
    assert [f.name for f in users.schema.fields] == ["id", "part"]
    assert [f.name for f in users.spec.fields] == ["part"]
    assert users.sort_order.fields == ()
    assert users.properties["k"] == "v"
    assert users.snapshots == ()
    assert users.current_snapshot is None
    assert users.refs == {}
    assert users.catalog is t.catalog
    assert "db.t at mem://t" in repr(users)
    table(t).append(rows((1, "a")))
    assert users.current_snapshot is None
    assert users.refresh().loaded.metadata.current_snapshot is not None


def test_a_table_is_shown_to_a_person() -> None:
    t = commit_table(partitioned=True)
    users = table(t)
    empty = ["Table db.t at mem://t", "format version: 2", "snapshot: none"]
    assert repr(users).splitlines()[:4] == [*empty, "partitioned by: part"]
    users.append(rows((1, "a"), (2, "b")))
    users.manage_snapshots().create_tag("monthly").create_branch("audit").commit()
    users.replace_sort_order().desc("id").commit()
    snapshot = users.current_snapshot
    assert snapshot is not None
    assert repr(users) == "\n".join(
        [
            *empty[:2],
            f"snapshot: {snapshot!r}",
            "partitioned by: part",
            "sorted by: id desc",
            "branches: audit",
            "tags: monthly",
            repr(users.schema),
        ]
    )
    assert users._repr_html_().count("<table>") == 2


def test_a_table_of_somebody_else_brings_no_markup_into_a_notebook() -> None:
    t = commit_table(partitioned=True)
    users = table(t)
    users.append(rows((1, "a")), snapshot_properties={"<img src=x>": "<script>"})
    users.manage_snapshots().create_tag("<script>").commit()
    users.update_schema().add_column("<b>", "int", doc="<script>").commit()
    assert users.current_snapshot is not None
    for part in (users, users.schema, users.current_snapshot):
        html = part._repr_html_()
        assert "&lt;" in html
        text = re.sub(r"</?(table|caption|thead|tbody|tr|th|td)>", "", html)
        assert "<" not in text


def test_an_overwrite_that_cuts_a_file_replaces_rows_or_leaves_no_file() -> None:
    t = commit_table()
    users = table(t)
    users.append(rows((1, "a"), (2, "b")))
    before = data_files(t)
    with pytest.raises(InvalidRequestError, match="column 'id'"):
        users.overwrite(pa.table({"id": ["x"], "part": ["c"]}), "id = 1")
    assert ids(users) == [1, 2]
    assert data_files(t) == before
    snapshot = users.overwrite(rows((8, "c"), (9, "c")), "id = 1", snapshot_properties={"k": "v"})
    assert (snapshot.operation, snapshot.summary["k"]) == ("overwrite", "v")
    assert ids(users) == [2, 8, 9]
    assert users.overwrite(rows(), "id = 8").parent_snapshot_id == snapshot.snapshot_id
    assert ids(users) == [2, 9]


def test_data_files_of_an_unknown_commit_are_kept() -> None:
    t = commit_table()

    def lost(commit: object) -> Unknown:
        return Unknown(CommitStateUnknownError("lost"))

    t.catalog.faults = [lost]
    with pytest.raises(CommitStateUnknownError):
        table(t).append(rows((1, "a")))
    assert len(data_files(t)) == 1


def test_a_store_that_fails_after_the_commit_undoes_nothing() -> None:
    t = commit_table()

    def unreadable_once_committed(operation: str, location: str, _moment: str) -> None:
        if t.metadata.current_snapshot is not None and "create" not in operation:
            raise StorageError(f"{location}: timed out")

    hooked = HookedFileIO(t.io, unreadable_once_committed)
    Table(t.catalog, t.loaded, io=hooked, clock=t.clock.clock).append(rows((1, "a")))
    assert ids(table(t)) == [1]


def test_evolution_is_a_chain_of_calls_or_a_with_block() -> None:
    t = commit_table(partitioned=True)
    users = table(t)
    users.append(rows((1, "a")))
    users.update_schema().add_column("n", "int").rename_column("part", "p").commit()
    with users.update_spec() as spec:
        spec.remove_field("part").add_field("id", "bucket[2]")
    users.replace_sort_order().asc("id").commit()
    users.update_properties().set({"k": "v"}).commit()
    with users.manage_snapshots() as snapshots:
        snapshots.create_tag("v1").create_branch("dev").set_retention("dev", max_ref_age_ms=5)
    assert [f.name for f in users.schema.fields] == ["id", "p", "n"]
    assert [f.name for f in users.spec.fields] == ["id_bucket_2"]
    assert users.sort_order.order_id == 1
    assert users.properties["k"] == "v"
    assert users.refs["dev"].max_ref_age_ms == 5
    assert users.scan().to_arrow().to_pylist() == [{"id": 1, "p": "a", "n": None}]
    assert users.metadata == t.metadata
    with contextlib.suppress(_UserError), users.update_schema() as schema:
        schema.drop_column("n")
        raise _UserError
    assert [f.name for f in users.schema.fields] == ["id", "p", "n"]


def test_branches_are_written_and_main_follows_or_goes_back() -> None:
    t = commit_table()
    users = table(t)
    users.append(rows((1, "a")))
    first = users.metadata.current_snapshot_id
    assert first is not None
    users.manage_snapshots().create_branch("dev").commit()
    users.append(rows((2, "b")), branch="dev", snapshot_properties={"who": "me"})
    assert ids(users) == [1]
    assert users.metadata.ref_snapshot("dev").summary["who"] == "me"
    users.manage_snapshots().fast_forward("main", "dev").commit()
    assert ids(users) == [1, 2]
    users.manage_snapshots().rollback_to(first).remove_branch("dev").commit()
    assert (ids(users), set(users.refs)) == ([1], {"main"})
    users.manage_snapshots().create_tag("t").rename_branch("main", "x")
    with pytest.raises(InvalidRequestError):
        users.manage_snapshots().rename_branch("main", "x").commit()


def test_a_branch_of_a_table_without_snapshots_gets_one_of_no_rows() -> None:
    t = commit_table()
    users = table(t)
    with pytest.raises(InvalidRequestError, match="min-snapshots-to-keep"):
        users.manage_snapshots().create_branch("b", min_snapshots_to_keep=0).commit()
    locations = [f.location for f in t.io.list_files(t.metadata.location)]
    assert locations == [t.loaded.metadata_location], "what was written for it is gone"
    users.manage_snapshots().create_branch("b", max_ref_age_ms=5).set_retention(
        "b", min_snapshots_to_keep=2
    ).commit()
    assert set(users.refs) == {"b"}
    ref = users.refs["b"]
    assert (ref.max_ref_age_ms, ref.min_snapshots_to_keep) == (5, 2)
    [empty] = users.snapshots
    assert (empty.summary["operation"], empty.summary["total-records"]) == ("append", "0")
    assert ids(users) == []
    users.append(rows((1, "a")), branch="b")
    assert users.metadata.ref_snapshot("b").parent_snapshot_id == empty.snapshot_id
    users.manage_snapshots().fast_forward("main", "b").commit()
    assert ids(users) == [1]
    with pytest.raises(AlreadyExistsError):
        users.manage_snapshots().create_branch("b").commit()


def test_a_branch_is_at_the_rows_that_others_have_added_meanwhile() -> None:
    t = commit_table()
    branching = table(t).manage_snapshots().create_branch("b")
    with table(t).transaction() as transaction:
        transaction.append(rows((1, "a")))
        transaction.manage_snapshots().create_branch("c").commit()
    users = table(t)
    assert users.refs["c"].snapshot_id == users.metadata.current_snapshot_id
    branching.commit()
    users.refresh()
    assert users.refs["b"].snapshot_id == users.metadata.current_snapshot_id
    assert len(users.snapshots) == 1


def test_a_transaction_is_one_commit() -> None:
    t = commit_table()
    users = table(t)
    location = t.loaded.metadata_location
    with users.transaction() as transaction:
        transaction.update_schema().add_column("n", "int").commit()
        assert [f.name for f in transaction.metadata.current_schema.fields][-1] == "n"
        transaction.update_spec().add_field("n").commit()
        transaction.replace_sort_order().asc("n").commit()
        transaction.update_properties().set({"k": "v"}).commit()
        transaction.append(
            rows((1, "a")).append_column("n", pa.array([7], pa.int32())),
            snapshot_properties={"who": "me"},
        )
        transaction.append(rows((2, "b")))
        transaction.manage_snapshots()
        assert t.loaded.metadata_location == location
    users.refresh()
    assert ids(users) == [1, 2]
    assert len(users.metadata.metadata_log) == 1
    assert len(users.snapshots) == 2
    assert [e.snapshot_id for e in users.metadata.snapshot_log] == [
        users.metadata.current_snapshot_id
    ]
    assert users.scan(filter="n = 7").to_arrow().column("id").to_pylist() == [1]
    with pytest.raises(InvalidRequestError, match="has ended"):
        transaction.append(rows((3, "c")))


def test_a_transaction_rebases_over_appends_but_not_over_schema_changes() -> None:
    t = commit_table()
    first = table(t).transaction()
    first.update_schema().add_column("n", "int").commit()
    first.append(rows((1, "a")))
    table(t).append(rows((2, "b")))
    first.commit()
    assert ids(table(t)) == [1, 2]
    second = table(t).transaction()
    second.update_schema().add_column("m", "int").commit()
    second.append(rows((3, "c")))
    table(t).update_schema().drop_column("n").commit()
    before = ids(table(t))
    files = data_files(t)
    with pytest.raises(ConcurrentChangeError):
        second.commit()
    assert ids(table(t)) == before
    assert len(data_files(t)) == len(files) - 1


def test_an_abandoned_transaction_leaves_nothing() -> None:
    t = commit_table()
    with contextlib.suppress(_UserError), table(t).transaction() as transaction:
        transaction.append(rows((1, "a")))
        raise _UserError
    assert data_files(t) == set()
    assert t.metadata.snapshots == ()


def test_an_error_after_an_unknown_commit_deletes_nothing() -> None:
    t = commit_table()

    def lost(commit: object) -> Unknown:
        return Unknown(CommitStateUnknownError("lost"))

    t.catalog.faults = [lost]
    with contextlib.suppress(CommitStateUnknownError), table(t).transaction() as transaction:
        transaction.append(rows((1, "a")))
        transaction.commit()
    assert len(data_files(t)) == 1


def test_an_empty_transaction_changes_nothing() -> None:
    t = commit_table()
    before = t.loaded.metadata_location
    with table(t).transaction():
        pass
    assert t.loaded.metadata_location == before


def test_table_reads_its_own_store_by_default() -> None:
    moved = LoadedTable(
        identifier=IDENTIFIER,
        metadata=replace(commit_table().metadata, location="file:///w/t"),
        metadata_location="file:///w/t/metadata/v1.metadata.json",
    )
    assert not table_io(moved).exists("/w/other/f")
    with pytest.raises(StorageError, match="refused"):
        table_io(moved).exists("s3://w/other/f")
    with pytest.raises(StorageError, match="refused"):
        table_io(moved).open_output("/w/other/f")
    strict = replace(moved, config={"read.restrict-locations": "true"})
    with pytest.raises(StorageError, match="refused"):
        table_io(strict).exists("/w/other/f")
    free = replace(moved, config={"read.allow-outside-locations": "true"})
    check_read(table_io(free), "s3://w/other/f")


def test_decoded_entries_are_reused_for_the_next_version() -> None:
    # Decoded manifests are cached by store, and equal stores share them.
    loaded = LoadedTable(
        identifier=IDENTIFIER,
        metadata=replace(commit_table().metadata, location="file:///w/t"),
        metadata_location="file:///w/t/metadata/v1.metadata.json",
    )
    later = replace(loaded, metadata_location="file:///w/t/metadata/v2.metadata.json")
    assert table_io(loaded) == table_io(later)


def test_a_recreated_table_is_not_taken_for_the_one_that_was_loaded() -> None:
    """docs/conformance.md 83."""
    t = commit_table()
    users = table(t)
    first = t.loaded.metadata
    t.catalog.drop_table(IDENTIFIER)
    t.catalog.create_table(
        IDENTIFIER, replace(first, table_uuid="00000000-0000-0000-0000-000000000002")
    )
    with pytest.raises(TableRecreatedError, match=r"table db\.t was dropped or renamed.*load"):
        users.refresh()
    assert users.metadata == first
    changes: tuple[Callable[[], object], ...] = (
        lambda: users.update_properties().set({"k": "v"}).commit(),
        lambda: users.update_schema().add_column("n", "int").commit(),
        lambda: users.append(rows((1, "a"))),
    )
    for change in changes:
        with pytest.raises(ConcurrentChangeError, match="replaced by another table"):
            change()
    now = t.loaded.metadata
    assert now.properties == first.properties
    assert (now.schemas, now.snapshots) == (first.schemas, ())
    users = load_table(t.catalog, IDENTIFIER)
    assert users.refresh().metadata.table_uuid == now.table_uuid


def without_uuid() -> CommitTable:
    """Create a version 1 table without a UUID, as early writers did."""
    t = commit_table(format_version=1)
    data = metadata_to_json(t.loaded.metadata)
    del data["table-uuid"]
    t.io.create_exclusive("mem://t/metadata/old.metadata.json", json.dumps(data).encode())
    t.catalog.drop_table(IDENTIFIER)
    t.catalog.register_table(IDENTIFIER, "mem://t/metadata/old.metadata.json")
    assert t.loaded.metadata.table_uuid is None
    return t


def evolve_in_one_commit(users: Table) -> None:
    with users.transaction() as one:
        one.update_schema().add_column("n", "int").commit()
        one.update_schema().add_column("m", "int").commit()
        one.update_properties().set({"format-version": "3"}).commit()
        one.append(rows((1, "a")))
    users.refresh()


@pytest.mark.parametrize(
    "change",
    [
        lambda users: users.update_schema().add_column("n", "int").commit(),
        lambda users: users.update_spec().add_field("part").commit(),
        lambda users: users.replace_sort_order().asc("id").commit(),
        lambda users: users.update_properties().set({"k": "v"}).commit(),
        lambda users: users.update_properties().set({"format-version": "2"}).commit(),
        evolve_in_one_commit,
    ],
)
def test_a_table_of_version_1_without_uuid_is_given_one_by_any_change(
    change: Callable[[Table], None],
) -> None:
    t = without_uuid()
    users = table(t)
    change(users)
    table_uuid = users.metadata.table_uuid
    assert table_uuid is not None
    assert t.loaded.metadata == users.metadata
    users.append(rows((2, "b")))
    users.update_schema().add_column("later", "int").commit()
    assert users.refresh().metadata.table_uuid == table_uuid
    assert 2 in ids(users)


def test_uuid_assigned_by_a_concurrent_writer_is_kept() -> None:
    t = without_uuid()
    mine, other = table(t), table(t)
    other.update_properties().set({"a": "1"}).commit()
    mine.update_properties().set({"b": "2"}).commit()
    assert mine.metadata.table_uuid == other.metadata.table_uuid
    assert {"a", "b"} <= mine.properties.keys()


def test_names_of_metadata_columns_may_be_quoted_as_others(tmp_path: Path) -> None:
    rows = [{"id": 7, "st": {"a": 1, "b": 2}}]
    table = create_path_table(tmp_path, "id BIGINT, st STRUCT<a: INT, b: INT>", rows)
    columns = ["st.a", "`_pos`", "`st`.`b`", "`_spec_id`", "`id`"]
    assert table.scan(columns=columns).to_arrow().to_pylist() == [
        {"st": {"a": 1, "b": 2}, "_pos": 0, "_spec_id": 0, "id": 7}
    ]
