import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.arrow.arrow_schemas import arrow_type, scalar_of
from iceberg_pyspark.arrow.read import equality_deletes
from iceberg_pyspark.arrow.read.equality_deletes import KeySet
from iceberg_pyspark.spec.types import PrimitiveType
from tests.support.strategies import PRIMITIVE_TYPES, nullable


def array_of(type_: PrimitiveType, values: list[Any]) -> pa.Array:
    scalars = [pa.array([scalar_of(type_, v)]) for v in values]
    return pa.concat_arrays(scalars) if scalars else pa.array([], arrow_type(type_))


def columns_of(types: list[PrimitiveType], rows: list[tuple[Any, ...]]) -> list[pa.Array]:
    return [array_of(type_, [row[i] for row in rows]) for i, type_ in enumerate(types)]


def identity(value: Any) -> Any:
    """Return a key that is equal for equal values: the bits of a float, one key for all NaNs."""
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("<d", value)
    return value


@pytest.mark.parametrize("few_keys", [1, 10_000])
@given(st.data())
def test_a_key_set_is_a_set_of_tuples(few_keys: int, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equality_deletes, "_FEW_KEYS", few_keys)
        check_key_set(data)


def check_key_set(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(PRIMITIVE_TYPES), min_size=1, max_size=3))
    pools = [data.draw(st.lists(nullable(t), min_size=1, max_size=4)) for t in types]
    row = st.tuples(*(st.sampled_from(pool) for pool in pools))
    keys = data.draw(st.lists(row, max_size=6))
    rows = data.draw(st.lists(row, min_size=1, max_size=8))
    key_rows = {tuple(map(identity, key)) for key in keys}
    membership = KeySet(columns_of(types, keys)).contains(columns_of(types, rows))
    assert membership.tolist() == [tuple(map(identity, r)) in key_rows for r in rows]


@pytest.mark.parametrize("type_", [pa.int64(), pa.string()])
def test_no_columns_hold_no_rows(type_: pa.DataType) -> None:
    assert KeySet([]).contains([pa.nulls(2, type_)]).tolist() == [False, False]


@pytest.mark.parametrize("type_", [pa.string(), pa.binary()])
@pytest.mark.parametrize("all_collide", [False, True])
def test_colliding_keys_are_found_exactly(
    type_: pa.DataType, all_collide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(equality_deletes, "_FEW_KEYS", 1)
    monkeypatch.setattr(equality_deletes, "_HASHED_ROWS", 7)
    if all_collide:
        monkeypatch.setattr(equality_deletes, "_HASH_FACTOR", 0)
    keys = [None, "", "\0", "\0\0", *(f"key {i}" for i in range(50))]
    probes = pa.array(["skipped", *keys, "key 50", "key", "\0\0\0"], type_).slice(1)
    membership = KeySet([pa.array(keys, type_)]).contains([probes])
    assert membership.tolist() == [True] * len(keys) + [False] * 3


def test_null_matches_only_a_null_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equality_deletes, "_FEW_KEYS", 1)
    membership = KeySet([pa.array(["", "a"])]).contains([pa.array([None, "", "b"])])
    assert membership.tolist() == [False, True, False]
