"""Rewrites manifests: fewer manifests, each with the files of few partitions.

Specification, "Manifests". The number of new manifests is computed from the size of an entry in a
manifest, which is measured on some entries, so that a second run computes the same number and does
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow.compute as pc

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.manifest_changes import NewManifest, RewriteManifests
from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import manifests_to_build_on
from iceberg_pyspark.formats.manifest_writer import write_manifest
from iceberg_pyspark.spec.manifests import FileContent, ManifestContent, ManifestFile
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import (
    COMMIT_NUM_RETRIES,
    MANIFEST_COMPRESSION,
    MANIFEST_TARGET_SIZE,
)
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_snapshot import ROOT_MANIFESTS_VERSION
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable
from iceberg_pyspark.table.commits.new_data import partition_spec
from iceberg_pyspark.table.commits.partition_types import (
    ambiguous_types,
    common_partition_type,
    partition_type_of,
)
from iceberg_pyspark.table.maintenance.rewrites.clustered_entries import ClusteredEntries

_MEASURED_ENTRIES = 4096
_COMMITTING_PHASE = "new manifests committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenManifests:
    """The number of manifests that a rewrite replaced, and the number of new manifests."""

    rewritten_manifests_count: int = 0
    added_manifests_count: int = 0


class ManifestRewrite:
    """One rewrite of the manifests of one partition spec."""

    def __init__(
        self, table: MaintainedTable, *, spec_id: int | None, sort_by: Sequence[str]
    ) -> None:
        self._table = table
        self._spec_id = spec_id
        self._sort_by = sort_by

    def run(self, *, dry_run: bool = False) -> tuple[LoadedTable, RewrittenManifests]:
        """Rewrite manifests; return the committed table and the counts. `dry_run` only counts."""
        tries = 0
        while True:
            newest = self._table.newest()
            try:
                return self._run_once(newest, dry_run)
            except ConcurrentChangeError:
                # Every other commit replaces the root manifest that is rewritten here, so try
                # again.
                has_roots = newest.metadata.format_version >= ROOT_MANIFESTS_VERSION
                if not has_roots or tries >= COMMIT_NUM_RETRIES.of(newest.metadata.properties):
                    raise
            tries += 1

    def _run_once(
        self, newest: LoadedTable, dry_run: bool
    ) -> tuple[LoadedTable, RewrittenManifests]:
        with ExitStack() as batches_on_disk:
            replaced_manifests: list[ManifestFile] = []
            new: list[NewManifest] = []
            for group, manifests in self._groups(newest.metadata, batches_on_disk):
                replaced_manifests += group
                new += manifests
            result = RewrittenManifests(
                rewritten_manifests_count=len(replaced_manifests), added_manifests_count=len(new)
            )
            if not replaced_manifests or dry_run:
                return newest, result
            t = self._table
            t.progress(_COMMITTING_PHASE, 0, len(new))
            action = RewriteManifests(replaced_manifests=tuple(replaced_manifests), new=tuple(new))
            new_table = commit_action(t.catalog, newest, t.io, action, clock=t.clock)
            t.progress(_COMMITTING_PHASE, len(new), len(new))
            return new_table, result

    def _groups(
        self, metadata: TableMetadata, batches_on_disk: ExitStack
    ) -> Iterator[tuple[list[ManifestFile], list[NewManifest]]]:
        """Yield manifests to replace and their replacements; delete manifests come last."""
        spec = partition_spec(self._table.name, metadata, self._spec_id)
        sort_field_ids = self._sort_fields(spec)
        snapshot = metadata.current_snapshot
        present = [] if snapshot is None else manifests_to_build_on(self._table.io, snapshot)
        target = MANIFEST_TARGET_SIZE.of(metadata.properties)
        has_content_entries = metadata.format_version >= ROOT_MANIFESTS_VERSION
        for content in ManifestContent:
            group = [
                m
                for m in present
                if m.content is content
                and m.partition_spec_id == spec.spec_id
                and not (has_content_entries and self._has_files_of_positions(m))
            ]
            if not group or (len(group) == 1 and group[0].manifest_length <= target):
                continue
            for manifest in group:
                columns = metadata.current_schema.field_by_id
                type_ = partition_type_of(metadata, manifest, snapshot, columns)
            entries = batches_on_disk.enter_context(
                ClusteredEntries(
                    self._table.io,
                    group,
                    type_,
                    sort_field_ids,
                    self._table.progress,
                )
            )
            count = self._manifest_count(entries, group, spec, metadata)
            if len(group) == count and entries.is_clustered:
                continue
            ends = [len(entries) * (i + 1) // count for i in range(count)]
            yield (
                group,
                [
                    NewManifest(
                        key=("clustered", content, spec.spec_id, i),
                        content=content,
                        spec_id=spec.spec_id,
                        entries=entries.part(start, end),
                        is_existing=True,
                    )
                    for i, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
                ],
            )

    def _has_files_of_positions(self, manifest: ManifestFile) -> bool:
        """Return whether a manifest has position delete files, which have no content entries."""
        if manifest.content is ManifestContent.DATA or manifest.is_root:
            return False
        entries = read_entries(self._table.io, manifest, StructType(()))
        is_of_positions = pc.equal(entries["content"], int(FileContent.POSITION_DELETES))
        is_file = pc.not_equal(entries["file_format"], "puffin")
        return bool(pc.any(pc.and_(is_of_positions, is_file)).as_py())

    def _sort_fields(self, spec: PartitionSpec) -> list[int]:
        ids = {f.name: f.field_id for f in spec.fields}
        unknown = [name for name in self._sort_by if name not in ids]
        if unknown:
            raise InvalidRequestError(
                f"table {self._table.name}: manifests cannot be sorted by "
                f"{', '.join(unknown)}; the partition fields of spec {spec.spec_id} are "
                f"{', '.join(ids) or 'none'}"
            )
        return [ids[name] for name in self._sort_by]

    def _manifest_count(
        self,
        entries: ClusteredEntries,
        group: Sequence[ManifestFile],
        spec: PartitionSpec,
        metadata: TableMetadata,
    ) -> int:
        """Return the number of manifests that the entries fill."""
        sample_count = min(len(entries), _MEASURED_ENTRIES)
        if not sample_count:
            return 0
        type_ = common_partition_type(self._table.io, group, metadata, spec.spec_id)
        if type_ is None:
            raise ambiguous_types(self._table.name, spec.spec_id)

        def size_of(count: int) -> int:
            return write_manifest(
                MemoryFileIO(),
                "mem://measured",
                entries.part(0, count),
                spec=spec,
                schema=metadata.current_schema,
                partition_type=type_,
                format_version=metadata.format_version,
                content=group[0].content,
                snapshot_id=0,
                codec=MANIFEST_COMPRESSION.of(metadata.properties),
            ).manifest_length

        per_entry = (size_of(sample_count) - size_of(0)) / sample_count
        target = MANIFEST_TARGET_SIZE.of(metadata.properties)
        return min(math.ceil(len(entries) * per_entry / target), len(entries))
