"""Loads the table and the catalog that a set of options names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from iceberg_pyspark.catalogs.catalog import (
    Catalog,
    LoadedTable,
    TableIdentifier,
    check_same_table,
)
from iceberg_pyspark.catalogs.registry import resolve_table
from iceberg_pyspark.errors import ConcurrentChangeError
from iceberg_pyspark.formats.metadata_files import read_table_metadata
from iceberg_pyspark.spark.data_source.read_options import TableOptions, parse_table_options
from iceberg_pyspark.storage.credentials.server_endpoints import with_users_properties
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.table.table import Table


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


def load_table_at(options: TableOptions, metadata_location: str) -> tuple[Catalog, LoadedTable]:
    """Return the table as one of its metadata files describes it, and its catalog.

    Raises `TableRecreatedError` if another table has the name now, and `ConcurrentChangeError` if
    only the catalog has the table's metadata, and they have changed.
    """
    catalog, identifier = find_table(options)
    current = load_table(catalog, identifier, options)
    if current.metadata_location == metadata_location:
        return catalog, current
    if current.store_location is not None:
        raise ConcurrentChangeError(
            f"table {options.table} was changed between two reads of one operation, which must "
            "see one state of it; run the operation again"
        )
    store = open_storage(metadata_location, current.config)
    metadata = read_table_metadata(store, metadata_location)
    earlier = replace(current, metadata=metadata, metadata_location=metadata_location)
    check_same_table(earlier, current)
    return catalog, earlier


def open_table(name: str, options: Mapping[str, str]) -> Table:
    """Return the table of a name or path, with the options that reads and writes accept."""
    table_options = parse_table_options({**options, "path": name})
    catalog, identifier = find_table(table_options)
    return Table(catalog, load_table(catalog, identifier, table_options))
