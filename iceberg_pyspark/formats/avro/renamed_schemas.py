"""Renames the fields of an Avro schema by their field ids, whatever a writer has called them."""

from __future__ import annotations

from typing import Any

from iceberg_pyspark.errors import InvalidMetadataError

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
