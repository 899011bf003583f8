"""Hashes of columns equal the hashes of their single values."""

from __future__ import annotations

import random
import uuid
from decimal import Decimal

import mmh3
import pyarrow as pa
import pytest

from iceberg_pyspark.arrow.arrow_schemas import from_arrow_schema, value_of
from iceberg_pyspark.arrow.value_hashes import is_hashable, value_hashes
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.values import decimal_of, value_to_bytes
from tests.support.every_type import every_type


def hash_of(data: bytes) -> int:
    return int(mmh3.hash64(data, 9001, signed=False)[0]) >> 1


def form_of(type_: types.Type, scalar: pa.Scalar) -> bytes:
    value = value_of(type_, scalar)
    return value_to_bytes(type_, value.bytes if isinstance(value, uuid.UUID) else value)


def assert_hashed(type_: types.Type, values: pa.Array) -> None:
    assert any(v.is_valid for v in values)
    for part in (values, values[1:]):
        forms = {form_of(type_, v) for v in part if v.is_valid}
        assert set(map(int, value_hashes(type_, part))) == {hash_of(f) for f in forms if f}


def test_every_type() -> None:
    rows = every_type(3)
    hashed = 0
    for field in from_arrow_schema(rows.schema).fields:
        values = rows[field.name].combine_chunks()
        if is_hashable(field.type):
            hashed += 1
            assert_hashed(field.type, values)
            assert len(value_hashes(field.type, values[:0])) == 0
        else:
            with pytest.raises(UnsupportedFeatureError):
                value_hashes(field.type, values)
    assert hashed > 20


def test_bytes_of_any_length() -> None:
    chance = random.Random(3)
    values = [chance.randbytes(n) for n in (*range(100), 511, 512, 513, 5000) for _ in range(3)]
    assert_hashed(types.BinaryType(), pa.array([*values, None], pa.binary()))


def test_decimals_take_the_fewest_bytes() -> None:
    chance = random.Random(4)
    numbers = [
        sign * (1 << bits) + n for bits in range(126) for n in (-1, 0, 1) for sign in (-1, 1)
    ]
    numbers += [chance.getrandbits(chance.randrange(1, 120)) for _ in range(200)]
    type_ = types.DecimalType(precision=38, scale=3)
    values = [decimal_of(n, 3) for n in numbers if abs(n) < 10**38]
    assert Decimal(0) in values
    assert_hashed(type_, pa.array(values, pa.decimal128(38, 3)))
