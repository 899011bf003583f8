"""The two tables of a SQL catalog, which Java's JdbcCatalog, PyIceberg and Rust share.

In schema V0, `iceberg_tables` has no column `iceberg_type`; in V1 the column contains 'TABLE',
'VIEW' or null (a table). New databases get V1. A V0 database stays V0 unless a property asks for
V1, because its other clients may not expect the column.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from iceberg_pyspark.catalogs.sql.database import Database
from iceberg_pyspark.errors import CatalogError, InvalidRequestError
from iceberg_pyspark.spec.table_properties import bool_property

_METADATA = sa.MetaData()

TABLES = sa.Table(
    "iceberg_tables",
    _METADATA,
    sa.Column("catalog_name", sa.String(255), primary_key=True, nullable=False),
    sa.Column("table_namespace", sa.String(255), primary_key=True, nullable=False),
    sa.Column("table_name", sa.String(255), primary_key=True, nullable=False),
    sa.Column("metadata_location", sa.String(1000)),
    sa.Column("previous_metadata_location", sa.String(1000)),
    sa.Column("iceberg_type", sa.String(5)),
)

NAMESPACE_PROPERTIES = sa.Table(
    "iceberg_namespace_properties",
    _METADATA,
    sa.Column("catalog_name", sa.String(255), primary_key=True, nullable=False),
    sa.Column("namespace", sa.String(255), primary_key=True, nullable=False),
    sa.Column("property_key", sa.String(255), primary_key=True, nullable=True),
    sa.Column("property_value", sa.String(1000)),
)

TABLE_TYPE = "TABLE"
VIEW_TYPE = "VIEW"
MAX_VALUE_LENGTH = 1000
_ATTEMPTS = 5
_SCHEMA_VERSION_KEYS = ("jdbc.schema-version", "schema_version", "schema-version")
_INIT_KEYS = ("jdbc.init-catalog-tables", "init_catalog_tables", "init-catalog-tables")
_ADD_TYPE_COLUMN = sa.text("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")


def prepare_tables(database: Database, name: str, properties: Mapping[str, str]) -> bool:
    """Create missing tables, as the catalog's properties say; return whether the schema is V1."""
    if database.read(_missing_tables):
        if not all(bool_property(properties, key, True) for key in _INIT_KEYS):
            raise CatalogError(
                f"database {database.redacted_url} has no catalog tables, and the catalog's "
                f"properties forbid creating them; check the catalog's uri, or set {_INIT_KEYS[0]} "
                "to true"
            )
        _create_tables(database)
    is_v1 = database.read(_has_type_column)
    if not is_v1 and _asks_for_v1(name, properties):
        _add_type_column(database)
        is_v1 = True
    return is_v1


def _create_tables(database: Database) -> None:
    def create(connection: sa.Connection) -> None:
        for table in _missing_tables(connection):
            database.exact_names(connection, table).create(connection)

    for attempt in range(_ATTEMPTS):
        try:
            database.write(create)
            return
        except (CatalogError, IntegrityError) as e:
            # another client may have created one or both tables in the meantime, because not every
            # database creates both in one transaction
            if not database.read(_missing_tables):
                return
            if attempt == _ATTEMPTS - 1:
                raise CatalogError(
                    f"database {database.redacted_url}: the tables of a catalog could not be "
                    "created; grant its user the permission, or create them with another client"
                ) from e
            time.sleep(0.05)


def _add_type_column(database: Database) -> None:
    try:
        database.write(lambda c: c.execute(_ADD_TYPE_COLUMN))
    except CatalogError:
        # "duplicate column": another client has added the column first
        if not database.read(_has_type_column):
            raise


def _asks_for_v1(name: str, properties: Mapping[str, str]) -> bool:
    version = next((properties[k] for k in _SCHEMA_VERSION_KEYS if k in properties), "V0")
    if version.upper() not in ("V0", "V1"):
        raise InvalidRequestError(
            f"catalog '{name}': schema version '{version}' is not known; it is V0 or V1"
        )
    return version.upper() == "V1"


def _missing_tables(connection: sa.Connection) -> list[sa.Table]:
    inspector = sa.inspect(connection)
    return [t for t in (TABLES, NAMESPACE_PROPERTIES) if not inspector.has_table(t.name)]


def _has_type_column(connection: sa.Connection) -> bool:
    columns = sa.inspect(connection).get_columns(TABLES.name)
    return any(c["name"].lower() == TABLES.c.iceberg_type.name for c in columns)
