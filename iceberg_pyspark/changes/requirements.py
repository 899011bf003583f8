"""Requirements on the current metadata under which a commit may proceed, as in the REST catalog.

A failed requirement raises `CommitConflictError`: the writer refreshes, plans again and retries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from iceberg_pyspark.errors import CommitConflictError
from iceberg_pyspark.spec.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class AssertCreate:
    """The requirement that the table does not exist."""


@dataclass(frozen=True, slots=True)
class AssertTableUUID:
    """The requirement that the table was not replaced by another one of the same name."""

    uuid: str


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotId:
    """The requirement that a branch or tag is at this snapshot; None: that it does not exist."""

    ref: str
    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class AssertLastAssignedFieldId:
    """The requirement that no column id was assigned in the meantime."""

    last_assigned_field_id: int


@dataclass(frozen=True, slots=True)
class AssertCurrentSchemaId:
    """The requirement that the current schema is still the one that was read."""

    current_schema_id: int


@dataclass(frozen=True, slots=True)
class AssertLastAssignedPartitionId:
    """The requirement that no partition field id was assigned in the meantime."""

    last_assigned_partition_id: int


@dataclass(frozen=True, slots=True)
class AssertDefaultSpecId:
    """The requirement that the default partition spec is still the one that was read."""

    default_spec_id: int


@dataclass(frozen=True, slots=True)
class AssertDefaultSortOrderId:
    """The requirement that the default sort order is still the one that was read."""

    default_sort_order_id: int


TableRequirement: TypeAlias = (
    AssertCreate
    | AssertTableUUID
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)


def same_table(table_uuid: str | None) -> tuple[TableRequirement, ...]:
    """Return the requirement that the table has this UUID; version 1 tables may have none."""
    return () if table_uuid is None else (AssertTableUUID(table_uuid),)


def check_requirement(requirement: TableRequirement, metadata: TableMetadata | None) -> None:
    """Raise `CommitConflictError` unless the requirement holds; None means that no table exists."""
    if metadata is None:
        if not isinstance(requirement, AssertCreate):
            raise CommitConflictError(f"the table no longer exists; required: {requirement}")
        return
    m = metadata
    match requirement:
        case AssertCreate():
            raise CommitConflictError(
                f"table {m.location} was created by another writer; load it, and write to it if it "
                "fits"
            )
        case AssertTableUUID(uuid=uuid):
            if (m.table_uuid or "").lower() != uuid.lower():
                raise CommitConflictError(
                    f"table {m.location} was replaced by another table: its table-uuid is "
                    f"{m.table_uuid}, expected {uuid}; load the table again by its name"
                )
        case AssertRefSnapshotId(ref=name, snapshot_id=snapshot_id):
            ref = m.refs.get(name)
            actual = None if ref is None else ref.snapshot_id
            _same(m, f"snapshot of '{name}'", actual, snapshot_id)
        case AssertLastAssignedFieldId(last_assigned_field_id=expected):
            _same(m, "last-column-id", m.last_column_id, expected)
        case AssertCurrentSchemaId(current_schema_id=expected):
            _same(m, "current-schema-id", m.current_schema_id, expected)
        case AssertLastAssignedPartitionId(last_assigned_partition_id=expected):
            _same(m, "last-partition-id", m.last_partition_id, expected)
        case AssertDefaultSpecId(default_spec_id=expected):
            _same(m, "default-spec-id", m.default_spec_id, expected)
        case AssertDefaultSortOrderId(default_sort_order_id=expected):
            _same(m, "default-sort-order-id", m.default_sort_order_id, expected)


def _same(metadata: TableMetadata, field: str, actual: object, expected_value: object) -> None:
    if actual != expected_value:
        raise CommitConflictError(
            f"table {metadata.location} was changed by another commit: {field} is {actual}, "
            f"expected {expected_value}; refresh and retry"
        )
