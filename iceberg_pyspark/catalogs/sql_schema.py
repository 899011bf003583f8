"""The two tables of a SQL catalog, as Java's JdbcCatalog, PyIceberg and Rust share them.

V0 is `iceberg_tables` without `iceberg_type`; V1 has it, with 'TABLE', 'VIEW' or null (a table).
New databases get V1. A V0 database stays V0 unless asked otherwise, because its other users may
not expect the column.
"""

from __future__ import annotations

import sqlalchemy as sa

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
MAX_VALUE_LENGTH = 1000
ADD_TYPE_COLUMN = sa.text("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")


def missing_tables(connection: sa.Connection) -> list[sa.Table]:
    """Which of the two tables the database lacks."""
    inspector = sa.inspect(connection)
    return [t for t in (TABLES, NAMESPACE_PROPERTIES) if not inspector.has_table(t.name)]


def has_type_column(connection: sa.Connection) -> bool:
    """Whether the database is V1."""
    columns = sa.inspect(connection).get_columns(TABLES.name)
    return any(c["name"].lower() == TABLES.c.iceberg_type.name for c in columns)


def is_table_row() -> sa.ColumnElement[bool]:
    """In a V1 database: the row is a table's and no view's."""
    return sa.or_(TABLES.c.iceberg_type == TABLE_TYPE, TABLES.c.iceberg_type.is_(None))
