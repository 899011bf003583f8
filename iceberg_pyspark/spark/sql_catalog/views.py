"""Loads views that have a query in Spark's dialect."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iceberg_pyspark.catalogs.catalog import Catalog, Namespace, TableIdentifier
from iceberg_pyspark.catalogs.view_catalog import ViewCatalog
from iceberg_pyspark.errors import NoSuchViewError, UnsupportedFeatureError
from iceberg_pyspark.spark.bridge.protocol.views import ViewDefinition
from iceberg_pyspark.spark.rows.types import to_spark_schema
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
