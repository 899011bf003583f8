"""Partition transforms of columns, and rows by partition."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.arrow.arrow_schemas import arrow_type, stored_arrow_schema, value_of
from iceberg_pyspark.arrow.write.partition_batches import partition_batch, transform_array
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
    accepts,
    apply_transform,
    result_type,
)
from iceberg_pyspark.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    Type,
    UUIDType,
)
from iceberg_pyspark.spec.values import value_to_bytes
from tests.support.strategies import PRIMITIVE_TYPES, nullable

TRANSFORMS: tuple[Transform, ...] = (
    IdentityTransform(),
    BucketTransform(1),
    BucketTransform(16),
    BucketTransform(2_000_000_000),
    TruncateTransform(1),
    TruncateTransform(3),
    TruncateTransform(50),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
    VoidTransform(),
)

PAIRS = [(t, s) for t in TRANSFORMS for s in PRIMITIVE_TYPES if accepts(t, s)]


def column_of(type_: Type, values: list[Any]) -> pa.Array:
    return pa.array(values, type=arrow_type(type_))


def transformed(transform: Transform, source: Type, values: list[Any]) -> list[Any]:
    column = transform_array(transform, source, column_of(source, values))
    result = result_type(transform, source)
    assert column.type == arrow_type(result)
    return [value_of(result, v) for v in column]


def exact(value: Any) -> Any:
    """Return a form of the value that compares floats by bits and treats all NaNs as equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack("<d", value)
    return value


def is_representable(type_: Type, value: Any) -> bool:
    """Return whether a result is a value of its type; truncating the smallest int is not."""
    if value is None:
        return True
    if isinstance(type_, DecimalType):
        return len(value.as_tuple().digits) <= type_.precision
    try:
        value_to_bytes(type_, value)
    except struct.error:
        return False
    return True


@given(st.data())
def test_column_equals_value_by_value(data: st.DataObject) -> None:
    transform, source = data.draw(st.sampled_from(PAIRS))
    values = data.draw(st.lists(nullable(source), max_size=8))
    expected = [apply_transform(transform, source, v) for v in values]
    result = result_type(transform, source)
    if not all(is_representable(result, v) for v in expected):
        # docs/conformance.md 53: an overflow must never wrap around.
        with pytest.raises(InvalidRequestError):
            transformed(transform, source, values)
        return
    assert list(map(exact, transformed(transform, source, values))) == list(map(exact, expected))


@given(st.data())
def test_a_slice_of_a_column_is_transformed_alone(data: st.DataObject) -> None:
    transform, source = data.draw(st.sampled_from(PAIRS))
    column = column_of(source, data.draw(st.lists(nullable(source), min_size=3, max_size=6)))
    try:
        whole = transform_array(transform, source, column)
    except InvalidRequestError:
        return
    assert transform_array(transform, source, column[1:-1]).equals(whole[1:-1]) or any(
        isinstance(v, float) and math.isnan(v) for v in column.to_pylist()
    )


