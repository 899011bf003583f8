"""A table in the server's answer, and the cache of such answers by ETag.

Open API specification of the REST catalog, `LoadTableResult`. `server_properties.py` reads the
storage properties.

Loads tables with only the snapshots of branches and tags, and the other snapshots when needed.

Open API specification of the REST catalog, `loadTable`, the query parameter `snapshots`;
`snapshot-loading-mode` is Java's property.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier, check_same_table
from iceberg_pyspark.catalogs.rest.answers import Answer, config_of
from iceberg_pyspark.catalogs.rest.connection import table_tokens
from iceberg_pyspark.catalogs.rest.scan_planning import PLANNING_MODE
from iceberg_pyspark.catalogs.rest.server_properties import table_storage_properties
from iceberg_pyspark.catalogs.rest.signing import SigningConfig, signing_config
from iceberg_pyspark.catalogs.table_folders import WAREHOUSE
from iceberg_pyspark.errors import InvalidRequestError, LocationRefusedError
from iceberg_pyspark.spec.json_fields import JsonObject, compact_json
from iceberg_pyspark.spec.snapshots import Snapshot, SnapshotsOfRefs
from iceberg_pyspark.spec.table_metadata import TableMetadata, metadata_from_json
from iceberg_pyspark.storage.credentials.credential_renewal import end_of
from iceberg_pyspark.storage.files.places import is_in_store, store_of
from iceberg_pyspark.storage.lru_map import LruMap
from iceberg_pyspark.storage.restricted_io import ReadRule, read_rule
from iceberg_pyspark.storage.store_properties import ALLOW_OUTSIDE_LOCATIONS

_MODE = "snapshot-loading-mode"
REFS_QUERY = {"snapshots": "refs"}
ALL_QUERY = {"snapshots": "all"}


def loads_refs(properties: Mapping[str, str]) -> bool:
    """Return whether tables are loaded with only the snapshots of branches and tags."""
    mode = properties.get(_MODE, "all").lower()
    if mode not in ("all", "refs"):
        raise InvalidRequestError(f"{_MODE} = {properties[_MODE]}: must be ALL or REFS")
    return mode == "refs"


def with_snapshots_of_refs(table: LoadedTable, load: Callable[[], LoadedTable]) -> LoadedTable:
    """Return a table that loads its other snapshots on first use, by calling `load`.

    Snapshots of later commits are left out, so the snapshots always match this metadata.
    """
    metadata = table.metadata
    ref_snapshots = metadata.snapshots

    def every() -> tuple[Snapshot, ...]:
        later = check_same_table(table, load()).metadata.snapshots
        own = {s.snapshot_id: s for s in later if not _is_newer(s)}
        # snapshots that have expired since, but that this metadata still refers to
        missing = [s for s in ref_snapshots if s.snapshot_id not in own]
        return (*missing, *own.values())

    def _is_newer(snapshot: Snapshot) -> bool:
        if snapshot.sequence_number or metadata.last_sequence_number:
            return snapshot.sequence_number > metadata.last_sequence_number
        return snapshot.timestamp_ms > metadata.last_updated_ms

    return replace(
        table, metadata=replace(metadata, snapshots=SnapshotsOfRefs(ref_snapshots, every))
    )


_FRESH_CREDENTIALS_S = 300
"""Cached tables whose credentials expire sooner are loaded again."""


@dataclass(frozen=True, slots=True)
class AnsweredTable:
    """A table, the tokens that the server sent for its requests, and the mode of scan planning."""

    table: LoadedTable
    tokens: Mapping[str, str] = field(repr=False)
    planning: str | None = None
    signing: SigningConfig = field(default_factory=SigningConfig)


def answered_table(
    answer: Answer,
    identifier: TableIdentifier,
    *,
    catalog: str,
    uri: str,
    properties: Mapping[str, str],
    config: Mapping[str, str] | None = None,
    is_staged: bool = False,
) -> AnsweredTable:
    """Return the table in an answer.

    `config` holds the storage properties of the previous load, which the answer to a commit lacks.
    Only a staged table has no metadata file. Raise `InvalidMetadataError` naming the request and
    JSON path.
    """

    def parse(content: JsonObject) -> AnsweredTable:
        location = "" if is_staged else metadata_location_of(content, uri, identifier)
        metadata = metadata_from_json(content.value("metadata"), metadata_location=location)
        storage = config
        if storage is None:
            storage = table_storage_properties(
                content, catalog=catalog, uri=uri, properties=properties
            )
        table = LoadedTable(
            identifier=identifier,
            metadata=metadata,
            metadata_location=location,
            config=storage,
            store_location=_store_location(identifier, location, metadata, storage, properties),
        )
        mode = config_of(content, "config").get(PLANNING_MODE)
        return AnsweredTable(table, table_tokens(content), mode, signing_config(content))

    return answer.read(parse)


def metadata_location_of(content: JsonObject, uri: str, identifier: TableIdentifier) -> str:
    """Return the location of the metadata, or an address of this server if it names none.

    The address differs for different metadata, as locations of files do, and belongs to no folder.
    """
    location = content.optional_string("metadata-location")
    if location:
        return location
    digest = hashlib.sha256(compact_json(content.value("metadata")).encode()).hexdigest()
    return f"{uri.rstrip('/')}/{quote(str(identifier), safe='')}/{digest}.metadata.json"


def _store_location(
    identifier: TableIdentifier,
    metadata_location: str,
    metadata: TableMetadata,
    config: Mapping[str, str],
    properties: Mapping[str, str],
) -> str | None:
    """Return the files' location if the server names the metadata by an address of its own.

    Nessie does so. Then the metadata location does not tell in which store the table is. The
    location in the metadata is accepted if the catalog's warehouse is in the same store; otherwise
    raise `LocationRefusedError`.
    """
    if not metadata_location.startswith(("http://", "https://")):
        return None
    warehouse = properties.get(WAREHOUSE, "")
    if read_rule(config) is not ReadRule.ANY_STORE and not (
        "://" in warehouse and is_in_store(metadata.location, warehouse)
    ):
        raise LocationRefusedError(
            f"table {identifier}: its metadata is given by {store_of(metadata_location)}, so that "
            f"nothing but the metadata says that its files are in {store_of(metadata.location)}; "
            f"the catalog's property {WAREHOUSE} ({warehouse or 'not set'}) is in another store. "
            f"Set it to a location in that store, or, where you trust the table, "
            f"{ALLOW_OUTSIDE_LOCATIONS} to true"
        )
    return metadata.location


@dataclass(frozen=True, slots=True)
class _Entry:
    etag: str | None
    table: LoadedTable
    cached_at_s: float


class TableCache:
    """A cache of tables and the ETags of their answers; thread-safe; `clock` returns seconds."""

    def __init__(
        self,
        max_entries: int,
        expires_after_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._expires_after_s = expires_after_s
        self._clock = clock
        self._entries: LruMap[TableIdentifier, _Entry] = LruMap(max_entries)

    def get(self, identifier: TableIdentifier) -> tuple[str | None, LoadedTable] | None:
        """Return the ETag and the table; None if missing, old, or its credentials end soon."""
        entry = self._entries.get(identifier)
        if entry is None or self._clock() - entry.cached_at_s > self._expires_after_s:
            self._entries.pop(identifier)
            return None
        end_s = end_of(entry.table.config)
        if end_s is not None and end_s <= time.time() + _FRESH_CREDENTIALS_S:
            return None
        return entry.etag, entry.table

    def put(self, table: LoadedTable, etag: str | None) -> None:
        """Keep a table; without an ETag, only its storage properties can be reused."""
        self._entries.put(table.identifier, _Entry(etag, table, self._clock()))

    def forget(self, identifier: TableIdentifier) -> None:
        """Remove a table from the cache, so the next load asks the server."""
        self._entries.pop(identifier)
