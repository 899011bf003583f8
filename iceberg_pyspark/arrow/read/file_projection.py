"""Projects the columns of a file to the table's columns, matched by field id at every depth.

Specification, "Column Projection" and "Schema Evolution". `match_columns` determines which columns
to read; `compile_column` returns a function from the array of the file to an array of exactly
`arrow_type`. A field that the file lacks gets, in this order: its identity partition value, its
initial-default, null. A required field without any of them is an error, as in Java, because Spark
would read a null in a NOT NULL column as zero. Metadata columns, such as row positions, are added
by `arrow/read/read_task.py`.

Casts primitive arrays of a file to the type of a table column.

Specification, "Schema Evolution" (promotions) and Appendix A "Parquet" (physical types). Only exact
widening is allowed: a value that does not fit is an error, and nothing is rounded. As in Java, the
table's type decides whether a timestamp is in UTC, because INT96 and old converted types do not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from iceberg_pyspark.arrow.arrays import children_of, with_children
from iceberg_pyspark.arrow.arrow_schemas import (
    arrow_type,
    child_fields,
    constant_array,
    is_binary_like,
    is_list_like,
    is_text_like,
    scalar_of,
)
from iceberg_pyspark.arrow.file_fields import FileField, FileFields
from iceberg_pyspark.arrow.read.variants import check_variant, variant_array
from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.types import (
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    UnknownType,
    VariantType,
    walk_fields,
)


def check_readable(physical: pa.DataType, type_: types.PrimitiveType, where: str) -> None:
    """Raise `InvalidMetadataError` unless the column can hold every value of the file's type."""
    if not _is_readable(_plain(physical), type_):
        raise InvalidMetadataError(
            f"{where} is stored as {physical}, which cannot be read as {type_}"
        )


def _plain(physical: pa.DataType) -> pa.DataType:
    if isinstance(physical, pa.BaseExtensionType):
        return _plain(physical.storage_type)
    return _plain(physical.value_type) if pa.types.is_dictionary(physical) else physical


def _is_readable(physical: pa.DataType, type_: types.PrimitiveType) -> bool:
    t = pa.types
    if t.is_null(physical):
        return True
    match type_:
        case types.BooleanType():
            return bool(t.is_boolean(physical))
        case types.IntegerType():
            return bool(t.is_integer(physical) and physical.bit_width <= 32)
        case types.LongType():
            return bool(t.is_integer(physical))
        case types.FloatType():
            return bool(t.is_floating(physical) and physical.bit_width <= 32)
        case types.DoubleType():
            return bool(t.is_floating(physical))
        case types.DecimalType(precision=precision, scale=scale):
            return bool(
                t.is_decimal(physical)
                and physical.precision <= precision
                and physical.scale == scale
            )
        case types.DateType():
            return bool(t.is_date(physical))
        case types.TimeType():
            return bool(t.is_time(physical))
        case types.TimestampType() | types.TimestampNsType():
            return bool(t.is_timestamp(physical) or t.is_date32(physical))
        case types.TimestamptzType() | types.TimestamptzNsType():
            return bool(t.is_timestamp(physical))
        case types.StringType() | types.BinaryType():
            return is_text_like(physical) or is_binary_like(physical)
        case types.GeometryType() | types.GeographyType():
            return is_binary_like(physical)
        case types.FixedType(length=length):
            return is_binary_like(physical) or _is_fixed(physical, length)
        case types.UUIDType():
            return is_binary_like(physical) or _is_fixed(physical, 16)
        case _:
            return isinstance(type_, types.UnknownType)


def _is_fixed(physical: pa.DataType, length: int) -> bool:
    return bool(pa.types.is_fixed_size_binary(physical) and physical.byte_width == length)


def promote(array: pa.Array, type_: types.PrimitiveType) -> pa.Array:
    """Return the array in the column's Arrow type; raise `pa.ArrowInvalid` for an unfit value."""
    target = arrow_type(type_)
    if array.type == target:
        return array
    if isinstance(type_, types.UnknownType):
        return pa.nulls(len(array), target)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
        return promote(array, type_)
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(array.type):
        # cast the unit first, so that the second cast changes only the time zone
        return array.cast(pa.timestamp(target.unit, array.type.tz)).cast(target)
    return array.cast(target)


Converter: TypeAlias = Callable[[pa.Array], pa.Array]
ColumnsConverter: TypeAlias = Callable[[Sequence[pa.Array], int], list[pa.Array]]
"""A function from a batch's columns and number of rows to the arrays of the projected fields."""
_Maker: TypeAlias = Callable[[Sequence[pa.Array], int], pa.Array]


@dataclass(frozen=True, slots=True, eq=False)
class ConstantField:
    """A field that the file lacks; its value is the same in every row."""

    scalar: pa.Scalar


