"""Changes table properties, also those that contain column names, after a schema change.

Reserved names are refused, except `format-version`: setting it upgrades the table.

The name mapping (specification, "Column Projection") gets the new name of a renamed column in
addition to the old names, which existing files use, and a mapping for every new column. A name that
moves to another column is removed from the column that had it. Properties of a single column are
renamed or dropped with the column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from iceberg_pyspark.changes.changes import (
    Changes,
    RemoveProperties,
    SetProperties,
    TableUpdate,
    UpgradeFormatVersion,
    same_table,
)
from iceberg_pyspark.changes.compatibility import check_encryption
from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.name_mapping import (
    MappedField,
    NameMapping,
    mapped_field,
    name_mapping_from_text,
    name_mapping_to_text,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import (
    COLUMN_PREFIXES,
    DEFAULT_FORMAT_VERSION,
    FORMAT_VERSION,
    NAME_MAPPING,
    RESERVED_PROPERTIES,
    check_set_properties,
    int_property,
)
from iceberg_pyspark.spec.types import NestedField, PrimitiveType, StructType

Self = TypeVar("Self", bound="PropertyChanges")


@checked_methods
class PropertyChanges:
    """Changes of table properties, collected by `set` and `remove`."""

    def __init__(self) -> None:
        self._updates: dict[str, str] = {}
        self._removals: set[str] = set()

    def set(self: Self, updates: Mapping[str, str]) -> Self:
        """Set these properties; refuse an invalid value of a known property."""
        check_set_properties(updates)
        for name, value in updates.items():
            _check_name(name, self._removals)
            self._updates[name] = value
        return self

    def remove(self: Self, *names: str) -> Self:
        """Remove these properties; a name that is not set is not an error."""
        for name in names:
            _check_name(name, self._updates)
            if name == FORMAT_VERSION:
                raise InvalidRequestError(
                    f"property '{name}' is reserved and cannot be removed; leave it out"
                )
            self._removals.add(name)
        return self

    def changes(self, metadata: TableMetadata) -> Changes:
        """Return the updates of this metadata; the last writer wins, but only in the same table."""
        properties = {k: v for k, v in metadata.properties.items() if k not in self._removals}
        check_encryption(metadata, metadata.format_version, {**properties, **self._updates})
        updates: list[TableUpdate] = []
        if FORMAT_VERSION in self._updates:
            version = int_property(self._updates, FORMAT_VERSION, DEFAULT_FORMAT_VERSION)
            updates.append(UpgradeFormatVersion(version))
        values = {k: v for k, v in self._updates.items() if k != FORMAT_VERSION}
        if values:
            updates.append(SetProperties(values))
        if self._removals:
            updates.append(RemoveProperties(tuple(sorted(self._removals))))
        requirements = same_table(metadata.table_uuid) if updates else ()
        return Changes(updates=tuple(updates), requirements=requirements)


def _check_name(name: str, others: Mapping[str, str] | set[str]) -> None:
    if name in RESERVED_PROPERTIES and name != FORMAT_VERSION:
        raise InvalidRequestError(
            f"property '{name}' is reserved: it cannot be set or removed; leave it out"
        )
    if name in others:
        raise InvalidRequestError(f"property '{name}' is both set and removed; do one of them")


def column_property_updates(
    properties: Mapping[str, str], before: Schema, after: Schema
) -> tuple[TableUpdate, ...]:
    """Return the updates of a table's properties after a change from one schema to another."""
    updates = _renamed_properties(properties, before, after)
    updates |= name_mapping_property(properties, before, after)
    values = {name: value for name, value in updates.items() if value is not None}
    removed_names = tuple(sorted(name for name, value in updates.items() if value is None))
    return (
        *([SetProperties(values)] if values else []),
        *([RemoveProperties(removed_names)] if removed_names else []),
    )


