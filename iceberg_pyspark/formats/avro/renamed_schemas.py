"""Renames the fields of an Avro schema by their field ids, whatever a writer has called them.

The schemas of the files that were read last are kept: a table's manifests have few different ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.formats.avro.avro_blocks import Cost, arrow_cost, python_cost
from iceberg_pyspark.storage.lru_map import LruMap

_MAX_DEPTH = 50
_MAX_TYPES = 50_000


def damage_error(location: str, why: str) -> InvalidMetadataError:
    """Return the error for an Avro file that breaks its format."""
    return InvalidMetadataError(f"{location}: damaged Avro file: {why}")


class SchemaRenamer:
    """Renames the fields of a schema to `_<field id>` and writes out each use of a named type.

    Logical types are removed, except decimal: `spec/values.py` represents values as days,
    microseconds and bytes. Records without fields and fields of type null are removed too: they
    take no bytes, and some decoders refuse them.
    """

    def __init__(self, location: str) -> None:
        self.null_field_ids: set[int] = set()
        self.written_types: dict[int, Any] = {}
        self._location = location
        self._definitions: dict[str, Any] = {}
        self._open: set[str] = set()
        self._count = 0
        self.type_count = 0

    def rename_record(self, schema: Any) -> dict[str, Any]:
        """Return the renamed schema of a file's records."""
        renamed_schema = self.rename(schema, 0)
        if not isinstance(renamed_schema, dict) or renamed_schema.get("type") != "record":
            raise damage_error(self._location, "its schema is not a record with fields")
        if not _takes_bytes(renamed_schema):
            raise damage_error(self._location, "its records take no bytes")
        return renamed_schema

    def rename(self, schema: Any, depth: int) -> Any:
        """Return the renamed schema, or None for a record that takes no bytes."""
        if depth > _MAX_DEPTH:
            raise damage_error(self._location, f"its schema nests deeper than {_MAX_DEPTH}")
        self.type_count += 1
        if self.type_count > _MAX_TYPES:
            # a named type that is used twice at every depth would expand beyond any memory
            raise damage_error(self._location, f"its schema has more than {_MAX_TYPES:,} types")
        match schema:
            case str() if schema in _PRIMITIVES:
                return schema
            case str() if schema in self._definitions and schema not in self._open:
                return self.rename(self._definitions[schema], depth + 1)
            case list():
                branches = [self.rename(branch, depth + 1) for branch in schema]
                if None in branches and all(b in (None, "null") for b in branches):
                    # BigQuery writes such partitions; only the number of the branch takes bytes
                    return "long"
                if None in branches:
                    raise damage_error(
                        self._location, "its schema has a union with an empty record"
                    )
                return branches
            case {"type": "record", "name": str(name), "fields": list(fields)}:
                return self._record(name, fields, schema, depth)
            case {"type": "fixed", "name": str(name), "size": int(size)} if size > 0:
                self._definitions[name] = schema
                attributes = {}
                if schema.get("logicalType") == "decimal":
                    logical = ("logicalType", "precision", "scale")
                    attributes = {k: schema[k] for k in logical if k in schema}
                return {"type": "fixed", "name": self._name(), "size": size, **attributes}
            case {"type": "array", "items": items}:
                renamed_schema = self.rename(items, depth + 1)
                if not _takes_bytes(renamed_schema):
                    # otherwise a length in the data would decide how much memory is allocated
                    raise damage_error(
                        self._location, "its schema has a list of items without bytes"
                    )
                return {"type": "array", "items": renamed_schema}
            case {"type": "map", "values": values}:
                return {"type": "map", "values": self.rename(values, depth + 1)}
            case {"type": "bytes", "logicalType": "decimal"}:
                attributes = {k: schema[k] for k in ("precision", "scale") if k in schema}
                return {"type": "bytes", "logicalType": "decimal", **attributes}
            case {"type": inner} if inner != schema:
                return self.rename(inner, depth + 1)
            case _:
                raise damage_error(self._location, f"its schema has the type {str(schema)[:80]}")

    def _record(self, name: str, fields: list[Any], schema: Any, depth: int) -> Any:
        if name in self._open:
            raise damage_error(self._location, f"its schema is recursive in '{name}'")
        self._open.add(name)
        self._definitions[name] = schema
        record_name = self._name()
        out: dict[str, Any] = {}
        for i, f in enumerate(fields):
            if not isinstance(f, dict) or "type" not in f:
                raise damage_error(self._location, f"field {i} of '{name}' has no type")
            field_id = f.get("field-id")
            field_name = f"_{field_id}" if isinstance(field_id, int) else f"x{i}"
            renamed_schema = self.rename(f["type"], depth + 1)
            if isinstance(f["type"], list) and renamed_schema == "long":
                field_name = f"x{i}"
            if field_name in out:
                raise damage_error(self._location, f"field id {field_id} is twice in '{name}'")
            if isinstance(field_id, int):
                self.written_types[field_id] = self._spelled_out(f["type"])
            if renamed_schema == "null" and isinstance(field_id, int):
                self.null_field_ids.add(field_id)
            elif renamed_schema is not None and renamed_schema != "null":
                out[field_name] = {"name": field_name, "type": renamed_schema}
        self._open.discard(name)
        if not out:
            return None
        return {"type": "record", "name": record_name, "fields": list(out.values())}

    def _spelled_out(self, schema: Any) -> Any:
        """Return the type, with its name or the names of its branches replaced by definitions."""
        if isinstance(schema, list):
            return [self._spelled_out(branch) for branch in schema if not isinstance(branch, list)]
        return self._definitions.get(schema, schema) if isinstance(schema, str) else schema

    def _name(self) -> str:
        self._count += 1
        return f"t{self._count}"


