"""Views as Python values: metadata, versions, representations, and their JSON.

View specification, "View Metadata", "Versions", "Representations" and "Version Log". Changes to a
view are in `changes/view_changes.py`. A representation of unknown type is kept as it was read, so
that an unrelated change does not lose it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from iceberg_pyspark.errors import InvalidMetadataError, UnsupportedFeatureError
from iceberg_pyspark.redaction import redact_properties
from iceberg_pyspark.spec.json_fields import JsonObject, compact_json, parse_json
from iceberg_pyspark.spec.property_types import IntProperty
from iceberg_pyspark.spec.schema import Schema, schema_from_json, schema_to_json

VIEW_FORMAT_VERSION = 1
VERSION_HISTORY_SIZE = IntProperty("version.history.num-entries", 10, 1)
"""The number of versions that a view keeps; name and default are Java's."""
DROP_DIALECT_ALLOWED = "replace.drop-dialect.allowed"
"""Whether a new version may lack a dialect that the current one has; false by default."""
_SQL = "sql"
_KEYS = frozenset(
    [
        "view-uuid",
        "format-version",
        "location",
        "schemas",
        "current-version-id",
        "versions",
        "version-log",
        "properties",
    ]
)


@dataclass(frozen=True, slots=True)
class SqlRepresentation:
    """The query of a view in one SQL dialect, such as `spark`."""

    sql: str
    dialect: str


@dataclass(frozen=True, slots=True)
class UnknownRepresentation:
    """A representation of another type, as unparsed JSON."""

    content: Mapping[str, Any] = field(hash=False)


Representation: TypeAlias = SqlRepresentation | UnknownRepresentation


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewVersion:
    """One definition of a view.

    Names without a catalog in its queries refer to `default_catalog`, or to the catalog of the view
    if `default_catalog` is None. Names without a namespace refer to `default_namespace`.
    """

    version_id: int
    schema_id: int
    timestamp_ms: int
    representations: tuple[Representation, ...]
    default_namespace: tuple[str, ...]
    default_catalog: str | None = None
    summary: Mapping[str, str] = field(default_factory=dict)

    def sql(self, dialect: str) -> str | None:
        """Return the query in a dialect (case-insensitive), or None if there is no such query."""
        for r in self.representations:
            if isinstance(r, SqlRepresentation) and r.dialect.lower() == dialect.lower():
                return r.sql
        return None


