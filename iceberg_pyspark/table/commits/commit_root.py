"""Writes a root manifest and its new leaves, which version 4 has in place of a manifest list.

Proposal "Single-file commits". `changes/root_entries.py` plans the entries. Written leaves are used
again by the next attempt; a root manifest and the Puffin files of its manifest deletion vectors
belong to one attempt. The files that a snapshot removes from leaves without rewriting the leaves
are the positions in a manifest's new deletion vector that are not in the vector that it replaces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from iceberg_pyspark.changes.manifest_changes import SnapshotBase, SnapshotPlan, as_deleted_entry
from iceberg_pyspark.changes.root_entries import (
    MAX_INLINE_VECTOR_BYTES,
    BaseRoot,
    MaskedLeaf,
    NewLeaf,
    RootLimits,
    finished_root,
    plan_root,
)
from iceberg_pyspark.formats.locations import (
    LocationProvider,
    leaf_manifest_file_name,
    location_provider,
    manifest_vectors_file_name,
)
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests, with_known_counts
from iceberg_pyspark.formats.manifest_reader import entries_of
from iceberg_pyspark.formats.puffin.deletion_vectors import (
    decode_deletion_vector,
    encode_deletion_vector,
    write_deletion_vectors,
)
from iceberg_pyspark.formats.roots.content_writer import write_content_entries
from iceberg_pyspark.formats.roots.leaf_columns import columns_of_partitions
from iceberg_pyspark.formats.roots.leaf_manifests import write_leaf_manifest
from iceberg_pyspark.formats.roots.root_manifests import read_base_root
from iceberg_pyspark.formats.roots.written_roots import WrittenRoot, remember_root, written_root
from iceberg_pyspark.spec.content_entries import ContentStatus, ManifestVectorEntry
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestEntry, ManifestFile
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import (
    MANIFEST_MERGE_ENABLED,
    MANIFEST_MIN_COUNT_TO_MERGE,
    MANIFEST_TARGET_SIZE,
    ROOT_MAX_BYTES,
    ROOT_MAX_DATA_ENTRIES,
    ROOT_MAX_DELETE_ENTRIES,
)
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.partition_types import (
    ambiguous_types,
    common_partition_type,
    partition_type_of,
)


@dataclass(frozen=True, kw_only=True)
class RootResult:
    """The leaves that a root refers to, and the snapshot's `added-rows`."""

    leaves: tuple[ManifestFile, ...]
    added_rows: int


