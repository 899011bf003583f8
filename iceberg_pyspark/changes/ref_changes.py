"""Changes branches and tags: create, move, replace, remove, roll back, set retention.

Specification, "Snapshot References" and "Snapshot Retention Policy". Each function returns updates
with the requirement that the reference has not moved.
"""

from __future__ import annotations

from dataclasses import replace

from iceberg_pyspark.changes.changes import (
    AssertRefSnapshotId,
    Changes,
    RemoveSnapshotRef,
    SetSnapshotRef,
    TableRequirement,
    same_table,
)
from iceberg_pyspark.errors import AlreadyExistsError, InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.spec.snapshots import MAIN, RefType, SnapshotRef
from iceberg_pyspark.spec.table_metadata import TableMetadata, ancestors_of


def create_ref(
    metadata: TableMetadata,
    name: str,
    type_: RefType,
    *,
    snapshot_id: int | None = None,
    min_snapshots_to_keep: int | None = None,
    max_snapshot_age_ms: int | None = None,
    max_ref_age_ms: int | None = None,
    replace_existing: bool = False,
) -> Changes:
    """Create a branch or tag at a snapshot, by default the current one.

    Raises `AlreadyExistsError` if the name is taken and `replace_existing` is false.
    """
    existing = metadata.refs.get(name)
    if existing is not None and not replace_existing:
        raise AlreadyExistsError(
            f"table {metadata.location} has a {existing.type} '{name}' already"
        )
    if existing is not None and existing.type != type_:
        raise InvalidRequestError(f"'{name}' is a {existing.type}; it cannot become a {type_}")
    if not name:
        raise InvalidRequestError(f"a {type_} needs a name")
    if snapshot_id is None:
        snapshot_id = metadata.current_snapshot_id
    if snapshot_id is None:
        raise NoSuchSnapshotError(
            f"table {metadata.location} has no snapshot yet that {type_} '{name}' could point at"
        )
    ref = SnapshotRef(
        snapshot_id=metadata.snapshot(snapshot_id).snapshot_id,
        type=type_,
        min_snapshots_to_keep=_positive(min_snapshots_to_keep, "min-snapshots-to-keep"),
        max_snapshot_age_ms=_positive(max_snapshot_age_ms, "max-snapshot-age-ms"),
        max_ref_age_ms=_positive(max_ref_age_ms, "max-ref-age-ms"),
    )
    return _set(metadata, name, ref)


def replace_ref(metadata: TableMetadata, name: str, type_: RefType, to: int | str) -> Changes:
    """Point a branch or tag at a snapshot id or another reference; its retention settings stay."""
    ref = _existing(metadata, name, type_)
    target = metadata.ref_snapshot(to) if isinstance(to, str) else metadata.snapshot(to)
    return _set(metadata, name, replace(ref, snapshot_id=target.snapshot_id))


def remove_ref(metadata: TableMetadata, name: str, type_: RefType) -> Changes:
    """Remove a branch or tag; `main` cannot be removed."""
    if name == MAIN:
        raise InvalidRequestError(f"branch '{MAIN}' cannot be removed; every table has it")
    _existing(metadata, name, type_)
    return Changes(updates=(RemoveSnapshotRef(name),), requirements=_requirements(metadata, name))


def rename_branch(metadata: TableMetadata, name: str, new_name: str) -> Changes:
    """Rename a branch other than `main`."""
    if name == MAIN:
        raise InvalidRequestError(f"branch '{MAIN}' cannot be renamed; every table has it")
    ref = _existing(metadata, name, "branch")
    if new_name in metadata.refs:
        raise AlreadyExistsError(f"table {metadata.location} has '{new_name}' already")
    return Changes(
        updates=(RemoveSnapshotRef(name), SetSnapshotRef(new_name, ref)),
        requirements=(
            *_requirements(metadata, name),
            AssertRefSnapshotId(new_name, None),
        ),
    )


