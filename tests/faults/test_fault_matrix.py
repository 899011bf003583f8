"""Every operation, stopped at every call of storage, database and clock, on every catalog.

Afterwards the table is intact, is in the old or the new state, and accepts the next writer; an
acknowledged change is in it, a refused change is not. `make test` tries a few points of each
operation on one or two kinds of catalogs with one kind of error, `make nightly` tries all points on
all catalogs with all kinds of errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.changes.new_table import NewTable, new_table_metadata, replace_table
from iceberg_pyspark.changes.removals import RemoveAll
from iceberg_pyspark.changes.snapshot_changes import AppendFiles, OverwriteFiles
from iceberg_pyspark.sql_text.schema_text import parse_schema
from iceberg_pyspark.table.commits.clock import SYSTEM_CLOCK
from iceberg_pyspark.table.commits.commit import CommitStep, MetadataStep, commit_steps
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.commit_snapshot import SnapshotStep
from iceberg_pyspark.table.commits.create_table import create_table, create_table_with
from iceberg_pyspark.table.commits.new_data import write_rows
from iceberg_pyspark.table.commits.written_files import WrittenFiles
from iceberg_pyspark.table.maintenance.removal.purge_table import purge_table
from tests.faults.matrix import (
    HIVE,
    PROPERTIES,
    Case,
    Lake,
    Prepare,
    create,
    prepare_lake,
    try_all_points,
)
from tests.support.catalog_contract import new_name
from tests.support.deleted_rows import delete_keys, list_positions
from tests.support.fault_points import (
    LAYERS,
    FaultPoint,
    fail_databases_and_clocks,
    fail_metastores,
)
from tests.support.row_commits import COLUMNS, SMALL_ROOTS, RowCommitter

ROWS = pa.table(
    {
        "id": pa.array([7, 8, 9], pa.int64()),
        "p": pa.array([0, 1, 2], pa.int32()),
        "v": ["v7", "v8", "v9"],
    }
)
ALL_KINDS = ("sql", "hadoop", "path", "memory", *HIVE)
WITH_ROOTS = ("sql", "memory")
"""Catalogs for the version 4 cases: one on disk, one in memory."""
UPSERTED = pa.table(
    {
        "id": pa.array([7, 10**6, 10**6 + 1], pa.int64()),
        "p": pa.array([0, 0, 1], pa.int32()),
        "v": ["v7", "new", "new"],
    }
)
"""A new row, and rows of the base table."""
FAR = 4_000_000_000_000
"""A timestamp in the future, in milliseconds."""


def base(lake: Lake) -> None:
    """Create a table with some commits, deleted rows, a branch, a tag and a staged snapshot."""
    create(lake)
    catalog, io = lake.open()
    committer = RowCommitter(catalog, lake.identifier, 1, io=io)
    for operation in ("append", "append", "delete"):
        committer.run(operation)
    table = lake.table()
    table.manage_snapshots().create_branch("audit").create_tag("first").commit()
    table.append(ROWS.slice(0, 1), branch="audit")


def merge_on_read(lake: Lake) -> None:
    base(lake)
    modes = {f"write.{o}.mode": "merge-on-read" for o in ("delete", "update", "merge")}
    lake.table().update_properties().set(modes).commit()


def base_and_another(lake: Lake) -> None:
    base(lake)
    lake.table().append(ROWS.slice(1))


def with_roots(lake: Lake) -> None:
    """Create the base table in version 4: with older leaves, new leaves, and rows in the root."""
    base(lake)
    table = lake.table()
    table.update_properties().set({"format-version": "4", **SMALL_ROOTS}).commit()
    catalog, io = lake.open()
    committer = RowCommitter(catalog, lake.identifier, 1, io=io)
    committer.adopt()
    for operation in ("append", "delete", "append"):
        committer.run(operation)


def with_roots_and_a_branch(lake: Lake) -> None:
    with_roots(lake)
    table = lake.table()
    table.append(ROWS.slice(1), branch="audit")
    table.manage_snapshots().create_branch("more").commit()
    table.append(ROWS.slice(0, 1), branch="more")
    lake.table().append(ROWS.slice(1))


def many_manifests(lake: Lake) -> None:
    base(lake)
    lake.table().update_properties().set({"commit.manifest-merge.enabled": "false"}).commit()
    for number in range(2):
        lake.table().append(ROWS.slice(number, 1))


def base_and_a_file(lake: Lake) -> None:
    """Create the base table, and a Parquet file that was written without the table."""
    base(lake)
    table = lake.table()
    file = BytesIO()
    pq.write_table(ROWS.slice(0, 1).select(["id", "v"]), file)
    table.io.create_exclusive(f"{table.location}/added/p=0/x.parquet", file.getvalue())


def unpartitioned(lake: Lake) -> Table:
    """Create an unpartitioned version 2 table with one data file."""
    catalog, io = lake.open()
    new = NewTable(schema=parse_schema(COLUMNS), properties={**PROPERTIES, "format-version": "2"})
    table = Table(catalog, create_table(catalog, lake.identifier, new), io=io)
    table.append(ROWS)
    return table


def position_deletes(lake: Lake) -> None:
    """Create a table with a position delete file and upgrade it to version 3."""
    table = unpartitioned(lake)
    [task] = table.scan().plan_files()
    list_positions(table, pa.table({"file_path": [task.file_path], "pos": [1]}), {})
    table.update_properties().set({"format-version": "3"}).commit()


def equality_deletes(lake: Lake) -> None:
    """Create a table with an equality delete and a position delete file."""
    position_deletes(lake)
    delete_keys(lake.table(), "id", [7])


def change(act: Callable[[Table], object]) -> Callable[[Lake], Callable[[], object]]:
    """Return an operation that calls the table's own API."""
    return lambda lake: partial(act, lake.table())


