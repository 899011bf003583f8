"""Changes of a table's entry in a Hive metastore, with the metadata location that they replace.

Hive compares the location since 2.3.10 and 4.0; older metastores ignore it. A change of a
temporary view shows what a metastore does.
"""

from __future__ import annotations

import uuid
from typing import Any

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hive.metastore_client import HiveAnswerError, HiveClient
from iceberg_pyspark.catalogs.hive.metastore_entries import METADATA_LOCATION
from iceberg_pyspark.catalogs.hive.thrift import Struct
from iceberg_pyspark.errors import CatalogError
from iceberg_pyspark.redaction import get_logger

_log = get_logger(__name__)

MODIFIED_MESSAGE = "The table has been modified"
"""The text by which a metastore says that it compared the locations and they differ."""


def alter_table(
    hive: HiveClient, identifier: TableIdentifier, new_table: Struct, base_location: str | None
) -> None:
    """Replace a table's entry, if its metadata location is `base_location`; None replaces any.

    Raise the errors of `HiveClient.change`.
    """
    settings = {"DO_NOT_UPDATE_STATS": "true"}
    if base_location is not None:
        settings["expected_parameter_key"] = METADATA_LOCATION
        settings["expected_parameter_value"] = base_location
    hive.change(
        "alter_table_with_environment_context",
        dbname=identifier.namespace[0],
        tbl_name=identifier.name,
        new_tbl=new_table,
        environment_context={"properties": settings},
    )


def compares_locations(hive: HiveClient, database: str, user: str) -> bool:
    """Test with a temporary view whether the metastore compares the location; drop the view."""
    name = TableIdentifier(namespace=(database,), name=f"iceberg_probe_{uuid.uuid4().hex}")
    view: dict[str | int, Any] = {
        "tableName": name.name,
        "dbName": database,
        "owner": user,
        "sd": {"cols": [], "serdeInfo": {"parameters": {}}},
        "partitionKeys": [],
        "parameters": {METADATA_LOCATION: "here"},
        "viewOriginalText": "SELECT 1",
        "viewExpandedText": "SELECT 1",
        "tableType": "VIRTUAL_VIEW",
    }
    try:
        hive.call("create_table", tbl=view)
        alter_table(hive, name, view, "elsewhere")
    except HiveAnswerError as e:
        if MODIFIED_MESSAGE not in str(e):
            raise
        return True
    finally:
        # after a lost answer or an interrupt, the view may exist too
        _drop(hive, name)
    return False


def _drop(hive: HiveClient, view: TableIdentifier) -> None:
    try:
        hive.call("drop_table", dbname=view.namespace[0], name=view.name, deleteData=False)
    except CatalogError as e:
        # the view is in nobody's way, so that its commit goes on
        _log.warning("the temporary view %s was not dropped: %s", view, e)
