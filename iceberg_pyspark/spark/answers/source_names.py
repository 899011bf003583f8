"""Names of tables in options of the data source, as a session understands them.

The data source runs in processes that know no session. What `spark.sql.catalog.<name>` says of the
catalog that a name begins with, or lies in, goes there with the options.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import SparkSession

from iceberg_pyspark.errors import IcebergError, NotFoundError
from iceberg_pyspark.spark.bridge.protocol.sources import ExistingTable
from iceberg_pyspark.spark.data_source.options import parse_table_options
from iceberg_pyspark.spark.data_source.table_access import find_table, load_table
from iceberg_pyspark.spark.spark_table import catalog_and_levels, catalog_options, is_our_catalog
from iceberg_pyspark.sql_text.names import is_path, quoted, quoted_name

_PARTITIONED_BY = "__partition_columns"
"""What Spark makes of `partitionBy(...)`."""


def options_in_session(spark: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """The options with the catalog of the session that answers for the table they name."""
    found = _with_partitions(options)
    given = {name.lower(): name for name in found}
    key = given.get("path", given.get("table"))
    if key is None or any(name.startswith("catalog.") for name in given):
        return found
    if "catalog" in given:
        catalog = found[given["catalog"]]
        if is_our_catalog(spark, catalog):
            found |= _as_options(spark, catalog)
        return found
    if is_path(found[key]):
        return found
    try:
        named = catalog_and_levels(spark, found[key])
    except IcebergError:
        # the data source says what is wrong with it
        return found
    if named is not None:
        catalog, levels = named
        found |= {"catalog": catalog, **_as_options(spark, catalog), key: quoted_name(levels)}
    return found


def _as_options(spark: SparkSession, catalog: str) -> dict[str, str]:
    return {f"catalog.{k}": v for k, v in catalog_options(spark, catalog).items()}


def _with_partitions(options: Mapping[str, str]) -> dict[str, str]:
    found = dict(options)
    columns = found.pop(_PARTITIONED_BY, None)
    if columns is not None:
        found.setdefault("partitioned-by", ",".join(quoted(c) for c in json.loads(columns)))
    return found


def table_there(options: Mapping[str, str]) -> ExistingTable:
    """The table that options name, if it is there."""
    table = parse_table_options(options)
    catalog, identifier = find_table(table)
    try:
        load_table(catalog, identifier, table)
    except NotFoundError:
        return ExistingTable()
    return ExistingTable(namespace=identifier.namespace, name=identifier.name)
