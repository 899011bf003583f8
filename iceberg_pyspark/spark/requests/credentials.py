"""Handles the requests of tasks of the JVM for current credentials of a store."""

from __future__ import annotations

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.spark.bridge.file_systems import JvmFileSystem
from iceberg_pyspark.spark.bridge.protocol.credentials import CredentialsRenew, RenewedCredentials
from iceberg_pyspark.spark.native_read.hadoop_options import GOOGLE_CONNECTOR, credential_options
from iceberg_pyspark.spark.native_read.renewed_stores import renewed_properties
from iceberg_pyspark.storage.credentials.credential_renewal import end_of

# Tasks open Google's stores by Google's connector only.
_IN_TASKS = JvmFileSystem(GOOGLE_CONNECTOR, has_blob_interface=True)


def renew_credentials(_sessions: object, request: CredentialsRenew) -> RenewedCredentials:
    """Return the current credentials of a store; raise an `IcebergError` if there are none."""
    location, current = renewed_properties(request.renewal)
    options = credential_options(location, current, _IN_TASKS)
    if options is None:
        raise StorageError("the catalog's server sent no credentials for this location")
    end_s = end_of(current)
    return RenewedCredentials(
        options=options, expires_at_ms=None if end_s is None else int(end_s * 1000)
    )