@pytest.mark.parametrize(
    ("source", "value", "hashed"),
    [
        (IntegerType(), 34, 2017239379),
        (LongType(), 34, 2017239379),
        (DecimalType(9, 2), Decimal("14.20"), -500754589),
        (DateType(), 17486, -653330422),
        (TimestampType(), 1510871468000000, -2047944441),
        (TimestampType(), 1510871468000001, -1207196810),
        (TimestampNsType(), 1510871468000001001, -1207196810),
        (StringType(), "iceberg", 1210000089),
        (UUIDType(), bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"), 1488055340),
        (BinaryType(), b"\x00\x01\x02\x03", -188683207),
    ],
)
def test_line_51_bucket_of_the_specification_values(
    source: PrimitiveType, value: Any, hashed: int
) -> None:
    n = 2_147_483_647
    assert transformed(BucketTransform(n), source, [value]) == [(hashed & 0x7FFFFFFF) % n]


def test_line_54_text_is_cut_by_code_points_and_binary_by_bytes() -> None:
    assert transformed(TruncateTransform(2), StringType(), ["\U0001f600e\u0301x"]) == [
        "\U0001f600e"
    ]
    assert transformed(TruncateTransform(2), BinaryType(), ["é".encode() + b"x"]) == ["é".encode()]


@pytest.mark.parametrize(
    "transform", [YearTransform(), MonthTransform(), DayTransform(), HourTransform()]
)
def test_line_55_the_last_microsecond_of_1969_is_minus_one(transform: Transform) -> None:
    assert transformed(transform, TimestampType(), [-1, 0, None]) == [-1, 0, None]


def test_line_53_the_least_int_has_no_truncated_value() -> None:
    with pytest.raises(InvalidRequestError, match=r"truncate\[10\] of -2147483648"):
        transformed(TruncateTransform(10), IntegerType(), [5, -(2**31)])


def test_line_64_an_unknown_transform_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="zorder"):
        transform_array(UnknownTransform("zorder"), IntegerType(), pa.array([1]))


def test_a_transform_on_a_type_it_does_not_take_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="hour is not defined for type date"):
        transform_array(HourTransform(), DateType(), column_of(DateType(), [1]))


def schema_of(*types: PrimitiveType) -> Schema:
    return Schema(
        fields=tuple(
            NestedField(field_id=i, name=f"c{i}", type=t) for i, t in enumerate(types, start=1)
        )
    )


def spec_of(*fields: tuple[int, Transform]) -> PartitionSpec:
    return PartitionSpec(
        spec_id=3,
        fields=tuple(
            PartitionField(source_ids=(s,), field_id=1000 + i, name=f"p{i}", transform=t)
            for i, (s, t) in enumerate(fields)
        ),
    )


def batch_of(schema: Schema, columns: list[list[Any]]) -> pa.RecordBatch:
    arrays = [
        pa.array(values, type=arrow_type(f.type))
        for values, f in zip(columns, schema.fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=stored_arrow_schema(schema))


def bits(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack("<d", value)
    return value


@given(st.data())
def test_every_row_is_in_the_piece_of_its_tuple_once_and_in_order(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(PRIMITIVE_TYPES), min_size=1, max_size=3))
    schema = schema_of(*types, LongType())
    possible: list[Transform] = [IdentityTransform(), BucketTransform(3), VoidTransform()]
    fields = [
        (i, data.draw(st.sampled_from([t for t in possible if accepts(t, type_)])))
        for i, type_ in enumerate(types, start=1)
    ]
    count = data.draw(st.integers(0, 12))
    columns = [data.draw(st.lists(nullable(t), min_size=count, max_size=count)) for t in types]
    expected: dict[Any, list[int]] = {}
    for row in range(count):
        key = tuple(bits(apply_transform(t, types[i - 1], columns[i - 1][row])) for i, t in fields)
        expected.setdefault(key, []).append(row)

    batch = batch_of(schema, [*columns, list(range(count))])
    pieces = partition_batch(batch, spec_of(*fields), [schema])

    rows_by_tuple = {
        tuple(map(bits, values)): rows.column(rows.num_columns - 1).to_pylist()
        for values, rows in pieces
    }
    assert len(rows_by_tuple) == len(pieces)
    assert rows_by_tuple == expected
    assert all(rows.schema.equals(batch.schema) for _, rows in pieces)


def test_line_26_nans_are_one_partition_and_zeros_are_two() -> None:
    schema = schema_of(DoubleType())
    odd_nan = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]
    batch = batch_of(schema, [[0.0, -0.0, math.nan, odd_nan, None]])
    pieces = partition_batch(batch, spec_of((1, IdentityTransform())), [schema])
    assert [rows.num_rows for _, rows in pieces] == [1, 1, 2, 1]
    assert [math.copysign(1, values[0]) for values, _ in pieces[:2]] == [1, -1]


