"""Differences between the databases of SQL catalogs: drivers, comparisons, refusals.

MySQL and MariaDB compare strings without case and without trailing blanks by default: tables
created here set another collation, and queries on tables of other clients ask for it.
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
# MySQL: access denied, to a database and to the server
_REFUSED_USER_NUMBERS = (1044, 1045)
# PostgreSQL gives no state to a connection that it refuses
_REFUSED_USER_TEXTS = ("authentication failed", "no password supplied", "no pg_hba.conf entry")


def installed_driver(url: sa.URL) -> sa.URL:
    """The URL with a driver that is installed, where it names none.

    Without one that is, the first is asked for: the error then says what to install.
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
    """The conditions under which a column is a text, the first of which finds it by a key."""
    if backend not in _MYSQL:
        return (column == value,)
    text = sa.literal(value, sa.String())
    return (column == value, sa.cast(column, sa.LargeBinary) == sa.cast(text, sa.LargeBinary))


def collated(dialect: sa.Dialect, table: sa.Table) -> sa.Table:
    """The table with columns that compare texts character by character."""
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
    """Whether a driver says that the database does not let the user in."""
    number = error.args[0] if error is not None and error.args else None
    text = str(error)
    return number in _REFUSED_USER_NUMBERS or any(t in text for t in _REFUSED_USER_TEXTS)
