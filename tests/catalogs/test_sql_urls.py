"""The addresses of databases: drivers, paths, and secrets that no text shows."""

from __future__ import annotations

import pickle
import socket
import sqlite3
import traceback
from pathlib import Path

import pytest
import sqlalchemy as sa

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.catalogs.sql.database import database_url
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from iceberg_pyspark.catalogs.sql.dialects import (
    driver_limits,
    installed_driver,
    is_timeout,
    time_limits,
)
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    IcebergError,
    InvalidRequestError,
)
from tests.support.secret_forms import URI_FORMS, filled

EVENTS = TableIdentifier(namespace=("db", "inner"), name="events")


@pytest.mark.parametrize(
    ("uri", "properties", "expected"),
    [
        ("sqlite:////a/b.db", {}, "sqlite:////a/b.db"),
        ("jdbc:sqlite:/a/b.db", {}, "sqlite:////a/b.db"),
        ("jdbc:sqlite:/a/b c.db?timeout=3", {}, "sqlite:////a/b c.db?timeout=3"),
        ("jdbc:sqlite::memory:", {}, "sqlite:///:memory:"),
        ("sqlite://", {}, "sqlite://"),
        ("jdbc:postgresql://h:5432/d", {}, "postgresql://h:5432/d"),
        ("jdbc:postgresql://h/d?user=u&password=p", {}, "postgresql://u:p@h/d"),
        ("jdbc:mysql://h/d?ssl=1", {"jdbc.user": "u"}, "mysql://u@h/d?ssl=1"),
        ("postgresql+psycopg2://u:p@h/d", {}, "postgresql+psycopg2://u:p@h/d"),
    ],
)
def test_urls(uri: str, properties: dict[str, str], expected: str) -> None:
    assert database_url(uri, properties) == sa.make_url(expected)


_SOCKET_OF_LIBPQ = {
    "tcp_user_timeout": 9000,
    "keepalives_idle": 5,
    "keepalives_interval": 1,
    "keepalives_count": 3,
}


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("postgresql+psycopg://h/d", {"connect_timeout": 2, **_SOCKET_OF_LIBPQ}),
        ("postgresql+psycopg2://h/d?connect_timeout=7", _SOCKET_OF_LIBPQ),
        (
            "mysql+pymysql://h/d",
            {"connect_timeout": 0.001, "read_timeout": 0.009, "write_timeout": 0.009},
        ),
        ("mariadb+mysqldb://h/d", {"connect_timeout": 1, "read_timeout": 1, "write_timeout": 1}),
        ("postgresql+pg8000://h/d", {}),
    ],
)
def test_drivers_get_limits_of_time_in_the_units_of_jdbc(
    uri: str, expected: dict[str, object]
) -> None:
    url = sa.make_url(uri)
    limits = {"jdbc.connectTimeout": "1", "jdbc.socketTimeout": "9"}
    assert driver_limits(url, *time_limits(url, limits)) == expected
    assert time_limits(url, {}) == (30, 180)
    none = {"jdbc.connectTimeout": "0", "jdbc.socketTimeout": "0"}
    assert driver_limits(url, *time_limits(url, none)) == {}
    with pytest.raises(InvalidRequestError, match=r"jdbc\.socketTimeout"):
        time_limits(url, {"jdbc.socketTimeout": "soon"})


@pytest.mark.parametrize(
    ("uri", "driver"),
    [
        ("postgresql+psycopg", "psycopg"),
        ("postgresql+psycopg2", "psycopg2"),
        ("mysql+pymysql", "pymysql"),
        ("mysql+mysqldb", "MySQLdb"),
    ],
)
def test_a_server_that_never_greets_ends_the_connection(uri: str, driver: str) -> None:
    pytest.importorskip(driver)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"{uri}://u@127.0.0.1:{silent.getsockname()[1]}/d"
        limits = {"jdbc.connectTimeout": "1", "jdbc.socketTimeout": "200"}
        with pytest.raises(CatalogUnavailableError, match=r"jdbc\.connectTimeout"):
            load_catalog("c", uri=address, warehouse="memory:/w", **limits)


def test_mysqlclient_says_only_that_the_connection_is_lost() -> None:
    error_type = type("OperationalError", (Exception,), {"__module__": "MySQLdb._exceptions"})
    lost = (2013, "Lost connection to server during query")
    assert is_timeout(error_type(*lost))
    assert not is_timeout(error_type(1045, "Access denied"))
    # PyMySQL says of a limit that the time is over
    assert not is_timeout(type("OperationalError", (Exception,), {})(*lost))


