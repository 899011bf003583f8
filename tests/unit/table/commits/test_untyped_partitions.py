"""Partition values whose type only a manifest knows, in commits, scans and displays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.removals import RemoveFiles
from iceberg_pyspark.changes.snapshot_changes import DeleteFiles, RowDelta
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.manifest_reader import read_partition_types
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.spec.manifests import DataFile, FileContent, ManifestFile
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec, fields_from_json
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import sort_order_from_json, sort_order_to_json
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    IdentityTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
)
from iceberg_pyspark.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestamptzType,
    UUIDType,
)
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.written_files import WrittenFiles
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import SCHEMA, CommitTable, commit_table, data_file, publish
from tests.support.file_commits import commit_append

VALUES: Sequence[tuple[PrimitiveType, Any, Any]] = [
    (IntegerType(), 3, 4),
    (LongType(), 2**40, -1),
    (DateType(), 19_000, 1),
    (TimestamptzType(), 1_600_000_000_000_000, 0),
    (DoubleType(), -0.0, 1.5),
    (StringType(), "x", "3"),
    (BinaryType(), b"\xff\x00", b""),
    (FixedType(3), b"abc", b"\x00\x00\x00"),
    (UUIDType(), bytes(range(16)), bytes(16)),
    (DecimalType(9, 2), Decimal("1.20"), Decimal("-3.00")),
]
REST = PartitionSpec(spec_id=1)


def by(type_: PrimitiveType, transform: Transform, *more_sources: int) -> PartitionSpec:
    field = PartitionField(
        source_ids=(2, *more_sources), field_id=1000, name="p", transform=transform
    )
    return PartitionSpec(spec_id=0, fields=(field,))


def table_with(type_: PrimitiveType, *values: Any) -> CommitTable:
    """Create a table with a commit per value, each with one file in the value's partition."""
    t = commit_table(partitioned=True)
    part = NestedField(field_id=2, name="part", type=type_)
    schema = Schema(fields=(SCHEMA.fields[0], part))
    publish(t, replace(t.metadata, schemas=(schema,)))
    for i, value in enumerate(values):
        append(t, data_file(f"f{i}", value))
    return t


def respecified(t: CommitTable, spec: PartitionSpec, *, column_is_gone: bool = False) -> None:
    """Replace the fields of the files' spec, and make an unpartitioned spec the default."""
    schema = t.metadata.current_schema
    if column_is_gone:
        schema = Schema(fields=schema.fields[:1])
    publish(
        t,
        replace(t.metadata, partition_specs=(spec, REST), default_spec_id=1, schemas=(schema,)),
    )


def append(t: CommitTable, *files: DataFile) -> None:
    written = WrittenFiles(t.io, files)
    commit_append(t.catalog, t.loaded, t.io, files, written_files=written, clock=t.clock.clock)


def delete(t: CommitTable, *names: str) -> None:
    paths = frozenset(f"mem://t/data/{n}" for n in names)
    action = DeleteFiles(removal=RemoveFiles(data_paths=paths))
    commit_action(t.catalog, t.loaded, t.io, action, clock=t.clock.clock)


def partitions(t: CommitTable) -> dict[str, str]:
    return {
        e.data_file.file_path.rpartition("/")[2]: repr(e.data_file.partition)
        for e in t.entries()
        if e.is_live
    }


def of_spec(t: CommitTable, spec_id: int) -> list[ManifestFile]:
    return [m for m in t.manifests() if m.partition_spec_id == spec_id]


@pytest.mark.parametrize(("type_", "one", "other"), VALUES, ids=str)
@pytest.mark.parametrize(
    "column_is_gone", [True, False], ids=["column was dropped", "unknown transform"]
)
def test_values_of_merged_and_rewritten_manifests_stay_as_they_are(
    type_: PrimitiveType, one: Any, other: Any, column_is_gone: bool
) -> None:
    t = table_with(type_, one, other, None)
    before = partitions(t)
    [lower, upper] = [
        {getattr(s, bound) for m in t.manifests() for s in m.partitions or ()}
        for bound in ("lower_bound", "upper_bound")
    ]
    transform = IdentityTransform() if column_is_gone else UnknownTransform("z")
    respecified(t, by(type_, transform), column_is_gone=column_is_gone)
    assert partitions(t) == before

    append(t, data_file("new", spec_id=1))
    assert len(of_spec(t, 0)) == 1, "merged"
    assert partitions(t) == {**before, "new": "()"}

    delete(t, "f2")
    [manifest] = of_spec(t, 0)
    assert read_partition_types(t.io, manifest.manifest_path)[1000] == type_
    [summary] = manifest.partitions or ()
    assert summary.lower_bound in lower
    assert summary.upper_bound in upper
    assert partitions(t) == {"f0": before["f0"], "f1": before["f1"], "new": "()"}


