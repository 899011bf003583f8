"""Metadata tables of tables in memory: columns, rows, snapshots and tasks."""

from __future__ import annotations

import pickle
import struct
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.snapshot_changes import RowDelta
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.puffin.deletion_vectors import encode_deletion_vector
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    GeographyType,
    GeometryType,
    ListType,
    NestedField,
    PrimitiveType,
    StructType,
)
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.metadata_tables.lookup import METADATA_TABLES, table_of_metadata_table
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import SCHEMA, commit_table, data_file, publish

pytestmark = pytest.mark.usefixtures("each_version")

VERSIONS = (1, 2, 3)


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([i for i, _ in pairs], pa.int64()),
            "part": pa.array([p for _, p in pairs], pa.string()),
        }
    )


def three_commits(version: int | None = None, partitioned: bool = True) -> Table:
    t = commit_table(format_version=version, partitioned=partitioned)
    table = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
    table.append(rows((1, "a"), (2, None)))
    table.append(rows((3, "a")))
    table.delete("part = 'a'" if partitioned else "true")
    return table


def read(table: Table, name: str, **options: Any) -> list[dict[str, Any]]:
    table_rows: list[dict[str, Any]] = table.metadata_table(name, **options).to_arrow().to_pylist()
    return table_rows


@pytest.mark.with_lists("the version is a parameter")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("partitioned", [True, False])
@pytest.mark.parametrize("name", METADATA_TABLES)
def test_batches_have_the_schema_and_tasks_travel(
    name: str, partitioned: bool, version: int
) -> None:
    opened = three_commits(version, partitioned).metadata_table(name)
    target = to_arrow_schema(opened.schema)
    batches = []
    reader, tasks = pickle.loads(pickle.dumps((opened.reader, opened.plan())))
    for task in tasks:
        for batch in reader.read(opened.io, task, opened.schema):
            batch.validate(full=True)
            assert batch.schema == target
            batches.append(batch)
    assert pa.Table.from_batches(batches, target) == opened.to_arrow()
    assert ("partition" in opened.schema.name_by_id.values()) == (
        partitioned
        and name.removeprefix("all_")
        in ("files", "data_files", "delete_files", "partitions", "position_deletes")
    )


@pytest.mark.parametrize("name", METADATA_TABLES)
def test_an_empty_table_has_the_columns_and_no_files(name: str) -> None:
    t = commit_table(partitioned=True)
    table_rows = read(Table(t.catalog, t.loaded, io=t.io), name)
    assert len(table_rows) == (1 if name == "metadata_log_entries" else 0)


def test_snapshots_history_and_refs() -> None:
    table = three_commits()
    ids = [s.snapshot_id for s in table.snapshots]
    snapshots = read(table, "snapshots")
    assert [s["snapshot_id"] for s in snapshots] == ids
    assert [s["parent_id"] for s in snapshots] == [None, *ids[:-1]]
    assert [s["operation"] for s in snapshots] == ["append", "append", "delete"]
    assert "operation" not in dict(snapshots[0]["summary"])
    assert dict(snapshots[0]["summary"])["added-records"] == "2"
    table.manage_snapshots().rollback_to(ids[0]).create_tag("kept", ids[1]).commit()
    assert [(h["snapshot_id"], h["is_current_ancestor"]) for h in read(table, "history")] == [
        *((ids[0], True), (ids[1], False), (ids[2], False), (ids[0], True))
    ]
    assert {r["name"]: (r["type"], r["snapshot_id"]) for r in read(table, "refs")} == {
        "main": ("BRANCH", ids[0]),
        "kept": ("TAG", ids[1]),
    }


def test_the_metadata_log_ends_with_the_current_file() -> None:
    table = three_commits()
    log = read(table, "metadata_log_entries")
    assert log[-1]["file"] == table.loaded.metadata_location
    assert [e["latest_sequence_number"] for e in log] == [None, 1, 2, 3]
    assert log[-1]["latest_snapshot_id"] == table.metadata.current_snapshot_id


