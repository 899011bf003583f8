"""A catalog in a Hive metastore, compatible with Java's HiveCatalog and PyIceberg's.

A commit changes the parameter `metadata_location` of a table while the commit holds the metastore's
lock of the table (`locks.py`). With `engine.hive.lock-enabled=false`, the request instead contains
the location that it replaces, which not every metastore checks. A namespace has one level, a Hive
database (`metastore_databases.py`). `metastore_entries.py` builds the entries of tables;
`metastore_client.py` sends the calls and translates their errors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from iceberg_pyspark.catalogs.catalog import (
    LoadedTable,
    LoadedView,
    Namespace,
    TableIdentifier,
    no_such_namespace,
)
from iceberg_pyspark.catalogs.hive.locks import LockSettings, TableLock
from iceberg_pyspark.catalogs.hive.metastore_client import (
    UNKNOWN_CALL,
    HiveAnswerError,
    HiveClient,
    HiveUnreachableError,
    hive_property,
    user_name,
)
from iceberg_pyspark.catalogs.hive.metastore_databases import HiveNamespaces
from iceberg_pyspark.catalogs.hive.metastore_entries import (
    MODIFIED_MESSAGE,
    alter_table,
    changed_table,
    changed_view,
    check_name,
    checked_key,
    compares_locations,
    is_iceberg,
    is_iceberg_view,
    is_table_name,
    key_id_of,
    location_in,
    namespace_properties,
    new_table,
    new_view,
    pointer_of,
    renamed_table,
)
from iceberg_pyspark.catalogs.hive.thrift import Struct
from iceberg_pyspark.catalogs.metastore_views import MetastoreViewCatalog
from iceberg_pyspark.catalogs.table_folders import WAREHOUSE, absolute_location
from iceberg_pyspark.changes.outcomes import Done, Outcome, Refused, Unknown, caused_by
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitStateUnknownError,
    IcebergError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.property_types import BoolProperty, IntProperty
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.places import is_directly_in

_log = get_logger(__name__)

_LOCK_ENABLED = "engine.hive.lock-enabled"
_HIVE_ENABLED = "engine.hive.enabled"
_MAX_PROPERTY = IntProperty("iceberg.hive.table-property-max-size", 32_672)
_TABLES_AT_ONCE = 200
_MISSING, _EXISTS = "NoSuchObjectException", "AlreadyExistsException"
_CERTAIN = ("InvalidOperationException", "InvalidObjectException", _MISSING)
"""Error codes that a metastore raises while it validates a request, before any change."""


class _Guard(Protocol):
    """A lock that keeps other writers away while a table is changed."""

    def acquire(self, while_waiting: Callable[[], None]) -> None: ...
    def check(self) -> None: ...
    def release(self) -> None: ...


class _NoLock:
    def acquire(self, while_waiting: Callable[[], None]) -> None:
        """Do nothing: there is no lock to wait for."""

    def check(self) -> None:
        """Do nothing: there is no lock that can be lost."""

    def release(self) -> None:
        """Do nothing: there is no lock to release."""


class HiveCatalog(MetastoreViewCatalog):
    """The tables and views of a Hive metastore.

    If `io` is None, the location of each file decides which storage is used.
    """

    _namespace_suffix = ".db"

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        warehouse = properties.get(WAREHOUSE)
        if warehouse:
            properties = {**properties, WAREHOUSE: absolute_location(warehouse)}
        super().__init__(name, properties, io)
        self._hive = HiveClient(name, self._properties)
        self._namespaces = HiveNamespaces(name, self._hive, self._properties.get(WAREHOUSE))
        self._locks = LockSettings.of(properties)
        self._limit = _MAX_PROPERTY.of(_of_hive(properties, _MAX_PROPERTY.name))
        self._compares: bool | None = None
        self._key_ids: dict[TableIdentifier, tuple[str, str | None]] = {}

    def __repr__(self) -> str:
        return f"HiveCatalog({self._name!r}, {self._hive.address!r})"

    # namespaces

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """Return the databases as namespaces; a database has no child namespaces."""
        if parent:
            self._require_namespace(parent)
            return []
        return self._namespaces.all()

    def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a database; raise `NamespaceAlreadyExistsError` if the database exists."""
        self._namespaces.create(namespace, properties or {})

    def drop_namespace(self, namespace: Namespace) -> None:
        """Drop an empty database; raise `NoSuchNamespaceError` or `NamespaceNotEmptyError`."""
        self._namespaces.drop(namespace)

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether the database exists; the empty namespace is the catalog itself."""
        return not namespace or self._namespaces.database(namespace) is not None

    def _namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        return namespace_properties(self._namespaces.database(namespace) or {})

    def update_namespace_properties(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Remove and set namespace properties; of two concurrent updates, the later one wins."""
        self._namespaces.update_properties(namespace, removals=removals, updates=updates)

    # tables

    def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the Iceberg tables in a database; raise `NoSuchNamespaceError`."""
        return self._list(namespace, is_iceberg)

    def list_views(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the Iceberg views in a database; raise `NoSuchNamespaceError`."""
        return self._list(namespace, is_iceberg_view)

    def _list(
        self, namespace: Namespace, is_wanted: Callable[[Struct], bool]
    ) -> list[TableIdentifier]:
        if not namespace:
            return []
        self._require_namespace(namespace)
        names = self._hive.call("get_all_tables", db_name=namespace[0])
        selection: list[str] = []
        for start in range(0, len(names), _TABLES_AT_ONCE):
            tables = self._tables(namespace[0], names[start : start + _TABLES_AT_ONCE])
            selection += [table["tableName"] for table in tables if is_wanted(table)]
        return [TableIdentifier(namespace=namespace, name=name) for name in sorted(selection)]

    def other_pointers(self, identifier: TableIdentifier, folder: str) -> list[str]:
        """Return the current metadata files in a folder of all tables of the database but this."""
        database = identifier.namespace[0]
        names = self._hive.call("get_all_tables", db_name=database)
        others = [name for name in names if name.lower() != identifier.name.lower()]
        pointers: list[str] = []
        for start in range(0, len(others), _TABLES_AT_ONCE):
            for table in self._tables(database, others[start : start + _TABLES_AT_ONCE]):
                pointer = pointer_of(table)
                if pointer and is_directly_in(pointer, folder):
                    pointers.append(pointer)
        return pointers

    def _tables(self, database: str, names: Sequence[str]) -> list[Struct]:
        request = {"dbName": database, "tblNames": list(names)}
        try:
            tables = self._hive.call("get_table_objects_by_name_req", req=request).get("tables")
        except HiveAnswerError as e:
            if e.code != UNKNOWN_CALL:
                raise
            tables = self._hive.call(
                "get_table_objects_by_name", dbname=database, tbl_names=list(names)
            )
        return list(tables or ())

    def table_exists(self, identifier: TableIdentifier) -> bool:
        """Return whether the table exists and is an Iceberg table."""
        table = self._table(identifier)
        return table is not None and is_iceberg(table)

    def _table(self, identifier: TableIdentifier) -> Struct | None:
        """Return the metastore's entry of any table or view, or None if there is none."""
        if not is_table_name(identifier):
            return None
        database, name = identifier.namespace[0], identifier.name
        try:
            try:
                request = {"dbName": database, "tblName": name}
                answer = self._hive.call("get_table_req", req=request).get("table")
            except HiveAnswerError as e:
                if e.code != UNKNOWN_CALL:
                    raise
                answer = self._hive.call("get_table", dbname=database, tbl_name=name)
        except HiveAnswerError as e:
            if e.code == _MISSING:
                return None
            raise
        table: Struct | None = answer
        return table

    def _pointer(self, identifier: TableIdentifier) -> str | None:
        table = self._table(identifier)
        if table is None or is_iceberg_view(table):
            return None
        if not is_iceberg(table):
            raise self._not_iceberg(identifier)
        pointer = location_in(table, identifier, self._name)
        self._key_ids[identifier] = (pointer, key_id_of(table))
        return pointer

    def _read(self, location: str) -> TableMetadata:
        return checked_key(dict(self._key_ids.values()).get(location), super()._read(location))

    def _require_free(self, identifier: TableIdentifier) -> None:
        super()._require_free(identifier)
        check_name(identifier.name)
        if self._table(identifier) is not None:
            # a table of another tool has the name
            raise self._already_exists(identifier)

    def _publish_table(self, loaded_table: LoadedTable) -> Outcome[None]:
        identifier, location = loaded_table.identifier, loaded_table.metadata_location
        refusal = self._already_exists(identifier)

        def look(e: BaseException) -> Outcome[None]:
            return self._outcome_of(identifier, location, e, refusal=refusal)

        try:
            for_hive = self._is_enabled(_HIVE_ENABLED, loaded_table.metadata.properties, False)
            table = new_table(loaded_table, self._user, int(time.time()), self._limit, for_hive)
        except IcebergError as e:
            return Refused(e)
        return self._publish(identifier, table, look, refusal)

    def _publish(
        self,
        identifier: TableIdentifier,
        table: Struct,
        look: Callable[[BaseException], Outcome[None]],
        refusal: IcebergError,
    ) -> Outcome[None]:
        try:
            self._hive.call("create_table", tbl=table)
        except HiveAnswerError as e:
            outcome = look(e)
            if not isinstance(outcome, Unknown):
                return outcome
            if e.code == _EXISTS:
                return Refused(caused_by(refusal, e))
            if e.code in _CERTAIN:
                return Refused(caused_by(CatalogError(f"table or view {identifier}: {e}"), e))
            return outcome
        except HiveUnreachableError as e:
            return Refused(e)
        except CatalogUnavailableError as e:
            return look(e)
        return Done(None)

    def _swap_table(self, base: LoadedTable, new_table: LoadedTable) -> Outcome[None]:
        identifier, base_location = new_table.identifier, base.metadata_location
        conflict = self._conflict(identifier)

        def look(e: BaseException) -> Outcome[None]:
            new = new_table.metadata_location
            return self._outcome_of(
                identifier, new, e, base_location=base_location, refusal=conflict
            )

        def change(table: Struct) -> Struct:
            for_hive = self._is_enabled(_HIVE_ENABLED, new_table.metadata.properties, False)
            return changed_table(table, base, new_table, self._limit, for_hive)

        properties = base.metadata.properties
        return self._swap(identifier, base_location, properties, change, look, conflict)

    def _swap(
        self,
        identifier: TableIdentifier,
        base_location: str,
        properties: Mapping[str, str],
        change: Callable[[Struct], Struct],
        look: Callable[[BaseException], Outcome[None]],
        conflict: IcebergError,
    ) -> Outcome[None]:
        def require_base() -> None:
            # waiting for the lock is pointless if another writer has committed in the meantime
            table = self._table(identifier)
            if table is None or pointer_of(table) != base_location:
                raise conflict

        try:
            guard = self._guard(identifier, properties)
            guard.acquire(require_base)
        except Exception as e:  # noqa: BLE001 - nothing was swapped, whatever it is
            return Refused(_refusal(identifier, e))
        try:
            return self._swap_under_guard(guard, identifier, base_location, change, look, conflict)
        finally:
            guard.release()

    def _swap_under_guard(
        self,
        guard: _Guard,
        identifier: TableIdentifier,
        base_location: str,
        change: Callable[[Struct], Struct],
        look: Callable[[BaseException], Outcome[None]],
        conflict: IcebergError,
    ) -> Outcome[None]:
        try:
            table = self._table(identifier)
            if table is None or pointer_of(table) != base_location:
                return Refused(conflict)
            new_table = change(table)
            guard.check()
        except Exception as e:  # noqa: BLE001 - nothing was swapped, whatever it is
            return Refused(_refusal(identifier, e))
        try:
            alter_table(
                self._hive,
                identifier,
                new_table,
                base_location if isinstance(guard, _NoLock) else None,
            )
            guard.check()
        except HiveAnswerError as e:
            return self._after_answer(e, identifier, base_location, look(e), conflict)
        except HiveUnreachableError as e:
            return Refused(e)
        except (CatalogError, CommitStateUnknownError) as e:
            # no answer, or the lock was lost while the request was on its way
            return look(e)
        return Done(None)

    def _after_answer(
        self,
        e: HiveAnswerError,
        identifier: TableIdentifier,
        base_location: str,
        observed_outcome: Outcome[None],
        conflict: IcebergError,
    ) -> Outcome[None]:
        """Return the outcome of a request that the metastore refused.

        `observed_outcome` is the outcome according to the table's metadata. The request is
        finished, so a table that has not changed will not be changed by this request.
        """
        if e.code == UNKNOWN_CALL:
            return Refused(e)
        if not isinstance(observed_outcome, Unknown) or not (
            e.code in _CERTAIN or MODIFIED_MESSAGE in str(e)
        ):
            return observed_outcome
        try:
            table = self._table(identifier)
        except IcebergError:
            return observed_outcome
        if table is None or (MODIFIED_MESSAGE in str(e) and pointer_of(table) == base_location):
            return Refused(caused_by(conflict, e))
        if pointer_of(table) == base_location:
            return Refused(caused_by(CatalogError(f"table or view {identifier}: {e}"), e))
        return observed_outcome

    def _guard(self, identifier: TableIdentifier, properties: Mapping[str, str]) -> _Guard:
        if self._is_enabled(_LOCK_ENABLED, properties, True):
            return TableLock(self._hive, self._properties, self._locks, identifier)
        if self._compares is None:
            self._compares = compares_locations(self._hive, identifier.namespace[0], self._user)
        if not self._compares:
            raise UnsupportedFeatureError(
                f"table or view {identifier}: the Hive metastore at {self._hive.address} does not "
                "check which metadata_location a change replaces (Hive does from 2.3.10 and 4.0 "
                f"on), so that a commit without locks could overwrite another; remove "
                f"{_LOCK_ENABLED}=false"
            )
        return _NoLock()

    def _is_enabled(self, name: str, properties: Mapping[str, str], default: bool) -> bool:
        """Return a boolean setting of the table, or else of the catalog."""
        if name in properties:
            return BoolProperty(name, default).of(properties)
        of_catalog = _of_hive(self._properties, f"iceberg.{name}")
        if not of_catalog and name in self._properties:
            of_catalog = {f"iceberg.{name}": self._properties[name]}
        return BoolProperty(f"iceberg.{name}", default).of(of_catalog)

    @property
    def _user(self) -> str:
        return user_name(self._properties)

    def _delete_pointer(self, identifier: TableIdentifier) -> bool:
        return self._drop(identifier, is_iceberg)

    def _drop(self, identifier: TableIdentifier, is_wanted: Callable[[Struct], bool]) -> bool:
        table = self._table(identifier)
        if table is None or not is_wanted(table):
            return False
        try:
            self._hive.change(
                "drop_table",
                dbname=identifier.namespace[0],
                name=identifier.name,
                deleteData=False,
            )
        except HiveAnswerError as e:
            if e.code == _MISSING:
                return False
            raise
        return True

    def rename_table(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Rename a table; `target` may start with the catalog's name, as in Java's HiveCatalog."""
        super().rename_table(source, self._without_catalog(target))

    def rename_view(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Rename a view; `target` may start with the catalog's name, as in Java's HiveCatalog."""
        super().rename_view(source, self._without_catalog(target))

    def _without_catalog(self, identifier: TableIdentifier) -> TableIdentifier:
        levels = identifier.namespace
        if len(levels) == 2 and levels[0].lower() == self._name.lower():
            return TableIdentifier(namespace=levels[1:], name=identifier.name)
        return identifier

    def _rename_pointer(self, source: TableIdentifier, target: TableIdentifier) -> bool:
        return self._rename(source, target, is_iceberg)

    def _rename(
        self,
        source: TableIdentifier,
        target: TableIdentifier,
        is_wanted: Callable[[Struct], bool],
    ) -> bool:
        check_name(target.name)
        guard = self._guard(source, {})
        guard.acquire(lambda: None)
        try:
            table = self._table(source)
            if table is None or not is_wanted(table):
                return False
            guard.check()
            # this write of the old entry would undo a commit that came in between
            base_location = pointer_of(table) if isinstance(guard, _NoLock) else None
            try:
                alter_table(self._hive, source, renamed_table(table, target), base_location)
            except HiveAnswerError as e:
                if refusal := self._rename_refusal(target, table):
                    raise refusal from e
                raise
        finally:
            guard.release()
        return True

    def _rename_refusal(self, target: TableIdentifier, table: Struct) -> IcebergError | None:
        """Return why a table cannot have the name `target`, or None if it can."""
        try:
            at_target = self._table(target)
            if at_target is not None:
                is_it = pointer_of(at_target) == pointer_of(table)
                return None if is_it else self._already_exists(target)
            if not self.namespace_exists(target.namespace):
                return no_such_namespace(target.namespace, self._name)
        except CatalogError as e:
            _log.info("could not look at %s: %s", target, e)
        return None

    # views

    def _view_pointer(self, identifier: TableIdentifier) -> str | None:
        table = self._table(identifier)
        if table is None or not is_iceberg_view(table):
            return None
        return location_in(table, identifier, self._name)

    def _require_free_for_view(self, identifier: TableIdentifier) -> None:
        super()._require_free_for_view(identifier)
        check_name(identifier.name)
        if self._table(identifier) is not None:
            raise self._view_already_exists(identifier)

    def _publish_view(self, loaded_view: LoadedView) -> Outcome[None]:
        identifier = loaded_view.identifier

        def look(e: BaseException) -> Outcome[None]:
            return self._view_outcome(identifier, loaded_view.metadata_location, e)

        view = new_view(loaded_view, self._user, int(time.time()), self._limit)
        return self._publish(identifier, view, look, self._view_already_exists(identifier))

    def _swap_view(self, base: LoadedView, new_view: LoadedView) -> Outcome[None]:
        identifier = new_view.identifier

        def look(e: BaseException) -> Outcome[None]:
            return self._view_outcome(identifier, new_view.metadata_location, e)

        def change(view: Struct) -> Struct:
            return changed_view(view, base, new_view, self._limit)

        conflict = self._view_conflict(identifier)
        return self._swap(identifier, base.metadata_location, {}, change, look, conflict)

    def _delete_view_pointer(self, identifier: TableIdentifier) -> bool:
        return self._drop(identifier, is_iceberg_view)

    def _rename_view_pointer(self, source: TableIdentifier, target: TableIdentifier) -> bool:
        return self._rename(source, target, is_iceberg_view)


def _refusal(identifier: TableIdentifier, e: Exception) -> IcebergError:
    """Return the error of a swap that an error prevented before its request was sent."""
    if isinstance(e, IcebergError):
        return e
    text = f"table or view {identifier} was not changed: {type(e).__name__}: {e}"
    return caused_by(CatalogError(text), e)


def _of_hive(properties: Mapping[str, str], name: str) -> dict[str, str]:
    value = hive_property(properties, name)
    return {} if value is None else {name: value}
