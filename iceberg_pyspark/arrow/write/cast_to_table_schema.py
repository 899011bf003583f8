"""Checks the rows of callers and casts them to the table's schema, by column name.

Columns may come in any order; missing optional columns are filled with the write-default or null
(specification, "Default Values"); types may widen without loss; and every Arrow representation of a
type is accepted. Everything else is refused before a file is opened. The result has the schema of
rows to write (`arrow/arrow_schemas.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrays import children_of, runs_of, used_part, with_children
from iceberg_pyspark.arrow.arrow_schemas import (
    constant_array,
    has_required_below,
    is_binary_like,
    is_list_like,
    is_text_like,
    scalar_of,
    stored_arrow_schema,
    stored_schema,
    to_arrow_schema,
)
from iceberg_pyspark.arrow.write.variant_columns import variant_cast
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.default_values import default_of
from iceberg_pyspark.spec.schema import Schema

ArrayFunction = Callable[[pa.Array], pa.Array]
BatchFunction = Callable[[pa.RecordBatch], pa.RecordBatch]


def check_write_schema(
    source: Schema | pa.Schema, schema: Schema, *, table: str, case_sensitive: bool = True
) -> None:
    """Raise `InvalidRequestError` with every reason why rows of `source` cannot be written.

    Nullability is not compared: only actual nulls in required columns are refused, during the cast.
    """
    arrow = to_arrow_schema(source) if isinstance(source, Schema) else source
    compile_cast_to_table_schema(arrow, schema, table=table, case_sensitive=case_sensitive)


def compile_cast_to_table_schema(
    source: pa.Schema, schema: Schema, *, table: str, case_sensitive: bool = True
) -> BatchFunction:
    """Return a function that converts batches of schema `source` to `stored_arrow_schema(schema)`.

    Raises `InvalidRequestError` for a schema that does not fit. The function raises it for a value
    that does not fit: a null in a required column, or a number or text that the type cannot hold.
    """
    target = stored_arrow_schema(schema)
    file_columns = stored_schema(schema)
    plan = _Plan(case_sensitive=case_sensitive)
    columns = plan.columns(list(source), schema.fields, list(target), "")
    if plan.problems:
        raise InvalidRequestError(
            f"cannot write to table '{table}': {'; '.join(plan.problems)}. "
            f"Table: {_describe(to_arrow_schema(file_columns))}. Rows: {_describe(source)}"
        )
    required_fields = [
        (i, f)
        for i, f in enumerate(file_columns.fields)
        if f.required or has_required_below(f.type)
    ]
    in_place = source.equals(target) and all(c.is_plain(i) for i, c in enumerate(columns))

    def converted(column: _Column, arrays: Sequence[pa.Array], rows: int, name: str) -> pa.Array:
        try:
            return column.array(arrays, rows)
        except pa.ArrowException as e:
            type_ = source.field(column.index or 0).type
            raise InvalidRequestError(
                f"column '{name}' of table '{table}': rows of type {type_} cannot be converted to "
                f"{target.field(name).type}: {e}; split or convert the column's values before "
                "writing: one takes at most 2 GiB, and a list has at most 2,147,483,647 elements"
            ) from e

    def cast_to_table_schema(batch: pa.RecordBatch) -> pa.RecordBatch:
        if not in_place:
            arrays, rows = batch.columns, batch.num_rows  # Arrow makes the list for each call
            arrays = [
                converted(c, arrays, rows, f.name) for c, f in zip(columns, target, strict=True)
            ]
            batch = pa.RecordBatch.from_arrays(arrays, schema=target)
        for i, f in required_fields:
            for path, count in required_nulls(batch.column(i), f, f.name):
                raise InvalidRequestError(
                    f"column '{path}' of table '{table}' is required, and the rows have {count} "
                    "null(s) in it: filter or fill them, or make the column optional"
                )
        return batch

    return cast_to_table_schema


def _describe(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema)


@dataclass(frozen=True, slots=True)
class _Column:
    """The origin of a column of the result: a column of the rows, or a constant."""

    index: int | None
    convert: ArrayFunction
    default: Callable[[int], pa.Array]

    def is_plain(self, index: int) -> bool:
        return self.index == index and self.convert is _same

    def array(self, columns: Sequence[pa.Array], rows: int) -> pa.Array:
        return self.default(rows) if self.index is None else self.convert(columns[self.index])


@dataclass(slots=True)
class _Plan:
    """A compiler of column conversions that collects all problems of a schema."""

    case_sensitive: bool
    problems: list[str] = field(default_factory=list)

    def columns(
        self,
        source: Sequence[pa.Field],
        fields: Sequence[types.NestedField],
        target: Sequence[pa.Field],
        path: str,
    ) -> list[_Column]:
        """Return one column per field of `target`, which omits the `unknown` fields of `fields`."""
        matches, remaining = self._matches(source, fields, path)
        targets = iter(target)
        columns = []
        for f in fields:
            index = matches.get(f.name)
            name = f"{path}{f.name}"
            if isinstance(f.type, types.UnknownType):
                if index is not None and not pa.types.is_null(source[index].type):
                    self._refuse(name, source[index].type, f.type, "leave it out or write nulls")
                continue
            to = next(targets).type
            if index is None:
                if f.required and f.write_default is None:
                    self.problems.append(
                        f"required column '{name}' ({f.type}) is missing and has no default: "
                        "add it to the rows"
                    )
                columns.append(_Column(None, _same, _default(f, to)))
            else:
                convert = self.convert(source[index].type, f.type, to, name)
                columns.append(_Column(index, convert, _default(f, to)))
        self.problems.extend(
            f"the table has no column '{path}{source[i].name}': drop it from the rows, or add it "
            "to the table first"
            for i in remaining
        )
        return columns

    def _matches(
        self, source: Sequence[pa.Field], fields: Sequence[types.NestedField], path: str
    ) -> tuple[Mapping[str, int], Sequence[int]]:
        """Return the index of the column of each field, and the columns without a field.

        A field takes the column with its own name before a column whose name differs in case, since
        a table may have fields that differ in case only.
        """
        names = {f.name for f in fields}
        by_name: dict[str, int] = {}
        others: list[int] = []
        for i, f in enumerate(source):
            if f.name not in names:
                others.append(i)
            elif by_name.setdefault(f.name, i) != i:
                self.problems.append(f"the rows have column '{path}{f.name}' twice")
        if self.case_sensitive:
            return by_name, others
        lower_names = {name.lower() for name in by_name}
        free: dict[str, list[str]] = {}
        for name in sorted(names - by_name.keys()):
            free.setdefault(name.lower(), []).append(name)
        remaining = []
        for i in others:
            name, key = f"{path}{source[i].name}", source[i].name.lower()
            candidates = free.pop(key, [])
            if len(candidates) == 1:
                by_name[candidates[0]] = i
                lower_names.add(key)
            elif candidates:
                both = " or ".join(f"'{path}{c}'" for c in candidates)
                self.problems.append(f"column '{name}' of the rows may be {both}: rename it")
            elif key in lower_names:
                self.problems.append(f"the rows have column '{name}' twice")
            else:
                remaining.append(i)
        return by_name, remaining

    def _refuse(self, path: str, source: pa.DataType, type_: types.Type, remedy: str = "") -> None:
        self.problems.append(
            f"column '{path}' is {source} in the rows and {type_} in the table, and values could "
            f"be lost: {remedy or f'cast it to {type_} before writing'}"
        )

    def convert(
        self, source: pa.DataType, type_: types.Type, target: pa.DataType, path: str
    ) -> ArrayFunction:
        """Return a function from arrays of type `source` to `target`, the Arrow type of `type_`."""
        if isinstance(source, pa.DictionaryType):
            inner = self.convert(source.value_type, type_, target, path)
            if _is_decodable(source.value_type):
                return lambda a: inner(a.dictionary_decode())
            return lambda a: _by_dictionary(used_part(a), inner)
        if isinstance(source, pa.RunEndEncodedType):
            inner = self.convert(source.value_type, type_, target, path)
            return lambda a: _by_runs(a, inner)
        if isinstance(type_, types.VariantType) and (to_variant := variant_cast(source)):
            return lambda a: to_variant(a, path)
        if source == target:
            return _same
        if isinstance(source, pa.BaseExtensionType):
            inner = self.convert(source.storage_type, type_, target, path)
            return lambda a: inner(a.storage)
        if pa.types.is_null(source):
            return lambda a: pa.nulls(len(a), target)
        match type_:
            case types.StructType():
                if pa.types.is_struct(source):
                    return self._struct(source, type_, target, path)
            case types.ListType():
                if is_list_like(source):
                    return self._list(source, type_, target, path)
            case types.MapType():
                if pa.types.is_map(source):
                    return self._map(source, type_, target, path)
            case types.GeometryType() | types.GeographyType() if _is_sparks_geo(source):
                return lambda a: _cast(target, type_, path)(pc.struct_field(a, "wkb"))
            case types.UUIDType() if is_text_like(source):
                return lambda a: _uuid_of_text(a, path)
            case types.UUIDType() | types.FixedType():
                if _is_bytes(source):
                    return _fixed_cast(target, path)
            case _:
                if _widens(source, type_):
                    return _cast(target, type_, path)
        remedy = ""
        if isinstance(type_, types.VariantType):
            remedy = "convert it with iceberg_pyspark.variants_from_objects or variants_from_json"
        self._refuse(path, source, type_, remedy)
        return _same

    def _struct(
        self, source: pa.DataType, type_: types.StructType, target: pa.DataType, path: str
    ) -> ArrayFunction:
        columns = self.columns(
            [source.field(i) for i in range(source.num_fields)],
            type_.fields,
            list(target),
            f"{path}.",
        )

        def convert(array: pa.StructArray) -> pa.StructArray:
            children = children_of(array)
            return with_children(array, target, [c.array(children, len(array)) for c in columns])

        return convert

    def _list(
        self, source: pa.DataType, type_: types.ListType, target: pa.DataType, path: str
    ) -> ArrayFunction:
        inner = self.convert(
            source.value_type, type_.element_type, target.value_type, f"{path}.element"
        )
        return lambda array: with_children(array, target, [inner(c) for c in children_of(array)])

    def _map(
        self, source: pa.DataType, type_: types.MapType, target: pa.DataType, path: str
    ) -> ArrayFunction:
        key = self.convert(source.key_type, type_.key_type, target.key_type, f"{path}.key")
        item = self.convert(source.item_type, type_.value_type, target.item_type, f"{path}.value")

        def convert(array: pa.MapArray) -> pa.MapArray:
            keys, items = children_of(array)
            return with_children(array, target, [key(keys), item(items)])

        return convert


def _same(array: pa.Array) -> pa.Array:
    return array


def _from_zero(array: pa.Array) -> pa.Array:
    """Return large texts or bytes with offsets from 0: those late in a long array exceed 32 bits.

    Arrow's cast converts all offsets from the start of the array, however few rows are cast.
    """
    if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type):
        return pa.concat_arrays([array])
    return array


def _is_decodable(values: pa.DataType) -> bool:
    """Return whether Arrow decodes dictionaries of such values: not of views, runs or lists."""
    t = pa.types
    encoded = t.is_string_view(values) or t.is_binary_view(values) or t.is_run_end_encoded(values)
    return not (encoded or t.is_nested(values))


def _by_dictionary(array: pa.DictionaryArray, convert: ArrayFunction) -> pa.Array:
    return convert(array.dictionary).take(array.indices)


def _by_runs(array: pa.RunEndEncodedArray, convert: ArrayFunction) -> pa.Array:
    """Return the converted values of the array's runs, each as often as its run is long."""
    ends, values = runs_of(array)
    runs = np.repeat(np.arange(len(values)), np.diff(ends, prepend=0))
    return convert(values).take(pa.array(runs))


