"""Rebuilding nested arrays: slices, offsets that do not start at 0, swapped names."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.arrow.arrow_schemas import arrow_type, to_arrow_schema
from iceberg_pyspark.arrow.file_fields import resolve_file_fields
from iceberg_pyspark.arrow.read.file_projection import FileProjection
from iceberg_pyspark.spec.types import (
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from tests.support.scan_tasks import optional, schema_of


def converted(before: NestedField, after: NestedField, array: pa.Array) -> pa.Array:
    """Return a column that is read with the type of `before` and converted to `after`."""
    file_fields = resolve_file_fields(
        to_arrow_schema(schema_of(before), field_ids=True), None, "f.parquet"
    )
    projection = FileProjection([after], file_fields, partition_values={}, location="f.parquet")
    every_leaf = file_fields.columns[0].leaves
    (result,) = projection.compile(every_leaf)([array], len(array))
    result.validate(full=True)
    assert result.type == arrow_type(after.type)
    return result


def nested(struct: StructType) -> StructType:
    return StructType(
        (
            optional(2, "l", ListType(element_id=3, element_type=struct)),
            optional(
                4,
                "m",
                MapType(
                    key_id=5,
                    key_type=StringType(),
                    value_id=6,
                    value_type=ListType(element_id=7, element_type=IntegerType()),
                ),
            ),
            optional(8, "s", struct),
        )
    )


BEFORE = optional(
    1, "c", nested(StructType((optional(11, "x", IntegerType()), optional(12, "y", StringType()))))
)
AFTER = optional(
    1, "c", nested(StructType((optional(12, "x", StringType()), optional(13, "z", LongType()))))
)

points = st.none() | st.fixed_dictionaries(
    {"x": st.none() | st.integers(0, 9), "y": st.none() | st.text("ab", max_size=2)}
)
cells = st.none() | st.fixed_dictionaries(
    {
        "l": st.none() | st.lists(points, max_size=3),
        "m": st.none()
        | st.lists(
            st.tuples(
                st.text("k", max_size=1), st.none() | st.lists(st.integers(0, 3), max_size=2)
            ),
            max_size=2,
        ),
        "s": points,
    }
)


def renamed(point: Any) -> Any:
    return point and {"x": point["y"], "z": None}


@given(st.lists(cells, max_size=8), st.integers(0, 4), st.integers(0, 8))
def test_slices_convert_like_whole_arrays(rows: list[Any], start: int, length: int) -> None:
    array = pa.array(rows, arrow_type(BEFORE.type)).slice(start, length)
    expected = [
        cell
        and {
            "l": cell["l"] if cell["l"] is None else [renamed(p) for p in cell["l"]],
            "m": cell["m"],
            "s": renamed(cell["s"]),
        }
        for cell in rows[start : start + length]
    ]
    assert converted(BEFORE, AFTER, array).to_pylist() == expected


def test_two_fields_that_swapped_their_names_keep_their_values() -> None:
    """The Arrow types before and after are equal, so only field ids distinguish the fields."""
    a, b = optional(2, "a", StringType()), optional(3, "b", StringType())
    swapped = StructType((optional(3, "a", StringType()), optional(2, "b", StringType())))
    array = pa.array([{"a": "1", "b": "2"}])
    result = converted(optional(1, "c", StructType((a, b))), optional(1, "c", swapped), array)
    assert result.to_pylist() == [{"a": "2", "b": "1"}]


def test_equal_types_are_passed_on_without_a_copy() -> None:
    array = pa.array([None, {"l": [], "m": None, "s": None}], arrow_type(BEFORE.type))
    assert converted(BEFORE, BEFORE, array) is array


@pytest.mark.parametrize(
    "stored",
    [pa.large_list(pa.int32()), pa.list_(pa.int32(), 2), pa.list_view(pa.int32())],
)
def test_every_kind_of_list_becomes_a_list(stored: pa.DataType) -> None:
    column = optional(1, "c", ListType(element_id=2, element_type=LongType()))
    array = pa.array([[9, 9], [1, 2], None, [3, None]], stored).slice(1)
    schema = pa.schema([pa.field("c", stored, metadata={b"PARQUET:field_id": b"1"})])
    projection = FileProjection(
        [column],
        resolve_file_fields(schema, None, "f"),
        partition_values={},
        location="f",
    )
    (result,) = projection.compile({0})([array], 3)
    result.validate(full=True)
    assert result.type == arrow_type(column.type)
    assert result.to_pylist() == [[1, 2], None, [3, None]]
