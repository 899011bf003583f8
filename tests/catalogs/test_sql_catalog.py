"""Behaviour specific to the SQL catalog: rows, schemas of other clients, locks, lost answers."""

from __future__ import annotations

import contextlib
import pickle
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import sqlalchemy as sa

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from iceberg_pyspark.changes.outcomes import Outcome
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitConflictError,
    CommitStateUnknownError,
    FileAlreadyExistsError,
    InvalidRequestError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.local import LocalFileIO
from tests.support.catalog_contract import create, set_property
from tests.support.hooked_storage import HookedFileIO, once
from tests.support.sql_catalogs import create_v0_tables, execute, rows

EVENTS = TableIdentifier(namespace=("db", "inner"), name="events")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def catalog(database: Path) -> SqlCatalog:
    return open_catalog(database)


def open_catalog(
    database: Path, properties: Mapping[str, str] | None = None, *, io: FileIO | None = None
) -> SqlCatalog:
    catalog = SqlCatalog(
        "lake",
        {
            "uri": f"sqlite:///{database}",
            "warehouse": str(database.parent / "warehouse"),
            **(properties or {}),
        },
        io=io,
    )
    with contextlib.suppress(CatalogError):
        if not catalog.namespace_exists(EVENTS.namespace):
            catalog.create_namespace(EVENTS.namespace)
    return catalog


def metadata_files(database: Path) -> set[str]:
    return {str(p) for p in (database.parent / "warehouse").rglob("*.metadata.json")}


# Rows as other clients expect them.


def test_the_tables_are_those_of_the_other_clients(catalog: SqlCatalog, database: Path) -> None:
    columns = "SELECT name, type, pk FROM pragma_table_info(?)"
    assert rows(database, columns, "iceberg_tables") == [
        ("catalog_name", "VARCHAR(255)", 1),
        ("table_namespace", "VARCHAR(255)", 2),
        ("table_name", "VARCHAR(255)", 3),
        ("metadata_location", "VARCHAR(1000)", 0),
        ("previous_metadata_location", "VARCHAR(1000)", 0),
        ("iceberg_type", "VARCHAR(5)", 0),
    ]
    assert rows(database, columns, "iceberg_namespace_properties") == [
        ("catalog_name", "VARCHAR(255)", 1),
        ("namespace", "VARCHAR(255)", 2),
        ("property_key", "VARCHAR(255)", 3),
        ("property_value", "VARCHAR(1000)", 0),
    ]


def test_rows_of_a_table_and_a_namespace(catalog: SqlCatalog, database: Path) -> None:
    first = create(catalog, EVENTS).metadata_location
    second = set_property(catalog, EVENTS, "a", "1").metadata_location
    assert rows(database, "SELECT * FROM iceberg_tables") == [
        ("lake", "db.inner", "events", second, first, "TABLE")
    ]
    assert rows(database, "SELECT * FROM iceberg_namespace_properties") == [
        ("lake", "db.inner", "exists", "true")
    ]
    assert catalog.load_namespace_properties(EVENTS.namespace) == {}
    folder = f"{database.parent}/warehouse/db/inner/events/metadata"
    assert first.startswith(f"{folder}/00000-")
    assert second.startswith(f"{folder}/00001-")


def test_metadata_goes_where_the_table_says(catalog: SqlCatalog, tmp_path: Path) -> None:
    first = create(catalog, EVENTS, {"write.metadata.path": f"{tmp_path}/elsewhere/"})
    second = set_property(catalog, EVENTS, "a", "1")
    for loaded in (first, second):
        assert loaded.metadata_location.startswith(f"{tmp_path}/elsewhere/0000")


def test_a_v0_database_stays_v0(database: Path) -> None:
    create_v0_tables(database)
    catalog = open_catalog(database)
    create(catalog, EVENTS)
    set_property(catalog, EVENTS, "a", "1")
    assert len(rows(database, "SELECT * FROM iceberg_tables")[0]) == 5


