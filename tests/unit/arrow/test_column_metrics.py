"""Metrics of data files, and the properties that choose them."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.schema import Schema as OtherSchema

from iceberg_pyspark.arrow.arrow_schemas import arrow_type, stored_arrow_schema
from iceberg_pyspark.arrow.column_metrics import (
    DEFAULT,
    NONE,
    FileMetrics,
    MetricsCollector,
    MetricsMode,
    metric_leaves,
    metrics_mode,
    metrics_modes,
)
from iceberg_pyspark.arrow.formats.parquet_writer import ParquetFile, ParquetOptions
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.bound_cuts import high_cut
from iceberg_pyspark.spec.schema import Schema, schema_to_json
from iceberg_pyspark.spec.table_properties import check_set_properties
from iceberg_pyspark.spec.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    Type,
    UnknownType,
    UUIDType,
)
from iceberg_pyspark.spec.values import may_bound_uuids, value_from_bytes, value_to_bytes
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.strategies import PRIMITIVE_TYPES, nullable


def written(
    schema: Schema, groups: Sequence[pa.Table], properties: Mapping[str, str] | None = None
) -> tuple[FileMetrics, bytes]:
    store = MemoryFileIO()
    collector = MetricsCollector(metric_leaves(schema, properties or {}))
    file = ParquetFile(store, "f", schema, ParquetOptions.of({}))
    for group in groups:
        collector.observe(group)
        file.write_row_group(group)
    result = file.close()
    return collector.finish(result.footer), store.read_bytes("f")


def one_column(type_: Type) -> Schema:
    return Schema(fields=(NestedField(field_id=1, name="c", type=type_),))


def metrics_of(type_: PrimitiveType, *groups: list[Any], mode: str = "truncate(16)") -> FileMetrics:
    tables = [pa.table({"c": pa.array(g, type=arrow_type(type_))}) for g in groups]
    return written(one_column(type_), tables, {"write.metadata.metrics.default": mode})[0]


def bounds_of(type_: PrimitiveType, *groups: list[Any], mode: str = "truncate(16)") -> Any:
    metrics = metrics_of(type_, *groups, mode=mode)
    return metrics["lower_bounds"].get(1), metrics["upper_bounds"].get(1)


def total_order(value: Any) -> Any:
    """Return a sort key with -0.0 before 0.0 and the order of Python otherwise."""
    return (value, math.copysign(1, value)) if isinstance(value, float) else value


@settings(max_examples=settings().max_examples * 2)
@given(st.data())
def test_metrics_equal_those_counted_from_the_rows(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from(PRIMITIVE_TYPES))
    groups = data.draw(st.lists(st.lists(nullable(type_), min_size=1, max_size=6), max_size=3))
    metrics = metrics_of(type_, *groups, mode="full")
    values = [v for g in groups for v in g]
    present = [v for v in values if v is not None]
    numbers = [v for v in present if v == v]

    assert metrics["record_count"] == len(values)
    assert metrics["value_counts"] == {1: len(values)}
    assert metrics["null_value_counts"] == {1: len(values) - len(present)}
    is_float = isinstance(type_, FloatType | DoubleType)
    assert metrics["nan_value_counts"] == ({1: len(present) - len(numbers)} if is_float else {})
    if not numbers:
        assert metrics["lower_bounds"] == metrics["upper_bounds"] == {}
        return
    low = min(numbers, key=total_order)
    high = max(numbers, key=total_order)
    if isinstance(type_, UUIDType) and not may_bound_uuids(low, high):
        assert metrics["lower_bounds"] == metrics["upper_bounds"] == {}
        return
    # Zeros of one sign may be bounded by both zeros.
    low, high = (-0.0 if low == 0 else low, 0.0 if high == 0 else high) if is_float else (low, high)
    assert metrics["lower_bounds"] == {1: value_to_bytes(type_, low)}
    assert metrics["upper_bounds"] == {1: value_to_bytes(type_, high)}


@settings(max_examples=settings().max_examples * 2)
@given(st.data())
def test_truncated_bounds_enclose_every_value(data: st.DataObject) -> None:
    type_: PrimitiveType = data.draw(
        st.sampled_from([StringType(), BinaryType(), FixedType(4), UUIDType()])
    )
    values = data.draw(st.lists(nullable(type_), max_size=6))
    low, high = bounds_of(type_, values, mode="truncate(2)")
    present = [value_to_bytes(type_, v) for v in values if v is not None]
    if not present or (
        isinstance(type_, UUIDType) and not may_bound_uuids(min(present), max(present))
    ):
        assert low is high is None
        return
    assert low <= min(present)
    assert high is None or high >= max(present)
    if isinstance(type_, StringType):
        assert len(low.decode()) <= 2
        assert high is None or len(high.decode()) <= 2
    elif isinstance(type_, UUIDType | FixedType):
        # A truncated value would not be a value of the type.
        assert (low, high) == (min(present), max(present))
    else:
        assert len(low) <= 2
        assert high is None or len(high) <= 2


def test_line_42_a_column_of_nan_has_no_bounds_but_a_count() -> None:
    metrics = metrics_of(DoubleType(), [math.nan, None], [math.nan])
    assert metrics["nan_value_counts"] == {1: 2}
    assert metrics["lower_bounds"] == metrics["upper_bounds"] == {}


def test_line_42_nan_beside_numbers_is_not_a_bound() -> None:
    assert bounds_of(FloatType(), [math.nan, 1.0], [math.nan]) == (struct.pack("<f", 1.0),) * 2


@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, 0.0]])
def test_line_43_zeros_are_bounded_by_minus_zero_and_zero(values: list[float]) -> None:
    expected = (struct.pack("<d", -0.0), struct.pack("<d", 0.0))
    assert bounds_of(DoubleType(), values) == expected
    assert bounds_of(DoubleType(), *[[v] for v in values]) == expected


@pytest.mark.parametrize(
    ("text", "upper"),
    [
        ("a" * 16, "a" * 16),
        ("a" * 17, "a" * 15 + "b"),
        ("\U0001f600" * 17, "\U0001f600" * 15 + "\U0001f601"),
        ("a" * 15 + "\ud7ff" + "x", "a" * 15 + "\ue000"),
        ("a" * 14 + "\U0010ffff" * 3, "a" * 13 + "b"),
        ("\U0010ffff" * 17, None),
    ],
)
def test_line_44_text_bounds_are_sixteen_code_points(text: str, upper: str | None) -> None:
    low, high = bounds_of(StringType(), [text])
    assert low == text[:16].encode()
    assert high == (None if upper is None else upper.encode())


def test_line_44_binary_bounds_are_sixteen_bytes_and_missing_where_none_is_above() -> None:
    assert bounds_of(BinaryType(), [b"\xff" * 17]) == (b"\xff" * 16, None)
    assert bounds_of(BinaryType(), [b"\xff" * 16]) == (b"\xff" * 16, b"\xff" * 16)
    assert bounds_of(BinaryType(), [b"a\xfe" + b"\xff" * 16]) == (
        b"a\xfe" + b"\xff" * 14,
        b"a\xff",
    )


@pytest.mark.parametrize(
    ("unscaled", "bound"), [(0, "00"), (127, "7f"), (128, "0080"), (-128, "80")]
)
@pytest.mark.parametrize("precision", [9, 18, 38])
def test_line_45_decimal_bounds_are_minimal(precision: int, unscaled: int, bound: str) -> None:
    value = Decimal(unscaled).scaleb(-2)
    assert bounds_of(DecimalType(precision, 2), [value]) == (bytes.fromhex(bound),) * 2


def test_line_45_uuids_are_ordered_as_unsigned_bytes() -> None:
    low, high = b"\x01" + b"\x7f" * 15, b"\x01" + b"\x80" * 15
    assert bounds_of(UUIDType(), [high, low], mode="truncate(4)") == (low, high)


def test_uuids_that_java_orders_otherwise_have_no_bounds() -> None:
    low, middle, high = bytes(16), b"\x80" + bytes(15), b"\xff" * 16
    assert bounds_of(UUIDType(), [high, low]) == (None, None)
    assert bounds_of(UUIDType(), [high], [low]) == (None, None)
    assert bounds_of(UUIDType(), [high, middle]) == (middle, high)


@pytest.mark.parametrize("size", [4095, 4096, 4097, 100_000])
@pytest.mark.parametrize("type_", [StringType(), BinaryType()])
def test_bounds_do_not_depend_on_what_the_footer_leaves_out(
    type_: PrimitiveType, size: int
) -> None:
    def value(letter: str) -> Any:
        return letter * size if isinstance(type_, StringType) else (letter * size).encode()

    low, high = bounds_of(type_, [value("b"), None], [value("a")], [value("c")], mode="full")
    assert (low, high) == (b"a" * size, b"c" * size)
    assert bounds_of(type_, [value("b"), None]) == (b"b" * 16, b"b" * 15 + b"c")


def test_modes_choose_what_is_kept() -> None:
    assert metrics_of(DoubleType(), [1.0], mode="none") == {
        **metrics_of(DoubleType(), [1.0]),
        "column_sizes": {},
        "value_counts": {},
        "null_value_counts": {},
        "nan_value_counts": {},
        "lower_bounds": {},
        "upper_bounds": {},
    }
    counts = metrics_of(DoubleType(), [1.0, math.nan, None], mode="counts")
    assert counts["value_counts"] == {1: 3}
    assert counts["null_value_counts"] == {1: 1}
    assert counts["nan_value_counts"] == {1: 1}
    assert counts["lower_bounds"] == {}
    assert counts["column_sizes"].keys() == {1}


def a_field(field_id: int, name: str, type_: Type) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=type_)


NESTED = Schema(
    fields=(
        a_field(20, "u", UnknownType()),
        a_field(
            1,
            "s",
            StructType(
                (
                    a_field(2, "x", DoubleType()),
                    a_field(3, "t", StructType((a_field(4, "y", StringType()),))),
                )
            ),
        ),
        a_field(5, "l", ListType(element_id=6, element_type=DoubleType())),
        a_field(
            7, "m", MapType(key_id=8, key_type=StringType(), value_id=9, value_type=IntegerType())
        ),
        a_field(10, "z", IntegerType()),
    )
)

NESTED_ROWS: list[dict[str, Any]] = [
    {"s": {"x": math.nan, "t": {"y": "b"}}, "l": [1.0, None], "m": [("k", 1)], "z": 5},
    {"s": {"x": 2.0, "t": None}, "l": [], "m": None, "z": None},
    {"s": None, "l": None, "m": [], "z": -3},
    {"s": {"x": None, "t": {"y": "a"}}, "l": [math.nan], "m": [("j", None)], "z": 7},
]


def nested_groups() -> Iterator[pa.Table]:
    schema = stored_arrow_schema(NESTED)
    for rows in (NESTED_ROWS[:3], NESTED_ROWS[3:]):
        yield pa.Table.from_pylist(rows, schema=schema)


def test_line_46_struct_fields_have_metrics_and_what_is_in_lists_and_maps_has_not() -> None:
    metrics, data = written(NESTED, list(nested_groups()))
    assert metrics["value_counts"] == {2: 4, 4: 4, 10: 4}
    assert metrics["null_value_counts"] == {2: 2, 4: 2, 10: 1}
    assert metrics["nan_value_counts"] == {2: 1}
    decoded = {
        i: (
            value_from_bytes(NESTED.field_by_id[i].type, metrics["lower_bounds"][i]),
            value_from_bytes(NESTED.field_by_id[i].type, metrics["upper_bounds"][i]),
        )
        for i in metrics["lower_bounds"]
    }
    assert decoded == {2: (2.0, 2.0), 4: ("a", "b"), 10: (-3, 7)}
    assert metrics["column_sizes"].keys() == {2, 4, 6, 8, 9, 10}
    assert len(metrics["split_offsets"]) == 2
    assert metrics["split_offsets"][0] == 4
    assert sum(metrics["column_sizes"].values()) < len(data)


def test_nan_below_a_null_struct_is_not_counted() -> None:
    hidden = pa.StructArray.from_arrays(
        [pa.array([math.nan, math.nan])], names=["x"], mask=pa.array([True, False])
    )
    schema = Schema(fields=(a_field(1, "s", StructType((a_field(2, "x", DoubleType()),))),))
    metrics, _ = written(schema, [pa.table({"s": hidden})])
    assert metrics["nan_value_counts"] == {2: 1}


def test_metrics_agree_with_those_of_pyiceberg() -> None:
    fields = [a_field(i, f"c{i}", t) for i, t in enumerate(PRIMITIVE_TYPES, start=1)]
    # PyIceberg writes no bounds for nanosecond types.
    shared_fields = [f for f in fields if "_ns" not in str(f.type)]
    schema = Schema(fields=tuple(shared_fields))
    low_high: dict[str, tuple[Any, Any]] = {
        "string": ("a" * 20, "z" * 20),
        "binary": (b"a" * 20, b"z" * 20),
        "uuid": (b"\x01" * 16, b"\x7e" * 16),
        "fixed[2]": (b"ab", b"yz"),
        "boolean": (False, True),
        "float": (-1.5, 2.5),
        "double": (-1.5, 2.5),
        "decimal(9, 2)": (Decimal("-1.25"), Decimal("12345.67")),
        "decimal(38, 10)": (Decimal("-1.25"), Decimal("12345.67")),
        "time": (5, 70_000),
    }
    values = {f.name: [*low_high.get(str(f.type), (-5, 70_000)), None] for f in shared_fields}
    table = pa.table(values, schema=stored_arrow_schema(schema))
    metrics, data = written(schema, [table, table])
    other = OtherSchema.model_validate(schema_to_json(schema))
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=pq.read_metadata(io.BytesIO(data)),
        stats_columns=compute_statistics_plan(other, {}),
        parquet_column_mapping=parquet_path_to_id_mapping(other),
    )
    assert metrics["record_count"] == statistics.record_count
    assert metrics["column_sizes"] == statistics.column_sizes
    assert metrics["value_counts"] == statistics.value_counts
    assert metrics["null_value_counts"] == statistics.null_value_counts
    assert list(metrics["split_offsets"]) == statistics.split_offsets
    serialized = statistics.to_serialized_dict()
    assert metrics["lower_bounds"] == serialized["lower_bounds"]
    assert metrics["upper_bounds"] == serialized["upper_bounds"]


def test_an_upper_bound_shorter_than_the_length_stays() -> None:
    assert high_cut("ab", 2) == "ab"
    assert high_cut("", 2) == ""


def leaf(field_id: int, name: str) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=IntegerType())


SCHEMA = Schema(
    fields=(
        leaf(1, "a"),
        NestedField(
            field_id=2,
            name="s",
            type=StructType(
                (
                    leaf(3, "x"),
                    NestedField(field_id=4, name="t", type=StructType((leaf(5, "y"),))),
                )
            ),
        ),
        NestedField(field_id=6, name="l", type=ListType(element_id=7, element_type=StringType())),
        leaf(8, "b"),
    )
)


def test_every_primitive_column_has_a_mode() -> None:
    assert metrics_modes(SCHEMA, {}) == dict.fromkeys([1, 8, 3, 5, 7], DEFAULT)
    assert MetricsMode("truncate", 16) == DEFAULT


def test_a_column_of_its_own_mode_and_a_default() -> None:
    modes = metrics_modes(
        SCHEMA,
        {
            "write.metadata.metrics.default": "counts",
            "write.metadata.metrics.column.s.t.y": "full",
            "write.metadata.metrics.column.l.element": "none",
            "write.metadata.metrics.column.l": "full",
            "write.metadata.metrics.column.gone": "full",
        },
    )
    counts = MetricsMode("counts")
    assert modes == {1: counts, 8: counts, 3: counts, 5: MetricsMode("full"), 7: NONE}


def test_only_the_first_columns_have_the_inferred_default_outer_ones_first() -> None:
    limit = {"write.metadata.metrics.max-inferred-column-defaults": "3"}
    assert metrics_modes(SCHEMA, limit) == {1: DEFAULT, 8: DEFAULT, 3: DEFAULT, 5: NONE, 7: NONE}
    # An explicit default applies to all columns.
    properties = {**limit, "write.metadata.metrics.default": "full"}
    assert set(metrics_modes(SCHEMA, properties).values()) == {MetricsMode("full")}


@pytest.mark.parametrize("text", ["", "truncate", "truncate(0)", "truncate(-1)", "all"])
def test_unknown_metrics_mode_is_ignored_as_in_java(text: str) -> None:
    key = "write.metadata.metrics."
    assert set(metrics_modes(SCHEMA, {f"{key}default": text}).values()) == {DEFAULT}
    properties = {f"{key}default": "counts", f"{key}column.a": text, f"{key}column.s.x": "full"}
    assert metrics_modes(SCHEMA, properties)[1] == MetricsMode("counts")
    with pytest.raises(InvalidRequestError, match=f"{key}column.a"):
        check_set_properties({f"{key}column.a": text})


def test_a_negative_number_of_columns_is_ignored_as_java_ignores_it() -> None:
    limit = {"write.metadata.metrics.max-inferred-column-defaults": "-1"}
    assert set(metrics_modes(SCHEMA, limit).values()) == {DEFAULT}


def test_modes_are_read_in_any_case() -> None:
    assert metrics_mode("Truncate(8)", NONE) == MetricsMode("truncate", 8)
    assert metrics_mode("NONE", DEFAULT) == NONE
