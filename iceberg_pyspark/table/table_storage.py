"""The store a table's files are reached through: by scheme, confined to the table's own folder."""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.spec.properties import bool_property
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.storage.restricted import ALLOW_OUTSIDE_LOCATIONS, RestrictedFileIO


def table_io(table: LoadedTable, options: Mapping[str, str] | None = None) -> FileIO:
    """The table's store; whatever lies outside its location is refused.

    `options` come from the user or the catalog's configuration, never from the table: with
    `read.allow-outside-locations` they lift the restriction.
    """
    io = open_storage(table.metadata.location, table.config)
    if bool_property(options or {}, ALLOW_OUTSIDE_LOCATIONS, False):
        return io
    return RestrictedFileIO(
        io=io, allowed=(table.metadata.location,), hint=f"table {table.identifier}"
    )