def _default(f: types.NestedField, target: pa.DataType) -> Callable[[int], pa.Array]:
    if f.write_default is None:
        return lambda rows: pa.nulls(rows, target)
    if isinstance(f.type, types.StructType):
        # a struct's default is {}: each child takes its own default (specification, "Default
        # Values")
        fields = [target.field(i) for i in range(target.num_fields)]
        stored_children = [c for c in f.type.fields if not isinstance(c.type, types.UnknownType)]
        children = [_default(c, t.type) for c, t in zip(stored_children, fields, strict=True)]
        return lambda rows: pa.StructArray.from_arrays([c(rows) for c in children], fields=fields)
    scalar = scalar_of(f.type, default_of(f, "write"))
    return lambda rows: constant_array(scalar, rows)


def _is_sparks_geo(source: pa.DataType) -> bool:
    """Return whether the type is Spark's for geometries and geographies in Arrow."""
    return pa.types.is_struct(source) and {f.name for f in source} == {"srid", "wkb"}


def _is_bytes(source: pa.DataType) -> bool:
    return is_binary_like(source) or pa.types.is_fixed_size_binary(source)


def _widens(source: pa.DataType, type_: types.Type) -> bool:
    """Return whether every value of the Arrow type fits, or a checked cast finds the exceptions."""
    t = pa.types
    match type_:
        case types.BooleanType():
            return bool(t.is_boolean(source))
        case types.IntegerType() | types.LongType():
            width = 32 if isinstance(type_, types.IntegerType) else 64
            if t.is_unsigned_integer(source):
                return bool(source.bit_width < width)
            return bool(t.is_signed_integer(source) and source.bit_width <= width)
        case types.FloatType() | types.DoubleType():
            width = 32 if isinstance(type_, types.FloatType) else 64
            return bool(t.is_floating(source) and source.bit_width <= width)
        case types.DecimalType(precision=precision, scale=scale):
            return bool(
                t.is_decimal(source)
                and source.scale <= scale
                and source.precision - source.scale <= precision - scale
            )
        case types.DateType():
            return bool(t.is_date32(source))
        case types.TimeType():
            return bool(t.is_time(source))
        case types.TimestampType() | types.TimestampNsType():
            return bool(t.is_timestamp(source)) and source.tz is None
        case types.TimestamptzType() | types.TimestamptzNsType():
            return bool(t.is_timestamp(source)) and source.tz is not None
        case types.StringType():
            return is_text_like(source)
        case types.BinaryType():
            return _is_bytes(source)
        case types.GeometryType() | types.GeographyType():
            return is_binary_like(source)
        case _:
            return False


