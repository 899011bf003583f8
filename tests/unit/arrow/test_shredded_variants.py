"""Variants that our Parquet writer shreds: the same values come back, typed columns have bounds."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark import variants_from_objects, variants_to_objects
from iceberg_pyspark.arrow.arrow_schemas import VARIANT
from iceberg_pyspark.arrow.column_metrics import FileMetrics
from iceberg_pyspark.arrow.formats.file_writers import file_writers
from iceberg_pyspark.arrow.formats.shredded_variants import (
    column_shredding,
    shredded_array,
    shredded_type,
)
from iceberg_pyspark.arrow.read.variants import check_variant, variant_array
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec import variant_encoding as encoding
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import NestedField, StringType, VariantType
from iceberg_pyspark.spec.variant_encoding import comparable_of
from iceberg_pyspark.spec.variant_shredding import (
    Shredding,
    TypedArray,
    TypedObject,
    TypedValue,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO

SCHEMA = Schema(
    fields=(
        NestedField(field_id=1, name="v", type=VariantType()),
        NestedField(field_id=2, name="z", type=StringType()),
    )
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-300, 300),
    st.integers(-(2**70), 2**70),
    st.text(max_size=70),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-999, max_value=999, places=2),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(dt.timezone.utc)),
    st.times(),
    st.uuids(),
    st.binary(max_size=3),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "ü", "\U0001f600"]), inner, max_size=4)
    ),
    max_leaves=6,
)


def column(values: Sequence[Any]) -> pa.ChunkedArray:
    return pa.chunked_array([variants_from_objects(values)])


def shredding(values: Sequence[Any], rows: int = 100) -> Shredding | None:
    return column_shredding(column(values), rows, "v")


def comparable(array: pa.Array) -> list[bytes | None]:
    return [
        None if row is None else comparable_of(row["metadata"], row["value"])
        for row in array.to_pylist()
    ]


@given(st.lists(VALUES, max_size=4), st.lists(VALUES, max_size=4))
def test_values_come_back_whatever_was_inferred(first: list[Any], later: list[Any]) -> None:
    array = variants_from_objects([*first, *later])
    inferred = shredding(first)
    if inferred is None:
        return
    shredded = shredded_array(array, inferred, "v")
    shredded.validate(full=True)
    assert shredded.type == shredded_type(inferred)
    check_variant(shredded.type, "f")
    assert comparable(variant_array(shredded)) == comparable(array)
    part = array.slice(1)
    assert comparable(variant_array(shredded_array(part, inferred, "v"))) == comparable(part)


@pytest.mark.parametrize(
    ("value", "type_", "type_id"),
    [
        (True, pa.bool_(), encoding.BOOLEAN),
        (-7, pa.int8(), encoding.INT8),
        (300, pa.int16(), encoding.INT16),
        (-70000, pa.int32(), encoding.INT32),
        (2**40, pa.int64(), encoding.INT64),
        (2.5, pa.float64(), encoding.DOUBLE),
        ("é", pa.string(), encoding.TEXT),
        ("x" * 100, pa.string(), encoding.TEXT),
        (b"\x00\xff", pa.binary(), encoding.BINARY),
        (dt.date(1960, 2, 3), pa.date32(), encoding.DATE),
        (dt.time(1, 2, 3, 4), pa.time64("us"), encoding.TIME),
        (dt.datetime(1960, 2, 3, 4, 5, 6, 7), pa.timestamp("us"), encoding.TIMESTAMP),
        (
            dt.datetime(2001, 2, 3, tzinfo=dt.timezone.utc),
            pa.timestamp("us", "UTC"),
            encoding.TIMESTAMPTZ,
        ),
        (UUID(int=5), pa.uuid(), encoding.UUID_),
        (Decimal("1.25"), pa.decimal128(3, 2), encoding.DECIMAL4),
        (Decimal("-12345678901.5"), pa.decimal128(12, 1), encoding.DECIMAL8),
        (Decimal("1" * 30), pa.decimal128(30, 0), encoding.DECIMAL16),
    ],
)
def test_each_type_has_its_column(value: Any, type_: pa.DataType, type_id: int) -> None:
    inferred = shredding([value, None])
    assert isinstance(inferred, TypedValue)
    assert inferred.type_id == type_id
    assert shredded_type(inferred).field("typed_value").type == type_
    array = shredded_array(variants_from_objects([value, None]), inferred, "v")
    assert array.field("value").null_count == 2
    assert variants_to_objects(variant_array(array)) == [value, None]


def test_java_rules_choose_the_columns() -> None:
    """The names of the rules are in the module that is tested."""
    integer = TypedValue(encoding.INT16)
    assert shredding([1, 300]) == integer
    assert shredding([Decimal("1.25"), Decimal("100.5")]) == TypedValue(encoding.DECIMAL4, 5, 2)
    mixed: list[Any]
    for mixed in ([1, "x"], [1, Decimal("1.5")], [{}], [None], [[], []], [{"a": None}]):
        assert shredding(mixed) is None, mixed
    objects = [{"a": 1, "b": "x", "mix": 1, "n": {"c": [1, 2]}}, {"a": 300, "mix": "x"}]
    assert shredding(objects) == TypedObject(
        {
            "a": integer,
            "b": TypedValue(encoding.TEXT),
            "n": TypedObject({"c": TypedArray(TypedValue(encoding.INT8))}),
        }
    )
    rare = [{"a": 1, "rare": 1}] + [{"a": 1}] * 10
    assert shredding(rare) == TypedObject({"a": TypedValue(encoding.INT8)})
    assert shredding(rare[:10]) == TypedObject(
        dict.fromkeys(("a", "rare"), TypedValue(encoding.INT8))
    )
    # nulls are no values, and the first rows alone decide
    assert shredding([None] * 50 + [1] + ["x"] * 50, rows=51) == TypedValue(encoding.INT8)
    many = {f"f{i:03}": 1 for i in range(400)}
    wide = shredding([many, {f"f{i:03}": 1 for i in range(390, 400)}])
    assert isinstance(wide, TypedObject)
    assert list(wide.fields) == [f"f{i:03}" for i in (*range(290), *range(390, 400))]


def test_later_rows_widen_numbers_and_nothing_else() -> None:
    first = [{"a": 1, "d": Decimal("1.5"), "l": [1], "s": "x", "mix": 1}, {"mix": "x"}]
    later = [{"a": 2**40, "d": Decimal("123.25"), "l": [300], "s": 1, "mix": 300, "new": 1}, 5]
    assert shredding([*first, *later], rows=2) == TypedObject(
        {
            "a": TypedValue(encoding.INT64),
            "d": TypedValue(encoding.DECIMAL4, 5, 2),
            "l": TypedArray(TypedValue(encoding.INT16)),
            "s": TypedValue(encoding.TEXT),
        }
    )
    assert shredding([*first, {"a": "x", "d": 1}], rows=2) == shredding(first)


def written(
    batches: Sequence[pa.RecordBatch], properties: dict[str, str]
) -> tuple[pq.ParquetFile, FileMetrics]:
    store = MemoryFileIO()
    shred = {"write.parquet.shred-variants": "true", **properties}
    file = file_writers("parquet", SCHEMA, shred, target_file_size_in_bytes=1 << 20).create(
        store, "f"
    )
    for batch in batches:
        file.write(pa.Table.from_batches([batch]))
    metrics = file.close().metrics
    return pq.ParquetFile(io.BytesIO(store.read_bytes("f"))), metrics


def rows(values: Sequence[Any]) -> pa.RecordBatch:
    texts = [f"z{i}" for i in range(len(values))]
    return pa.RecordBatch.from_pydict({"v": variants_from_objects(values), "z": texts})


FIRST = [{"a": 1, "s": "x", "l": [1]}, None, {"a": 300, "s": "y", "b": True}]


def test_a_file_has_typed_columns_bounds_and_the_annotation() -> None:
    """docs/conformance.md 50: bounds of variants are of their shredded fields."""
    file, metrics = written([rows(FIRST), rows([{"a": -5, "s": 1}])], {})
    assert "(Variant(" in str(file.schema)
    names = [file.schema.column(i).path for i in range(len(file.schema))]
    assert names[:4] == [
        "v.metadata",
        "v.value",
        "v.typed_value.a.value",
        "v.typed_value.a.typed_value",
    ]
    assert "v.typed_value.l.typed_value.list.element.typed_value" in names
    array = pa.concat_arrays(variant_array(c) for c in file.read(["v"]).column("v").chunks)
    assert variants_to_objects(array) == [*FIRST, {"a": -5, "s": 1}]
    [low, high] = (metrics[k][1] for k in ("lower_bounds", "upper_bounds"))
    sides = [variants_to_objects(bounds_column(side))[0] for side in (low, high)]
    assert sides == [{"$['a']": -5, "$['b']": True}, {"$['a']": 300, "$['b']": True}]
    assert metrics["null_value_counts"] == {1: 1, 2: 0}
    assert metrics["lower_bounds"][2] == b"z0"


def bounds_column(side: bytes) -> pa.Array:
    length = encoding.metadata_length(side)
    return pa.array([{"metadata": side[:length], "value": side[length:]}], VARIANT)


def test_the_number_of_first_rows_is_a_property() -> None:
    first = rows(["text", 1])
    properties = {"write.parquet.variant-inference-buffer-size": "1"}
    file, _ = written([first], properties)
    assert file.schema.column(2).path == "v.typed_value"
    file, _ = written([first], {})
    assert file.schema.column(2).path == "z"
    with pytest.raises(InvalidRequestError, match="variant-inference-buffer-size"):
        written([first], {"write.parquet.variant-inference-buffer-size": "0"})


def test_settings_of_the_column_are_those_of_its_typed_columns() -> None:
    off = dict.fromkeys(("stats-enabled", "dict-encoding-enabled"), "false")
    properties = {f"write.parquet.{k}.column.v": v for k, v in off.items()}
    file, metrics = written([rows(FIRST)], properties)
    chunks = [file.metadata.row_group(0).column(i) for i in range(1, len(file.schema))]
    assert len(chunks) > 6
    for chunk in chunks:
        assert chunk.is_stats_set is (chunk.path_in_schema == "z"), chunk.path_in_schema
        assert chunk.has_dictionary_page is (chunk.path_in_schema == "z"), chunk.path_in_schema
    assert metrics["lower_bounds"].keys() == {2}


def test_files_without_rows_and_given_up_files() -> None:
    file, _ = written([], {})
    assert [f.name for f in file.schema_arrow] == ["v", "z"]
    store = MemoryFileIO()
    shred = {"write.parquet.shred-variants": "true"}
    writers = file_writers("parquet", SCHEMA, shred, target_file_size_in_bytes=1 << 20)
    writers.create(store, "f").abort()
    assert not store.exists("f")


def test_damaged_variants_are_refused_by_name() -> None:
    damaged = pa.array([{"metadata": encoding.EMPTY_METADATA, "value": b"\x02\x05"}], VARIANT)
    batch = pa.RecordBatch.from_pydict({"v": damaged, "z": ["x"]})
    with pytest.raises(InvalidRequestError, match="column 'v' holds a damaged variant"):
        written([batch], {})
    with pytest.raises(InvalidRequestError, match="column 'v' holds a damaged variant"):
        written([rows([{"a": 1}]), batch], {})
