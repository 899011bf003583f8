"""The fault matrix: catalogs whose state can be restored, and the allowed states after a fault."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import Catalog, TableIdentifier
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.catalogs.hadoop.path_tables import PathCatalog
from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.errors import (
    CommitStateUnknownError,
    IcebergError,
    NoSuchTableError,
)
from iceberg_pyspark.sql_text.ddl import parse_partitioning
from iceberg_pyspark.sql_text.schema_text import parse_schema
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.table.commits.create_table import create_table
from tests.amounts import FULL_WORK
from tests.support.fault_points import ERROR_KINDS, ErrorKind, FaultPoint, FaultyFileIO
from tests.support.hooked_storage import Moment
from tests.support.row_commits import COLUMNS
from tests.support.table_integrity import metadata_problems, table_problems

TRIED: Counter[tuple[str, str]] = Counter()
"""Numbers of tried points by catalog kind and operation."""

EVERY, AT_MOST = 7, 2
"""Without all work, every seventh point is tried, or fewer where more than two would be tried.

An odd step, so that points before and after a call are both tried; another first point for each
operation and catalog, so that together they try most points.
"""

PROPERTIES = {
    "format-version": "3",
    "commit.manifest.min-count-to-merge": "3",
    "commit.status-check.min-wait-ms": "1",
    "commit.status-check.max-wait-ms": "1",
    "commit.retry.min-wait-ms": "1",
    "write.metadata.previous-versions-max": "2",
    "write.metadata.delete-after-commit.enabled": "true",
}


HIVE = ("hive", "hive-without-locks")
"""Kinds of catalogs in a Hive metastore, of whose calls only those to the metastore fail: the calls
of storage are those of the SQL catalog, because both share the code that makes them.
"""


@dataclass
class Lake:
    """A catalog of one kind whose state can be saved and restored.

    A catalog in a Hive metastore needs its `uri` and a database of its own.
    """

    kind: str
    folder: Path
    faults: FaultPoint
    uri: str = ""
    database: str = "db"
    _memory: MemoryCatalog | None = None
    _store: MemoryFileIO | None = None
    _saved: Any = field(default=None)
    _saved_states: dict[str, State] = field(default_factory=dict)

    @property
    def identifier(self) -> TableIdentifier:
        """The table that operations change."""
        return self.identifier_of("t")

    def identifier_of(self, name: str) -> TableIdentifier:
        if self.kind == "path":
            return TableIdentifier(namespace=(), name=f"{self.folder}/lake/{name}")
        return TableIdentifier(namespace=(self.database,), name=name)

    def open(self) -> tuple[Catalog, FileIO]:
        """Return the catalog as a new process opens it, and the store of its tables' files."""
        store: FileIO = LocalFileIO()
        if self.kind == "memory":
            self._store = self._store or MemoryFileIO()
            store = self._store
        io = FaultyFileIO(store, self.faults)
        warehouse = {"warehouse": f"{self.folder}/lake"}
        match self.kind:
            case "sql":
                uri = {"uri": f"sqlite:///{self.folder}/lake/catalog.db"}
                return SqlCatalog("lake", {**warehouse, **uri}, io=io), io
            case "hadoop":
                return FilesystemCatalog("lake", warehouse, io=io), io
            case "path":
                return PathCatalog(io=io), io
            case "hive" | "hive-without-locks":
                return self._open_hive(io), io
            case _:
                if self._memory is None:
                    self._memory = MemoryCatalog("lake", {"warehouse": "mem://lake/wh"}, io=io)
                return self._memory, io

    def _open_hive(self, io: FileIO | None = None) -> HiveCatalog:
        properties = {"uri": self.uri, "warehouse": f"{self.folder}/lake"}
        if self.kind == "hive-without-locks":
            properties["engine.hive.lock-enabled"] = "false"
        return HiveCatalog("lake", properties, io=io)

    def table(self, name: str = "t") -> Table:
        """Load the current state of the table."""
        catalog, io = self.open()
        return Table(catalog, catalog.load_table(self.identifier_of(name)), io=io)

    def save(self) -> None:
        """Save the current state."""
        if self._memory is not None and self._store is not None:
            namespaces = {n: dict(p) for n, p in self._memory._namespaces.items()}
            self._saved = dict(self._store._files), dict(self._memory._locations), namespaces
            return
        shutil.rmtree(self.folder / "saved", ignore_errors=True)
        shutil.copytree(self.folder / "lake", self.folder / "saved")
        if self.kind in HIVE:
            catalog = self._open_hive()
            names = catalog._hive.call("get_all_tables", db_name=self.database)
            self._saved = [catalog._table(self.identifier_of(name)) for name in names]

    def restore(self) -> None:
        """Restore the state of the last `save`."""
        if self._memory is not None and self._store is not None:
            files, locations, namespaces = self._saved
            self._store._files = dict(files)
            self._memory._locations = dict(locations)
            self._memory._namespaces = {n: dict(p) for n, p in namespaces.items()}
            return
        shutil.rmtree(self.folder / "lake")
        shutil.copytree(self.folder / "saved", self.folder / "lake")
        if self.kind in HIVE:
            hive = self._open_hive()._hive
            for name in hive.call("get_all_tables", db_name=self.database):
                hive.call("drop_table", dbname=self.database, name=name, deleteData=False)
            for table in self._saved:
                hive.call("create_table", tbl=table)

    def restored(self, name: str) -> State:
        """Restore the saved state; return the state of a table, which is found intact once."""
        self.restore()
        if name not in self._saved_states:
            self._saved_states[name] = state_of(self, name)
        return self._saved_states[name]

    def files_of_snapshots(self) -> dict[str, object]:
        """Return the files that no later commit may change: all but metadata and the catalog's own.

        The values are equal if the content is.
        """
        if self._store is not None:
            files: dict[str, object] = dict(self._store._files)
        else:
            files = {}
            for file in Path(self.folder, "lake").rglob("*"):
                if file.is_file():
                    stat = file.stat()
                    files[str(file)] = stat.st_ino, stat.st_size, stat.st_mtime_ns
        own = (".metadata.json", "version-hint.text", ".crc")
        return {f: v for f, v in files.items() if not f.endswith(own) and "/catalog.db" not in f}

    def expire_locks(self) -> int:
        """End the locks of a Hive metastore, as it does itself after minutes; return their number.

        The local lock of a thread that a fault stopped must be free, or the next writer waits.
        """
        if self.kind not in HIVE:
            return 0
        hive = self._open_hive()._hive
        locks = hive.call("show_locks", rqst={"dbname": self.database}).get("locks") or ()
        for lock in locks:
            hive.call("unlock", rqst={"lockid": lock["lockid"]})
        return len(locks)

    def other_entries(self) -> list[str]:
        """Return the names of entries of a Hive metastore that are no tables of the catalog."""
        if self.kind not in HIVE:
            return []
        catalog = self._open_hive()
        names = catalog._hive.call("get_all_tables", db_name=self.database)
        tables = [t.name for t in catalog.list_tables((self.database,))]
        return sorted(set(names) - set(tables))


