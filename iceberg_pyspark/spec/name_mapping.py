"""Name mapping: field ids for data files that carry none. Specification, "Column Projection" and
"Name Mapping Serialization".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import ListType, MapType, NestedField, StructType, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedField:
    """Names a field may have in a file; `field_id` None marks names that map to nothing."""

    field_id: int | None
    names: tuple[str, ...]
    fields: tuple[MappedField, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NameMapping:
    """Mapped fields of a table's top level; names are literal, dots and all."""

    fields: tuple[MappedField, ...]


def find_mapped(fields: tuple[MappedField, ...], name: str) -> MappedField | None:
    """The mapped field that one of its names says; list parts are `element`, map parts `key`,
    `value`.
    """
    return next((f for f in fields if name in f.names), None)


def name_mapping_from_text(text: str) -> NameMapping:
    """Parse the value of property `schema.name-mapping.default`."""
    try:
        data = json.loads(text)
    except ValueError as e:
        raise InvalidMetadataError(f"schema.name-mapping.default: not valid JSON ({e})") from e
    return NameMapping(fields=_fields_from_json(data, "schema.name-mapping.default"))


def _fields_from_json(data: Any, path: str) -> tuple[MappedField, ...]:
    if not isinstance(data, list):
        raise InvalidMetadataError(f"{path}: expected a list")
    fields = []
    for i, f in enumerate(data):
        if not isinstance(f, dict) or not isinstance(f.get("names"), list):
            raise InvalidMetadataError(f"{path}[{i}].names: required list")
        fields.append(
            MappedField(
                field_id=f.get("field-id"),
                names=tuple(f["names"]),
                fields=_fields_from_json(f.get("fields") or [], f"{path}[{i}].fields"),
            )
        )
    return tuple(fields)


def name_mapping_to_text(mapping: NameMapping) -> str:
    """The property's JSON text."""
    return json.dumps([_field_to_json(f) for f in mapping.fields])


def _field_to_json(f: MappedField) -> dict[str, Any]:
    out: dict[str, Any] = {} if f.field_id is None else {"field-id": f.field_id}
    out["names"] = list(f.names)
    if f.fields:
        out["fields"] = [_field_to_json(child) for child in f.fields]
    return out


def name_mapping_of(schema: Schema) -> NameMapping:
    """The mapping of a schema's own names, as Java makes it for imported files."""
    return NameMapping(fields=_mapped(schema.as_struct))


def _mapped(type_: Type) -> tuple[MappedField, ...]:
    children: tuple[NestedField, ...]
    match type_:
        case StructType(fields=fields):
            children = fields
        case ListType():
            children = (type_.element,)
        case MapType():
            children = (type_.key, type_.value)
        case _:
            return ()
    return tuple(mapped_field(c) for c in children)


def mapped_field(f: NestedField) -> MappedField:
    """The mapping of a column by its own name, and of everything in it."""
    return MappedField(field_id=f.field_id, names=(f.name,), fields=_mapped(f.type))