@dataclass(frozen=True, slots=True)
class VersionLogEntry:
    """The time at which a version became the current version."""

    timestamp_ms: int
    version_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewMetadata:
    """The content of a view's metadata file; `unknown` holds the JSON keys that are not known."""

    view_uuid: str
    location: str
    schemas: tuple[Schema, ...]
    versions: tuple[ViewVersion, ...]
    current_version_id: int
    version_log: tuple[VersionLogEntry, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    format_version: int = VIEW_FORMAT_VERSION
    unknown: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __repr__(self) -> str:
        return (
            f"ViewMetadata({self.view_uuid}, version {self.current_version_id} of "
            f"{[v.version_id for v in self.versions]}, {self.location!r}, "
            f"{redact_properties(self.properties)})"
        )

    @property
    def current_version(self) -> ViewVersion:
        """The definition that queries use."""
        return self.version(self.current_version_id)

    @property
    def schema(self) -> Schema:
        """The schema of the current version."""
        return self.schema_of(self.current_version)

    def version(self, version_id: int) -> ViewVersion:
        """Return the version with the id, which must exist."""
        return next(v for v in self.versions if v.version_id == version_id)

    def schema_of(self, version: ViewVersion) -> Schema:
        """Return the schema of one version."""
        return next(s for s in self.schemas if s.schema_id == version.schema_id)


def view_metadata_to_json(view: ViewMetadata) -> dict[str, Any]:
    """Return view metadata as the JSON object that the specification defines."""
    out: dict[str, Any] = {
        "view-uuid": view.view_uuid,
        "format-version": view.format_version,
        "location": view.location,
        "schemas": [schema_to_json(s) for s in view.schemas],
        "current-version-id": view.current_version_id,
        "versions": [view_version_to_json(v) for v in view.versions],
        "version-log": [
            {"timestamp-ms": e.timestamp_ms, "version-id": e.version_id} for e in view.version_log
        ],
        "properties": dict(view.properties),
    }
    return {**view.unknown, **out}


def view_metadata_to_bytes(view: ViewMetadata) -> bytes:
    """Return the content of a view's metadata file, uncompressed."""
    return compact_json(view_metadata_to_json(view)).encode("utf-8")


def view_metadata_from_bytes(data: bytes, path: str) -> ViewMetadata:
    """Parse an uncompressed view metadata file; errors start with `path`."""
    content = parse_json(data, path)
    try:
        return view_metadata_from_json(content)
    except (InvalidMetadataError, UnsupportedFeatureError) as e:
        raise type(e)(f"{path}: {e}") from e


def view_metadata_from_json(data: Any) -> ViewMetadata:
    """Parse view metadata; errors name the JSON path and the rule."""
    o = JsonObject(data)
    format_version = o.int32("format-version")
    if format_version != VIEW_FORMAT_VERSION:
        raise UnsupportedFeatureError(
            f"format-version {format_version} of a view is not supported (1 is); "
            "read the view with a newer version of this package"
        )
    schemas = tuple(map(schema_from_json, o.objects("schemas")))
    versions = tuple(map(view_version_from_json, o.objects("versions")))
    _check_ids(o, "schemas", "schema-id", [s.schema_id for s in schemas])
    _check_ids(o, "versions", "version-id", [v.version_id for v in versions])
    schema_ids = {s.schema_id for s in schemas}
    for i, version in enumerate(versions):
        if version.schema_id not in schema_ids:
            raise InvalidMetadataError(f"versions[{i}].schema-id: no schema {version.schema_id}")
    current = o.int32("current-version-id")
    if current not in {v.version_id for v in versions}:
        raise o.wrong("current-version-id", "must be the id of a version")
    return ViewMetadata(
        view_uuid=o.string("view-uuid"),
        format_version=format_version,
        location=o.string("location").rstrip("/") or "/",
        schemas=schemas,
        versions=versions,
        current_version_id=current,
        version_log=tuple(
            VersionLogEntry(e.time_ms("timestamp-ms"), e.int32("version-id"))
            for e in o.objects("version-log")
        ),
        properties=o.string_map("properties"),
        unknown={name: o.value(name) for name in o.names() if name not in _KEYS},
    )


def view_version_to_json(version: ViewVersion) -> dict[str, Any]:
    """Return a version as the JSON object of the specification and the REST catalog."""
    out: dict[str, Any] = {
        "version-id": version.version_id,
        "timestamp-ms": version.timestamp_ms,
        "schema-id": version.schema_id,
        "summary": dict(version.summary),
    }
    if version.default_catalog is not None:
        out["default-catalog"] = version.default_catalog
    out["default-namespace"] = list(version.default_namespace)
    out["representations"] = [_representation_to_json(r) for r in version.representations]
    return out


def view_version_from_json(data: JsonObject) -> ViewVersion:
    """Parse a version; errors name the JSON path."""
    return ViewVersion(
        version_id=data.int32("version-id"),
        schema_id=data.int32("schema-id"),
        timestamp_ms=data.time_ms("timestamp-ms"),
        summary=data.string_map("summary"),
        default_catalog=data.optional_string("default-catalog"),
        default_namespace=data.strings("default-namespace"),
        representations=tuple(map(_representation_from_json, data.objects("representations"))),
    )


def _representation_to_json(representation: Representation) -> dict[str, Any]:
    match representation:
        case SqlRepresentation(sql, dialect):
            return {"type": _SQL, "sql": sql, "dialect": dialect}
        case UnknownRepresentation(content):
            return dict(content)


def _representation_from_json(data: JsonObject) -> Representation:
    if data.string("type").lower() != _SQL:
        return UnknownRepresentation({name: data.value(name) for name in data.names()})
    return SqlRepresentation(data.string("sql"), data.string("dialect"))


def _check_ids(o: JsonObject, key: str, name: str, ids: list[int]) -> None:
    if not ids:
        raise o.wrong(key, "must not be empty")
    for i, value in enumerate(ids):
        if value in ids[:i]:
            raise InvalidMetadataError(f"{key}[{i}].{name}: {value} occurs twice")
