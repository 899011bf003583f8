"""Changes of metadata that a user builds up call by call and then commits.

The builders in `commits/` define the rules; this module adds `commit()`, which commits the changes
of a table immediately, and those of a transaction together with its other changes. As a context
manager, each object commits at the end of its block.

Refuses upgrades to version 4 of tables whose delete files have paths without a scheme.

Specification of version 4, "Paths in Metadata": such paths have another meaning in version 4. An
upgrade only writes metadata, and position delete files keep the paths inside them.

Creates a branch, as a step of a commit: at a snapshot, or in a table without snapshots.

A reference needs a snapshot (specification, "Snapshot References"), so a branch of a table without
snapshots gets a new one without files, as in Java; `main` stays as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias, TypeVar

from iceberg_pyspark.changes.changes import Changes, SetLocation, UpgradeFormatVersion, same_table
from iceberg_pyspark.changes.cherry_picks import staged_snapshot
from iceberg_pyspark.changes.compatibility import with_schemes
from iceberg_pyspark.changes.property_changes import PropertyChanges
from iceberg_pyspark.changes.ref_changes import (
    create_ref,
    fast_forward,
    remove_ref,
    rename_branch,
    replace_ref,
    rollback_to,
    rollback_to_timestamp,
    set_current_snapshot,
    set_retention,
)
from iceberg_pyspark.changes.schema_changes import SchemaChanges
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.changes.sort_changes import SortChanges
from iceberg_pyspark.changes.spec_changes import SpecChanges
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.manifests import ManifestContent
from iceberg_pyspark.spec.relative_paths import RELATIVE_PATHS_VERSION
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.cherry_pick import CherryPickStep
from iceberg_pyspark.table.commits.clock import Clock
from iceberg_pyspark.table.commits.commit import (
    CommitStep,
    LateSnapshotStep,
    MetadataStep,
    with_changes,
)
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.commit_snapshot import SnapshotStep


class CreateBranchStep(LateSnapshotStep):
    """A `CommitStep` that creates a branch; `create` builds the reference, at an optional id."""

    def __init__(
        self,
        name: str,
        create: Callable[[TableMetadata, int | None], Changes],
        io: FileIO,
        *,
        table_uuid: str | None,
        clock: Clock,
    ) -> None:
        self._name = name
        self._create = create
        self._io = io
        self._table_uuid = table_uuid
        self._clock = clock

    def changes(self, metadata: TableMetadata) -> Changes:
        """See `CommitStep`."""
        if metadata.current_snapshot_id is not None or self._name in metadata.refs:
            return self._create(metadata, None)
        if self._snapshot_step is None:
            self._snapshot_step = SnapshotStep(
                AppendFiles(data_files=(), merge=False),
                self._io,
                CommitOptions(branch=self._name, creates_branch=True, stages_only=True),
                table_uuid=self._table_uuid,
                clock=self._clock,
            )
        snapshot_changes = self._snapshot_step.changes(metadata)
        with_snapshot = with_changes(metadata, snapshot_changes, self._clock)
        reference_changes = self._create(with_snapshot, with_snapshot.snapshots[-1].snapshot_id)
        return replace(
            snapshot_changes, updates=(*snapshot_changes.updates, *reference_changes.updates)
        )


def check_upgrade(io: FileIO, metadata: TableMetadata, version: int) -> None:
    """Refuse an upgrade after which the table's branches and tags could not be read.

    Older snapshots that cannot be read are refused when they are read.
    """
    if version < RELATIVE_PATHS_VERSION or metadata.format_version >= RELATIVE_PATHS_VERSION:
        return
    upgraded_metadata = with_schemes(metadata)
    paths: set[str] = set()
    for snapshot_id in {ref.snapshot_id for ref in metadata.refs.values()}:
        snapshot = upgraded_metadata.snapshot_by_id.get(snapshot_id)
        for manifest in [] if snapshot is None else read_snapshot_manifests(io, snapshot):
            if manifest.content is not ManifestContent.DELETES or manifest.manifest_path in paths:
                continue
            paths.add(manifest.manifest_path)
            try:
                read_entries(io, manifest, StructType(()))
            except UnsupportedFeatureError as e:
                raise InvalidRequestError(
                    f"table {metadata.location} cannot be upgraded to format version {version}: "
                    f"{e}; before the upgrade, run rewrite_position_delete_files with the option "
                    "rewrite-all in version 3, or rewrite_data_files in version 2"
                ) from e


BuildChanges: TypeAlias = Callable[[TableMetadata], Changes]
Stage: TypeAlias = Callable[[Sequence[BuildChanges]], None]
Self = TypeVar("Self", bound="CommittedAtEnd")


class CommittedAtEnd(ABC):
    """A context manager that commits at the end of its block, unless the block raises an error."""

    @abstractmethod
    def commit(self) -> None:
        """Commit the changes, or add them to the transaction they belong to."""

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        if exc_type is None:
            self.commit()


class PendingChanges(CommittedAtEnd):
    """An object with `changes` that waits for `commit()`."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    @abstractmethod
    def changes(self, metadata: TableMetadata) -> Changes:
        """Return the changes as updates of this metadata."""

    def commit(self) -> None:
        """Commit the changes, or add them to the transaction they belong to."""
        self._stage([self.changes])