@pytest.mark.parametrize("key", ["jdbc.schema-version", "schema_version"])
def test_a_v0_database_becomes_v1_on_request(database: Path, key: str) -> None:
    create_v0_tables(database)
    old = open_catalog(database)
    create(old, EVENTS)
    catalog = open_catalog(database, {key: "v1"})
    # A row that a V0 client wrote has no type, which means a table.
    assert catalog.list_tables(EVENTS.namespace) == [EVENTS]
    set_property(catalog, EVENTS, "a", "1")
    set_property(old, EVENTS, "b", "2")
    assert set_property(catalog, EVENTS, "c", "3").metadata.properties["b"] == "2"
    open_catalog(database, {key: "V1"})


def test_views_are_not_tables_but_hold_their_name(catalog: SqlCatalog, database: Path) -> None:
    execute(
        database,
        "INSERT INTO iceberg_tables VALUES ('lake', 'db.inner', 'events', 'x', NULL, 'VIEW')",
    )
    assert catalog.list_tables(EVENTS.namespace) == []
    assert not catalog.table_exists(EVENTS)
    with pytest.raises(NoSuchTableError):
        catalog.load_table(EVENTS)
    with pytest.raises(NoSuchTableError):
        catalog.drop_table(EVENTS)
    with pytest.raises(TableAlreadyExistsError):
        create(catalog, EVENTS)
    assert metadata_files(database) == set()
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(EVENTS.namespace)


def test_another_catalog_name_sees_nothing(catalog: SqlCatalog, database: Path) -> None:
    create(catalog, EVENTS)
    other = SqlCatalog("other", {"uri": f"sqlite:///{database}"})
    assert other.list_namespaces() == []
    assert not other.table_exists(EVENTS)


def test_error_of_a_missing_table_names_the_other_catalog_that_has_it(
    catalog: SqlCatalog, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog, EVENTS)
    other = SqlCatalog("other", {"uri": f"sqlite:///{database}"})
    with pytest.raises(NoSuchTableError, match=f"'other'; .*in catalog '{catalog.name}'$"):
        other.load_table(EVENTS)
    with pytest.raises(NoSuchTableError, match=r"missing is not in catalog 'other'$"):
        other.load_table(TableIdentifier(namespace=EVENTS.namespace, name="missing"))
    with pytest.raises(NoSuchTableError, match=r"is not in catalog 'other'$"):
        other.load_table(TableIdentifier(namespace=("a.b",), name="events"))

    def failing(_: TableIdentifier) -> list[str]:
        raise CatalogError("the database is gone")

    monkeypatch.setattr(other._tables, "other_catalogs", failing)
    with pytest.raises(NoSuchTableError, match=r"is not in catalog 'other'$"):
        other.load_table(EVENTS)


def test_a_namespace_exists_by_its_tables_alone(catalog: SqlCatalog, database: Path) -> None:
    create(catalog, EVENTS)
    execute(database, "DELETE FROM iceberg_namespace_properties")
    assert catalog.namespace_exists(("db", "inner"))
    assert catalog.namespace_exists(("db",))
    assert not catalog.namespace_exists(("d",))
    assert catalog.list_namespaces() == [("db",)]
    assert catalog.list_tables(("db",)) == []


def test_null_property_of_another_client_is_ignored(catalog: SqlCatalog, database: Path) -> None:
    execute(
        database,
        "INSERT INTO iceberg_namespace_properties VALUES ('lake', 'db.inner', 'note', NULL)",
    )
    assert catalog.load_namespace_properties(EVENTS.namespace) == {}


def test_the_namespace_location_wins_over_the_warehouse(catalog: SqlCatalog) -> None:
    catalog.update_namespace_properties(
        EVENTS.namespace, removals=(), updates={"location": "s3://bucket/there/"}
    )
    assert catalog.default_table_location(EVENTS) == "s3://bucket/there/events"


def test_error_of_a_table_without_a_location_names_the_setting(tmp_path: Path) -> None:
    catalog = SqlCatalog("lake", {"uri": f"sqlite:///{tmp_path}/c.db"})
    with pytest.raises(InvalidRequestError, match="warehouse"):
        catalog.default_table_location(EVENTS)