Operation = Callable[[Lake], Callable[[], object]]
"""A function that prepares an operation without faults and returns the part that meets faults."""
Prepare = Callable[[Lake], object]
"""A function that creates the table which operations change."""
State = dict[str, Any] | None


@dataclass(frozen=True)
class Case:
    """An operation and the table it changes."""

    begin: Operation
    prepare: Prepare | None = None
    name: str = "t"
    kinds: tuple[str, ...] = ("sql", "hadoop", "path", "memory")
    is_commit: bool = True
    """The operation is a single swap of the metadata pointer: an error of ours other than "unknown
    outcome" means that nothing changed.
    """
    cuts_log: bool = False
    """Older metadata files may be missing afterwards, because dropping a table deletes them first.
    """


def prepare_lake(lake: Lake, prepare: Prepare) -> None:
    """Create the folder and the namespace of a new catalog and its table, and save this state."""
    if lake.kind != "memory":
        (lake.folder / "lake").mkdir()
    catalog, _ = lake.open()
    if lake.kind != "path":
        catalog.create_namespace((lake.database,))
    prepare(lake)
    lake.save()


def state_of(lake: Lake, name: str, *, log_may_be_cut: bool = False) -> State:
    """Return a user's view of a table, or None if there is no table; fail if it is not intact.

    `log_may_be_cut`: older metadata files may be missing, because dropping a table deletes them
    first.
    """
    try:
        table = lake.table(name)
    except NoSuchTableError:
        return None
    problems = table_problems(table)
    if log_may_be_cut:
        problems = [p for p in problems if not p.startswith("previous metadata ")]
    assert problems == []
    m = table.metadata
    rows = table.scan().to_arrow().to_pylist()
    return {
        "rows": sorted(tuple(_plain(v) for v in row.values()) for row in rows),
        "columns": [(f.name, str(f.type)) for f in m.current_schema.fields],
        "spec": [f.name for f in m.default_spec.fields],
        "order": len(m.default_sort_order.fields),
        "properties": dict(m.properties),
        "version": m.format_version,
        "refs": sorted(
            (n, r.type, r.max_ref_age_ms, m.snapshot_by_id[r.snapshot_id].summary["total-records"])
            for n, r in m.refs.items()
        ),
        "snapshots": len(m.snapshots),
    }


