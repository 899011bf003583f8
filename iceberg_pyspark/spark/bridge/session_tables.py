"""Tables of Spark's own catalog that are not Iceberg tables: their files, formats and entries.

Spark's session catalog is queried directly, not the catalog `spark_catalog` in front of it, so the
result does not depend on that catalog.

Spark moves the files of a MANAGED table on a rename and deletes them on a drop, but leaves the
files of an EXTERNAL table alone. Only EXTERNAL tables are renamed and dropped here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from iceberg_pyspark.errors import (
    IcebergError,
    InvalidRequestError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.py4j_names import Py4JJavaError

_log = get_logger(__name__)

SESSION_CATALOG = "spark_catalog"
_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePartition:
    """A partition: its values by column name as in the catalog, None for null."""

    values: Mapping[str, str | None]
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTable:
    """A table or view of Spark's own catalog.

    `provider` is the format in lower case; for a Hive table, the format of its files. `partitions`
    is None if the catalog does not keep partitions; then every folder is a partition.
    """

    name: str
    namespace: str
    provider: str
    type: str
    location: str
    schema: spark_types.StructType
    partition_columns: tuple[str, ...]
    is_bucketed: bool
    properties: Mapping[str, str]
    partitions: tuple[TablePartition, ...] | None

    def __str__(self) -> str:
        return f"{SESSION_CATALOG}.{self.namespace}.{self.name}"


def current_namespace(spark: SparkSession) -> str:
    """Return the namespace in which Spark's own catalog looks for a table without a namespace."""
    return str(spark._jsparkSession.sessionState().catalog().getCurrentDatabase())


def session_table(spark: SparkSession, levels: Sequence[str]) -> SessionTable:
    """Return the table of this name; raise `NoSuchTableError` or `InvalidRequestError`."""
    names = tuple(levels[1:] if len(levels) > 1 and levels[0] == SESSION_CATALOG else levels)
    jvm: Any = spark._jvm
    catalog = spark._jsparkSession.sessionState().catalog()
    if len(names) == 1:
        names = (current_namespace(spark), *names)
    if len(names) != 2:
        raise InvalidRequestError(
            f"{'.'.join(levels)}: files are taken from tables of Spark's own catalog, with names "
            f"such as {SESSION_CATALOG}.db.table"
        )
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(
        names[1], jvm.scala.Option.apply(names[0])
    )
    if not catalog.tableExists(identifier):
        raise NoSuchTableError(
            f"there is no table {SESSION_CATALOG}.{'.'.join(names)} in Spark's own catalog"
        )
    entry = catalog.getTableMetadata(identifier)
    java = jvm.scala.jdk.javaapi.CollectionConverters
    columns = tuple(java.asJava(entry.partitionColumnNames()))

    def path(uri: Any) -> str:
        # A URI is encoded, but a location is not.
        return str(jvm.org.apache.hadoop.fs.Path(uri).toString())

    def partition(one: Any) -> TablePartition:
        values = {k: None if v in (None, _NULL) else v for k, v in java.asJava(one.spec()).items()}
        return TablePartition(values=values, location=path(one.location()))

    partitions = None
    if columns and entry.tracksPartitionsInCatalog():
        partition_list = catalog.listPartitions(identifier, jvm.scala.Option.empty())
        partitions = tuple(partition(one) for one in java.asJava(partition_list))
    is_view = entry.tableType().name() == "VIEW"
    return SessionTable(
        name=names[1],
        namespace=names[0],
        provider="" if is_view else _provider(entry),
        type=entry.tableType().name(),
        location="" if is_view else path(entry.location()),
        schema=spark_types.StructType.fromJson(json.loads(entry.schema().json())),
        partition_columns=columns,
        is_bucketed=entry.bucketSpec().isDefined(),
        properties=dict(java.asJava(entry.properties())),
        partitions=partitions,
    )


def _provider(table: Any) -> str:
    provider = table.provider()
    name = str(provider.get()).lower() if provider.isDefined() else "hive"
    serde = table.storage().serde()
    if name == "hive" and serde.isDefined():
        for file_format in ("parquet", "orc", "avro"):
            if file_format in str(serde.get()).lower():
                return file_format
    return name


EXTERNAL = "EXTERNAL"
_TABLE_TYPE = 1
"""The index of the table type in the parameters of Spark's CatalogTable."""
_PURGE = "external.table.purge"
"""The property that makes the Hive metastore delete the files of a dropped EXTERNAL table."""


