"""Appendix C and E: metadata JSON of three format versions (docs/conformance.md 59, 83-87, 90)."""

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest

from iceberg_pyspark.changes.apply import apply_updates
from iceberg_pyspark.changes.changes import AddSnapshot, RemoveSnapshots, SetSnapshotRef
from iceberg_pyspark.changes.schema_changes import SchemaChanges
from iceberg_pyspark.errors import InvalidMetadataError, UnsupportedFeatureError
from iceberg_pyspark.spec.snapshots import Snapshot, SnapshotRef
from iceberg_pyspark.spec.table_metadata import (
    metadata_from_bytes,
    metadata_from_json,
    metadata_to_bytes,
    metadata_to_json,
)

FIELD = {"id": 1, "name": "x", "required": True, "type": "long"}
PARTITION = {"name": "x", "transform": "identity", "source-id": 1, "field-id": 1000}


def v1() -> dict[str, Any]:
    """Return the smallest valid v1 metadata."""
    return {
        "format-version": 1,
        "location": "s3://bucket/t",
        "last-updated-ms": 1,
        "last-column-id": 1,
        "schema": {"type": "struct", "fields": [FIELD]},
        "partition-spec": [{"name": "x", "transform": "identity", "source-id": 1}],
    }


def v2() -> dict[str, Any]:
    return {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "s3://bucket/t",
        "last-sequence-number": 34,
        "last-updated-ms": 1602638573590,
        "last-column-id": 1,
        "current-schema-id": 1,
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": [FIELD]},
            {
                "type": "struct",
                "schema-id": 1,
                "identifier-field-ids": [1],
                "fields": [{**FIELD, "doc": "comment"}],
            },
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": [PARTITION]}],
        "last-partition-id": 1000,
        "default-sort-order-id": 3,
        "sort-orders": [
            {
                "order-id": 3,
                "fields": [
                    {
                        "transform": "bucket[4]",
                        "source-id": 1,
                        "direction": "desc",
                        "null-order": "nulls-last",
                    }
                ],
            }
        ],
        "properties": {"k": "v"},
        "current-snapshot-id": 3055729675574597004,
        "snapshots": [
            {
                "snapshot-id": 3055729675574597004,
                "timestamp-ms": 1555100955770,
                "sequence-number": 1,
                "summary": {"operation": "append"},
                "manifest-list": "s3://a/b/2.avro",
                "schema-id": 1,
            }
        ],
        "snapshot-log": [{"snapshot-id": 3055729675574597004, "timestamp-ms": 1555100955770}],
        "metadata-log": [{"metadata-file": "s3://a/1.json", "timestamp-ms": 1}],
        "refs": {"v": {"snapshot-id": 3055729675574597004, "type": "tag", "max-ref-age-ms": 10}},
        "statistics": [
            {
                "snapshot-id": 3055729675574597004,
                "statistics-path": "s3://a/b/stats.puffin",
                "file-size-in-bytes": 413,
                "file-footer-size-in-bytes": 42,
                "blob-metadata": [
                    {
                        "type": "boring-type",
                        "snapshot-id": 3055729675574597004,
                        "sequence-number": 2,
                        "fields": [1],
                        "properties": {"p": "v"},
                    }
                ],
            }
        ],
        "partition-statistics": [
            {
                "snapshot-id": 3055729675574597004,
                "statistics-path": "s3://a/b/p.parquet",
                "file-size-in-bytes": 43,
            }
        ],
    }


def v3() -> dict[str, Any]:
    data = v2()
    data["format-version"] = 3
    data["next-row-id"] = 5
    data["snapshots"][0] |= {"first-row-id": 0, "added-rows": 5}
    return data


def test_v1_minimum_fills_what_is_absent() -> None:
    """docs/conformance.md 59 and 86."""
    m = metadata_from_json(v1())
    assert m.table_uuid is None
    assert m.current_schema.field_by_id[1].name == "x"
    assert m.partition_specs[0].fields[0].field_id == 1000
    assert m.last_partition_id == 1000
    assert m.sort_orders[0].order_id == 0
    assert m.current_snapshot is None
    assert m.last_sequence_number == 0


def test_v1_is_written_with_the_old_and_the_new_keys() -> None:
    """docs/conformance.md 86."""
    out = metadata_to_json(metadata_from_json(v1()))
    assert out["schema"]["fields"] == [FIELD]
    assert out["schemas"][0]["fields"] == [FIELD]
    assert out["partition-spec"] == [PARTITION]
    assert "last-sequence-number" not in out
    assert out["current-snapshot-id"] == -1