def test_manifests_with_one_field_in_two_types_are_not_merged() -> None:
    t = table_with(IntegerType(), 3)
    part = NestedField(field_id=2, name="part", type=StringType())
    publish(t, replace(t.metadata, schemas=(Schema(fields=(SCHEMA.fields[0], part)),)))
    append(t, data_file("f1", "3"))
    respecified(t, by(StringType(), UnknownTransform("z")))
    append(t, data_file("new", spec_id=1))
    assert len(of_spec(t, 0)) == 2
    assert partitions(t) == {"f0": "(3,)", "f1": "('3',)", "new": "()"}


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (IntegerType(), LongType()),
        (FloatType(), DoubleType()),
        (DecimalType(9, 2), DecimalType(18, 2)),
    ],
    ids=str,
)
def test_manifests_from_before_and_after_a_promotion_are_merged(
    narrow: PrimitiveType, wide: PrimitiveType
) -> None:
    value = Decimal("2.00") if isinstance(narrow, DecimalType) else 2
    t = table_with(narrow, value)
    part = NestedField(field_id=2, name="part", type=wide)
    publish(t, replace(t.metadata, schemas=(Schema(fields=(SCHEMA.fields[0], part)),)))
    append(t, data_file("f1", value))
    respecified(t, by(wide, IdentityTransform()), column_is_gone=True)
    append(t, data_file("new", spec_id=1))
    [manifest] = of_spec(t, 0)
    assert read_partition_types(t.io, manifest.manifest_path)[1000] == wide


@pytest.mark.parametrize(("type_", "one", "other"), VALUES, ids=str)
def test_row_deletes_carry_the_partition_of_a_column_that_is_gone(
    type_: PrimitiveType, one: Any, other: Any
) -> None:
    t = table_with(type_, one, other)
    respecified(t, by(type_, IdentityTransform()), column_is_gone=True)
    for i, task in enumerate(Table(t.catalog, t.loaded, io=t.io).scan().plan_files()):
        deletes = DataFile(
            content=FileContent.POSITION_DELETES,
            file_path=f"mem://t/data/d{i}",
            partition=task.partition,
            record_count=1,
            file_size_in_bytes=1,
        )
        checks = ConflictChecks(base_snapshot_id=t.metadata.current_snapshot_id)
        action = RowDelta(delete_files=(deletes,), checks=checks)
        commit_action(t.catalog, t.loaded, t.io, action, clock=t.clock.clock)
    file_partitions = partitions(t)
    assert (file_partitions["d0"], file_partitions["d1"]) == (
        file_partitions["f1"],
        file_partitions["f0"],
    )
    tasks = Table(t.catalog, t.loaded, io=t.io).scan().plan_files()
    assert [len(task.deletes) for task in tasks] == [1, 1]


SEVERAL = [{"source-ids": [1, 2], "field-id": 1000, "name": "p", "transform": "bucket[4]"}]


def parsed_fields(fields: list[dict[str, object]]) -> tuple[PartitionField, ...]:
    return fields_from_json(JsonObject({"fields": fields}), "fields")


def test_a_known_name_with_several_sources_is_an_unknown_transform() -> None:
    """docs/conformance.md 64."""
    [field] = parsed_fields(SEVERAL)
    assert field.transform == UnknownTransform("bucket[4]")
    [void] = fields_from_json(
        JsonObject({"fields": [{**SEVERAL[0], "transform": "void"}]}), "fields"
    )
    assert void.transform == VoidTransform()
    [one] = parsed_fields([{**SEVERAL[0], "source-ids": [2]}])
    assert one.transform == BucketTransform(4)
    order = {
        "order-id": 1,
        "fields": [
            {
                "source-ids": [1, 2],
                "transform": "identity",
                "direction": "asc",
                "null-order": "nulls-first",
            }
        ],
    }
    parsed = sort_order_from_json(JsonObject(order))
    assert parsed.fields[0].transform == UnknownTransform("identity")
    assert sort_order_to_json(parsed) == order


def test_a_spec_of_several_sources_is_kept_never_computed_and_never_prunes() -> None:
    """docs/conformance.md 64."""
    t = table_with(IntegerType(), 3)
    spec = PartitionSpec(spec_id=0, fields=parsed_fields(SEVERAL))
    publish(t, replace(t.metadata, partition_specs=(spec,)))
    table = Table(t.catalog, t.loaded, io=t.io)
    for predicate in ("id = 1", "part = 9", "part is null", "part is not null"):
        assert len(list(table.scan(filter=predicate).plan_files())) == 1, predicate
    refused = r"'p' uses the unknown transform 'bucket\[4\]' of 2 columns; writing .* is refused"
    with pytest.raises(InvalidRequestError, match=refused):
        table.append(pa.table({"id": pa.array([1], pa.int64()), "part": pa.array([1], pa.int32())}))
    with pytest.raises(InvalidRequestError, match=refused):
        append(t, data_file("g", 3))
    delete(t, "f0")
    assert t.metadata.partition_specs == (spec,)


def test_metadata_tables_show_values_of_unknown_transforms_as_text() -> None:
    t = table_with(BinaryType(), b"\xff", None)
    respecified(t, by(BinaryType(), UnknownTransform("z")))
    table = Table(t.catalog, t.loaded, io=t.io)
    text_values = [{"p": "/w=="}, {"p": None}]
    for name in ("files", "partitions"):
        rows = table.metadata_table(name).to_arrow()["partition"].to_pylist()
        assert sorted(rows, key=str, reverse=True) == sorted(text_values, key=str, reverse=True), (
            name
        )
    bounds = table.metadata_table("manifests").to_arrow()["partition_summaries"].to_pylist()
    assert sorted(str(s["lower_bound"]) for [s] in bounds) == ["/w==", "null"]


def test_metadata_tables_of_a_column_that_is_gone_show_no_value() -> None:
    t = table_with(IntegerType(), 3)
    respecified(t, by(IntegerType(), IdentityTransform()), column_is_gone=True)
    table = Table(t.catalog, t.loaded, io=t.io)
    for name in ("files", "partitions"):
        rows = table.metadata_table(name).to_arrow()["partition"].to_pylist()
        assert rows == [{"p": None}], name
