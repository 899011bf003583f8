"""Creates a snapshot: carries out the plan of an action, as one step of a commit.

Writes manifests and manifest lists (specification, "Manifests", "Manifest Lists"), keeps them for
the next attempt, and removes files that are proven to be in no snapshot. Data files are not touched
here; see `table/commits/written_files.py`.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import replace

import pyarrow.compute as pc

from iceberg_pyspark.changes.changes import (
    AddEncryptionKey,
    AddSnapshot,
    AssertRefSnapshotId,
    AssignUUID,
    Changes,
    SetSnapshotRef,
    TableUpdate,
    same_table,
)
from iceberg_pyspark.changes.compatibility import check_manifests
from iceberg_pyspark.changes.manifest_changes import (
    NewManifest,
    SnapshotBase,
    SnapshotPlan,
    merged_manifest,
    plan_merge,
)
from iceberg_pyspark.changes.outcomes import NeverSent, NotCommitted, Refused
from iceberg_pyspark.changes.removals import RemoveAll
from iceberg_pyspark.changes.snapshot_changes import (
    DeleteFiles,
    OverwriteFiles,
    SnapshotAction,
    check_columns_stay,
    plan_snapshot,
)
from iceberg_pyspark.changes.summary import REPLACE_PARTITIONS, WRITE_ID, snapshot_summary
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.known_manifests import KnownEntries, keep_written
from iceberg_pyspark.formats.locations import (
    location_provider,
    manifest_file_name,
    manifest_list_file_name,
    root_manifest_file_name,
)
from iceberg_pyspark.formats.manifest_columns import entries_with, read_entries, read_live_paths
from iceberg_pyspark.formats.manifest_lists import manifests_to_build_on, write_manifest_list
from iceberg_pyspark.formats.manifest_reader import (
    entries_of,
    read_manifest_entries,
    read_manifest_header,
)
from iceberg_pyspark.formats.manifest_writer import write_manifest
from iceberg_pyspark.formats.roots.written_roots import written_root
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.encryption import TABLE_KEY_ID, manifest_list_key
from iceberg_pyspark.spec.manifests import DataFile, ManifestEntry, ManifestFile
from iceberg_pyspark.spec.partitioning import partition_path
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot, SnapshotRef, snapshot_id_of
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import (
    MANIFEST_COMPRESSION,
    MANIFEST_MERGE_ENABLED,
    MANIFEST_MIN_COUNT_TO_MERGE,
    MANIFEST_TARGET_SIZE,
    SUMMARY_PARTITION_LIMIT,
)
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.encryption.encrypted_io import encryption_of
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.places import file_identity
from iceberg_pyspark.table.commits.clock import Clock
from iceberg_pyspark.table.commits.commit import snapshot_to_build_on
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.commit_root import RootWriter, removed_from_leaves
from iceberg_pyspark.table.commits.partition_types import (
    ambiguous_types,
    common_partition_type,
    has_other_types,
    partition_type_of,
)
from iceberg_pyspark.table.commits.written_files import WrittenFiles, remove_files

_log = get_logger(__name__)

ROOT_MANIFESTS_VERSION = 4
"""The first format version whose snapshots have a root manifest."""


class SnapshotStep:
    """A `CommitStep` that turns one action into one snapshot of a branch.

    If the table already has a snapshot with the step's write id, the step does nothing.
    `written_files` are certainly new; other added files are searched for in the branch. `schema` is
    the schema with which the operation began, if a replacement of the table may have changed it.
    """

    def __init__(
        self,
        action: SnapshotAction,
        io: FileIO,
        options: CommitOptions | None = None,
        *,
        table_uuid: str | None,
        clock: Clock,
        written_files: WrittenFiles | None = None,
        schema: Schema | None = None,
    ) -> None:
        self._action = action
        self._schema = schema
        self._written_files = written_files
        self._io = io
        self._table_uuid = table_uuid
        self._clock = clock
        self._options = options or CommitOptions()
        self._write_id = self._options.write_id or str(uuid.uuid4())
        self._commit_uuid = str(uuid.uuid4())
        self._snapshot_id = 0
        self._attempt = 0
        self._written_manifests: dict[tuple[object, ...], ManifestFile] = {}
        self._known_entries: dict[str, KnownEntries] = {}
        self._planned_manifests: dict[str, NewManifest] = {}
        self._manifest_count = 0
        self._new_keys: tuple[AddEncryptionKey, ...] = ()
        # the planned manifests that each manifest list or root manifest refers to
        self._manifest_lists: dict[str, Set[str]] = {}
        self._root_writer = RootWriter(io, self._commit_uuid)

    @property
    def write_id(self) -> str:
        """The uuid in the summary of the snapshot."""
        return self._write_id

    def is_in(self, metadata: TableMetadata) -> bool:
        """Return whether a snapshot of the table has this step's write id."""
        return any(s.has_value(WRITE_ID, self._write_id) for s in metadata.snapshots)

    def changes(self, metadata: TableMetadata) -> Changes:
        """Write manifests and a manifest list or root for a snapshot on top of this metadata."""
        options = self._options
        base, plan = self._plan(metadata)
        parent = base.parent
        if metadata.format_version >= ROOT_MANIFESTS_VERSION:
            snapshot = self._write_root(plan, base)
        else:
            snapshot = self._write_snapshot(plan, base, self._write_manifests(plan, base))
        ref = metadata.refs.get(options.branch)
        new_ref = (
            SnapshotRef(snapshot_id=snapshot.snapshot_id)
            if ref is None
            else replace(ref, snapshot_id=snapshot.snapshot_id)
        )
        parent_id = None if parent is None else parent.snapshot_id
        updates: tuple[TableUpdate, ...] = (*self._new_keys, AddSnapshot(snapshot))
        if not options.stages_only:
            updates = (*updates, SetSnapshotRef(options.branch, new_ref))
        if metadata.table_uuid is None:
            # v1 tables may lack a UUID; the next write assigns one (specification, "Table
            # Metadata")
            updates = (AssignUUID(self._commit_uuid), *updates)
        stays = AssertRefSnapshotId(options.branch, None if ref is None else parent_id)
        return Changes(updates=updates, requirements=(*same_table(self._table_uuid), stays))

    def check(self, metadata: TableMetadata) -> None:
        """Raise the error with which `changes` refuses the action; write nothing."""
        self._plan(metadata)

    def _plan(self, metadata: TableMetadata) -> tuple[SnapshotBase, SnapshotPlan]:
        """Return the state to build on, and the manifests of the new snapshot, unwritten."""
        options = self._options
        if self._schema is not None:
            check_columns_stay(self._schema, metadata)
        parent = snapshot_to_build_on(
            metadata, options.branch, creates_branch=options.creates_branch
        )
        self._choose_snapshot_id(metadata)
        manifests = tuple(self._read_manifests(parent))
        check_manifests(metadata, manifests)
        base = SnapshotBase(
            metadata=metadata,
            parent=parent,
            manifests=manifests,
            read_entries=lambda m: self._read_entries(metadata, m, parent),
            read_paths=self._read_paths,
            find_entries=lambda m, paths: self._find_entries(metadata, m, parent, paths),
            read_manifests=self._read_manifests,
            read_removed_entries=lambda s, content: removed_from_leaves(
                self._io, metadata, s, content
            ),
            identity_of=file_identity,
            fresh_paths=(
                frozenset() if self._written_files is None else self._written_files.locations
            ),
        )
        plan = plan_snapshot(self._action, base, self._snapshot_id)
        self._check_encrypted(metadata, plan.added_files)
        return base, plan

    def _check_encrypted(self, metadata: TableMetadata, files: Iterable[DataFile]) -> None:
        """Refuse files that an encrypted table must not have, and those that have a key elsewhere.

        Also refuse a step that began before the table of this name was encrypted.
        """
        encryption = encryption_of(self._io)
        is_encrypted = TABLE_KEY_ID in metadata.properties
        if is_encrypted != (encryption is not None and encryption.key_id is not None):
            raise InvalidRequestError(
                f"table {metadata.location}: whether it is encrypted is not what it was when this "
                "operation began, or its property encryption.key-id is missing; load it again"
            )
        for f in files:
            if is_encrypted != (f.key_metadata is not None):
                raise InvalidRequestError(
                    f"table {metadata.location}: {f.file_path} is {'not ' * is_encrypted}"
                    f"encrypted, and the table is{' not' * (not is_encrypted)}; copy the rows with "
                    "INSERT"
                )

    def after_failed_attempt(self, proof: Refused) -> None:
        """Remove the failed attempt's manifest list; the next attempt uses its manifests again."""
        vector_files = self._root_writer.vector_files
        remove_files(self._io, [*self._manifest_lists, *vector_files], proof)
        self._manifest_lists.clear()
        vector_files.clear()

    def after_refusal(self, proof: NotCommitted) -> None:
        """Remove all files this step wrote: no snapshot uses them, and none will."""
        root = self._root_writer
        files = [*self._manifest_lists, *self._planned_manifests, *root.vector_files, *root.leaves]
        remove_files(self._io, files, proof)

    def after_commit(self, metadata: TableMetadata) -> None:
        """Remove the manifests of failed attempts that the committed snapshot does not list."""
        own = metadata.snapshot_by_id.get(self._snapshot_id)
        manifests_in_use = (
            None
            if own is None
            else self._manifest_lists.get(own.root_manifest or own.manifest_list or "")
        )
        if manifests_in_use is None:
            # Another run of this write has committed first; the files of this run become orphan
            # files.
            return
        # The committed manifest list tells which manifests it uses; the other manifests are in no
        # snapshot.
        written_paths = [*self._planned_manifests, *self._root_writer.leaves]
        remove_files(self._io, [p for p in written_paths if p not in manifests_in_use], NeverSent())

    def _choose_snapshot_id(self, metadata: TableMetadata) -> None:
        """Keep the id over attempts unless it is taken, so that manifests can be used again."""
        while self._snapshot_id in (0, *metadata.snapshot_by_id):
            self._snapshot_id = snapshot_id_of(uuid.uuid4())
            self._written_manifests.clear()
            self._root_writer.forget()

    def _read_manifests(self, snapshot: Snapshot | None) -> list[ManifestFile]:
        return [] if snapshot is None else manifests_to_build_on(self._io, snapshot)

    def _read_entries(
        self, metadata: TableMetadata, manifest: ManifestFile, parent: Snapshot | None
    ) -> Iterable[ManifestEntry]:
        new_manifest = self._planned_manifests.get(manifest.manifest_path)
        if new_manifest is not None:
            return new_manifest.entries
        type_ = self._partition_type(metadata, manifest, parent)
        entries = self._own_entries(manifest)
        if entries is not None:
            return entries
        return read_manifest_entries(self._io, manifest, type_)

    def _partition_type(
        self, metadata: TableMetadata, manifest: ManifestFile, parent: Snapshot | None
    ) -> StructType:
        """Return the type of a manifest's partitions; raise an error if it cannot be rewritten."""
        removes_all = isinstance(self._action, OverwriteFiles | DeleteFiles) and isinstance(
            self._action.removal, RemoveAll
        )
        # a rewritten manifest must say of which types the values in its live files are
        columns = () if removes_all else metadata.current_schema.field_by_id
        return partition_type_of(metadata, manifest, parent, columns)

    def _read_paths(self, manifest: ManifestFile) -> Set[str]:
        entries = self._own_entries(manifest)
        if entries is None:
            live = read_live_paths(self._io, manifest)
            paths = live["file_path"].to_pylist() + live["referenced_data_file"].to_pylist()
        else:
            files = [e.data_file for e in entries if e.is_live]
            paths = [p for f in files for p in (f.file_path, f.referenced_data_file)]
        return {p for p in paths if p is not None}

    def _find_entries(
        self,
        metadata: TableMetadata,
        manifest: ManifestFile,
        parent: Snapshot | None,
        paths: Set[str],
    ) -> Iterable[ManifestEntry]:
        own = self._own_entries(manifest)
        if own is not None:
            live = ((e, e.data_file) for e in own if e.is_live)
            found = [e for e, f in live if paths & {f.file_path, f.referenced_data_file}]
            if found and manifest.manifest_path not in self._planned_manifests:
                self._partition_type(metadata, manifest, parent)
            return found
        is_sought = entries_with(read_live_paths(self._io, manifest), paths)
        if not pc.any(is_sought).as_py():
            return []
        type_ = self._partition_type(metadata, manifest, parent)
        return entries_of(read_entries(self._io, manifest, type_).filter(is_sought))

    def _own_entries(self, manifest: ManifestFile) -> Collection[ManifestEntry] | None:
        """Return the entries of a manifest that this process wrote, or None if it may be another's.

        No file is read for them.
        """
        new_manifest = self._planned_manifests.get(manifest.manifest_path)
        if new_manifest is not None:
            return new_manifest.entries
        root = written_root(self._io, manifest.manifest_path) if manifest.is_root else None
        return None if root is None else root.files(manifest.content, manifest.partition_spec_id)

    def _write_manifests(self, plan: SnapshotPlan, base: SnapshotBase) -> tuple[ManifestFile, ...]:
        """Return the snapshot's manifests, new ones first, merged if the properties say so.

        Rewritten manifests keep their places, as in Java: which are merged depends on the order.
        """
        properties = base.metadata.properties
        new: list[ManifestFile] = []
        by_part = {m.part: m for m in plan.unchanged_manifests}
        for m in plan.new:
            manifest = self._write_manifest(m, base.metadata, _alike(m, base))
            if m.rewrites is None:
                new.append(manifest)
            else:
                by_part[m.rewrites.part] = manifest
        manifests = [*new, *(by_part[m.part] for m in base.manifests if m.part in by_part)]
        if not (plan.merge and MANIFEST_MERGE_ENABLED.of(properties)):
            return tuple(manifests)
        groups = plan_merge(
            manifests,
            target_size=MANIFEST_TARGET_SIZE.of(properties),
            min_count=MANIFEST_MIN_COUNT_TO_MERGE.of(properties),
        )
        return tuple(m for group in groups for m in self._merge_group(group, base))

    def _merge_group(
        self, group: Sequence[ManifestFile], base: SnapshotBase
    ) -> Sequence[ManifestFile]:
        """Merge the group into one manifest, unless its partition values have no common type."""
        metadata, spec_id = base.metadata, group[0].partition_spec_id
        if (
            len(group) == 1
            or has_other_types(metadata, group, base.parent)
            or common_partition_type(self._io, group, metadata, spec_id) is None
        ):
            return group
        new_manifest = merged_manifest(group, base.read_entries, self._snapshot_id)
        return [self._write_manifest(new_manifest, metadata, group)]

    def _write_manifest(
        self, new_manifest: NewManifest, metadata: TableMetadata, manifests: Sequence[ManifestFile]
    ) -> ManifestFile:
        """Write a manifest with the types of partition values that `manifests` have."""
        key = (metadata.format_version, *new_manifest.key)
        manifest = self._written_manifests.get(key)
        if manifest is not None:
            return manifest
        spec = metadata.spec_by_id[new_manifest.spec_id]
        type_ = common_partition_type(self._io, manifests, metadata, new_manifest.spec_id)
        if type_ is None:
            raise ambiguous_types(metadata.location, new_manifest.spec_id)
        provider = location_provider(metadata.location, metadata.properties)
        location = provider.new_metadata_location(
            manifest_file_name(self._commit_uuid, self._manifest_count)
        )
        self._manifest_count += 1
        self._planned_manifests[location] = new_manifest
        codec = MANIFEST_COMPRESSION.of(metadata.properties)
        manifest_file = None
        if new_manifest.rewrites is not None:
            from iceberg_pyspark.formats import manifest_rewriter  # noqa: PLC0415 - no append needs it

            manifest_file = manifest_rewriter.rewrite_manifest(
                self._io,
                location,
                new_manifest.rewrites,
                new_manifest.removed,
                partition_type=type_,
                format_version=metadata.format_version,
                snapshot_id=self._snapshot_id,
                codec=codec,
                known=self._known_entries,
            )
        manifest_file = manifest_file or write_manifest(
            self._io,
            location,
            new_manifest.entries,
            spec=spec,
            schema=self._schema_of(new_manifest, metadata),
            partition_type=type_,
            format_version=metadata.format_version,
            content=new_manifest.content,
            snapshot_id=self._snapshot_id,
            codec=codec,
        )
        self._written_manifests[key] = manifest_file
        return manifest_file

    def _schema_of(self, new_manifest: NewManifest, metadata: TableMetadata) -> Schema:
        if new_manifest.rewrites is None:
            return metadata.current_schema
        old = new_manifest.rewrites
        return read_manifest_header(self._io, old.manifest_path, old.key_metadata).schema

    def _write_snapshot(
        self, plan: SnapshotPlan, base: SnapshotBase, manifests: Sequence[ManifestFile]
    ) -> Snapshot:
        m = base.metadata
        self._attempt += 1
        sequence_number = m.next_sequence_number
        parent_id = None if base.parent is None else base.parent.snapshot_id
        location = location_provider(m.location, m.properties).new_metadata_location(
            manifest_list_file_name(self._snapshot_id, self._attempt, self._commit_uuid)
        )
        self._manifest_lists[location] = self._planned_manifests.keys() & {
            m.manifest_path for m in manifests
        }
        now_ms = self._clock.now_ms()
        manifest_list = write_manifest_list(
            self._io,
            location,
            manifests,
            format_version=m.format_version,
            snapshot_id=self._snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=sequence_number,
            first_row_id=m.next_row_id if m.format_version >= 3 else None,
            codec=MANIFEST_COMPRESSION.of(m.properties),
        )
        keep_written(self._io, self._known_entries, manifest_list.manifests)
        key_id = self._keep_key(m, manifest_list.key_metadata, now_ms)
        return Snapshot(
            snapshot_id=self._snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=sequence_number,
            # The time is never before the table's last update, even if clocks disagree.
            timestamp_ms=max(now_ms, m.last_updated_ms),
            manifest_list=location,
            summary=self._summary(plan, base, manifests),
            schema_id=m.current_schema_id,
            first_row_id=m.next_row_id if m.format_version >= 3 else None,
            added_rows=manifest_list.added_rows,
            key_id=key_id,
            list_key=None
            if key_id is None
            else manifest_list_key((*m.encryption_keys, *(k.key for k in self._new_keys)), key_id),
        )

    def _keep_key(
        self, metadata: TableMetadata, key_metadata: bytes | None, now_ms: int
    ) -> str | None:
        """Encrypt the key of a manifest list for the table's metadata, and return its id."""
        encryption = encryption_of(self._io)
        if encryption is None or key_metadata is None:
            return None
        keys = encryption.new_list_keys(metadata.encryption_keys, key_metadata, now_ms)
        self._new_keys = tuple(map(AddEncryptionKey, keys))
        return str(keys[-1]["key-id"])

    def _write_root(self, plan: SnapshotPlan, base: SnapshotBase) -> Snapshot:
        m = base.metadata
        self._attempt += 1
        location = location_provider(m.location, m.properties).new_metadata_location(
            root_manifest_file_name(self._snapshot_id, self._attempt, self._commit_uuid)
        )
        if base.parent is None or base.parent.root_manifest is None:
            _log.warning(
                "table %s: root manifests of format version %d are experimental: they are a "
                "proposal, which may change, and no other engine reads them yet",
                m.location,
                m.format_version,
            )
        writer = self._root_writer
        self._manifest_lists[location] = frozenset()
        root = writer.write(location, plan, base, self._snapshot_id)
        self._manifest_lists[location] = writer.leaves & {f.manifest_path for f in root.leaves}
        return Snapshot(
            snapshot_id=self._snapshot_id,
            parent_snapshot_id=None if base.parent is None else base.parent.snapshot_id,
            sequence_number=m.next_sequence_number,
            # The proposal requires a time after the parent's; also never before the last update.
            timestamp_ms=max(
                self._clock.now_ms(),
                m.last_updated_ms,
                0 if base.parent is None else base.parent.timestamp_ms + 1,
            ),
            root_manifest=location,
            summary=self._summary(plan, base, root.leaves),
            schema_id=m.current_schema_id,
            first_row_id=m.next_row_id,
            added_rows=root.added_rows,
            table_location=m.location,
        )

    def _summary(
        self, plan: SnapshotPlan, base: SnapshotBase, manifests: Sequence[ManifestFile]
    ) -> dict[str, str]:
        m = base.metadata
        # A root manifest does not count, although its own files are read like those of manifests.
        leaf_manifests = [f for f in base.manifests if not f.is_root]
        before = {f.manifest_path for f in leaf_manifests}
        kept_manifests = sum(f.manifest_path in before for f in manifests)
        live_before = sum(f.has_live_files for f in leaf_manifests)
        own = {WRITE_ID: self._write_id}
        if plan.replaces_partitions:
            own[REPLACE_PARTITIONS] = "true"

        def path_of(f: DataFile) -> str:
            return partition_path(m.spec_by_id[f.spec_id], m.schemas_newest_first, f.partition)

        return snapshot_summary(
            plan.operation,
            plan.added_files,
            plan.removed_files,
            parent=base.parent,
            partition_path=path_of,
            partition_limit=SUMMARY_PARTITION_LIMIT.of(m.properties),
            manifest_counts={
                "manifests-created": len(manifests) - kept_manifests,
                "manifests-kept": kept_manifests,
                "manifests-replaced": max(live_before - kept_manifests, 0),
                **plan.counts,
            },
            properties={**self._options.snapshot_properties, **own},
        )


def _alike(new_manifest: NewManifest, base: SnapshotBase) -> Sequence[ManifestFile]:
    """Return the manifest that the new one rewrites, or else the manifests of its spec."""
    return [
        m
        for m in base.manifests
        if m == new_manifest.rewrites
        or (new_manifest.rewrites is None and m.partition_spec_id == new_manifest.spec_id)
    ]