def name_mapping_property(
    properties: Mapping[str, str], before: Schema, after: Schema
) -> dict[str, str]:
    """Return the name mapping of a table as a property if a change of its schema changes it."""
    text = properties.get(NAME_MAPPING)
    if text is None:
        return {}
    new_text = _updated_text(text, before, after)
    return {} if new_text == text else {NAME_MAPPING: new_text}


def _renamed_properties(
    properties: Mapping[str, str], before: Schema, after: Schema
) -> dict[str, str | None]:
    """Return the changed properties of single columns, by name; None: remove the property."""
    updates: dict[str, str | None] = {}
    for key, value in properties.items():
        prefix = next((p for p in COLUMN_PREFIXES if key.startswith(p)), None)
        if prefix is None:
            continue
        field_id = before.id_by_name.get(key.removeprefix(prefix))
        if field_id is None:
            continue
        new_name = after.name_by_id.get(field_id)
        if new_name is not None and f"{prefix}{new_name}" == key:
            continue
        updates.setdefault(key, None)
        if new_name is not None:
            updates[f"{prefix}{new_name}"] = value
    return updates


def _updated_text(text: str, before: Schema, after: Schema) -> str:
    try:
        mapping = name_mapping_from_text(text)
    except InvalidMetadataError:
        # Readers report a damaged mapping; as in Java, it does not prevent a change of columns.
        return text
    new_mapping = updated_name_mapping(mapping, before, after)
    return text if new_mapping == mapping else name_mapping_to_text(new_mapping)


def updated_name_mapping(mapping: NameMapping, before: Schema, after: Schema) -> NameMapping:
    """Return the name mapping after a change from one schema to another."""
    return NameMapping(fields=_Update.between(before, after).of_fields(mapping.fields, None))


@dataclass(frozen=True, slots=True)
class _Update:
    """The new names of columns by field id, and the new columns by the id of their parent field."""

    names: Mapping[int, str]
    added_fields: Mapping[int | None, Collection[NestedField]]

    @staticmethod
    def between(before: Schema, after: Schema) -> _Update:
        names: dict[int, str] = {}
        added_fields: dict[int | None, list[NestedField]] = {}
        for field_id, f in sorted(after.field_by_id.items()):
            old = before.field_by_id.get(field_id)
            parent_id = after.parent_by_id.get(field_id)
            if old is None:
                # a nested column comes with its new parent
                if parent_id is None or parent_id in before.field_by_id:
                    added_fields.setdefault(parent_id, []).append(f)
            elif not _alike(old, f):
                names[field_id] = f.name
        return _Update(names, added_fields)

    def of_fields(
        self, fields: tuple[MappedField, ...], parent_id: int | None
    ) -> tuple[MappedField, ...]:
        """Return the mapped fields of a struct, list or map, with its new fields appended."""
        new_fields = [self._of_field(f) for f in fields]
        id_by_name = {
            self.names[f.field_id]: f.field_id
            for f in fields
            if f.field_id is not None and f.field_id in self.names
        }
        new = self.added_fields.get(parent_id, ())
        id_by_name |= {f.name: f.field_id for f in new}
        others = (_without_names_of_others(f, id_by_name) for f in new_fields)
        return (*others, *map(mapped_field, new))

    def _of_field(self, f: MappedField) -> MappedField:
        name = None if f.field_id is None else self.names.get(f.field_id)
        names = f.names if name is None or name in f.names else (*f.names, name)
        inner = f.fields if f.field_id is None else self.of_fields(f.fields, f.field_id)
        return replace(f, names=names, fields=inner)


def _without_names_of_others(f: MappedField, id_by_name: Mapping[str, int]) -> MappedField:
    names = tuple(n for n in f.names if id_by_name.get(n, f.field_id) == f.field_id)
    return f if names == f.names else replace(f, names=names)


def _alike(old: NestedField, new: NestedField) -> bool:
    """Return whether the column itself is unchanged; changes of nested fields do not count."""
    if isinstance(old.type, PrimitiveType) and old.type != new.type:
        return False
    empty = StructType(())
    return replace(old, type=empty) == replace(new, type=empty)
