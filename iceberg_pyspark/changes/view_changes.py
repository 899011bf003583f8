"""Defines updates and requirements of views as values, and applies them to view metadata.

View specification, "View Metadata" and "Versions"; the updates are those of the REST catalog.
Java's rules beyond the specification: an equal existing version is reused, versions beyond
`version.history.num-entries` are dropped, and a dialect may be dropped only if
`replace.drop-dialect.allowed` is true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from iceberg_pyspark.changes.apply_schemas import same_schema
from iceberg_pyspark.changes.changes import (
    LAST_ADDED,
    AddSchema,
    AssignUUID,
    RemoveProperties,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)
from iceberg_pyspark.errors import CommitConflictError, InvalidRequestError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_properties import bool_property
from iceberg_pyspark.spec.views import (
    DROP_DIALECT_ALLOWED,
    VERSION_HISTORY_SIZE,
    VIEW_FORMAT_VERSION,
    Representation,
    SqlRepresentation,
    VersionLogEntry,
    ViewMetadata,
    ViewVersion,
)


@dataclass(frozen=True, slots=True)
class AddViewVersion:
    """An update that adds a version; applying it assigns its id; schema id may be `LAST_ADDED`."""

    version: ViewVersion


@dataclass(frozen=True, slots=True)
class SetCurrentViewVersion:
    """An update that makes a version the current one; the id may be `LAST_ADDED`."""

    version_id: int


@dataclass(frozen=True, slots=True)
class AssertViewUUID:
    """The requirement that the view was not replaced by another one of the same name."""

    uuid: str


ViewUpdate: TypeAlias = (
    AssignUUID
    | UpgradeFormatVersion
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion
)


def view_definition_updates(
    schema: Schema,
    representations: Sequence[Representation],
    *,
    default_namespace: tuple[str, ...],
    default_catalog: str | None = None,
    summary: Mapping[str, str] | None = None,
    now_ms: int,
) -> tuple[ViewUpdate, ...]:
    """Return the updates that set the definition of a new view or of an existing view."""
    version = ViewVersion(
        version_id=1,
        schema_id=LAST_ADDED,
        timestamp_ms=now_ms,
        representations=tuple(representations),
        default_namespace=default_namespace,
        default_catalog=default_catalog,
        summary=dict(summary or {}),
    )
    return (
        AddSchema(schema, schema.highest_field_id),
        AddViewVersion(version),
        SetCurrentViewVersion(LAST_ADDED),
    )


def new_view_metadata(
    definition: Sequence[ViewUpdate],
    location: str,
    properties: Mapping[str, str],
    *,
    view_uuid: str,
    now_ms: int,
) -> ViewMetadata:
    """Return the first metadata of a view."""
    updates = (AssignUUID(view_uuid), SetLocation(location), SetProperties(dict(properties)))
    return apply_view_updates(None, (*updates, *definition), now_ms=now_ms)


def check_view_requirement(requirement: AssertViewUUID, view: ViewMetadata) -> None:
    """Raise `CommitConflictError` unless the view has the required UUID."""
    if view.view_uuid.lower() != requirement.uuid.lower():
        raise CommitConflictError(
            f"view {view.location} was replaced by another view: its view-uuid is "
            f"{view.view_uuid}, expected {requirement.uuid}; load the view again by its name"
        )


def apply_view_updates(
    base: ViewMetadata | None, updates: Sequence[ViewUpdate], *, now_ms: int
) -> ViewMetadata:
    """Return the metadata after the updates, or `base` itself if nothing changes.

    If `base` is None, the updates create a new view. Raises `InvalidRequestError` for an update
    that does not fit.
    """
    builder = _ViewBuilder(base, now_ms)
    for update in updates:
        builder.apply(update)
    metadata = builder.finish()
    return base if base is not None and metadata == base else metadata


class _ViewBuilder:
    """View metadata under construction."""

    def __init__(self, base: ViewMetadata | None, now_ms: int) -> None:
        self._base = base
        self._now_ms = now_ms
        self._view = base or ViewMetadata(
            view_uuid="",
            location="",
            schemas=(),
            versions=(),
            current_version_id=LAST_ADDED,
            version_log=(),
        )
        self._last_schema_id: int | None = None
        self._last_version_id: int | None = None
        self._added_versions: set[int] = set()

    def apply(self, update: ViewUpdate) -> None:
        """Apply one update."""
        view = self._view
        match update:
            case AssignUUID(uuid):
                if view.view_uuid and view.view_uuid.lower() != uuid.lower():
                    raise InvalidRequestError(
                        f"view {view.location} has the UUID {view.view_uuid}, which cannot change"
                    )
                self._view = replace(view, view_uuid=view.view_uuid or uuid)
            case UpgradeFormatVersion(version):
                if version != VIEW_FORMAT_VERSION:
                    raise InvalidRequestError(
                        f"format-version {version} of a view is not known (1 is)"
                    )
            case AddSchema(schema):
                self._add_schema(schema)
            case SetLocation(location):
                self._view = replace(view, location=location.rstrip("/") or "/")
            case SetProperties(updated):
                self._view = replace(view, properties={**view.properties, **updated})
            case RemoveProperties(removals):
                properties = {k: v for k, v in view.properties.items() if k not in removals}
                self._view = replace(view, properties=properties)
            case AddViewVersion(version):
                self._add_version(version)
            case SetCurrentViewVersion(version_id):
                self._set_current(version_id)

    def _add_schema(self, schema: Schema) -> None:
        schemas = self._view.schemas
        same = next((s for s in schemas if same_schema(s, schema)), None)
        if same is None:
            same = replace(schema, schema_id=max((s.schema_id for s in schemas), default=-1) + 1)
            self._view = replace(self._view, schemas=(*schemas, same))
        self._last_schema_id = same.schema_id

    def _add_version(self, version: ViewVersion) -> None:
        schema_id = version.schema_id
        if schema_id == LAST_ADDED:
            schema_id = _last(self._last_schema_id, "schema")
        if schema_id not in {s.schema_id for s in self._view.schemas}:
            raise InvalidRequestError(
                f"a view version asks for schema {schema_id}, which does not exist"
            )
        _check_dialects(version)
        versions = self._view.versions
        version = replace(version, schema_id=schema_id)
        same = next((v for v in versions if _same_definition(v, version)), None)
        if same is None:
            highest = max((v.version_id for v in versions), default=0)
            same = replace(version, version_id=highest + 1)
            self._view = replace(self._view, versions=(*versions, same))
            self._added_versions.add(same.version_id)
        self._last_version_id = same.version_id

    def _set_current(self, version_id: int) -> None:
        if version_id == LAST_ADDED:
            version_id = _last(self._last_version_id, "version")
        view = self._view
        version = next((v for v in view.versions if v.version_id == version_id), None)
        if version is None:
            ids = ", ".join(str(v.version_id) for v in view.versions)
            raise InvalidRequestError(f"the view has no version {version_id}; it has {ids}")
        if view.current_version_id == version_id:
            return
        is_new = version_id in self._added_versions
        entry = VersionLogEntry(version.timestamp_ms if is_new else self._now_ms, version_id)
        self._view = replace(
            view, current_version_id=version_id, version_log=(*view.version_log, entry)
        )

    def finish(self) -> ViewMetadata:
        """Return the metadata without versions beyond the history size; refuse incomplete views."""
        view = self._view
        if not view.location or not view.view_uuid or not view.version_log:
            raise InvalidRequestError("a new view needs a location, a UUID and a current version")
        size = VERSION_HISTORY_SIZE.of(view.properties)
        self._check_lost_dialects()
        return _without_old_versions(view, max(size, len(self._added_versions)))

    def _check_lost_dialects(self) -> None:
        base, view = self._base, self._view
        if base is None or bool_property(view.properties, DROP_DIALECT_ALLOWED, False):
            return
        lost_dialects = _dialects(base.current_version) - _dialects(view.current_version)
        if lost_dialects:
            raise InvalidRequestError(
                f"view {view.location}: the new version has no query in "
                f"{', '.join(sorted(lost_dialects))}, "
                f"which the current one has; give one, or set the view's property "
                f"{DROP_DIALECT_ALLOWED} to true"
            )


def _last(last_id: int | None, kind: str) -> int:
    if last_id is None:
        raise InvalidRequestError(f"the last added {kind} is referenced, but none was added")
    return last_id


def _same_definition(a: ViewVersion, b: ViewVersion) -> bool:
    return replace(a, version_id=0, timestamp_ms=0) == replace(b, version_id=0, timestamp_ms=0)


def _dialects(version: ViewVersion) -> set[str]:
    sql = (r for r in version.representations if isinstance(r, SqlRepresentation))
    return {r.dialect.lower() for r in sql}


def _check_dialects(version: ViewVersion) -> None:
    dialects: set[str] = set()
    for r in version.representations:
        if isinstance(r, SqlRepresentation):
            if r.dialect.lower() in dialects:
                raise InvalidRequestError(f"a view version has two queries in dialect {r.dialect}")
            dialects.add(r.dialect.lower())


def _without_old_versions(view: ViewMetadata, size: int) -> ViewMetadata:
    """Return the view with its newest versions and the current one, and a log without gaps."""
    others = sorted(v.version_id for v in view.versions if v.version_id != view.current_version_id)
    if len(others) < size:
        return view
    version_ids = {view.current_version_id, *others[len(others) - size + 1 :]}
    log: list[VersionLogEntry] = []
    for entry in reversed(view.version_log):
        if entry.version_id not in version_ids:
            break
        log.append(entry)
    versions = tuple(v for v in view.versions if v.version_id in version_ids)
    return replace(view, versions=versions, version_log=tuple(reversed(log)))
