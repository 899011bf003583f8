"""Loads views that have a query in Spark's dialect."""

from __future__ import annotations

from iceberg_pyspark.catalogs.catalog import Catalog, Namespace, TableIdentifier
from iceberg_pyspark.catalogs.view_catalog import ViewCatalog
from iceberg_pyspark.errors import NoSuchViewError, UnsupportedFeatureError
from iceberg_pyspark.spark.bridge.protocol.views import ViewDefinition
from iceberg_pyspark.spark.rows.types import to_spark_schema
from iceberg_pyspark.spec.views import SqlRepresentation
from iceberg_pyspark.sql_text.names import quoted

DIALECT = "spark"


def view_names(catalog: Catalog, namespace: Namespace) -> tuple[str, ...]:
    """Return the names of the views in a namespace; none in a catalog without views."""
    if not isinstance(catalog, ViewCatalog):
        return ()
    return tuple(view.name for view in catalog.list_views(namespace))


def view_definition(catalog: Catalog, identifier: TableIdentifier) -> ViewDefinition:
    """Return a view; raise `UnsupportedFeatureError` if it has only queries in other dialects."""
    if not isinstance(catalog, ViewCatalog):
        return ViewDefinition(exists=False)
    try:
        view = catalog.load_view(identifier).metadata
    except NoSuchViewError:
        return ViewDefinition(exists=False)
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
    # The view's column names apply, whatever names the query has.
    columns = ", ".join(quoted(f.name) for f in view.schema.fields)
    return ViewDefinition(
        exists=True,
        sql=f"SELECT * FROM (\n{sql}\n) AS {quoted(identifier.name)}({columns})",
        current_catalog=version.default_catalog or catalog.name,
        current_namespace=version.default_namespace,
        schema=to_spark_schema(view.schema).json(),
    )
