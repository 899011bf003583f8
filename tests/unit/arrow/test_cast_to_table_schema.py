"""Incoming rows are cast to the table's schema by name, or refused with a reason."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pytest

from iceberg_pyspark.arrow.arrow_schemas import stored_arrow_schema
from iceberg_pyspark.arrow.write.cast_to_table_schema import (
    check_write_schema,
    compile_cast_to_table_schema,
)
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UUIDType,
)

UTC = dt.timezone.utc


def a_field(field_id: int, name: str, type_: Type, **more: Any) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=type_, **more)


def one_column(type_: Type, **more: Any) -> Schema:
    return Schema(fields=(a_field(1, "c", type_, **more),))


def conform_batch(
    batch: pa.RecordBatch, schema: Schema, *, table: str, case_sensitive: bool = True
) -> pa.RecordBatch:
    return compile_cast_to_table_schema(
        batch.schema, schema, table=table, case_sensitive=case_sensitive
    )(batch)


def conformed(schema: Schema, **columns: pa.Array) -> pa.RecordBatch:
    result = conform_batch(pa.RecordBatch.from_pydict(columns), schema, table="db.t")
    assert result.schema.equals(stored_arrow_schema(schema))
    result.validate(full=True)
    return result


def column(type_: Type, array: pa.Array) -> list[Any]:
    values: list[Any] = conformed(one_column(type_), c=array).column(0).to_pylist()
    return values


def test_columns_are_taken_by_name_whatever_their_order() -> None:
    schema = Schema(fields=(a_field(1, "a", IntegerType()), a_field(2, "b", IntegerType())))
    result = conformed(schema, b=pa.array([2], pa.int32()), a=pa.array([1], pa.int32()))
    assert result.to_pylist() == [{"a": 1, "b": 2}]


def test_a_batch_in_the_file_schema_passes_untouched() -> None:
    schema = one_column(StringType())
    batch = pa.RecordBatch.from_pydict({"c": ["x"]}, schema=stored_arrow_schema(schema))
    assert conform_batch(batch, schema, table="t") is batch


def test_names_match_without_case_when_asked() -> None:
    schema = Schema(fields=(a_field(1, "Id", StructType((a_field(2, "X", IntegerType()),))),))
    batch = pa.RecordBatch.from_pydict({"ID": pa.array([{"x": 1}])}).cast(
        pa.schema([("ID", pa.struct([("x", pa.int32())]))])
    )
    with pytest.raises(InvalidRequestError, match="no column 'ID'"):
        conform_batch(batch, schema, table="t")
    result = conform_batch(batch, schema, table="t", case_sensitive=False)
    assert result.to_pylist() == [{"Id": {"X": 1}}]


def test_two_columns_that_differ_in_case_are_ambiguous_without_case() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(["x"]), pa.array(["y"])], names=["c", "C"])
    with pytest.raises(InvalidRequestError, match="column 'C' twice"):
        conform_batch(batch, one_column(StringType()), table="t", case_sensitive=False)


def test_columns_of_a_table_that_differ_in_case_are_found_by_their_own_names() -> None:
    schema = Schema(fields=(a_field(1, "c", StringType()), a_field(2, "C", StringType())))

    def rows(*names: str) -> list[dict[str, Any]]:
        batch = pa.RecordBatch.from_arrays([pa.array([n]) for n in names], names=list(names))
        result = conform_batch(batch, schema, table="t", case_sensitive=False).to_pylist()
        return cast(list[dict[str, Any]], result)

    assert rows("C", "c") == [{"c": "c", "C": "C"}]
    assert rows("c") == [{"c": "c", "C": None}]
    schema = Schema(fields=(a_field(1, "cc", StringType()), a_field(2, "Cc", StringType())))
    with pytest.raises(InvalidRequestError, match="column 'CC' of the rows may be 'Cc' or 'cc'"):
        rows("CC")


def test_line_70_a_missing_column_takes_its_write_default_else_null() -> None:
    schema = Schema(
        fields=(
            a_field(1, "c", StringType()),
            a_field(2, "none", LongType()),
            a_field(3, "wd", LongType(), initial_default=1, write_default=7),
            a_field(4, "id", LongType(), initial_default=1),
            a_field(5, "rd", DateType(), required=True, write_default=3),
            a_field(6, "u", UUIDType(), write_default=b"\x01" * 16),
            a_field(
                7,
                "s",
                StructType(
                    (a_field(8, "x", IntegerType(), write_default=5), a_field(9, "y", StringType()))
                ),
                write_default={},
            ),
        )
    )
    assert conformed(schema, c=pa.array(["x", "y"])).to_pylist() == [
        {
            "c": c,
            "none": None,
            "wd": 7,
            "id": None,
            "rd": dt.date(1970, 1, 4),
            "u": b"\x01" * 16,
            "s": {"x": 5, "y": None},
        }
        for c in ("x", "y")
    ]


def test_line_70_a_list_takes_the_write_defaults_of_fields_its_default_leaves_out() -> None:
    point = StructType(
        (
            a_field(4, "x", IntegerType(), initial_default=1, write_default=5),
            a_field(5, "y", IntegerType()),
        )
    )
    points = ListType(element_id=3, element_type=point)
    schema = Schema(
        fields=(a_field(1, "id", LongType()), a_field(2, "n", points, write_default=[{5: 2}]))
    )
    for rows in range(3):
        ids = pa.array(range(rows), pa.int64())
        assert conformed(schema, id=ids)["n"].to_pylist() == [[{"x": 5, "y": 2}]] * rows


def test_a_missing_field_of_a_struct_takes_its_write_default_only_in_structs_that_exist() -> None:
    struct = StructType(
        (a_field(2, "x", IntegerType()), a_field(3, "y", IntegerType(), write_default=9))
    )
    array = pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))
    assert column(struct, array) == [{"x": 1, "y": 9}, None]


def test_every_problem_of_a_schema_is_named_at_once() -> None:
    schema = Schema(
        fields=(
            a_field(1, "a", IntegerType(), required=True),
            a_field(2, "b", IntegerType()),
            a_field(3, "s", StructType((a_field(4, "x", IntegerType()),))),
        )
    )
    rows = pa.schema(
        [("b", pa.int64()), ("extra", pa.string()), ("s", pa.struct([("z", pa.int32())]))]
    )
    with pytest.raises(InvalidRequestError) as caught:
        check_write_schema(rows, schema, table="db.t")
    message = str(caught.value)
    for part in (
        "cannot write to table 'db.t'",
        "required column 'a' (int) is missing",
        "column 'b' is int64 in the rows and int in the table",
        "cast it to int before writing",
        "no column 'extra'",
        "no column 's.z'",
        "Table: a int32, b int32, s struct<x: int32>",
        "Rows: b int64, extra string, s struct<z: int32>",
    ):
        assert part in message


def test_a_frame_schema_is_checked_as_iceberg_types_too() -> None:
    check_write_schema(one_column(IntegerType()), one_column(LongType(), required=True), table="t")
    with pytest.raises(InvalidRequestError, match="column 'c'"):
        check_write_schema(one_column(LongType()), one_column(IntegerType()), table="t")


@pytest.mark.parametrize(
    ("type_", "array", "expected"),
    [
        (LongType(), pa.array([1, None], pa.int32()), [1, None]),
        (LongType(), pa.array([2**32 - 1], pa.uint32()), [2**32 - 1]),
        (IntegerType(), pa.array([-5], pa.int8()), [-5]),
        (DoubleType(), pa.array([1.5], pa.float32()), [1.5]),
        (DecimalType(12, 4), pa.array([Decimal("1.25")], pa.decimal128(9, 2)), [Decimal("1.2500")]),
        (DecimalType(9, 2), pa.array([Decimal("1.25")], pa.decimal256(9, 2)), [Decimal("1.25")]),
        (StringType(), pa.array(["a", None], pa.large_string()), ["a", None]),
        (StringType(), pa.array(["a", None], pa.string_view()), ["a", None]),
        (StringType(), pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        (LongType(), pa.array([5, 5], pa.int32()).dictionary_encode(), [5, 5]),
        (BinaryType(), pa.array([b"a"], pa.large_binary()), [b"a"]),
        (BinaryType(), pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        (FixedType(2), pa.array([b"ab", None], pa.binary()), [b"ab", None]),
        (
            TimestamptzType(),
            pa.array([0], pa.timestamp("us", tz="Europe/Paris")),
            [dt.datetime(1970, 1, 1, tzinfo=UTC)],
        ),
        (
            TimestampType(),
            pa.array([5], pa.timestamp("ms")),
            [dt.datetime(1970, 1, 1, 0, 0, 0, 5000)],
        ),
        (
            TimestampType(),
            pa.array([5000], pa.timestamp("ns")),
            [dt.datetime(1970, 1, 1, 0, 0, 0, 5)],
        ),
        (TimeType(), pa.array([1000], pa.time64("ns")), [dt.time(0, 0, 0, 1)]),
        (UUIDType(), pa.array([b"\x02" * 16], pa.binary(16)), [b"\x02" * 16]),
        (
            UUIDType(),
            pa.array([b"\x02" * 16, None], pa.binary()),
            [b"\x02" * 16, None],
        ),
        (
            UUIDType(),
            pa.array(["F79C3E09-677c-4bbd-a479-3f349cb785e7", None]),
            [bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"), None],
        ),
        (IntegerType(), pa.nulls(2), [None, None]),
        (BooleanType(), pa.array([True, None]), [True, None]),
    ],
)
def test_lossless_type_is_accepted(type_: Type, array: pa.Array, expected: list[Any]) -> None:
    assert column(type_, array) == expected


@pytest.mark.parametrize(
    ("type_", "source"),
    [
        (IntegerType(), pa.int64()),
        (IntegerType(), pa.uint32()),
        (IntegerType(), pa.string()),
        (LongType(), pa.uint64()),
        (LongType(), pa.float64()),
        (DoubleType(), pa.int64()),
        (FloatType(), pa.float64()),
        (DecimalType(9, 2), pa.decimal128(10, 2)),
        (DecimalType(9, 2), pa.decimal128(9, 3)),
        (DecimalType(9, 2), pa.int32()),
        (StringType(), pa.int32()),
        (StringType(), pa.binary()),
        (BinaryType(), pa.string()),
        (BooleanType(), pa.int8()),
        (DateType(), pa.timestamp("us")),
        (DateType(), pa.date64()),
        (TimestampType(), pa.timestamp("us", tz="UTC")),
        (TimestamptzType(), pa.timestamp("us")),
        (TimestampType(), pa.date32()),
        (UUIDType(), pa.int64()),
        (UnknownType(), pa.int64()),
        (StructType((a_field(2, "x", IntegerType()),)), pa.int32()),
        (ListType(element_id=2, element_type=IntegerType()), pa.int32()),
        (ListType(element_id=2, element_type=IntegerType()), pa.list_(pa.int64())),
    ],
)
def test_lossy_type_is_refused_with_both_types(type_: Type, source: pa.DataType) -> None:
    with pytest.raises(InvalidRequestError, match=r"column 'c.*' is .* in the rows and") as caught:
        check_write_schema(pa.schema([("c", source)]), one_column(type_), table="t")
    assert f"Rows: c {source}" in str(caught.value)


@pytest.mark.parametrize(
    ("type_", "array", "problem"),
    [
        (TimestampType(), pa.array([1], pa.timestamp("ns")), "a value that timestamp cannot hold"),
        (TimestampNsType(), pa.array([2**62], pa.timestamp("us")), "timestamp_ns cannot hold"),
        (FixedType(2), pa.array([b"abc", None], pa.binary()), "exactly 2 bytes"),
        (UUIDType(), pa.array([b"abc"], pa.binary()), "exactly 16 bytes"),
        (UUIDType(), pa.array(["nope"]), "not a uuid"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(type_: Type, array: pa.Array, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        column(type_, array)


def nested_schema(*, required: bool, leaf: PrimitiveType) -> Schema:
    def inner(field_id: int, name: str, type_: Type) -> NestedField:
        return a_field(field_id, name, type_, required=required)

    point = StructType((inner(3, "x", leaf), inner(4, "u", UUIDType())))
    return Schema(
        fields=(
            a_field(1, "s", StructType((inner(2, "p", point),))),
            a_field(
                5,
                "l",
                ListType(
                    element_id=6,
                    element_type=point_type(7, required, leaf),
                    element_required=required,
                ),
            ),
            a_field(
                10,
                "m",
                MapType(
                    key_id=11,
                    key_type=StringType(),
                    value_id=12,
                    value_type=leaf,
                    value_required=required,
                ),
            ),
        )
    )


def point_type(first: int, required: bool, leaf: PrimitiveType) -> StructType:
    return StructType(
        (
            a_field(first, "x", leaf, required=required),
            a_field(first + 1, "u", UUIDType(), required=required),
        )
    )


SOURCE_POINT = pa.struct([("u", pa.binary(16)), ("x", pa.int32())])
SOURCE = pa.schema(
    [
        ("m", pa.map_(pa.large_string(), pa.int32())),
        ("l", pa.large_list(SOURCE_POINT)),
        ("s", pa.struct([("p", SOURCE_POINT)])),
    ]
)
POINT = {"u": b"\x01" * 16, "x": 1}
FULL: dict[str, Any] = {"s": {"p": POINT}, "l": [POINT, POINT], "m": [("k", 2)]}


def in_order(row: dict[str, Any]) -> dict[str, Any]:
    def point(value: dict[str, Any] | None) -> Any:
        if value is None:
            return None
        return {"x": value["x"], "u": value["u"]}

    struct, points = row["s"], row["l"]
    return {
        "s": None if struct is None else {"p": point(struct["p"])},
        "l": None if points is None else [point(p) for p in points],
        "m": row["m"],
    }


@pytest.mark.parametrize(("start", "length"), [(0, 4), (1, 3), (2, 1), (1, 2)])
@pytest.mark.parametrize("required", [False, True])
def test_nested_columns_widen_and_reorder_also_in_slices(
    required: bool, start: int, length: int
) -> None:
    rows = [FULL, {"s": None, "l": None, "m": None}, {**FULL, "l": [], "m": []}, FULL]
    if not required:
        rows[2] = {"s": {"p": None}, "l": [None, {"u": None, "x": 4}], "m": [("k", None)]}
    batch = pa.RecordBatch.from_pylist(rows, schema=SOURCE).slice(start, length)
    schema = nested_schema(required=required, leaf=LongType())
    result = conform_batch(batch, schema, table="t")
    result.validate(full=True)
    assert result.schema.equals(stored_arrow_schema(schema))
    assert result.to_pylist() == [in_order(r) for r in rows[start : start + length]]


@pytest.mark.parametrize(
    ("path", "row"),
    [
        ("s.p", {**FULL, "s": {"p": None}}),
        ("s.p.x", {**FULL, "s": {"p": {"u": b"\x01" * 16, "x": None}}}),
        ("l.element", {**FULL, "l": [POINT, None]}),
        ("l.element.u", {**FULL, "l": [POINT, {"u": None, "x": 1}]}),
        ("m.value", {**FULL, "m": [("a", 1), ("k", None)]}),
    ],
)
def test_a_null_in_a_required_column_is_refused_at_any_depth(
    path: str, row: dict[str, Any]
) -> None:
    schema = nested_schema(required=True, leaf=LongType())
    empty: dict[str, Any] = {"s": None, "l": None, "m": None}
    batch = pa.RecordBatch.from_pylist([FULL, empty, row, empty], schema=SOURCE)
    conform_batch(batch.slice(0, 2), schema, table="db.t")
    conform_batch(batch.slice(3), schema, table="db.t")
    with pytest.raises(InvalidRequestError, match=rf"column '{path}' of table 'db.t' is required"):
        conform_batch(batch.slice(1, 2), schema, table="db.t")


def test_a_null_in_a_required_column_is_refused_also_where_schemas_are_equal() -> None:
    schema = one_column(IntegerType(), required=True)
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1, None], pa.int32())], schema=stored_arrow_schema(schema)
    )
    with pytest.raises(InvalidRequestError, match="1 null"):
        conform_batch(batch, schema, table="t")


def test_line_79_unknown_columns_are_not_stored() -> None:
    schema = Schema(
        fields=(
            a_field(1, "u", UnknownType()),
            a_field(
                2, "s", StructType((a_field(3, "v", UnknownType()), a_field(4, "x", LongType())))
            ),
        )
    )
    source = pa.array([{"v": None, "x": 1}], pa.struct([("v", pa.null()), ("x", pa.int64())]))
    assert conformed(schema, u=pa.nulls(1), s=source).to_pylist() == [{"s": {"x": 1}}]


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (StructType((a_field(2, "v", UnknownType()),)), "'c' is a struct without a field"),
        (
            ListType(element_id=2, element_type=UnknownType()),
            "'c' is a list or map of type unknown",
        ),
    ],
)
def test_types_that_parquet_cannot_hold_are_refused_by_name(type_: Type, message: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=message):
        check_write_schema(pa.schema([]), one_column(type_), table="t")
