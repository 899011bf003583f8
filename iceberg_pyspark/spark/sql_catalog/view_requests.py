"""Views of a catalog: loads those with a query in Spark's dialect; CREATE, ALTER and DROP VIEW.

A parser in front of Spark's parser (`bridge/java/extensions/`) passes a statement through Spark as
a change of the view's namespace, so Spark finds the catalog; the catalog lets Spark analyse the
query. The stored view is the same as with Iceberg's own extensions: the text of the query, the
columns of the view, the query's own column names, and the engine that created it.

Spark sends SHOW CREATE TABLE, SHOW TBLPROPERTIES, DESCRIBE EXTENDED and SHOW TABLE EXTENDED to
tables alone. For a view, their rows are those of Iceberg's own extensions, except that the shown
statement can be run again: names and strings are quoted, and the view's location and format are
left out. The extensions list no views in SHOW TABLE EXTENDED; tools find out by it what is a view,
so ours are listed there as Spark lists its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pyspark.sql import types as spark_types

from iceberg_pyspark.catalogs.catalog import Catalog, Namespace, TableIdentifier, ViewCatalog
from iceberg_pyspark.errors import InvalidRequestError, NoSuchViewError, UnsupportedFeatureError
from iceberg_pyspark.expressions.condition_text import sql_string
from iceberg_pyspark.spark.bridge.protocol.catalog_messages import (
    AnalysedQuery,
    DescribingStatement,
    ViewDefinition,
    ViewStatement,
)
from iceberg_pyspark.spark.rows.spark_types import (
    from_spark_schema,
    struct_from_json,
    to_spark_schema,
)
from iceberg_pyspark.spec.views import SqlRepresentation, ViewMetadata
from iceberg_pyspark.sql_text.names import quoted
from iceberg_pyspark.table.commits.define_view import (
    NewDefinition,
    create_or_replace_view,
    create_view,
    remove_view_properties,
    replace_view,
    set_view_properties,
    with_views,
)

_DIALECT = "spark"
_QUERY_COLUMNS = "spark.query-column-names"
"""The property of a view with the names of its query's columns, joined by commas."""
_COMMENT = "comment"
_CREATED_BY = "create_engine_version"
_CHANGED_BY = "engine_version"

_ENGINE = "engine-name"
_LASTING_NAME = re.compile(r"[\w ]+")
"""The names that Spark gives to expressions, such as `count(1)`, depend on its release."""


def view_names(catalog: Catalog, namespace: Namespace) -> tuple[str, ...]:
    """Return the names of the views in a namespace; none in a catalog without views."""
    if not isinstance(catalog, ViewCatalog):
        return ()
    return tuple(view.name for view in catalog.list_views(namespace))


def view_definition(catalog: Catalog, identifier: TableIdentifier) -> ViewDefinition:
    """Return a view; raise `UnsupportedFeatureError` if it has only queries in other dialects."""
    view = load_view(catalog, identifier)
    if view is None:
        return ViewDefinition(exists=False)
    version = view.current_version
    return ViewDefinition(
        exists=True,
        sql=_with_shown_names(spark_query(identifier, view), identifier.name, view),
        current_catalog=version.default_catalog or catalog.name,
        current_namespace=version.default_namespace,
        schema=to_spark_schema(view.schema).json(),
    )


def load_view(catalog: Catalog, identifier: TableIdentifier) -> ViewMetadata | None:
    """Return a view, or None if there is none of this name; a catalog may have no views at all."""
    if not isinstance(catalog, ViewCatalog):
        return None
    try:
        return catalog.load_view(identifier).metadata
    except NoSuchViewError:
        return None


