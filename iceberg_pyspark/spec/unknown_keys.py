"""Keeps unknown keys of metadata JSON in the objects that contain them.

A later version of the specification, or another writer, may have added unknown keys. Java drops
them at its next commit; here a commit copies them with the object that contains them. Objects are
matched by their identity (a snapshot by its id, a reference by its name); a new schema takes the
keys of the same fields of the current schema. Because the meaning of an unknown key is not known, a
change may make its value outdated; keys that readers must respect come with a new format version,
which is refused. Specification, Appendix C.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.json_fields import is_deeper, short_text

_MAX_DEPTH = 200
"""The deepest allowed nesting of an unknown value; deeper values could be read but not written."""

_Key: TypeAlias = tuple[Any, ...]
_ObjectAtKey: TypeAlias = Iterator[tuple[_Key, dict[str, Any], frozenset[str]]]

_TABLE = frozenset(
    [
        "format-version",
        "table-uuid",
        "location",
        "last-sequence-number",
        "last-updated-ms",
        "last-column-id",
        "schema",
        "schemas",
        "current-schema-id",
        "partition-spec",
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
        "properties",
        "current-snapshot-id",
        "snapshots",
        "snapshot-log",
        "metadata-log",
        "sort-orders",
        "default-sort-order-id",
        "refs",
        "statistics",
        "partition-statistics",
        "next-row-id",
        "encryption-keys",
    ]
)
_SCHEMA = frozenset(("type", "schema-id", "identifier-field-ids", "fields"))
_FIELD = frozenset(("id", "name", "required", "type", "doc", "initial-default", "write-default"))
_TYPES = {
    "struct": frozenset(("type", "fields")),
    "list": frozenset(("type", "element-id", "element", "element-required")),
    "map": frozenset(("type", "key-id", "key", "value-id", "value", "value-required")),
}
_SPEC = frozenset(("spec-id", "fields"))
_PARTITION_FIELD = frozenset(("source-id", "source-ids", "field-id", "name", "transform"))
_SORT_ORDER = frozenset(("order-id", "fields"))
_SORT_FIELD = frozenset(("transform", "source-id", "source-ids", "direction", "null-order"))
_SNAPSHOT = frozenset(
    [
        "snapshot-id",
        "parent-snapshot-id",
        "sequence-number",
        "timestamp-ms",
        "manifest-list",
        "manifests",
        "root-manifest",
        "summary",
        "schema-id",
        "first-row-id",
        "added-rows",
        "key-id",
    ]
)
_REF = frozenset(
    ["snapshot-id", "type", "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"]
)
_SNAPSHOT_LOG = frozenset(("timestamp-ms", "snapshot-id"))
_METADATA_LOG = frozenset(("timestamp-ms", "metadata-file"))
_STATISTICS = frozenset(
    [
        "snapshot-id",
        "statistics-path",
        "file-size-in-bytes",
        "file-footer-size-in-bytes",
        "blob-metadata",
        "key-metadata",
    ]
)
_BLOB = frozenset(("type", "snapshot-id", "sequence-number", "fields", "properties"))
_ENCRYPTION_KEY = frozenset(("key-id", "encrypted-key-metadata", "encrypted-by-id", "properties"))
_PARTITION_STATISTICS = frozenset(("snapshot-id", "statistics-path", "file-size-in-bytes"))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownKeys:
    """The unknown keys of metadata JSON with their values, by the object that contains them."""

    by_object: Mapping[_Key, Mapping[str, Any]] = field(default_factory=dict)
    schema_ids: frozenset[int] = frozenset()
    current_schema_id: int = 0


NOTHING_UNKNOWN = UnknownKeys()


def unknown_keys(data: dict[str, Any]) -> UnknownKeys:
    """Return the unknown keys of metadata JSON that was parsed without an error."""
    by_object = {
        key: {k: v for k, v in json_object.items() if k not in known_keys}
        for key, json_object, known_keys in _objects(data)
        if not json_object.keys() <= known_keys
    }
    if not by_object:
        return NOTHING_UNKNOWN
    for by_name in by_object.values():
        for name, value in by_name.items():
            if is_deeper(value, _MAX_DEPTH):
                raise InvalidMetadataError(
                    f"the unknown key {short_text(name)} is nested deeper than {_MAX_DEPTH} levels"
                )
    schema_ids = [s.get("schema-id") or 0 for s in _schemas(data)]
    current = data.get("current-schema-id")
    return UnknownKeys(
        by_object=by_object,
        schema_ids=frozenset(schema_ids),
        current_schema_id=schema_ids[0] if current is None else current,
    )


def put_back(unknown: UnknownKeys, data: dict[str, Any]) -> None:
    """Add the unknown keys to newly written metadata JSON, in those objects that still exist."""
    if not unknown.by_object:
        return
    for key, json_object, _ in _objects(data):
        if key[:1] == ("schema",) and key[1] not in unknown.schema_ids:
            key = ("schema", unknown.current_schema_id, *key[2:])
        for name, value in unknown.by_object.get(key, {}).items():
            json_object.setdefault(name, value)
    # version 1 repeats the current schema and the default spec at the top level
    if "schema" in data:
        data["schema"] = _one(data["schemas"], "schema-id", data["current-schema-id"])
    if "partition-spec" in data:
        spec = _one(data["partition-specs"], "spec-id", data["default-spec-id"])
        data["partition-spec"] = spec["fields"]


def _one(items: list[dict[str, Any]], key: str, value: int) -> dict[str, Any]:
    return next(item for item in items if item[key] == value)


def _schemas(data: dict[str, Any]) -> list[dict[str, Any]]:
    return data.get("schemas") or [data["schema"]]


def _specs(data: dict[str, Any]) -> list[dict[str, Any]]:
    return data.get("partition-specs") or [{"spec-id": 0, "fields": data["partition-spec"]}]


def _objects(data: dict[str, Any]) -> _ObjectAtKey:
    """Yield every object of metadata JSON with its identity and its known keys."""
    yield (), data, _TABLE
    for schema in _schemas(data):
        key: _Key = ("schema", schema.get("schema-id") or 0)
        yield key, schema, _SCHEMA
        yield from _fields(key, schema["fields"])
    for spec in _specs(data):
        key = ("spec", spec["spec-id"])
        yield key, spec, _SPEC
        yield from _list_items((*key, "field"), spec.get("fields"), _PARTITION_FIELD)
    for order in data.get("sort-orders") or ():
        key = ("order", order["order-id"])
        yield key, order, _SORT_ORDER
        yield from _list_items((*key, "field"), order["fields"], _SORT_FIELD)
    for snapshot in data.get("snapshots") or ():
        yield ("snapshot", snapshot["snapshot-id"]), snapshot, _SNAPSHOT
    for name, ref in (data.get("refs") or {}).items():
        yield ("ref", name), ref, _REF
    for entry in data.get("snapshot-log") or ():
        yield ("was", entry["snapshot-id"], entry["timestamp-ms"]), entry, _SNAPSHOT_LOG
    for entry in data.get("metadata-log") or ():
        yield ("file", entry["metadata-file"]), entry, _METADATA_LOG
    for file in data.get("statistics") or ():
        key = ("statistics", file["snapshot-id"], file["statistics-path"])
        yield key, file, _STATISTICS
        yield from _list_items((*key, "blob"), file.get("blob-metadata"), _BLOB)
    for file in data.get("partition-statistics") or ():
        key = ("partitions", file["snapshot-id"], file["statistics-path"])
        yield key, file, _PARTITION_STATISTICS
    for secret in data.get("encryption-keys") or ():
        yield ("secret", secret.get("key-id")), secret, _ENCRYPTION_KEY


def _list_items(
    key: _Key, items: list[dict[str, Any]] | None, known_keys: frozenset[str]
) -> _ObjectAtKey:
    for i, item in enumerate(items or ()):
        yield (*key, i), item, known_keys


def _fields(schema: _Key, fields: list[dict[str, Any]]) -> _ObjectAtKey:
    for f in fields:
        yield (*schema, "field", f["id"]), f, _FIELD
        yield from _type(schema, f["id"], f["type"])


def _type(schema: _Key, field_id: int, type_: Any) -> _ObjectAtKey:
    """Yield a nested type and its children; its key has the id of the field that has the type."""
    if not isinstance(type_, dict):
        return
    kind = type_["type"]
    yield (*schema, "type", field_id), type_, _TYPES[kind]
    if kind == "struct":
        yield from _fields(schema, type_["fields"])
    elif kind == "list":
        yield from _type(schema, type_["element-id"], type_["element"])
    else:
        yield from _type(schema, type_["key-id"], type_["key"])
        yield from _type(schema, type_["value-id"], type_["value"])
