"""Handles requests about the format `iceberg-py`: table names in its options, and hidden columns.

The data source runs in processes without a session, so the settings `spark.sql.catalog.<name>` of
the table's catalog are passed to it as options.

Handles the requests of tasks of the JVM for current credentials of a store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import SparkSession

from iceberg_pyspark.errors import IcebergError, InvalidRequestError, NotFoundError, StorageError
from iceberg_pyspark.spark.bridge.features import JvmFileSystem
from iceberg_pyspark.spark.bridge.protocol.source_messages import (
    CredentialsRenew,
    ExistingTable,
    HiddenColumns,
    RenewedCredentials,
    SessionOptions,
    SourceHiddenColumns,
    SourceOptions,
    SourceTable,
)
from iceberg_pyspark.spark.data_source.read_job import ReadJob, open_read_job
from iceberg_pyspark.spark.data_source.read_options import parse_table_options
from iceberg_pyspark.spark.data_source.table_access import find_table, load_table
from iceberg_pyspark.spark.requests.sessions import BridgeSessions
from iceberg_pyspark.spark.rows.spark_types import hidden_columns, to_spark_schema
from iceberg_pyspark.spark.session_catalogs import (
    catalog_and_levels,
    catalog_options,
    is_our_catalog,
)
from iceberg_pyspark.spark.storage.hadoop_options import GOOGLE_CONNECTOR, credential_options
from iceberg_pyspark.spark.storage.jvm_access import renewed_properties
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.sql_text.names import is_path, quoted, quoted_name
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


_PARTITIONED_BY = "__partition_columns"
"""The option that Spark makes of `partitionBy(...)`."""

_CLUSTERED_BY = "__clustering_columns"
"""The option that Spark makes of `clusterBy(...)`."""


def options_in_session(spark: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options, completed with the settings of the session's catalog of the table."""
    result = _with_partitions(options)
    spelling = {name.lower(): name for name in result}
    key = spelling.get("path", spelling.get("table"))
    if key is None or any(name.startswith("catalog.") for name in spelling):
        return result
    if "catalog" in spelling:
        catalog = result[spelling["catalog"]]
        if is_our_catalog(spark, catalog):
            result |= _as_options(spark, catalog)
        return result
    if is_path(result[key]):
        return result
    try:
        in_session = catalog_and_levels(spark, result[key])
    except IcebergError:
        # The data source reports what is wrong with the name.
        return result
    if in_session is not None:
        catalog, levels = in_session
        result |= {"catalog": catalog, **_as_options(spark, catalog), key: quoted_name(levels)}
    return result


def _as_options(spark: SparkSession, catalog: str) -> dict[str, str]:
    return {f"catalog.{k}": v for k, v in catalog_options(spark, catalog).items()}


def _with_partitions(options: Mapping[str, str]) -> dict[str, str]:
    result = dict(options)
    if _CLUSTERED_BY in result:
        raise InvalidRequestError(
            "Iceberg has no clustering columns: leave clusterBy out, and use partitionBy (the "
            "option partitioned-by), or set the table's order with ALTER TABLE ... WRITE ORDERED BY"
        )
    columns = result.pop(_PARTITIONED_BY, None)
    if columns is not None:
        result.setdefault("partitioned-by", ",".join(quoted(c) for c in json.loads(columns)))
    return result


def source_options(sessions: BridgeSessions, request: SourceOptions) -> SessionOptions:
    """Return the options completed with the session's catalog settings."""
    return SessionOptions(
        options=options_in_session(sessions.of_handle(request.session).spark, request.options)
    )


def source_table(_sessions: BridgeSessions, request: SourceTable) -> ExistingTable:
    """Return the table that the options name, if the table exists."""
    table = parse_table_options(request.options)
    catalog, identifier = find_table(table)
    try:
        load_table(catalog, identifier, table)
    except NotFoundError:
        return ExistingTable()
    return ExistingTable(namespace=identifier.namespace, name=identifier.name)


def source_hidden_columns(sessions: BridgeSessions, request: SourceHiddenColumns) -> HiddenColumns:
    """Return the hidden columns of the table that the options name."""
    job = open_read_job(
        options_in_session(sessions.of_handle(request.session).spark, request.options)
    )
    hidden_schema = Schema(fields=())
    if isinstance(job, ReadJob):
        hidden_schema = hidden_columns(job.loaded_table.metadata)
    return HiddenColumns(columns=to_spark_schema(hidden_schema).json())