def session_table_exists(spark: SparkSession, namespace: str, name: str) -> bool:
    """Return whether Spark's own catalog has a table or view of this name."""
    return bool(_catalog(spark).tableExists(_identifier(spark, namespace, name)))


def set_table_type(spark: SparkSession, table: SessionTable, table_type: str) -> None:
    """Make a table MANAGED or EXTERNAL; raise `InvalidRequestError` if the catalog refuses."""
    entry = _catalog(spark).getTableMetadata(_identifier(spark, table.namespace, table.name))
    jvm: Any = spark._jvm
    types = jvm.org.apache.spark.sql.catalyst.catalog.CatalogTableType
    # A case class is copied with all its parameters, and newer releases have more of them.
    parameters = [entry.productElement(i) for i in range(entry.productArity())]
    parameters[_TABLE_TYPE] = types.apply(table_type)
    try:
        _catalog(spark).alterTable(entry.copy(*parameters))
    except Py4JJavaError as e:
        raise _refusal(f"{table} cannot be made {table_type}", e) from e


def rename_table(spark: SparkSession, table: SessionTable, name: str) -> None:
    """Rename an EXTERNAL table within its namespace.

    Raise `NoSuchTableError`, `TableAlreadyExistsError` or `InvalidRequestError`.
    """
    catalog = _catalog(spark)
    old = _identifier(spark, table.namespace, table.name)
    _check_external(catalog, table, old)
    try:
        catalog.refreshTable(old)
        catalog.renameTable(old, _identifier(spark, table.namespace, name))
    except Py4JJavaError as e:
        raise _refusal(f"{table} cannot be renamed to {name}", e) from e


def drop_table(spark: SparkSession, table: SessionTable) -> None:
    """Drop an EXTERNAL table from the catalog and keep its files; raise `InvalidRequestError`."""
    catalog = _catalog(spark)
    identifier = _identifier(spark, table.namespace, table.name)
    _check_external(catalog, table, identifier)
    check_can_be_dropped(table)
    try:
        catalog.dropTable(identifier, False, False)
    except Py4JJavaError as e:
        raise _refusal(f"{table} cannot be dropped", e) from e


def check_can_be_dropped(table: SessionTable) -> None:
    """Raise `InvalidRequestError` if a metastore would delete the table's files with the table."""
    if table.properties.get(_PURGE, "false").lower() == "true":
        raise InvalidRequestError(
            f"{table} has the property {_PURGE} = true, by which its files are deleted when it is "
            f"dropped; ALTER TABLE ... UNSET TBLPROPERTIES ('{_PURGE}') first"
        )


def folder_exists(spark: SparkSession, location: str) -> bool:
    """Return whether Spark finds a folder, which may be empty."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(location)
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    return bool(path.getFileSystem(conf).exists(path))


def remove_empty_folder(spark: SparkSession, location: str) -> None:
    """Remove a folder if it is empty."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(location)
    files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    try:
        if files.exists(path) and not len(files.listStatus(path)):
            files.delete(path, False)
    except Py4JJavaError as e:
        _log.warning(
            "the empty folder %s could not be removed: %s", location, e.java_exception.getMessage()
        )


def _check_external(catalog: Any, table: SessionTable, identifier: Any) -> None:
    table_type = catalog.getTableMetadata(identifier).tableType().name()
    if table_type != EXTERNAL:
        raise InvalidRequestError(
            f"{table} is {table_type} now, and Spark moves and deletes the files of such a table "
            "with its name; it was not changed: try again"
        )


def _catalog(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().catalog()


def _identifier(spark: SparkSession, namespace: str, name: str) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.catalyst.TableIdentifier(
        name, jvm.scala.Option.apply(namespace)
    )


def _refusal(subject: str, error: Py4JJavaError) -> IcebergError:
    kind = error.java_exception.getClass().getSimpleName()
    text = str(error.java_exception.getMessage()).partition("\n")[0]
    if "NoSuchTable" in kind:
        return NoSuchTableError(f"{subject}: the table no longer exists in {SESSION_CATALOG}")
    if "AlreadyExists" in kind:
        return TableAlreadyExistsError(f"{subject}: {text}")
    return InvalidRequestError(f"{subject}: {text}")
