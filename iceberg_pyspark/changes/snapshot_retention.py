"""Decides which snapshots, branches and tags expire, and creates the updates that remove them.

Specification, "Snapshot Retention Policy". A branch keeps a number of newest snapshots and those
below an age; a tag keeps its snapshot. Branches and tags are removed when they exceed their own
maximum age, except `main`. Settings that a reference lacks come from the caller or from the table's
`history.expire.*` properties. Snapshots that belong to no branch or tag are kept by age only, as in
Java.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from iceberg_pyspark.changes.changes import (
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    Changes,
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    TableRequirement,
    TableUpdate,
    same_table,
)
from iceberg_pyspark.errors import CommitConflictError, InvalidRequestError
from iceberg_pyspark.spec.snapshots import MAIN, SnapshotRef
from iceberg_pyspark.spec.table_metadata import TableMetadata, ancestors_of
from iceberg_pyspark.spec.table_properties import (
    HISTORY_MAX_REF_AGE_MS,
    HISTORY_MAX_SNAPSHOT_AGE_MS,
    HISTORY_MIN_SNAPSHOTS_TO_KEEP,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The caller's settings of an expiry; other settings come from references and properties.

    `older_than_ms` (milliseconds since 1970) and `retain_last` replace the table's properties, but
    not the settings of a branch. `snapshot_ids` expire at any age.
    """

    older_than_ms: int | None = None
    retain_last: int | None = None
    snapshot_ids: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if self.retain_last is not None and self.retain_last < 1:
            raise InvalidRequestError(
                f"retain_last must be at least 1, got {self.retain_last}: a branch always keeps "
                "the snapshot that it points at"
            )


@dataclass(frozen=True, slots=True)
class Expiry:
    """The expired snapshots, and the names of expired branches and tags, in metadata order."""

    snapshot_ids: tuple[int, ...] = ()
    refs: tuple[str, ...] = ()


def expiry(metadata: TableMetadata, retention: Retention, now_ms: int) -> Expiry:
    """Return the snapshots and references that expire at the time `now_ms`.

    Raises `InvalidRequestError` if the caller names a snapshot that a branch or tag points at.
    """
    properties = metadata.properties
    older_than_ms = retention.older_than_ms
    if older_than_ms is None:
        older_than_ms = now_ms - HISTORY_MAX_SNAPSHOT_AGE_MS.of(properties)
    least = retention.retain_last or HISTORY_MIN_SNAPSHOTS_TO_KEEP.of(properties)
    refs = {
        name: ref for name, ref in metadata.refs.items() if _is_kept(metadata, name, ref, now_ms)
    }
    _check_is_unreferenced(refs, retention.snapshot_ids)
    kept_ids = {ref.snapshot_id for ref in refs.values()}
    behind = set(kept_ids)
    for ref in refs.values():
        if ref.type == "branch":
            kept_ids.update(_retained_ids(metadata, ref, older_than_ms, least, now_ms))
            head = metadata.snapshot_by_id.get(ref.snapshot_id)
            behind.update(s.snapshot_id for s in ancestors_of(metadata, head))
    for snapshot in metadata.snapshots:
        if snapshot.snapshot_id not in behind and snapshot.timestamp_ms >= older_than_ms:
            kept_ids.add(snapshot.snapshot_id)
    kept_ids -= retention.snapshot_ids
    return Expiry(
        tuple(s.snapshot_id for s in metadata.snapshots if s.snapshot_id not in kept_ids),
        tuple(name for name in metadata.refs if name not in refs),
    )


def _is_kept(metadata: TableMetadata, name: str, ref: SnapshotRef, now_ms: int) -> bool:
    if name == MAIN:
        return True
    snapshot = metadata.snapshot_by_id.get(ref.snapshot_id)
    if snapshot is None:
        # the reference points at no snapshot
        return False
    max_ms = ref.max_ref_age_ms
    if max_ms is None:
        max_ms = HISTORY_MAX_REF_AGE_MS.of(metadata.properties)
    return now_ms - snapshot.timestamp_ms <= max_ms


def _check_is_unreferenced(refs: dict[str, SnapshotRef], snapshot_ids: Collection[int]) -> None:
    for name, ref in refs.items():
        if ref.snapshot_id in snapshot_ids:
            raise InvalidRequestError(
                f"snapshot {ref.snapshot_id} cannot expire, because {ref.type} '{name}' points at "
                "it; move or remove it first"
            )