def rows(operation: str) -> Callable[[Lake], Callable[[], object]]:
    def begin(lake: Lake) -> Callable[[], object]:
        catalog, io = lake.open()
        committer = RowCommitter(catalog, lake.identifier, 1, io=io)
        committer.adopt()
        return partial(committer.run, operation)

    return begin


def new_table(lake: Lake) -> Callable[[], object]:
    return partial(create, lake, "new")


def table_as_select(lake: Lake) -> Callable[[], object]:
    catalog, io = lake.open()
    identifier = lake.identifier_of("new")
    metadata = new_table_metadata(
        parse_schema(COLUMNS),
        None,
        None,
        catalog.default_table_location(identifier),
        PROPERTIES,
        table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
        now_ms=1_700_000_000_000,
    )

    def run() -> None:
        write_id, files = write_rows(identifier, metadata, io, ROWS)
        with WrittenFiles(io, files) as written:
            step = SnapshotStep(
                AppendFiles(data_files=tuple(files)),
                io,
                CommitOptions(write_id=write_id),
                table_uuid=metadata.table_uuid,
                clock=SYSTEM_CLOCK,
            )
            create_table_with(catalog, identifier, metadata, [step], written_files=written)

    return run


def replaced(lake: Lake) -> Callable[[], object]:
    table = lake.table()
    schema = parse_schema("id BIGINT, other STRING")

    def run() -> None:
        io, metadata = table.io, table.metadata
        steps: list[CommitStep] = [
            MetadataStep(lambda m: replace_table(m, schema, None, location=None, properties={})),
            SnapshotStep(
                OverwriteFiles(removal=RemoveAll(), data_files=()),
                io,
                table_uuid=metadata.table_uuid,
                clock=SYSTEM_CLOCK,
            ),
        ]
        commit_steps(table.catalog, table.loaded, steps)

    return run


def transaction(table: Table) -> None:
    with table.transaction() as t:
        t.update_schema().add_column("extra", "int").commit()
        t.append(ROWS)
        t.update_properties().set({"k": "v"}).commit()


def audit_snapshot(table: Table) -> int:
    return table.refs["audit"].snapshot_id