@dataclass(frozen=True, slots=True, eq=False)
class FileColumn:
    """A field that the file has; `children` match a struct's fields, or list or map parts.

    `is_straight`: the file has the same fields in the same order, at every depth.
    """

    type: Type
    source: FileField
    children: tuple[Match, ...]
    is_straight: bool


Match: TypeAlias = ConstantField | FileColumn


def match_field(
    field: NestedField,
    source: FileField | None,
    partition_values: Mapping[int, Any],
    location: str,
) -> Match:
    """Match a field to a file; `partition_values` has the identity values by source id.

    These are the values of all rows for filters, so for rows too, whatever the file stores; as in
    Java.
    """
    if source is None or field.field_id in partition_values or isinstance(field.type, UnknownType):
        return ConstantField(_missing(field, partition_values, location))
    return _match_type(field.type, field.name, source, partition_values, location)


def match_columns(
    fields: Sequence[NestedField],
    file_fields: FileFields,
    partition_values: Mapping[int, Any],
    location: str,
) -> tuple[Match, ...]:
    """Match each top-level field to the file."""

    def source(field: NestedField) -> FileField | None:
        if not file_fields.by_position:
            return file_fields.column_with_id(field.field_id)
        # files in partition folders lack the column, so the next column has its position
        if field.field_id in partition_values:
            return None
        column = file_fields.column_with_id(field.field_id)
        if column is not None and _holds_struct(field):
            raise InvalidMetadataError(
                f"{location}: the fields of the struct in column '{field.name}' cannot be "
                "identified: the file has no field ids, and the table has no property "
                "schema.name-mapping.default; set the property to a name mapping"
            )
        return column

    return tuple(match_field(f, source(f), partition_values, location) for f in fields)


def _holds_struct(field: NestedField) -> bool:
    inside = (f.type for f in walk_fields(field.type))
    return any(isinstance(type_, StructType) for type_ in (field.type, *inside))


def _missing(field: NestedField, partition_values: Mapping[int, Any], location: str) -> pa.Scalar:
    if field.field_id in partition_values:
        return scalar_of(field.type, partition_values[field.field_id])
    if field.initial_default is None and field.required and not isinstance(field.type, UnknownType):
        raise InvalidMetadataError(
            f"{location} lacks the required column '{field.name}' (field id {field.field_id}), "
            "which has neither an initial-default nor an identity partition value"
        )
    return scalar_of(field.type, field.initial_default)


def _match_type(
    type_: Type,
    name: str,
    source: FileField,
    partition_values: Mapping[int, Any],
    location: str,
) -> FileColumn:
    where = f"{location}: column '{name}'"
    children: tuple[Match, ...] = ()
    match type_:
        case StructType(fields=fields):
            if not pa.types.is_struct(source.type):
                raise _wrong_shape(where, source, "struct")
            children = tuple(
                match_field(f, source.child_with_id(f.field_id), partition_values, location)
                for f in fields
            )
        case ListType():
            if not is_list_like(source.type):
                raise _wrong_shape(where, source, "list")
            children = (
                _match_type(
                    type_.element_type,
                    f"{name}.element",
                    source.children[0],
                    partition_values,
                    location,
                ),
            )
        case MapType():
            if not pa.types.is_map(source.type):
                raise _wrong_shape(where, source, "map")
            children = tuple(
                _match_type(t, f"{name}.{part}", c, partition_values, location)
                for t, part, c in zip(
                    (type_.key_type, type_.value_type),
                    ("key", "value"),
                    source.children,
                    strict=True,
                )
            )
        case VariantType():
            check_variant(source.type, where)
        case PrimitiveType():
            check_readable(source.type, type_, where)
    columns = [c for c in children if isinstance(c, FileColumn)]
    is_straight = (
        len(columns) == len(children)
        and [c.source for c in columns] == list(source.children)
        and all(c.is_straight for c in columns)
    )
    return FileColumn(type_, source, children, is_straight)


def _wrong_shape(where: str, source: FileField, expected_type: str) -> InvalidMetadataError:
    return InvalidMetadataError(
        f"{where} is stored as {source.type}, but the table's column has type {expected_type}"
    )


def leaf_indices(match: Match) -> set[int]:
    """Return the leaf columns to read for a field; at least one, to read a struct's nulls."""
    if isinstance(match, ConstantField):
        return set()
    if not match.source.children or isinstance(match.type, VariantType):
        return set(match.source.leaves)
    leaves = {leaf for child in match.children for leaf in leaf_indices(child)}
    if not leaves:
        flat = [c for c in match.source.children if not c.children]
        leaves.add((flat[0] if flat else match.source).leaves[0])
    return leaves


