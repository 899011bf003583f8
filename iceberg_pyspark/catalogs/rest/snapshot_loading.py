"""Loads tables with the snapshots of branches and tags only, and the other snapshots when needed.

Open API specification of the REST catalog, `loadTable`, the query parameter `snapshots`; `snapshot-
loading-mode` is Java's property.
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
    """Whether tables are loaded with the snapshots of branches and tags alone."""
    mode = properties.get(_MODE, "all").lower()
    if mode not in ("all", "refs"):
        raise InvalidRequestError(f"{_MODE} = {properties[_MODE]}: must be ALL or REFS")
    return mode == "refs"


def with_snapshots_of_refs(table: LoadedTable, load: Callable[[], LoadedTable]) -> LoadedTable:
    """A table that was loaded so; `load` loads it with all its snapshots.

    They are those of this metadata: commits since then leave it as it is.
    """
    metadata = table.metadata
    ref_snapshots = metadata.snapshots

    def every() -> tuple[Snapshot, ...]:
        later = check_same_table(table, load()).metadata.snapshots
        own = {s.snapshot_id: s for s in later if not _is_newer(s)}
        # expired since, and still named by this metadata
        missing = [s for s in ref_snapshots if s.snapshot_id not in own]
        return (*missing, *own.values())

    def _is_newer(snapshot: Snapshot) -> bool:
        if snapshot.sequence_number or metadata.last_sequence_number:
            return snapshot.sequence_number > metadata.last_sequence_number
        return snapshot.timestamp_ms > metadata.last_updated_ms

    return replace(
        table, metadata=replace(metadata, snapshots=SnapshotsOfRefs(ref_snapshots, every))
    )
