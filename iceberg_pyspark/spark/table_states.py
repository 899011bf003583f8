"""The states of tables in a session's queries, by handles from which they can be loaded again.

Handles are texts by which the JVM refers to objects that a session has opened. Each handle names
its catalog, and begins with the session that opened the catalog; sessions cloned from it may use
the handle too. The handle of a table's state is enough to read the same state again; other handles
refer to objects in this process.

Spark keeps handles for an unlimited time, and a session may live for months, so only the most
recently used states are kept in memory.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.expressions.rewriting import or_
from iceberg_pyspark.formats.metadata_files import read_table_metadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.lru_map import LruMap
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from iceberg_pyspark.table.reading.table_scan import TableScan

MAX_STATES = 256


@dataclass(frozen=True, kw_only=True)
class StateHandle:
    """The content of a state's handle; equal states have equal handles."""

    catalog: str
    namespace: tuple[str, ...]
    name: str
    metadata_location: str
    selector: SnapshotSelector
    metadata_table: str | None
    by_session: bool

    def text(self) -> str:
        """Return the handle as text."""
        return msgspec.json.encode(self).decode()


def read_state_handle(text: str) -> StateHandle:
    """Return the content of a state's handle."""
    return msgspec.json.decode(text, type=StateHandle)


def new_handle(catalog: str) -> str:
    """Return a new unique handle for an object of a catalog."""
    return msgspec.json.encode({"catalog": catalog, "key": str(uuid.uuid4())}).decode()


def catalog_of_handle(text: str) -> str:
    """Return the handle of the catalog that any of these handles names."""
    return str(msgspec.json.decode(text)["catalog"])


@dataclass(kw_only=True)
class TargetReads:
    """What a row-level operation reads of its table: at most which files, and the planned scans."""

    only_files: frozenset[str] | None = None
    scans: list[TableScan] = field(default_factory=list)

    def record_scan(self, scan: TableScan) -> TableScan:
        """Limit a scan to `only_files`, add it to `scans` and return it."""
        if self.only_files is not None:
            scan = scan.of_files(self.only_files)
        self.scans.append(scan)
        return scan

    def predicate(self) -> Predicate:
        """Return a bound predicate that all rows of the planned scans match."""
        return predicate_of(self.scans)


def predicate_of(scans: Sequence[TableScan]) -> Predicate:
    """Return a bound predicate that all rows of the scans match; true for every row if there are
    none.
    """
    return or_(*(s.context.predicate for s in scans)) if scans else AlwaysTrue()


@dataclass(frozen=True, kw_only=True)
class TableState:
    """A table as a query sees it: one metadata file, and one way to select the snapshot."""

    catalog: str
    loaded_table: LoadedTable
    selector: SnapshotSelector = field(default_factory=SnapshotSelector)
    metadata_table: str | None = None
    """The metadata table that is read; None for the table itself."""

    by_session: bool = False
    """Whether the session (`spark.wap.branch`), and no name or version, selects the snapshot."""

    reads: TargetReads | None = None
    """The recorder of reads, if a row-level operation reads its own table."""

    io: FileIO | None = None
    """The store of the table's files; None for the store that the catalog configures."""

    def branch_to_write(self) -> str | None:
        """Return the branch that the table's name includes, or None for main or the session's
        branch.

        Raise `InvalidRequestError` for a metadata table, a tag or an earlier snapshot.
        """
        name = self.loaded_table.identifier
        if self.metadata_table is not None:
            raise InvalidRequestError(
                f"{name}.{self.metadata_table} is a metadata table, whose rows cannot be changed"
            )
        if self.selector != SnapshotSelector(branch=self.selector.branch):
            raise InvalidRequestError(
                f"writes go to table {name} or one of its branches, not to a tag or an earlier "
                f"snapshot; name a branch as {name}.branch_<name>"
            )
        return self.selector.branch


class TableStates:
    """Table states by handle; safe to use from several threads."""

    def __init__(self, catalog_of: Callable[[str], Catalog], max_states: int = MAX_STATES) -> None:
        """`catalog_of` returns the catalog of a catalog handle."""
        self._catalog_of = catalog_of
        self._states: LruMap[str, TableState] = LruMap(max_states)
        self._state_by_handle: dict[str, TableState] = {}

    def cache(self, state: TableState) -> str:
        """Cache a state and return its handle."""
        identifier = state.loaded_table.identifier
        handle = StateHandle(
            catalog=state.catalog,
            namespace=identifier.namespace,
            name=identifier.name,
            metadata_location=state.loaded_table.metadata_location,
            selector=state.selector,
            metadata_table=state.metadata_table,
            by_session=state.by_session,
        ).text()
        self._states.put(handle, state)
        return handle

    def register(self, state: TableState) -> str:
        """Store a state under a new handle until `release`."""
        handle = new_handle(state.catalog)
        self._state_by_handle[handle] = state
        return handle

    def release(self, handle: str) -> None:
        """Drop a registered state."""
        self._state_by_handle.pop(handle, None)

    def state(self, handle: str) -> TableState:
        """Return the state of a handle; load it again if it is no longer cached."""
        state = self._state_by_handle.get(handle) or self._states.get(handle)
        if state is None:
            state = self._load(handle)
            self.cache(state)
        return state

    def _load(self, handle: str) -> TableState:
        content = read_state_handle(handle)
        location = content.metadata_location
        identifier = TableIdentifier(namespace=content.namespace, name=content.name)
        loaded_table = self._catalog_of(content.catalog).load_table(identifier)
        if loaded_table.metadata_location != location:
            loaded_table = replace(
                loaded_table,
                metadata=read_table_metadata(open_storage(location, loaded_table.config), location),
                metadata_location=location,
            )
        return TableState(
            catalog=content.catalog,
            loaded_table=loaded_table,
            selector=content.selector,
            metadata_table=content.metadata_table,
            by_session=content.by_session,
        )
