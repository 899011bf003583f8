"""Several tables and views in one folder: no maintenance of one deletes a file of another.

Each way to share a folder meets each operation that deletes files. Creation avoids what it can see;
the ways that it would refuse are those that other programs, or tables of before, have.
"""

from __future__ import annotations

import os
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
from iceberg_pyspark.errors import InvalidRequestError, TableAlreadyExistsError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import NestedField, PrimitiveType
from iceberg_pyspark.spec.views import SqlRepresentation
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.table.changes.create_table import create_namespace_if_absent
from iceberg_pyspark.table.changes.define_view import NewDefinition, create_view, with_views
from tests.support.table_integrity import table_problems

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})
OLD_S = 5 * 86_400


def catalog_of(folder: Path, name: str = "lake", type_: str = "sql") -> TableCatalog:
    uri = {"uri": f"sqlite:///{folder}/{name}.db"} if type_ == "sql" else {}
    return load_catalog(name, type=type_, warehouse=str(folder / "w"), **uri)


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
