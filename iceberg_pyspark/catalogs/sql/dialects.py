"""Differences between the databases of SQL catalogs: drivers, time limits, comparisons, refusals.

By default, MySQL and MariaDB ignore case and trailing blanks when they compare strings. Tables
created here therefore set another collation, and queries on tables of other clients compare bytes.

The file of an SQLite catalog may be shared or read-only. A new one gets a write-ahead log, so
readers and a writer do not wait for each other. The journal mode of an existing database is not
changed, because other programs, perhaps on other machines, rely on it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import sqlite3
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from iceberg_pyspark.errors import CatalogError
from iceberg_pyspark.spec.property_types import IntProperty

_DRIVERS = {
    "postgresql": (("psycopg", "psycopg"), ("psycopg2", "psycopg2")),
    "mysql": (("pymysql", "pymysql"), ("mysqldb", "MySQLdb")),
    "mariadb": (("pymysql", "pymysql"), ("mysqldb", "MySQLdb")),
}
_MYSQL = ("mysql", "mariadb")
_CONNECT_TIMEOUT, _SOCKET_TIMEOUT = "jdbc.connectTimeout", "jdbc.socketTimeout"
_DEFAULT_CONNECT_S, _DEFAULT_SOCKET_S = 30, 180
# MySQL: access to a database denied, access to the server denied
_REFUSED_USER_NUMBERS = (1044, 1045)
# mysqlclient says of a read that took too long only that the connection is lost
_LOST_NUMBER = 2013
_TIMEOUT_TEXTS = ("timed out", "timeout expired", "no answer within")
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


def time_limits(url: sa.URL, properties: Mapping[str, str]) -> tuple[float, float]:
    """Return how many seconds a connection may take to open, and a statement without an answer.

    The properties have the names and units of the JDBC drivers: seconds for PostgreSQL,
    milliseconds for MariaDB and MySQL. Zero means no limit. Raise `InvalidRequestError`.
    """
    units = 1000 if url.get_backend_name() in _MYSQL else 1
    return (
        IntProperty(_CONNECT_TIMEOUT, _DEFAULT_CONNECT_S * units, 0).of(properties) / units,
        IntProperty(_SOCKET_TIMEOUT, _DEFAULT_SOCKET_S * units, 0).of(properties) / units,
    )


def driver_limits(url: sa.URL, connect_s: float, socket_s: float) -> dict[str, Any]:
    """Return the arguments of the driver for the limits, except those that the URL sets itself.

    libpq, PostgreSQL's client library, has no limit for a server that is silent: see
    `psycopg_limits.py` and `psycopg2_limits.py`. Its limits here end a connection whose network or
    server is gone.
    """
    limits: dict[str, Any] = {}
    match url.get_driver_name():
        case "psycopg" | "psycopg2":
            if connect_s:
                # libpq takes whole seconds of at least 2
                limits["connect_timeout"] = max(2, math.ceil(connect_s))
            if socket_s:
                idle_s = max(1, math.ceil(socket_s / 2))
                limits |= {
                    "tcp_user_timeout": math.ceil(socket_s * 1000),
                    "keepalives_idle": idle_s,
                    "keepalives_interval": max(1, idle_s // 3),
                    "keepalives_count": 3,
                }
        case "pymysql" | "mysqldb" as driver:
            # mysqlclient takes whole seconds
            whole = math.ceil if driver == "mysqldb" else float
            if connect_s:
                limits["connect_timeout"] = whole(connect_s)
            if socket_s:
                limits |= {"read_timeout": whole(socket_s), "write_timeout": whole(socket_s)}
    return {k: v for k, v in limits.items() if k not in url.query}


def limit_remedy(url: sa.URL) -> str:
    """Return which properties raise the limits of time."""
    units = "ms" if url.get_backend_name() in _MYSQL else "seconds"
    return f"a slow server may need a higher {_SOCKET_TIMEOUT} or {_CONNECT_TIMEOUT} (in {units})"


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


def is_timeout(error: Any) -> bool:
    """Return whether a driver's error says that a limit of `time_limits` is over."""
    if type(error).__module__.startswith("MySQLdb") and error.args[:1] == (_LOST_NUMBER,):
        return True
    return any(text in str(error) for text in _TIMEOUT_TEXTS)


_DEFAULT_TIMEOUT_S = 5.0
_READ_VERSION_AT = 19
_WAL = 2


def open_sqlite_file(path: str, arguments: Mapping[str, Any]) -> sqlite3.Connection:
    """Connect to the database at a path; create the database if it does not exist.

    `arguments` are passed to `sqlite3.connect`. Raise `CatalogError` if the database is read-only
    here and its log contains changes that are not in the file.
    """
    if _size(path) == 0:
        connection: sqlite3.Connection = sqlite3.connect(path, **arguments)
        try:
            _begin_with_log(connection, arguments.get("timeout", _DEFAULT_TIMEOUT_S))
        except BaseException:
            connection.close()
            raise
        return connection
    if _can_only_be_read(path) and _has_log_mode(path) and not os.path.exists(f"{path}-shm"):
        if _size(f"{path}-wal"):
            raise CatalogError(
                f"SQLite database {path} can only be read here and has changes in {path}-wal, "
                "which need a file beside it to be read; open it once where its folder can be "
                "written, or copy both files to such a folder"
            )
        # without `immutable`, SQLite would create a file for a shared log, which does not exist
        # here
        place = f"file:{quote(path)}?mode=ro&immutable=1"
        connection = sqlite3.connect(place, **{**arguments, "uri": True})
    else:
        connection = sqlite3.connect(path, **arguments)
    return connection


def is_read_only(error: BaseException | None) -> bool:
    """Return whether SQLite's error says that the database is read-only."""
    return isinstance(error, sqlite3.OperationalError) and "readonly database" in str(error)


def _begin_with_log(connection: sqlite3.Connection, timeout: float) -> None:
    """Set the write-ahead log of an empty database; concurrent processes wait until it is set."""
    deadline = time.monotonic() + timeout
    while connection.execute("PRAGMA page_count").fetchone() == (0,):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            # two concurrent attempts refuse each other without waiting
            if time.monotonic() > deadline:
                raise
            time.sleep(0.002 + 0.001 * (os.getpid() % 8))
        else:
            # a file system that cannot share a log refuses it, and the database works without a log
            return


def _size(path: str) -> int:
    with contextlib.suppress(OSError):
        return os.stat(path).st_size
    return 0


def _can_only_be_read(path: str) -> bool:
    return not (os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK))


def _has_log_mode(path: str) -> bool:
    """Return whether the file's header declares a log (SQLite, "Database File Format")."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        header = file.read(_READ_VERSION_AT + 1)
        return len(header) > _READ_VERSION_AT and header[_READ_VERSION_AT] == _WAL
    return False
