"""SQLite databases as other clients of a SQL catalog leave them."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

# the statements of Java's JdbcCatalog before it supported views
V0_TABLES = (
    "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,table_namespace VARCHAR(255) "
    "NOT NULL,table_name VARCHAR(255) NOT NULL,metadata_location VARCHAR(1000),"
    "previous_metadata_location VARCHAR(1000),"
    "PRIMARY KEY (catalog_name, table_namespace, table_name))",
    "CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL,namespace "
    "VARCHAR(255) NOT NULL,property_key VARCHAR(255),property_value VARCHAR(1000),"
    "PRIMARY KEY (catalog_name, namespace, property_key))",
)


def create_v0_tables(database: Path) -> None:
    """Create a SQLite database with the tables of schema version V0."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        for statement in V0_TABLES:
            connection.execute(statement)


def rows(database: Path, query: str, *parameters: str) -> list[tuple[object, ...]]:
    """Return the rows that a query finds in a SQLite file."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return connection.execute(query, parameters).fetchall()


def execute(database: Path, statement: str, *parameters: str | None) -> None:
    """Run one statement in a SQLite file and commit it."""
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(statement, parameters)
