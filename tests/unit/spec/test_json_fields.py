"""Typed fields of JSON; all fields of table metadata are read through them."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.json_fields import MAX_INT32, MAX_INT64, JsonObject, parse_json
from iceberg_pyspark.spec.name_mapping import name_mapping_from_text
from iceberg_pyspark.spec.table_metadata import metadata_from_json

_SNAPSHOT = 3055729675574597004
_SCHEMA = {
    "type": "struct",
    "schema-id": 1,
    "identifier-field-ids": [1],
    "fields": [
        {"id": 1, "name": "x", "required": True, "type": "long", "doc": "c"},
        {"id": 2, "name": "d", "required": False, "type": "int", "initial-default": 7},
        {
            "id": 3,
            "name": "l",
            "required": False,
            "type": {
                "type": "list",
                "element-id": 4,
                "element-required": False,
                "element": {
                    "type": "map",
                    "key-id": 5,
                    "key": "string",
                    "value-id": 6,
                    "value-required": False,
                    "value": {
                        "type": "struct",
                        "fields": [{"id": 7, "name": "y", "required": False, "type": "date"}],
                    },
                },
            },
        },
    ],
}
METADATA: dict[str, Any] = {
    "format-version": 3,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "s3://bucket/t",
    "last-sequence-number": 34,
    "last-updated-ms": 1602638573590,
    "last-column-id": 7,
    "current-schema-id": 1,
    "schemas": [_SCHEMA],
    "default-spec-id": 0,
    "partition-specs": [
        {
            "spec-id": 0,
            "fields": [
                {"name": "x", "transform": "bucket[4]", "source-id": 1, "field-id": 1000},
                {"name": "m", "transform": "zorder", "source-ids": [1, 2], "field-id": 1001},
            ],
        }
    ],
    "last-partition-id": 1001,
    "default-sort-order-id": 3,
    "sort-orders": [
        {
            "order-id": 3,
            "fields": [
                {
                    "transform": "identity",
                    "source-id": 1,
                    "direction": "desc",
                    "null-order": "nulls-last",
                }
            ],
        }
    ],
    "properties": {"k": "v"},
    "current-snapshot-id": _SNAPSHOT,
    "next-row-id": 5,
    "snapshots": [
        {
            "snapshot-id": _SNAPSHOT,
            "parent-snapshot-id": 7,
            "timestamp-ms": 1555100955770,
            "sequence-number": 1,
            "summary": {"operation": "append"},
            "manifest-list": "s3://a/b/2.avro",
            "schema-id": 1,
            "first-row-id": 0,
            "added-rows": 5,
            "key-id": "k",
        }
    ],
    "snapshot-log": [{"snapshot-id": _SNAPSHOT, "timestamp-ms": 1555100955770}],
    "metadata-log": [{"metadata-file": "s3://a/1.json", "timestamp-ms": 1}],
    "refs": {
        "v": {"snapshot-id": _SNAPSHOT, "type": "tag", "max-ref-age-ms": 10},
        "main": {
            "snapshot-id": _SNAPSHOT,
            "type": "branch",
            "min-snapshots-to-keep": 2,
            "max-snapshot-age-ms": 3,
        },
    },
    "statistics": [
        {
            "snapshot-id": _SNAPSHOT,
            "statistics-path": "s3://a/b/stats.puffin",
            "file-size-in-bytes": 413,
            "file-footer-size-in-bytes": 42,
            "key-metadata": "AA",
            "blob-metadata": [
                {
                    "type": "boring-type",
                    "snapshot-id": _SNAPSHOT,
                    "sequence-number": 2,
                    "fields": [1],
                    "properties": {"p": "v"},
                }
            ],
        }
    ],
    "partition-statistics": [
        {"snapshot-id": _SNAPSHOT, "statistics-path": "s3://p", "file-size-in-bytes": 43}
    ],
    "encryption-keys": [
        {
            "key-id": "k",
            "encrypted-key-metadata": "AA",
            "encrypted-by-id": "b",
            "properties": {"a": "b"},
        }
    ],
}


def _places(value: Any, path: str = "") -> Iterator[tuple[list[Any], str]]:
    """Yield the keys to every nested value, and the path by which errors name the value."""
    children: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, dict):
        children = iter(value.items())
    elif isinstance(value, list):
        children = iter(enumerate(value))
    for key, child in children:
        place = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}" if path else key
        yield [key], place
        for keys, below in _places(child, place):
            yield [key, *keys], below


_PLACES = list(_places(METADATA))


def _with(keys: list[Any], value: Any) -> dict[str, Any]:
    metadata = copy.deepcopy(METADATA)
    at: Any = metadata
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    return metadata


def test_the_metadata_is_valid_and_has_every_kind_of_field() -> None:
    assert metadata_from_json(METADATA).current_schema.identifier_field_ids == (1,)
    assert len(_PLACES) > 100


@pytest.mark.parametrize(("keys", "path"), _PLACES, ids=[path for _, path in _PLACES])
def test_a_field_of_the_wrong_type_is_refused_by_its_path(keys: list[Any], path: str) -> None:
    was: Any = METADATA
    for key in keys:
        was = was[key]
    wrong: list[Any] = [True, 1.5, ["\ud800"]] if was is not True else [1, "true"]
    if isinstance(was, int):
        wrong += [str(was), 2**63, {}]
    else:
        wrong += [7, {"a": 1} if isinstance(was, str | list) else "x", "\ud800"]
    if isinstance(was, bool):
        wrong = [1, 0, "true", None, []]
    for value in wrong:
        with pytest.raises(InvalidMetadataError, match="^" + re.escape(path)):
            metadata_from_json(_with(keys, value))


_MAPS_OF_STRINGS = ("summary", "properties", "refs")
_OPTIONAL = [
    (keys, path)
    for keys, path in _PLACES
    if isinstance(keys[-1], str) and not set(_MAPS_OF_STRINGS) & set(keys[:-1])
]


@pytest.mark.parametrize(("keys", "path"), _OPTIONAL, ids=[path for _, path in _OPTIONAL])
def test_null_is_as_good_as_missing(keys: list[Any], path: str) -> None:
    absent = copy.deepcopy(METADATA)
    at: Any = absent
    for key in keys[:-1]:
        at = at[key]
    del at[keys[-1]]
    assert _outcome(_with(keys, None)) == _outcome(absent)


def _outcome(data: Any) -> Any:
    try:
        return metadata_from_json(data)
    except InvalidMetadataError as e:
        return str(e).partition(",")[0]


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (["last-column-id"], 2**31, r"^last-column-id: must be 0 to 2147483647"),
        (["snapshots", 0, "sequence-number"], -1, r"^snapshots\[0\]\.sequence-number: must be 0"),
        (["snapshots", 0, "timestamp-ms"], 2**62, r"^snapshots\[0\]\.timestamp-ms: must be"),
        (["refs", "v", "max-ref-age-ms"], 0, r"^refs\.v\.max-ref-age-ms: must be 1 to"),
        (["schemas", 0, "fields", 0, "id"], -1, r"^schemas\[0\]\.fields\[0\]\.id: must be 0"),
        (["schemas", 0, "fields", 0, "id"], 2147483645, r"fields\[0\]\.id: ids above \d+ are"),
        (["schemas", 0, "fields", 1, "name"], "x", r"^schemas\[0\]\.fields: name 'x' occurs twice"),
        (["schemas", 0, "fields", 1, "id"], 7, r"^schemas\[0\]: schema 1: field id 7 is used by"),
        (["schemas", 0, "identifier-field-ids"], [9], r"identifier-field-ids\[0\]: no field has"),
        (["schemas", 0, "fields", 1, "initial-default"], 2**31, r"initial-default: not a int: "),
        (["schemas", 0, "fields", 0, "type"], "decimal(9,10)", r"decimal scale must be 0 to the"),
        (["schemas", 0, "fields", 0, "type"], "fixed[2147483648]", r"fixed length must be 0 to"),
        (["partition-specs", 0, "fields", 1, "field-id"], 1000, r"field-id 1000 occurs twice"),
        (["partition-specs", 0, "fields", 1, "name"], "x", r"fields: name 'x' occurs twice"),
        (
            ["partition-specs", 0, "fields", 0, "transform"],
            "bucket[" + "9" * 5000 + "]",
            r"fields\[0\]: transform 'bucket\[9+': the argument must be 1 to 2147483647",
        ),
        (["sort-orders", 0, "fields", 0, "direction"], "up", r"direction: must be asc or desc"),
    ],
)
def test_field_with_a_wrong_value_is_refused(keys: list[Any], value: Any, message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        metadata_from_json(_with(keys, value))


def test_last_ids_are_at_least_the_ids_in_use() -> None:
    m = metadata_from_json({**METADATA, "last-column-id": 2, "last-partition-id": 1})
    assert (m.last_column_id, m.last_partition_id) == (7, 1001)


def test_a_snapshot_id_that_occurs_twice_is_refused() -> None:
    twice = METADATA["snapshots"] * 2
    with pytest.raises(InvalidMetadataError, match=r"^snapshots: snapshot-id 30557.* occurs twice"):
        metadata_from_json({**METADATA, "snapshots": twice})


def test_types_that_nest_without_end_are_refused_and_a_hundred_levels_are_read() -> None:
    def nested(levels: int) -> dict[str, Any]:
        type_: Any = "int"
        for i in range(levels):
            type_ = {
                "type": "list",
                "element-id": 100 + i,
                "element-required": False,
                "element": type_,
            }
        return _with(["schemas", 0, "fields", 2, "type"], type_)

    # The table's top-level struct counts as a level too.
    assert "list<list<" in str(metadata_from_json(nested(99)).current_schema.fields[2].type)
    for levels in (100, 5000):
        with pytest.raises(InvalidMetadataError, match="types nest deeper than 100 levels"):
            metadata_from_json(nested(levels))


@pytest.mark.parametrize("text", ["NaN", '{"a": -Infinity}', "[" * 100_000, "{"])
def test_invalid_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidMetadataError, match=r"^here: not valid JSON"):
        parse_json(text, "here")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"names": [1]}]', r"default\[0\]\.names\[0\]: expected a string, got 1"),
        ('[{"names": ["a"], "field-id": "1"}]', r"default\[0\]\.field-id: required integer"),
        ('[{"names": ["a"], "fields": {}}]', r"default\[0\]\.fields: required list, got an object"),
        ('[{"names": [], "fields": ' * 200 + "[]" + "}]" * 200, "nested deeper than 100 levels"),
        ("{}", "default: expected a list"),
    ],
)
def test_name_mappings_are_checked_by_path(text: str, message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        name_mapping_from_text(text)


def test_limits_are_inclusive() -> None:
    o = JsonObject({"a": MAX_INT32, "b": -(2**31), "c": MAX_INT64, "d": -(2**63)})
    assert (o.int32("a"), o.int32("b"), o.int64("c"), o.int64("d")) == (
        *(2147483647, -2147483648),
        *(2**63 - 1, -(2**63)),
    )
