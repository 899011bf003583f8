"""Several tables and views in one folder: no maintenance of one deletes a file of another.

Each way to share a folder meets each operation that deletes files. Creation avoids what it can see;
the ways that it would refuse are those that other programs, or tables of before, have.
"""

from __future__ import annotations

import os
import re
import shutil
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import Table, TableCatalog, load_catalog, load_table
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.errors import InvalidRequestError, NoSuchTableError, TableAlreadyExistsError
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.spec.views import SqlRepresentation
from iceberg_pyspark.sql_text.schema_text import parse_schema
from iceberg_pyspark.table.commits.create_table import create_namespace_if_absent
from iceberg_pyspark.table.commits.define_view import NewDefinition, create_view, with_views
from tests.support.table_integrity import table_problems

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})
OLD_S = 5 * 86_400


def catalog_of(folder: Path, name: str = "lake", type_: str = "sql") -> TableCatalog:
    uri = {"uri": f"sqlite:///{folder}/{name}.db"} if type_ == "sql" else {}
    catalog = load_catalog(name, type=type_, warehouse=str(folder / "w"), **uri)
    catalog.create_namespace("db", if_not_exists=True)
    return catalog


def new_table(catalog: TableCatalog, name: str, location: str | None = None) -> Table:
    """Create a table with a history, at a location that creation would refuse if others use it."""
    if location is None:
        return filled(catalog.create_table(name, "id BIGINT"))
    aside = catalog.create_table("db.aside", "id BIGINT")
    identifier = TableIdentifier(namespace=("db",), name=name.removeprefix("db."))
    metadata = replace(aside.metadata, location=location, table_uuid=str(uuid.uuid4()))
    catalog.drop_table("db.aside", purge=True)
    catalog.catalog.create_table(identifier, metadata)
    return filled(catalog.load_table(name))


def filled(table: Table) -> Table:
    for _ in range(2):
        table.append(ROWS)
    table.overwrite(ROWS)
    return table


def renamed_and_recreated(folder: Path) -> tuple[Table, list[Table]]:
    catalog = catalog_of(folder)
    other = new_table(catalog, "db.t")
    catalog.rename_table("db.t", "db.old")
    other = catalog.load_table("db.old")
    return new_table(catalog, "db.t", other.location), [other]


def renamed_and_recreated_twice(folder: Path) -> tuple[Table, list[Table]]:
    table, [first] = renamed_and_recreated(folder)
    catalog = catalog_of(folder)
    catalog.rename_table("db.t", "db.older")
    second = catalog.load_table("db.older")
    return new_table(catalog, "db.t", table.location), [first, second]


def the_renamed_one(folder: Path) -> tuple[Table, list[Table]]:
    table, [other] = renamed_and_recreated(folder)
    return other, [table]


def location_of_another(folder: Path) -> tuple[Table, list[Table]]:
    catalog = catalog_of(folder)
    other = new_table(catalog, "db.other")
    return new_table(catalog, "db.t", other.location), [other]


def of_another_catalog(folder: Path) -> tuple[Table, list[Table]]:
    other = new_table(catalog_of(folder), "db.t")
    return new_table(catalog_of(folder, "second"), "db.t", other.location), [other]


def copy_by_register(folder: Path) -> tuple[Table, list[Table]]:
    catalog = catalog_of(folder)
    other = new_table(catalog, "db.other")
    return catalog.register_table("db.t", other.loaded.metadata_location), [other]


def copy_that_went_on(folder: Path) -> tuple[Table, list[Table]]:
    table, [other] = copy_by_register(folder)
    return filled(table), [other]


def copy_of_one_commit(folder: Path) -> tuple[Table, list[Table]]:
    table, [other] = copy_by_register(folder)
    table.append(ROWS)
    return other, [table]


def copied_original(folder: Path) -> tuple[Table, list[Table]]:
    table, [other] = copy_that_went_on(folder)
    return other, [table]


def copy_in_another_catalog(folder: Path) -> tuple[Table, list[Table]]:
    other = new_table(catalog_of(folder), "db.other")
    catalog = catalog_of(folder, "second")
    table = catalog.register_table("db.t", other.loaded.metadata_location)
    return filled(table), [filled(other)]


def nested_in_another(folder: Path) -> tuple[Table, list[Table]]:
    catalog = catalog_of(folder)
    other = new_table(catalog, "db.other")
    return new_table(catalog, "db.t", f"{other.location}/data"), [other]


def with_another_nested(folder: Path) -> tuple[Table, list[Table]]:
    table, [other] = nested_in_another(folder)
    return other, [table]


def hadoop_over_sql(folder: Path) -> tuple[Table, list[Table]]:
    other = new_table(catalog_of(folder), "db.t")
    sql_folder = Path(other.location)
    aside = sql_folder.with_name("aside")
    sql_folder.rename(aside)
    table = new_table(catalog_of(folder, "files", "hadoop"), "db.t")
    shutil.copytree(aside, sql_folder, dirs_exist_ok=True)
    return table, [other]


