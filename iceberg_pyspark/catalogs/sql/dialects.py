"""Differences between the databases of SQL catalogs: drivers, comparisons, refusals.

By default, MySQL and MariaDB ignore case and trailing blanks when they compare strings. Tables
created here therefore set another collation, and queries on tables of other clients compare bytes.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import sqlalchemy as sa

_DRIVERS = {
    "postgresql": (("psycopg", "psycopg"), ("psycopg2", "psycopg2")),
    "mysql": (("pymysql", "pymysql"), ("mysqldb", "MySQLdb")),
    "mariadb": (("pymysql", "pymysql"), ("mysqldb", "MySQLdb")),
}
_MYSQL = ("mysql", "mariadb")
# MySQL: access to a database denied, access to the server denied
_REFUSED_USER_NUMBERS = (1044, 1045)
# PostgreSQL sends no SQLSTATE when it refuses a connection
_REFUSED_USER_TEXTS = ("authentication failed", "no password supplied", "no pg_hba.conf entry")


def installed_driver(url: sa.URL) -> sa.URL:
    """Return the URL with an installed driver, if the URL names no driver.

    If no driver is installed, return the first one, so that the later error says what to install.
    """
    name = url.get_backend_name()
    if "+" in url.drivername or name not in _DRIVERS:
        return url
    drivers = _DRIVERS[name]
    driver = next((d for d, m in drivers if importlib.util.find_spec(m)), drivers[0][0])
    return url.set(drivername=f"{name}+{driver}")


def equals_exactly(
    backend: str, column: sa.ColumnElement[str], value: str
) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions that a column equals a text exactly; the first one can use an index."""
    if backend not in _MYSQL:
        return (column == value,)
    text = sa.literal(value, sa.String())
    return (column == value, sa.cast(column, sa.LargeBinary) == sa.cast(text, sa.LargeBinary))


def table_with_collation(dialect: sa.Dialect, table: sa.Table) -> sa.Table:
    """Return the table with columns that compare texts character by character."""
    if dialect.name not in _MYSQL:
        return table
    is_mariadb = getattr(dialect, "is_mariadb", False)
    collation = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
    copy = table.to_metadata(sa.MetaData())
    for column in copy.columns:
        if isinstance(column.type, sa.String):
            column.type = sa.String(column.type.length, collation=collation)
    return copy


def is_refused_user(error: Any) -> bool:
    """Return whether a driver's error says that the database refused the user."""
    number = error.args[0] if error is not None and error.args else None
    text = str(error)
    return number in _REFUSED_USER_NUMBERS or any(t in text for t in _REFUSED_USER_TEXTS)
