"""SQLite catalogs that others use, and read-only SQLite catalogs."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import load_catalog
from iceberg_pyspark.catalogs.sql.dialects import open_sqlite_file
from iceberg_pyspark.errors import CatalogError, CatalogUnavailableError
from iceberg_pyspark.table.table_catalog import TableCatalog
from tests.support.sql_catalogs import create_v0_tables, execute, rows

ReadOnly = Callable[[], None]


def opened(folder: Path) -> TableCatalog:
    uri = f"sqlite:///{folder}/catalog.db"
    return load_catalog("lake", type="sql", uri=uri, warehouse=f"{folder}/warehouse")


def create_table(folder: Path) -> None:
    catalog = opened(folder)
    catalog.create_namespace("db")
    catalog.create_table("db.t", "id BIGINT")


def journal_mode(folder: Path) -> object:
    return rows(folder / "catalog.db", "PRAGMA journal_mode")[0][0]


def test_a_database_of_ours_has_a_log(tmp_path: Path) -> None:
    create_table(tmp_path)
    assert journal_mode(tmp_path) == "wal"


def test_another_programs_database_stays_as_it_is(tmp_path: Path) -> None:
    create_v0_tables(tmp_path / "catalog.db")
    create_table(tmp_path)
    assert journal_mode(tmp_path) == "delete"
    assert opened(tmp_path).list_tables("db") == ["db.t"]


def test_a_database_with_other_tables_than_a_catalogs_stays_as_it_is(tmp_path: Path) -> None:
    execute(tmp_path / "catalog.db", "CREATE TABLE notes (text TEXT)")
    create_table(tmp_path)
    assert journal_mode(tmp_path) == "delete"


def test_of_many_who_begin_a_database_all_find_its_log(tmp_path: Path) -> None:
    def begin(_: int) -> object:
        with contextlib.closing(open_sqlite_file(str(tmp_path / "new.db"), {"timeout": 10})) as c:
            return c.execute("PRAGMA journal_mode").fetchone()[0]

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(begin, range(64))) == {"wal"}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[tuple[Path, ReadOnly]]:
    """Yield a folder and a function that makes it read-only; for root, the folder is a tmpfs."""
    place = tmp_path / "place"
    place.mkdir()
    if os.geteuid() == 0:
        mount = ["mount", "-t", "tmpfs", "tmpfs", str(place)]
        if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("the superuser may write everywhere, and cannot mount here")
        try:
            yield place, lambda: _run("mount", "-o", "remount,ro", str(place))
        finally:
            _run("umount", "-l", str(place))
        return
    yield place, lambda: _permit(place, 0o555, 0o444)
    _permit(place, 0o755, 0o644)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _permit(folder: Path, of_folders: int, of_files: int) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(of_folders if path.is_dir() else of_files)


@pytest.mark.parametrize("theirs", [False, True])
def test_read_only_database_is_read(folder: tuple[Path, ReadOnly], theirs: bool) -> None:
    place, make_read_only = folder
    if theirs:
        create_v0_tables(place / "catalog.db")
    catalog = opened(place)
    catalog.create_namespace("db", if_not_exists=True)
    catalog.create_table("db.t", "id BIGINT").append(pa.table({"id": [1, 2]}))
    make_read_only()
    assert sorted(p.name for p in place.iterdir()) == ["catalog.db", "warehouse"]
    # Also for the client that opened the database earlier.
    for reader in (catalog, opened(place)):
        assert reader.list_tables("db") == ["db.t"]
        assert reader.load_table("db.t").scan().count() == 2
        changes: list[Callable[[], None]] = [
            partial(reader.create_namespace, "other"),
            partial(reader.drop_table, "db.t"),
            partial(reader.rename_table, "db.t", "db.u"),
        ]
        for change in changes:
            with pytest.raises(CatalogError, match=r"is read-only here, and nothing .* writable"):
                change()
    assert opened(place).load_table("db.t").scan().count() == 2


def test_changes_in_a_log_that_cannot_be_read_are_not_passed_over(
    folder: tuple[Path, ReadOnly],
) -> None:
    place, make_read_only = folder
    create_table(place)
    with contextlib.closing(sqlite3.connect(place / "catalog.db")) as connection, connection:
        connection.execute("UPDATE iceberg_tables SET table_name = 'u'")
        connection.commit()
        (place / "copy").mkdir()
        for name in ("catalog.db", "catalog.db-wal"):
            shutil.copy(place / name, place / "copy" / name)
    make_read_only()
    with pytest.raises(CatalogError, match=r"has changes in .*-wal"):
        opened(place / "copy")
    assert opened(place).list_tables("db") == ["db.u"]


def test_missing_read_only_database_raises_catalog_unavailable_error(
    folder: tuple[Path, ReadOnly],
) -> None:
    place, make_read_only = folder
    make_read_only()
    with pytest.raises(CatalogUnavailableError, match="unable to open database file"):
        opened(place)
