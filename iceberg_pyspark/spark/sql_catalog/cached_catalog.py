"""Tables that SQL has loaded from a remote catalog, for the statements that name them soon after.

Spark asks for a table several times in one statement, and every time would be a request to the
catalog and a read of a metadata file. A catalog on this machine answers from where it is and is not
cached unless asked. Properties, with Java's names and defaults: `cache-enabled` (true),
`cache.expiration-interval-ms` (30,000; 0: nothing is cached, below 0: until it is invalidated),
`cache.case-sensitive` (true). Unlike in Java the interval begins when a table is loaded, and not
anew with every use: a table that is queried all the time shows the commits of others too.

What this session commits is visible to it at once, and so is everything after REFRESH TABLE. Only
SQL reads from the cache: commits, retries and Python's own API load what there is.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.warehouse import WAREHOUSE, absolute_location
from iceberg_pyspark.commits.outcomes import Outcome
from iceberg_pyspark.commits.requirements import TableRequirement
from iceberg_pyspark.commits.updates import TableUpdate
from iceberg_pyspark.spark.option_values import flag_option, number_option
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.local import is_local

_ENABLED = flag_option("cache-enabled", default=True)
_CASE_SENSITIVE = flag_option("cache.case-sensitive", default=True)
_INTERVAL = number_option("cache.expiration-interval-ms")
_DEFAULT_INTERVAL_MS = 30_000
_MAX_TABLES = 100
_WITHOUT_CHANGE = (
    *("name", "properties", "list_namespaces", "namespace_exists", "load_namespace_properties"),
    *("list_tables", "table_exists", "default_table_location", "place_table"),
    *("list_views", "view_exists", "load_view", "default_view_location"),
)
"""Of a catalog, what changes no table."""


def cached(catalog: Catalog, clock: Callable[[], float] = time.monotonic) -> Catalog:
    """The catalog, with a cache of its tables where its properties say so; `clock` in seconds."""
    properties = catalog.properties
    interval_ms = _INTERVAL.of(properties)
    if interval_ms is None:
        interval_ms = _DEFAULT_INTERVAL_MS
    # both are read, so that a wrong value is an error whatever the other is
    enabled, case_sensitive = _ENABLED.of(properties), _CASE_SENSITIVE.of(properties)
    if (
        not enabled
        or interval_ms == 0
        or not (_is_remote(properties) or "cache-enabled" in properties)
    ):
        return catalog
    tables = _LoadedTables(interval_ms / 1000, clock, case_sensitive=case_sensitive)
    return cast(Catalog, _class_over(type(catalog))(catalog, tables))


def load_for_query(catalog: Catalog, identifier: TableIdentifier) -> LoadedTable:
    """The table, perhaps as it was a moment ago; raises `NoSuchTableError`."""
    if isinstance(catalog, CachedCatalog):
        return catalog.load_cached(identifier)
    return catalog.load_table(identifier)


def forget_table(catalog: Catalog, identifier: TableIdentifier) -> None:
    """REFRESH TABLE: the next query loads the table."""
    if isinstance(catalog, CachedCatalog):
        catalog.forget(identifier)


def _is_remote(properties: Mapping[str, str]) -> bool:
    """Whether loading a table leaves this machine: for a service, a database or a store."""
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
    """A `Catalog`; what is not here is the catalog's below (`_class_over`)."""

    def __init__(self, catalog: Catalog, tables: _LoadedTables) -> None:
        self._catalog = catalog
        self._tables = tables

    def load_cached(self, identifier: TableIdentifier) -> LoadedTable:
        """The table as it was loaded within the interval."""
        table = self._tables.get(identifier)
        return self.load_table(identifier) if table is None else table

    def forget(self, identifier: TableIdentifier) -> None:
        """Load the table when it is next asked for."""
        self._tables.forget(identifier)

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """The table as it is now."""
        generation = self._tables.generation
        try:
            loaded = self._catalog.load_table(identifier)
        except BaseException:
            self._tables.forget(identifier)
            raise
        self._tables.put(identifier, loaded, generation)
        return loaded

    def create_table(self, identifier: TableIdentifier, metadata: TableMetadata) -> LoadedTable:
        """As the catalog."""
        with self._changing(identifier):
            return self._catalog.create_table(identifier, metadata)

    def commit_table(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
        *,
        base: LoadedTable | None = None,
    ) -> Outcome[LoadedTable]:
        """As the catalog; whatever the outcome is, the next query loads the table."""
        with self._changing(identifier):
            return self._catalog.commit_table(identifier, requirements, updates, base=base)

    def drop_table(self, identifier: TableIdentifier) -> None:
        """As the catalog."""
        with self._changing(identifier):
            self._catalog.drop_table(identifier)

    def rename_table(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """As the catalog."""
        with self._changing(source), self._changing(target):
            self._catalog.rename_table(source, target)

    def register_table(self, identifier: TableIdentifier, metadata_location: str) -> LoadedTable:
        """As the catalog."""
        with self._changing(identifier):
            return self._catalog.register_table(identifier, metadata_location)

    @contextmanager
    def _changing(self, identifier: TableIdentifier) -> Iterator[None]:
        """Forget the table after a change, also one that fails: it may have taken place."""
        try:
            yield
        finally:
            self._tables.forget(identifier)


@cache
def _class_over(below: type) -> type[CachedCatalog]:
    """The class with all else that a catalog's class has: what a catalog can do is asked by names.

    After whatever may have changed a table in another way than by `Catalog`, all are forgotten.
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
                self._tables.forget_all()

        return run

    return property(value)


class _LoadedTables:
    """Tables by identifier, each until it is too old; safe to use from several threads."""

    def __init__(
        self, interval: float, clock: Callable[[], float], *, case_sensitive: bool
    ) -> None:
        """`interval` in seconds; below 0: a table stays until it is forgotten."""
        self._interval = interval
        self._clock = clock
        self._case_sensitive = case_sensitive
        self._lock = threading.Lock()
        self._loaded: OrderedDict[TableIdentifier, tuple[float, LoadedTable]] = OrderedDict()
        self._generation = 0

    @property
    def generation(self) -> int:
        """Changes when a table is forgotten: what was loaded before may be of before the change."""
        with self._lock:
            return self._generation

    def get(self, identifier: TableIdentifier) -> LoadedTable | None:
        """The table, if it is not too old."""
        key = self._key(identifier)
        with self._lock:
            loaded_at, loaded = self._loaded.get(key, (0.0, None))
            if loaded is None or 0 <= self._interval <= self._clock() - loaded_at:
                self._loaded.pop(key, None)
                return None
            self._loaded.move_to_end(key)
            return loaded

    def put(self, identifier: TableIdentifier, loaded: LoadedTable, generation: int) -> None:
        """Keep a table that was loaded after `generation` was asked for."""
        with self._lock:
            if generation != self._generation:
                return
            self._loaded[self._key(identifier)] = self._clock(), loaded
            while len(self._loaded) > _MAX_TABLES:
                self._loaded.popitem(last=False)

    def forget(self, identifier: TableIdentifier) -> None:
        """Drop a table."""
        with self._lock:
            self._generation += 1
            self._loaded.pop(self._key(identifier), None)

    def forget_all(self) -> None:
        """Drop all tables."""
        with self._lock:
            self._generation += 1
            self._loaded.clear()

    def _key(self, identifier: TableIdentifier) -> TableIdentifier:
        if self._case_sensitive:
            return identifier
        return TableIdentifier(
            namespace=tuple(level.lower() for level in identifier.namespace),
            name=identifier.name.lower(),
        )