@pytest.mark.parametrize("summary", [{}, {"summary": None}, {"summary": {"spark.app.id": "7"}}])
def test_a_v1_snapshot_needs_no_summary_and_no_operation(summary: dict[str, Any]) -> None:
    """docs/conformance.md 40, and 86: its manifests may be listed in the metadata."""
    snapshot = {"snapshot-id": 5, "timestamp-ms": 7, "manifests": ["s3://a/m.avro"], **summary}
    m = metadata_from_json({**v1(), "current-snapshot-id": 5, "snapshots": [snapshot]})
    assert m.current_snapshot is not None
    assert m.current_snapshot.operation is None
    assert m.current_snapshot.manifests == ("s3://a/m.avro",)
    assert metadata_from_json(metadata_to_json(m)) == m


@pytest.mark.parametrize("make", [v1, v2, v3])
def test_round_trip(make: Any) -> None:
    m = metadata_from_json(make())
    assert metadata_from_bytes(metadata_to_bytes(m), "x") == m


def test_v2_fields() -> None:
    m = metadata_from_json(v2())
    assert m.current_schema.identifier_field_ids == (1,)
    assert m.default_sort_order.fields[0].direction == "desc"
    assert m.refs["main"].snapshot_id == 3055729675574597004
    assert m.refs["v"].max_ref_age_ms == 10
    assert m.statistics[0].blob_metadata[0].fields == (1,)
    out = metadata_to_json(m)
    for key in ("statistics", "partition-statistics", "snapshot-log", "metadata-log"):
        assert out[key] == v2()[key]


def test_v3_row_lineage_fields() -> None:
    m = metadata_from_json(v3())
    assert (m.next_row_id, m.snapshots[0].first_row_id, m.snapshots[0].added_rows) == (5, 0, 5)
    assert metadata_to_json(m)["next-row-id"] == 5


def test_a_v3_table_without_snapshot_writes_null_not_minus_one() -> None:
    """docs/conformance.md 84."""
    data = {**v3(), "current-snapshot-id": -1, "snapshots": [], "refs": {}}
    m = metadata_from_json(data)
    assert m.current_snapshot_id is None
    assert metadata_to_json(m)["current-snapshot-id"] is None


def test_ids_beyond_double_precision_survive() -> None:
    """docs/conformance.md 85."""
    text = json.dumps(v2()).replace("3055729675574597004", "9223372036854775807")
    m = metadata_from_bytes(text.encode(), "x")
    assert m.current_snapshot_id == 9223372036854775807


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"location": None}, "location: required"),
        ({"table-uuid": None}, "table-uuid: required"),
        ({"schemas": None}, "schemas: required in v2"),
        ({"current-schema-id": 9}, "current-schema-id: 9 is not in schemas"),
        ({"default-spec-id": 9}, "default-spec-id: 9 is not in partition-specs"),
        ({"default-sort-order-id": 9}, "default-sort-order-id: 9"),
        ({"current-snapshot-id": 9}, "current-snapshot-id: 9 is not in snapshots"),
        ({"refs": {"b": {"snapshot-id": 9, "type": "branch"}}}, r"refs\.b\.snapshot-id"),
        ({"refs": {"b": {"snapshot-id": 3055729675574597004, "type": "x"}}}, "branch or tag"),
        ({"snapshots": [{"snapshot-id": 1, "timestamp-ms": 1}]}, r"snapshots\[0\].manifest-list"),
    ],
)
def test_damage_is_named_by_its_json_path(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        metadata_from_json({**v2(), **change})


def test_duplicate_field_ids_are_refused() -> None:
    data = v2()
    data["schemas"][0]["fields"] = [FIELD, {**FIELD, "name": "y"}]
    with pytest.raises(InvalidMetadataError, match="field id 1 is used by both 'x' and 'y'"):
        metadata_from_json(data)


def test_an_unknown_version_is_refused_by_number() -> None:
    """docs/conformance.md 83."""
    with pytest.raises(UnsupportedFeatureError, match=r"meta\.json: format-version 5"):
        metadata_from_bytes(json.dumps({**v2(), "format-version": 5}).encode(), "meta.json")


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"format-version":2}']
)
def test_error_of_invalid_metadata_names_the_file(data: bytes) -> None:
    with pytest.raises(InvalidMetadataError, match=r"^meta\.json: "):
        metadata_from_bytes(data, "meta.json")