def test_an_unpartitioned_spec_keeps_the_batch() -> None:
    schema = schema_of(IntegerType())
    batch = batch_of(schema, [[1, 2]])
    [(values, rows)] = partition_batch(batch, spec_of(), [schema])
    assert values == ()
    assert rows is batch


def test_a_batch_of_one_partition_is_not_copied() -> None:
    schema = schema_of(IntegerType(), StringType())
    batch = batch_of(schema, [[7, 7], ["a", "a"]])
    spec = spec_of((1, TruncateTransform(5)), (2, IdentityTransform()))
    [(values, rows)] = partition_batch(batch, spec, [schema])
    assert values == (5, "a")
    assert rows is batch


def test_empty_batch_has_no_partitions() -> None:
    schema = schema_of(IntegerType())
    assert (
        partition_batch(batch_of(schema, [[]]), spec_of((1, IdentityTransform())), [schema]) == []
    )


def test_line_65_a_source_inside_a_struct_is_null_where_the_struct_is() -> None:
    inner = NestedField(field_id=3, name="x", type=StringType())
    outer = NestedField(field_id=2, name="o", type=StructType((inner,)))
    schema = Schema(fields=(NestedField(field_id=1, name="s", type=StructType((outer,))),))
    rows = [{"o": {"x": "a"}}, {"o": None}, None, {"o": {"x": None}}, {"o": {"x": "a"}}]
    batch = pa.RecordBatch.from_pylist([{"s": r} for r in rows], schema=stored_arrow_schema(schema))
    pieces = partition_batch(batch, spec_of((3, IdentityTransform())), [schema])
    assert [(v, r.column(0).to_pylist()) for v, r in pieces] == [
        (("a",), [rows[0], rows[4]]),
        ((None,), [rows[1], rows[2], rows[3]]),
    ]


def test_line_65_a_source_inside_a_list_is_refused() -> None:
    list_type = ListType(element_id=2, element_type=IntegerType())
    schema = Schema(fields=(NestedField(field_id=1, name="l", type=list_type),))
    batch = pa.RecordBatch.from_pylist([{"l": [1]}], schema=stored_arrow_schema(schema))
    with pytest.raises(InvalidRequestError, match="lies in a list or map"):
        partition_batch(batch, spec_of((2, IdentityTransform())), [schema])


def test_line_61_a_void_field_of_a_dropped_column_is_null() -> None:
    schema = schema_of(IntegerType())
    batch = batch_of(schema, [[1, 2]])
    spec = spec_of((9, VoidTransform()), (1, IdentityTransform()))
    assert [v for v, _ in partition_batch(batch, spec, [schema])] == [(None, 1), (None, 2)]


def test_a_live_field_of_a_dropped_column_is_refused() -> None:
    older = schema_of(IntegerType(), IntegerType())
    schema = schema_of(IntegerType())
    with pytest.raises(InvalidRequestError, match="source column 2"):
        partition_batch(batch_of(schema, [[1]]), spec_of((2, IdentityTransform())), [schema, older])


def test_line_80_uuids_are_partition_values_of_16_bytes() -> None:
    schema = schema_of(UUIDType())
    batch = batch_of(schema, [[b"\x01" * 16, b"\xff" * 16]])
    pieces = partition_batch(batch, spec_of((1, IdentityTransform())), [schema])
    assert [v for v, _ in pieces] == [(b"\x01" * 16,), (b"\xff" * 16,)]


def test_many_fields_with_many_values_do_not_collide() -> None:
    count = 2000
    schema = schema_of(*[LongType()] * 8)
    columns = [[(row * (7 + i)) % count for row in range(count)] for i in range(8)]
    spec = spec_of(*[(i, IdentityTransform()) for i in range(1, 9)])
    pieces = partition_batch(batch_of(schema, columns), spec, [schema])
    assert len(pieces) == len(set(zip(*columns, strict=True)))
    for values, rows in pieces:
        assert [tuple(r.values()) for r in rows.to_pylist()] == [values] * rows.num_rows
