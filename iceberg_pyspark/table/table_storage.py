"""The store a table's files are reached through: by scheme, confined to the table's own folders.

An encrypted table is refused: its files could not be read, and new ones would lie there in the
clear (specification, "Table Metadata": `encryption-keys`).

Driver and executors use the same value: it holds properties and no live client, and pickles.
"""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spec.properties import bool_property
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.storage.restricted import ALLOW_OUTSIDE_LOCATIONS, RestrictedFileIO

_ENCRYPTION_KEY = "encryption.key-id"
_PATH_PROPERTIES = ("write.data.path", "write.metadata.path")


def table_io(table: LoadedTable, options: Mapping[str, str] | None = None) -> FileIO:
    """The table's store; whatever lies outside its own folders is refused.

    These are its location, the data and metadata paths among its properties, and the folder its
    metadata file lies in. `options` come from the user or the catalog's configuration, never from
    the table: with `read.allow-outside-locations` they lift the restriction.
    """
    check_not_encrypted(table)
    own = own_io(table)
    return own.io if bool_property(options or {}, ALLOW_OUTSIDE_LOCATIONS, False) else own


def check_not_encrypted(table: LoadedTable) -> None:
    """Raise `UnsupportedFeatureError` for an encrypted table."""
    if table.metadata.encryption_keys or _ENCRYPTION_KEY in table.metadata.properties:
        raise UnsupportedFeatureError(
            f"table {table.identifier} is encrypted, and encrypted files can be neither read nor "
            "written yet; use the engine that holds its keys"
        )


def own_io(table: LoadedTable) -> RestrictedFileIO:
    """The store confined to the table's own folders, whatever a user allows."""
    metadata = table.metadata
    allowed = [metadata.location]
    allowed += [metadata.properties[p] for p in _PATH_PROPERTIES if p in metadata.properties]
    if "/" in table.metadata_location:
        allowed.append(table.metadata_location.rpartition("/")[0])
    return RestrictedFileIO(
        io=open_storage(metadata.location, table.config),
        allowed=tuple(dict.fromkeys(allowed)),
        hint=f"table {table.identifier}",
    )
