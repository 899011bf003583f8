"""Iceberg types as Avro schemas, and the Avro schemas of manifest lists and manifests.

Names follow Java's (a struct is record `r<field id>`, a map record `k<id>_v<id>`), because some
readers depend on the names. The readers of this package ignore names and resolve fields by
`field-id`.

Specification, "Manifests", "Manifest Entry Fields", "Data File Fields" and "Manifest Lists". Field
order and names are those that Java writes; fields that the specification forbids writers to write
are absent.
"""

from __future__ import annotations

import re
from typing import Any

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.default_values import default_of
from iceberg_pyspark.spec.values import unscaled_value

BLOCK_SIZE_IN_BYTES = 64 * 1024 * 1024
"""The value of the deprecated field 105 in v1 manifests, which old readers require."""


def _required_field(field_id: int, name: str, type_: types.Type) -> types.NestedField:
    return types.NestedField(field_id=field_id, name=name, type=type_, required=True)


def _optional(field_id: int, name: str, type_: types.Type) -> types.NestedField:
    return types.NestedField(field_id=field_id, name=name, type=type_)


def _metric(
    field_id: int, name: str, key_id: int, value_id: int, value: types.Type
) -> types.NestedField:
    map_type = types.MapType(
        key_id=key_id,
        key_type=types.IntegerType(),
        value_id=value_id,
        value_type=value,
        value_required=True,
    )
    return _optional(field_id, name, map_type)


METRIC_FIELDS = (
    _metric(108, "column_sizes", 117, 118, types.LongType()),
    _metric(109, "value_counts", 119, 120, types.LongType()),
    _metric(110, "null_value_counts", 121, 122, types.LongType()),
    _metric(137, "nan_value_counts", 138, 139, types.LongType()),
    _metric(125, "lower_bounds", 126, 127, types.BinaryType()),
    _metric(128, "upper_bounds", 129, 130, types.BinaryType()),
)
"""The metrics of a file, each a map keyed by column id."""

_SPLIT_OFFSETS = _optional(
    132,
    "split_offsets",
    types.ListType(element_id=133, element_type=types.LongType(), element_required=True),
)
_EQUALITY_IDS = _optional(
    135,
    "equality_ids",
    types.ListType(element_id=136, element_type=types.IntegerType(), element_required=True),
)


def data_file_struct(partition_type: types.StructType, format_version: int) -> types.StructType:
    """Return the `data_file` struct (field 2) of a manifest of the given format version."""
    fields = [
        _required_field(100, "file_path", types.StringType()),
        _required_field(101, "file_format", types.StringType()),
        _required_field(102, "partition", partition_type),
        _required_field(103, "record_count", types.LongType()),
        _required_field(104, "file_size_in_bytes", types.LongType()),
    ]
    if format_version == 1:
        fields.append(_required_field(105, "block_size_in_bytes", types.LongType()))
    else:
        fields.insert(0, _required_field(134, "content", types.IntegerType()))
    fields += [*METRIC_FIELDS, _optional(131, "key_metadata", types.BinaryType()), _SPLIT_OFFSETS]
    if format_version >= 2:
        fields.append(_EQUALITY_IDS)
    fields.append(_optional(140, "sort_order_id", types.IntegerType()))
    if format_version >= 3:
        fields.append(_optional(142, "first_row_id", types.LongType()))
    if format_version >= 2:
        fields.append(_optional(143, "referenced_data_file", types.StringType()))
    if format_version >= 3:
        fields.append(_optional(144, "content_offset", types.LongType()))
        fields.append(_optional(145, "content_size_in_bytes", types.LongType()))
    return types.StructType(tuple(fields))


def manifest_entry_schema(partition_type: types.StructType, format_version: int) -> dict[str, Any]:
    """Return the Avro schema of the records of a manifest whose spec has `partition_type`."""
    fields = [_required_field(0, "status", types.IntegerType())]
    if format_version == 1:
        fields.append(_required_field(1, "snapshot_id", types.LongType()))
    else:
        fields += [
            _optional(1, "snapshot_id", types.LongType()),
            _optional(3, "sequence_number", types.LongType()),
            _optional(4, "file_sequence_number", types.LongType()),
        ]
    fields.append(_required_field(2, "data_file", data_file_struct(partition_type, format_version)))
    return record_schema(types.StructType(tuple(fields)), "manifest_entry")


_FIELD_SUMMARY = types.StructType(
    (
        _required_field(509, "contains_null", types.BooleanType()),
        _optional(518, "contains_nan", types.BooleanType()),
        _optional(510, "lower_bound", types.BinaryType()),
        _optional(511, "upper_bound", types.BinaryType()),
    )
)
_PARTITIONS = _optional(
    507,
    "partitions",
    types.ListType(element_id=508, element_type=_FIELD_SUMMARY, element_required=True),
)


