"""Projection of a file's columns."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.errors import (
    InvalidMetadataError,
    StorageError,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import BucketTransform, IdentityTransform, VoidTransform
from iceberg_pyspark.spec.types import (
    BinaryType,
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
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.amounts import FULL_WORK
from tests.support.scan_tasks import (
    context_of,
    optional,
    read_rows,
    required,
    schema_of,
    spec_with_partition,
    task_of,
    with_field_ids,
    write_rows,
    write_table,
)

FILE = "/db/t/data/f.parquet"
ID = required(1, "id", LongType())
MAP = pa.map_(pa.string(), pa.int64())


def evolved(
    before: Schema, rows: list[dict[str, Any]], after: Schema, **options: Any
) -> list[dict[str, Any]]:
    """Write rows with one schema and return them as read with another schema."""
    io = MemoryFileIO()
    write_rows(io, FILE, before, rows, **options)
    return read_rows(context_of(after), task_of(io, FILE), io)


def test_columns_are_found_by_id_when_renamed_and_reordered() -> None:
    before = schema_of(optional(1, "a", LongType()), optional(2, "b", LongType()))
    after = schema_of(optional(2, "a", LongType()), optional(1, "b", LongType()))
    assert evolved(before, [{"a": 1, "b": 2}], after) == [{"a": 2, "b": 1}]


def test_a_name_dropped_and_added_again_hides_the_old_values() -> None:
    """docs/conformance.md 68."""
    before = schema_of(ID, optional(2, "v", StringType()))
    after = schema_of(ID, optional(3, "v", StringType()))
    assert evolved(before, [{"id": 1, "v": "old"}], after) == [{"id": 1, "v": None}]


def test_names_in_the_file_do_not_matter() -> None:
    """docs/conformance.md 82."""
    before = schema_of(optional(1, "a_x2Eb", LongType()), optional(2, "a.b", LongType()))
    after = schema_of(optional(2, "plain", LongType()), optional(1, "a.b", LongType()))
    assert evolved(before, [{"a_x2Eb": 1, "a.b": 2}], after) == [{"plain": 2, "a.b": 1}]


def test_a_name_with_a_dot_is_not_a_path() -> None:
    struct = StructType((optional(3, "b", LongType()),))
    before = schema_of(optional(1, "a.b", LongType()), optional(2, "a", struct))
    rows = [{"a.b": 1, "a": {"b": 2}}]
    assert evolved(before, rows, schema_of(optional(2, "a", struct))) == [{"a": {"b": 2}}]
    assert evolved(before, rows, schema_of(optional(1, "x", LongType()))) == [{"x": 1}]


def test_an_empty_projection_keeps_the_row_count() -> None:
    """docs/conformance.md 74."""
    rows = [{"id": i} for i in range(10)]
    assert evolved(schema_of(ID), rows, schema_of(), row_group_size=3) == [{}] * 10


# --- missing fields -------------------------------------------------------------------------------


def test_missing_fields_take_their_initial_default_else_null() -> None:
    """docs/conformance.md 66."""
    after = schema_of(
        ID,
        optional(2, "d", StringType(), initial_default="dflt", write_default="other"),
        optional(3, "n", DoubleType(), write_default=1.5),
        required(4, "r", DateType(), initial_default=1),
    )
    assert evolved(schema_of(ID), [{"id": 1}], after) == [
        {"id": 1, "d": "dflt", "n": None, "r": dt.date(1970, 1, 2)}
    ]


POINT = StructType(
    (optional(11, "x", IntegerType(), initial_default=7), optional(12, "y", IntegerType()))
)


@pytest.mark.parametrize(
    ("type_", "default", "expected"),
    [
        (ListType(element_id=9, element_type=IntegerType()), [1, None], [1, None]),
        (ListType(element_id=9, element_type=IntegerType()), [], []),
        (ListType(element_id=9, element_type=POINT), [{12: 1}, None], [{"x": 7, "y": 1}, None]),
        (
            MapType(key_id=8, key_type=StringType(), value_id=9, value_type=DateType()),
            [("a", 1)],
            [("a", dt.date(1970, 1, 2))],
        ),
        (POINT, {}, {"x": 7, "y": None}),
    ],
)
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_initial_defaults_of_lists_maps_and_structs(
    type_: Type, default: Any, expected: Any, rows: int
) -> None:
    """docs/conformance.md 66."""
    after = schema_of(ID, optional(2, "n", type_, initial_default=default))
    assert evolved(schema_of(ID), [{"id": i} for i in range(rows)], after) == [
        {"id": i, "n": expected} for i in range(rows)
    ]


def test_a_required_field_without_any_value_is_refused_by_name() -> None:
    """docs/conformance.md 66."""
    after = schema_of(ID, required(9, "must", LongType()))
    with pytest.raises(InvalidMetadataError, match=r"f\.parquet lacks .*'must' \(field id 9\)"):
        evolved(schema_of(ID), [{"id": 1}], after)


@pytest.mark.parametrize("value", ["p", None])
def test_identity_partition_value_overrides_the_default(value: str | None) -> None:
    """docs/conformance.md 66."""
    io = MemoryFileIO()
    write_rows(io, FILE, schema_of(ID), [{"id": 1}, {"id": 2}])
    after = schema_of(ID, optional(2, "c", StringType(), initial_default="d"))
    context = context_of(after, specs=[spec_with_partition(IdentityTransform())])
    task = task_of(io, FILE, spec_id=3, partition=(value,))
    assert [r["c"] for r in read_rows(context, task, io)] == [value, value]


@pytest.mark.parametrize("transform", [VoidTransform(), BucketTransform(4)])
def test_only_identity_gives_a_constant(transform: Any) -> None:
    """docs/conformance.md 62."""
    io = MemoryFileIO()
    column = optional(2, "c", StringType(), initial_default="d")
    write_rows(io, FILE, schema_of(ID), [{"id": 1}])
    context = context_of(schema_of(ID, column), specs=[spec_with_partition(transform)])
    task = task_of(io, FILE, spec_id=3, partition=(None,))
    assert read_rows(context, task, io) == [{"id": 1, "c": "d"}]


def test_a_stored_column_is_read_from_the_file_whatever_the_partition() -> None:
    """docs/conformance.md 62."""
    io = MemoryFileIO()
    schema = schema_of(ID, optional(2, "c", StringType()))
    write_rows(io, FILE, schema, [{"id": 1, "c": "stored"}])
    context = context_of(schema, specs=[spec_with_partition(VoidTransform())])
    task = task_of(io, FILE, spec_id=3, partition=(None,))
    assert read_rows(context, task, io) == [{"id": 1, "c": "stored"}]


def test_an_identity_partition_value_of_a_struct_child() -> None:
    io = MemoryFileIO()
    before = schema_of(optional(1, "s", StructType((optional(3, "x", LongType()),))))
    struct = StructType((optional(3, "x", LongType()), optional(4, "p", StringType())))
    write_rows(io, FILE, before, [{"s": {"x": 1}}, {"s": None}])
    spec = spec_with_partition(IdentityTransform(), source_id=4)
    task = task_of(io, FILE, spec_id=3, partition=("v",))
    rows = read_rows(context_of(schema_of(optional(1, "s", struct)), specs=[spec]), task, io)
    assert rows == [{"s": {"x": 1, "p": "v"}}, {"s": None}]


def test_an_unknown_partition_spec_is_refused() -> None:
    """docs/conformance.md 10."""
    io = MemoryFileIO()
    write_rows(io, FILE, schema_of(ID), [{"id": 1}])
    with pytest.raises(InvalidMetadataError, match="partition spec 7"):
        read_rows(context_of(schema_of(ID)), task_of(io, FILE, spec_id=7), io)


def test_unknown_columns_are_null_whether_or_not_the_file_has_them() -> None:
    """docs/conformance.md 79."""
    io = MemoryFileIO()
    write_table(io, FILE, with_field_ids(pa.table({"id": [1], "u": [5]}), 1, 2))
    after = schema_of(ID, optional(2, "u", UnknownType()), required(3, "w", UnknownType()))
    assert read_rows(context_of(after), task_of(io, FILE), io) == [{"id": 1, "u": None, "w": None}]


# --- nested ---------------------------------------------------------------------------------------

X, Y = optional(11, "x", IntegerType()), optional(12, "y", StringType())
POINT = StructType((X, Y))
ROWS: list[dict[str, Any]] = [
    {"id": 1, "s": {"x": 1, "y": "a"}},
    {"id": 2, "s": None},
    {"id": 3, "s": {"x": None, "y": None}},
]


def around(struct: StructType, wrap: str) -> NestedField:
    """Return a column `s` of the struct itself, or of a list or map of structs."""
    match wrap:
        case "struct":
            return optional(2, "s", struct)
        case "list":
            return optional(2, "s", ListType(element_id=3, element_type=struct))
        case _:
            return optional(
                2, "s", MapType(key_id=3, key_type=StringType(), value_id=4, value_type=struct)
            )


def wrapped(values: list[Any], wrap: str) -> list[Any]:
    """Return values of a struct column, or list or map cells with several, no or null values."""
    match wrap:
        case "struct":
            return values
        case "list":
            return [values, [], None, values[:1]]
        case _:
            return [[(str(i), v) for i, v in enumerate(values)], [], None, [("k", values[0])]]


@pytest.mark.parametrize("wrap", ["struct", "list", "map"])
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ((Y, X), [{"y": "a", "x": 1}, None, {"y": None, "x": None}]),
        ((optional(11, "y", LongType()),), [{"y": 1}, None, {"y": None}]),
        (
            (X, optional(13, "new", IntegerType(), initial_default=5)),
            [{"x": 1, "new": 5}, None, {"x": None, "new": 5}],
        ),
        ((optional(13, "x", StringType()),), [{"x": None}, None, {"x": None}]),
        (
            (optional(12, "x", StringType()), optional(11, "y", IntegerType())),
            [{"x": "a", "y": 1}, None, {"x": None, "y": None}],
        ),
        ((), [{}, None, {}]),
    ],
    ids=["reordered", "dropped-renamed-promoted", "added", "dropped-and-added", "swapped", "none"],
)
def test_struct_children_at_any_depth(
    wrap: str, fields: tuple[NestedField, ...], expected: list[Any]
) -> None:
    """docs/conformance.md 69 and 74."""
    cells = wrapped([r["s"] for r in ROWS], wrap)
    output_rows = evolved(
        schema_of(around(POINT, wrap)),
        [{"s": cell} for cell in cells],
        schema_of(around(StructType(fields), wrap)),
    )
    assert [r["s"] for r in output_rows] == wrapped(expected, wrap)


def test_nested_columns_are_right_in_every_batch_and_row_group() -> None:
    """Later batches are slices that start in the middle of offsets and validity bitmaps."""
    before = schema_of(around(POINT, "list"), optional(5, "wide", StringType()))
    after = schema_of(around(StructType((Y, optional(13, "z", LongType()))), "list"))
    # Row groups of 70,000 rows: one that is full, or two, and one with the rest.
    count = 150_000 if FULL_WORK else 75_000
    rows: list[dict[str, Any]] = [
        {"s": None if i % 7 == 0 else [{"x": i, "y": str(i)}] * (i % 4), "wide": "w"}
        for i in range(count)
    ]
    io = MemoryFileIO()
    write_rows(io, FILE, before, rows, row_group_size=70_000)
    output_rows = read_rows(context_of(after), task_of(io, FILE), io)
    assert [r["s"] for r in output_rows] == [
        None if r["s"] is None else [{"y": v["y"], "z": None} for v in r["s"]] for r in rows
    ]


def test_projecting_a_child_or_a_map_value_only() -> None:
    """docs/conformance.md 73 and 74."""
    io = MemoryFileIO()
    map_type = MapType(
        key_id=3,
        key_type=POINT,
        value_id=4,
        value_type=StructType((optional(21, "v", LongType()), optional(22, "w", LongType()))),
    )
    schema = schema_of(
        optional(
            1, "s", StructType((optional(31, "a", LongType()), optional(32, "b", LongType())))
        ),
        optional(2, "m", map_type),
    )
    write_rows(
        io,
        FILE,
        schema,
        [
            {"s": {"a": 1, "b": 2}, "m": [({"x": 1, "y": "k"}, {"v": 7, "w": 8})]},
            {"s": None, "m": None},
        ],
    )
    projection = schema.select(["s.b", "m.value.w"])
    assert read_rows(context_of(projection, schemas=[schema]), task_of(io, FILE), io) == [
        {"s": {"b": 2}, "m": [({"x": 1, "y": "k"}, {"w": 8})]},
        {"s": None, "m": None},
    ]


def test_a_struct_added_with_an_empty_default_expands_its_childrens() -> None:
    """docs/conformance.md 69."""
    struct = StructType(
        (
            optional(11, "x", IntegerType(), initial_default=0),
            optional(12, "y", IntegerType()),
        )
    )
    after = schema_of(
        ID,
        optional(2, "p", struct, initial_default={}),
        optional(3, "q", StructType((optional(13, "x", IntegerType(), initial_default=0),))),
    )
    assert evolved(schema_of(ID), [{"id": 1}], after) == [
        {"id": 1, "p": {"x": 0, "y": None}, "q": None}
    ]


def test_a_struct_where_the_file_has_a_number_is_refused() -> None:
    before = schema_of(optional(2, "s", LongType()))
    with pytest.raises(InvalidMetadataError, match="column 's' is stored as int64"):
        evolved(before, [{"s": 1}], schema_of(around(POINT, "struct")))


# --- promotion and physical types -----------------------------------------------------------------

UTC = dt.timezone.utc


@pytest.mark.parametrize(
    ("array", "type_", "expected"),
    [
        (pa.array([1, None], pa.int32()), LongType(), [1, None]),
        (pa.array([-1], pa.int8()), IntegerType(), [-1]),
        (pa.array([7], pa.uint16()), IntegerType(), [7]),
        (pa.array([0.5], pa.float32()), DoubleType(), [0.5]),
        (pa.array([Decimal("1.25")], pa.decimal128(4, 2)), DecimalType(38, 2), [Decimal("1.25")]),
        (pa.array([-1], pa.date32()), TimestampType(), [dt.datetime(1969, 12, 31)]),
        (
            pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("ms")),
            TimestampType(),
            [dt.datetime(2020, 1, 1)],
        ),
        (
            pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("us")),
            TimestamptzType(),
            [dt.datetime(2020, 1, 1, tzinfo=UTC)],
        ),
        (
            pa.array([1], pa.timestamp("ns", tz="Asia/Tokyo")).cast(
                pa.timestamp("ms", tz="Asia/Tokyo"), safe=False
            ),
            TimestamptzType(),
            [dt.datetime(1970, 1, 1, tzinfo=UTC)],
        ),
        (pa.array([dt.time(1, 2)], pa.time32("ms")), TimeType(), [dt.time(1, 2)]),
        (pa.array(["a", None, "a"]).dictionary_encode(), StringType(), ["a", None, "a"]),
        (pa.array(["a"], pa.large_string()), StringType(), ["a"]),
        (pa.array(["a"], pa.string_view()), StringType(), ["a"]),
        (pa.array([b"a"], pa.binary()), StringType(), ["a"]),
        (pa.array([b"ab"], pa.binary(2)), FixedType(2), [b"ab"]),
        (pa.array([b"ab"], pa.large_binary()), BinaryType(), [b"ab"]),
        (pa.array([b"a" * 16], pa.uuid()), UUIDType(), [b"a" * 16]),
        (pa.array([b"a" * 16], pa.binary(16)), UUIDType(), [b"a" * 16]),
        (pa.nulls(2), LongType(), [None, None]),
    ],
)
def test_stored_types_become_the_columns(
    array: pa.Array, type_: PrimitiveType, expected: list[Any]
) -> None:
    """docs/conformance.md 72, 77, 78 and 80."""
    io = MemoryFileIO()
    write_table(io, FILE, with_field_ids(pa.table({"c": array}), 1))
    schema = schema_of(optional(1, "c", type_))
    assert [r["c"] for r in read_rows(context_of(schema), task_of(io, FILE), io)] == expected


def test_date_to_nanoseconds() -> None:
    """docs/conformance.md 72."""
    io = MemoryFileIO()
    write_table(io, FILE, with_field_ids(pa.table({"c": pa.array([1], pa.date32())}), 1))
    schema = schema_of(optional(1, "c", TimestampNsType()))
    (batch,) = read_task(context_of(schema), task_of(io, FILE), io)
    assert batch.column(0).cast(pa.int64()).to_pylist() == [86_400_000_000_000]


@pytest.mark.parametrize("type_", [TimestampType(), TimestampNsType()])
def test_a_date_beyond_the_timestamps_raises(type_: PrimitiveType) -> None:
    """docs/conformance.md 72."""
    io = MemoryFileIO()
    write_table(
        io,
        FILE,
        with_field_ids(pa.table({"c": pa.array([2**31 - 1], pa.int32()).view(pa.date32())}), 1),
    )
    with pytest.raises(StorageError, match=r"db\.t.*f\.parquet"):
        read_rows(context_of(schema_of(optional(1, "c", type_))), task_of(io, FILE), io)


@pytest.mark.parametrize("smallest", [True, False])
@pytest.mark.parametrize(("precision", "digits"), [(9, 9), (18, 18), (19, 19), (38, 38)])
def test_decimals_of_every_width(precision: int, digits: int, smallest: bool) -> None:
    """docs/conformance.md 77."""
    type_ = DecimalType(precision, 2)
    value = Decimal("-" + "9" * (digits - 2) + ".99")
    schema = schema_of(optional(1, "c", type_))
    rows = evolved(schema, [{"c": value}], schema, store_decimal_as_integer=smallest)
    assert rows == [{"c": value}]


@pytest.mark.parametrize("year", [1, 1677, 3333, 9999])
@pytest.mark.parametrize("nested", [False, True])
def test_int96_timestamps_keep_years_beyond_nanoseconds(year: int, nested: bool) -> None:
    """docs/conformance.md 78."""
    inner = optional(2, "t", TimestamptzType())
    schema = schema_of(optional(1, "s", StructType((inner,))) if nested else inner)
    when = dt.datetime(year, 7, 8, 9, 10, 11, 123456, tzinfo=UTC)
    row = {"s": {"t": when}} if nested else {"t": when}
    rows = evolved(schema, [row], schema, use_deprecated_int96_timestamps=True, store_schema=False)
    assert rows == [row]


@pytest.mark.parametrize(
    ("array", "type_"),
    [
        (pa.array([1], pa.int64()), IntegerType()),
        (pa.array([1.0], pa.float64()), FloatType()),
        (pa.array([1], pa.int64()), TimestampType()),
        (pa.array([1], pa.date32()), TimestamptzType()),
        (pa.array([Decimal("1.2")], pa.decimal128(9, 1)), DecimalType(9, 2)),
        (pa.array([Decimal("1.2")], pa.decimal128(9, 1)), DecimalType(8, 1)),
        (pa.array(["1"]), LongType()),
        (pa.array([b"abc"], pa.binary(3)), FixedType(2)),
    ],
)
def test_file_with_another_type_is_refused_by_column(array: pa.Array, type_: PrimitiveType) -> None:
    """docs/conformance.md 72."""
    io = MemoryFileIO()
    write_table(io, FILE, with_field_ids(pa.table({"c": array}), 1))
    with pytest.raises(InvalidMetadataError, match=r"f\.parquet: column 'c' is stored as"):
        read_rows(context_of(schema_of(optional(1, "c", type_))), task_of(io, FILE), io)


def test_a_null_in_a_required_column_is_refused() -> None:
    before = schema_of(optional(1, "id", LongType()))
    with pytest.raises(InvalidMetadataError, match="nulls in the required column 'id'"):
        evolved(before, [{"id": None}], schema_of(ID))
