"""The renamed schemas of files that were read last; a table's manifests have few different ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from iceberg_pyspark.formats.avro.avro_blocks import Cost, arrow_cost, python_cost
from iceberg_pyspark.formats.avro.renamed_schemas import SchemaRenamer
from iceberg_pyspark.storage.lru_map import LruMap

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
            return _PRIMITIVES[schema]


_PRIMITIVES: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