def test_every_truncation_of_a_metadata_file_is_a_typed_error() -> None:
    data = metadata_to_bytes(metadata_from_json(v3()))
    for end in range(len(data)):
        with pytest.raises(InvalidMetadataError):
            metadata_from_bytes(data[:end], "meta.json")


def with_default(type_: Any, default: Any) -> dict[str, Any]:
    """Return v3 metadata with a column of this type and this write default."""
    data = {**v2(), "format-version": 3, "next-row-id": 0, "last-column-id": 9}
    column = {"id": 2, "name": "n", "required": False, "type": type_, "write-default": default}
    data["schemas"][1]["fields"].append(column)
    return data


POINT = {
    "type": "struct",
    "fields": [
        {"id": 3, "name": "x", "required": False, "type": "int", "write-default": 7},
        {"id": 4, "name": "y", "required": False, "type": "int"},
    ],
}
INTS = {"type": "list", "element-id": 3, "element": "int", "element-required": True}
COUNTS = {
    "type": "map",
    "key-id": 3,
    "key": "string",
    "value-id": 4,
    "value": "long",
    "value-required": False,
}


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        (POINT, {}),
        (POINT, {"3": None}),
        (POINT, {"4": 1}),
        (INTS, [1, 2]),
        (INTS, []),
        (COUNTS, {"keys": ["a"], "values": [None]}),
        ("double", 1.0),
        ("decimal(4, 2)", "14.20"),
    ],
)
def test_defaults_come_back_as_they_were(type_: Any, default: Any) -> None:
    data = with_default(type_, default)
    written = metadata_to_json(metadata_from_json(data))
    assert written["schemas"][1]["fields"][1] == data["schemas"][1]["fields"][1]


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        (POINT, [1]),
        (POINT, {"3": "x"}),
        (INTS, 1),
        (INTS, "12"),
        (INTS, ["x"]),
        (INTS, [2**31]),
        (INTS, [None]),
        (COUNTS, []),
        (COUNTS, {"keys": ["a"]}),
        (COUNTS, {"keys": ["a"], "values": []}),
        (COUNTS, {"keys": [None], "values": [1]}),
        (COUNTS, {"keys": ["a", "a"], "values": [1, 2]}),
        (COUNTS, {"keys": ["a"], "values": [2**63]}),
        ("int", 2**31),
        ("float", 1e300),
        ("double", "1"),
        ("double", True),
        ("decimal(4, 2)", "1e999999999"),
        ("decimal(4, 2)", "NaN"),
        ("decimal(4, 2)", "x"),
        ("date", 3),
        ("uuid", 3),
        ("timestamp_ns", "9999-01-01T00:00:00"),
        ("variant", 1),
    ],
)
def test_a_wrong_default_is_named(type_: Any, default: Any) -> None:
    path = r"schemas\[1\]\.fields\[1\]\.write-default: not a"
    with pytest.raises(InvalidMetadataError, match=path):
        metadata_from_json(with_default(type_, default))


def marked(value: Any, known_maps: tuple[str, ...] = ("properties", "summary")) -> Any:
    """Add an unknown key to every JSON object except maps with arbitrary keys."""
    if isinstance(value, list):
        return [marked(v) for v in value]
    if not isinstance(value, dict):
        return value
    out = {k: v if k in known_maps else marked(v) for k, v in value.items()}
    if "refs" in out:
        out["refs"] = {name: marked(ref) for name, ref in value["refs"].items()}
    future = {"id": value.get("id"), "kept": [1, {"as": "it is"}]}
    return {**out, "x-future": future}


