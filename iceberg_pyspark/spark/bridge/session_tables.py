"""Tables of Spark's own catalog that are not Iceberg tables: their files and formats.

Spark's session catalog is queried directly, not the catalog `spark_catalog` in front of it, so the
result does not depend on that catalog.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from iceberg_pyspark.errors import InvalidRequestError, NoSuchTableError

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