@pytest.mark.with_lists("each root names all files of its snapshot")
def test_files_are_live_and_entries_are_all() -> None:
    table = three_commits()
    assert [f["record_count"] for f in read(table, "files")] == [1]
    assert sorted(e["status"] for e in read(table, "entries")) == [0, 2, 2]
    assert len(read(table, "all_files")) == 4
    assert len(read(table, "all_entries")) == 6
    assert read(table, "delete_files") == []
    (entry, *_) = [e for e in read(table, "entries") if e["status"] == 0]
    assert entry["data_file"]["partition"] == {"part": None}
    assert entry["readable_metrics"]["id"]["lower_bound"] == 2
    assert entry["readable_metrics"]["part"]["null_value_count"] == 1
    assert entry["sequence_number"] == 1


def test_metrics_in_readable_form_survive_promotion_and_renaming() -> None:
    table = three_commits(partitioned=False)
    table.append(rows((5, "x")))
    table.update_schema().rename_column("part", "kind").add_column("n", "int").commit()
    (file,) = read(table, "files")
    assert list(file["readable_metrics"]) == ["id", "kind", "n"]
    assert file["readable_metrics"]["kind"]["upper_bound"] == "x"
    assert file["readable_metrics"]["n"] == dict.fromkeys(file["readable_metrics"]["n"])


def test_partitions_are_merged_over_specs() -> None:
    table = three_commits()
    table.append(rows((4, "b"), (5, "b")))
    table.update_spec().add_field("id", "bucket[2]").commit()
    table.append(rows((6, "b")))
    partitions = {tuple(p["partition"].values()): p for p in read(table, "partitions")}
    new = next(k for k in partitions if k[1] is not None)
    assert set(partitions) == {(None, None), ("b", None), new}
    assert (partitions["b", None]["record_count"], partitions["b", None]["file_count"]) == (2, 1)
    assert (partitions["b", None]["spec_id"], partitions[new]["spec_id"]) == (0, 1)
    assert partitions[new]["last_updated_snapshot_id"] == table.metadata.current_snapshot_id


def test_equal_values_under_fewer_fields_are_another_partition() -> None:
    """As in Java, files without a partition are not in the partition null (interop tests)."""
    table = three_commits()
    table.update_spec().remove_field("part").commit()
    table.append(rows((4, "b"), (5, None)))
    partitions = read(table, "partitions")
    nulls = [p for p in partitions if p["partition"] == {"part": None}]
    assert sorted((p["spec_id"], p["record_count"]) for p in nulls) == [(0, 1), (1, 2)]


def test_fields_of_one_name_in_several_specs_have_different_names() -> None:
    """A replaced table may have another number of buckets under the default name of a field."""
    table = three_commits()
    table.update_spec().add_field("id", "bucket[2]", "hash").commit()
    table.append(rows((4, "b")))
    table.update_spec().remove_field("hash").add_field("id", "bucket[1]", "hash").commit()
    table.append(rows((5, "b")))
    old, new = (
        next(f.field_id for f in spec.fields if f.name == "hash")
        for spec in table.metadata.partition_specs[1:]
    )
    own = table.scan(columns=["_partition"]).to_arrow()["_partition"].to_pylist()
    for partitions in (
        [p["partition"] for p in read(table, "files")],
        [p["partition"] for p in read(table, "partitions")],
        own,
    ):
        assert {tuple(p) for p in partitions} == {("part", f"hash_{old}", "hash")}
        of_new = next(p for p in partitions if p["hash"] is not None)
        assert of_new == {"part": "b", f"hash_{old}": None, "hash": 0}
    assert new == old + 1


@pytest.mark.with_lists("a root has files of several specs")
def test_a_manifest_shows_its_partition_bounds_as_text() -> None:
    table = three_commits()
    newest = read(table, "manifests")[0]
    assert newest["deleted_data_files_count"] == 1
    assert newest["partition_summaries"][0]["lower_bound"] == "a"
    assert len(read(table, "all_manifests")) == sum(
        len(read(table, "manifests", selector=SnapshotSelector(snapshot_id=s.snapshot_id)))
        for s in table.snapshots
    )


