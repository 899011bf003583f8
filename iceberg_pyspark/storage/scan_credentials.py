"""Stores for one scan, with credentials that a catalog vends for its files.

Open API specification of the REST catalog, `storage-credentials` of a plan. They replace the
credentials of the table and are not renewed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from iceberg_pyspark.storage.credentials.credential_renewal import RENEWAL
from iceberg_pyspark.storage.credentials.vended_credentials import VENDED_CREDENTIALS
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.fsspec_io import FsspecFileIO
from iceberg_pyspark.storage.objects.object_store_io import ObjectStoreFileIO
from iceberg_pyspark.storage.open_storage import RoutingFileIO
from iceberg_pyspark.storage.restricted_io import RestrictedFileIO


def with_scan_credentials(properties: Mapping[str, str], credentials: str) -> dict[str, str]:
    """Return storage properties with the credentials of a scan, a value of `VENDED_CREDENTIALS`."""
    return {k: v for k, v in properties.items() if k != RENEWAL} | {VENDED_CREDENTIALS: credentials}


def opened_for_scan(io: FileIO, credentials: str) -> FileIO:
    """Return a table's store with the credentials of a scan, if the store has properties."""
    match io:
        case RestrictedFileIO(io=inner):
            return replace(io, io=opened_for_scan(inner, credentials))
        case RoutingFileIO(objects=objects, remote=remote):
            return replace(
                io,
                objects=opened_for_scan(objects, credentials),
                remote=opened_for_scan(remote, credentials),
            )
        case ObjectStoreFileIO() | FsspecFileIO():
            return replace(io, properties=with_scan_credentials(io.properties, credentials))
        case _:
            return io