def _plain(value: Any) -> str:
    # Row changes write new random values in each run; only the first letter is stable.
    return value[0] if isinstance(value, str) and value[0] in "uc" else str(value)


def try_all_points(lake: Lake, name: str, case: Case) -> None:
    """Run the operation with a fault at every point, each time from the state that was saved."""
    old = lake.restored(case.name)
    run = case.begin(lake)
    with lake.faults.armed(None, "before", "own"):
        run()
    calls, new = lake.faults.calls, state_of(lake, case.name)
    assert calls > 0
    assert new != old, "the operation changes nothing that is compared"
    moments: tuple[Moment, ...] = ("before", "after")
    points = [(at, moment) for at in range(1, calls + 1) for moment in moments]
    every = min(max(EVERY, len(points) // AT_MOST | 1), len(points))
    for number, (at, moment) in enumerate(points):
        kinds: tuple[ErrorKind, ...] = ERROR_KINDS
        if not FULL_WORK:
            # Choose different points and kinds per operation, but the same ones in every run.
            turn = number + sum(map(ord, f"{lake.kind} {name}"))
            if turn % every:
                continue
            kinds = (ERROR_KINDS[(turn // every) % len(ERROR_KINDS)],)
        for kind in kinds:
            _try_point(lake, case, at, moment, kind, new)
            TRIED[lake.kind, name] += 1


def _try_point(
    lake: Lake, case: Case, at: int, moment: Moment, kind: ErrorKind, new: State
) -> None:
    old = lake.restored(case.name)
    error: BaseException | None = None
    run = case.begin(lake)
    with lake.faults.armed(at, moment, kind):
        try:
            run()
        except (Exception, KeyboardInterrupt) as e:  # noqa: BLE001 - what it is, is judged below
            error = e
    where = f"{lake.faults.fired}, ended in {error!r}"
    # A lock that cannot be given back ends by itself.
    if lake.expire_locks() and "metastore.unlock" not in str(lake.faults.fired):
        raise AssertionError(f"{where}: the table stays locked")
    if "metastore.drop_table" not in str(lake.faults.fired):
        assert lake.other_entries() == [], where
    state = state_of(lake, case.name, log_may_be_cut=case.cuts_log)
    assert state in (old, new), f"{where}: neither the old nor the new state: {state}"
    if error is None:
        assert state == new, f"{where}: what was acknowledged is not there"
    elif (
        case.is_commit
        and isinstance(error, IcebergError)
        and not isinstance(error, CommitStateUnknownError)
    ):
        assert state == old, f"{where}: refused, and yet it happened"
    _goes_on(lake, case.name, state, where)


def _goes_on(lake: Lake, name: str, state: State, where: str) -> None:
    """Check that the next writer can write to the table, or can create it if it does not exist.

    The state was found intact. The next writer changes a property, so the table stays intact if its
    new metadata is, and if it leaves the snapshots and their files as they were.
    """
    try:
        if state is None:
            create(lake, name)
            assert state_of(lake, name, log_may_be_cut=True) is not None, where
            return
        table, files = lake.table(name), lake.files_of_snapshots()
        before = table.metadata
        table.update_properties().set({"after": "1"}).commit()
        after = lake.table(name)
    except IcebergError as e:
        raise AssertionError(f"{where}: the table is stuck: {e}") from e
    assert after.metadata.properties["after"] == "1", where
    assert after.metadata.snapshots == before.snapshots, where
    assert after.metadata.refs == before.refs, where
    assert lake.files_of_snapshots() == files, where
    problems = [p for p in metadata_problems(after) if not p.startswith("previous metadata ")]
    assert problems == [], where


def create(lake: Lake, name: str = "t") -> Table:
    """Create a partitioned table with three columns."""
    catalog, io = lake.open()
    schema = parse_schema(COLUMNS)
    spec = parse_partitioning(["p"], schema)
    loaded = create_table(
        catalog,
        lake.identifier_of(name),
        NewTable(schema=schema, spec=spec, properties=PROPERTIES),
    )
    return Table(catalog, loaded, io=io)
