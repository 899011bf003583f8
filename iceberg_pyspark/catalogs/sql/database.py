"""The database of a SQL catalog: URL, connections, and transactions with three outcomes.

A transaction is done, refused (rolled back) or unknown: the connection broke during COMMIT. After a
busy SQLite database, a deadlock or a serialization failure, the transaction is rolled back and
retried a limited number of times. Error messages contain no statement, parameter or password.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import NullPool, StaticPool

from iceberg_pyspark.catalogs.sql.dialects import (
    driver_limits,
    equals_exactly,
    installed_driver,
    is_read_only,
    is_refused_user,
    is_timeout,
    limit_remedy,
    open_sqlite_file,
    table_with_collation,
    time_limits,
)
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitStateUnknownError,
    InvalidRequestError,
    NotAuthorizedError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.redaction import (
    get_logger,
    harmless_cause,
    redact_uri,
    secret_values,
    without_secrets,
)
from iceberg_pyspark.spec.json_fields import is_text
from iceberg_pyspark.spec.property_types import IntProperty

T = TypeVar("T")

_log = get_logger(__name__)

BUSY_TIMEOUT_MS = IntProperty("jdbc.busy_timeout", 10_000, 0)
"""How long an attempt waits for a locked SQLite database, in ms; named as in the JDBC driver."""
_ATTEMPTS = 3
_IMMEDIATE = "iceberg_immediate"
# PostgreSQL: serialization failure, deadlock, lock not available; MySQL: lock wait timeout,
# deadlock; MariaDB: the row has changed since the transaction began
_BUSY_STATES = ("40001", "40P01", "55P03")
_BUSY_NUMBERS = (1020, 1205, 1213)


def database_url(uri: str, properties: Mapping[str, str]) -> sa.URL:
    """Return the SQLAlchemy URL of a catalog's `uri`, which may be a JDBC URL.

    User and password may also come from `jdbc.user` and `jdbc.password`. A relative SQLite path
    starts at the working folder of the process that calls this function first.

    >>> str(database_url("jdbc:sqlite:/data/catalog.db", {}))
    'sqlite:////data/catalog.db'
    """
    if not is_text(uri) or "\0" in uri:
        raise InvalidRequestError(
            "the catalog uri has characters that are not allowed in file and host names"
        )
    try:
        if uri.startswith("jdbc:sqlite:"):
            path, question_mark, query = uri.removeprefix("jdbc:sqlite:").partition("?")
            # take the path literally, because a JDBC path is not percent-encoded
            url = sa.make_url(f"sqlite://{question_mark}{query}").set(database=path)
        else:
            url = sa.make_url(uri.removeprefix("jdbc:"))
    except (ArgumentError, ValueError):
        # raise without the cause, whose text may contain the password
        raise InvalidRequestError(
            f"catalog uri '{redact_uri(uri)}' is not a database URL; write "
            "sqlite:///path/catalog.db, postgresql://host/database or their JDBC forms"
        ) from None
    if "@" in (url.host or ""):
        # the "host" is the end of a password, and drivers show host names in errors
        raise InvalidRequestError(
            f"catalog uri '{redact_uri(uri)}' has a host with an @ in it; write the characters "
            "@, :, / and % of a user or password as %40, %3A, %2F and %25"
        )
    if url.get_backend_name() == "sqlite":
        # SQLite has no users
        return url.set(database=os.path.abspath(url.database or "")) if _is_plain_file(url) else url
    user = properties.get("jdbc.user") or _query_value(url, "user")
    password = properties.get("jdbc.password") or _query_value(url, "password")
    if uri.startswith("jdbc:") or "jdbc.user" in properties or "jdbc.password" in properties:
        url = url.difference_update_query(["user", "password"])
        url = url.set(username=user or url.username, password=password or url.password)
    return url


def sqlite_uri(path: str) -> str:
    """Return the URL of an SQLite file."""
    return sa.URL.create("sqlite", database=path).render_as_string()


def _query_value(url: sa.URL, key: str) -> str | None:
    value = url.query.get(key)
    return value if isinstance(value, str) else None


def _is_plain_file(url: sa.URL) -> bool:
    return not _is_memory(url) and not (url.database or "").startswith("file:")


def _is_memory(url: sa.URL) -> bool:
    database = url.database or ""
    return database in ("", ":memory:") or ":memory:" in database or "mode=memory" in str(url.query)


class Database:
    """The connections to one database; the first use connects, and pickling drops connections."""

    def __init__(self, uri: str, properties: Mapping[str, str]) -> None:
        self._url = database_url(uri, properties)
        # the original text, because SQLAlchemy may mistake a part of a password for another part of
        # a URL that it does not support
        self._given_uri = uri
        self._secrets = secret_values(
            {
                **properties,
                "uri": uri,
                "url": self._url.render_as_string(hide_password=False),
                "password": self._url.password or "",
            }
        )
        self._busy_timeout_ms = BUSY_TIMEOUT_MS.of(properties)
        self._limits_s = time_limits(self._url, properties)
        self._is_sqlite = self._url.get_backend_name() == "sqlite"
        self.is_memory = self._is_sqlite and _is_memory(self._url)
        self._engine: sa.Engine | None = None
        self._engine_pid = 0
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        if self.is_memory:
            raise InvalidRequestError(
                "an SQLite database in memory belongs to one process; give the catalog a file: "
                "uri=sqlite:///path/catalog.db"
            )
        return {
            "_url": self._url,
            "_given_uri": self._given_uri,
            "_secrets": self._secrets,
            "_busy_timeout_ms": self._busy_timeout_ms,
            "_limits_s": self._limits_s,
            "_is_sqlite": self._is_sqlite,
            "is_memory": False,
            "_engine": None,
            "_engine_pid": 0,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"Database('{self.redacted_url}')"

    @property
    def redacted_url(self) -> str:
        """The URL without user, password and secret parameters."""
        return redact_uri(str(self._url) if self._is_sqlite else self._given_uri)

    def read(self, query: Callable[[sa.Connection], T]) -> T:
        """Run a query and return its rows; raise `CatalogUnavailableError`."""
        return self._attempts(lambda: self._read_once(query))

    def write(self, change: Callable[[sa.Connection], T]) -> T:
        """Run a change in one transaction and commit it.

        Raise SQLAlchemy's `IntegrityError` for a key that already exists, `CatalogUnavailableError`
        if nothing happened, and `CommitStateUnknownError` if COMMIT was sent and no answer arrived.
        """
        return self._attempts(lambda: self._write_once(change))

    def equals(
        self, column: sa.ColumnElement[str], value: str
    ) -> tuple[sa.ColumnElement[bool], ...]:
        """Return the conditions that a column equals a text, character by character."""
        return equals_exactly(self._url.get_backend_name(), column, value)

    def exact_names(self, connection: sa.Connection, table: sa.Table) -> sa.Table:
        """Return the table with columns that compare texts character by character."""
        return table_with_collation(connection.dialect, table)

    def _attempts(self, run: Callable[[], T]) -> T:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return run()
            except IntegrityError:
                raise
            except PoolTimeoutError as e:
                raise CatalogUnavailableError(
                    f"database {self.redacted_url}: no connection became free; nothing was "
                    "changed, try again with fewer threads at once"
                ) from e
            except DBAPIError as e:
                if not _is_busy(e):
                    raise self._translate(e) from self._cause(e)
                if attempt == _ATTEMPTS:
                    raise CatalogUnavailableError(
                        f"database {self.redacted_url} stayed locked through {_ATTEMPTS} attempts "
                        f"({self._reason(e)}); nothing was changed, try again"
                    ) from self._cause(e)
                time.sleep(0.05 * attempt)
        raise AssertionError("the last attempt returns or raises")

    def _read_once(self, query: Callable[[sa.Connection], T]) -> T:
        with self._connect() as connection:
            return query(connection)

    def _write_once(self, change: Callable[[sa.Connection], T]) -> T:
        committed = False
        try:
            with self._connect(immediate=True) as connection:
                result = change(connection)
                try:
                    connection.commit()
                except DBAPIError as e:
                    # SQLite says "busy" before it commits anything; the transaction is rolled back
                    # on close
                    if _is_busy(e) or isinstance(e, IntegrityError):
                        raise
                    raise CommitStateUnknownError(
                        f"database {self.redacted_url} gave no answer to COMMIT ({self._reason(e)})"
                    ) from self._cause(e)
                committed = True
        except Exception as e:
            # returning the connection failed, which does not matter after the commit
            if not committed:
                raise
            reason = without_secrets(str(e), self._secrets)
            _log.warning("a connection to %s was lost after COMMIT: %s", self.redacted_url, reason)
        return result

    @contextlib.contextmanager
    def _connect(self, *, immediate: bool = False) -> Iterator[sa.Connection]:
        engine = self._engine_here()
        # an in-memory database has only one connection, which threads use in turn
        guard = self._lock if self.is_memory else contextlib.nullcontext()
        with guard, engine.connect() as connection:
            yield connection.execution_options(**{_IMMEDIATE: immediate})

    def _engine_here(self) -> sa.Engine:
        with self._lock:
            # a connection must not be used on both sides of a fork
            if self._engine is None or self._engine_pid != os.getpid():
                self._engine = self._new_engine()
                self._engine_pid = os.getpid()
                weakref.finalize(self, _close, self._engine, self._engine_pid)
            return self._engine

    def _new_engine(self) -> sa.Engine:
        try:
            if not self._is_sqlite:
                url = installed_driver(self._url)
                engine = sa.create_engine(
                    url,
                    hide_parameters=True,
                    pool_pre_ping=True,
                    connect_args=driver_limits(url, *self._limits_s),
                )
            elif self.is_memory:
                engine = sa.create_engine(
                    self._url,
                    hide_parameters=True,
                    poolclass=StaticPool,
                    connect_args={"check_same_thread": False},
                )
            else:
                engine = sa.create_engine(
                    self._url,
                    hide_parameters=True,
                    poolclass=NullPool,
                    connect_args={"timeout": self._busy_timeout_ms / 1000},
                )
        except (ImportError, NoSuchModuleError) as e:
            raise InvalidRequestError(
                f"catalog uri {self.redacted_url} needs a database driver that is not installed "
                f"({without_secrets(str(e), self._secrets)}); "
                "pip install 'iceberg-pyspark[postgres]' or 'iceberg-pyspark[mysql]' for those "
                "databases, or name another one as dialect+driver://"
            ) from harmless_cause(e, self._secrets)
        except (ArgumentError, ValueError):
            # raise without the cause, whose text may contain the password
            raise InvalidRequestError(
                f"catalog uri {self.redacted_url} is not valid for its database driver"
            ) from None
        if not engine.dialect.supports_sane_rowcount:
            raise UnsupportedFeatureError(
                f"database {self.redacted_url} does not report how many rows an UPDATE changed, "
                "so commits are not safe in it; use another database"
            )
        if self._is_sqlite:
            if _is_plain_file(self._url):
                sa.event.listen(engine, "do_connect", _open_sqlite)
            sa.event.listen(engine, "connect", _prepare_sqlite)
            sa.event.listen(engine, "begin", _begin_sqlite)
        elif engine.dialect.driver in ("psycopg", "psycopg2") and self._limits_s[1]:
            # one of the two drivers, which other databases do not need
            limits = importlib.import_module(
                f"iceberg_pyspark.catalogs.sql.{engine.dialect.driver}_limits"
            )
            sa.event.listen(engine, "do_connect", limits.limited_connect(self._limits_s[1]))
        return engine

    def _translate(self, e: DBAPIError) -> CatalogError:
        state = str(getattr(e.orig, "sqlstate", None) or getattr(e.orig, "pgcode", None) or "")
        if state.startswith("28") or is_refused_user(e.orig):
            return NotAuthorizedError(
                f"database {self.redacted_url} refused the user: {self._reason(e)}"
            )
        if is_read_only(e.orig):
            return CatalogError(
                f"database {self.redacted_url} is read-only here, and nothing was changed; make "
                "its file and its folder writable, or give the catalog another uri"
            )
        if e.connection_invalidated or isinstance(e, sa.exc.OperationalError):
            return CatalogUnavailableError(
                f"database {self.redacted_url} failed: {self._reason(e)}"
            )
        return CatalogError(f"database {self.redacted_url} answered: {self._reason(e)}")

    def _reason(self, e: DBAPIError) -> str:
        reason = without_secrets(str(e.orig).strip().partition("\n")[0], self._secrets)
        return f"{reason}; {limit_remedy(self._url)}" if is_timeout(e.orig) else reason

    def _cause(self, e: DBAPIError) -> BaseException | None:
        # the driver's own error, because SQLAlchemy's error contains the statement
        return harmless_cause(e.orig, self._secrets)


def _close(engine: sa.Engine, pid: int) -> None:
    # in a forked child, the connections still belong to the parent
    if os.getpid() == pid:
        engine.dispose()


def _open_sqlite(
    _dialect: object, _record: object, arguments: Sequence[Any], options: Mapping[str, Any]
) -> sqlite3.Connection:
    return open_sqlite_file(arguments[0], options)


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # only `_begin_sqlite` begins transactions; the driver's own BEGIN comes too late
    connection.isolation_level = None


def _begin_sqlite(connection: sa.Connection) -> None:
    # a writer takes the lock first: SQLite refuses, without waiting, a read that later turns into a
    # write
    immediate = connection.get_execution_options().get(_IMMEDIATE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _is_busy(e: DBAPIError) -> bool:
    orig = e.orig
    if isinstance(orig, sqlite3.OperationalError):
        return re.search(r"\b(locked|busy)\b", str(orig)) is not None
    state = getattr(orig, "sqlstate", None) or getattr(orig, "pgcode", None)
    number = orig.args[0] if orig is not None and orig.args else None
    return state in _BUSY_STATES or (not state and number in _BUSY_NUMBERS)
