"""Processes killed at the steps of a commit of rows leave the table's old or new state.

`make test` kills a process at every third step, `make nightly` at each.
"""

from __future__ import annotations

import csv
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from unittest.mock import ANY

import pytest

from iceberg_pyspark import Table, TableCatalog
from iceberg_pyspark.catalogs.catalog import Catalog, TableIdentifier
from iceberg_pyspark.errors import InvalidRequestError, TableAlreadyExistsError
from iceberg_pyspark.table.maintenance.rewrites.rewrite_data_files import RewrittenDataFiles
from tests.amounts import FULL_WORK
from tests.support.catalog_processes import EVENTS, KILLED, create_rows_table, die_at
from tests.support.parameters import cases
from tests.support.row_commits import (
    BY_PARTITION,
    REGISTERED,
    RowCommitter,
    copy_location,
    incoming_folder,
    staging_folder,
)
from tests.support.table_integrity import table_problems, unreferenced_files

Rows = set[tuple[int, str]]
EVERY = 1 if FULL_WORK else 3
"""An odd number, because there is a step before each write and one after it."""
EXPIRIES = ("expire_snapshots", "expire_and_clean_metadata")
TWO_COMMITS = ("rewrite_data_files", "rewrite_and_remove_dangling_deletes")
STATISTICS = ("compute_table_stats", "compute_partition_stats")
FAST = [
    ("sql", "update", 3),
    ("hadoop", "delete", 3),
    ("sql", "rewrite_data_files", 3),
    # Version 2, because version 3 has deletion vectors, which need no rewrite.
    ("sql", "rewrite_deletes", 2),
    ("sql", "add_files", 3),
]
NIGHTLY = [
    *[("sql", op, 3) for op in ("append", "replace_files", "delete", "compact")],
    *[("sql", op, 3) for op in ("rewrite_manifests", "rewrite_equality_deletes", *EXPIRIES)],
    *[("sql", op, 3) for op in (*STATISTICS, "remove_orphan_files", TWO_COMMITS[1])],
    ("sql", "rewrite_equality_deletes", 2),
    *[("sql", op, 4) for op in ("append", "delete", "compact", "add_files", "replace_files")],
    *[("sql", op, 4) for op in ("rewrite_data_files", "rewrite_manifests", "expire_snapshots")],
    *[("hadoop", op, 3) for op in ("append", "replace_files", "rewrite_manifests")],
    *[("hadoop", op, 3) for op in ("expire_snapshots", "rewrite_data_files")],
    *[("hadoop", op, 2) for op in ("add_files", "rewrite_deletes")],
    ("hadoop", "replace_files", 4),
]