def v3_of_everything() -> dict[str, Any]:
    """Return v3 metadata that contains every kind of object."""
    data = {**v2(), "format-version": 3, "next-row-id": 7, "last-column-id": 20}
    element = {"type": "struct", "fields": [{**FIELD, "id": 11}]}
    structs = {**INTS, "element-id": 10, "element": element}
    nested = {
        "type": "struct",
        "fields": [
            {"id": 5, "name": "l", "required": False, "type": INTS},
            {"id": 6, "name": "m", "required": False, "type": {**COUNTS, "key-id": 8}},
            {"id": 9, "name": "n", "required": False, "type": structs},
        ],
    }
    column = {"id": 2, "name": "n", "required": False, "type": nested}
    data["schemas"][1]["fields"].append(column)
    snapshot = data["current-snapshot-id"]
    data["refs"] = {"main": {"snapshot-id": snapshot, "type": "branch"}}
    file = {"snapshot-id": snapshot, "statistics-path": "s", "file-size-in-bytes": 1}
    blob = {"type": "t", "snapshot-id": snapshot, "sequence-number": 1, "fields": [1]}
    data["statistics"] = [{**file, "file-footer-size-in-bytes": 1, "blob-metadata": [blob]}]
    data["partition-statistics"] = [file]
    data["encryption-keys"] = [{"key-id": "k", "encrypted-key-metadata": "bQ=="}]
    return data


def objects_in(value: Any) -> int:
    """Count the objects in JSON, without maps with arbitrary keys and values of unknown keys."""
    if isinstance(value, list):
        return sum(map(objects_in, value))
    if not isinstance(value, dict):
        return 0
    free = ("x-future", "properties", "summary")
    inner = sum(objects_in(v) for k, v in value.items() if k not in free)
    return 1 + inner


@pytest.mark.parametrize("data", [v1(), v2(), v3_of_everything()])
def test_keys_of_the_future_stay_in_their_objects(data: dict[str, Any]) -> None:
    plain = metadata_to_json(metadata_from_json(data))
    refs = plain["refs"]
    with_keys = marked(plain)
    with_keys["refs"] = {name: marked(ref) for name, ref in refs.items()}
    text = json.dumps(with_keys)
    assert text.count('"x-future"') == objects_in(plain) - 1  # the map of refs has no unknown key
    metadata = metadata_from_json(with_keys)
    assert metadata_to_json(metadata) == with_keys
    # Unknown keys are no part of the comparison of metadata; encryption keys are compared as JSON.
    without = replace(metadata, encryption_keys=metadata_from_json(plain).encryption_keys)
    assert without == metadata_from_json(plain)
    assert pickle.loads(pickle.dumps(metadata)).unknown == metadata.unknown


def test_keys_of_the_future_are_handed_on_by_changes() -> None:
    data = marked(v3_of_everything())
    data["refs"] = {"main": marked({"snapshot-id": data["current-snapshot-id"], "type": "branch"})}
    before = metadata_from_json(data)
    changes = SchemaChanges(before).rename_column("x", "y").add_column("z", "int")
    snapshot = Snapshot(
        snapshot_id=9,
        parent_snapshot_id=before.current_snapshot_id,
        sequence_number=35,
        timestamp_ms=before.last_updated_ms + 1,
        manifest_list="l",
        first_row_id=7,
        added_rows=0,
    )
    after = apply_updates(
        before,
        [
            *changes.changes(before).updates,
            AddSnapshot(snapshot),
            SetSnapshotRef("main", SnapshotRef(snapshot_id=9)),
            RemoveSnapshots((before.current_snapshot_id or 0,)),
        ],
        now_ms=1,
        previous_metadata_location="s3://a/2.json",
    )
    written = metadata_to_json(after)
    assert written["x-future"] == data["x-future"]
    assert [s["snapshot-id"] for s in written["snapshots"]] == [9]
    assert "x-future" not in written["snapshots"][0]
    assert written["refs"]["main"]["x-future"] == data["refs"]["main"]["x-future"]
    assert [("x-future" in e) for e in written["metadata-log"]] == [True, False]
    renamed, nested, added = written["schemas"][-1]["fields"]
    assert renamed["x-future"] == data["schemas"][1]["fields"][0]["x-future"]
    assert nested == data["schemas"][1]["fields"][1]
    assert "x-future" not in added
    assert metadata_to_json(metadata_from_json(written)) == written


def test_version_1_fields_in_version_2_are_ignored() -> None:
    data = {**v2(), "schema": 5, "partition-spec": "x", "statistics": None, "refs": None}
    written = metadata_to_json(metadata_from_json(data))
    assert written.keys() == metadata_to_json(metadata_from_json(v2())).keys()


def test_missing_spec_id_raises_invalid_metadata() -> None:
    m = metadata_from_json(v2())
    with pytest.raises(InvalidMetadataError, match="table s3://bucket/t has no partition spec 7"):
        _ = m.spec_by_id[7]
    assert m.spec_by_id.get(7) is None
    assert pickle.loads(pickle.dumps(m.schema_by_id)) == m.schema_by_id