def _cast(target: pa.DataType, type_: types.Type, path: str) -> ArrayFunction:
    if pa.types.is_string(target) or pa.types.is_binary(target):
        return lambda array: _from_zero(array).cast(target)  # only their length may be too large

    def convert(array: pa.Array) -> pa.Array:
        try:
            return _from_zero(array).cast(target)
        except pa.ArrowInvalid as e:
            raise InvalidRequestError(
                f"column '{path}' holds a value that {type_} cannot hold: {e}; "
                f"round or cast it to {type_} before writing"
            ) from e

    return convert


def _fixed_cast(target: pa.FixedSizeBinaryType, path: str) -> ArrayFunction:
    length = target.byte_width

    def convert(array: pa.Array) -> pa.Array:
        plain = _from_zero(array).cast(pa.binary())
        lengths = pc.min_max(pc.binary_length(plain)).as_py()
        if {*lengths.values()} - {None, length}:
            raise InvalidRequestError(
                f"column '{path}' takes values of exactly {length} bytes, the rows have some of "
                f"{lengths['min']} to {lengths['max']}"
            )
        return plain.cast(target)

    return convert


def _uuid_of_text(array: pa.Array, path: str) -> pa.Array:
    try:
        values = [None if text is None else uuid.UUID(text).bytes for text in array.to_pylist()]
    except ValueError as e:
        raise InvalidRequestError(
            f"column '{path}' holds a text that is not a uuid: {e}; uuids look like "
            "f79c3e09-677c-4bbd-a479-3f349cb785e7"
        ) from e
    return pa.array(values, pa.binary(16))


def required_nulls(array: pa.Array, f: types.NestedField, path: str) -> Iterator[tuple[str, int]]:
    """Yield the path and the number of nulls of each required field that has nulls.

    `path` is that of the field `f`, whose values are `array`.
    """
    if f.required and array.null_count:
        yield path, array.null_count
    if not len(array) or not has_required_below(f.type):
        return
    # values below a null do not exist, whatever the child array holds
    present = array.drop_null() if array.null_count else array
    for child, values in zip(types.children_of(f.type), children_of(present), strict=True):
        yield from required_nulls(values, child, f"{path}.{child.name}")