def manifest_file_schema(format_version: int) -> dict[str, Any]:
    """Return the Avro schema of a manifest list's records."""
    path = [
        _required_field(500, "manifest_path", types.StringType()),
        _required_field(501, "manifest_length", types.LongType()),
        _required_field(502, "partition_spec_id", types.IntegerType()),
    ]
    counts: tuple[tuple[int, str, types.Type], ...] = (
        (504, "added_files_count", types.IntegerType()),
        (505, "existing_files_count", types.IntegerType()),
        (506, "deleted_files_count", types.IntegerType()),
        (512, "added_rows_count", types.LongType()),
        (513, "existing_rows_count", types.LongType()),
        (514, "deleted_rows_count", types.LongType()),
    )
    if format_version == 1:
        fields = [
            *path,
            _required_field(503, "added_snapshot_id", types.LongType()),
            *(_optional(*c) for c in counts[:3]),
            _PARTITIONS,
            *(_optional(*c) for c in counts[3:]),
        ]
    else:
        fields = [
            *path,
            _required_field(517, "content", types.IntegerType()),
            _required_field(515, "sequence_number", types.LongType()),
            _required_field(516, "min_sequence_number", types.LongType()),
            _required_field(503, "added_snapshot_id", types.LongType()),
            *(_required_field(*c) for c in counts),
            _PARTITIONS,
        ]
    fields.append(_optional(519, "key_metadata", types.BinaryType()))
    if format_version >= 3:
        fields.append(_optional(520, "first_row_id", types.LongType()))
    return record_schema(types.StructType(tuple(fields)), "manifest_file")


_VALID_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def avro_name(name: str) -> str:
    """Return a name that Avro allows: a forbidden character becomes `_x` and its hexadecimal code.

    Letters beyond ASCII are replaced too (Java keeps them), because some Avro readers reject them.

    >>> avro_name("a.b"), avro_name("1a"), avro_name("id:foo")
    ('a_x2Eb', '_1a', 'id_x3Afoo')
    """
    if _VALID_NAME.fullmatch(name):
        return name
    units = memoryview(name.encode("utf-16-be", "surrogatepass")).cast("B")
    out: list[str] = []
    for i in range(0, len(units), 2):
        code = units[i] << 8 | units[i + 1]
        char = chr(code)
        if char.isascii() and (char.isalpha() or char == "_" or (char.isdigit() and out)):
            out.append(char)
        else:
            out.append(f"_{char}" if char.isascii() and char.isdigit() else f"_x{code:X}")
    return "".join(out) or "_"


def decimal_bytes(precision: int) -> int:
    """Return the fewest bytes whose two's complement holds every decimal of the precision.

    >>> decimal_bytes(9), decimal_bytes(10), decimal_bytes(38)
    (4, 5, 16)
    """
    return (int(10**precision - 1).bit_length() + 8) // 8


def record_schema(struct: types.StructType, name: str) -> dict[str, Any]:
    """Return the Avro record schema named `name` for a struct, with all field ids."""
    return _record(struct, name, set())


def _record(struct: types.StructType, name: str, defined_names: set[str]) -> dict[str, Any]:
    names: set[str] = set()
    fields = []
    for f in struct.fields:
        field = _field(f, defined_names)
        if field["name"] in names:
            # two names may become the same Avro name; readers ignore names, so the id makes the
            # name unique
            field["name"] = f"{field['name']}_{f.field_id}"
        names.add(field["name"])
        fields.append(field)
    return {"type": "record", "name": name, "fields": fields}


def _field(f: types.NestedField, defined_names: set[str]) -> dict[str, Any]:
    out: dict[str, Any] = {"name": avro_name(f.name)}
    if out["name"] != f.name:
        out["iceberg-field-name"] = f.name
    avro_type = _type(f.type, f.field_id, defined_names)
    if f.doc is not None:
        out["doc"] = f.doc
    if f.initial_default is not None:
        # Avro requires a default to match the first branch of a union
        out["type"] = avro_type if f.required else [avro_type, "null"]
        out["default"] = _default(f.type, default_of(f, "initial"))
    elif f.required:
        out["type"] = avro_type
    else:
        out["type"] = _or_null(avro_type)
        out["default"] = None
    out["field-id"] = f.field_id
    return out


def _or_null(avro_type: Any) -> Any:
    return "null" if avro_type == "null" else ["null", avro_type]


