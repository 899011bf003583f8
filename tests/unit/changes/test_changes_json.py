"""Updates and requirements as JSON, which PyIceberg's models of the REST specification can read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyiceberg.table import CommitTableRequest

from iceberg_pyspark.changes import changes as ch
from iceberg_pyspark.changes.changes_json import requirement_to_json, update_to_json
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot, SnapshotRef
from iceberg_pyspark.spec.sorting import SortField, SortOrder
from iceberg_pyspark.spec.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from iceberg_pyspark.spec.transforms import BucketTransform, IdentityTransform
from iceberg_pyspark.spec.types import LongType, NestedField

SCHEMA = Schema(fields=(NestedField(field_id=1, name="id", type=LongType(), required=True),))
SPEC = PartitionSpec(
    spec_id=1,
    fields=(
        PartitionField(
            source_ids=(1,), field_id=1000, name="b", transform=BucketTransform(num_buckets=4)
        ),
    ),
)
ORDER = SortOrder(
    order_id=1,
    fields=(
        SortField(
            source_ids=(1,),
            transform=IdentityTransform(),
            direction="desc",
            null_order="nulls-last",
        ),
    ),
)
SNAPSHOT = Snapshot(
    snapshot_id=2**62,
    parent_snapshot_id=7,
    sequence_number=3,
    timestamp_ms=1_700_000_000_000,
    manifest_list="s3://b/t/metadata/snap.avro",
    summary={"operation": "append"},
    schema_id=0,
)
STATISTICS = StatisticsFile(
    snapshot_id=2**62,
    statistics_path="s3://b/t/metadata/x.stats",
    file_size_in_bytes=10,
    file_footer_size_in_bytes=5,
    blob_metadata=(
        BlobMetadata(
            type="apache-datasketches-theta-v1", snapshot_id=2**62, sequence_number=3, fields=(1,)
        ),
    ),
)
UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"

UPDATES: list[ch.TableUpdate] = [
    ch.AssignUUID(UUID),
    ch.UpgradeFormatVersion(3),
    ch.AddSchema(SCHEMA, 1),
    ch.SetCurrentSchema(ch.LAST_ADDED),
    ch.AddPartitionSpec(SPEC),
    ch.SetDefaultSpec(ch.LAST_ADDED),
    ch.AddSortOrder(ORDER),
    ch.SetDefaultSortOrder(ch.LAST_ADDED),
    ch.AddSnapshot(SNAPSHOT),
    ch.SetSnapshotRef("main", SnapshotRef(snapshot_id=2**62)),
    ch.SetSnapshotRef("t", SnapshotRef(snapshot_id=2**62, type="tag", max_ref_age_ms=5)),
    ch.RemoveSnapshotRef("t"),
    ch.RemoveSnapshots((1, 2**62)),
    ch.SetLocation("s3://b/t"),
    ch.SetProperties({"a": "1"}),
    ch.RemoveProperties(("a", "b")),
    ch.SetStatistics(STATISTICS),
    ch.RemoveStatistics(2**62),
    ch.SetPartitionStatistics(
        PartitionStatisticsFile(snapshot_id=7, statistics_path="s3://b/p", file_size_in_bytes=1)
    ),
    ch.RemovePartitionStatistics(7),
    ch.RemoveSchemas((0, 1)),
    ch.RemovePartitionSpecs((0, 1)),
]
REQUIREMENTS: list[ch.TableRequirement] = [
    ch.AssertCreate(),
    ch.AssertTableUUID(UUID),
    ch.AssertRefSnapshotId("main", 2**62),
    ch.AssertRefSnapshotId("main", None),
    ch.AssertLastAssignedFieldId(3),
    ch.AssertCurrentSchemaId(0),
    ch.AssertLastAssignedPartitionId(1000),
    ch.AssertDefaultSpecId(0),
    ch.AssertDefaultSortOrderId(1),
]


def read_by_pyiceberg(**parts: list[dict[str, Any]]) -> CommitTableRequest:
    empty = {"identifier": {"namespace": ["db"], "name": "t"}, "requirements": [], "updates": []}
    # as text, because validation adds items to the given dicts
    return CommitTableRequest.model_validate_json(json.dumps({**empty, **parts}))


def contained(ours: Any, theirs: Any) -> bool:
    """Return whether PyIceberg read everything that we wrote, apart from its defaults."""
    if isinstance(ours, dict):
        return all(
            k in theirs and contained(v, theirs[k]) for k, v in ours.items() if v is not None
        )
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(contained, ours, theirs))
    return bool(ours == theirs)


@pytest.mark.parametrize("update", UPDATES, ids=lambda update: type(update).__name__)
def test_updates_are_read_as_they_were_meant(update: ch.TableUpdate) -> None:
    ours = update_to_json(update)
    read = read_by_pyiceberg(updates=[ours]).updates[0]
    theirs = read.model_dump(by_alias=True, mode="json")
    # fields that are deprecated and not in PyIceberg's model
    ours = {
        k: v for k, v in ours.items() if k not in ("snapshot-id", "last-column-id") or k in theirs
    }
    assert contained(ours, theirs), (ours, theirs)


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=repr)
def test_requirements_are_read_as_they_were_meant(requirement: ch.TableRequirement) -> None:
    ours = requirement_to_json(requirement)
    read = read_by_pyiceberg(requirements=[ours]).requirements[0]
    assert contained(ours, read.model_dump(by_alias=True, mode="json"))


def test_every_update_and_requirement_is_tried() -> None:
    # PyIceberg has no encryption keys: tests/interop/test_encrypted_tables.py asks Java
    assert {type(x) for x in UPDATES} == set(ch.TableUpdate.__args__) - {ch.AddEncryptionKey}
    assert {type(x) for x in REQUIREMENTS} == set(ch.TableRequirement.__args__)


def test_a_reference_that_must_not_be_there_is_null() -> None:
    # A server would treat a missing key as a request without this requirement.
    ours = requirement_to_json(ch.AssertRefSnapshotId("new", None))
    assert ours == {"type": "assert-ref-snapshot-id", "ref": "new", "snapshot-id": None}
