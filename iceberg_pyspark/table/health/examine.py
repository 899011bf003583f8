"""Creates a health report from metadata, manifests and the plans of maintenance procedures.

Defines a health report and its output formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, newest_version
from iceberg_pyspark.errors import InvalidRequestError, StorageError
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestFile
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.statistics import PartitionStatisticsFile, StatisticsFile
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import MANIFEST_TARGET_SIZE
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.health.examination import Examination
from iceberg_pyspark.table.health.figures import (
    HealthFigures,
    MetadataFiles,
    Snapshots,
    SnapshotTotals,
)
from iceberg_pyspark.table.health.gains import Gains
from iceberg_pyspark.table.health.report_text import html_of, text_of
from iceberg_pyspark.table.maintenance.rewrites.file_groups import RewriteOptions
from iceberg_pyspark.table.maintenance.table_maintenance import TableMaintenance


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TableHealth(HealthFigures):
    """The health of a table; it prints as text, and as tables in a notebook."""

    def to_dict(self) -> dict[str, Any]:
        """Return all figures by field name, in JSON types."""
        return asdict(self)

    def __repr__(self) -> str:
        return text_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)


DEFAULT_TOP = 20
_SHOWN_SNAPSHOTS = 100


def examine(
    catalog: Catalog,
    table: LoadedTable,
    io: FileIO,
    maintenance: TableMaintenance,
    *,
    now_ms: int,
    top: int = DEFAULT_TOP,
    list_storage: bool = False,
) -> TableHealth:
    """Return the report of the table's newest version; no data files are read."""
    if top < 1:
        raise InvalidRequestError(f"top must be at least 1 partition, got {top}")
    table = newest_version(catalog, table)
    metadata = table.metadata
    snapshot = metadata.current_snapshot
    manifests = [] if snapshot is None else read_snapshot_manifests(io, snapshot)
    options = RewriteOptions.of({}, metadata.properties)
    examination = Examination(io, metadata, manifests, options, snapshot)
    gains = Gains(
        catalog=catalog,
        table=table,
        maintenance=maintenance,
        examination=examination,
        list_storage=list_storage,
    )
    return TableHealth(
        table=str(table.identifier),
        location=metadata.location,
        format_version=metadata.format_version,
        snapshot_id=metadata.current_snapshot_id,
        examined_at_ms=now_ms,
        file_sizes=examination.file_sizes(),
        deletes=examination.deletes(),
        partitions=examination.partitions(top),
        snapshots=_snapshots(metadata),
        metadata=_metadata_files(io, table, manifests),
        procedures=tuple(gains.all()),
    )


def _snapshots(metadata: TableMetadata) -> Snapshots:
    times = [s.timestamp_ms for s in metadata.snapshots]
    types = [ref.type for ref in metadata.refs.values()]
    return Snapshots(
        count=len(times),
        oldest_ms=min(times, default=None),
        newest_ms=max(times, default=None),
        branches=types.count("branch"),
        tags=types.count("tag"),
        log_entries=len(metadata.snapshot_log),
        history=tuple(map(_totals, _line_of(metadata))),
    )


def _line_of(metadata: TableMetadata) -> list[Snapshot]:
    """Return the current snapshot and its ancestors, oldest first, or an even selection of them."""
    line: list[Snapshot] = []
    visited_ids: set[int] = set()
    snapshot = metadata.current_snapshot
    while snapshot is not None and snapshot.snapshot_id not in visited_ids:
        line.append(snapshot)
        visited_ids.add(snapshot.snapshot_id)
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else metadata.snapshot_by_id.get(parent)
    line.reverse()
    places = np.linspace(0, len(line) - 1, min(len(line), _SHOWN_SNAPSHOTS)).round().astype(int)
    return [line[i] for i in dict.fromkeys(places.tolist())]


def _totals(snapshot: Snapshot) -> SnapshotTotals:
    return SnapshotTotals(
        snapshot_id=snapshot.snapshot_id,
        committed_at_ms=snapshot.timestamp_ms,
        records=snapshot.number("total-records"),
        data_files=snapshot.number("total-data-files"),
        delete_files=snapshot.number("total-delete-files"),
        bytes=snapshot.number("total-files-size"),
    )


def _metadata_files(
    io: FileIO, table: LoadedTable, manifests: Sequence[ManifestFile]
) -> MetadataFiles:
    metadata = table.metadata
    lengths = np.array([m.manifest_length for m in manifests], np.int64)
    snapshot = metadata.current_snapshot
    manifest_list = None if snapshot is None else snapshot.root_manifest or snapshot.manifest_list
    statistics: list[StatisticsFile | PartitionStatisticsFile] = [
        *metadata.statistics,
        *metadata.partition_statistics,
    ]
    unreferenced_files = [s for s in statistics if s.snapshot_id not in metadata.snapshot_by_id]
    return MetadataFiles(
        metadata_bytes=_size(io, table.metadata_location),
        metadata_log_entries=len(metadata.metadata_log),
        schemas=len(metadata.schemas),
        partition_specs=len(metadata.partition_specs),
        manifest_list_bytes=None if manifest_list is None else _size(io, manifest_list),
        manifests=len(lengths),
        manifest_bytes=int(lengths.sum()),
        median_manifest_bytes=int(np.median(lengths)) if len(lengths) else None,
        greatest_manifest_bytes=int(lengths.max()) if len(lengths) else None,
        target_manifest_bytes=MANIFEST_TARGET_SIZE.of(metadata.properties),
        delete_manifests=sum(m.content is ManifestContent.DELETES for m in manifests),
        statistics_files=len(statistics),
        statistics_bytes=sum(s.file_size_in_bytes for s in statistics),
        unreferenced_statistics_files=len(unreferenced_files),
        unreferenced_statistics_bytes=sum(s.file_size_in_bytes for s in unreferenced_files),
    )


def _size(io: FileIO, location: str) -> int | None:
    """Return the size of a file, or None if the storage has no such file (a server's metadata)."""
    try:
        return io.size(location)
    except StorageError:
        return None