class RootWriter:
    """A writer of the root manifests of one commit's attempts.

    `leaves` and `vector_files` are the locations of all leaves and Puffin files whose writing has
    begun.
    """

    def __init__(self, io: FileIO, commit_uuid: str) -> None:
        self._io = io
        self._commit_uuid = commit_uuid
        self._written_leaves: dict[tuple[object, ...], ManifestFile] = {}
        self._count = 0
        self.leaves: set[str] = set()
        self.vector_files: set[str] = set()

    def forget(self) -> None:
        """Do not use the written leaves again: they have the id of another snapshot."""
        self._written_leaves.clear()

    def write(
        self, location: str, plan: SnapshotPlan, base: SnapshotBase, snapshot_id: int
    ) -> RootResult:
        """Write the root manifest of the planned snapshot, and the leaves it needs."""
        metadata = base.metadata
        types = _PartitionTypes(self._io, base)
        root_plan = plan_root(
            plan,
            base,
            _base_root(self._io, base.parent),
            _limits(metadata, merges=plan.merge),
            is_own=types.fits,
            dead_positions=_dead_positions,
            may_merge=lambda group: types.common(group[0].partition_spec_id) is not None,
        )
        provider = location_provider(metadata.location, metadata.properties)
        leaves = {
            new.manifest.key: self._leaf(new, metadata, types, provider, snapshot_id)
            for new in root_plan.new_leaves
        }
        sequence_number = metadata.next_sequence_number

        def vector_entry(masked_leaf: MaskedLeaf) -> ManifestVectorEntry:
            return self._vector_entry(masked_leaf, provider, snapshot_id, sequence_number)

        finished_entries = finished_root(
            root_plan,
            leaves,
            snapshot_id=snapshot_id,
            sequence_number=sequence_number,
            first_row_id=metadata.next_row_id,
            vector_entry=vector_entry,
            with_counts_and_bounds=lambda m: self._with_counts_and_bounds(m, metadata),
        )
        parent = base.parent
        root_file = write_content_entries(
            self._io,
            location,
            finished_entries.entries,
            content="root",
            schema=metadata.current_schema,
            partition_types={
                spec_id: types.of(spec_id)
                for spec_id in {
                    e.data_file.spec_id
                    for e in finished_entries.entries
                    if isinstance(e, ManifestEntry)
                }
            },
            table_location=metadata.location,
            metadata={
                "snapshot-id": str(snapshot_id),
                "parent-snapshot-id": "null" if parent is None else str(parent.snapshot_id),
                "sequence-number": str(sequence_number),
                "schema-id": str(metadata.current_schema_id),
            },
        )
        root = WrittenRoot(entries=finished_entries.entries, length=root_file.length)
        remember_root(self._io, location, root)
        unchanged_manifests = [m for m, _ in root_plan.unchanged_leaves] + [
            m.leaf for m in root_plan.masked_leaves
        ]
        return RootResult(
            leaves=(*unchanged_manifests, *leaves.values()), added_rows=finished_entries.added_rows
        )

    def _with_counts_and_bounds(self, leaf: ManifestFile, metadata: TableMetadata) -> ManifestFile:
        """Return a leaf with the counts and column bounds that older manifest lists lack."""
        leaf = with_known_counts(self._io, leaf)
        if leaf.columns or not leaf.partitions:
            return leaf
        spec = metadata.spec_by_id[leaf.partition_spec_id]
        return replace(leaf, columns=columns_of_partitions(spec, leaf.partitions))

    def _leaf(
        self,
        new: NewLeaf,
        metadata: TableMetadata,
        types: _PartitionTypes,
        provider: LocationProvider,
        snapshot_id: int,
    ) -> ManifestFile:
        manifest = self._written_leaves.get(new.manifest.key)
        if manifest is not None:
            return manifest
        location = provider.new_metadata_location(
            leaf_manifest_file_name(self._commit_uuid, self._count)
        )
        self._count += 1
        self.leaves.add(location)
        spec_id = new.manifest.spec_id
        manifest = write_leaf_manifest(
            self._io,
            location,
            new.manifest.entries,
            spec=metadata.spec_by_id[spec_id],
            schema=metadata.current_schema,
            partition_type=types.of(spec_id),
            table_location=metadata.location,
            content=new.manifest.content,
            snapshot_id=snapshot_id,
        )
        self._written_leaves[new.manifest.key] = manifest
        return manifest

    def _vector_entry(
        self,
        masked_leaf: MaskedLeaf,
        provider: LocationProvider,
        snapshot_id: int,
        sequence_number: int,
    ) -> ManifestVectorEntry:
        leaf = masked_leaf.leaf
        entry = ManifestVectorEntry(
            status=ContentStatus.ADDED,
            snapshot_id=snapshot_id,
            sequence_number=sequence_number,
            spec_id=leaf.partition_spec_id,
            leaf=leaf.manifest_path,
            cardinality=len(masked_leaf.dead),
            inline=encode_deletion_vector(masked_leaf.dead),
        )
        if len(entry.inline or b"") <= MAX_INLINE_VECTOR_BYTES:
            return entry
        location = provider.new_metadata_location(
            manifest_vectors_file_name(self._commit_uuid, self._count)
        )
        self._count += 1
        self.vector_files.add(location)
        blobs = write_deletion_vectors(self._io, location, {leaf.manifest_path: masked_leaf.dead})
        blob = blobs[leaf.manifest_path]
        return ManifestVectorEntry(
            status=entry.status,
            snapshot_id=snapshot_id,
            sequence_number=sequence_number,
            spec_id=entry.spec_id,
            leaf=entry.leaf,
            cardinality=blob.cardinality,
            location=location,
            offset=blob.content_offset,
            size_in_bytes=blob.content_size_in_bytes,
            file_size_in_bytes=blob.file_size_in_bytes,
        )


