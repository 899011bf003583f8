"""Databases and tables in Glue: how to recognize Iceberg tables, and the entries to write.

The keys are the same as in Java's GlueCatalog and in PyIceberg.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from iceberg_pyspark.catalogs.catalog import LoadedTable, Namespace, TableIdentifier
from iceberg_pyspark.catalogs.hive_types import hive_type
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.schema import Schema

METADATA_LOCATION = "metadata_location"
PREVIOUS_METADATA_LOCATION = "previous_metadata_location"
_TABLE_TYPE = "table_type"
_ICEBERG = "ICEBERG"
_COMMENT = "comment"
_LOCATION = "location"
_NAME = re.compile(r"[a-z0-9_]{1,255}")
_DATABASE_NAME = re.compile(r"[a-z0-9_]{1,252}")
_MAX_COMMENT = 255
# the fields of a table answer that an UpdateTable request may contain
_INPUT_KEYS = (
    "Name",
    "Description",
    "Owner",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "TableType",
    "Parameters",
)


def is_iceberg(table: Mapping[str, Any]) -> bool:
    """Return whether a Glue table is an Iceberg table."""
    return str((table.get("Parameters") or {}).get(_TABLE_TYPE, "")).upper() == _ICEBERG


def is_database_name(namespace: Namespace) -> bool:
    """Return whether a namespace is a valid Glue database name."""
    return len(namespace) == 1 and _DATABASE_NAME.fullmatch(namespace[0]) is not None


def is_table_name(identifier: TableIdentifier) -> bool:
    """Return whether an identifier is a valid Glue database name and table name."""
    return is_database_name(identifier.namespace) and _NAME.fullmatch(identifier.name) is not None


def check_database_name(name: str) -> None:
    """Refuse a name that Glue would change, or that other clients of Glue could not read."""
    _check_name(_DATABASE_NAME, name, "database", 252)


def check_table_name(name: str) -> None:
    """Refuse a name that Glue would change, or that other clients of Glue could not read."""
    _check_name(_NAME, name, "table", 255)


def _check_name(pattern: re.Pattern[str], name: str, kind: str, longest: int) -> None:
    if pattern.fullmatch(name) is None:
        raise InvalidRequestError(
            f"name {name!r}: the name of a {kind} in Glue has 1 to {longest} lower-case letters "
            "a to z, digits and _"
        )


def new_table_input(table: LoadedTable) -> dict[str, Any]:
    """Return the input of Glue's CreateTable for a new Iceberg table."""
    return {
        "Name": table.identifier.name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {
            _TABLE_TYPE: _ICEBERG,
            METADATA_LOCATION: table.metadata_location,
        },
        "StorageDescriptor": _storage(table, {}),
        **_description(table),
    }


def next_table_input(
    table: Mapping[str, Any], base_location: str, new_table: LoadedTable
) -> dict[str, Any]:
    """Return the input of Glue's UpdateTable after a commit; entries of other tools are kept."""
    return {
        **renamed_table_input(table, new_table.identifier.name),
        "Parameters": {
            **(table.get("Parameters") or {}),
            METADATA_LOCATION: new_table.metadata_location,
            PREVIOUS_METADATA_LOCATION: base_location,
        },
        "StorageDescriptor": _storage(new_table, table.get("StorageDescriptor") or {}),
        **_description(new_table),
    }


def renamed_table_input(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the input of Glue's CreateTable for the same table under another name."""
    fields = {key: table[key] for key in _INPUT_KEYS if table.get(key) is not None}
    return {**fields, "Name": name}


def database_input(name: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the database input for a namespace with these properties."""
    fields: dict[str, Any] = {"Name": name}
    if comment := properties.get(_COMMENT):
        fields["Description"] = comment
    if location := properties.get(_LOCATION):
        fields["LocationUri"] = location
    fields["Parameters"] = {k: v for k, v in properties.items() if k not in (_COMMENT, _LOCATION)}
    return fields


def namespace_properties(database: Mapping[str, Any]) -> dict[str, str]:
    """Return the namespace properties that a Glue database represents."""
    properties = dict(database.get("Parameters") or {})
    if database.get("Description"):
        properties[_COMMENT] = database["Description"]
    if database.get("LocationUri"):
        properties[_LOCATION] = database["LocationUri"]
    return properties


def _description(table: LoadedTable) -> dict[str, str]:
    comment = table.metadata.properties.get(_COMMENT)
    return {"Description": comment[:2048]} if comment else {}


def _storage(table: LoadedTable, before: Mapping[str, Any]) -> dict[str, Any]:
    metadata = table.metadata
    return {**before, "Columns": _columns(metadata.current_schema), "Location": metadata.location}


def _columns(schema: Schema) -> list[dict[str, Any]]:
    return [
        {
            "Name": f.name,
            "Type": hive_type(f.type),
            **({"Comment": f.doc[:_MAX_COMMENT]} if f.doc else {}),
            "Parameters": {
                "iceberg.field.id": str(f.field_id),
                "iceberg.field.optional": str(not f.required).lower(),
                "iceberg.field.current": "true",
            },
        }
        for f in schema.fields
    ]
