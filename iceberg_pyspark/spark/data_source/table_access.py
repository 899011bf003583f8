"""Loads the table and the catalog that a set of options names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.spark.data_source.read_options import TableOptions, parse_table_options
from iceberg_pyspark.storage.credentials.server_endpoints import with_users_properties
from iceberg_pyspark.table.table import Table
from iceberg_pyspark.table.table_catalog import resolve_table


def find_table(options: TableOptions) -> tuple[Catalog, TableIdentifier]:
    """Return the catalog and the identifier that the options name; the table may not exist."""
    return resolve_table(
        options.table,
        catalog=options.catalog,
        catalog_properties=options.catalog_properties,
        storage_properties=options.storage_properties,
    )


def load_table(catalog: Catalog, identifier: TableIdentifier, options: TableOptions) -> LoadedTable:
    """Return the table's current metadata; the storage options complete its config."""
    loaded_table = catalog.load_table(identifier)
    config = with_users_properties(loaded_table.config, options.storage_properties)
    return replace(loaded_table, config=config)


def open_table(name: str, options: Mapping[str, str]) -> Table:
    """Return the table of a name or path, with the options that reads and writes accept."""
    table_options = parse_table_options({**options, "path": name})
    catalog, identifier = find_table(table_options)
    return Table(catalog, load_table(catalog, identifier, table_options))