def sql_over_hadoop(folder: Path) -> tuple[Table, list[Table]]:
    table, [other] = hadoop_over_sql(folder)
    return other, [table]


def path_over_sql(folder: Path) -> tuple[Table, list[Table]]:
    table, [other] = hadoop_over_sql(folder)
    return load_table(table.location), [other]


def registered_from_hadoop(folder: Path) -> tuple[Table, list[Table]]:
    other = new_table(catalog_of(folder, "files", "hadoop"), "db.t")
    catalog = catalog_of(folder)
    table = catalog.register_table("db.t", other.loaded.metadata_location)
    table.append(ROWS)
    return table, [other]


def hadoop_registered_in_sql(folder: Path) -> tuple[Table, list[Table]]:
    table, [other] = registered_from_hadoop(folder)
    return filled(other), [table]


WAYS: list[Callable[[Path], tuple[Table, list[Table]]]] = [
    renamed_and_recreated,
    renamed_and_recreated_twice,
    the_renamed_one,
    location_of_another,
    of_another_catalog,
    copy_by_register,
    copy_that_went_on,
    copy_of_one_commit,
    copied_original,
    copy_in_another_catalog,
    nested_in_another,
    with_another_nested,
    hadoop_over_sql,
    sql_over_hadoop,
    path_over_sql,
    registered_from_hadoop,
    hadoop_registered_in_sql,
]


def make_older(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            os.utime(file, (time.time() - OLD_S,) * 2)


def check_whole(tables: list[Table], states: list[Any], *, with_log: bool = True) -> None:
    for table, (metadata, rows) in zip(tables, states, strict=True):
        table.refresh()
        assert table.loaded.metadata == metadata
        problems = table_problems(table)
        assert [p for p in problems if with_log or not p.startswith("previous metadata")] == []
        assert table.scan().to_arrow().sort_by("id") == rows
        table.append(ROWS)


def states_of(tables: list[Table]) -> list[Any]:
    return [(t.refresh().loaded.metadata, t.scan().to_arrow().sort_by("id")) for t in tables]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("operation", ["orphans", "expire", "expire then orphans", "purge"])
def test_no_table_loses_a_file_to_another(
    tmp_path: Path, way: Callable[[Path], tuple[Table, list[Table]]], operation: str
) -> None:
    table, others = way(tmp_path)
    stray = Path(table.location, "z", "stray.parquet")
    stray.parent.mkdir(exist_ok=True, parents=True)
    stray.write_bytes(b"nobody's")
    make_older(tmp_path / "w")
    before = states_of(others)
    table.refresh()
    if operation.startswith("expire"):
        table.maintenance().expire_snapshots(older_than=int(time.time() * 1000) + 1)
        make_older(tmp_path / "w")
    if operation.endswith("orphans"):
        table.maintenance().remove_orphan_files()
        assert not stray.exists()
        assert table_problems(table.refresh()) == []
    if operation == "purge":
        catalog = TableCatalog(table.catalog)
        catalog.drop_table(_name(table.loaded.identifier), purge=True)
    # a drop of a table in a `hadoop` catalog deletes its versions, which the copy's log names
    check_whole(others, before, with_log=operation != "purge")


def _name(identifier: TableIdentifier) -> str:
    return identifier.name if not identifier.namespace else str(identifier)


VIEW = NewDefinition(
    schema=parse_schema("id BIGINT"),
    query=SqlRepresentation(sql="SELECT id FROM db.other", dialect="spark"),
    default_namespace=("db",),
)
T = TableIdentifier(namespace=("db",), name="t")


@pytest.mark.parametrize("operation", ["orphans", "purge"])
def test_a_view_in_the_folder_keeps_its_metadata(tmp_path: Path, operation: str) -> None:
    """The view is in another catalog, so that only the listing tells of it."""
    table = new_table(catalog_of(tmp_path), "db.t")
    second = catalog_of(tmp_path, "second").catalog
    create_namespace_if_absent(second, ("db",))
    views = with_views(second)
    metadata = create_view(views, T, VIEW).metadata
    views.drop_view(T)
    views.create_view(T, replace(metadata, location=table.location))
    make_older(tmp_path / "w")
    if operation == "orphans":
        table.maintenance().remove_orphan_files()
    else:
        TableCatalog(table.catalog).drop_table("db.t", purge=True)
    assert views.load_view(T).metadata.view_uuid == metadata.view_uuid


@pytest.mark.parametrize("is_there", [True, False])
def test_no_file_is_removed_if_another_table_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_there: bool
) -> None:
    table, [other] = renamed_and_recreated(tmp_path)
    file = Path(other.loaded.metadata_location)
    own = {
        m.manifest_path
        for s in table.metadata.snapshots
        for m in read_snapshot_manifests(table.io, s)
    }
    if is_there:
        file.write_bytes(b"{")
    else:
        for manifest in Path(table.location, "metadata").glob("*-m0.avro"):
            if str(manifest) not in own:
                manifest.unlink()
    make_older(tmp_path / "w")
    before = {f for f in (tmp_path / "w").rglob("*") if f.is_file()}
    whose = "unknown" if is_there else other.metadata.table_uuid
    text = rf"{file}, which is in its folder, .*\(UUID {whose}\).*no file is deleted"
    with pytest.raises(InvalidRequestError, match=text):
        table.maintenance().remove_orphan_files()
    catalog = TableCatalog(table.catalog)
    with pytest.raises(InvalidRequestError, match=rf"was not dropped.*{text}"):
        catalog.drop_table("db.t", purge=True)
    assert before == {f for f in (tmp_path / "w").rglob("*") if f.is_file()}
    table.maintenance().expire_snapshots(older_than=int(time.time() * 1000) + 1)
    assert before <= {f for f in (tmp_path / "w").rglob("*") if f.is_file()}
    assert str(file) in caplog.text
    assert catalog.table_exists("db.t")


