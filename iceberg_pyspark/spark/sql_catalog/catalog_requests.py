"""Handles Spark SQL's requests to a catalog: tables, namespaces, schemas, and their changes.

Unsupported requests raise errors. The JVM refers to a loaded table by a handle, which contains
everything that is needed to load the same state again.

What few sessions need, procedures and the removal of files, is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from iceberg_pyspark.catalogs.catalog import (
    Catalog,
    LoadedTable,
    Namespace,
    TableIdentifier,
)
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spark.bridge.features import package_version
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.bridge.protocol.catalog_messages import (
    CatalogHandle,
    CatalogOpen,
    Existence,
    NamespaceAlter,
    NamespaceCreate,
    NamespaceDrop,
    NamespaceExists,
    NamespaceLoad,
    NamespaceProperties,
    Namespaces,
    NamespacesList,
    ProcedureCall,
    ProcedureDefinition,
    ProcedureLoad,
    ProcedureNames,
    ProcedureRows,
    ProceduresList,
    TableRequest,
    ViewChange,
    ViewDefinition,
    ViewDescribe,
    ViewDescription,
    ViewLoad,
    ViewNames,
    ViewsList,
)
from iceberg_pyspark.spark.bridge.protocol.messages import Acknowledgement
from iceberg_pyspark.spark.bridge.protocol.table_messages import (
    ChangelogLoad,
    DropResult,
    StagedAbort,
    StagedCommit,
    TableAlter,
    TableCreate,
    TableDefinition,
    TableDrop,
    TableExists,
    TableInvalidate,
    TableLoad,
    TableNames,
    TableRename,
    TableSelect,
    TablesList,
    TableStage,
)
from iceberg_pyspark.spark.options.option_values import snapshot_bounds
from iceberg_pyspark.spark.rows.spark_types import from_spark_schema, struct_from_json
from iceberg_pyspark.spark.sql_catalog.alter_table import (
    alter_table,
    run_statement,
    statement_in,
    with_defaults,
)
from iceberg_pyspark.spark.sql_catalog.cached_catalog import (
    invalidate_table,
    load_for_query,
    with_table_cache,
)
from iceberg_pyspark.spark.sql_catalog.character_types import character_properties
from iceberg_pyspark.spark.sql_catalog.staged_tables import (
    StagedTables,
    abort_staged_table,
    commit_staged_table,
    stage_new,
    stage_replacement,
)
from iceberg_pyspark.spark.sql_catalog.table_definitions import (
    definition_of_snapshot,
    table_definition,
)
from iceberg_pyspark.spark.sql_catalog.view_requests import (
    change_view,
    description_rows,
    view_definition,
    view_names,
)
from iceberg_pyspark.spark.table_states import TableState, TableStates
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import CHARACTER_TYPE, WAP_ENABLED
from iceberg_pyspark.sql_text.ddl import parse_partitioning
from iceberg_pyspark.storage.lru_map import LruMap
from iceberg_pyspark.table.change_feed.changelog_range import (
    ChangelogRange,
    feed_of,
    selector_of_range,
)
from iceberg_pyspark.table.commits.create_table import (
    create_table,
    new_table_properties,
    planned_table,
)
from iceberg_pyspark.table.metadata_tables.lookup import table_of_metadata_table
from iceberg_pyspark.table.reading.snapshot_selection import SelectedSnapshot, SnapshotSelector
from iceberg_pyspark.table.table import load_table

# ruff: noqa: PLC0415 - see above

_ACKNOWLEDGEMENT = Acknowledgement()
_DEFAULT_NAMESPACE = "default-namespace"


class CatalogCallbacks:
    """The catalogs of one session, by handle, and the table states that queries refer to."""

    def __init__(self) -> None:
        self._catalogs: dict[str, Catalog] = {}
        self.staged_tables = StagedTables()
        self.states = TableStates(self.catalog)
        self._definitions: LruMap[str, tuple[TableMetadata, TableDefinition]] = LruMap(64)

    def open(self, request: CatalogOpen) -> CatalogHandle:
        """Open a catalog."""
        handle = f"{request.session}/{request.name}"
        self._catalogs[handle] = with_table_cache(load_catalog(request.name, **request.options))
        return CatalogHandle(
            handle=handle,
            default_namespace=_default_namespace(request),
            release=f"iceberg-pyspark {package_version()}",
        )

    def tables_list(self, request: TablesList) -> TableNames:
        """Return the tables in a namespace."""
        tables = self.catalog(request.catalog).list_tables(request.namespace)
        return TableNames(names=tuple(t.name for t in tables))

    def table_exists(self, request: TableExists) -> Existence:
        """Return whether a table exists."""
        return Existence(exists=self.catalog(request.catalog).table_exists(_identifier(request)))

    def table_invalidate(self, request: TableInvalidate) -> Acknowledgement:
        """Carry out REFRESH TABLE."""
        invalidate_table(self.catalog(request.catalog), _identifier(request))
        return _ACKNOWLEDGEMENT

    def table_load(self, request: TableLoad) -> TableDefinition:
        """Return a table, one of its metadata tables, or the table at one of its refs."""
        catalog = self.catalog(request.catalog)
        selector = SnapshotSelector()
        if request.version is not None:
            selector = SnapshotSelector(version=request.version)
        elif request.timestamp_us is not None:
            selector = SnapshotSelector(as_of_timestamp_ms=request.timestamp_us // 1000)
        identifier = _identifier(request)
        try:
            loaded_table = load_for_query(catalog, identifier)
        # a catalog of folders refuses the slash of db.t.`branch_a/b`
        except (NoSuchTableError, InvalidRequestError):
            metadata_table = table_of_metadata_table(identifier)
            if metadata_table is not None:
                loaded_table = load_for_query(catalog, metadata_table[0])
                return self._definition(
                    TableState(
                        catalog=request.catalog,
                        loaded_table=loaded_table,
                        selector=selector,
                        metadata_table=metadata_table[1],
                    )
                )
            table_and_ref = _with_ref(catalog, identifier)
            if table_and_ref is None:
                raise
            loaded_table, selector = table_and_ref
        by_session = selector == SnapshotSelector() and _reads_branch(
            request.wap_branch, loaded_table.metadata
        )
        if by_session:
            selector = SnapshotSelector(branch=request.wap_branch)
        return self._definition(
            TableState(
                catalog=request.catalog,
                loaded_table=loaded_table,
                selector=selector,
                by_session=by_session,
            )
        )

    def changelog_load(self, request: ChangelogLoad) -> TableDefinition:
        """Return the change feed of a table."""
        loaded_table = load_for_query(self.catalog(request.catalog), _identifier(request))
        wanted = ChangelogRange(
            start_version=request.start_version,
            end_version=request.end_version,
            start_time_us=request.start_time_us,
            end_time_us=request.end_time_us,
            start_inclusive=request.start_inclusive,
            end_inclusive=request.end_inclusive,
        )
        feed = feed_of(
            loaded_table,
            deduplication=request.deduplication,
            compute_updates=request.compute_updates,
        )
        return self._definition(
            TableState(
                catalog=request.catalog,
                loaded_table=loaded_table,
                selector=selector_of_range(loaded_table, wanted, request.branch),
                metadata_table=feed,
            )
        )

    def table_select(self, request: TableSelect) -> TableDefinition:
        """Return a loaded table at other snapshots of the same metadata; raise
        `InvalidRequestError`.
        """
        state = self.state(request.handle)
        return self._definition(
            TableState(
                catalog=state.catalog,
                loaded_table=state.loaded_table,
                selector=_selector_of(state, request.options),
                metadata_table=state.metadata_table,
            )
        )

    def _definition(self, state: TableState) -> TableDefinition:
        handle, metadata = self.states.cache(state), state.loaded_table.metadata
        known = self._definitions.get(handle)
        # in a table made again, a metadata file may have the name of another one
        if known is not None and known[0] is metadata:
            return known[1]
        definition = table_definition(handle, self.catalog(state.catalog).name, state)
        self._definitions.put(handle, (metadata, definition))
        return definition

    def state(self, handle: str) -> TableState:
        """Return the state that a query refers to."""
        return self.states.state(handle)

    def catalog(self, handle: str) -> Catalog:
        """Return a catalog that Spark has opened; raise `InvalidRequestError`."""
        catalog = self._catalogs.get(handle)
        if catalog is None:
            raise InvalidRequestError(
                f"catalog {handle.partition('/')[2]} was opened before iceberg_pyspark was "
                "installed again: create the DataFrame again"
            )
        return catalog

    def view_load(self, request: ViewLoad) -> ViewDefinition:
        """Return the definition of a view, or a response that it does not exist."""
        return view_definition(self.catalog(request.catalog), _identifier(request))

    def view_describe(self, request: ViewDescribe) -> ViewDescription:
        """Return the rows of a statement that describes a view, or that it does not exist."""
        rows = description_rows(
            self.catalog(request.catalog), _identifier(request), request.statement, request.property
        )
        return ViewDescription(exists=rows is not None, rows=rows or ())

    def procedures_list(self, request: ProceduresList) -> ProcedureNames:
        """Return the procedures in a namespace."""
        from iceberg_pyspark.spark.procedures.call_statement import procedure_names

        return ProcedureNames(names=procedure_names(request.namespace))

    def procedure_load(self, request: ProcedureLoad) -> ProcedureDefinition:
        """Return the parameters and result columns of a procedure."""
        from iceberg_pyspark.spark.procedures.call_statement import procedure_definition

        return procedure_definition(request.namespace, request.name)

    def procedure_call(
        self,
        spark: SparkSession,
        bridge: Bridge,
        request: ProcedureCall,
        open_catalog: Callable[[str], Catalog],
    ) -> ProcedureRows:
        """Run CALL in a session; `open_catalog` opens other catalogs of the session by name."""
        from iceberg_pyspark.spark.procedures.call_statement import call_procedure

        catalog = self.catalog(request.catalog)
        return call_procedure(
            spark,
            bridge,
            catalog,
            request.name,
            request.arguments,
            request.current_namespace,
            open_catalog,
        )

    def views_list(self, request: ViewsList) -> ViewNames:
        """Return the views in a namespace; none in a catalog without views."""
        return ViewNames(names=view_names(self.catalog(request.catalog), request.namespace))

    def view_change(self, request: ViewChange) -> Acknowledgement:
        """Carry out CREATE, ALTER or DROP VIEW."""
        change_view(
            self.catalog(request.catalog), request.namespace, request.statement, request.query
        )
        return _ACKNOWLEDGEMENT

    def table_create(self, request: TableCreate) -> TableDefinition:
        """Carry out CREATE TABLE."""
        catalog = self.catalog(request.catalog)
        loaded_table = create_table(catalog, _identifier(request), _new_table(catalog, request))
        return self._definition(TableState(catalog=request.catalog, loaded_table=loaded_table))

    def table_stage(self, request: TableStage) -> TableDefinition:
        """Stage CREATE TABLE AS SELECT or REPLACE TABLE; `mode` says which statement it is."""
        catalog = self.catalog(request.catalog)
        new = _new_table(catalog, request)
        identifier = _identifier(request)
        try:
            existing = None if request.mode == "create" else catalog.load_table(identifier)
        except NoSuchTableError:
            if request.mode == "replace":
                raise
            existing = None
        if existing is None:
            staged_table = stage_new(catalog, planned_table(catalog, identifier, new))
        else:
            staged_table = stage_replacement(catalog, existing, new)
        key = self.staged_tables.add(request.catalog, staged_table)
        selected_snapshot = SelectedSnapshot(
            snapshot=None, schema=staged_table.planned_table.metadata.current_schema
        )
        return definition_of_snapshot(
            key, catalog.name, staged_table.planned_table, selected_snapshot
        )

    def staged_commit(self, request: StagedCommit) -> Acknowledgement:
        """Commit a staged table."""
        staged_table = self.staged_tables.take(request.handle)
        if staged_table is not None:
            commit_staged_table(staged_table)
        return _ACKNOWLEDGEMENT

    def staged_abort(self, request: StagedAbort) -> Acknowledgement:
        """Abandon a staged table and remove its files."""
        staged_table = self.staged_tables.take(request.handle)
        if staged_table is not None:
            abort_staged_table(staged_table)
        return _ACKNOWLEDGEMENT

    def table_alter(self, request: TableAlter) -> TableDefinition:
        """Carry out ALTER TABLE, or the Iceberg statement that is passed as an ALTER TABLE."""
        catalog = self.catalog(request.catalog)
        table = load_table(catalog, _identifier(request), case_sensitive=request.case_sensitive)
        statement = statement_in(request.changes)
        if statement is None:
            alter_table(table, request.changes)
        else:
            run_statement(table, statement)
        loaded_table = catalog.load_table(_identifier(request))
        return self._definition(TableState(catalog=request.catalog, loaded_table=loaded_table))

    def table_drop(self, request: TableDrop) -> DropResult:
        """Carry out DROP TABLE."""
        catalog = self.catalog(request.catalog)
        try:
            if request.purge:
                from iceberg_pyspark.table.maintenance.removal.purge_table import drop_with_files

                drop_with_files(catalog, _identifier(request))
            else:
                catalog.drop_table(_identifier(request))
        except NoSuchTableError:
            return DropResult(existed=False)
        return DropResult(existed=True)

    def table_rename(self, request: TableRename) -> Acknowledgement:
        """Carry out ALTER TABLE ... RENAME TO, whose new name may begin with the catalog's name."""
        catalog, levels = self.catalog(request.catalog), request.to_namespace
        if len(levels) > 1 and levels[0] == catalog.name and not catalog.namespace_exists(levels):
            levels = levels[1:]
        catalog.rename_table(
            _identifier(request), TableIdentifier(namespace=levels, name=request.to_name)
        )
        return _ACKNOWLEDGEMENT

    def namespaces_list(self, request: NamespacesList) -> Namespaces:
        """Return the namespaces in a namespace."""
        return Namespaces(
            namespaces=tuple(self.catalog(request.catalog).list_namespaces(request.namespace))
        )

    def namespace_exists(self, request: NamespaceExists) -> Existence:
        """Return whether a namespace exists."""
        return Existence(exists=self.catalog(request.catalog).namespace_exists(request.namespace))

    def namespace_load(self, request: NamespaceLoad) -> NamespaceProperties:
        """Return the properties of a namespace."""
        properties = self.catalog(request.catalog).load_namespace_properties(request.namespace)
        return NamespaceProperties(properties=properties)

    def namespace_create(self, request: NamespaceCreate) -> Acknowledgement:
        """Carry out CREATE NAMESPACE."""
        catalog = self.catalog(request.catalog)
        try:
            catalog.create_namespace(request.namespace, request.properties)
        except UnsupportedFeatureError:
            # Spark always sets an owner; a catalog that keeps no namespace properties may ignore
            # it.
            if request.properties.keys() != {"owner"}:
                raise
            catalog.create_namespace(request.namespace)
        return _ACKNOWLEDGEMENT

    def namespace_alter(self, request: NamespaceAlter) -> Acknowledgement:
        """Carry out ALTER NAMESPACE."""
        self.catalog(request.catalog).update_namespace_properties(
            request.namespace, removals=request.removals, updates=request.updates
        )
        return _ACKNOWLEDGEMENT

    def namespace_drop(self, request: NamespaceDrop) -> Acknowledgement:
        """Carry out DROP NAMESPACE."""
        catalog = self.catalog(request.catalog)
        if request.cascade:
            from iceberg_pyspark.table.maintenance.removal.purge_table import drop_all_in

            drop_all_in(catalog, request.namespace)
        catalog.drop_namespace(request.namespace)
        return _ACKNOWLEDGEMENT