class _PartitionTypes:
    """The partition types of a table's specs, and the specs whose files fit into one root.

    In tables that were created in version 1, a partition field's id is its position in the spec, so
    two specs may use one id for values of different types.
    """

    def __init__(self, io: FileIO, base: SnapshotBase) -> None:
        self._io = io
        self._base = base
        self._common: dict[int, StructType | None] = {}
        self._fitting = self._fitting_specs()

    def fits(self, spec_id: int) -> bool:
        """Return whether the root itself may hold files of the spec."""
        return spec_id in self._fitting

    def common(self, spec_id: int) -> StructType | None:
        """Return the partition type of the spec, or None if manifests disagree about it."""
        if spec_id not in self._common:
            manifests: Sequence[ManifestFile] = [
                m for m in self._base.manifests if m.partition_spec_id == spec_id
            ]
            self._common[spec_id] = common_partition_type(
                self._io, manifests, self._base.metadata, spec_id
            )
        return self._common[spec_id]

    def of(self, spec_id: int) -> StructType:
        """Return the partition type of the spec; raise `InvalidRequestError` if it is ambiguous."""
        type_ = self.common(spec_id)
        if type_ is None:
            raise ambiguous_types(self._base.metadata.location, spec_id)
        return type_

    def _fitting_specs(self) -> Collection[int]:
        metadata = self._base.metadata
        types: dict[int, object] = {}
        fitting: set[int] = set()
        newest_first = sorted(metadata.spec_by_id, reverse=True)
        for spec_id in (metadata.default_spec_id, *newest_first):
            type_ = self.common(spec_id)
            fields: Mapping[int, object] = (
                {} if type_ is None else {f.field_id: f.type for f in type_.fields}
            )
            if type_ is None or any(types.get(i, t) != t for i, t in fields.items()):
                continue
            types |= fields
            fitting.add(spec_id)
        return fitting


def _base_root(io: FileIO, parent: Snapshot | None) -> BaseRoot:
    if parent is None or parent.root_manifest is None:
        return BaseRoot()
    own_root = written_root(io, parent.root_manifest)
    if own_root is not None:
        return BaseRoot(
            location=parent.root_manifest,
            length=own_root.length,
            vectors=own_root.vectors(),
            targets=own_root.targets(),
        )
    root = read_base_root(io, parent)
    return BaseRoot(
        location=parent.root_manifest,
        length=root.length,
        vectors=root.live,
        targets=root.targets,
    )


def _limits(metadata: TableMetadata, *, merges: bool) -> RootLimits:
    properties = metadata.properties
    return RootLimits(
        max_data_entries=ROOT_MAX_DATA_ENTRIES.of(properties),
        max_delete_entries=ROOT_MAX_DELETE_ENTRIES.of(properties),
        max_bytes=ROOT_MAX_BYTES.of(properties),
        target_size=MANIFEST_TARGET_SIZE.of(properties),
        min_count_to_merge=MANIFEST_MIN_COUNT_TO_MERGE.of(properties),
        merges=merges and MANIFEST_MERGE_ENABLED.of(properties),
    )


def _dead_positions(leaf: ManifestFile) -> Set[int]:
    if leaf.dead_positions is None:
        return frozenset()
    return frozenset(decode_deletion_vector(leaf.dead_positions, leaf.manifest_path))


def removed_from_leaves(
    io: FileIO, metadata: TableMetadata, snapshot: Snapshot, content: ManifestContent
) -> Iterator[ManifestEntry]:
    """Yield the entries of leaves that the snapshot removed, with status DELETED and its id."""
    if snapshot.root_manifest is None:
        return
    changed_vectors = read_base_root(io, snapshot).changed_vectors
    for leaf in read_snapshot_manifests(io, snapshot):
        vector = changed_vectors.get(leaf.manifest_path)
        if leaf.is_root or leaf.content is not content or vector is None:
            continue
        entries = read_entries(
            io,
            replace(leaf, dead_positions=None, dead_count=0),
            partition_type_of(metadata, leaf, snapshot),
            drop_deleted=False,
            metrics="all",
        )
        positions = decode_deletion_vector(vector, leaf.manifest_path).to_array()
        for entry in entries_of(entries.take(pa.array(np.frombuffer(positions, np.uint64)))):
            yield as_deleted_entry(entry, snapshot.snapshot_id)
