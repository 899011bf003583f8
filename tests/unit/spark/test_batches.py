"""Spark always gets exactly the Arrow schema that it compares batches with."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st
from pyspark.sql import types as spark_types

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.spark.rows.batches import compile_to_spark
from iceberg_pyspark.spark.rows.spark_types import to_spark_schema
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    DateType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
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
    walk_fields,
)
from tests.support.data_source_steps import spark_arrow_schema
from tests.support.strategies import PRIMITIVE_TYPES, values

# Timestamps are never converted, and Python cannot represent all drawn values.
_TIMESTAMPS = (TimestampType, TimestamptzType, TimestampNsType, TimestamptzNsType)
PLAIN = [t for t in PRIMITIVE_TYPES if not isinstance(t, _TIMESTAMPS)]
CONVERTED: tuple[PrimitiveType, ...] = (UUIDType(), FixedType(3), TimeType())


@st.composite
def types(draw: st.DrawFn, depth: int = 2) -> Type:
    """Draw any type that Spark supports; types that need conversion are frequent."""
    kinds = ["converted", "primitive"] + (["struct", "list", "map"] if depth else [])
    match draw(st.sampled_from(kinds)):
        case "struct":
            inner = draw(st.lists(types(depth - 1), min_size=1, max_size=3))
            return StructType(
                tuple(
                    NestedField(field_id=i, name=f"f{i}", type=t, required=draw(st.booleans()))
                    for i, t in enumerate(inner)
                )
            )
        case "list":
            return ListType(
                element_id=0,
                element_type=draw(types(depth - 1)),
                element_required=draw(st.booleans()),
            )
        case "map":
            key = draw(st.sampled_from([StringType(), UUIDType(), FixedType(3), TimeType()]))
            return MapType(
                key_id=0,
                key_type=key,
                value_id=1,
                value_type=draw(types(depth - 1)),
                value_required=draw(st.booleans()),
            )
        case "converted":
            return draw(st.sampled_from(CONVERTED))
        case _:
            return draw(st.sampled_from(PLAIN))


def any_value(type_: Type, required: bool) -> st.SearchStrategy[Any]:
    """Draw values as Arrow takes them, with nulls where allowed."""
    strategy: st.SearchStrategy[Any]
    match type_:
        case StructType(fields=fields):
            strategy = st.fixed_dictionaries(
                {f.name: any_value(f.type, f.required) for f in fields}
            )
        case ListType():
            strategy = st.lists(any_value(type_.element_type, type_.element_required), max_size=3)
        case MapType():
            pair = st.tuples(
                any_value(type_.key_type, True), any_value(type_.value_type, type_.value_required)
            )
            strategy = st.lists(pair, max_size=2, unique_by=lambda kv: kv[0])
        case UnknownType():
            return st.none()
        case DateType():
            # Dates pass through unchanged; `to_pylist` cannot represent dates of all years.
            strategy = st.integers(-719_162, 2_932_896)
        case _:
            strategy = values(type_)
    return strategy if required else st.none() | strategy


def as_spark(value: Any, type_: Type) -> Any:
    """Return a value of `to_pylist` as Spark's batches should hold it."""
    match value, type_:
        case None, _:
            return None
        case dict(), StructType(fields=fields):
            return {f.name: as_spark(value[f.name], f.type) for f in fields}
        case list(), ListType():
            return [as_spark(v, type_.element_type) for v in value]
        case list(), MapType():
            return [(as_spark(k, type_.key_type), as_spark(v, type_.value_type)) for k, v in value]
        case bytes() | uuid.UUID(), UUIDType():
            return str(value if isinstance(value, uuid.UUID) else uuid.UUID(bytes=value))
        case _:
            return value


@given(st.data())
def test_batches_have_exactly_the_schema_that_spark_expects(data: st.DataObject) -> None:
    fields = tuple(
        NestedField(field_id=i, name=f"c{i}", type=t, required=data.draw(st.booleans()))
        for i, t in enumerate(data.draw(st.lists(types(), min_size=1, max_size=3)))
    )
    schema = Schema(fields=fields)
    has_time = any(isinstance(f.type, TimeType) for f in walk_fields(schema.as_struct))
    # Spark 4.0 has no type for time.
    assume(not has_time or hasattr(spark_types, "TimeType"))
    row = st.fixed_dictionaries({f.name: any_value(f.type, f.required) for f in fields})
    rows = data.draw(st.lists(row, max_size=5))
    whole = pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(schema))
    # Readers pass slices on.
    start = data.draw(st.integers(0, len(rows)))
    batch = whole.slice(start, data.draw(st.integers(0, len(rows))))
    converted = compile_to_spark(schema)(batch)
    converted.validate(full=True)
    assert converted.schema.equals(spark_arrow_schema(to_spark_schema(schema)))
    for f in fields:
        expected = [as_spark(v, f.type) for v in batch.column(f.name).to_pylist()]
        # Compare the text, because NaN does not equal itself.
        assert str(converted.column(f.name).to_pylist()) == str(expected)