def _default_namespace(request: CatalogOpen) -> Namespace:
    text = request.options.get(_DEFAULT_NAMESPACE, "default")
    levels = tuple(text.split("."))
    if not all(levels):
        raise InvalidRequestError(
            f"catalog {request.name}: the property {_DEFAULT_NAMESPACE} is '{text}'; write the "
            "levels of a namespace with dots between them, as in db.reports"
        )
    return levels


def _identifier(request: TableRequest) -> TableIdentifier:
    return TableIdentifier(namespace=request.namespace, name=request.name)


def _new_table(catalog: Catalog, request: TableCreate) -> NewTable:
    struct = struct_from_json(request.schema)
    schema = with_defaults(from_spark_schema(struct), request.defaults)
    properties = {k: v for k, v in request.properties.items() if not k.startswith(CHARACTER_TYPE)}
    location = properties.pop("location", None)
    return NewTable(
        schema=schema,
        spec=parse_partitioning(request.partitioned_by, schema),
        location=location,
        properties={
            **new_table_properties(catalog.properties, _stored_properties(catalog, properties)),
            **character_properties(struct, schema),
        },
    )


def _reads_branch(branch: str | None, metadata: TableMetadata) -> bool:
    """Return whether a session that writes to an audit branch (`spark.wap.branch`) reads it too."""
    return branch in metadata.refs and WAP_ENABLED.of(metadata.properties)


