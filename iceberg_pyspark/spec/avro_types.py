"""Iceberg types as Avro schemas (Appendix A, "Avro"), as plain dicts.

Names follow what Java writes, because readers exist that look at them: a struct is record
`r<field id>`, a map record `k<id>_v<id>`. Readers here never do: they resolve by `field-id`.
"""

from __future__ import annotations

import re
from typing import Any

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.default_values import default_of
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UUIDType,
    VariantType,
)
from iceberg_pyspark.spec.values import unscaled_value

_VALID_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def avro_name(name: str) -> str:
    """A field name that Avro allows: what it forbids becomes `_x` and its hexadecimal code.

    Letters beyond ASCII are replaced too (Java keeps them): not every Avro reader accepts them.

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
    """The least number of bytes whose two's complement holds every decimal of that precision.

    >>> decimal_bytes(9), decimal_bytes(10), decimal_bytes(38)
    (4, 5, 16)
    """
    return (int(10**precision - 1).bit_length() + 8) // 8


def record_schema(struct: StructType, name: str) -> dict[str, Any]:
    """An Avro record schema of that name for a struct, with all field ids."""
    return _record(struct, name, set())


def _record(struct: StructType, name: str, defined: set[str]) -> dict[str, Any]:
    names: set[str] = set()
    fields = []
    for f in struct.fields:
        field = _field(f, defined)
        if field["name"] in names:
            # two names may sanitise to one; names carry no meaning, so the id makes it unique
            field["name"] = f"{field['name']}_{f.field_id}"
        names.add(field["name"])
        fields.append(field)
    return {"type": "record", "name": name, "fields": fields}


def _field(f: NestedField, defined: set[str]) -> dict[str, Any]:
    out: dict[str, Any] = {"name": avro_name(f.name)}
    if out["name"] != f.name:
        out["iceberg-field-name"] = f.name
    avro_type = _type(f.type, f.field_id, defined)
    if f.doc is not None:
        out["doc"] = f.doc
    if f.initial_default is not None:
        # a default is of the union's first branch
        out["type"] = avro_type if f.required else [avro_type, "null"]
        out["default"] = _default(f.type, default_of(f, "initial"))
    elif f.required:
        out["type"] = avro_type
    else:
        out["type"] = _optional(avro_type)
        out["default"] = None
    out["field-id"] = f.field_id
    return out


def _optional(avro_type: Any) -> Any:
    return "null" if avro_type == "null" else ["null", avro_type]


def _type(type_: Type, field_id: int, defined: set[str]) -> Any:
    match type_:
        case BooleanType():
            return "boolean"
        case IntegerType():
            return "int"
        case LongType():
            return "long"
        case FloatType():
            return "float"
        case DoubleType():
            return "double"
        case StringType():
            return "string"
        case BinaryType() | GeometryType() | GeographyType():
            return "bytes"
        case UnknownType():
            return "null"
        case DateType():
            return {"type": "int", "logicalType": "date"}
        case TimeType():
            return {"type": "long", "logicalType": "time-micros"}
        case TimestampType() | TimestamptzType():
            return {
                "type": "long",
                "logicalType": "timestamp-micros",
                "adjust-to-utc": isinstance(type_, TimestamptzType),
            }
        case TimestampNsType() | TimestamptzNsType():
            return {
                "type": "long",
                "logicalType": "timestamp-nanos",
                "adjust-to-utc": isinstance(type_, TimestamptzNsType),
            }
        case DecimalType(precision=precision, scale=scale):
            logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
            name = f"decimal_{precision}_{scale}"
            return _fixed(name, decimal_bytes(precision), logical, defined)
        case UUIDType():
            return _fixed("uuid_fixed", 16, {"logicalType": "uuid"}, defined)
        case FixedType(length=length):
            return _fixed(f"fixed_{length}", length, {}, defined)
        case VariantType():
            return {
                "type": "record",
                "name": f"r{field_id}",
                "logicalType": "variant",
                "fields": [
                    {"name": "metadata", "type": "bytes"},
                    {"name": "value", "type": "bytes"},
                ],
            }
        case StructType():
            return _record(type_, f"r{field_id}", defined)
        case ListType():
            element = _type(type_.element_type, type_.element_id, defined)
            return {
                "type": "array",
                "items": element if type_.element_required else _optional(element),
                "element-id": type_.element_id,
            }
        case MapType():
            entry = StructType((type_.key, type_.value))
            name = f"k{type_.key_id}_v{type_.value_id}"
            return {"type": "array", "logicalType": "map", "items": _record(entry, name, defined)}
        case _:
            raise InvalidMetadataError(f"{type_} has no Avro type")


def _fixed(name: str, size: int, logical: dict[str, Any], defined: set[str]) -> Any:
    # a named Avro type is defined at its first use and referred to after it
    if name in defined:
        return name
    defined.add(name)
    return {"type": "fixed", "name": name, "size": size, **logical}


_PRIMITIVES: dict[str, Type] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "bytes": BinaryType(),
}


def primitive_type(avro_type: Any) -> Type:
    """The primitive type that an Avro type stands for; `unknown` for null and for what is none.

    >>> primitive_type(["null", {"type": "int", "logicalType": "date"}])
    DateType()
    """
    match avro_type:
        case str():
            return _PRIMITIVES.get(avro_type, UnknownType())
        case [*branches]:
            not_null = [b for b in branches if b != "null"]
            return primitive_type(not_null[0]) if len(not_null) == 1 else UnknownType()
        case {"logicalType": "decimal", "precision": int(precision), **rest}:
            scale = rest.get("scale", 0)
            return DecimalType(precision, scale if isinstance(scale, int) else 0)
        case {"type": "int", "logicalType": "date"}:
            return DateType()
        case {"type": "long", "logicalType": "time-micros"}:
            return TimeType()
        case {"type": "long", "logicalType": "timestamp-micros", **rest}:
            return TimestamptzType() if rest.get("adjust-to-utc") else TimestampType()
        case {"type": "long", "logicalType": "timestamp-nanos", **rest}:
            return TimestamptzNsType() if rest.get("adjust-to-utc") else TimestampNsType()
        case {"type": "fixed", "size": 16, "logicalType": "uuid"}:
            return UUIDType()
        case {"type": "fixed", "size": int(size)}:
            return FixedType(size)
        case {"type": inner} if inner != avro_type:
            return primitive_type(inner)
        case _:
            return UnknownType()


def _default(type_: Type, value: Any) -> Any:
    """A value whose structs are filled in, as Avro writes it in a schema."""
    if value is None:
        return None
    match type_:
        case DecimalType(precision=precision):
            data = unscaled_value(value).to_bytes(decimal_bytes(precision), "big", signed=True)
            return data.decode("latin-1")
        case UUIDType() | FixedType() | BinaryType():
            return value.decode("latin-1")
        case StructType(fields=fields):
            return {avro_name(f.name): _default(f.type, value[f.field_id]) for f in fields}
        case ListType():
            return [_default(type_.element_type, v) for v in value]
        case MapType():
            return [
                {"key": _default(type_.key_type, k), "value": _default(type_.value_type, v)}
                for k, v in value
            ]
        case _:
            return value