@pytest.mark.parametrize(
    ("uri", "installed", "expected"),
    [
        ("postgresql://h/d", ("psycopg", "psycopg2"), "postgresql+psycopg"),
        ("postgresql://h/d", ("psycopg2",), "postgresql+psycopg2"),
        ("mysql://h/d", ("pymysql", "MySQLdb"), "mysql+pymysql"),
        ("mariadb://h/d", ("MySQLdb",), "mariadb+mysqldb"),
        ("mysql://h/d", (), "mysql+pymysql"),
        ("mysql+mysqldb://h/d", ("pymysql",), "mysql+mysqldb"),
    ],
)
def test_the_driver_is_an_installed_one(
    monkeypatch: pytest.MonkeyPatch, uri: str, installed: tuple[str, ...], expected: str
) -> None:
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: name if name in installed else None
    )
    assert installed_driver(sa.make_url(uri)).drivername == expected


def test_a_jdbc_path_is_taken_character_by_character() -> None:
    assert database_url("jdbc:sqlite:/a/%20#.db", {}).database == "/a/%20#.db"


def test_a_relative_database_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = SqlCatalog("lake", {"uri": "sqlite:///catalog.db", "warehouse": "warehouse"})
    catalog.create_namespace(("db",))
    monkeypatch.chdir("/")
    copy = pickle.loads(pickle.dumps(catalog))
    assert copy.namespace_exists(("db",))
    assert copy.default_table_location(EVENTS).startswith(str(tmp_path))


def test_passwords_are_not_shown() -> None:
    secret = "hunter2"
    properties = {
        "uri": f"postgresql+nodriver://me:{secret}@host/db?sslpassword={secret}",
        "jdbc.password": secret,
        "s3.secret-access-key": secret,
    }
    with pytest.raises(InvalidRequestError) as raised:
        SqlCatalog("lake", properties).list_namespaces()
    assert secret not in repr(raised.value)
    with pytest.raises(InvalidRequestError) as raised:
        database_url(f"no url at all ://me:{secret}@", {})
    assert secret not in repr(raised.value)
    assert raised.value.__suppress_context__
    catalog = SqlCatalog("lake", {"uri": "sqlite://", "s3.secret-access-key": secret})
    texts = f"{catalog!r} {catalog.properties!r} {catalog.properties}"
    assert secret not in texts
    assert catalog.properties["s3.secret-access-key"] == secret


@pytest.mark.parametrize("form", URI_FORMS)
def test_no_form_of_a_uri_is_shown_by_what_it_leads_to(form: str) -> None:
    uri, secret = filled(form)
    with pytest.raises(IcebergError) as raised:
        load_catalog("lake", uri=uri, type="sql").list_namespaces()
    text = "".join(traceback.format_exception(raised.value))
    assert secret not in text


class Telling:
    """A database driver whose errors repeat all arguments that it received."""

    paramstyle = "qmark"
    Error = sqlite3.Error

    def __init__(self, kind: type[Exception]) -> None:
        self._kind = kind

    def connect(self, *arguments: object, **options: object) -> None:
        try:
            raise ValueError(f"odd: {options}")
        except ValueError as e:
            raise self._kind(
                f"refused {arguments} {options} {[str(v) for v in options.values()]}"
            ) from e

    def __getattr__(self, name: str) -> object:
        return getattr(sqlite3, name)


@pytest.mark.parametrize("kind", [sqlite3.OperationalError, sqlite3.ProgrammingError])
def test_password_in_a_driver_error_is_hidden(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "p@ss word"
    create = sa.create_engine
    monkeypatch.setattr(
        sa, "create_engine", lambda url, **options: create(url, module=Telling(kind), **options)
    )
    uri = "mysql+pymysql://me:p%40ss%20word@h/db"
    with pytest.raises(CatalogError) as raised:
        load_catalog("lake", type="sql", uri=uri).list_namespaces()
    text = "".join(traceback.format_exception(raised.value))
    assert "refused" in text
    assert secret not in text
    assert "p%40ss" not in text


def test_a_driver_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(IcebergError, match=r"pip install 'iceberg-pyspark\[postgres\]'"):
        load_catalog("lake", uri="postgresql://host/db").list_namespaces()
