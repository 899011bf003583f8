"""A table as the server's answer describes it, and the cache of such answers by their ETag.

Open API specification of the REST catalog, `LoadTableResult`. Its storage properties are
`credentials.py`.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.rest.answers import Answer
from iceberg_pyspark.catalogs.rest.credentials import expires_at_ms, table_storage_properties
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.spec.table_metadata import metadata_from_json

_FRESH_CREDENTIALS_MS = 300_000
"""Credentials that expire sooner are fetched anew rather than taken out of the cache."""


def loaded_table(
    answer: Answer,
    identifier: TableIdentifier,
    *,
    catalog: str,
    uri: str,
    properties: Mapping[str, str],
    config: Mapping[str, str] | None = None,
    is_staged: bool = False,
) -> LoadedTable:
    """The table in an answer; raises `InvalidMetadataError` naming the request and JSON path.

    `config` is what the answer to a commit lacks: the storage properties from the load before it.
    Only a table that is staged has no metadata file; without its place nobody knows which folder is
    the table's own.
    """

    def parse(content: JsonObject) -> LoadedTable:
        return LoadedTable(
            identifier=identifier,
            metadata=metadata_from_json(content.value("metadata")),
            metadata_location="" if is_staged else content.string("metadata-location"),
            config=config
            if config is not None
            else table_storage_properties(content, catalog=catalog, uri=uri, properties=properties),
        )

    return answer.read(parse)


@dataclass(frozen=True, slots=True)
class _Entry:
    etag: str | None
    table: LoadedTable
    cached_at_s: float


class TableCache:
    """Tables by name with the ETag of their answer; `clock` gives seconds, threads share it."""

    def __init__(
        self,
        max_entries: int,
        expires_after_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_entries = max_entries
        self._expires_after_s = expires_after_s
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[TableIdentifier, _Entry] = OrderedDict()

    def get(self, identifier: TableIdentifier) -> tuple[str | None, LoadedTable] | None:
        """The table and its ETag, if its credentials still last a while."""
        with self._lock:
            entry = self._entries.get(identifier)
            if entry is None:
                return None
            if self._clock() - entry.cached_at_s > self._expires_after_s:
                del self._entries[identifier]
                return None
        expires_ms = expires_at_ms(entry.table.config)
        if expires_ms is not None and expires_ms < time.time() * 1000 + _FRESH_CREDENTIALS_MS:
            return None
        return entry.etag, entry.table

    def put(self, table: LoadedTable, etag: str | None) -> None:
        """Keep a table; without an ETag only its storage properties are of use."""
        with self._lock:
            self._entries.pop(table.identifier, None)
            self._entries[table.identifier] = _Entry(etag, table, self._clock())
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def forget(self, identifier: TableIdentifier) -> None:
        """Ask anew for a table the next time."""
        with self._lock:
            self._entries.pop(identifier, None)