def purged(lake: Lake) -> Callable[[], object]:
    catalog, io = lake.open()
    return lambda: purge_table(catalog, lake.identifier, io=io)


def dropped(lake: Lake) -> Callable[[], object]:
    catalog, _ = lake.open()
    return lambda: catalog.drop_table(lake.identifier)


def renamed(lake: Lake) -> Callable[[], object]:
    catalog, _ = lake.open()
    return lambda: catalog.rename_table(lake.identifier, lake.identifier_of("new"))


def registered(lake: Lake) -> Callable[[], object]:
    catalog, _ = lake.open()
    return lambda: catalog.register_table(
        lake.identifier_of("new"), lake.table().loaded.metadata_location
    )


CASES = {
    "create": Case(new_table, name="new", kinds=ALL_KINDS),
    "create-as-select": Case(table_as_select, name="new", kinds=ALL_KINDS),
    "append": Case(change(lambda t: t.append(ROWS)), kinds=ALL_KINDS),
    "append-to-branch": Case(change(lambda t: t.append(ROWS, branch="audit"))),
    "overwrite": Case(change(lambda t: t.overwrite(ROWS))),
    "overwrite-partitions": Case(change(lambda t: t.overwrite(ROWS, dynamic=True))),
    "delete-files": Case(change(lambda t: t.delete("p = 1"))),
    "delete-rows": Case(rows("delete"), kinds=ALL_KINDS),
    "update-rows": Case(rows("update")),
    "rewrite-rows": Case(rows("replace_files")),
    "delete-where": Case(
        change(lambda t: t.delete(f"id <= {10**6}")), prepare=merge_on_read, kinds=ALL_KINDS
    ),
    "rewrite-where": Case(change(lambda t: t.delete(f"id <= {10**6}"))),
    "update-where": Case(
        change(lambda t: t.update({"v": "'new'"}, f"id <= {10**6}")), prepare=merge_on_read
    ),
    "overwrite-where": Case(
        change(lambda t: t.overwrite(ROWS, f"id <= {10**6}")), prepare=merge_on_read
    ),
    "rewrite-overwritten": Case(change(lambda t: t.overwrite(ROWS, f"id <= {10**6}"))),
    "upsert": Case(
        change(lambda t: t.upsert(UPSERTED, "id")), prepare=merge_on_read, kinds=ALL_KINDS
    ),
    "rewrite-upserted": Case(change(lambda t: t.upsert(UPSERTED, "id"))),
    "compact": Case(rows("compact")),
    "transaction": Case(change(transaction), kinds=ALL_KINDS),
    "replace": Case(replaced, kinds=ALL_KINDS),
    "add-files": Case(
        change(lambda t: t.add_files(f"{t.location}/added")), prepare=base_and_a_file
    ),
    "rewrite-data-files": Case(
        change(lambda t: t.maintenance().rewrite_data_files(options={"rewrite-all": True}))
    ),
    "create-tag": Case(change(lambda t: t.manage_snapshots().create_tag("now").commit())),
    "fast-forward": Case(
        change(lambda t: t.manage_snapshots().fast_forward("main", "audit").commit())
    ),
    "cherry-pick": Case(
        change(lambda t: t.manage_snapshots().cherry_pick(audit_snapshot(t)).commit()),
        prepare=base_and_another,
    ),
    "properties": Case(
        change(lambda t: t.update_properties().set({"k": "v"}).commit()), kinds=ALL_KINDS
    ),
    "schema": Case(change(lambda t: t.update_schema().add_column("extra", "int").commit())),
    "partitioning": Case(change(lambda t: t.update_spec().add_field("v").commit())),
    "expire": Case(
        change(lambda t: t.maintenance().expire_snapshots(older_than=FAR)),
        prepare=base_and_another,
        kinds=ALL_KINDS,
    ),
    "rewrite-manifests": Case(
        change(lambda t: t.maintenance().rewrite_manifests()), prepare=many_manifests
    ),
    "rewrite-position-deletes": Case(
        change(lambda t: t.maintenance().rewrite_position_delete_files()),
        prepare=position_deletes,
    ),
    "rewrite-equality-deletes": Case(
        change(lambda t: t.maintenance().rewrite_equality_deletes()), prepare=equality_deletes
    ),
    "roots-upgrade": Case(
        change(
            lambda t: t.update_properties().set({"format-version": "4", **SMALL_ROOTS}).commit()
        ),
        kinds=WITH_ROOTS,
    ),
    "roots-append": Case(change(lambda t: t.append(ROWS)), prepare=with_roots, kinds=WITH_ROOTS),
    "roots-delete-rows": Case(rows("delete"), prepare=with_roots, kinds=WITH_ROOTS),
    "roots-rewrite-rows": Case(rows("replace_files"), prepare=with_roots, kinds=WITH_ROOTS),
    "roots-delete-files": Case(
        change(lambda t: t.delete("p = 1")), prepare=with_roots, kinds=WITH_ROOTS
    ),
    "roots-cherry-pick": Case(
        change(lambda t: t.manage_snapshots().cherry_pick(t.refs["more"].snapshot_id).commit()),
        prepare=with_roots_and_a_branch,
        kinds=WITH_ROOTS,
    ),
    "roots-expire": Case(
        change(lambda t: t.maintenance().expire_snapshots(older_than=FAR)),
        prepare=with_roots_and_a_branch,
        kinds=WITH_ROOTS,
    ),
    "roots-rewrite-manifests": Case(
        change(lambda t: t.maintenance().rewrite_manifests()),
        prepare=with_roots,
        kinds=WITH_ROOTS,
    ),
    "roots-purge": Case(
        purged, prepare=with_roots, kinds=WITH_ROOTS, is_commit=False, cuts_log=True
    ),
    "drop": Case(dropped, kinds=("sql", "hadoop", "path", *HIVE), cuts_log=True),
    "purge": Case(purged, kinds=ALL_KINDS, is_commit=False, cuts_log=True),
    "rename": Case(renamed, name="new", kinds=("sql", *HIVE)),
    "register": Case(registered, name="new", kinds=("sql", "memory", *HIVE)),
}


