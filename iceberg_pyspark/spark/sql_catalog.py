"""Spark SQL's questions to a catalog, answered: tables, namespaces, schemas, and their changes.

Each answer is a plain dict for the bridge; what cannot be answered is raised. A loaded table is
known to the JVM by a handle that says everything needed to load the same state again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import types as spark_types

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spark.alter_table import alter_table
from iceberg_pyspark.spark.column_defaults import with_defaults
from iceberg_pyspark.spark.hidden_columns import hidden_columns
from iceberg_pyspark.spark.native_grouping import grouping_fields
from iceberg_pyspark.spark.runtime_filters import telling_columns
from iceberg_pyspark.spark.shown_defaults import with_shown_defaults
from iceberg_pyspark.spark.shown_table import shown_fields, shown_partitioning, shown_properties
from iceberg_pyspark.spark.sql_statements import run_statement, statement_in
from iceberg_pyspark.spark.staged_tables import (
    StagedTables,
    abort_staged,
    commit_staged,
    stage_new,
    stage_replacement,
)
from iceberg_pyspark.spark.table_states import TableState, TableStates
from iceberg_pyspark.spark.types import (
    from_spark_schema,
    shown_spark_schema,
    to_spark_schema,
)
from iceberg_pyspark.spec.properties import ACCEPT_ANY_SCHEMA, WAP_ENABLED
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import (
    VoidTransform,
)
from iceberg_pyspark.table.column_statistics import distinct_counts
from iceberg_pyspark.table.create_table import create_table, new_table_properties
from iceberg_pyspark.table.ddl_strings import parse_partitioning
from iceberg_pyspark.table.metadata_tables import metadata_table, table_of_metadata_table
from iceberg_pyspark.table.purge_table import purge_table
from iceberg_pyspark.table.snapshot_selection import (
    SelectedSnapshot,
    SnapshotSelector,
    select_snapshot,
)
from iceberg_pyspark.table.table import Table
from iceberg_pyspark.table.table_storage import table_io

Answer = dict[str, Any] | None


class CatalogAnswers:
    """The catalogs of one session, by handle, and the table states queries refer to."""

    def __init__(self) -> None:
        self._catalogs: dict[str, Catalog] = {}
        self.staged = StagedTables()
        self.states = TableStates(self.catalog)

    def answer(self, operation: str, q: Mapping[str, Any]) -> Answer:
        """Answer one question."""
        if operation == "catalog.open":
            return self._open(q)
        answer = _ANSWERS.get(operation)
        if answer is None:
            raise InvalidRequestError(f"{operation} is no question to a catalog")
        return answer(self, self.catalog(q["catalog"]), q)

    def _open(self, q: Mapping[str, Any]) -> Answer:
        handle = f"{q['session']}/{q['name']}"
        self._catalogs[handle] = load_catalog(q["name"], **q["options"])
        return {"handle": handle}

    def _tables_list(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        return {"names": [t.name for t in catalog.list_tables(tuple(q["namespace"]))]}

    def _table_exists(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        return {"exists": catalog.table_exists(_identifier(q))}

    def _table_invalidate(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        del catalog, q  # nothing is cached: every load reads the catalog
        return {}

    def _table_load(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        selector = SnapshotSelector()
        if q.get("version") is not None:
            selector = SnapshotSelector(version=q["version"])
        elif q.get("timestamp_us") is not None:
            selector = SnapshotSelector(as_of_timestamp_ms=q["timestamp_us"] // 1000)
        identifier = _identifier(q)
        try:
            loaded = catalog.load_table(identifier)
        except NoSuchTableError:
            named = table_of_metadata_table(identifier)
            if named is not None:
                loaded = catalog.load_table(named[0])
                return self._metadata_facts(q["catalog"], catalog, loaded, selector, named[1])
            found = _with_ref(catalog, identifier)
            if found is None:
                raise
            loaded, selector = found
        if selector == SnapshotSelector() and _reads_branch(q.get("wap_branch"), loaded.metadata):
            selector = SnapshotSelector(branch=q["wap_branch"])
        return self._facts(q["catalog"], catalog, loaded, selector)

    def _facts(
        self, handle: str, catalog: Catalog, loaded: LoadedTable, selector: SnapshotSelector
    ) -> Answer:
        metadata = loaded.metadata
        selected = select_snapshot(metadata, selector)
        state = TableState(catalog=handle, loaded=loaded, selector=selector)
        return self._facts_of(self.states.keep(state), catalog, loaded, selected)

    def _facts_of(
        self, key: str, catalog: Catalog, loaded: LoadedTable, selected: SelectedSnapshot
    ) -> Answer:
        metadata = loaded.metadata
        size = rows = 0
        if selected.snapshot is not None:
            size = int(selected.snapshot.summary.get("total-files-size", 2**40))
            rows = int(selected.snapshot.summary.get("total-records", 0))
        return {
            "handle": key,
            "name": f"{catalog.name}.{loaded.identifier}",
            "id": metadata.table_uuid,
            "version": str(selected.snapshot and selected.snapshot.snapshot_id),
            "schema": with_shown_defaults(
                shown_spark_schema(selected.schema), selected.schema
            ).json(),
            "metadata_columns": to_spark_schema(hidden_columns(metadata)).json(),
            "properties": shown_properties(metadata),
            "partitioning": shown_partitioning(metadata),
            "size_in_bytes": size,
            "rows": rows,
            "has_column_statistics": bool(distinct_counts(metadata, selected.snapshot)),
            "grouping": _grouping(metadata, selected.schema),
            "filtered": [f.name for f in telling_columns(metadata)],
            "accept_any_schema": ACCEPT_ANY_SCHEMA.of(metadata.properties),
        }

    def _metadata_facts(
        self,
        handle: str,
        catalog: Catalog,
        loaded: LoadedTable,
        selector: SnapshotSelector,
        name: str,
    ) -> Answer:
        opened = metadata_table(loaded, table_io(loaded), name, selector=selector)
        state = TableState(catalog=handle, loaded=loaded, selector=selector, metadata_table=name)
        key = self.states.keep(state)
        return {
            "handle": key,
            "name": f"{catalog.name}.{opened.name}",
            "schema": to_spark_schema(opened.schema).json(),
            "metadata_columns": to_spark_schema(Schema(fields=())).json(),
            "properties": {"provider": "iceberg", "location": loaded.metadata.location},
            "partitioning": _partitioning_of_metadata_table(name, loaded.metadata),
            "size_in_bytes": 2**20,
        }

    def state(self, handle: str) -> TableState:
        """The state a query refers to."""
        return self.states.state(handle)

    def catalog(self, handle: str) -> Catalog:
        """A catalog that Spark has opened; raises `InvalidRequestError`."""
        found = self._catalogs.get(handle)
        if found is None:
            raise InvalidRequestError(
                f"catalog {handle.partition('/')[2]} was opened before iceberg_pyspark was "
                "installed again: make the DataFrame anew"
            )
        return found

    def _table_create(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        schema = with_defaults(from_spark_schema(_struct(q["schema"])), q["defaults"])
        properties = dict(q["properties"])
        location = properties.pop("location", None)
        loaded = create_table(
            catalog,
            _identifier(q),
            schema,
            spec=parse_partitioning(q["partitioned_by"], schema),
            location=location,
            properties=new_table_properties(
                catalog.properties, _stored_properties(catalog, properties)
            ),
        )
        return self._facts(q["catalog"], catalog, loaded, SnapshotSelector())

    def _table_stage(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        """CREATE TABLE AS SELECT and REPLACE TABLE; `mode` says which of them may be."""
        schema = with_defaults(from_spark_schema(_struct(q["schema"])), q["defaults"])
        given = dict(q["properties"])
        location = given.pop("location", None)
        properties = new_table_properties(catalog.properties, _stored_properties(catalog, given))
        spec = parse_partitioning(q["partitioned_by"], schema)
        identifier = _identifier(q)
        try:
            existing = None if q["mode"] == "create" else catalog.load_table(identifier)
        except NoSuchTableError:
            if q["mode"] == "replace":
                raise
            existing = None
        if existing is None:
            staged = stage_new(
                catalog, identifier, schema, spec, location=location, properties=properties
            )
        else:
            staged = stage_replacement(
                catalog, existing, schema, spec, location=location, properties=properties
            )
        selected = SelectedSnapshot(snapshot=None, schema=staged.planned.metadata.current_schema)
        key = self.staged.add(q["catalog"], staged)
        return self._facts_of(key, catalog, staged.planned, selected)

    def _staged_commit(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        del catalog  # the staged table has it
        staged = self.staged.take(q["handle"])
        if staged is not None:
            commit_staged(staged)
        return {}

    def _staged_abort(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        del catalog  # the staged table has it
        staged = self.staged.take(q["handle"])
        if staged is not None:
            abort_staged(staged)
        return {}

    def _table_alter(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        table = Table(catalog, catalog.load_table(_identifier(q)))
        statement = statement_in(q["changes"])
        if statement is None:
            alter_table(table, q["changes"])
        else:
            run_statement(table, statement)
        loaded = catalog.load_table(_identifier(q))
        return self._facts(q["catalog"], catalog, loaded, SnapshotSelector())

    def _table_drop(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        try:
            if q["purge"]:
                purge_table(catalog, _identifier(q))
            else:
                catalog.drop_table(_identifier(q))
        except NoSuchTableError:
            return {"dropped": False}
        return {"dropped": True}

    def _table_rename(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        target = TableIdentifier(namespace=tuple(q["to_namespace"]), name=q["to_name"])
        catalog.rename_table(_identifier(q), target)
        return {}

    def _namespaces_list(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        return {"namespaces": [list(n) for n in catalog.list_namespaces(tuple(q["namespace"]))]}

    def _namespace_exists(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        return {"exists": catalog.namespace_exists(tuple(q["namespace"]))}

    def _namespace_load(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        return dict(catalog.load_namespace_properties(tuple(q["namespace"])))

    def _namespace_create(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        namespace, properties = tuple(q["namespace"]), dict(q["properties"])
        try:
            catalog.create_namespace(namespace, properties)
        except UnsupportedFeatureError:
            # Spark names an owner, asked or not; where nothing is kept it is no more than that
            if properties.keys() != {"owner"}:
                raise
            catalog.create_namespace(namespace)
        return {}

    def _namespace_alter(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        catalog.update_namespace_properties(
            tuple(q["namespace"]), removals=q["removed"], updates=q["set"]
        )
        return {}

    def _namespace_drop(self, catalog: Catalog, q: Mapping[str, Any]) -> Answer:
        namespace = tuple(q["namespace"])
        if q["cascade"]:
            _drop_all_in(catalog, namespace)
        catalog.drop_namespace(namespace)
        return {}


_ANSWERS: Mapping[str, Callable[[CatalogAnswers, Catalog, Mapping[str, Any]], Answer]] = {
    "tables.list": CatalogAnswers._tables_list,
    "table.exists": CatalogAnswers._table_exists,
    "table.invalidate": CatalogAnswers._table_invalidate,
    "table.load": CatalogAnswers._table_load,
    "table.create": CatalogAnswers._table_create,
    "table.stage": CatalogAnswers._table_stage,
    "staged.commit": CatalogAnswers._staged_commit,
    "staged.abort": CatalogAnswers._staged_abort,
    "table.alter": CatalogAnswers._table_alter,
    "table.drop": CatalogAnswers._table_drop,
    "table.rename": CatalogAnswers._table_rename,
    "namespaces.list": CatalogAnswers._namespaces_list,
    "namespace.exists": CatalogAnswers._namespace_exists,
    "namespace.load": CatalogAnswers._namespace_load,
    "namespace.create": CatalogAnswers._namespace_create,
    "namespace.alter": CatalogAnswers._namespace_alter,
    "namespace.drop": CatalogAnswers._namespace_drop,
}
"""The questions to a catalog."""


def _grouping(metadata: TableMetadata, schema: Schema) -> list[list[Any]]:
    """By what Spark may group files, none in an older schema: names may mean other columns."""
    if schema.schema_id != metadata.current_schema_id:
        return []
    return shown_fields(grouping_fields(metadata), schema)


def _identifier(q: Mapping[str, Any]) -> TableIdentifier:
    return TableIdentifier(namespace=tuple(q["namespace"]), name=q["name"])


def _reads_branch(branch: str | None, metadata: TableMetadata) -> bool:
    """Whether a session that writes to a branch to be audited (`spark.wap.branch`) reads it too."""
    return branch in metadata.refs and WAP_ENABLED.of(metadata.properties)


def _with_ref(
    catalog: Catalog, identifier: TableIdentifier
) -> tuple[LoadedTable, SnapshotSelector] | None:
    """`db.t.branch_x` and `db.t.tag_x`: the table above, at that reference."""
    if not identifier.namespace:
        return None
    parent = TableIdentifier(namespace=identifier.namespace[:-1], name=identifier.namespace[-1])
    for prefix in ("branch_", "tag_"):
        if identifier.name.startswith(prefix):
            ref = identifier.name[len(prefix) :]
            loaded = catalog.load_table(parent)
            selector = (
                SnapshotSelector(branch=ref) if prefix == "branch_" else SnapshotSelector(tag=ref)
            )
            return loaded, selector
    return None


def _stored_properties(catalog: Catalog, given: Mapping[str, str]) -> dict[str, str]:
    """The properties of CREATE TABLE without those that say how it was written."""
    properties = dict(given)
    provider = properties.pop("provider", "iceberg").lower()
    for key in ("external", "is_managed_location", "table_type"):
        properties.pop(key, None)
    if provider == "parquet":
        properties.setdefault("write.format.default", provider)
    elif provider not in ("iceberg", "iceberg-py"):
        raise UnsupportedFeatureError(
            f"catalog {catalog.name} makes Iceberg tables of Parquet files only; write USING "
            f"iceberg, not USING {provider}"
        )
    return properties


def _drop_all_in(catalog: Catalog, namespace: tuple[str, ...]) -> None:
    for identifier in catalog.list_tables(namespace):
        catalog.drop_table(identifier)
    for child in catalog.list_namespaces(namespace):
        _drop_all_in(catalog, child)
        catalog.drop_namespace(child)


def _struct(text: str) -> spark_types.StructType:
    return spark_types.StructType.fromJson(json.loads(text))


def _partitioning_of_metadata_table(name: str, metadata: TableMetadata) -> list[list[Any]]:
    """Java shows position deletes as partitioned like the table, by the struct `partition`."""
    if name != "position_deletes":
        return []
    return [
        ["identity", "`partition`.`" + f.name.replace("`", "``") + "`"]
        for f in metadata.default_spec.fields
        if not isinstance(f.transform, VoidTransform)
    ]
