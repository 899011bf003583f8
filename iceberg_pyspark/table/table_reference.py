"""Resolves a table name to its catalog and identifier.

A name with a `/` is a path. Otherwise the catalog is, in this order: the catalog that the caller
names, the configured catalog whose name the table name starts with, the default catalog.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from iceberg_pyspark.catalogs.catalog import Catalog, TableIdentifier, split_catalog
from iceberg_pyspark.catalogs.catalog_properties import configured_names, default_name
from iceberg_pyspark.catalogs.hadoop.path_tables import PathCatalog, path_identifier
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.sql_text.names import is_path, parse_levels


def resolve_table(
    name: str,
    *,
    catalog: str | None = None,
    catalog_properties: Mapping[str, str] | None = None,
    storage_properties: Mapping[str, str] | None = None,
) -> tuple[Catalog, TableIdentifier]:
    """Return the catalog and identifier for a name or path; the table is not loaded."""
    properties = dict(catalog_properties or {})
    storage = dict(storage_properties or {})
    if is_path(name):
        if catalog is not None or properties:
            raise InvalidRequestError(
                f"'{name}' is a path, which belongs to no catalog; remove the catalog options, or "
                "name the table as db.table"
            )
        return PathCatalog(storage), path_identifier(name)
    levels = parse_levels(name)
    if catalog is not None:
        # The form of spark.table is accepted too: catalog.db.table
        rest = levels[1:] if len(levels) > 2 and levels[0] == catalog else levels
        catalog_name = catalog
    elif properties:
        catalog_name, rest = default_name(os.environ), levels
    else:
        names = tuple(configured_names(os.environ))
        first, rest = split_catalog(levels, names)
        catalog_name = first or default_name(os.environ)
    identifier = TableIdentifier(namespace=rest[:-1], name=rest[-1])
    return load_catalog(catalog_name, **{**properties, **storage}), identifier
