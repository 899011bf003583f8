"""Databases, tables and views in a Hive metastore: their entries, and which are Iceberg's.

The parameters are the same as in Java's HiveCatalog, so that Hive, Trino and Java's catalog can
show and read the tables. Iceberg itself reads only `table_type` and `metadata_location`.

A change of an entry names the metadata location that it replaces. Hive compares the location since
2.3.10 and 4.0; older metastores ignore it. A change of a temporary view shows what a metastore
does.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import Any

from iceberg_pyspark.catalogs.catalog import LoadedTable, LoadedView, Namespace, TableIdentifier
from iceberg_pyspark.catalogs.hive.metastore_client import HiveAnswerError, HiveClient
from iceberg_pyspark.catalogs.hive.thrift import Struct
from iceberg_pyspark.catalogs.hive_types import hive_type
from iceberg_pyspark.errors import CatalogError, InvalidRequestError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.encryption import TABLE_KEY_ID
from iceberg_pyspark.spec.partitioning import spec_to_json
from iceberg_pyspark.spec.schema import Schema, schema_to_json
from iceberg_pyspark.spec.sorting import sort_order_to_json
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.views import SqlRepresentation, ViewMetadata

_log = get_logger(__name__)

METADATA_LOCATION = "metadata_location"
PREVIOUS_METADATA_LOCATION = "previous_metadata_location"
TABLE_OWNER = "hive.metastore.table.owner"
_DATABASE_OWNER = "hive.metastore.database.owner"
_DATABASE_OWNER_TYPE = "hive.metastore.database.owner-type"
_OWNER_TYPES = {1: "USER", 2: "ROLE", 3: "GROUP"}
_METADATA_HASH = "metadata_hash"
"""A hash of the table metadata that Java's catalog stores for encrypted tables."""
_TABLE_TYPE = "table_type"
_ICEBERG = "ICEBERG"
_ICEBERG_VIEW = "ICEBERG-VIEW"
_EXTERNAL = "EXTERNAL_TABLE"
_COMMENT = "comment"
_LOCATION = "location"
_NAME = re.compile(r"[a-z0-9_]{1,128}")
_IN_HIVE = {"gc.enabled": "external.table.purge"}
"""Properties for which Hive has its own names."""
_STATISTICS = {
    "numFiles": "total-data-files",
    "numRows": "total-records",
    "totalSize": "total-files-size",
}
"""Hive's statistics parameters, and the keys of a snapshot summary that they repeat."""
_MAX_INT = 2**31 - 1
_NO_STORAGE_HANDLER: Mapping[str, Any] = {
    "inputFormat": "org.apache.hadoop.mapred.FileInputFormat",
    "outputFormat": "org.apache.hadoop.mapred.FileOutputFormat",
    "serdeInfo": {
        "serializationLib": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
        "parameters": {},
    },
}
_STORAGE_HANDLER: Mapping[str, Any] = {
    "inputFormat": "org.apache.iceberg.mr.hive.HiveIcebergInputFormat",
    "outputFormat": "org.apache.iceberg.mr.hive.HiveIcebergOutputFormat",
    "serdeInfo": {
        "serializationLib": "org.apache.iceberg.mr.hive.HiveIcebergSerDe",
        "parameters": {},
    },
}
"""The storage that lets Hive itself query a table, if Hive has Iceberg's classes."""


def is_iceberg(table: Struct) -> bool:
    """Return whether a metastore table is an Iceberg table."""
    return str(_parameters(table).get(_TABLE_TYPE, "")).upper() == _ICEBERG


def is_iceberg_view(table: Struct) -> bool:
    """Return whether a metastore table is an Iceberg view."""
    return str(_parameters(table).get(_TABLE_TYPE, "")).upper() == _ICEBERG_VIEW


def pointer_of(table: Struct) -> str | None:
    """Return the location of the table's metadata file, or None if the entry has no location."""
    location = _parameters(table).get(METADATA_LOCATION)
    return location if isinstance(location, str) else None


def location_in(table: Struct, identifier: TableIdentifier, catalog: str) -> str:
    """Return the location of the metadata file; raise `CatalogError` if the entry has none."""
    location = pointer_of(table)
    if location is None:
        raise CatalogError(
            f"table or view {identifier} of catalog '{catalog}' has no {METADATA_LOCATION} "
            "in the Hive metastore; it is damaged"
        )
    return location


def key_id_of(table: Struct) -> str | None:
    """Return the name of the key of an encrypted table."""
    return _parameters(table).get(TABLE_KEY_ID)