@pytest.fixture(scope="module")
def faults() -> Iterator[FaultPoint]:
    point = FaultPoint()
    with pytest.MonkeyPatch.context() as patch:
        fail_databases_and_clocks(patch, point)
        fail_metastores(patch, point)
        yield point


@pytest.fixture(scope="module")
def lake_of(
    faults: FaultPoint, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Callable[[str, Prepare], Lake]:
    """Return a function that prepares a catalog of a kind, once for all operations on it."""

    @cache
    def prepared_lake(kind: str, prepare: Prepare) -> Lake:
        lake = Lake(kind, tmp_path_factory.mktemp("faults"), faults)
        if kind in HIVE:
            lake.uri, lake.database = request.getfixturevalue("hive_uri"), new_name("db")
        prepare_lake(lake, prepare)
        return lake

    return prepared_lake


def cases() -> Iterator[object]:
    """Yield all cases; each operation is tried always on one kind of catalog without a server.

    The kind is the next one for each next operation, so that all kinds come in turns.
    """
    for turn, (name, case) in enumerate(CASES.items()):
        kinds = [kind for kind in case.kinds if kind not in HIVE]
        tried = kinds[turn % len(kinds)]
        for kind in case.kinds:
            yield pytest.param(kind, name, marks=() if kind == tried else pytest.mark.nightly)


@pytest.mark.parametrize(("kind", "name"), [*cases()])
def test_an_operation_stopped_anywhere(
    kind: str, name: str, faults: FaultPoint, lake_of: Callable[[str, Prepare], Lake]
) -> None:
    case = CASES[name]
    faults.layers = ["metastore"] if kind in HIVE else LAYERS
    try_all_points(lake_of(kind, case.prepare or base), name, case)
