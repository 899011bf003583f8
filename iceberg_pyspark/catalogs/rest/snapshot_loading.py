"""Loads tables with only the snapshots of branches and tags, and the other snapshots when needed.

Open API specification of the REST catalog, `loadTable`, the query parameter `snapshots`;
`snapshot-loading-mode` is Java's property.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from iceberg_pyspark.catalogs.catalog import LoadedTable, check_same_table
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.snapshots_of_refs import SnapshotsOfRefs

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
