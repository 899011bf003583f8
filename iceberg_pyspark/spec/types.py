"""Iceberg's data types and their JSON form.

This module defines how a type is represented, compared, printed and parsed (specification, "Schemas
and Data Types" and Appendix C "Schemas"). Values of the types are in `values.py`; schemas with ids
and look-ups in `schema.py`; Arrow and Spark conversions are deliberately in `arrow/` and `spark/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.json_fields import MAX_INT32, short_text


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without nested fields; `str()` gives its name in metadata JSON."""

    def __str__(self) -> str:
        return _NAME_BY_CLASS[type(self)]


@dataclass(frozen=True, slots=True)
class BooleanType(PrimitiveType):
    """`boolean`."""


@dataclass(frozen=True, slots=True)
class IntegerType(PrimitiveType):
    """`int`: 32-bit signed integer."""


@dataclass(frozen=True, slots=True)
class LongType(PrimitiveType):
    """`long`: 64-bit signed integer."""


@dataclass(frozen=True, slots=True)
class FloatType(PrimitiveType):
    """`float`: 32-bit IEEE 754 number."""


@dataclass(frozen=True, slots=True)
class DoubleType(PrimitiveType):
    """`double`: 64-bit IEEE 754 number."""


@dataclass(frozen=True, slots=True)
class DecimalType(PrimitiveType):
    """`decimal(P, S)` with a precision P of at most 38."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= 38:
            raise InvalidMetadataError(f"decimal precision must be 1 to 38, got {self.precision}")
        if not 0 <= self.scale <= self.precision:
            raise InvalidMetadataError(
                f"decimal scale must be 0 to the precision {self.precision}, got {self.scale}"
            )

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class DateType(PrimitiveType):
    """`date`: days from 1970-01-01."""


@dataclass(frozen=True, slots=True)
class TimeType(PrimitiveType):
    """`time`: microseconds from midnight."""


@dataclass(frozen=True, slots=True)
class TimestampType(PrimitiveType):
    """`timestamp`: microseconds from 1970-01-01 00:00, without zone."""


@dataclass(frozen=True, slots=True)
class TimestamptzType(PrimitiveType):
    """`timestamptz`: microseconds from 1970-01-01 00:00 UTC."""


@dataclass(frozen=True, slots=True)
class TimestampNsType(PrimitiveType):
    """`timestamp_ns` (v3): nanoseconds from 1970-01-01 00:00, without zone."""


@dataclass(frozen=True, slots=True)
class TimestamptzNsType(PrimitiveType):
    """`timestamptz_ns` (v3): nanoseconds from 1970-01-01 00:00 UTC."""


@dataclass(frozen=True, slots=True)
class StringType(PrimitiveType):
    """`string`: UTF-8 text."""


@dataclass(frozen=True, slots=True)
class UUIDType(PrimitiveType):
    """`uuid`: 16 bytes, big-endian."""


@dataclass(frozen=True, slots=True)
class FixedType(PrimitiveType):
    """`fixed[L]`: exactly L bytes."""

    length: int

    def __post_init__(self) -> None:
        if not 0 <= self.length <= MAX_INT32:
            raise InvalidMetadataError(
                f"fixed length must be 0 to {MAX_INT32} bytes, got {self.length}"
            )

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


@dataclass(frozen=True, slots=True)
class BinaryType(PrimitiveType):
    """`binary`: bytes of any length."""


@dataclass(frozen=True, slots=True)
class UnknownType(PrimitiveType):
    """`unknown` (v3): always null, never stored in data files."""


@dataclass(frozen=True, slots=True)
class VariantType(PrimitiveType):
    """`variant` (v3): semi-structured value; treated as a type without children."""


DEFAULT_CRS = "OGC:CRS84"
"""The coordinate reference system of a type that names none: longitude and latitude of WGS 84."""


@dataclass(frozen=True, slots=True)
class GeometryType(PrimitiveType):
    """`geometry(C)` (v3): WKB on a plane."""

    crs: str = DEFAULT_CRS

    def __str__(self) -> str:
        return "geometry" if self.crs == DEFAULT_CRS else f"geometry({self.crs})"


@dataclass(frozen=True, slots=True)
class GeographyType(PrimitiveType):
    """`geography(C, A)` (v3): WKB on an ellipsoid with an edge algorithm."""

    crs: str = DEFAULT_CRS
    algorithm: str = "spherical"

    def __str__(self) -> str:
        if self.algorithm != "spherical":
            return f"geography({self.crs}, {self.algorithm})"
        return "geography" if self.crs == DEFAULT_CRS else f"geography({self.crs})"


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedField:
    """A named, typed field whose id never changes.

    `initial_default` and `write_default` (v3) are values in the form of `values.py`; None means "no
    default".
    """

    field_id: int
    name: str
    type: Type
    required: bool = False
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None

    @property
    def optional(self) -> bool:
        """Whether the field may be null."""
        return not self.required


@dataclass(frozen=True, slots=True)
class StructType:
    """A tuple of named fields."""

    fields: tuple[NestedField, ...]
    _by_id: dict[int, NestedField] = field(init=False, repr=False, compare=False)
    _by_name: dict[str, NestedField] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {f.field_id: f for f in self.fields})
        object.__setattr__(self, "_by_name", None)

    def field(self, field_id: int) -> NestedField | None:
        """Return the direct child with the id, or None."""
        return self._by_id.get(field_id)

    def field_named(self, name: str) -> NestedField | None:
        """Return the first direct child with exactly the name, or None."""
        by_name = self._by_name
        if by_name is None:
            by_name = {f.name: f for f in reversed(self.fields)}
            object.__setattr__(self, "_by_name", by_name)
        return by_name.get(name)

    def __str__(self) -> str:
        inner = ", ".join(
            f"{f.field_id}: {f.name}: {'required' if f.required else 'optional'} {f.type}"
            for f in self.fields
        )
        return f"struct<{inner}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListType:
    """A list; the element has a field id."""

    element_id: int
    element_type: Type
    element_required: bool = False

    @property
    def element(self) -> NestedField:
        """The element, as a field named `element`."""
        return NestedField(
            field_id=self.element_id,
            name="element",
            type=self.element_type,
            required=self.element_required,
        )

    def __str__(self) -> str:
        return f"list<{self.element_type}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapType:
    """A map; the key and the value each have a field id. Keys are never null."""

    key_id: int
    key_type: Type
    value_id: int
    value_type: Type
    value_required: bool = False

    @property
    def key(self) -> NestedField:
        """The key, as a required field named `key`."""
        return NestedField(field_id=self.key_id, name="key", type=self.key_type, required=True)

    @property
    def value(self) -> NestedField:
        """The value, as a field named `value`."""
        return NestedField(
            field_id=self.value_id,
            name="value",
            type=self.value_type,
            required=self.value_required,
        )

    def __str__(self) -> str:
        return f"map<{self.key_type}, {self.value_type}>"


Type: TypeAlias = PrimitiveType | StructType | ListType | MapType

_CLASS_BY_NAME: Mapping[str, type[PrimitiveType]] = {
    "boolean": BooleanType,
    "int": IntegerType,
    "long": LongType,
    "float": FloatType,
    "double": DoubleType,
    "date": DateType,
    "time": TimeType,
    "timestamp": TimestampType,
    "timestamptz": TimestamptzType,
    "timestamp_ns": TimestampNsType,
    "timestamptz_ns": TimestamptzNsType,
    "string": StringType,
    "uuid": UUIDType,
    "binary": BinaryType,
    "unknown": UnknownType,
    "variant": VariantType,
}
_NAME_BY_CLASS = {cls: name for name, cls in _CLASS_BY_NAME.items()}

# the digits are limited so that every match is a valid number; to avoid backtracking, the patterns
# match in one way only: callers strip spaces
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*\)")
_FIXED_TYPE = re.compile(r"fixed\[\s*([0-9]{1,10})\s*\]")
_GEOMETRY = re.compile(r"geometry(?:\(([^,()]+)\))?")
_GEOGRAPHY = re.compile(r"geography(?:\(([^,()]+)(?:,([^,()]+))?\))?")
_EDGE_ALGORITHM = re.compile(r"\w+")

MAX_TYPE_DEPTH = 100
"""The deepest allowed nesting of types; deeper types are refused before they exhaust the stack."""

MIN_FORMAT_VERSION: Mapping[type[PrimitiveType], int] = {
    TimestampNsType: 3,
    TimestamptzNsType: 3,
    UnknownType: 3,
    VariantType: 3,
    GeometryType: 3,
    GeographyType: 3,
}
"""The first format version that has a type; a type that is not listed exists since version 1."""


def primitive_from_string(text: str) -> PrimitiveType:
    """Parse a primitive type name of metadata JSON; raise `InvalidMetadataError` if it is unknown.

    >>> primitive_from_string("decimal(9,2)")
    DecimalType(precision=9, scale=2)
    >>> str(primitive_from_string("fixed[16]"))
    'fixed[16]'
    """
    name = text.strip().lower()
    if cls := _CLASS_BY_NAME.get(name):
        return cls()
    if m := _DECIMAL.fullmatch(name):
        return DecimalType(int(m[1]), int(m[2]))
    if m := _FIXED_TYPE.fullmatch(name):
        return FixedType(int(m[1]))
    if m := _GEOMETRY.fullmatch(text.strip()):
        if m[1] is None:
            return GeometryType()
        if crs := m[1].strip():
            return GeometryType(crs)
    if m := _GEOGRAPHY.fullmatch(text.strip()):
        crs = (m[1] or DEFAULT_CRS).strip()
        algorithm = (m[2] or "spherical").strip().lower()
        if crs and _EDGE_ALGORITHM.fullmatch(algorithm):
            return GeographyType(crs, algorithm)
    raise InvalidMetadataError(f"unknown type {short_text(text)}")


EDGE_ALGORITHMS = ("spherical", "vincenty", "thomas", "andoyer", "karney")
"""How the edges of a geography are interpolated."""

_NUMBERED_CRS = re.compile(r"(?:srid|epsg):([0-9]{1,9})", re.IGNORECASE)
_PROJECTED = (range(2000, 4000), range(20000, 32800))
"""Codes of EPSG for systems on a plane."""


def crs_number(crs: str) -> int | None:
    """Return the number of a coordinate reference system, as in `EPSG:3857`, or None."""
    if crs.upper() == DEFAULT_CRS:
        return 4326
    m = _NUMBERED_CRS.fullmatch(crs)
    return None if m is None else int(m[1])


def crs_of_number(number: int) -> str:
    """Return the coordinate reference system with a number, in the form that Spark writes.

    >>> crs_of_number(4326), crs_of_number(3857)
    ('OGC:CRS84', 'EPSG:3857')
    """
    return DEFAULT_CRS if number == 4326 else f"EPSG:{number}" if number else "SRID:0"


def why_not_made(type_: PrimitiveType) -> str | None:
    """Return why no new column may have a type that is read in existing tables, or None."""
    if not isinstance(type_, GeographyType):
        return None
    if type_.algorithm not in EDGE_ALGORITHMS:
        return f"the algorithms of geography are {', '.join(EDGE_ALGORITHMS)}"
    number = crs_number(type_.crs)
    if number is not None and any(number in codes for codes in _PROJECTED):
        return f"{type_.crs} is a system on a plane, for which there is geometry"
    return None


def children_of(type_: Type) -> tuple[NestedField, ...]:
    """Return the fields directly below a type."""
    match type_:
        case StructType(fields=fields):
            return fields
        case ListType():
            return (type_.element,)
        case MapType():
            return (type_.key, type_.value)
        case _:
            return ()


def with_children(type_: Type, convert: Callable[[NestedField], NestedField]) -> Type:
    """Return the type with `convert` applied to each field directly below it, in their order.

    Of an element, key or value, only the id, the type and `required` are kept; a key is always
    required.
    """
    match type_:
        case StructType(fields=fields):
            return StructType(tuple(convert(f) for f in fields))
        case ListType():
            element = convert(type_.element)
            return ListType(
                element_id=element.field_id,
                element_type=element.type,
                element_required=element.required,
            )
        case MapType():
            key, value = convert(type_.key), convert(type_.value)
            return MapType(
                key_id=key.field_id,
                key_type=key.type,
                value_id=value.field_id,
                value_type=value.type,
                value_required=value.required,
            )
        case _:
            return type_


def is_too_deep(type_: Type) -> bool:
    """Return whether a type nests deeper than `MAX_TYPE_DEPTH`, too deep to recurse into."""
    level = [type_]
    for _ in range(MAX_TYPE_DEPTH):
        level = [f.type for t in level for f in children_of(t)]
    return bool(level)


def walk_fields(type_: Type) -> Iterator[NestedField]:
    """Yield every field below a type, parents first: of structs, lists and maps."""
    for child in children_of(type_):
        yield child
        yield from walk_fields(child.type)