def checked_key(key_id: str | None, metadata: TableMetadata) -> TableMetadata:
    """Refuse metadata that lost the table's key: the metastore has it too."""
    own = metadata.properties.get(TABLE_KEY_ID)
    if key_id not in (None, own):
        raise CatalogError(
            f"table {metadata.location}: its {TABLE_KEY_ID} is {own} in the metadata file, and "
            f"{key_id} in the Hive metastore; somebody may have changed the file: compare it with "
            "the one before it, and do not use the table until you know why"
        )
    return metadata


def is_database_name(namespace: Namespace) -> bool:
    """Return whether a namespace is a valid Hive database name."""
    return len(namespace) == 1 and _NAME.fullmatch(namespace[0]) is not None


def is_table_name(identifier: TableIdentifier) -> bool:
    """Return whether an identifier is a valid Hive database name and table name."""
    return is_database_name(identifier.namespace) and _NAME.fullmatch(identifier.name) is not None


def check_name(name: str) -> None:
    """Raise `InvalidRequestError` for a name that Hive would change or refuse."""
    if _NAME.fullmatch(name) is None:
        raise InvalidRequestError(
            f"name {name!r}: a name in a Hive metastore has 1 to 128 lower-case letters a to z, "
            "digits and _"
        )


def new_table(table: LoadedTable, owner: str, now_s: int, limit: int, for_hive: bool) -> Struct:
    """Return the entry of a new table; `limit` and `for_hive` as in `changed_table`."""
    owner = table.metadata.properties.get(TABLE_OWNER, owner)
    hive_table = _new(table.identifier, owner, now_s, _EXTERNAL)
    return changed_table(hive_table, None, table, limit, for_hive)


def changed_table(
    table: Struct, base: LoadedTable | None, new_table: LoadedTable, limit: int, for_hive: bool
) -> Struct:
    """Return the entry of a table after a commit; parameters of other tools are kept.

    `limit` is the maximum length, in characters, of a schema, a summary and so on in a parameter; 0
    leaves them out. `for_hive` tells whether Hive itself should be able to query the table.
    """
    metadata = new_table.metadata
    parameters = dict(_parameters(table))
    checked_key(parameters.get(TABLE_KEY_ID), metadata)
    # Java refuses metadata with another hash, and without one it compares the keys as we do
    parameters.pop(_METADATA_HASH, None)
    if base is not None:
        for key in base.metadata.properties.keys() - metadata.properties.keys():
            parameters.pop(_IN_HIVE.get(key, key), None)
    for key, value in metadata.properties.items():
        if key.lower() != TABLE_OWNER:
            parameters[_IN_HIVE.get(key, key)] = value
    if metadata.table_uuid is not None:
        parameters["uuid"] = metadata.table_uuid
    if table.get("tableType") == _EXTERNAL:
        # otherwise, Hive treats the table as a managed table and deletes its files on drop
        parameters["EXTERNAL"] = "TRUE"
    _point(parameters, _ICEBERG, new_table.metadata_location)
    # column statistics from a Hive query describe older data
    parameters.pop("COLUMN_STATS_ACCURATE", None)
    parameters["DO_NOT_UPDATE_STATS"] = "true"
    if for_hive:
        parameters["storage_handler"] = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"
    else:
        parameters.pop("storage_handler", None)
    _describe(parameters, metadata, limit)
    storage = _STORAGE_HANDLER if for_hive else _NO_STORAGE_HANDLER
    return {
        **table,
        "parameters": parameters,
        "sd": _storage(table, metadata.current_schema, metadata.location, storage),
    }


def new_view(view: LoadedView, owner: str, now_s: int, limit: int) -> Struct:
    """Return the entry of a new view; `limit` as in `changed_table`."""
    owner = view.metadata.properties.get(TABLE_OWNER, owner)
    hive_view = _new(view.identifier, owner, now_s, "VIRTUAL_VIEW")
    return changed_view(hive_view, None, view, limit)


def changed_view(view: Struct, base: LoadedView | None, new_view: LoadedView, limit: int) -> Struct:
    """Return the entry of a view after a commit; `limit` as in `changed_table`."""
    metadata = new_view.metadata
    parameters = dict(_parameters(view))
    if base is not None:
        for key in base.metadata.properties.keys() - metadata.properties.keys():
            parameters.pop(key, None)
    parameters.update({k: v for k, v in metadata.properties.items() if k.lower() != TABLE_OWNER})
    parameters["uuid"] = metadata.view_uuid
    _point(parameters, _ICEBERG_VIEW, new_view.metadata_location)
    _set(parameters, "current-schema", schema_to_json(metadata.schema), limit)
    sql = _sql_for_hive(metadata)
    return {
        **view,
        "parameters": parameters,
        "sd": _storage(view, metadata.schema, metadata.location, _NO_STORAGE_HANDLER),
        "viewOriginalText": sql,
        "viewExpandedText": sql,
    }


