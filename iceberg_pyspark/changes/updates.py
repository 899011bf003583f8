"""Defines the updates of table metadata, which are those of the REST catalog.

`apply.py` applies them.
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