@cases(("kind", "operation", "version"), fast=FAST, nightly=NIGHTLY)
def test_a_killed_commit_is_done_or_has_not_begun(
    kind: str, operation: str, version: int, tmp_path: Path
) -> None:
    properties = {
        "commit.manifest.min-count-to-merge": "3",
        "commit.manifest-merge.enabled": str(operation != "rewrite_manifests").lower(),
    }
    catalog = create_rows_table(kind, tmp_path, version, properties)
    # After a compaction, the bystander's rows share files with the victim's.
    bystander = RowCommitter(catalog, EVENTS, KILLED + 1)
    victim = RowCommitter(catalog, EVENTS, KILLED)
    for client in (victim, bystander, victim):
        client.run("append")
    bystander.run("compact")
    bystander.run("delete")
    prepared = {
        "rewrite_deletes": "delete",
        "rewrite_equality_deletes": "delete_keys",
        "rewrite_and_remove_dangling_deletes": "delete_keys",
        "expire_and_clean_metadata": "replace_schema",
    }
    if prepared.get(operation) == "delete_keys":
        bystander.run("delete_keys")
    outcomes = set()
    commits, schemas_removed = set[int](), set[int]()
    incoming = Path(incoming_folder(victim.table.location))
    assert table_problems(Table(catalog, catalog.load_table(EVENTS))) == []
    for step in range(1, 200, EVERY):
        if operation == "remove_orphan_files":
            for number in range(4):
                Path(tmp_path, f"warehouse/db/events/data/orphan-{number}").touch()
        before, rows = catalog.load_table(EVENTS), rows_of(catalog)
        sources = content_of(incoming)
        code = die_at(kind, str(tmp_path), step, operation)
        after = catalog.load_table(EVENTS)
        assert table_problems(Table(catalog, after)) == []
        if after.metadata == before.metadata:
            outcomes.add("old")
            assert rows_of(catalog) == rows
        else:
            outcomes.add("new")
            new_snapshots = len(after.metadata.snapshots) - len(before.metadata.snapshots)
            if operation in EXPIRIES:
                assert new_snapshots < 0
            else:
                # A rewrite with partial progress makes a commit for each partition, and the removal
                # of dangling deletes is a second commit.
                most = 2 if operation in TWO_COMMITS else 1
                assert (0 if operation in STATISTICS else 1) <= new_snapshots <= most
            assert is_changed_by(operation, rows, rows_of(catalog))
            commits.add(new_snapshots)
            schemas_removed.add(len(before.metadata.schemas) - len(after.metadata.schemas))
        if operation == "add_files":
            assert content_of(incoming).items() > sources.items()
            [folder] = {f.parents[1] for f in content_of(incoming).keys() - sources.keys()}
            add_again(catalog, folder, is_added=after.metadata != before.metadata)
            assert is_changed_by(operation, rows, rows_of(catalog))
        # The clients continue on the state that the killed process left.
        for client in (bystander, victim):
            client.adopt()
        (victim if len(victim.rows) < 4 else bystander).run("append")
        if operation in prepared:
            bystander.run(prepared[operation])
        if code == 0:
            break
        assert code == -signal.SIGKILL
    else:
        pytest.fail("the commit did not come to its end in 200 steps")
    assert step > 5
    assert outcomes == ({"old"} if operation == "remove_orphan_files" else {"old", "new"})
    if operation == "rewrite_and_remove_dangling_deletes":
        # Some processes died between the two commits.
        assert commits == {1, 2}
    if operation == "expire_and_clean_metadata" and EVERY == 1:
        assert max(schemas_removed) > 0
    rows, sources = rows_of(catalog), content_of(incoming)
    table = Table(catalog, catalog.load_table(EVENTS))
    # No process writes any more, so unreferenced files come from killed processes.
    table.maintenance().remove_orphan_files(older_than=time.time_ns() // 10**6 + 1000, force=True)
    assert unreferenced_files(table) == set()
    assert table_problems(table) == []
    assert rows_of(catalog) == rows
    assert content_of(incoming) == sources


@cases("version", fast=[3], nightly=[2, 4])
def test_a_killed_copy_leaves_the_table_and_no_list(version: int, tmp_path: Path) -> None:
    catalog = create_rows_table("sql", tmp_path, version)
    client = RowCommitter(catalog, EVENTS, KILLED)
    for operation in ("append", "append", "delete"):
        client.run(operation)
    loaded, rows = catalog.load_table(EVENTS), rows_of(catalog)
    location = loaded.metadata.location.removeprefix("file:")
    before = content_of(Path(location))
    stagings = set[Path]()
    for step in range(1, 200, EVERY):
        code = die_at("sql", str(tmp_path), step, "rewrite_table_path")
        assert content_of(Path(location)) == before
        assert catalog.load_table(EVENTS).metadata == loaded.metadata
        new = set(Path(staging_folder(location)).glob("*")) - stagings
        stagings |= new
        if code == 0:
            break
        assert code == -signal.SIGKILL
        # The list is written last, so nobody copies a part of the table.
        assert not any((staging / "file-list").exists() for staging in new)
    else:
        pytest.fail("the rewrite did not come to its end in 200 steps")
    assert step > 5
    for source, target in copies_of(new.pop() / "file-list"):
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    newest = Path(copy_location(location), "metadata", Path(loaded.metadata_location).name)
    copy = TableCatalog(catalog).register_table("db.copied", str(newest))
    assert table_problems(copy) == []
    assert rows_of(catalog, TableIdentifier(namespace=("db",), name="copied")) == rows


def test_a_killed_registration_is_done_or_has_not_begun(tmp_path: Path) -> None:
    catalog = create_rows_table("sql", tmp_path)
    client = RowCommitter(catalog, EVENTS, KILLED)
    for operation in ("append", "delete"):
        client.run(operation)
    loaded, rows = catalog.load_table(EVENTS), rows_of(catalog)
    identifier = REGISTERED
    location = Path(loaded.metadata.location.removeprefix("file:"))
    before = content_of(location)
    outcomes = set()
    for step in range(1, 50):
        code = die_at("sql", str(tmp_path), step, "register")
        assert catalog.load_table(EVENTS) == loaded
        assert content_of(location) == before
        if catalog.table_exists(identifier):
            outcomes.add("new")
            with pytest.raises(TableAlreadyExistsError):
                client.run("register")
        else:
            outcomes.add("old")
            client.run("register")
        registered = catalog.load_table(identifier)
        assert registered.metadata_location == loaded.metadata_location
        assert rows_of(catalog, identifier) == rows
        assert catalog.drop_table(identifier)
        if code == 0:
            break
        assert code == -signal.SIGKILL
    else:
        pytest.fail("the registration did not come to its end in 50 steps")
    assert outcomes == {"old", "new"}


def test_killed_rewrite_resumes(tmp_path: Path) -> None:
    """With partial progress, committed file groups are not rewritten a second time."""
    catalog = create_rows_table("sql", tmp_path, partitioned_by=["truncate(4, id)"])
    client = RowCommitter(catalog, EVENTS, KILLED)
    for _ in range(8):
        client.run("append")
    rows, partitions = rows_of(catalog), files_by_partition(catalog)
    assert min(partitions.values()) > 1, partitions
    for step in range(20, 80, 10):
        assert die_at("sql", str(tmp_path), step, "rewrite_small_files") == -signal.SIGKILL
        remainder = {p: count for p, count in files_by_partition(catalog).items() if count > 1}
        if remainder != partitions:
            break
    assert 0 < len(remainder) < len(partitions)
    assert {p: count for p, count in partitions.items() if p in remainder} == remainder
    maintenance = Table(catalog, catalog.load_table(EVENTS)).maintenance()
    assert maintenance.rewrite_data_files(options=BY_PARTITION) == RewrittenDataFiles(
        rewritten_data_files_count=sum(remainder.values()),
        added_data_files_count=len(remainder),
        rewritten_bytes_count=ANY,
        file_group_count=len(remainder),
    )
    assert rows_of(catalog) == rows
    assert set(files_by_partition(catalog).values()) == {1}
    assert maintenance.rewrite_data_files(options=BY_PARTITION) == RewrittenDataFiles()
    maintenance.remove_orphan_files(older_than=time.time_ns() // 10**6 + 1000, force=True)
    table = Table(catalog, catalog.load_table(EVENTS))
    assert unreferenced_files(table) == set()
    assert table_problems(table) == []


def files_by_partition(catalog: Catalog) -> dict[tuple[object, ...], int]:
    tasks = Table(catalog, catalog.load_table(EVENTS)).scan().plan_files()
    return dict(Counter(task.partition for task in tasks))


def content_of(folder: Path) -> dict[Path, bytes]:
    return {f: f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def copies_of(file_list: Path) -> list[list[str]]:
    with file_list.open(newline="") as lines:
        return [[p.removeprefix("file:") for p in line] for line in csv.reader(lines)]


def add_again(catalog: Catalog, folder: Path, *, is_added: bool) -> None:
    """Run an import again whose process was killed, as its user does; refused if it was done."""
    table = Table(catalog, catalog.load_table(EVENTS))
    if is_added:
        with pytest.raises(InvalidRequestError, match="already"):
            table.add_files(folder.as_uri())
    else:
        assert table.add_files(folder.as_uri()).added_files_count == len(content_of(folder))


def rows_of(catalog: Catalog, identifier: TableIdentifier = EVENTS) -> Rows:
    table = Table(catalog, catalog.load_table(identifier))
    scanned_rows = table.scan(columns=["id", "v"]).to_arrow().to_pylist()
    rows = {(r["id"], r["v"]) for r in scanned_rows}
    assert len({id_ for id_, _ in rows}) == len(scanned_rows), "a row occurs twice"
    return rows


def is_changed_by(operation: str, before: Rows, after: Rows) -> bool:
    """Return whether only the client's own rows changed, as the complete operation does it."""
    others = {r for r in before ^ after if r[0] // 10**6 != KILLED}
    removed, new = {i for i, _ in before - after}, {i for i, _ in after - before}
    expected = {
        "append": not removed and len(new) == 3,
        "add_files": not removed and len(new) == 3,
        "delete": bool(removed) and not new,
        "update": bool(removed) and removed == new,
        "replace_files": bool(removed) and len(removed - new) == 1 and not new - removed,
    }
    return not others and expected.get(operation, not removed and not new)