def spark_query(identifier: TableIdentifier, view: ViewMetadata) -> str:
    """Return the query in Spark's dialect; raise `UnsupportedFeatureError` if there is none."""
    version = view.current_version
    sql = version.sql(_DIALECT)
    if sql is None:
        dialects = sorted(
            r.dialect for r in version.representations if isinstance(r, SqlRepresentation)
        )
        raise UnsupportedFeatureError(
            f"view {identifier} has no query in the dialect '{_DIALECT}', only in: "
            f"{', '.join(dialects) or 'none'}; create it again in Spark, or read its tables"
        )
    return sql


def _with_shown_names(sql: str, name: str, view: ViewMetadata) -> str:
    """Return a query with the view's column names, whatever names the query's columns have.

    A query may return other columns than when the view was created, because it has a `*`. So the
    columns are chosen by name if the names are known.
    """
    display_names = [quoted(f.name) for f in view.schema.fields]
    own_names = _query_columns(view)
    if own_names is None:
        return f"SELECT * FROM (\n{sql}\n) AS {quoted(name)}({', '.join(display_names)})"
    # Without the view's name, a missing column could be resolved as another column's new name.
    columns = ", ".join(
        f"{quoted(name)}.{quoted(own)} AS {display}"
        for own, display in zip(own_names, display_names, strict=True)
    )
    return f"SELECT {columns} FROM (\n{sql}\n) AS {quoted(name)}"


def _query_columns(view: ViewMetadata) -> Sequence[str] | None:
    """Return the names of the query's columns, or None if they are unknown or may change."""
    # Other engines replace the query but not the property.
    if view.current_version.summary.get(_ENGINE) != "spark":
        return None
    names = view.properties.get(_QUERY_COLUMNS, "").split(",")
    is_usable = (
        len(names) == len(view.schema.fields)
        and len({name.lower() for name in names}) == len(names)
        and all(_LASTING_NAME.fullmatch(name) for name in names)
    )
    return names if is_usable else None


_INTERNAL = {_COMMENT, _CREATED_BY, _CHANGED_BY, _QUERY_COLUMNS}
"""Properties that a statement stores without being told to."""
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

Rows: TypeAlias = tuple[tuple[str, ...], ...]


def description_rows(
    catalog: Catalog,
    identifier: TableIdentifier,
    statement: DescribingStatement,
    key: str | None = None,
) -> Rows | None:
    """Return the rows of a statement about a view, or None if there is no view of this name.

    `key` is the only property to show, or None for all.
    """
    view = load_view(catalog, identifier)
    if view is None:
        return None
    match statement:
        case "show create":
            return ((_create_statement(catalog.name, identifier, view),),)
        case "show properties":
            return _property_rows(catalog.name, identifier, view, key)
        case "describe extended":
            return _details(catalog.name, identifier, view)
        case "show extended":
            return ((_information(catalog.name, identifier, view),),)


def _create_statement(catalog: str, identifier: TableIdentifier, view: ViewMetadata) -> str:
    """Return the CREATE VIEW statement that creates the view again."""
    fields = to_spark_schema(view.schema).fields
    clauses = [
        f"CREATE VIEW {_full_name((catalog, *identifier.levels))} {_in_lines(map(_column, fields))}"
    ]
    comment = view.properties.get(_COMMENT)
    if comment is not None:
        clauses.append(f"COMMENT {sql_string(comment)}")
    properties = _own_properties(view)
    if properties:
        clauses.append(f"TBLPROPERTIES {_in_lines(_pairs(properties))}")
    return "\n".join((*clauses, "AS", spark_query(identifier, view), ""))


def _column(field: spark_types.StructField) -> str:
    comment = field.metadata.get("comment")
    name = _name(field.name)
    return name if comment is None else f"{name} COMMENT {sql_string(comment)}"


def _property_rows(
    catalog: str, identifier: TableIdentifier, view: ViewMetadata, key: str | None
) -> Rows:
    if key is None:
        return tuple(_all_properties(view).items())
    missing = f"View {catalog}.{identifier} does not have property: {key}"
    return ((key, {**view.properties, **_all_properties(view)}.get(key, missing)),)


