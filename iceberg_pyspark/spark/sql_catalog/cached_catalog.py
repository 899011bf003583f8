"""Caches tables that SQL has loaded from a remote catalog, for the statements that follow soon.

Spark asks for a table several times in one statement, and each time would be a request to the
catalog and a read of a metadata file. A catalog on this machine is not cached unless configured.
The properties have Java's names and defaults: `cache-enabled` (true),
`cache.expiration-interval-ms` (30,000; 0: nothing is cached; negative: tables stay cached until
they are invalidated), `cache.case-sensitive` (true). Unlike in Java the interval begins when a
table is loaded and is not extended by use, so a table that is queried all the time also shows
commits of others.

Commits of this session are visible to it at once, and so is everything after REFRESH TABLE. Only
SQL reads from the cache: commits, retries and the Python API load the current state.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.table_folders import WAREHOUSE, absolute_location
from iceberg_pyspark.changes.changes import TableRequirement, TableUpdate
from iceberg_pyspark.changes.outcomes import Outcome
from iceberg_pyspark.spark.options.option_values import flag_option, number_option
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.local import is_local
from iceberg_pyspark.storage.lru_map import LruMap

_CACHE_ENABLED = flag_option("cache-enabled", default=True)
_CASE_SENSITIVE = flag_option("cache.case-sensitive", default=True)
_INTERVAL = number_option("cache.expiration-interval-ms")
_DEFAULT_INTERVAL_MS = 30_000
_MAX_TABLES = 100
_WITHOUT_CHANGE = (
    *("name", "properties", "list_namespaces", "namespace_exists", "load_namespace_properties"),
    *("list_tables", "table_exists", "default_table_location", "place_table"),
    *("list_views", "view_exists", "load_view", "default_view_location", "other_pointers"),
)
"""The names of a catalog's attributes whose use changes no table."""


def with_table_cache(catalog: Catalog, clock: Callable[[], float] = time.monotonic) -> Catalog:
    """Return the catalog, with a cache of its tables if its properties enable it.

    `clock` returns seconds.
    """
    properties = catalog.properties
    interval_ms = _INTERVAL.of(properties)
    if interval_ms is None:
        interval_ms = _DEFAULT_INTERVAL_MS
    # Both are read, so that an invalid value is always an error.
    enabled, case_sensitive = _CACHE_ENABLED.of(properties), _CASE_SENSITIVE.of(properties)
    if (
        not enabled
        or interval_ms == 0
        or not (_is_remote(properties) or "cache-enabled" in properties)
    ):
        return catalog
    tables = _LoadedTables(interval_ms / 1000, clock, case_sensitive=case_sensitive)
    return cast(Catalog, _class_over(type(catalog))(catalog, tables))


def load_for_query(catalog: Catalog, identifier: TableIdentifier) -> LoadedTable:
    """Return the table, possibly in a recently cached state; raise `NoSuchTableError`."""
    if isinstance(catalog, CachedCatalog):
        return catalog.load_from_cache(identifier)
    return catalog.load_table(identifier)


def invalidate_table(catalog: Catalog, identifier: TableIdentifier) -> None:
    """Drop a table from the cache (REFRESH TABLE), so that the next query loads it."""
    if isinstance(catalog, CachedCatalog):
        catalog.invalidate(identifier)


def _is_remote(properties: Mapping[str, str]) -> bool:
    """Return whether loading a table leaves this machine: for a service, a database or a store."""
    kind = properties.get("type", properties.get("catalog-impl", "")).lower()
    if kind.endswith(("memory", "inmemorycatalog")):
        return False
    if kind.endswith(("rest", "glue", "hive", "restcatalog", "gluecatalog", "hivecatalog")):
        return True
    database = properties.get("uri", "sqlite:").removeprefix("jdbc:").partition(":")[0]
    warehouse = properties.get(WAREHOUSE)
    elsewhere = warehouse is not None and not is_local(absolute_location(warehouse))
    return elsewhere or database.partition("+")[0] != "sqlite"