def _selector_of(state: TableState, options: Mapping[str, str]) -> SnapshotSelector:
    """Return the selector of a loaded table with the options of a read."""
    branch = options.get("branch")
    selector = state.selector if branch is None else _at_branch(state, branch)
    return replace(selector, **snapshot_bounds(options))


def _at_branch(state: TableState, branch: str) -> SnapshotSelector:
    """Return the selector of a loaded table with the read option `branch`."""
    metadata, selector = state.loaded_table.metadata, state.selector
    name = state.loaded_table.identifier
    by_name = selector != SnapshotSelector() and not state.by_session
    if by_name and branch not in (selector.branch, selector.version):
        raise InvalidRequestError(
            f"the option branch is '{branch}', but a name, version or time selects another "
            f"snapshot of {name} to be read; keep one of them"
        )
    if branch == MAIN:
        return SnapshotSelector()
    metadata.ref_snapshot(branch)
    if metadata.refs[branch].type != "branch":
        raise InvalidRequestError(
            f"the option branch names '{branch}', a tag of {name}; use the option versionAsOf"
        )
    return SnapshotSelector(branch=branch)


def _with_ref(
    catalog: Catalog, identifier: TableIdentifier
) -> tuple[LoadedTable, SnapshotSelector] | None:
    """Return the table and ref of `db.t.branch_x` or `db.t.tag_x`, or None for other names."""
    if not identifier.namespace:
        return None
    parent = TableIdentifier(namespace=identifier.namespace[:-1], name=identifier.namespace[-1])
    for prefix in ("branch_", "tag_"):
        if identifier.name.startswith(prefix):
            ref = identifier.name[len(prefix) :]
            loaded_table = load_for_query(catalog, parent)
            selector = (
                SnapshotSelector(branch=ref) if prefix == "branch_" else SnapshotSelector(tag=ref)
            )
            return loaded_table, selector
    return None


def _stored_properties(catalog: Catalog, table_properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of CREATE TABLE without those that describe the statement."""
    properties = dict(table_properties)
    provider = properties.pop("provider", "iceberg").lower()
    for key in ("external", "is_managed_location", "table_type"):
        properties.pop(key, None)
    if provider == "parquet":
        properties.setdefault("write.format.default", provider)
    elif provider not in ("iceberg", "iceberg-py"):
        raise UnsupportedFeatureError(
            f"catalog {catalog.name} creates Iceberg tables with Parquet files only; write USING "
            f"iceberg, not USING {provider}"
        )
    return properties
