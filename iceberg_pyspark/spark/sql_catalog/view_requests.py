"""Loads views that have a query in Spark's dialect.

The rows of SHOW CREATE TABLE, SHOW TBLPROPERTIES and DESCRIBE EXTENDED for a view.

Spark sends these statements to tables alone. The rows are those of Iceberg's own extensions, except
that the shown statement can be run again: names and strings are quoted, and the view's location and
format are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from pyspark.sql import types as spark_types

from iceberg_pyspark.catalogs.catalog import Catalog, Namespace, TableIdentifier, ViewCatalog
from iceberg_pyspark.errors import NoSuchViewError, UnsupportedFeatureError
from iceberg_pyspark.expressions.condition_text import sql_string
from iceberg_pyspark.spark.bridge.protocol.view_messages import ViewDefinition
from iceberg_pyspark.spark.rows.spark_types import to_spark_schema
from iceberg_pyspark.spec.views import SqlRepresentation, ViewMetadata
from iceberg_pyspark.sql_text.names import quoted

DIALECT = "spark"
QUERY_COLUMNS = "spark.query-column-names"
"""The property of a view with the names of its query's columns, joined by commas."""
COMMENT = "comment"
CREATED_BY = "create_engine_version"
CHANGED_BY = "engine_version"

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
    sql = version.sql(DIALECT)
    if sql is None:
        dialects = sorted(
            r.dialect for r in version.representations if isinstance(r, SqlRepresentation)
        )
        raise UnsupportedFeatureError(
            f"view {identifier} has no query in the dialect '{DIALECT}', only in: "
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
    names = view.properties.get(QUERY_COLUMNS, "").split(",")
    is_usable = (
        len(names) == len(view.schema.fields)
        and len({name.lower() for name in names}) == len(names)
        and all(_LASTING_NAME.fullmatch(name) for name in names)
    )
    return names if is_usable else None


_INTERNAL = {COMMENT, CREATED_BY, CHANGED_BY, QUERY_COLUMNS}
"""Properties that a statement stores without being told to."""
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

Rows: TypeAlias = tuple[tuple[str, ...], ...]


def description_rows(
    catalog: Catalog,
    identifier: TableIdentifier,
    statement: Literal["show create", "show properties", "describe extended"],
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


def _create_statement(catalog: str, identifier: TableIdentifier, view: ViewMetadata) -> str:
    """Return the CREATE VIEW statement that creates the view again."""
    fields = to_spark_schema(view.schema).fields
    clauses = [
        f"CREATE VIEW {_full_name((catalog, *identifier.levels))} {_in_lines(map(_column, fields))}"
    ]
    comment = view.properties.get(COMMENT)
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
    own_names = view.properties.get(QUERY_COLUMNS, "").replace(",", ", ")
    pairs = ", ".join(_pairs(_all_properties(view)))
    return (
        *columns,
        ("", "", ""),
        ("# Detailed View Information", "", ""),
        ("Comment", view.properties.get(COMMENT, ""), ""),
        ("View Catalog and Namespace", _full_name((catalog, *identifier.namespace)), ""),
        ("View Query Output Columns", f"[{own_names}]", ""),
        ("View Properties", f"[{pairs}]", ""),
        ("Created By", view.properties.get(CREATED_BY, ""), ""),
    )


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
