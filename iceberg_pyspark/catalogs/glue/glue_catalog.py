"""A catalog in AWS Glue, compatible with Java's GlueCatalog and PyIceberg's.

A commit calls UpdateTable with the table version that was read; Glue refuses the call if the
version has changed. A namespace has one level, a Glue database. `glue_entries.py` builds the
entries of tables; `glue_client.py` sends the requests and translates their errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iceberg_pyspark.catalogs.catalog import (
    LoadedTable,
    Namespace,
    TableIdentifier,
    check_namespace,
    namespace_already_exists,
    no_such_namespace,
)
from iceberg_pyspark.catalogs.glue.glue_client import GlueAnswerError, GlueClient
from iceberg_pyspark.catalogs.glue.glue_entries import (
    METADATA_LOCATION,
    check_database_name,
    check_table_name,
    database_input,
    is_database_name,
    is_iceberg,
    is_table_name,
    namespace_properties,
    new_table_input,
    next_table_input,
    renamed_table_input,
)
from iceberg_pyspark.catalogs.metastore_catalog import MetastoreCatalog
from iceberg_pyspark.catalogs.outcome_search import look_after_change
from iceberg_pyspark.changes.outcomes import Done, Outcome, Refused, caused_by
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitStateUnknownError,
    IcebergError,
    NamespaceNotEmptyError,
    NotAuthorizedError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.table_properties import bool_property
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.places import is_directly_in

_log = get_logger(__name__)

_SKIP_ARCHIVE = "glue.skip-archive"
_MISSING = "EntityNotFoundException"
_EXISTS = "AlreadyExistsException"
_CONCURRENT_CHANGE = "ConcurrentModificationException"


class GlueCatalog(MetastoreCatalog):
    """The tables of an AWS Glue data catalog.

    If `io` is None, the location of each file decides which storage is used.
    """

    _namespace_suffix = ".db"

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        super().__init__(name, properties, io)
        self._glue = GlueClient(name, properties)
        # each archived version counts towards a quota, and Iceberg has its own history
        self._skip_archive = bool_property(properties, _SKIP_ARCHIVE, True)

    def __repr__(self) -> str:
        return f"GlueCatalog({self._name!r}, {self._properties!r})"

    # namespaces

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """Return the databases as namespaces; a database has no child namespaces."""
        if parent:
            self._require_namespace(parent)
            return []
        return sorted((d["Name"],) for d in self._glue.pages("get_databases", "DatabaseList"))

    def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a database; raise `NamespaceAlreadyExistsError` if the database exists."""
        check_namespace(namespace)
        if len(namespace) > 1:
            raise UnsupportedFeatureError(
                f"namespace {'.'.join(namespace)}: Glue has no nested namespaces"
            )
        check_database_name(namespace[0])
        exists = namespace_already_exists(namespace, self._name)
        if self.namespace_exists(namespace):
            raise exists
        database = database_input(namespace[0], properties or {})
        try:
            self._glue.change("create_database", DatabaseInput=database)
        except GlueAnswerError as e:
            if e.code != _EXISTS:
                raise
            raise exists from e
        except CommitStateUnknownError as e:
            change = f"creation of namespace {namespace[0]}"
            look_after_change(change, lambda: self._has(namespace, database), e)

    def drop_namespace(self, namespace: Namespace) -> None:
        """Drop an empty database; raise `NoSuchNamespaceError` or `NamespaceNotEmptyError`."""
        check_namespace(namespace)
        self._require_namespace(namespace)
        # Glue would also drop the tables of other tools in the database
        tables = self._glue.call("get_tables", DatabaseName=namespace[0], MaxResults=1)
        if tables.get("TableList"):
            raise NamespaceNotEmptyError(
                f"namespace {namespace[0]} still has tables; drop all of them first, not only "
                "Iceberg's"
            )
        try:
            self._glue.change("delete_database", Name=namespace[0])
        except GlueAnswerError as e:
            if e.code == _MISSING:
                raise no_such_namespace(namespace, self._name) from e
            raise
        except CommitStateUnknownError as e:
            change = f"drop of namespace {namespace[0]}"
            look_after_change(change, lambda: not self.namespace_exists(namespace), e)

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether the database exists; the empty namespace is the catalog itself."""
        return not namespace or self._database(namespace) is not None

    def _namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        return namespace_properties(self._database(namespace) or {})

    def update_namespace_properties(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Remove and set namespace properties; of two concurrent updates, the later one wins."""
        check_namespace(namespace)
        properties = self.load_namespace_properties(namespace)
        remaining_properties = {k: v for k, v in properties.items() if k not in removals}
        new_database = database_input(namespace[0], {**remaining_properties, **updates})
        try:
            self._glue.change("update_database", Name=namespace[0], DatabaseInput=new_database)
        except CommitStateUnknownError as e:
            change = f"change of the properties of namespace {namespace[0]}"
            look_after_change(change, lambda: self._has(namespace, new_database), e)

    def _has(self, namespace: Namespace, database: Mapping[str, Any]) -> bool:
        """Return whether Glue has a database with the properties of this input."""
        current_database = self._database(namespace)
        return current_database is not None and namespace_properties(
            current_database
        ) == namespace_properties(database)

    def _database(self, namespace: Namespace) -> dict[str, Any] | None:
        if not is_database_name(namespace):
            return None
        try:
            answer = self._glue.call("get_database", Name=namespace[0])
        except GlueAnswerError as e:
            if e.code == _MISSING:
                return None
            raise
        database: dict[str, Any] = answer["Database"]
        return database

    # tables

    def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the Iceberg tables in a database; raise `NoSuchNamespaceError`."""
        if not namespace:
            return []
        if not is_database_name(namespace):
            raise no_such_namespace(namespace, self._name)
        try:
            tables = list(self._glue.pages("get_tables", "TableList", DatabaseName=namespace[0]))
        except GlueAnswerError as e:
            if e.code == _MISSING:
                raise no_such_namespace(namespace, self._name) from e
            raise
        names = sorted(table["Name"] for table in tables if is_iceberg(table))
        return [TableIdentifier(namespace=namespace, name=name) for name in names]

    def table_exists(self, identifier: TableIdentifier) -> bool:
        """Return whether the table exists and is an Iceberg table."""
        table = self._table(identifier)
        return table is not None and is_iceberg(table)

    def _table(self, identifier: TableIdentifier) -> dict[str, Any] | None:
        if not is_table_name(identifier):
            return None
        try:
            answer = self._glue.call(
                "get_table", DatabaseName=identifier.namespace[0], Name=identifier.name
            )
        except GlueAnswerError as e:
            if e.code == _MISSING:
                return None
            raise
        table: dict[str, Any] = answer["Table"]
        return table

    def other_pointers(self, identifier: TableIdentifier, folder: str) -> list[str]:
        """Return the current metadata files in a folder of all tables of the database but this."""
        tables = self._glue.pages("get_tables", "TableList", DatabaseName=identifier.namespace[0])
        others = (table for table in tables if table["Name"] != identifier.name)
        pointers = (table.get("Parameters", {}).get(METADATA_LOCATION) for table in others)
        return [p for p in pointers if isinstance(p, str) and is_directly_in(p, folder)]

    def _pointer(self, identifier: TableIdentifier) -> str | None:
        table = self._table(identifier)
        return None if table is None else self._pointer_of(identifier, table)

    def _pointer_of(self, identifier: TableIdentifier, table: Mapping[str, Any]) -> str:
        if not is_iceberg(table):
            raise self._not_iceberg(identifier)
        pointer = table["Parameters"].get(METADATA_LOCATION)
        if not isinstance(pointer, str):
            raise CatalogError(
                f"table {identifier} of catalog '{self._name}' has no {METADATA_LOCATION} in Glue; "
                "it is damaged"
            )
        return pointer

    def _require_free(self, identifier: TableIdentifier) -> None:
        super()._require_free(identifier)
        check_table_name(identifier.name)
        if self._table(identifier) is not None:
            # a table of another tool has the name
            raise self._already_exists(identifier)

    def _publish_table(self, table: LoadedTable) -> Outcome[None]:
        refusal = self._already_exists(table.identifier)
        arguments = {"TableInput": new_table_input(table)}
        return self._change_pointer("create_table", arguments, table, None, refusal, (_EXISTS,))

    def _swap_table(self, base: LoadedTable, new_table: LoadedTable) -> Outcome[None]:
        identifier, base_location = new_table.identifier, base.metadata_location
        conflict = self._conflict(identifier)
        try:
            table = self._table(identifier)
            if table is None or self._pointer_of(identifier, table) != base_location:
                return Refused(conflict)
            version = table.get("VersionId")
            if not version:
                raise CatalogError(
                    f"Glue returned no version of table {identifier}, so two commits could "
                    "overwrite each other; use a service that returns versions"
                )
        except IcebergError as e:
            return Refused(e)
        arguments = {
            "TableInput": next_table_input(table, base_location, new_table),
            "SkipArchive": self._skip_archive,
            "VersionId": version,
        }
        codes = (_CONCURRENT_CHANGE, _MISSING)
        return self._change_pointer(
            "update_table", arguments, new_table, base_location, conflict, codes
        )

    def _change_pointer(
        self,
        operation: str,
        arguments: Mapping[str, Any],
        table: LoadedTable,
        base_location: str | None,
        refusal: IcebergError,
        refusal_codes: Sequence[str],
    ) -> Outcome[None]:
        """Send a change of a table's entry; look at the table if Glue gave no certain answer.

        The outcome is `refusal` if Glue answers with one of `refusal_codes`.
        """
        identifier = table.identifier
        try:
            self._glue.call(operation, DatabaseName=identifier.namespace[0], **arguments)
        except NotAuthorizedError as e:
            return Refused(e)
        except (GlueAnswerError, CatalogUnavailableError) as e:
            if isinstance(e, GlueAnswerError) and e.is_certain:
                other = CatalogError(f"table {identifier}: {e}")
                return Refused(caused_by(refusal if e.code in refusal_codes else other, e))
            return self._outcome_of(
                identifier,
                table.metadata_location,
                e,
                base_location=base_location,
                refusal=refusal,
            )
        return Done(None)

    def _delete_pointer(self, identifier: TableIdentifier) -> bool:
        if not self.table_exists(identifier):
            return False
        try:
            self._delete(identifier)
        except GlueAnswerError as e:
            if e.code == _MISSING:
                return False
            raise
        return True

    def _delete(self, identifier: TableIdentifier) -> None:
        self._glue.change(
            "delete_table", DatabaseName=identifier.namespace[0], Name=identifier.name
        )

    def _rename_pointer(self, source: TableIdentifier, target: TableIdentifier) -> bool:
        """Create the table under the new name, then delete the old one: Glue cannot rename.

        If the old entry certainly stays, the new entry is deleted.
        """
        table = self._table(source)
        if table is None:
            return False
        try:
            self._glue.change(
                "create_table",
                DatabaseName=target.namespace[0],
                TableInput=renamed_table_input(table, target.name),
            )
        except GlueAnswerError as e:
            if e.code == _EXISTS:
                raise self._already_exists(target) from e
            raise
        except CommitStateUnknownError:
            if not self._is_copy(target, table):
                raise
        try:
            current_table = self._table(source)
            if current_table is None or current_table.get("VersionId") != table.get("VersionId"):
                # another commit came in between: the source has its changes, the copy does not
                raise CatalogUnavailableError(
                    f"table {source} changed during the rename, so it was not renamed; try again"
                )
            self._delete(source)
        except CatalogError as e:
            if isinstance(e, GlueAnswerError) and e.code == _MISSING:
                raise
            self._delete_copy(source, target, table, e)
            raise
        return True

    def _delete_copy(
        self,
        source: TableIdentifier,
        target: TableIdentifier,
        table: Mapping[str, Any],
        cause: CatalogError,
    ) -> None:
        """Delete the new entry of a table that keeps its old name.

        Raise `CommitStateUnknownError` if the new entry may stay: then the table has both names.
        """
        try:
            if self._is_copy(target, table):
                self._delete(target)
                return
            reason: object = f"{target} has changed or cannot be read"
        except (CatalogError, CommitStateUnknownError) as e:
            reason = e
        raise CommitStateUnknownError(
            f"table {source} was not renamed ({cause}), but {target} may refer to it too ({reason})"
            f"; drop {target} without purging"
        ) from cause

    def _is_copy(self, target: TableIdentifier, table: Mapping[str, Any]) -> bool:
        """Return whether `target` surely has the same metadata file as an entry of Glue."""
        try:
            pointer = self._pointer(target)
        except IcebergError as e:
            _log.info("could not look at table %s: %s", target, e)
            return False
        return pointer is not None and pointer == self._pointer_of(target, table)