_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


def _takes_bytes(schema: Any) -> bool:
    """Return whether every value of a renamed schema is at least one byte long."""
    match schema:
        case None | "null":
            return False
        case {"type": "record", "fields": fields}:
            return any(_takes_bytes(f["type"]) for f in fields)
        case _:
            return True


_MOST_SCHEMAS = 64
_MOST_BYTES = 64 * 1024


@dataclass(frozen=True, eq=False, kw_only=True)
class RenamedSchema:
    """The schema of a file's records under `_<field id>` names; see `SchemaRenamer`.

    `record` lacks the fields in `null_field_ids`, whose Avro type is null. `written_types` maps
    field ids to the original types, including logical types. `type_count` is the number of types at
    all depths.
    """

    record: Mapping[str, Any]
    null_field_ids: frozenset[int]
    written_types: Mapping[int, Any]
    type_count: int

    @cached_property
    def cost(self) -> Cost:
        """The memory that records take, as Python values and as Arrow columns."""
        return python_cost(self.record) + arrow_cost(self.record)

    @cached_property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type of the records, as DataFusion decodes them, apart from nullability."""
        return _arrow_type(self.record)


_KNOWN: LruMap[bytes, RenamedSchema] = LruMap(_MOST_SCHEMAS)


def rename_schema(text: bytes | str, location: str) -> RenamedSchema:
    """Return the renamed schema; raises `InvalidMetadataError`, which names the location."""
    text = text.encode() if isinstance(text, str) else text
    known = _KNOWN.get(text)
    if known is None:
        renamer = SchemaRenamer(location)
        known = RenamedSchema(
            record=renamer.rename_record(json.loads(text)),
            null_field_ids=frozenset(renamer.null_field_ids),
            written_types=renamer.written_types,
            type_count=renamer.type_count,
        )
        if len(text) <= _MOST_BYTES:
            _KNOWN.put(text, known)
    return known


def _arrow_type(schema: Any) -> pa.DataType:
    match schema:
        case {"type": "record", "fields": fields}:
            return pa.struct([(f["name"], _arrow_type(f["type"])) for f in fields])
        case {"type": "array", "items": items}:
            return pa.list_(_arrow_type(items))
        case {"type": "map", "values": values}:
            return pa.map_(pa.string(), _arrow_type(values))
        case {"logicalType": "decimal", "precision": precision, "scale": scale}:
            return pa.decimal128(precision, scale)
        case {"type": "fixed"}:
            return pa.binary(schema["size"])
        case [*branches]:
            not_null = [b for b in branches if b != "null"]
            return _arrow_type(not_null[0]) if not_null else pa.null()
        case _:
            return _ARROW_PRIMITIVES[schema]


_ARROW_PRIMITIVES: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