def test_a_selector_chooses_the_snapshot_where_one_is_shown() -> None:
    table = three_commits()
    first = SnapshotSelector(snapshot_id=table.snapshots[0].snapshot_id)
    assert len(read(table, "files", selector=first)) == 2
    assert len(read(table, "entries", selector=first)) == 2
    assert len(read(table, "partitions", selector=first)) == 2
    with pytest.raises(InvalidRequestError, match=r"db\.t\.snapshots shows the whole table"):
        table.metadata_table("snapshots", selector=first)


def test_chosen_fields_are_read_alone() -> None:
    table = three_commits()
    opened = table.metadata_table("entries")
    data_file = opened.schema.find("data_file")
    assert isinstance(data_file.type, StructType)
    path = data_file.type.field_named("file_path")
    assert path is not None
    narrow = replace(data_file, type=StructType((path,)))
    status = opened.schema.find("status")
    entries = opened.select(Schema(fields=(narrow, status))).to_arrow()
    assert entries.to_pylist() == [
        {"data_file": {"file_path": e["data_file"]["file_path"]}, "status": e["status"]}
        for e in read(table, "entries")
    ]
    assert opened.select(Schema(fields=())).to_arrow().num_columns == 0
    assert sum(b.num_rows for b in opened.select(Schema(fields=())).to_batches()) == 3


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidRequestError, match=r"no metadata table 'nope'; there are: all_"):
        three_commits().metadata_table("nope")


@pytest.mark.parametrize(
    ("namespace", "name", "expected"),
    [
        (("db", "t"), "FILES", (("db",), "t", "files")),
        (("a", "b", "t"), "refs", (("a", "b"), "t", "refs")),
        (("db",), "files", None),
        (("db", "t"), "other", None),
        ((), "/w/t#history", ((), "/w/t", "history")),
        ((), "/w/t#nope", None),
        ((), "#files", None),
    ],
)
def test_names_that_may_be_metadata_tables(
    namespace: tuple[str, ...], name: str, expected: tuple[tuple[str, ...], str, str] | None
) -> None:
    base = table_of_metadata_table(TableIdentifier(namespace=namespace, name=name))
    if expected is None:
        assert base is None
    else:
        assert base == (TableIdentifier(namespace=expected[0], name=expected[1]), expected[2])


@pytest.mark.parametrize("type_", [GeometryType(), GeographyType()], ids=str)
def test_geometry_and_geography_are_shown_as_the_bytes_stored(type_: PrimitiveType) -> None:
    t = commit_table(format_version=3)
    inside = ListType(
        element_id=4,
        element_type=StructType((NestedField(field_id=5, name="in", type=type_),)),
    )
    place = NestedField(field_id=3, name="place", type=type_)
    places = NestedField(field_id=6, name="places", type=inside)
    schema = Schema(fields=(*SCHEMA.fields, place, places))
    publish(t, replace(t.metadata, schemas=(schema,), last_column_id=6))
    low, high = struct.pack("<2d", 1, 2), struct.pack("<2d", 3, 4)
    file = data_file("a", value_counts={3: 1}, lower_bounds={3: low}, upper_bounds={3: high})
    deletes = DataFile(
        content=FileContent.POSITION_DELETES,
        file_path="mem://t/data/d.puffin",
        file_format="puffin",
        record_count=1,
        file_size_in_bytes=1,
        referenced_data_file=file.file_path,
        content_offset=4,
        content_size_in_bytes=len(encode_deletion_vector([3])),
    )
    t.io.write_bytes(deletes.file_path, b"PFA1" + encode_deletion_vector([3]))
    action = RowDelta(
        data_files=(file,), delete_files=(deletes,), checks=ConflictChecks(base_snapshot_id=None)
    )
    commit_action(t.catalog, t.loaded, t.io, action, clock=t.clock.clock)
    table = Table(t.catalog, t.loaded, io=t.io)
    for name in set(METADATA_TABLES) - {"changes"}:
        table.metadata_table(name).to_arrow().validate(full=True)
    [column] = [r["readable_metrics"]["place"] for r in read(table, "data_files")]
    assert (column["value_count"], column["lower_bound"], column["upper_bound"]) == (1, low, high)
    assert [r["pos"] for r in read(table, "position_deletes")] == [3]
