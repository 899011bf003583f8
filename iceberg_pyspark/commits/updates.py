"""The changes a commit makes to table metadata, as values: the REST catalog's updates, applied by
`apply.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot, SnapshotRef
from iceberg_pyspark.spec.sorting import SortOrder
from iceberg_pyspark.spec.statistics import PartitionStatisticsFile, StatisticsFile

LAST_ADDED = -1
"""As an id in `SetCurrentSchema`, `SetDefaultSpec`, `SetDefaultSortOrder`: the one this commit
added last.
"""


@dataclass(frozen=True, slots=True)
class AssignUUID:
    """Give the table its UUID (create, or upgrade of a v1 table without one)."""

    uuid: str


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersion:
    """Raise the format version; lowering it is refused."""

    format_version: int


@dataclass(frozen=True, slots=True)
class AddSchema:
    """Add a schema; an equal one that exists is used instead. `schema_id` is assigned on apply."""

    schema: Schema
    last_column_id: int


@dataclass(frozen=True, slots=True)
class SetCurrentSchema:
    """Make a schema current."""

    schema_id: int


@dataclass(frozen=True, slots=True)
class AddPartitionSpec:
    """Add a partition spec; an equal one that exists is used instead."""

    spec: PartitionSpec


@dataclass(frozen=True, slots=True)
class SetDefaultSpec:
    """Make a partition spec the default."""

    spec_id: int


@dataclass(frozen=True, slots=True)
class AddSortOrder:
    """Add a sort order; an equal one that exists is used instead."""

    sort_order: SortOrder


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder:
    """Make a sort order the default."""

    order_id: int


@dataclass(frozen=True, slots=True)
class AddSnapshot:
    """Add a snapshot; alone it is staged, no reference points at it."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class SetSnapshotRef:
    """Create or move a branch or tag; moving `main` sets the current snapshot."""

    name: str
    ref: SnapshotRef


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRef:
    """Remove a branch or tag."""

    name: str


@dataclass(frozen=True, slots=True)
class RemoveSnapshots:
    """Remove snapshots from the list, with their statistics and log entries."""

    snapshot_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SetLocation:
    """Move the table's base location."""

    location: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Set table properties."""

    updates: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RemoveProperties:
    """Remove table properties."""

    removals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """Set the statistics file of a snapshot."""

    statistics: StatisticsFile


@dataclass(frozen=True, slots=True)
class RemoveStatistics:
    """Remove the statistics file of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics:
    """Set the partition statistics file of a snapshot."""

    partition_statistics: PartitionStatisticsFile


@dataclass(frozen=True, slots=True)
class RemovePartitionStatistics:
    """Remove the partition statistics file of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class RemoveSchemas:
    """Remove schemas no longer used."""

    schema_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecs:
    """Remove partition specs no longer used."""

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