def test_dots_in_a_level_and_the_marker_property_are_refused(catalog: SqlCatalog) -> None:
    with pytest.raises(InvalidRequestError, match="dot"):
        catalog.create_namespace(("a.b",))
    with pytest.raises(InvalidRequestError, match="exists"):
        catalog.create_namespace(("a",), {"exists": "false"})
    with pytest.raises(InvalidRequestError, match="exists"):
        catalog.update_namespace_properties(EVENTS.namespace, removals=["exists"], updates={})
    with pytest.raises(InvalidRequestError, match="1000"):
        catalog.create_namespace(("a",), {"note": "x" * 1001})


def test_namespace_level_with_a_dot_has_no_metadata_tables(catalog: SqlCatalog) -> None:
    namespace = (*EVENTS.namespace, "with.dot")
    create(catalog, TableIdentifier(namespace=EVENTS.namespace, name="with.dot"))
    # Spark asks for this before it reads the metadata table of the table `with.dot`.
    files = TableIdentifier(namespace=namespace, name="files")
    with pytest.raises(NoSuchTableError):
        catalog.load_table(files)
    assert not catalog.table_exists(files)
    assert not catalog.view_exists(files)
    assert not catalog.namespace_exists(namespace)


def test_tables_are_not_made_where_the_properties_forbid_it(database: Path) -> None:
    with pytest.raises(CatalogError, match="forbid"):
        SqlCatalog("lake", {"uri": f"sqlite:///{database}", "jdbc.init-catalog-tables": "false"})
    open_catalog(database)
    open_catalog(database, {"init_catalog_tables": "false"})


def test_pickled_catalog_opens_its_own_connection(catalog: SqlCatalog) -> None:
    create(catalog, EVENTS)
    copy = pickle.loads(pickle.dumps(catalog))
    assert set_property(copy, EVENTS, "a", "1") == catalog.load_table(EVENTS)


def test_a_database_in_memory_does_not_pickle() -> None:
    # A copy would open an empty database of its own.
    catalog = SqlCatalog("lake", {"uri": "jdbc:sqlite::memory:"})
    with pytest.raises(InvalidRequestError, match="memory"):
        pickle.dumps(catalog)


def test_threads_share_a_database_in_memory(tmp_path: Path) -> None:
    catalog = SqlCatalog("lake", {"uri": "sqlite://", "warehouse": str(tmp_path)})
    catalog.create_namespace(("db",))
    failures: list[BaseException] = []

    def work(n: int) -> None:
        try:
            create(catalog, TableIdentifier(namespace=("db",), name=f"t{n}"))
        except BaseException as e:  # noqa: BLE001
            failures.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []
    assert len(catalog.list_tables(("db",))) == 8


# A database that another connection has locked.


@contextlib.contextmanager
def locked(database: Path) -> Iterator[None]:
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


def test_a_commit_into_a_locked_database_gives_up_and_changes_nothing(database: Path) -> None:
    catalog = open_catalog(database, {"jdbc.busy_timeout": "50"})
    created = create(catalog, EVENTS)
    with locked(database), pytest.raises(CatalogUnavailableError, match="locked"):
        set_property(catalog, EVENTS, "a", "1")
    assert catalog.load_table(EVENTS) == created
    # The refused commit deleted its own metadata file.
    assert metadata_files(database) == {created.metadata_location}


def test_a_commit_waits_for_a_short_lock(database: Path) -> None:
    catalog = open_catalog(database, {"jdbc.busy_timeout": "5000"})
    create(catalog, EVENTS)
    free = threading.Event()
    is_locked = threading.Event()

    def hold() -> None:
        with locked(database):
            is_locked.set()
            free.wait(0.3)

    holder = threading.Thread(target=hold)
    holder.start()
    is_locked.wait(5)
    done = set_property(catalog, EVENTS, "a", "1")
    holder.join()
    assert catalog.load_table(EVENTS) == done