class UpdateSchema(SchemaChanges, PendingChanges):
    """The changes of `table.update_schema()`: add, drop, rename, promote, move, require columns."""

    def __init__(
        self, stage: Stage, metadata: TableMetadata, *, allow_incompatible_changes: bool
    ) -> None:
        SchemaChanges.__init__(
            self, metadata, allow_incompatible_changes=allow_incompatible_changes
        )
        PendingChanges.__init__(self, stage)


class UpdateSpec(SpecChanges, PendingChanges):
    """The changes of `table.update_spec()`: add, remove, rename partition fields."""

    def __init__(self, stage: Stage, metadata: TableMetadata) -> None:
        SpecChanges.__init__(self, metadata)
        PendingChanges.__init__(self, stage)


class ReplaceSortOrder(SortChanges, PendingChanges):
    """The changes of `table.replace_sort_order()`: sort fields in order; none means unsorted."""

    def __init__(self, stage: Stage, metadata: TableMetadata) -> None:
        SortChanges.__init__(self, metadata)
        PendingChanges.__init__(self, stage)


class UpdateProperties(PropertyChanges, PendingChanges):
    """The changes of `table.update_properties()`: set and remove properties."""

    def __init__(self, stage: Stage, check: Callable[[TableMetadata, int], None]) -> None:
        """Use `check` to refuse an upgrade of metadata to a format version."""
        PropertyChanges.__init__(self)
        PendingChanges.__init__(self, stage)
        self._check = check

    def changes(self, metadata: TableMetadata) -> Changes:
        """Return the updates of this metadata; refuse upgrades that make the table unreadable."""
        changes = super().changes(metadata)
        for update in changes.updates:
            if isinstance(update, UpgradeFormatVersion):
                self._check(metadata, update.format_version)
        return changes


@checked_methods
class UpdateLocation(PendingChanges):
    """The change of `table.update_location()`: the folder of new files."""

    def __init__(self, stage: Stage, check: Callable[[str], None]) -> None:
        """Use `check` to refuse a location that the table cannot have."""
        super().__init__(stage)
        self._check = check
        self._location: str | None = None

    def set_location(self, location: str) -> UpdateLocation:
        """Write new files below this folder, which must be in the table's store."""
        self._check(location)
        self._location = location
        return self

    def changes(self, metadata: TableMetadata) -> Changes:
        """Return the updates of this metadata; the last writer wins, but only in the same table."""
        if self._location is None or self._location == metadata.location:
            return Changes()
        return Changes(
            updates=(SetLocation(self._location),), requirements=same_table(metadata.table_uuid)
        )


Snapshots = TypeVar("Snapshots", bound="ManageSnapshots")


