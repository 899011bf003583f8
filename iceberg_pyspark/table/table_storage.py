"""Opens the store of a table's files: chosen by scheme, and restricted to the table's locations.

Driver and executors use the same value: it holds properties and no live client, and can be pickled.
The store of an encrypted table encrypts new files (specification, "Encryption Keys").
"""

from __future__ import annotations

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.catalogs.table_folders import own_folders
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.encryption import DATA_KEY_LENGTH, TABLE_KEY_ID, key_encryption_keys
from iceberg_pyspark.spec.relative_paths import RELATIVE_PATHS_VERSION, resolved_path
from iceberg_pyspark.storage.encryption.encrypted_io import EncryptedTableIO, TableEncryption
from iceberg_pyspark.storage.encryption.key_management import (
    KeyManagement,
    key_properties,
    without_key_properties,
)
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.places import check_scheme, is_in_store, store_of
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.storage.own_folders import OwnFolders
from iceberg_pyspark.storage.restricted_io import RestrictedFileIO, read_rule
from iceberg_pyspark.storage.store_properties import check_file_io_class

_PATH_PROPERTIES = ("write.data.path", "write.metadata.path")


def table_io(table: LoadedTable, catalog: Catalog | None = None) -> FileIO:
    """Return the table's store, which refuses other locations; see `RestrictedFileIO`.

    The table's own folders are its location, the data and metadata paths in its properties, and the
    folder of its metadata file; its store is that of the metadata file or, for a new table, of its
    location. `table.config` says which locations may be read: it comes from the user or the
    catalog's configuration, never from the table (`read.allow-outside-locations`,
    `read.restrict-locations`). Without `catalog`, nothing can be deleted.
    """
    metadata = table.metadata
    check_file_io_class(f"table {table.identifier}", metadata.properties)
    folders = [metadata.location]
    folders += [metadata.properties[p] for p in _PATH_PROPERTIES if p in metadata.properties]
    if metadata.format_version >= RELATIVE_PATHS_VERSION:
        folders = [resolved_path(folder, metadata.location) for folder in folders]
    # The folder, not the file: decoded files are cached per equal store, also across commits.
    known_folder = (
        table.store_location or table.metadata_location.rpartition("/")[0] or metadata.location
    )
    folders.append(known_folder)
    io = RestrictedFileIO(
        io=open_storage(known_folder, without_key_properties(table.config)),
        known_location=known_folder,
        folders=tuple(dict.fromkeys(folders)),
        hint=f"table {table.identifier}",
        rule=read_rule(table.config),
        own=OwnFolders() if catalog is None else own_folders(catalog, table),
    )
    key_id = metadata.properties.get(TABLE_KEY_ID)
    if key_id is None and not metadata.encryption_keys:
        return io
    encryption = TableEncryption(
        table=io.hint,
        key_id=key_id,
        key_length=DATA_KEY_LENGTH.of(metadata.properties),
        service=KeyManagement(key_properties(table.config)),
        wrapped_keys=key_encryption_keys(metadata.encryption_keys),
    )
    return EncryptedTableIO.over(io, encryption)


def check_new_location(table: LoadedTable, location: str) -> None:
    """Refuse an invalid location, and a location in another store than the table's files."""
    check_scheme(location)
    known_location = table.store_location or table.metadata_location or table.metadata.location
    if not is_in_store(location, known_location):
        raise InvalidRequestError(
            f"table {table.identifier}: its files are in {store_of(known_location)}, but a commit "
            "writes to one store only, so its location cannot be "
            f"{location}; choose one in that store"
        )
