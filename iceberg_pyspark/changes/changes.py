"""The changes of one operation: updates of table metadata, and the requirements on it.

Both are those of the REST catalog. `apply.py` applies the updates. A failed requirement raises
`CommitConflictError`: the writer refreshes, plans again and retries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from iceberg_pyspark.errors import CommitConflictError
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot, SnapshotRef
from iceberg_pyspark.spec.sorting import SortOrder
from iceberg_pyspark.spec.statistics import PartitionStatisticsFile, StatisticsFile
from iceberg_pyspark.spec.table_metadata import TableMetadata

LAST_ADDED = -1
"""An id that refers to the part that this commit added last.

It is valid in `SetCurrentSchema`, `SetDefaultSpec` and `SetDefaultSortOrder`.
"""


@dataclass(frozen=True, slots=True)
class AssignUUID:
    """An update that sets the table's UUID (on creation, or for a v1 table without one)."""

    uuid: str


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersion:
    """An update that raises the format version; a lower version is refused."""

    format_version: int


@dataclass(frozen=True, slots=True)
class AddSchema:
    """An update that adds a schema, unless an equal one exists; applying it assigns `schema_id`."""

    schema: Schema
    last_column_id: int


@dataclass(frozen=True, slots=True)
class SetCurrentSchema:
    """An update that makes a schema the current one."""

    schema_id: int


@dataclass(frozen=True, slots=True)
class AddPartitionSpec:
    """An update that adds a partition spec, unless an equal one exists."""

    spec: PartitionSpec


@dataclass(frozen=True, slots=True)
class SetDefaultSpec:
    """An update that makes a partition spec the default."""

    spec_id: int


@dataclass(frozen=True, slots=True)
class AddSortOrder:
    """An update that adds a sort order, unless an equal one exists."""

    sort_order: SortOrder


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder:
    """An update that makes a sort order the default."""

    order_id: int


@dataclass(frozen=True, slots=True)
class AddEncryptionKey:
    """An update that adds an entry of `encryption-keys`, in the form of table metadata."""

    key: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AddSnapshot:
    """An update that adds a snapshot, which is staged until a reference points at it."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class SetSnapshotRef:
    """An update that creates or moves a branch or tag; `main` sets the current snapshot."""

    name: str
    ref: SnapshotRef


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRef:
    """An update that removes a branch or tag."""

    name: str


@dataclass(frozen=True, slots=True)
class RemoveSnapshots:
    """An update that removes snapshots, with their references, statistics and log entries."""

    snapshot_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SetLocation:
    """An update that changes the table's base location."""

    location: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    """An update that sets table properties."""

    updates: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RemoveProperties:
    """An update that removes table properties."""

    removals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """An update that sets the statistics file of a snapshot."""

    statistics: StatisticsFile


@dataclass(frozen=True, slots=True)
class RemoveStatistics:
    """An update that removes the statistics file of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics:
    """An update that sets the partition statistics file of a snapshot."""

    partition_statistics: PartitionStatisticsFile


@dataclass(frozen=True, slots=True)
class RemovePartitionStatistics:
    """An update that removes the partition statistics file of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class RemoveSchemas:
    """An update that removes unused schemas."""

    schema_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecs:
    """An update that removes unused partition specs."""

    spec_ids: tuple[int, ...]


TableUpdate: TypeAlias = (
    AssignUUID
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddPartitionSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddEncryptionKey
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshotRef
    | RemoveSnapshots
    | SetLocation
    | SetProperties
    | RemoveProperties
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemoveSchemas
    | RemovePartitionSpecs
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """An operation's updates, in order, and their requirements; both are empty for a no-op."""

    updates: tuple[TableUpdate, ...] = ()
    requirements: tuple[TableRequirement, ...] = ()


def combine_requirements(changes: Iterable[Changes]) -> list[TableRequirement]:
    """Return the requirements of several operations that are committed together.

    If two requirements have the same subject, the first counts: the second was computed on metadata
    that the first operation had already changed. A requirement of a UUID that the commit itself
    assigns is dropped for the same reason.
    """
    groups = tuple(changes)
    new_uuids = {u.uuid for group in groups for u in group.updates if isinstance(u, AssignUUID)}
    by_subject: dict[object, TableRequirement] = {}
    for requirement in (r for group in groups for r in group.requirements):
        if isinstance(requirement, AssertTableUUID) and requirement.uuid in new_uuids:
            continue
        key: object = type(requirement)
        if isinstance(requirement, AssertRefSnapshotId):
            key = (key, requirement.ref)
        by_subject.setdefault(key, requirement)
    return list(by_subject.values())
