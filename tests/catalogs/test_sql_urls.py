"""The addresses of databases: drivers, paths, and secrets that no text shows."""

from __future__ import annotations

import pickle
import sqlite3
import traceback
from pathlib import Path

import pytest
import sqlalchemy as sa

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.catalogs.sql.catalog import SqlCatalog
from iceberg_pyspark.catalogs.sql.database import database_url
from iceberg_pyspark.catalogs.sql.dialects import installed_driver
from iceberg_pyspark.errors import (
    CatalogError,
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
def test_what_a_driver_repeats_is_not_shown(
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
