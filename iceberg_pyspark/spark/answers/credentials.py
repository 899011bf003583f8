"""Answers tasks of the JVM that ask for current credentials of a store."""

from __future__ import annotations

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.spark.bridge.protocol.credentials import CredentialsRenew, RenewedCredentials
from iceberg_pyspark.spark.native_read.hadoop_options import s3_keys
from iceberg_pyspark.spark.native_read.renewed_stores import renewed_properties
from iceberg_pyspark.storage.credential_renewal import end_of


def renew_credentials(_sessions: object, q: CredentialsRenew) -> RenewedCredentials:
    """Return the current credentials of a store; raise an `IcebergError` if there are none."""
    current = renewed_properties(q.renewal)
    key, secret, token = s3_keys(current)
    if key is None or secret is None:
        raise StorageError("the catalog's server sent no credentials for this location")
    end_s = end_of(current)
    return RenewedCredentials(
        access_key_id=key,
        secret_access_key=secret,
        session_token=token,
        expires_at_ms=None if end_s is None else int(end_s * 1000),
    )