def _type(type_: types.Type, field_id: int, defined_names: set[str]) -> Any:
    match type_:
        case types.BooleanType():
            return "boolean"
        case types.IntegerType():
            return "int"
        case types.LongType():
            return "long"
        case types.FloatType():
            return "float"
        case types.DoubleType():
            return "double"
        case types.StringType():
            return "string"
        case types.BinaryType() | types.GeometryType() | types.GeographyType():
            return "bytes"
        case types.UnknownType():
            return "null"
        case types.DateType():
            return {"type": "int", "logicalType": "date"}
        case types.TimeType():
            return {"type": "long", "logicalType": "time-micros"}
        case types.TimestampType() | types.TimestamptzType():
            return {
                "type": "long",
                "logicalType": "timestamp-micros",
                "adjust-to-utc": isinstance(type_, types.TimestamptzType),
            }
        case types.TimestampNsType() | types.TimestamptzNsType():
            return {
                "type": "long",
                "logicalType": "timestamp-nanos",
                "adjust-to-utc": isinstance(type_, types.TimestamptzNsType),
            }
        case types.DecimalType(precision=precision, scale=scale):
            logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
            name = f"decimal_{precision}_{scale}"
            return _fixed_type(name, decimal_bytes(precision), logical, defined_names)
        case types.UUIDType():
            return _fixed_type("uuid_fixed", 16, {"logicalType": "uuid"}, defined_names)
        case types.FixedType(length=length):
            return _fixed_type(f"fixed_{length}", length, {}, defined_names)
        case types.VariantType():
            return {
                "type": "record",
                "name": f"r{field_id}",
                "logicalType": "variant",
                "fields": [
                    {"name": "metadata", "type": "bytes"},
                    {"name": "value", "type": "bytes"},
                ],
            }
        case types.StructType():
            return _record(type_, f"r{field_id}", defined_names)
        case types.ListType():
            element = _type(type_.element_type, type_.element_id, defined_names)
            return {
                "type": "array",
                "items": element if type_.element_required else _or_null(element),
                "element-id": type_.element_id,
            }
        case types.MapType():
            entry = types.StructType((type_.key, type_.value))
            name = f"k{type_.key_id}_v{type_.value_id}"
            return {
                "type": "array",
                "logicalType": "map",
                "items": _record(entry, name, defined_names),
            }
        case _:
            raise InvalidMetadataError(f"{type_} has no Avro type")


def _fixed_type(name: str, size: int, logical: dict[str, Any], defined_names: set[str]) -> Any:
    # Avro defines a named type at its first use and refers to it by name afterwards
    if name in defined_names:
        return name
    defined_names.add(name)
    return {"type": "fixed", "name": name, "size": size, **logical}


_PRIMITIVES: dict[str, types.Type] = {
    "boolean": types.BooleanType(),
    "int": types.IntegerType(),
    "long": types.LongType(),
    "float": types.FloatType(),
    "double": types.DoubleType(),
    "string": types.StringType(),
    "bytes": types.BinaryType(),
}


def primitive_type(avro_type: Any) -> types.Type:
    """Return the primitive type for an Avro type; `unknown` for null and non-primitive types.

    >>> primitive_type(["null", {"type": "int", "logicalType": "date"}])
    DateType()
    """
    match avro_type:
        case str():
            return _PRIMITIVES.get(avro_type, types.UnknownType())
        case [*branches]:
            not_null = [b for b in branches if b != "null"]
            return primitive_type(not_null[0]) if len(not_null) == 1 else types.UnknownType()
        case {"logicalType": "decimal", "precision": int(precision), **rest}:
            scale = rest.get("scale", 0)
            return types.DecimalType(precision, scale if isinstance(scale, int) else 0)
        case {"type": "int", "logicalType": "date"}:
            return types.DateType()
        case {"type": "long", "logicalType": "time-micros"}:
            return types.TimeType()
        case {"type": "long", "logicalType": "timestamp-micros", **rest}:
            return types.TimestamptzType() if rest.get("adjust-to-utc") else types.TimestampType()
        case {"type": "long", "logicalType": "timestamp-nanos", **rest}:
            return (
                types.TimestamptzNsType() if rest.get("adjust-to-utc") else types.TimestampNsType()
            )
        case {"type": "fixed", "size": 16, "logicalType": "uuid"}:
            return types.UUIDType()
        case {"type": "fixed", "size": int(size)}:
            return types.FixedType(size)
        case {"type": inner} if inner != avro_type:
            return primitive_type(inner)
        case _:
            return types.UnknownType()


def _default(type_: types.Type, value: Any) -> Any:
    """Convert a default value with complete structs to the form that an Avro schema requires."""
    if value is None:
        return None
    match type_:
        case types.DecimalType(precision=precision):
            data = unscaled_value(value).to_bytes(decimal_bytes(precision), "big", signed=True)
            return data.decode("latin-1")
        case types.UUIDType() | types.FixedType() | types.BinaryType():
            return value.decode("latin-1")
        case types.StructType(fields=fields):
            return {avro_name(f.name): _default(f.type, value[f.field_id]) for f in fields}
        case types.ListType():
            return [_default(type_.element_type, v) for v in value]
        case types.MapType():
            return [
                {"key": _default(type_.key_type, k), "value": _default(type_.value_type, v)}
                for k, v in value
            ]
        case _:
            return value
