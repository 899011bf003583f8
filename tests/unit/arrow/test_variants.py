"""Variants in files, whole or shredded, compared with Spark's own Python implementation."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import VariantVal

from iceberg_pyspark.arrow.arrow_schemas import VARIANT
from iceberg_pyspark.arrow.read.variants import check_variant, variant_array
from iceberg_pyspark.errors import InvalidMetadataError, UnsupportedFeatureError

NAMES = ("a", "b", "c", "rest", "ü" * 40)
GROUP = [("value", pa.binary())]


def group(type_: pa.DataType) -> pa.StructType:
    return pa.struct([*GROUP, ("typed_value", type_)])


def required(name: str, type_: pa.DataType) -> pa.Field:
    return pa.field(name, type_, nullable=False)


SHREDDED = pa.struct(
    [
        required("metadata", pa.binary()),
        *GROUP,
        pa.field(
            "typed_value",
            pa.struct(
                [
                    required("a", group(pa.int64())),
                    required("b", group(pa.string())),
                    required("c", group(pa.list_(required("element", group(pa.int64()))))),
                ]
            ),
        ),
    ]
)

SCALARS = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=80)
LISTS = st.lists(SCALARS, max_size=300) | st.lists(st.integers(0, 300), max_size=5)
VALUES = st.dictionaries(st.sampled_from(NAMES), SCALARS | LISTS) | SCALARS | LISTS


def encoded(value: Any) -> VariantVal:
    """Encode a value with all names in its dictionary, so that all parts share it."""
    text = json.dumps([dict.fromkeys(NAMES), value])
    whole = VariantVal.parseJson(text)
    return VariantVal(_element(bytes(whole.value), 1), whole.metadata)


def _element(array: bytes, index: int) -> bytes:
    size = (array[0] >> 2 & 3) + 1
    start = 2 + size * 3
    ends = [int.from_bytes(array[2 + size * i : 2 + size * (i + 1)], "little") for i in range(3)]
    return array[start + ends[index] : start + ends[index + 1]]


def plain(value: Any) -> dict[str, Any]:
    """Return a group that holds a value without shredding."""
    return {"value": bytes(encoded(value).value), "typed_value": None}


def typed(value: Any) -> dict[str, Any]:
    return {"value": None, "typed_value": value}


def shredded(value: Any) -> dict[str, Any]:
    """Return a row of `SHREDDED`: matching parts are typed, the rest is in `value`."""
    metadata = bytes(encoded(value).metadata)
    if not isinstance(value, dict):
        return {"metadata": metadata, **plain(value)}
    remaining_fields = dict(value)
    parts: dict[str, Any] = {}
    for name, kind in (("a", int), ("b", str), ("c", list)):
        if name not in remaining_fields:
            parts[name] = typed(None)
            continue
        part = remaining_fields.pop(name)
        if not isinstance(part, kind) or isinstance(part, bool):
            parts[name] = plain(part)
        elif isinstance(part, list):
            parts[name] = typed([typed(e) if type(e) is int else plain(e) for e in part])
        else:
            parts[name] = typed(part)
    rest = bytes(encoded(remaining_fields).value) if remaining_fields else None
    return {"metadata": metadata, "value": rest, "typed_value": parts}


def decoded(array: pa.Array) -> list[Any]:
    return [
        None if row is None else VariantVal(row["value"], row["metadata"]).toPython()
        for row in array.to_pylist()
    ]


@given(st.lists(VALUES, max_size=4))
def test_shredded_values_are_put_together_again(values: list[Any]) -> None:
    rows = [*(shredded(v) for v in values), None]
    check_variant(SHREDDED, "f")
    array = variant_array(pa.array(rows, SHREDDED))
    assert array.type == VARIANT
    assert decoded(array) == [*values, None]


def test_whole_values_come_as_they_are_stored() -> None:
    one = encoded({"a": 1})
    row = {"value": bytes(one.value), "metadata": bytes(one.metadata)}
    stored = pa.array(
        [row, None, row], pa.struct([("value", pa.binary()), ("metadata", pa.large_binary())])
    )
    assert decoded(variant_array(stored.slice(1))) == [None, {"a": 1}]
    assert variant_array(stored.slice(0, 0)).type == VARIANT


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.bool_(), True),
        (pa.int8(), -7),
        (pa.int16(), 300),
        (pa.int32(), -70000),
        (pa.float32(), 1.5),
        (pa.float64(), -2.25),
        (pa.decimal128(5, 2), Decimal("-1.25")),
        (pa.decimal128(18, 3), Decimal("123456789012.125")),
        (pa.date32(), dt.date(1969, 12, 31)),
        (pa.timestamp("us"), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
        (pa.timestamp("us", "UTC"), dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)),
        (pa.binary(), b"\x00\xff"),
        (pa.string(), "x" * 64),
    ],
    ids=str,
)
def test_every_typed_column_is_encoded_as_its_type(type_: pa.DataType, value: Any) -> None:
    metadata = bytes(encoded(None).metadata)
    stored = pa.struct([("metadata", pa.binary()), ("typed_value", type_)])
    values = pa.array([value], type_)
    array = pa.StructArray.from_arrays([pa.array([metadata]), values], fields=list(stored))
    check_variant(stored, "f")
    assert decoded(variant_array(array)) == [value]


def test_types_that_pyspark_cannot_decode_have_the_bytes_of_the_encoding() -> None:
    metadata = bytes(encoded(None).metadata)
    nines, number = "9" * 38, UUID(int=7)
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([number.bytes], pa.binary(16)))
    for values, expected in (
        (
            pa.array([Decimal(f"-{nines}")], pa.decimal128(38, 0)),
            bytes([10 << 2, 0]) + (-int(nines)).to_bytes(16, "little", signed=True),
        ),
        (uuids, bytes([20 << 2]) + number.bytes),
    ):
        array = pa.StructArray.from_arrays(
            [pa.array([metadata]), values], names=["metadata", "typed_value"]
        )
        assert variant_array(array).to_pylist() == [{"metadata": metadata, "value": expected}]


def test_malformed_variant_is_refused_by_name() -> None:
    with pytest.raises(InvalidMetadataError, match=r"f: column 'v' is stored as .*a variant"):
        check_variant(pa.struct(GROUP), "f: column 'v'")
    odd = pa.struct([("metadata", pa.binary()), ("typed_value", pa.timestamp("ms"))])
    with pytest.raises(UnsupportedFeatureError, match="column 'v' is shredded into a column of"):
        check_variant(odd, "f: column 'v'")
