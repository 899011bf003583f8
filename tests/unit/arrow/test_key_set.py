import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceberg_pyspark.arrow.key_set import KeySet
from iceberg_pyspark.arrow.scalars import scalar_of
from iceberg_pyspark.arrow.schemas import arrow_type
from iceberg_pyspark.spec.types import PrimitiveType
from tests.support.strategies import PRIMITIVE_TYPES, nullable


def array_of(type_: PrimitiveType, values: list[Any]) -> pa.Array:
    scalars = [pa.array([scalar_of(type_, v)]) for v in values]
    return pa.concat_arrays(scalars) if scalars else pa.array([], arrow_type(type_))


def columns_of(types: list[PrimitiveType], rows: list[tuple[Any, ...]]) -> list[pa.Array]:
    return [array_of(type_, [row[i] for row in rows]) for i, type_ in enumerate(types)]


def identity(value: Any) -> Any:
    """What makes a value the same as another: bits for floats, all NaNs one."""
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("<d", value)
    return value


@settings(max_examples=150)
@given(st.data())
def test_a_key_set_is_a_set_of_tuples(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(PRIMITIVE_TYPES), min_size=1, max_size=3))
    pools = [data.draw(st.lists(nullable(t), min_size=1, max_size=4)) for t in types]
    row = st.tuples(*(st.sampled_from(pool) for pool in pools))
    keys = data.draw(st.lists(row, max_size=6))
    rows = data.draw(st.lists(row, min_size=1, max_size=8))
    wanted = {tuple(map(identity, key)) for key in keys}
    found = KeySet(columns_of(types, keys)).contains(columns_of(types, rows))
    assert found.tolist() == [tuple(map(identity, r)) in wanted for r in rows]


@pytest.mark.parametrize("type_", [pa.int64(), pa.string()])
def test_no_columns_hold_no_rows(type_: pa.DataType) -> None:
    assert KeySet([]).contains([pa.nulls(2, type_)]).tolist() == [False, False]
