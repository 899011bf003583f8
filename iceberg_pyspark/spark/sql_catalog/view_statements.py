"""CREATE, ALTER and DROP VIEW in a catalog of this package.

A parser in front of Spark's parser (`bridge/java/extensions/`) passes a statement through Spark as
a change of the view's namespace, so Spark finds the catalog; the catalog lets Spark analyse the
query. The stored view is the same as with Iceberg's own extensions: the text of the query, the
columns of the view, the query's own column names, and the engine that created it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pyspark.sql import types as spark_types

from iceberg_pyspark.catalogs.catalog import Catalog, Namespace, TableIdentifier, ViewCatalog
from iceberg_pyspark.errors import InvalidRequestError, NoSuchViewError
from iceberg_pyspark.spark.bridge.protocol.view_messages import AnalysedQuery, ViewStatement
from iceberg_pyspark.spark.rows.spark_types import from_spark_schema, struct_from_json
from iceberg_pyspark.spark.sql_catalog.view_requests import (
    CHANGED_BY,
    COMMENT,
    CREATED_BY,
    DIALECT,
    QUERY_COLUMNS,
)
from iceberg_pyspark.spec.views import SqlRepresentation
from iceberg_pyspark.table.commits.define_view import (
    NewDefinition,
    create_or_replace_view,
    create_view,
    remove_view_properties,
    replace_view,
    set_view_properties,
    with_views,
)

_LOCATION = "location"
_PROVIDER = "provider"
_RESERVED = {
    _LOCATION: "CREATE OR REPLACE VIEW ... TBLPROPERTIES ('location' = '...') moves a view",
    _PROVIDER: "every view here is Iceberg's",
    "format-version": "the format of views has one version",
    QUERY_COLUMNS: "it belongs to the view's query",
}
"""Properties that ALTER VIEW may neither set nor unset, and why; the names are Java's."""


def change_view(
    catalog: Catalog, namespace: Namespace, statement: ViewStatement, query: AnalysedQuery | None
) -> None:
    """Carry out a statement; `query` is the view's query, or None if the statement has none."""
    views = with_views(catalog)
    identifier = TableIdentifier(namespace=namespace, name=statement.name)
    if query is not None:
        _define(catalog, views, identifier, statement, query)
        return
    match statement.kind:
        case "drop" | "drop if exists":
            try:
                views.drop_view(identifier)
            except NoSuchViewError:
                if statement.kind == "drop":
                    raise
        case "set properties":
            _check_not_reserved(identifier, statement.properties)
            set_view_properties(views, identifier, statement.properties)
        case "unset properties" | "unset properties if exists":
            _check_not_reserved(identifier, statement.removals)
            if statement.kind == "unset properties":
                _check_are_set(views, identifier, statement.removals)
            remove_view_properties(views, identifier, statement.removals)
        case "rename":
            views.rename_view(identifier, _new_name(catalog, identifier, statement.new_name))
        case _:
            raise InvalidRequestError(
                f"view {identifier}: {statement.kind} needs a query; write AS SELECT ... at its end"
            )


def _define(
    catalog: Catalog,
    views: ViewCatalog,
    identifier: TableIdentifier,
    statement: ViewStatement,
    query: AnalysedQuery,
) -> None:
    if statement.kind == "create if not exists" and views.view_exists(identifier):
        return
    _check_query(identifier, query)
    definition = _definition(catalog, identifier, statement, query)
    match statement.kind:
        case "create or replace":
            create_or_replace_view(views, identifier, definition)
        case "replace query":
            replace_view(views, identifier, definition)
        case _:
            create_view(
                views,
                identifier,
                replace(
                    definition,
                    properties={CREATED_BY: _engine(query), **definition.properties},
                ),
            )


def _check_query(identifier: TableIdentifier, query: AnalysedQuery) -> None:
    if query.temporary_objects:
        raise InvalidRequestError(
            f"view {identifier} reads the temporary "
            f"{', the temporary '.join(query.temporary_objects)}, "
            "which other sessions do not have; name a table or view of a catalog instead, or "
            "CREATE TEMPORARY VIEW"
        )


def _definition(
    catalog: Catalog, identifier: TableIdentifier, statement: ViewStatement, query: AnalysedQuery
) -> NewDefinition:
    columns = struct_from_json(query.schema)
    own_names = [field.name for field in columns.fields]
    display_columns = _shown_columns(identifier, columns, statement)
    own_properties = {
        k: v for k, v in statement.properties.items() if k not in (_LOCATION, _PROVIDER)
    }
    properties = {
        **own_properties,
        QUERY_COLUMNS: ",".join(own_names),
        CHANGED_BY: _engine(query),
    }
    if statement.comment is not None:
        properties[COMMENT] = statement.comment
    elsewhere = query.current_catalog != catalog.name
    return NewDefinition(
        schema=from_spark_schema(display_columns),
        query=SqlRepresentation(query.sql, DIALECT),
        default_catalog=query.current_catalog if elsewhere else None,
        default_namespace=query.current_namespace,
        summary={"engine-name": "spark", "engine-version": query.release},
        properties=properties,
        location=statement.properties.get(_LOCATION),
    )


def _shown_columns(
    identifier: TableIdentifier, columns: spark_types.StructType, statement: ViewStatement
) -> spark_types.StructType:
    """Return the query's columns with the names and comments that the view gives them."""
    display_columns = list(columns.fields)
    if statement.columns:
        column_names = struct_from_json(statement.columns).fields
        if len(column_names) != len(display_columns):
            raise InvalidRequestError(
                f"view {identifier} names {len(column_names)} columns, and its query has "
                f"{len(display_columns)}: "
                f"{', '.join(f.name for f in display_columns)}; name as many"
            )
        display_columns = [
            spark_types.StructField(name.name, column.dataType, column.nullable, name.metadata)
            for name, column in zip(column_names, display_columns, strict=True)
        ]
    counts = Counter(field.name.lower() for field in display_columns)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise InvalidRequestError(
            f"view {identifier} would have two columns of one name: {', '.join(twice)}; give "
            "others by AS in the query, or in parentheses after the view's name"
        )
    return spark_types.StructType(display_columns)


def _check_not_reserved(identifier: TableIdentifier, keys: Iterable[str]) -> None:
    for key in keys:
        if why := _RESERVED.get(key):
            raise InvalidRequestError(
                f"view {identifier}: {key} is not a property to change: {why}"
            )


def _check_are_set(
    views: ViewCatalog, identifier: TableIdentifier, removals: Sequence[str]
) -> None:
    properties = views.load_view(identifier).metadata.properties
    if unset := [key for key in removals if key not in properties]:
        raise InvalidRequestError(
            f"view {identifier} has no property {', '.join(unset)}; write UNSET TBLPROPERTIES IF "
            "EXISTS, or leave it out"
        )


def _new_name(
    catalog: Catalog, identifier: TableIdentifier, to: tuple[str, ...]
) -> TableIdentifier:
    levels = to[1:] if len(to) > 1 and to[0] == catalog.name else to
    return TableIdentifier(namespace=levels[:-1] or identifier.namespace, name=levels[-1])


def _engine(query: AnalysedQuery) -> str:
    return f"Spark {query.release}"