def _retained_ids(
    metadata: TableMetadata, ref: SnapshotRef, older_than_ms: int, least: int, now_ms: int
) -> Iterator[int]:
    if ref.max_snapshot_age_ms is not None:
        older_than_ms = now_ms - ref.max_snapshot_age_ms
    least = ref.min_snapshots_to_keep or least
    head = metadata.snapshot_by_id.get(ref.snapshot_id)
    for number, snapshot in enumerate(ancestors_of(metadata, head)):
        if number >= least and snapshot.timestamp_ms < older_than_ms:
            return
        yield snapshot.snapshot_id


def expiry_changes(
    metadata: TableMetadata,
    expired_parts: Expiry,
    *,
    schema_ids: Sequence[int] = (),
    spec_ids: Sequence[int] = (),
) -> Changes:
    """Return the changes that remove expired parts, and unused schemas and partition specs.

    The changes require that no branch or tag of `metadata` has moved. `check_refs_stay_valid`
    detects a new branch or tag that points at an expired snapshot.
    """
    updates: list[TableUpdate] = [RemoveSnapshotRef(name) for name in expired_parts.refs]
    if expired_parts.snapshot_ids:
        updates.append(RemoveSnapshots(expired_parts.snapshot_ids))
    if spec_ids:
        updates.append(RemovePartitionSpecs(tuple(spec_ids)))
    if schema_ids:
        updates.append(RemoveSchemas(tuple(schema_ids)))
    if not updates:
        return Changes()
    requirements: list[TableRequirement] = [*same_table(metadata.table_uuid)]
    requirements += [
        AssertRefSnapshotId(name, ref.snapshot_id) for name, ref in metadata.refs.items()
    ]
    if spec_ids:
        requirements.append(AssertDefaultSpecId(metadata.default_spec_id))
    if schema_ids:
        requirements.append(AssertCurrentSchemaId(metadata.current_schema_id))
    return Changes(updates=tuple(updates), requirements=tuple(requirements))


def check_refs_stay_valid(metadata: TableMetadata, updates: Sequence[TableUpdate]) -> None:
    """Raise `CommitConflictError` if updates remove a snapshot that a branch or tag points at.

    No requirement can express that a reference is new, so code that applies updates to the current
    metadata must call this function.
    """
    removed_ids = {i for u in updates if isinstance(u, RemoveSnapshots) for i in u.snapshot_ids}
    if not removed_ids:
        return
    removed_refs = {u.name for u in updates if isinstance(u, RemoveSnapshotRef)}
    for name, ref in metadata.refs.items():
        if ref.snapshot_id in removed_ids and name not in removed_refs:
            raise CommitConflictError(
                f"table {metadata.location}: {ref.type} '{name}' now points at snapshot "
                f"{ref.snapshot_id}, which this commit removes; refresh and retry"
            )


def unused_specs(metadata: TableMetadata, used_spec_ids: Collection[int]) -> tuple[int, ...]:
    """Return the ids of specs that are neither the default spec nor in `used_spec_ids`."""
    needed_spec_ids = {metadata.default_spec_id, *used_spec_ids}
    return tuple(s.spec_id for s in metadata.partition_specs if s.spec_id not in needed_spec_ids)


def unused_schemas(
    metadata: TableMetadata,
    expired_parts: Expiry,
    used_spec_ids: Collection[int],
    *,
    has_deletes: bool,
) -> tuple[int, ...]:
    """Return the ids of schemas that no kept snapshot uses, except the current schema.

    Only old schemas have the type of a dropped column. The newest schema with such a column is kept
    if a kept partition spec uses the column or, with `has_deletes`, in any case: equality deletes
    may compare the column.
    """
    expired_ids = set(expired_parts.snapshot_ids)
    used_schema_ids = {s.schema_id for s in metadata.snapshots if s.snapshot_id not in expired_ids}
    used_schema_ids.add(metadata.current_schema_id)
    known_field_ids = {
        i for s in metadata.schemas if s.schema_id in used_schema_ids for i in s.name_by_id
    }
    specs = [s for s in metadata.partition_specs if s.spec_id in used_spec_ids]
    source_ids = {i for spec in specs for f in spec.fields for i in f.source_ids}
    for schema in metadata.schemas_newest_first:
        missing = set(schema.name_by_id) - known_field_ids
        if schema.schema_id not in used_schema_ids and (
            missing if has_deletes else missing & source_ids
        ):
            used_schema_ids.add(schema.schema_id)
            known_field_ids.update(schema.name_by_id)
    return tuple(s.schema_id for s in metadata.schemas if s.schema_id not in used_schema_ids)
