"""A schema: an id, fields, and look-ups over all nested fields.

Specification, "Schemas and Data Types", "Schema Evolution" (ids) and Appendix C "Schemas". Schema
changes are commits and are in `changes/schema_changes.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from iceberg_pyspark.display import html_table, printable
from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.spec.values import value_from_json, value_to_json

MAX_USER_FIELD_ID = 2147483447
"""The largest id of a user column; larger ids are for metadata columns ("Reserved Field IDs")."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """An immutable table schema.

    `field_by_id`, `name_by_id` and `id_by_name` include nested fields; a nested field's name is its
    path joined by dots, with list elements under `element`, map parts under `key` and `value`.
    """

    fields: tuple[types.NestedField, ...]
    schema_id: int = 0
    identifier_field_ids: tuple[int, ...] = field(default=())

    def __repr__(self) -> str:
        lines = [f"schema {self.schema_id} {{"]
        for field_id, name, null, type_, comment in self._column_texts():
            end = f" -- {comment}" if comment else ""
            lines.append(printable(f"  {field_id}: {name}: {null} {type_}{end}"))
        return "\n".join([*lines, "}"])

    def _repr_html_(self) -> str:
        header = ("id", "column", "null", "type", "comment")
        return html_table(f"schema {self.schema_id}", header, self._column_texts())

    def _column_texts(self) -> list[tuple[str, str, str, str, str]]:
        """Return the id, name, nullability, type and comment of each top-level column."""
        return [
            (
                str(f.field_id),
                f.name + (" (identifier)" if f.field_id in self.identifier_field_ids else ""),
                "required" if f.required else "optional",
                str(f.type),
                f.doc or "",
            )
            for f in self.fields
        ]

    @cached_property
    def as_struct(self) -> types.StructType:
        """The fields as a struct type."""
        return types.StructType(self.fields)

    @cached_property
    def field_by_id(self) -> Mapping[int, types.NestedField]:
        """All fields, also nested, by id; raises `InvalidMetadataError` if an id occurs twice."""
        fields: dict[int, types.NestedField] = {}
        for f in types.walk_fields(self.as_struct):
            if f.field_id in fields:
                raise InvalidMetadataError(
                    f"schema {self.schema_id}: field id {f.field_id} is used by both "
                    f"'{fields[f.field_id].name}' and '{f.name}'; ids must be unique"
                )
            fields[f.field_id] = f
        return fields

    @cached_property
    def name_by_id(self) -> Mapping[int, str]:
        """The full dotted name of every field, by id."""
        names: dict[int, str] = {}
        _collect_names(self.as_struct, "", names)
        return names

    @cached_property
    def id_by_name(self) -> Mapping[str, int]:
        """The field id of every full dotted name."""
        return {name: field_id for field_id, name in self.name_by_id.items()}

    @cached_property
    def names_by_lower_name(self) -> Mapping[str, list[str]]:
        """The full dotted names, by their form in lower case."""
        names: dict[str, list[str]] = {}
        for name in self.id_by_name:
            names.setdefault(name.lower(), []).append(name)
        return names

    @cached_property
    def parent_by_id(self) -> Mapping[int, int]:
        """The id of the enclosing field, by nested field id; top-level fields are absent."""
        parents: dict[int, int] = {}
        for f in types.walk_fields(self.as_struct):
            for child in types.children_of(f.type):
                parents[child.field_id] = f.field_id
        return parents

    def path_to(self, field_id: int) -> tuple[types.NestedField, ...]:
        """Return the fields that lead from the top level to a field, with the field itself."""
        path = [self.field_by_id[field_id]]
        while (parent := self.parent_by_id.get(path[0].field_id)) is not None:
            path.insert(0, self.field_by_id[parent])
        return tuple(path)

    @cached_property
    def highest_field_id(self) -> int:
        """The largest id in use, or 0 for an empty schema."""
        return max(self.field_by_id, default=0)

    def find(self, name: str, *, case_sensitive: bool | None = True) -> types.NestedField:
        """Return the field with the full dotted name; raise `InvalidRequestError` if missing.

        If names are not case-sensitive, two columns whose names differ only in case are ambiguous;
        None means that the exact name comes first.
        """
        field_id = self.id_by_name.get(name)
        if case_sensitive is False or (case_sensitive is None and field_id is None):
            matches = self.names_by_lower_name.get(name.lower(), [])
            if len(matches) > 1:
                raise InvalidRequestError(
                    f"column '{name}' is ambiguous: {' and '.join(map(repr, matches))} differ only "
                    "in case; make names case-sensitive (spark.sql.caseSensitive, or the read "
                    "option case-sensitive), or rename one"
                )
            field_id = self.id_by_name[matches[0]] if matches else None
        if field_id is None:
            columns = ", ".join(f.name for f in self.fields)
            raise InvalidRequestError(f"no column '{name}'; the table has: {columns}")
        return self.field_by_id[field_id]

    def select(self, names: Iterable[str], *, case_sensitive: bool = True) -> Schema:
        """Return the schema with only the named columns, in the order of the names.

        A dotted name keeps only the named child of its column.
        """
        field_ids = [self.find(name, case_sensitive=case_sensitive).field_id for name in names]
        keep = set(field_ids)
        for field_id in field_ids:
            keep.update(f.field_id for f in types.walk_fields(self.field_by_id[field_id].type))
        fields_by_id = {f.field_id: f for f in prune_fields(self.as_struct, keep).fields}
        order: dict[int, None] = {}
        for field_id in field_ids:
            top = field_id
            while top in self.parent_by_id:
                top = self.parent_by_id[top]
            order[top] = None
        return replace(
            self,
            fields=tuple(fields_by_id[i] for i in order),
            identifier_field_ids=tuple(i for i in self.identifier_field_ids if i in keep),
        )


def _collect_names(type_: types.Type, prefix: str, names: dict[int, str]) -> None:
    for child in types.children_of(type_):
        names[child.field_id] = f"{prefix}{child.name}"
        _collect_names(child.type, f"{prefix}{child.name}.", names)


def prune_fields(struct: types.StructType, keep: Collection[int]) -> types.StructType:
    """Return the struct with only the fields whose ids are in `keep`, and their parent fields.

    A list or map with a kept element keeps its structure; a map with a kept value keeps its entire
    key (specification, "Schema Evolution": key structs never change).
    """
    fields: list[types.NestedField] = []
    for f in struct.fields:
        type_ = _prune_type(f.type, keep)
        if type_ is not None:
            fields.append(replace(f, type=type_))
        elif f.field_id in keep:
            fields.append(
                f
                if not isinstance(f.type, types.StructType)
                else replace(f, type=types.StructType(()))
            )
    return types.StructType(tuple(fields))


def _prune_type(type_: types.Type, keep: Collection[int]) -> types.Type | None:
    """Return the pruned type if a nested field is kept, otherwise None."""
    match type_:
        case types.StructType():
            pruned_type = prune_fields(type_, keep)
            return pruned_type if pruned_type.fields else None
        case types.ListType():
            inner = _prune_type(type_.element_type, keep)
            if inner is not None:
                return replace(type_, element_type=inner)
            return type_ if type_.element_id in keep else None
        case types.MapType():
            inner = _prune_type(type_.value_type, keep)
            if inner is not None:
                return replace(type_, value_type=inner)
            if type_.value_id in keep or type_.key_id in keep:
                return type_
            return type_ if _prune_type(type_.key_type, keep) is not None else None
        case _:
            return None


def type_to_json(type_: types.Type) -> Any:
    """Return a type as metadata JSON: a string for a primitive type, otherwise an object."""
    match type_:
        case types.StructType(fields=fields):
            return {"type": "struct", "fields": [field_to_json(f) for f in fields]}
        case types.ListType():
            return {
                "type": "list",
                "element-id": type_.element_id,
                "element": type_to_json(type_.element_type),
                "element-required": type_.element_required,
            }
        case types.MapType():
            return {
                "type": "map",
                "key-id": type_.key_id,
                "key": type_to_json(type_.key_type),
                "value-id": type_.value_id,
                "value": type_to_json(type_.value_type),
                "value-required": type_.value_required,
            }
        case _:
            return str(type_)


def field_to_json(f: types.NestedField) -> dict[str, Any]:
    """Return a struct field as metadata JSON."""
    out: dict[str, Any] = {
        "id": f.field_id,
        "name": f.name,
        "required": f.required,
        "type": type_to_json(f.type),
    }
    if f.doc is not None:
        out["doc"] = f.doc
    if f.initial_default is not None:
        out["initial-default"] = value_to_json(f.type, f.initial_default)
    if f.write_default is not None:
        out["write-default"] = value_to_json(f.type, f.write_default)
    return out


def type_from_json(parent: JsonObject, key: str, depth: int = 1) -> types.Type:
    """Parse the type under `key` of a JSON object; errors name the JSON path."""
    path, value = parent.path_of(key), parent.value(key)
    if isinstance(value, str):
        try:
            return types.primitive_from_string(parent.string(key))
        except InvalidMetadataError as e:
            raise InvalidMetadataError(f"{path}: {e}") from e
    if not isinstance(value, dict):
        raise parent.wrong(key, "required type name or object")
    if depth > types.MAX_TYPE_DEPTH:
        raise InvalidMetadataError(f"{path}: types nest deeper than {types.MAX_TYPE_DEPTH} levels")
    data = parent.object(key)
    match data.string("type"):
        case "struct":
            return _struct_from_json(data, depth)
        case "list":
            return types.ListType(
                element_id=_field_id(data, "element-id"),
                element_type=type_from_json(data, "element", depth + 1),
                element_required=data.boolean("element-required"),
            )
        case "map":
            return types.MapType(
                key_id=_field_id(data, "key-id"),
                key_type=type_from_json(data, "key", depth + 1),
                value_id=_field_id(data, "value-id"),
                value_type=type_from_json(data, "value", depth + 1),
                value_required=data.boolean("value-required"),
            )
        case _:
            raise data.wrong("type", "unknown nested type")


def _struct_from_json(data: JsonObject, depth: int) -> types.StructType:
    data.array("fields")
    fields = tuple(field_from_json(f, depth) for f in data.objects("fields"))
    names: set[str] = set()
    for f in fields:
        if f.name in names:
            raise InvalidMetadataError(f"{data.path_of('fields')}: name '{f.name}' occurs twice")
        names.add(f.name)
    return types.StructType(fields)


def _field_id(data: JsonObject, key: str) -> int:
    field_id = data.int32(key, 0)
    if field_id > MAX_USER_FIELD_ID:
        raise data.wrong(key, f"ids above {MAX_USER_FIELD_ID} are reserved")
    return field_id


def field_from_json(data: JsonObject, depth: int = 1) -> types.NestedField:
    """Parse a struct field; errors name the JSON path."""
    type_ = type_from_json(data, "type", depth + 1)
    return types.NestedField(
        field_id=_field_id(data, "id"),
        name=data.string("name"),
        type=type_,
        required=data.boolean("required"),
        doc=data.optional_string("doc"),
        initial_default=_default_from_json(type_, data, "initial-default"),
        write_default=_default_from_json(type_, data, "write-default"),
    )


def _default_from_json(type_: types.Type, data: JsonObject, key: str) -> Any:
    if not data.has(key):
        return None
    try:
        return value_from_json(type_, data.value(key))
    except (ValueError, TypeError) as e:
        raise InvalidMetadataError(f"{data.path_of(key)}: not a {type_}: {e}") from e


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """Return a schema as metadata JSON (Appendix C)."""
    out: dict[str, Any] = {"type": "struct", "schema-id": schema.schema_id}
    if schema.identifier_field_ids:
        out["identifier-field-ids"] = list(schema.identifier_field_ids)
    out["fields"] = [field_to_json(f) for f in schema.fields]
    return out


def schema_from_json(data: JsonObject) -> Schema:
    """Parse a schema and check that ids are unique; errors name the JSON path."""
    if data.has("type") and data.value("type") != "struct":
        raise data.wrong("type", "a schema must be a struct")
    schema = Schema(
        schema_id=data.optional_int32("schema-id") or 0,
        fields=_struct_from_json(data, 1).fields,
        identifier_field_ids=data.int32s("identifier-field-ids"),
    )
    try:
        field_by_id = schema.field_by_id
    except InvalidMetadataError as e:
        raise InvalidMetadataError(f"{data.path}: {e}" if data.path else str(e)) from e
    for i, field_id in enumerate(schema.identifier_field_ids):
        if field_id not in field_by_id:
            raise data.wrong("identifier-field-ids", "no field has this id", i)
    return schema


def is_primitive(type_: types.Type) -> bool:
    """Return whether a type has no nested fields."""
    return isinstance(type_, types.PrimitiveType)
