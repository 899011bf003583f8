"""The catalogs that a session's configuration names, and the tables that names mean in them."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from iceberg_pyspark.catalogs.catalog import Catalog, TableIdentifier
from iceberg_pyspark.catalogs.registry import load_catalog, resolve_table
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.sql_text.names import is_path, parse_levels

CATALOG_CLASS = "iceberg_pyspark"
"""The value of `spark.sql.catalog.<name>` that makes a catalog one of this package."""

_PREFIX = "spark.sql.catalog."


def is_remote(spark: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def catalog_options(spark: SparkSession, name: str) -> dict[str, str]:
    """Return the session's configuration of one of this package's catalogs."""
    prefix = f"{_PREFIX}{name}."
    settings = spark.conf.getAll
    return {k.removeprefix(prefix): v for k, v in settings.items() if k.startswith(prefix)}


def catalog_and_identifier(
    spark: SparkSession, name: str, open_catalog: Callable[[str], Catalog] | None
) -> tuple[Catalog, TableIdentifier]:
    """Return the catalog and the identifier of a name, as `spark_table` finds them; load nothing.

    Raises `InvalidRequestError` for a path, which belongs to no catalog.
    """
    if is_path(name):
        raise InvalidRequestError(
            f"{name} is a path, and procedures are for tables of a catalog; name it as "
            "lake.db.table, or use `iceberg-py maintain`"
        )
    catalog_table = catalog_and_levels(spark, name)
    if catalog_table is None:
        return resolve_table(name)
    catalog_name, levels = catalog_table
    if open_catalog is None:
        catalog = load_catalog(catalog_name, **catalog_options(spark, catalog_name))
    else:
        catalog = open_catalog(catalog_name)
    return catalog, TableIdentifier(namespace=levels[:-1], name=levels[-1])


def catalog_and_levels(spark: SparkSession, name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the catalog and levels of a name that is in a catalog of this package, or None."""
    levels = parse_levels(name)
    # As in Spark, a configured catalog takes precedence over a namespace of the current catalog.
    if len(levels) > 1 and spark.conf.get(f"{_PREFIX}{levels[0]}", None) is not None:
        return (levels[0], levels[1:]) if is_our_catalog(spark, levels[0]) else None
    current = spark.catalog.currentCatalog()
    if not is_our_catalog(spark, current):
        return None
    if len(levels) == 1:
        levels = (*parse_levels(spark.catalog.currentDatabase()), *levels)
    return current, levels


def is_our_catalog(spark: SparkSession, catalog: str) -> bool:
    """Return whether the session's configuration assigns the catalog name to this package."""
    return spark.conf.get(f"{_PREFIX}{catalog}", None) == CATALOG_CLASS