@checked_methods
class ManageSnapshots(CommittedAtEnd):
    """The changes of `table.manage_snapshots()`, applied in call order.

    They change branches, tags, retention settings and the current snapshot.
    """

    def __init__(
        self,
        stage: Callable[[Sequence[CommitStep]], None],
        metadata: TableMetadata,
        io: Callable[[], FileIO],
        clock: Clock,
    ) -> None:
        self._stage = stage
        self._metadata = metadata
        self._io = io
        self._clock = clock
        self._steps: list[CommitStep] = []

    def create_branch(
        self: Snapshots,
        name: str,
        snapshot_id: int | None = None,
        *,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
        replace: bool = False,
    ) -> Snapshots:
        """Create a branch at a snapshot, by default the current one or else a new, empty one."""

        def create(metadata: TableMetadata, at: int | None) -> Changes:
            return create_ref(
                metadata,
                name,
                "branch",
                snapshot_id=at,
                min_snapshots_to_keep=min_snapshots_to_keep,
                max_snapshot_age_ms=max_snapshot_age_ms,
                max_ref_age_ms=max_ref_age_ms,
                replace_existing=replace,
            )

        if snapshot_id is not None or self._metadata.current_snapshot_id is not None:
            return self._add(lambda m: create(m, snapshot_id))
        step = CreateBranchStep(
            name, create, self._io(), table_uuid=self._metadata.table_uuid, clock=self._clock
        )
        self._steps.append(step)
        return self

    def create_tag(
        self: Snapshots,
        name: str,
        snapshot_id: int | None = None,
        *,
        max_ref_age_ms: int | None = None,
        replace: bool = False,
    ) -> Snapshots:
        """Create a tag at a snapshot, by default the current one."""
        return self._add(
            lambda m: create_ref(
                m,
                name,
                "tag",
                snapshot_id=snapshot_id,
                max_ref_age_ms=max_ref_age_ms,
                replace_existing=replace,
            )
        )

    def replace_branch(self: Snapshots, name: str, to: int | str) -> Snapshots:
        """Point a branch at a snapshot id, or at the snapshot of another reference."""
        return self._add(lambda m: replace_ref(m, name, "branch", to))

    def replace_tag(self: Snapshots, name: str, to: int | str) -> Snapshots:
        """Point a tag at a snapshot id, or at the snapshot of another reference."""
        return self._add(lambda m: replace_ref(m, name, "tag", to))

    def remove_branch(self: Snapshots, name: str) -> Snapshots:
        """Remove a branch."""
        return self._add(lambda m: remove_ref(m, name, "branch"))

    def remove_tag(self: Snapshots, name: str) -> Snapshots:
        """Remove a tag."""
        return self._add(lambda m: remove_ref(m, name, "tag"))

    def rename_branch(self: Snapshots, name: str, new_name: str) -> Snapshots:
        """Rename a branch."""
        return self._add(lambda m: rename_branch(m, name, new_name))

    def set_retention(
        self: Snapshots,
        name: str,
        *,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
    ) -> Snapshots:
        """Change the retention settings of a branch or tag; None leaves a setting as it is."""
        return self._add(
            partial(
                set_retention,
                name=name,
                min_snapshots_to_keep=min_snapshots_to_keep,
                max_snapshot_age_ms=max_snapshot_age_ms,
                max_ref_age_ms=max_ref_age_ms,
            )
        )

    def set_current_snapshot(self: Snapshots, snapshot_id: int) -> Snapshots:
        """Point `main` at any snapshot of the table."""
        return self._add(lambda m: set_current_snapshot(m, snapshot_id))

    def rollback_to(self: Snapshots, snapshot_id: int) -> Snapshots:
        """Point `main` back at one of its ancestors."""
        return self._add(lambda m: rollback_to(m, snapshot_id))

    def rollback_to_timestamp(self: Snapshots, timestamp_ms: int) -> Snapshots:
        """Point `main` back at its newest ancestor before a timestamp."""
        return self._add(lambda m: rollback_to_timestamp(m, timestamp_ms))

    def fast_forward(self: Snapshots, branch: str, to: str) -> Snapshots:
        """Move a branch forward to the snapshot of another reference."""
        return self._add(lambda m: fast_forward(m, branch, to))

    def cherry_pick(self: Snapshots, snapshot_id: int) -> Snapshots:
        """Apply a snapshot to `main`: an append, a dynamic overwrite, or a child of main's head."""
        return self._pick(lambda m: m.snapshot(snapshot_id))

    def publish_changes(self: Snapshots, wap_id: str) -> Snapshots:
        """Cherry-pick the snapshot that was staged with this `wap.id`."""
        return self._pick(lambda m: staged_snapshot(m, wap_id))

    def commit(self) -> None:
        """Commit the changes together."""
        self._stage(self._steps)

    def _add(self: Snapshots, build: BuildChanges) -> Snapshots:
        self._steps.append(MetadataStep(build))
        return self

    def _pick(self: Snapshots, find: Callable[[TableMetadata], Snapshot]) -> Snapshots:
        step = CherryPickStep(
            find, self._io(), table_uuid=self._metadata.table_uuid, clock=self._clock
        )
        self._steps.append(step)
        return self