@pytest.mark.parametrize("type_", ["sql", "memory"])
def test_a_new_table_or_view_gets_a_folder_without_files(tmp_path: Path, type_: str) -> None:
    catalog = catalog_of(tmp_path, type_=type_)
    first = new_table(catalog, "db.t")
    assert first.location == f"{tmp_path}/w/db/t"
    catalog.rename_table("db.t", "db.old")
    second = catalog.create_table("db.t", "id BIGINT")
    assert re.fullmatch(f"{tmp_path}/w/db/t-[0-9a-f]{{32}}", second.location)
    filled(second)
    catalog.drop_table("db.t", purge=True)
    assert not [f for f in Path(second.location).rglob("*") if f.is_file()]
    views = with_views(catalog.catalog)
    view = create_view(views, T, VIEW).metadata
    assert re.fullmatch(f"{tmp_path}/w/db/t-[0-9a-f]{{32}}", view.location)
    views.drop_view(T)
    elsewhere = {"write.metadata.path": f"{tmp_path}/w/metadata/t"}
    third = catalog.create_table("db.t", "id BIGINT", properties=elsewhere)
    filled(third)
    assert third.location not in (first.location, second.location, view.location)
    catalog.drop_table("db.t", purge=True)
    assert not list(Path(third.location).rglob("*.parquet"))
    catalog.drop_table("db.old", purge=True)
    assert catalog.create_table("db.t", "id BIGINT").location == first.location


def test_a_given_location_of_another_table_or_view_is_refused(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path)
    views = with_views(catalog.catalog)
    view_id = replace(T, name="v")
    create_namespace_if_absent(catalog.catalog, ("db",))
    others = [
        new_table(catalog, "db.t").location,
        create_view(views, view_id, VIEW).metadata.location,
        new_table(catalog_of(tmp_path, "files", "hadoop"), "db.in_files").location,
    ]
    for location in others:
        with pytest.raises(InvalidRequestError, match=rf"{location}/metadata/.*another location"):
            catalog.create_table("db.new", "id BIGINT", location=location)
        with pytest.raises(InvalidRequestError, match=rf"{location}/metadata/.*another location"):
            create_view(views, replace(T, name="new"), replace(VIEW, location=location))
    for location in others[:2]:
        name = location.rpartition("/")[2]
        for files, new in (
            (catalog_of(tmp_path, "f", "hadoop"), f"db.{name}"),
            (catalog, location),
        ):
            with pytest.raises(TableAlreadyExistsError, match="holds a catalog's table or view"):
                files.create_table(new, "id BIGINT")
    free = tmp_path / "w/db/free"
    Path(free, "data").mkdir(parents=True)
    Path(free, "data/rows.parquet").write_bytes(b"rows")
    assert catalog.create_table("db.new", "id BIGINT", location=str(free)).location == str(free)
    with pytest.raises(NoSuchTableError):
        catalog.load_table("db.newer")


def test_a_dropped_table_of_a_hadoop_catalog_can_be_created_again(tmp_path: Path) -> None:
    """The copy of its metadata that the drop leaves keeps its files, to be registered."""
    catalog = catalog_of(tmp_path, "files", "hadoop")
    dropped = new_table(catalog, "db.t")
    catalog.drop_table("db.t")
    again = new_table(catalog, "db.t")
    [copy] = Path(again.location, "metadata").glob("dropped-*")
    make_older(tmp_path / "w")
    again.maintenance().remove_orphan_files()
    registered = catalog_of(tmp_path).register_table("db.r", str(copy))
    assert registered.scan().to_arrow() == again.scan().to_arrow()
    assert registered.metadata.table_uuid == dropped.metadata.table_uuid