def set_retention(
    metadata: TableMetadata,
    name: str,
    *,
    min_snapshots_to_keep: int | None = None,
    max_snapshot_age_ms: int | None = None,
    max_ref_age_ms: int | None = None,
) -> Changes:
    """Change the retention settings of a branch or tag; None leaves a setting as it is."""
    metadata.ref_snapshot(name)
    ref = metadata.refs[name]
    new_ref = replace(
        ref,
        min_snapshots_to_keep=_positive(min_snapshots_to_keep, "min-snapshots-to-keep")
        or ref.min_snapshots_to_keep,
        max_snapshot_age_ms=_positive(max_snapshot_age_ms, "max-snapshot-age-ms")
        or ref.max_snapshot_age_ms,
        max_ref_age_ms=_positive(max_ref_age_ms, "max-ref-age-ms") or ref.max_ref_age_ms,
    )
    return _set(metadata, name, new_ref)


def set_current_snapshot(
    metadata: TableMetadata, snapshot_id: int, *, branch: str = MAIN
) -> Changes:
    """Point a branch at any snapshot of the table; create the branch if it does not exist."""
    snapshot = metadata.snapshot(snapshot_id)
    if branch not in metadata.refs:
        return _set(metadata, branch, SnapshotRef(snapshot_id=snapshot.snapshot_id))
    ref = _existing(metadata, branch, "branch")
    return _set(metadata, branch, replace(ref, snapshot_id=snapshot.snapshot_id))


def rollback_to(metadata: TableMetadata, snapshot_id: int) -> Changes:
    """Point `main` back at one of its own earlier snapshots."""
    metadata.snapshot(snapshot_id)
    if snapshot_id not in {
        s.snapshot_id for s in ancestors_of(metadata, metadata.current_snapshot)
    }:
        raise InvalidRequestError(
            f"snapshot {snapshot_id} is not an ancestor of the current snapshot "
            f"{metadata.current_snapshot_id}; use set_current_snapshot for other snapshots"
        )
    return set_current_snapshot(metadata, snapshot_id)


def rollback_to_timestamp(metadata: TableMetadata, timestamp_ms: int) -> Changes:
    """Point `main` at its newest ancestor that is older than the timestamp."""
    for snapshot in ancestors_of(metadata, metadata.current_snapshot):
        if snapshot.timestamp_ms < timestamp_ms:
            return set_current_snapshot(metadata, snapshot.snapshot_id)
    raise NoSuchSnapshotError(
        f"table {metadata.location} has no snapshot before {timestamp_ms} to roll back to"
    )


def fast_forward(metadata: TableMetadata, branch: str, to: str) -> Changes:
    """Move a branch forward to another reference, which must descend from the branch's head."""
    target = metadata.ref_snapshot(to)
    if branch in metadata.refs:
        ref = _existing(metadata, branch, "branch")
        if ref.snapshot_id not in {s.snapshot_id for s in ancestors_of(metadata, target)}:
            raise InvalidRequestError(
                f"branch '{branch}' is not an ancestor of '{to}', so it cannot be fast-forwarded; "
                "replace the branch instead"
            )
    return set_current_snapshot(metadata, target.snapshot_id, branch=branch)


def _set(metadata: TableMetadata, name: str, ref: SnapshotRef) -> Changes:
    if metadata.refs.get(name) == ref:
        return Changes()
    return Changes(updates=(SetSnapshotRef(name, ref),), requirements=_requirements(metadata, name))


def _requirements(metadata: TableMetadata, name: str) -> tuple[TableRequirement, ...]:
    ref = metadata.refs.get(name)
    stays = AssertRefSnapshotId(name, None if ref is None else ref.snapshot_id)
    return (*same_table(metadata.table_uuid), stays)


def _existing(metadata: TableMetadata, name: str, type_: RefType) -> SnapshotRef:
    metadata.ref_snapshot(name)
    ref = metadata.refs[name]
    if ref.type != type_:
        raise InvalidRequestError(f"'{name}' is a {ref.type}, not a {type_}")
    return ref


def _positive(value: int | None, name: str) -> int | None:
    if value is not None and value <= 0:
        raise InvalidRequestError(f"{name} must be positive, got {value}")
    return value
