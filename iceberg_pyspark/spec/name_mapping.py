"""Name mapping: field ids for data files that contain none.

Specification, "Column Projection" and "Name Mapping Serialization".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.json_fields import JsonObject, parse_json, short_text
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import MAX_TYPE_DEPTH, NestedField, Type, children_of

_PROPERTY = "schema.name-mapping.default"


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedField:
    """The names that a field may have in a file; if `field_id` is None, they map to no field."""

    field_id: int | None
    names: tuple[str, ...]
    fields: tuple[MappedField, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NameMapping:
    """The mapped fields at the top level of a table; a dot in a name does not mean nesting."""

    fields: tuple[MappedField, ...]


def field_by_name(fields: tuple[MappedField, ...]) -> Mapping[str, MappedField]:
    """Return the mapped field of each name; the first, if several have a name.

    List elements are named `element`, map parts `key` and `value`.
    """
    return {name: f for f in reversed(fields) for name in f.names}


def name_mapping_from_text(text: str) -> NameMapping:
    """Parse the value of the property `schema.name-mapping.default`."""
    data = parse_json(text, _PROPERTY)
    if not isinstance(data, list):
        raise InvalidMetadataError(f"{_PROPERTY}: expected a list, got {short_text(data)}")
    return NameMapping(
        fields=_fields_from_json([JsonObject(f, f"{_PROPERTY}[{i}]") for i, f in enumerate(data)])
    )


def _fields_from_json(items: Sequence[JsonObject], depth: int = 1) -> tuple[MappedField, ...]:
    if items and depth > MAX_TYPE_DEPTH:
        raise InvalidMetadataError(f"{_PROPERTY}: nested deeper than {MAX_TYPE_DEPTH} levels")
    return tuple(
        MappedField(
            field_id=item.optional_int32("field-id"),
            names=item.strings("names"),
            fields=_fields_from_json(item.objects("fields"), depth + 1),
        )
        for item in items
    )


def name_mapping_to_text(mapping: NameMapping) -> str:
    """Return the mapping as the JSON text of the property."""
    return json.dumps([_field_to_json(f) for f in mapping.fields])


def _field_to_json(f: MappedField) -> dict[str, Any]:
    out: dict[str, Any] = {} if f.field_id is None else {"field-id": f.field_id}
    out["names"] = list(f.names)
    if f.fields:
        out["fields"] = [_field_to_json(child) for child in f.fields]
    return out


def name_mapping_of(schema: Schema) -> NameMapping:
    """Return the mapping of a schema's own names to ids, as Java creates it for imported files."""
    return NameMapping(fields=_mapped_fields(schema.as_struct))


def _mapped_fields(type_: Type) -> tuple[MappedField, ...]:
    return tuple(mapped_field(c) for c in children_of(type_))


def mapped_field(f: NestedField) -> MappedField:
    """Return the mapping of a column by its own name, including all nested fields."""
    return MappedField(field_id=f.field_id, names=(f.name,), fields=_mapped_fields(f.type))