def _details(catalog: str, identifier: TableIdentifier, view: ViewMetadata) -> Rows:
    columns = [
        (f.name, f.dataType.simpleString(), f.metadata.get("comment", ""))
        for f in to_spark_schema(view.schema).fields
    ]
    return (
        *columns,
        ("", "", ""),
        ("# Detailed View Information", "", ""),
        *((name, value, "") for name, value in _facts(catalog, identifier, view).items()),
    )


def _information(catalog: str, identifier: TableIdentifier, view: ViewMetadata) -> str:
    """Return the column `information` of SHOW TABLE EXTENDED, as Spark shows its own views."""
    facts = {
        "Catalog": catalog,
        "Namespace": _full_name(identifier.namespace),
        "Table": identifier.name,
        "Type": "VIEW",
        "View Text": view.current_version.sql(_DIALECT),
        **_facts(catalog, identifier, view),
        "Schema": to_spark_schema(view.schema).treeString(),
    }
    return "".join(f"{name}: {value}\n" for name, value in facts.items() if value)


def _facts(catalog: str, identifier: TableIdentifier, view: ViewMetadata) -> Mapping[str, str]:
    own_names = view.properties.get(_QUERY_COLUMNS, "").replace(",", ", ")
    pairs = ", ".join(_pairs(_all_properties(view)))
    return {
        "Comment": view.properties.get(_COMMENT, ""),
        "View Catalog and Namespace": _full_name((catalog, *identifier.namespace)),
        "View Query Output Columns": f"[{own_names}]",
        "View Properties": f"[{pairs}]",
        "Created By": view.properties.get(_CREATED_BY, ""),
    }


def _own_properties(view: ViewMetadata) -> Mapping[str, str]:
    """Return the properties that a statement has set, in the order of their keys."""
    return {k: v for k, v in sorted(view.properties.items()) if k not in _INTERNAL}


def _all_properties(view: ViewMetadata) -> Mapping[str, str]:
    """Return the properties that statements have set and those that describe the view."""
    facts = {
        "format-version": str(view.format_version),
        "location": view.location,
        "provider": "iceberg",
    }
    return dict(sorted({**_own_properties(view), **facts}.items()))


def _pairs(properties: Mapping[str, str]) -> Iterable[str]:
    return (f"{sql_string(key)} = {sql_string(value)}" for key, value in properties.items())


def _in_lines(items: Iterable[str]) -> str:
    return "(\n  " + ",\n  ".join(items) + ")"


def _full_name(levels: Iterable[str]) -> str:
    return ".".join(map(_name, levels))


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name)


_LOCATION = "location"
_PROVIDER = "provider"
_RESERVED = {
    _LOCATION: "CREATE OR REPLACE VIEW ... TBLPROPERTIES ('location' = '...') moves a view",
    _PROVIDER: "every view here is Iceberg's",
    "format-version": "the format of views has one version",
    _QUERY_COLUMNS: "it belongs to the view's query",
}
"""Properties that ALTER VIEW may neither set nor unset, and why; the names are Java's."""


def change_view(
    catalog: Catalog, namespace: Namespace, statement: ViewStatement, query: AnalysedQuery | None
) -> None:
    """Carry out a statement; `query` is the view's query, or None if the statement has none."""
    identifier = TableIdentifier(namespace=namespace, name=statement.name)
    if statement.kind == "drop if exists" and not isinstance(catalog, ViewCatalog):
        return
    views = with_views(catalog)
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
                    properties={_CREATED_BY: _engine(query), **definition.properties},
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
        _QUERY_COLUMNS: ",".join(own_names),
        _CHANGED_BY: _engine(query),
    }
    if statement.comment is not None:
        properties[_COMMENT] = statement.comment
    elsewhere = query.current_catalog != catalog.name
    return NewDefinition(
        schema=from_spark_schema(display_columns),
        query=SqlRepresentation(query.sql, _DIALECT),
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
