"""Creates a health report from metadata, manifests and the plans of maintenance procedures.

Each procedure has a gain and the command to run it. Manifest rewrites and snapshot expiry return
their own plans. Rewrites of data files and deletes are counted by the rules of their plans, without
an object for each file.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, newest_version
from iceberg_pyspark.catalogs.catalog_properties import (
    configured_properties,
    default_name,
    shown_properties,
)
from iceberg_pyspark.errors import (
    IcebergError,
    InvalidRequestError,
    StorageError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.expressions.condition_text import sql_string
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestFile
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.statistics import PartitionStatisticsFile, StatisticsFile
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import DELETE_GRANULARITY, MANIFEST_TARGET_SIZE
from iceberg_pyspark.sql_text.names import is_path, readable_name
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.health.examination import DeleteRewriteCount, Examination
from iceberg_pyspark.table.health.figures import (
    HealthFigures,
    MetadataFiles,
    ProcedureGain,
    Snapshots,
    SnapshotTotals,
)
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


_SHOWN_SNAPSHOTS = 100


def examine(
    catalog: Catalog,
    table: LoadedTable,
    io: FileIO,
    maintenance: TableMaintenance,
    *,
    now_ms: int,
    top: int,
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
    gains = _Gains(
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


_FLAGS = ("uri", "warehouse")


@dataclass(frozen=True, kw_only=True)
class _Gains:
    """The procedures of one table; orphan files are only searched for if `list_storage`."""

    catalog: Catalog
    table: LoadedTable
    maintenance: TableMaintenance
    examination: Examination
    list_storage: bool

    def all(self) -> Iterator[ProcedureGain]:
        """Yield the gain of each procedure, in the order in which they are best run."""
        yield self._of("rewrite_equality_deletes", self._equality_deletes)
        yield self._of("rewrite_position_delete_files", self._position_deletes)
        yield self._of("rewrite_data_files", self._data_files)
        yield self._of("rewrite_manifests", self._manifests)
        yield self._of("expire_snapshots", self._snapshots)
        yield self._of("remove_orphan_files", self._orphans)

    def _of(self, procedure: str, ask: Callable[[], _Gain]) -> ProcedureGain:
        try:
            gain = ask()
        except IcebergError as e:
            gain = _Gain(effect="not known", problem=str(e))
        return ProcedureGain(
            procedure=procedure,
            is_worthwhile=gain.is_worthwhile,
            what=gain.effect,
            files_before=gain.before,
            files_after=gain.after,
            is_upper_bound=gain.is_upper_bound,
            bytes=gain.bytes,
            problem=gain.problem,
            call=sql_call(self.catalog, self.table, procedure),
            command=shell_command(self.catalog, self.table, procedure),
        )

    def _data_files(self) -> _Gain:
        if self.table.plan_scan is not None:
            raise UnsupportedFeatureError(
                "its catalog's server plans its scans; rewrite it with an engine of the server's"
            )
        count = self.examination.rewrite
        groups = "1 group" if count.groups == 1 else f"{count.groups:,} groups"
        return _Gain(
            effect=f"{groups} of files, written together" if count.files else "nothing to do",
            before=count.files,
            after=count.new_files,
            bytes=count.bytes,
            is_worthwhile=count.files > 0,
        )

    def _position_deletes(self) -> _Gain:
        metadata = self.table.metadata
        per_file = DELETE_GRANULARITY.of(metadata.properties) == "file"
        count = self.examination.delete_files.position_rewrite(per_file=per_file)
        becomes = "deletion vectors" if metadata.format_version >= 3 else "fewer delete files"
        return _deletes(count, f"position deletes become {becomes}")

    def _equality_deletes(self) -> _Gain:
        count = self.examination.delete_files.equality_rewrite()
        return _deletes(count, "equality deletes become deletes by position")

    def _manifests(self) -> _Gain:
        plan = self.maintenance.rewrite_manifests(dry_run=True)
        before, after = plan.rewritten_manifests_count, plan.added_manifests_count
        return _Gain(
            effect="manifests of few partitions each" if before else "nothing to do",
            before=before,
            after=after,
            is_worthwhile=before > 0,
        )

    def _snapshots(self) -> _Gain:
        plan = self.maintenance.expire_snapshots(dry_run=True)
        files = (
            plan.deleted_data_files_count
            + plan.deleted_position_delete_files_count
            + plan.deleted_equality_delete_files_count
            + plan.deleted_manifest_files_count
            + plan.deleted_manifest_lists_count
            + plan.deleted_statistics_files_count
        )
        snapshots = plan.expired_snapshots_count
        return _Gain(
            effect=f"snapshots go: {snapshots:,}; and the files that only they have"
            if snapshots
            else "nothing to do",
            before=files,
            after=0,
            is_worthwhile=snapshots > 0 or bool(plan.expired_refs),
        )

    def _orphans(self) -> _Gain:
        if not self.list_storage:
            return _Gain(effect="only a listing of the storage tells")
        count = len(self.maintenance.remove_orphan_files(dry_run=True).orphan_file_locations)
        return _Gain(
            effect="files that nothing needs go" if count else "nothing to do",
            before=count,
            after=0,
            is_worthwhile=count > 0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gain:
    effect: str
    before: int | None = None
    after: int | None = None
    bytes: int | None = None
    is_worthwhile: bool = False
    is_upper_bound: bool = False
    problem: str | None = None


def _deletes(count: DeleteRewriteCount, effect: str) -> _Gain:
    return _Gain(
        effect=effect if count.files else "nothing to do",
        before=count.files,
        after=count.added_at_most,
        bytes=count.bytes,
        is_worthwhile=count.files > 0,
        is_upper_bound=count.files > 0,
    )


def sql_call(catalog: Catalog, table: LoadedTable, procedure: str) -> str | None:
    """Return the procedure call in Spark SQL, or None for a table at a path, without catalog."""
    identifier = table.identifier
    if not identifier.namespace:
        return None
    name = readable_name(identifier.levels)
    return (
        f"CALL {readable_name((catalog.name, 'system'))}.{procedure}(table => {sql_string(name)})"
    )


def shell_command(catalog: Catalog, table: LoadedTable, procedure: str) -> str:
    """Return the shell command of the procedure, with the catalog's properties except secrets."""
    identifier = table.identifier
    command = ["maintain", procedure.replace("_", "-")]
    if not identifier.namespace and is_path(identifier.name):
        return shlex.join(["iceberg-py", *command, identifier.name])
    name = readable_name(identifier.levels)
    return shlex.join(["iceberg-py", *_options(catalog), *command, name])


def _options(catalog: Catalog) -> Iterator[str]:
    """Yield the options that identify the catalog, except those that the configuration sets."""
    if catalog.name != default_name(os.environ):
        yield f"--catalog={catalog.name}"
    properties_of_catalog = configured_properties(catalog.name, os.environ)
    properties = shown_properties(catalog.properties)
    for key, value in catalog.properties.items():
        if properties_of_catalog.get(key) == value or properties[key] != value:
            continue
        yield f"--{key}={value}" if key in _FLAGS else f"--property={key}={value}"