def test_readers_do_not_wait_for_a_writer(database: Path) -> None:
    catalog = open_catalog(database, {"jdbc.busy_timeout": "0"})
    created = create(catalog, EVENTS)
    with locked(database):
        assert catalog.load_table(EVENTS) == created


def test_a_change_holds_the_lock_from_its_first_read_on(
    catalog: SqlCatalog, database: Path
) -> None:
    # If another writer came between the read and the write, SQLite would refuse the write at once.
    def change(connection: sa.Connection) -> None:
        connection.execute(sa.text("SELECT count(*) FROM iceberg_tables"))
        with (
            contextlib.closing(sqlite3.connect(database, timeout=0)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("BEGIN IMMEDIATE")

    catalog._database.write(change)


def test_a_commit_that_finds_the_database_busy_is_tried_again(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog, EVENTS)

    def busy(connection: sa.Connection) -> None:
        monkeypatch.undo()
        raise sa.exc.OperationalError("COMMIT", {}, sqlite3.OperationalError("database is locked"))

    monkeypatch.setattr(sa.Connection, "commit", busy)
    done = set_property(catalog, EVENTS, "a", "1")
    assert catalog.load_table(EVENTS) == done
    assert len(done.metadata.metadata_log) == 1


# Races during a commit.


class AtSwap:
    """A hook that runs an action between writing the metadata file and the pointer swap."""

    def __init__(self, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
        self._catalog = catalog
        self._monkeypatch = monkeypatch

    def run(self, action: object) -> None:
        swap = self._catalog._swap_table

        def swapping(base: LoadedTable, new_table: LoadedTable) -> Outcome[None]:
            self._monkeypatch.undo()
            assert callable(action)
            action()
            return swap(base, new_table)

        self._monkeypatch.setattr(self._catalog, "_swap_table", swapping)


def test_a_commit_that_lost_the_race_is_refused_and_cleans_up(
    catalog: SqlCatalog, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog, EVENTS)
    other = open_catalog(database)
    AtSwap(catalog, monkeypatch).run(lambda: set_property(other, EVENTS, "winner", "1"))
    with pytest.raises(CommitConflictError, match=r"db\.inner\.events"):
        set_property(catalog, EVENTS, "loser", "1")
    current = catalog.load_table(EVENTS)
    assert "loser" not in current.metadata.properties
    log = {e.metadata_file for e in current.metadata.metadata_log}
    assert metadata_files(database) == log | {current.metadata_location}


def test_a_commit_into_a_table_dropped_or_recreated_meanwhile_is_refused(
    catalog: SqlCatalog, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The new table's row has another metadata location.
    create(catalog, EVENTS)
    other = open_catalog(database)

    def recreate() -> None:
        other.drop_table(EVENTS)
        create(other, EVENTS)

    AtSwap(catalog, monkeypatch).run(recreate)
    with pytest.raises(CommitConflictError):
        set_property(catalog, EVENTS, "a", "1")
    AtSwap(catalog, monkeypatch).run(lambda: other.drop_table(EVENTS))
    with pytest.raises(CommitConflictError):
        set_property(catalog, EVENTS, "a", "1")
    assert not catalog.table_exists(EVENTS)


# A lost answer to COMMIT.


class LostAnswer:
    """A hook that fails a catalog's next COMMIT, before or after the database carries it out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def after(self, applied: bool, then: object = None) -> None:
        commit = sa.Connection.commit

        def failing(connection: sa.Connection) -> None:
            self._monkeypatch.undo()
            if applied:
                commit(connection)
            else:
                connection.rollback()
            if callable(then):
                connection.close()
                then()
            raise sa.exc.OperationalError("COMMIT", {}, sqlite3.OperationalError("disk I/O error"))

        self._monkeypatch.setattr(sa.Connection, "commit", failing)


def test_a_commit_whose_answer_is_lost_is_found_in_the_row(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog, EVENTS)
    LostAnswer(monkeypatch).after(applied=True)
    done = set_property(catalog, EVENTS, "a", "1")
    assert catalog.load_table(EVENTS) == done


def test_a_commit_whose_answer_is_lost_is_found_below_a_later_commit(
    catalog: SqlCatalog, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog, EVENTS)
    other = open_catalog(database)
    LostAnswer(monkeypatch).after(
        applied=True, then=lambda: set_property(other, EVENTS, "later", "1")
    )
    set_property(catalog, EVENTS, "a", "1")
    assert catalog.load_table(EVENTS).metadata.properties.keys() >= {"a", "later"}


def test_a_commit_that_another_overtook_is_refused_after_a_lost_answer(
    catalog: SqlCatalog, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog, EVENTS)
    other = open_catalog(database)
    LostAnswer(monkeypatch).after(
        applied=False, then=lambda: set_property(other, EVENTS, "winner", "1")
    )
    with pytest.raises(CommitConflictError):
        set_property(catalog, EVENTS, "a", "1")
    assert "a" not in catalog.load_table(EVENTS).metadata.properties


def test_a_commit_that_may_still_come_is_unknown_and_keeps_its_file(
    catalog: SqlCatalog, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = create(catalog, EVENTS)
    LostAnswer(monkeypatch).after(applied=False)
    with pytest.raises(CommitStateUnknownError, match="delete no file"):
        set_property(catalog, EVENTS, "a", "1")
    assert len(metadata_files(database)) == 2
    assert catalog.load_table(EVENTS) == created


def test_a_create_whose_answer_is_lost(
    catalog: SqlCatalog, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LostAnswer(monkeypatch).after(applied=True)
    created = create(catalog, EVENTS)
    assert catalog.load_table(EVENTS) == created
    catalog.drop_table(EVENTS)
    LostAnswer(monkeypatch).after(applied=False)
    with pytest.raises(CommitStateUnknownError):
        create(catalog, EVENTS)
    other = open_catalog(database)
    LostAnswer(monkeypatch).after(applied=False, then=lambda: create(other, EVENTS))
    with pytest.raises(TableAlreadyExistsError):
        create(catalog, EVENTS)


# A lost answer of the store.


@pytest.mark.parametrize("error", [StorageError("timed out"), FileAlreadyExistsError("412")])
def test_metadata_file_written_without_an_answer_is_ours(
    database: Path, error: StorageError
) -> None:
    def fail() -> None:
        raise error

    io = HookedFileIO(LocalFileIO(), once("create_exclusive", "after", fail))
    created = create(open_catalog(database, io=io), EVENTS)
    io = HookedFileIO(LocalFileIO(), once("create_exclusive", "after", fail))
    done = set_property(open_catalog(database, io=io), EVENTS, "a", "1")
    assert open_catalog(database).load_table(EVENTS) == done
    assert len(done.metadata.metadata_log) == 1
    assert done.metadata.metadata_log[0].metadata_file == created.metadata_location


def test_a_metadata_file_of_somebody_else_is_not_taken_for_ours(database: Path) -> None:
    catalog = open_catalog(database)
    created = create(catalog, EVENTS)

    class OccupiedFileIO(LocalFileIO):
        def create_exclusive(self, location: str, data: bytes) -> None:
            super().create_exclusive(location, b"{}")
            raise FileAlreadyExistsError(location)

    with pytest.raises(FileAlreadyExistsError):
        set_property(open_catalog(database, io=OccupiedFileIO()), EVENTS, "a", "1")
    assert catalog.load_table(EVENTS) == created


def test_a_database_error_shows_neither_statement_nor_parameters(
    catalog: SqlCatalog, database: Path
) -> None:
    execute(database, "DROP TABLE iceberg_namespace_properties")
    with pytest.raises(CatalogError) as raised:
        catalog.update_namespace_properties(
            EVENTS.namespace, removals=(), updates={"token": "hunter2"}
        )
    text = repr(raised.value) + repr(raised.value.__cause__)
    assert "hunter2" not in text
    assert "INSERT" not in text
