"""A batch is split into one piece per partition tuple."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.arrow.arrow_schemas import arrow_type, stored_arrow_schema
from iceberg_pyspark.arrow.write.partition_batches import partition_batch
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    accepts,
    apply_transform,
)
from iceberg_pyspark.spec.types import (
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    UUIDType,
)
from tests.support.strategies import PRIMITIVE_TYPES, nullable


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
