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
    """The table does not exist."""


@dataclass(frozen=True, slots=True)
class AssertTableUUID:
    """The table is the one that was loaded, not one recreated under its name."""

    uuid: str


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotId:
    """A branch or tag points where it did; None: it does not exist."""

    ref: str
    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class AssertLastAssignedFieldId:
    """No column id was assigned since."""

    last_assigned_field_id: int


@dataclass(frozen=True, slots=True)
class AssertCurrentSchemaId:
    """The current schema is the one that was read."""

    current_schema_id: int


@dataclass(frozen=True, slots=True)
class AssertLastAssignedPartitionId:
    """No partition field id was assigned since."""

    last_assigned_partition_id: int


@dataclass(frozen=True, slots=True)
class AssertDefaultSpecId:
    """The default spec is the one that was read."""

    default_spec_id: int


@dataclass(frozen=True, slots=True)
class AssertDefaultSortOrderId:
    """The default sort order is the one that was read."""

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
    """The requirement that the table has that UUID; a table of version 1 may have none."""
    return () if table_uuid is None else (AssertTableUUID(table_uuid),)


def check_requirement(requirement: TableRequirement, metadata: TableMetadata | None) -> None:
    """Raise `CommitConflictError` unless the requirement holds; `metadata` None: no such table."""
    if metadata is None:
        if not isinstance(requirement, AssertCreate):
            raise CommitConflictError(f"the table no longer exists; required: {requirement}")
        return
    m = metadata
    match requirement:
        case AssertCreate():
            raise CommitConflictError(f"table {m.location} was created by another writer")
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


def _same(metadata: TableMetadata, what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise CommitConflictError(
            f"table {metadata.location} moved: {what} is {actual}, expected {expected}; "
            "refresh and retry"
        )