def renamed_table(table: Struct, target: TableIdentifier) -> Struct:
    """Return the entry of the same table under another name."""
    return {**table, "dbName": target.namespace[0], "tableName": target.name}


def changed_database(database: Struct, properties: Mapping[str, str]) -> Struct:
    """Return the database entry of a namespace with these properties."""
    own_fields = (_COMMENT, _LOCATION, _DATABASE_OWNER, _DATABASE_OWNER_TYPE)
    new_database = {
        **database,
        "description": properties.get(_COMMENT),
        "parameters": {k: v for k, v in properties.items() if k not in own_fields},
    }
    if location := properties.get(_LOCATION):
        new_database["locationUri"] = location
    if owner := properties.get(_DATABASE_OWNER):
        new_database["ownerName"] = owner
        type_ = properties.get(_DATABASE_OWNER_TYPE, "USER").upper()
        numbers = [n for n, name in _OWNER_TYPES.items() if name == type_]
        if not numbers:
            raise InvalidRequestError(
                f"{_DATABASE_OWNER_TYPE} is '{type_}'; it is one of "
                f"{', '.join(_OWNER_TYPES.values())}"
            )
        new_database["ownerType"] = numbers[0]
    return new_database


def namespace_properties(database: Struct) -> dict[str, str]:
    """Return the namespace properties that a database entry represents."""
    properties = dict(database.get("parameters") or {})
    if database.get("description"):
        properties[_COMMENT] = database["description"]
    if database.get("locationUri"):
        properties[_LOCATION] = database["locationUri"]
    if database.get("ownerName"):
        properties[_DATABASE_OWNER] = database["ownerName"]
        if type_ := _OWNER_TYPES.get(database.get("ownerType") or 0):
            properties[_DATABASE_OWNER_TYPE] = type_
    return properties


def _parameters(table: Struct) -> dict[str, str]:
    return table.get("parameters") or {}


def _new(identifier: TableIdentifier, owner: str, now_s: int, table_type: str) -> Struct:
    return {
        "tableName": identifier.name,
        "dbName": identifier.namespace[0],
        "owner": owner,
        "createTime": now_s,
        "lastAccessTime": now_s,
        "retention": _MAX_INT,
        "partitionKeys": [],
        "parameters": {},
        "tableType": table_type,
    }


def _point(parameters: dict[str, str], table_type: str, location: str) -> None:
    before = parameters.get(METADATA_LOCATION)
    if before:
        parameters[PREVIOUS_METADATA_LOCATION] = before
    parameters[_TABLE_TYPE] = table_type
    parameters[METADATA_LOCATION] = location


def _describe(parameters: dict[str, str], metadata: TableMetadata, limit: int) -> None:
    """Add a description of the table for tools that do not read Iceberg metadata."""
    snapshot = metadata.current_snapshot
    summary = {} if snapshot is None else dict(snapshot.summary)
    for name, key in _STATISTICS.items():
        if key in summary:
            parameters[name] = summary[key]
    for name in ("current-snapshot-id", "current-snapshot-timestamp-ms"):
        parameters.pop(name, None)
    if snapshot is not None and limit > 0:
        parameters["current-snapshot-id"] = str(snapshot.snapshot_id)
        parameters["current-snapshot-timestamp-ms"] = str(snapshot.timestamp_ms)
    _set(parameters, "current-snapshot-summary", summary or None, limit)
    parameters["snapshot-count"] = str(len(metadata.snapshots))
    spec, order = metadata.default_spec, metadata.default_sort_order
    _set(parameters, "current-schema", schema_to_json(metadata.current_schema), limit)
    _set(parameters, "default-partition-spec", spec_to_json(spec) if spec.fields else None, limit)
    _set(
        parameters, "default-sort-order", sort_order_to_json(order) if order.fields else None, limit
    )


def _set(parameters: dict[str, str], name: str, value: Any, limit: int) -> None:
    parameters.pop(name, None)
    if value is None or limit <= 0:
        return
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if len(text) <= limit:
        parameters[name] = text
    else:
        _log.info("%s is longer than %d characters and not in the Hive metastore", name, limit)


def _storage(
    table: Struct, schema: Schema, location: str, how: Mapping[str, Any]
) -> dict[str | int, Any]:
    columns = [{"name": f.name, "type": hive_type(f.type), "comment": f.doc} for f in schema.fields]
    return {**(table.get("sd") or {}), **how, "cols": columns, "location": location}


def _sql_for_hive(metadata: ViewMetadata) -> str | None:
    version = metadata.current_version
    texts = [r.sql for r in version.representations if isinstance(r, SqlRepresentation)]
    return version.sql("hive") or next(iter(texts), None)


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
