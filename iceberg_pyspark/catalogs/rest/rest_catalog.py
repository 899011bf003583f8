"""A catalog behind Iceberg's REST interface.

Open API specification of the REST catalog. The server writes metadata files and swaps pointers; the
client sends requirements and updates (`commits.py`). Views are in `rest_views.py`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from iceberg_pyspark.catalogs.catalog import (
    LoadedTable,
    Namespace,
    NewTablePlace,
    ScanReport,
    TableIdentifier,
    check_identifier,
    check_namespace,
    no_such_namespace,
)
from iceberg_pyspark.catalogs.catalog_properties import CatalogProperties, storage_properties
from iceberg_pyspark.catalogs.rest import endpoints as e
from iceberg_pyspark.catalogs.rest.answers import NOT_MODIFIED, Answer, config_of, error_of
from iceberg_pyspark.catalogs.rest.authentication import Authentication
from iceberg_pyspark.catalogs.rest.commits import (
    check_new_name,
    commit_refusal,
    commit_to_json,
    creation_refusal,
    identifier_to_json,
    is_answered,
    outcome_of,
    read_nothing,
)
from iceberg_pyspark.catalogs.rest.connection import Connection, TableSessions
from iceberg_pyspark.catalogs.rest.metrics_reports import (
    MetricsReports,
    ScanReports,
    commit_report,
    scan_report,
)
from iceberg_pyspark.catalogs.rest.renewal import CredentialRenewals
from iceberg_pyspark.catalogs.rest.rest_views import RestViews
from iceberg_pyspark.catalogs.rest.scan_planning import (
    PLANNING_MODE,
    ScanPlanning,
    is_planned_here,
)
from iceberg_pyspark.catalogs.rest.signing import RemoteSignings
from iceberg_pyspark.catalogs.rest.table_answers import (
    ALL_QUERY,
    REFS_QUERY,
    AnsweredTable,
    TableCache,
    answered_table,
    loads_refs,
    with_snapshots_of_refs,
)
from iceberg_pyspark.changes.changes import AddSnapshot, TableRequirement, TableUpdate
from iceberg_pyspark.changes.outcomes import Done, Outcome, after_commit
from iceberg_pyspark.errors import (
    InvalidMetadataError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.formats.metadata_files import read_table_metadata
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.partitioning import spec_to_json
from iceberg_pyspark.spec.schema import schema_to_json
from iceberg_pyspark.spec.sorting import sort_order_to_json
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import FORMAT_VERSION, bool_property, int_property
from iceberg_pyspark.storage.open_storage import open_storage

_CACHE_SIZE = "rest-table-cache.max-entries"
_CACHE_MS = "rest-table-cache.expire-after-write-ms"
_REPORTS = "rest-metrics-reporting-enabled"
_PURGE = "rest-catalog-purge"
_DELEGATION = "X-Iceberg-Access-Delegation"


@checked_methods
class RestCatalog(RestViews):
    """The tables of a REST server.

    If `authentication` is None, the catalog's properties decide how requests are authenticated.
    """

    def __init__(
        self,
        name: str,
        properties: Mapping[str, str],
        *,
        authentication: Authentication | None = None,
    ) -> None:
        own_properties = CatalogProperties(properties)
        super().__init__(name, Connection(name, own_properties, authentication))
        self._own_properties = own_properties
        self._authentication = authentication
        self._sessions = TableSessions(self._connection)
        self._signings = RemoteSignings(name, own_properties, self._connection, self._sessions)
        self._renewals = CredentialRenewals(name, self._connection, self._sessions, self._load_anew)

    def __repr__(self) -> str:
        return f"RestCatalog({self._name!r}, {self._own_properties!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # connections cannot be pickled
        build = partial(RestCatalog, authentication=self._authentication)
        return build, (self._name, dict(self._own_properties))

    @property
    def name(self) -> str:
        """The name the catalog was configured under."""
        return self._name

    @property
    def properties(self) -> CatalogProperties:
        """The catalog's properties merged with the server's, storage properties included."""
        return self._connection.properties

    @cached_property
    def _cache(self) -> TableCache:
        properties = self.properties
        return TableCache(
            int_property(properties, _CACHE_SIZE, 100),
            int_property(properties, _CACHE_MS, 300_000) / 1000,
        )

    @cached_property
    def _reports(self) -> MetricsReports | None:
        """The queue of metrics reports, or None if the server or the user does not want reports."""
        if not bool_property(self.properties, _REPORTS, True):
            return None
        if e.REPORT_METRICS not in self._connection.endpoints:
            return None
        return MetricsReports(self._send_report)

    # namespaces

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """Return the direct children of a namespace."""
        c = self._connection
        query = {"parent": c.paths.parent(parent)} if parent else {}
        items = c.pages(c.paths.namespaces, "namespaces", query, NoSuchNamespaceError)
        return sorted(_levels(item) for item in items)

    def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a namespace; raise `NamespaceAlreadyExistsError` if the namespace exists."""
        check_namespace(namespace)
        body = {"namespace": list(namespace), "properties": dict(properties or {})}
        answer = self._connection.change(self._connection.paths.namespaces, body)
        if not answer.is_success:
            raise error_of(
                answer,
                self._name,
                missing=NoSuchNamespaceError,
                existing=NamespaceAlreadyExistsError,
            )

    def drop_namespace(self, namespace: Namespace) -> None:
        """Drop an empty namespace; raise `NoSuchNamespaceError` or `NamespaceNotEmptyError`."""
        check_namespace(namespace)
        is_answered(
            self._connection.send_deletion(self._connection.paths.namespace(namespace)),
            self._name,
            f"drop of namespace {'.'.join(namespace)}",
            lambda answer: error_of(
                answer, self._name, missing=NoSuchNamespaceError, existing=NamespaceNotEmptyError
            ),
            lambda: not self.namespace_exists(namespace),
        )

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether the namespace exists."""
        if not namespace:
            return True
        return self._connection.exists(
            self._connection.paths.namespace(namespace), e.NAMESPACE_EXISTS
        )

    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of a namespace; raise `NoSuchNamespaceError`."""
        c = self._connection
        check_namespace(namespace)
        answer = c.session.ask("GET", c.paths.namespace(namespace))
        success = c.require_success(answer, NoSuchNamespaceError)
        return dict(success.read(lambda content: config_of(content, "properties")))

    def update_namespace_properties(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Remove and set namespace properties; raise `NoSuchNamespaceError`."""
        c = self._connection
        check_namespace(namespace)
        c.endpoints.require(e.UPDATE_NAMESPACE, self._name, "changes of a namespace's properties")
        body = {"removals": list(removals), "updates": dict(updates)}
        answer = self._connection.change(f"{c.paths.namespace(namespace)}/properties", body)
        c.require_success(answer, NoSuchNamespaceError)

    # tables

    def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the tables directly in a namespace; raise `NoSuchNamespaceError`."""
        c = self._connection
        check_namespace(namespace)
        return c.identifiers(c.paths.tables(namespace))

    def table_exists(self, identifier: TableIdentifier) -> bool:
        """Return whether the table exists."""
        return self._connection.exists(self._connection.paths.table(identifier), e.TABLE_EXISTS)

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """Load the table, unless the cached table is current; raise `NoSuchTableError`."""
        c = self._connection
        cache_entry = self._cache.get(identifier)
        headers = self._delegation()
        if cache_entry is not None and cache_entry[0] is not None:
            headers["If-None-Match"] = cache_entry[0]
        of_refs = loads_refs(self.properties)
        query = REFS_QUERY if of_refs else None
        answer = c.session.ask("GET", c.paths.table(identifier), query=query, headers=headers)
        if cache_entry is not None and answer.status == NOT_MODIFIED:
            return cache_entry[1]
        if not answer.is_success:
            self._forget(identifier)
        return self._read_table(
            c.require_success(answer, NoSuchTableError), identifier, of_refs=of_refs, is_loaded=True
        )

    def _load_all_snapshots(self, identifier: TableIdentifier) -> LoadedTable:
        c = self._connection
        answer = c.session.ask("GET", c.paths.table(identifier), query=ALL_QUERY)
        return self._read(c.require_success(answer, NoSuchTableError), identifier, {}).table

    def _load_anew(self, identifier: TableIdentifier) -> LoadedTable:
        self._cache.forget(identifier)
        return self.load_table(identifier)

    def default_table_location(self, identifier: TableIdentifier) -> str:
        """Return the location that the server chooses for a new table, by staging a create.

        Raise `TableAlreadyExistsError` if the table exists.
        """
        return self.place_table(identifier, None).location

    def place_table(self, identifier: TableIdentifier, location: str | None) -> NewTablePlace:
        """Return where the server stages a new table, with credentials for the location.

        If the server cannot stage a table, return the given location unchanged.
        """
        check_new_name(identifier)
        body = {**_ANY_TABLE, "name": identifier.name}
        if location is not None:
            body["location"] = location
        path = self._connection.paths.tables(identifier.namespace)
        answer = self._connection.change(path, body, self._delegation())
        if location is not None and answer.status in _NO_STAGING_STATUSES:
            return NewTablePlace(location=location, config=storage_properties(self.properties))
        if not answer.is_success:
            raise creation_refusal(answer, self._name)
        staged_table = self._read(answer, identifier, is_staged=True).table
        return NewTablePlace(location=staged_table.metadata.location, config=staged_table.config)

    def create_table(self, identifier: TableIdentifier, metadata: TableMetadata) -> LoadedTable:
        """Create a table from its first metadata; the server assigns the UUID.

        Raise `TableAlreadyExistsError`, or `CommitStateUnknownError` if the table may exist now.
        """
        check_new_name(identifier)
        body = {
            "name": identifier.name,
            "location": metadata.location,
            "schema": schema_to_json(metadata.current_schema),
            "partition-spec": spec_to_json(metadata.default_spec),
            "write-order": sort_order_to_json(metadata.default_sort_order),
            "stage-create": False,
            "properties": {**metadata.properties, FORMAT_VERSION: str(metadata.format_version)},
        }
        return self._send_new_table(
            identifier, self._connection.paths.tables(identifier.namespace), body
        )

    def commit_table(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
        *,
        base: LoadedTable | None = None,
    ) -> Outcome[LoadedTable]:
        """Send the requirements and updates to the server, which checks and applies them."""
        check_identifier(identifier)
        cached_table = self._cache.get(identifier)
        # create the reports before the swap, so that an error there cannot fail a finished commit
        reports = self._reports
        started_ns = time.monotonic_ns()
        outcome = outcome_of(
            self._connection.send(
                self._connection.paths.table(identifier),
                commit_to_json(identifier, requirements, updates),
                session=self._sessions.of(identifier),
            ),
            self._name,
            f"table {identifier}",
            lambda answer: self._read_commit(
                answer, identifier, None if cached_table is None else cached_table[1]
            ),
            lambda answer: commit_refusal(answer, self._name, requirements),
        )
        if isinstance(outcome, Done) and reports is not None:
            name, duration_ns = f"{self._name}.{identifier}", time.monotonic_ns() - started_ns
            for snapshot in (u.snapshot for u in updates if isinstance(u, AddSnapshot)):
                reports.report(identifier, partial(commit_report, name, snapshot, duration_ns))
        if isinstance(outcome, Done) and cached_table is None:
            # the answer to a commit contains no storage properties
            with after_commit(f"loading table {identifier} to know its storage properties"):
                return Done(self.load_table(identifier))
        return outcome

    def report_scan(self, identifier: TableIdentifier, scan: ScanReport) -> None:
        """Send a report of a scan now, if the server wants reports."""
        if self._reports is not None:
            self._send_report(identifier, scan_report(f"{self._name}.{identifier}", scan))

    def _send_report(self, identifier: TableIdentifier, report: Mapping[str, Any]) -> None:
        path = self._connection.paths.metrics(identifier)
        self._sessions.of(identifier).try_to_ask("POST", path, body=report, is_repeatable=False)

    def commit_transaction(
        self,
        commits: Sequence[
            tuple[TableIdentifier, Sequence[TableRequirement], Sequence[TableUpdate]]
        ],
    ) -> Outcome[None]:
        """Commit to several tables atomically: to all of them or to none."""
        c = self._connection
        c.endpoints.require(e.COMMIT_TRANSACTION, self._name, "commits to several tables")
        body = {"table-changes": [commit_to_json(*commit) for commit in commits]}
        requirements = [r for _, required, _ in commits for r in required]
        return outcome_of(
            self._connection.send(c.paths.transaction, body),
            self._name,
            f"tables {', '.join(str(identifier) for identifier, _, _ in commits)}",
            read_nothing,
            lambda answer: commit_refusal(answer, self._name, requirements),
        )

    def drop_table(self, identifier: TableIdentifier) -> bool:
        """Remove the table from the catalog and keep its files; raise `NoSuchTableError`."""
        return self._drop(identifier, purge=False)

    @property
    def purges_tables(self) -> bool:
        """Whether the server deletes a purged table's files; Java's property and default."""
        return bool_property(self.properties, _PURGE, False)

    def purge_table(self, identifier: TableIdentifier) -> None:
        """Drop the table and let the server delete its files; raise `NoSuchTableError`."""
        self._drop(identifier, purge=True)

    def _drop(self, identifier: TableIdentifier, *, purge: bool) -> bool:
        c = self._connection
        query = {"purgeRequested": "true" if purge else "false"}
        answer = c.send_deletion(c.paths.table(identifier), query)
        self._forget(identifier)
        return is_answered(
            answer,
            self._name,
            f"drop of table {identifier}",
            lambda answer: error_of(answer, self._name, missing=NoSuchTableError),
            lambda: not self.table_exists(identifier),
        )

    def rename_table(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Rename a table.

        Raise `NoSuchTableError`, `TableAlreadyExistsError` or `NoSuchNamespaceError`.
        """
        c = self._connection
        check_new_name(target)
        c.endpoints.require(e.RENAME_TABLE, self._name, "renaming tables")
        names = {
            "source": identifier_to_json(source),
            "destination": identifier_to_json(target),
        }
        answer = c.send(c.paths.rename_table, names)
        self._forget(source)
        is_answered(
            answer,
            self._name,
            f"rename of table {source} to {target}",
            lambda answer: error_of(
                answer, self._name, missing=NoSuchTableError, existing=TableAlreadyExistsError
            ),
            lambda: not self.table_exists(source) and self.table_exists(target),
        )

    def register_table(
        self, identifier: TableIdentifier, metadata_location: str, *, dry_run: bool = False
    ) -> LoadedTable:
        """Register an existing metadata file as a table; raise `TableAlreadyExistsError`."""
        c = self._connection
        check_new_name(identifier)
        c.endpoints.require(e.REGISTER_TABLE, self._name, "registering tables")
        if dry_run:
            return self._planned_registration(identifier, metadata_location)
        body = {"name": identifier.name, "metadata-location": metadata_location}
        return self._send_new_table(identifier, c.paths.register(identifier.namespace), body)

    def _send_new_table(
        self, identifier: TableIdentifier, path: str, body: Mapping[str, Any]
    ) -> LoadedTable:
        """Ask the server to create or register a table; raise `TableAlreadyExistsError`."""
        outcome = outcome_of(
            self._connection.send(path, body, self._delegation()),
            self._name,
            f"table {identifier}",
            lambda answer: self._read_table(answer, identifier),
            lambda answer: creation_refusal(answer, self._name),
        )
        return outcome.result()

    def _planned_registration(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        """Return the table of a metadata file; this client reads the file, not the server."""
        if not self.namespace_exists(identifier.namespace):
            raise no_such_namespace(identifier.namespace, self._name)
        if self.table_exists(identifier):
            raise TableAlreadyExistsError(
                f"table {identifier} is already in catalog '{self._name}'"
            )
        config = storage_properties(self.properties)
        io = open_storage(metadata_location, config)
        return LoadedTable(
            identifier=identifier,
            metadata=read_table_metadata(io, metadata_location),
            metadata_location=metadata_location,
            config=config,
        )

    # requests

    def _read_commit(
        self, answer: Answer, identifier: TableIdentifier, before: LoadedTable | None
    ) -> LoadedTable:
        # the answer to a commit contains only the metadata
        table = self._read(answer, identifier, {} if before is None else before.config).table
        if before is None:
            # without the ETag, the next load gets a complete answer instead of 304
            return self._cache_table(table, replace(answer, headers={}))
        return self._cache_table(replace(table, plan_scan=before.plan_scan), answer)

    def _read_table(
        self,
        answer: Answer,
        identifier: TableIdentifier,
        *,
        of_refs: bool = False,
        is_loaded: bool = False,
    ) -> LoadedTable:
        new_table = self._read(answer, identifier)
        table = new_table.table
        mode = new_table.planning or self.properties.get(PLANNING_MODE)
        if mode is not None and not is_planned_here(mode):
            planning = ScanPlanning(self._name, self._connection, self._sessions, identifier, mode)
            if is_loaded:
                # a created table exists, even if its scans cannot be planned
                planning.check()
            table = replace(table, plan_scan=planning)
        self._sessions.set_tokens(identifier, new_table.tokens)
        return self._cache_table(self._renewals.of(table), answer, of_refs=of_refs)

    def _cache_table(
        self, table: LoadedTable, answer: Answer, *, of_refs: bool = False
    ) -> LoadedTable:
        identifier = table.identifier
        if self._reports is not None:
            to = ScanReports(identifier, f"{self._name}.{identifier}", self._reports)
            table = replace(table, report_scan=to)
        if of_refs:
            table = with_snapshots_of_refs(table, partial(self._load_all_snapshots, identifier))
        self._cache.put(table, answer.headers.get("ETag"))
        return table

    def _forget(self, identifier: TableIdentifier) -> None:
        self._cache.forget(identifier)
        self._sessions.forget(identifier)

    def _read(
        self,
        answer: Answer,
        identifier: TableIdentifier,
        config: Mapping[str, str] | None = None,
        *,
        is_staged: bool = False,
    ) -> AnsweredTable:
        new_table = answered_table(
            answer,
            identifier,
            catalog=self._name,
            uri=self._connection.session.uri,
            properties=self.properties,
            config=config,
            is_staged=is_staged,
        )
        if config is not None:
            return new_table
        table = self._signings.of(new_table.table, new_table.signing, new_table.tokens)
        return replace(new_table, table=table)

    def _delegation(self) -> dict[str, str]:
        # the user's own header of this name takes precedence
        if any(k.lower() == f"header.{_DELEGATION}".lower() for k in self.properties):
            return {}
        return {_DELEGATION: "vended-credentials"}


_ANY_TABLE: Mapping[str, Any] = {
    "schema": {"type": "struct", "schema-id": 0, "fields": []},
    "stage-create": True,
    "properties": {},
}
_NO_STAGING_STATUSES = (400, 406, 501)


def _levels(item: Any) -> Namespace:
    if not isinstance(item, list) or not all(isinstance(level, str) for level in item):
        raise InvalidMetadataError(f"namespaces: expected lists of strings, got {item!r:.80}")
    return tuple(item)
