"""When SQL loads a table from its catalog, and when it uses the cached table."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getattr_static
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark.catalogs.catalog import (
    Catalog,
    LoadedTable,
    NewTablePlace,
    PlacingCatalog,
    TableIdentifier,
)
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.errors import InvalidRequestError, NoSuchTableError
from iceberg_pyspark.spark.sql_catalog.cached_catalog import (
    CachedCatalog,
    invalidate_table,
    load_for_query,
    with_table_cache,
)
from iceberg_pyspark.sql_text.schema_text import parse_schema
from iceberg_pyspark.table.commits.create_table import create_table
from iceberg_pyspark.table.table import Table

T = TableIdentifier(namespace=("db",), name="t")


class CountingCatalog(MemoryCatalog):
    """A catalog that counts the loads of tables."""

    loads = 0
    meanwhile: Any = None
    """A function that is called once while a table is loaded."""

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        self.loads += 1
        loaded = super().load_table(identifier)
        if self.meanwhile is not None:
            action, self.meanwhile = self.meanwhile, None
            action()
        return loaded


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


Counting = Callable[..., CountingCatalog]


@pytest.fixture
def counting(tmp_path: Path) -> Counting:
    """Return a function that creates a catalog with `db.t` in it."""

    def make(**properties: str) -> CountingCatalog:
        below = CountingCatalog(
            "lake", {"type": "memory", "warehouse": str(tmp_path), **properties}
        )
        below.create_namespace(("db",))
        create_table(below, T, NewTable(schema=parse_schema("id INT")))
        below.loads = 0
        return below

    return make


def opened(below: Catalog, clock: Clock | None = None) -> Catalog:
    return with_table_cache(below, clock or Clock())


def owner(catalog: Catalog) -> str | None:
    return load_for_query(catalog, T).metadata.properties.get("owner")


def set_owner(catalog: Catalog, value: str) -> None:
    Table(catalog, catalog.load_table(T)).update_properties().set({"owner": value}).commit()


def test_a_table_is_loaded_once_within_the_interval(counting: Counting) -> None:
    below, clock = counting(**{"cache-enabled": "true"}), Clock()
    catalog = opened(below, clock)
    for clock.now in (0, 10, 29.9):
        load_for_query(catalog, T)
    assert below.loads == 1
    clock.now = 30
    load_for_query(catalog, T)
    assert below.loads == 2


def test_others_commits_show_after_the_interval_and_after_refresh_table(counting: Counting) -> None:
    below, clock = counting(**{"cache-enabled": "true"}), Clock()
    catalog = opened(below, clock)
    assert owner(catalog) is None
    set_owner(below, "other")
    assert owner(catalog) is None
    invalidate_table(catalog, T)
    assert owner(catalog) == "other"
    set_owner(below, "another")
    clock.now = 31
    assert owner(catalog) == "another"


def test_own_changes_show_at_once(counting: Counting) -> None:
    catalog = opened(counting(**{"cache-enabled": "true"}))
    assert owner(catalog) is None
    set_owner(catalog, "me")
    assert owner(catalog) == "me"
    renamed = TableIdentifier(namespace=("db",), name="u")
    catalog.rename_table(T, renamed)
    with pytest.raises(NoSuchTableError):
        load_for_query(catalog, T)
    location = load_for_query(catalog, renamed).metadata_location
    catalog.register_table(T, location)
    assert owner(catalog) == "me"
    catalog.drop_table(T)
    with pytest.raises(NoSuchTableError):
        load_for_query(catalog, T)
    create_table(catalog, T, NewTable(schema=parse_schema("id INT")))
    assert owner(catalog) is None


def test_table_loaded_before_a_change_is_not_cached(counting: Counting) -> None:
    below = counting(**{"cache-enabled": "true"})
    catalog = opened(below)
    below.meanwhile = lambda: set_owner(catalog, "me")
    assert owner(catalog) is None
    assert owner(catalog) == "me"


def test_table_of_python_refreshes_past_the_cache(counting: Counting) -> None:
    below = counting(**{"cache-enabled": "true"})
    catalog = opened(below)
    table = Table(catalog, load_for_query(catalog, T))
    set_owner(below, "other")
    assert table.refresh().properties["owner"] == "other"


@pytest.mark.parametrize(
    ("properties", "loads"),
    [
        ({}, 2),
        ({"cache-enabled": "false"}, 2),
        ({"cache-enabled": "true", "cache.expiration-interval-ms": "0"}, 2),
        ({"cache-enabled": "true", "cache.expiration-interval-ms": "-1"}, 1),
        ({"cache-enabled": "true", "cache.expiration-interval-ms": "5000"}, 2),
    ],
)
def test_the_properties_decide(counting: Counting, properties: dict[str, str], loads: int) -> None:
    below, clock = counting(**properties), Clock()
    catalog = opened(below, clock)
    load_for_query(catalog, T)
    clock.now = 6.0 if "5000" in properties.values() else 1.0
    load_for_query(catalog, T)
    assert below.loads == loads


@pytest.mark.parametrize("sensitive", ["true", "false"])
def test_names_are_one_in_any_case_if_the_catalog_says_so(
    counting: Counting, sensitive: str
) -> None:
    below = counting(**{"cache-enabled": "true", "cache.case-sensitive": sensitive})
    catalog = opened(below)
    load_for_query(catalog, T)
    try:
        load_for_query(catalog, TableIdentifier(namespace=("DB",), name="T"))
    except NoSuchTableError:
        assert sensitive == "true"
    else:
        assert sensitive == "false"


@pytest.mark.parametrize(
    ("properties", "is_cached"),
    [
        ({"type": "sql", "uri": "sqlite:////a/b.db", "warehouse": "/a"}, False),
        ({"type": "sql", "uri": "sqlite:////a/b.db", "warehouse": "relative"}, False),
        ({"type": "jdbc", "uri": "jdbc:sqlite:/a/b.db"}, False),
        ({"type": "sql", "uri": "sqlite:////a/b.db", "warehouse": "s3://b/w"}, True),
        ({"type": "sql", "uri": "postgresql+psycopg://h/d", "warehouse": "/a"}, True),
        ({"type": "hadoop", "warehouse": "file:/a"}, False),
        ({"type": "rest", "uri": "http://h/"}, True),
        ({"uri": "https://h/"}, True),
        ({"type": "glue"}, True),
        ({"catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog"}, True),
        ({"type": "hive", "uri": "thrift://h:9083"}, True),
        ({"type": "memory", "warehouse": "memory://w"}, False),
    ],
    ids=str,
)
def test_catalogs_elsewhere_are_cached(properties: dict[str, str], is_cached: bool) -> None:
    catalog: Any = type("Other", (), {"properties": properties})()
    assert isinstance(with_table_cache(catalog), CachedCatalog) is is_cached


def test_cached_catalog_has_the_abilities_of_the_catalog_below(counting: Counting) -> None:
    """`isinstance` checks a protocol by attribute names, which Python looks up in the class."""
    catalog = opened(counting(**{"cache-enabled": "true"}))
    assert isinstance(catalog, CachedCatalog)
    assert not isinstance(catalog, PlacingCatalog)

    class Placing(CountingCatalog):
        def place_table(self, identifier: TableIdentifier, location: str | None) -> NewTablePlace:
            return NewTablePlace(location=f"/{identifier}")

    below = Placing("lake", {"cache-enabled": "true"})
    placing = opened(below)
    assert isinstance(placing, PlacingCatalog)
    assert getattr_static(placing, "place_table") is not None
    assert placing.place_table(T, None).location == "/db.t"
    assert placing.name == "lake"


def test_unknown_change_empties_the_cache(counting: Counting) -> None:
    class Transacting(CountingCatalog):
        def commit_transaction(self) -> None:
            set_owner(self, "several")

    plain = counting(**{"cache-enabled": "true"})
    below = Transacting("lake", plain.properties)
    below.__dict__.update(vars(plain))
    catalog: Any = opened(below)
    assert owner(catalog) is None
    catalog.commit_transaction()
    assert owner(catalog) == "several"


def test_wrong_values_are_refused(counting: Counting) -> None:
    for key, value in (("cache-enabled", "yes"), ("cache.expiration-interval-ms", "30s")):
        with pytest.raises(InvalidRequestError, match=key):
            opened(counting(**{key: value}))