def compile_column(
    match: FileColumn, target: pa.DataType, selected_ids: Collection[int]
) -> Converter:
    """Return a function from the read array (the selected leaves) to the array of type `target`."""
    if isinstance(match.type, VariantType):
        return variant_array
    if isinstance(match.type, PrimitiveType):
        type_ = match.type
        return lambda array: array if array.type == target else promote(array, type_)
    # equal Arrow types are not enough: two fields may have exchanged names
    straight = match.is_straight
    rebuild = _compile_nested_type(match, target, selected_ids)

    def convert(array: pa.Array) -> pa.Array:
        if not len(array):
            return pa.nulls(0, target)
        return array if straight and array.type == target else rebuild(array)

    return convert


def _compile_nested_type(
    match: FileColumn, target: pa.DataType, selected_ids: Collection[int]
) -> Converter:
    match match.type:
        case StructType():
            return _compile_struct(match, target, selected_ids)
        case _:
            types_below = (f.type for f in child_fields(target))
            converters = [
                _child_converter(c, type_, selected_ids)
                for c, type_ in zip(match.children, types_below, strict=True)
            ]
            return lambda a: with_children(
                a, target, [c(part) for c, part in zip(converters, children_of(a), strict=True)]
            )


def _child_converter(match: Match, target: pa.DataType, selected: Collection[int]) -> Converter:
    if isinstance(match, ConstantField):
        scalar = match.scalar
        return lambda array: constant_array(scalar, len(array))
    return compile_column(match, target, selected)


def _compile_struct(match: FileColumn, target: pa.DataType, selected: Collection[int]) -> Converter:
    children = [c for c in match.source.children if any(leaf in selected for leaf in c.leaves)]
    sources: list[int | None] = []
    converters: list[Converter] = []
    for child, field in zip(match.children, child_fields(target), strict=True):
        sources.append(children.index(child.source) if isinstance(child, FileColumn) else None)
        converters.append(_child_converter(child, field.type, selected))

    def rebuild(array: pa.StructArray) -> pa.Array:
        children = [
            convert(array if position is None else array.field(position))
            for position, convert in zip(sources, converters, strict=True)
        ]
        return with_children(array, target, children)

    return rebuild


def exact_leaves(match: Match) -> dict[int, int]:
    """Return the leaf columns, by field id, of primitives stored in exactly the table's type."""
    if isinstance(match, ConstantField):
        return {}
    if isinstance(match.type, StructType):
        leaf_by_id: dict[int, int] = {}
        for child in match.children:
            leaf_by_id |= exact_leaves(child)
        return leaf_by_id
    source = match.source
    if source.children or source.field_id is None or source.type != arrow_type(match.type):
        return {}
    return {source.field_id: source.leaves[0]}


class FileProjection:
    """The projection of one file to top-level fields of a schema."""

    def __init__(
        self,
        fields: Sequence[NestedField],
        file_fields: FileFields,
        *,
        partition_values: Mapping[int, Any],
        location: str,
    ) -> None:
        self.matches = match_columns(fields, file_fields, partition_values, location)
        self.leaves = file_fields.to_read({leaf for m in self.matches for leaf in leaf_indices(m)})
        self.field_ids = tuple(f.field_id for f in fields)
        self._file_fields = file_fields

    @property
    def exact_leaves(self) -> dict[int, int]:
        """The leaf columns, by field id, whose statistics compare like the table's values."""
        leaf_by_id: dict[int, int] = {}
        for match in self.matches:
            leaf_by_id |= exact_leaves(match)
        return leaf_by_id

    def compile(self, selected: Collection[int]) -> ColumnsConverter:
        """Return a function from the columns of a batch to the fields' arrays."""
        columns = self._file_fields.read_columns(selected)
        index = {id(column): i for i, column in enumerate(columns)}
        makers: list[_Maker] = []
        for match in self.matches:
            if isinstance(match, ConstantField):
                makers.append(_constant_maker(match.scalar))
            else:
                convert = compile_column(match, arrow_type(match.type), selected)
                makers.append(_column_maker(index[id(match.source)], convert))
        return lambda columns, rows: [make(columns, rows) for make in makers]

    def read_positions(self, selected: Collection[int]) -> set[int]:
        """Return the indices of the batch's columns that the function of `compile` reads."""
        columns = self._file_fields.read_columns(selected)
        return {i for i, c in enumerate(columns) if any(leaf in self.leaves for leaf in c.leaves)}


def _column_maker(position: int, convert: Converter) -> _Maker:
    return lambda columns, _: convert(columns[position])


def _constant_maker(scalar: pa.Scalar) -> _Maker:
    """Return a function that slices one cached array, which grows with the longest batch."""
    longest = constant_array(scalar, 0)

    def make(_: Sequence[pa.Array], rows: int) -> pa.Array:
        nonlocal longest
        if rows > len(longest):
            longest = constant_array(scalar, rows)
        return longest.slice(0, rows)

    return make