class CachedCatalog:
    """A catalog that caches loaded tables; `_class_over` adds the other methods of the wrapped
    catalog.
    """

    def __init__(self, catalog: Catalog, tables: _LoadedTables) -> None:
        self._catalog = catalog
        self._tables = tables

    def load_from_cache(self, identifier: TableIdentifier) -> LoadedTable:
        """Return the table as it was loaded within the interval, or load it."""
        table = self._tables.get(identifier)
        return self.load_table(identifier) if table is None else table

    def invalidate(self, identifier: TableIdentifier) -> None:
        """Drop a table's cached entry."""
        self._tables.invalidate(identifier)

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """Load the table's current state and cache it."""
        generation = self._tables.generation
        try:
            loaded_table = self._catalog.load_table(identifier)
        except BaseException:
            self._tables.invalidate(identifier)
            raise
        self._tables.put(identifier, loaded_table, generation)
        return loaded_table

    def create_table(self, identifier: TableIdentifier, metadata: TableMetadata) -> LoadedTable:
        """Create the table in the wrapped catalog and drop its cached entry."""
        with self._invalidate_after(identifier):
            return self._catalog.create_table(identifier, metadata)

    def commit_table(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
        *,
        base: LoadedTable | None = None,
    ) -> Outcome[LoadedTable]:
        """Commit to the wrapped catalog and drop the cached entry of the table, even on failure."""
        with self._invalidate_after(identifier):
            return self._catalog.commit_table(identifier, requirements, updates, base=base)

    def drop_table(self, identifier: TableIdentifier) -> bool:
        """Drop the table in the wrapped catalog and its cached entry."""
        with self._invalidate_after(identifier):
            return self._catalog.drop_table(identifier)

    def rename_table(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Rename the table in the wrapped catalog and drop the cached entries of both names."""
        with self._invalidate_after(source), self._invalidate_after(target):
            self._catalog.rename_table(source, target)

    def register_table(
        self, identifier: TableIdentifier, metadata_location: str, *, dry_run: bool = False
    ) -> LoadedTable:
        """Register the table in the wrapped catalog and drop its cached entry."""
        with self._invalidate_after(identifier):
            return self._catalog.register_table(identifier, metadata_location, dry_run=dry_run)

    @contextmanager
    def _invalidate_after(self, identifier: TableIdentifier) -> Iterator[None]:
        """Drop the cached entry after a change, even a failed one, which may have taken place."""
        try:
            yield
        finally:
            self._tables.invalidate(identifier)


@cache
def _class_over(below: type) -> type[CachedCatalog]:
    """Return a subclass that also has the other attributes of a catalog's class.

    Callers look up a catalog's abilities by attribute name. After a call of a method that may
    change tables in another way, the whole cache is dropped.
    """
    names = {name for name in dir(below) if not name.startswith("_")} - set(vars(CachedCatalog))
    return type(CachedCatalog.__name__, (CachedCatalog,), {name: _of_below(name) for name in names})


def _of_below(name: str) -> property:
    def value(self: CachedCatalog) -> Any:
        attribute = getattr(self._catalog, name)
        if name in _WITHOUT_CHANGE or not callable(attribute):
            return attribute

        def run(*args: Any, **keywords: Any) -> Any:
            try:
                return attribute(*args, **keywords)
            finally:
                self._tables.invalidate_all()

        return run

    return property(value)


class _LoadedTables:
    """A cache of tables by identifier, each until it expires; safe to use from several threads."""

    def __init__(
        self, interval: float, clock: Callable[[], float], *, case_sensitive: bool
    ) -> None:
        """`interval` is in seconds; if it is negative, a table stays until it is dropped."""
        self._interval = interval
        self._clock = clock
        self._case_sensitive = case_sensitive
        self._lock = threading.Lock()
        self._entry_by_key: LruMap[TableIdentifier, tuple[float, LoadedTable]] = LruMap(_MAX_TABLES)
        self._generation = 0

    @property
    def generation(self) -> int:
        """A number that changes when a table is dropped: an earlier load may be outdated."""
        with self._lock:
            return self._generation

    def get(self, identifier: TableIdentifier) -> LoadedTable | None:
        """Return the table if it has not expired, or None."""
        key = self._key(identifier)
        loaded_at, loaded_table = self._entry_by_key.get(key) or (0.0, None)
        if loaded_table is None or 0 <= self._interval <= self._clock() - loaded_at:
            self._entry_by_key.pop(key)
            return None
        return loaded_table

    def put(self, identifier: TableIdentifier, loaded_table: LoadedTable, generation: int) -> None:
        """Cache a table, unless a table was dropped after `generation` was read."""
        with self._lock:
            if generation == self._generation:
                self._entry_by_key.put(self._key(identifier), (self._clock(), loaded_table))

    def invalidate(self, identifier: TableIdentifier) -> None:
        """Drop a table from the cache."""
        with self._lock:
            self._generation += 1
            self._entry_by_key.pop(self._key(identifier))

    def invalidate_all(self) -> None:
        """Drop all tables from the cache."""
        with self._lock:
            self._generation += 1
            self._entry_by_key.clear()

    def _key(self, identifier: TableIdentifier) -> TableIdentifier:
        if self._case_sensitive:
            return identifier
        return TableIdentifier(
            namespace=tuple(level.lower() for level in identifier.namespace),
            name=identifier.name.lower(),
        )
