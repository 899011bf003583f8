"""Every type and null, from a file through Spark and back."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType as SparkLong
from pyspark.sql.types import StructField
from pyspark.sql.types import StructType as StructTypeOfSpark

from iceberg_pyspark import load_catalog
from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
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
)
from tests.support.data_source_steps import read_by_steps
from tests.support.frames import (
    append_rows,
    create_path_table,
    load,
    path_table,
    rows_of,
    save,
)
from tests.support.parameters import cases
from tests.support.read_paths import Read

NOON = dt.datetime(2026, 2, 3, 12, 30, 45, 678901)
UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")

# The type, an ordinary value and an extreme value; `shown` converts values that Spark changes.
PRIMITIVES: dict[str, tuple[Type, Any, Any]] = {
    "boolean": (BooleanType(), True, False),
    "int": (IntegerType(), 7, -(2**31)),
    "long": (LongType(), 7, 2**63 - 1),
    "float": (FloatType(), 0.5, float("inf")),
    "double": (DoubleType(), -0.25, float("nan")),
    "decimal9": (DecimalType(9, 2), Decimal("1.25"), Decimal("-9999999.99")),
    "decimal18": (DecimalType(18, 0), Decimal(5), Decimal(10**18 - 1)),
    "decimal38": (DecimalType(38, 10), Decimal("0.0000000001"), Decimal("-" + "9" * 28)),
    "date": (DateType(), dt.date(2026, 2, 3), dt.date(1, 1, 1)),
    "time": (TimeType(), dt.time(12, 30, 45, 678901), dt.time(23, 59, 59, 999999)),
    "timestamp": (TimestampType(), NOON, dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    "timestamptz": (
        TimestamptzType(),
        NOON.replace(tzinfo=dt.timezone.utc),
        dt.datetime(9999, 12, 31, tzinfo=dt.timezone.utc),
    ),
    "string": (StringType(), "käse", ""),
    "uuid": (UUIDType(), UUID.bytes, bytes(16)),
    "fixed": (FixedType(3), b"abc", b"\x00\xff\x00"),
    "binary": (BinaryType(), b"\x01", b""),
}


def shown(value: Any, type_: Type) -> Any:
    """Return a value as Spark collects it, in the form of tests.support.rows."""
    match type_:
        case UUIDType():
            return str(uuid.UUID(bytes=value))
        case TimestamptzType():
            return value.replace(tzinfo=None)
        case DoubleType() if value != value:
            return "NaN"
        case _:
            return value


def every_type() -> Schema:
    """Return a schema with each primitive type alone and in a struct, a list and a map."""
    fields: list[NestedField] = []
    next_id = iter(range(1, 1000))
    for name, (type_, _, _) in PRIMITIVES.items():
        inner = NestedField(field_id=next(next_id), name="x", type=type_)
        nested: dict[str, Type] = {
            name: type_,
            f"{name}_struct": StructType((inner,)),
            f"{name}_list": ListType(element_id=next(next_id), element_type=type_),
            f"{name}_map": MapType(
                key_id=next(next_id),
                key_type=StringType(),
                value_id=next(next_id),
                value_type=type_,
            ),
        }
        fields += [NestedField(field_id=next(next_id), name=n, type=t) for n, t in nested.items()]
    fields.append(NestedField(field_id=next(next_id), name="id", type=IntegerType(), required=True))
    return Schema(fields=tuple(fields))


def every_row() -> list[dict[str, Any]]:
    """Return rows of values, of nulls, and of nulls inside values with empty lists and maps."""
    rows: list[dict[str, Any]] = [{"id": i} for i in range(4)]
    for name, (_, one, two) in PRIMITIVES.items():
        for row, value in ((rows[0], one), (rows[1], two)):
            row |= {
                name: value,
                f"{name}_struct": {"x": value},
                f"{name}_list": [one, None, two],
                f"{name}_map": [("k", value), ("n", None)],
            }
        rows[2] |= {f"{name}_struct": {"x": None}, f"{name}_list": [], f"{name}_map": []}
    return rows


def every_row_shown() -> list[tuple[Any, ...]]:
    """Return the same rows as Spark collects them."""
    columns: list[list[Any]] = []
    for type_, one, two in PRIMITIVES.values():
        first, second = shown(one, type_), shown(two, type_)
        columns += [
            [first, second, None, None],
            [(first,), (second,), (None,), None],
            [(first, None, second), (first, None, second), (), None],
            [(("k", first), ("n", None)), (("k", second), ("n", None)), (), None],
        ]
    columns.append([0, 1, 2, 3])
    return [tuple(column[i] for column in columns) for i in range(4)]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("types") / "t"
    schema = every_type()
    table = load_catalog("none", type="memory").create_table(str(path), schema)
    table.append(pa.Table.from_pylist(every_row(), schema=to_arrow_schema(table.schema)))
    return path


def by_id(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: row[-1])


@pytest.mark.usefixtures("read_path")
def test_every_type_is_read_at_every_level(spark: SparkSession, everything: Path) -> None:
    assert by_id(rows_of(spark, everything)) == every_row_shown()


@pytest.mark.nightly
def test_every_type_that_spark_reads_by_itself(read: Read, everything: Path) -> None:
    # Spark reads uuid as string, fixed as binary and time as nanoseconds, so Python converts these.
    names = [f.name for f in path_table(everything).schema.fields]
    positions = [i for i, n in enumerate(names) if n.split("_")[0] not in ("uuid", "fixed", "time")]
    actual = read(everything, {"columns": ", ".join(names[i] for i in positions)}).rows
    assert by_id(actual) == [tuple(row[i] for i in positions) for row in every_row_shown()]


def test_every_type_is_yielded_as_spark_expects_it(everything: Path) -> None:
    read = read_by_steps(everything)
    assert len(read.rows) == 4
    assert read.table.num_columns == 4 * len(PRIMITIVES) + 1


def test_every_type_is_written_back(spark: SparkSession, everything: Path, tmp_path: Path) -> None:
    frame = load(spark, everything)
    save(frame, tmp_path / "made")
    assert by_id(rows_of(spark, tmp_path / "made")) == every_row_shown()
    created = {f.name: str(f.type) for f in path_table(tmp_path / "made").schema.fields}
    had = {f.name: str(f.type) for f in path_table(everything).schema.fields}
    for name in ("int", "decimal38_map", "time_list", "timestamp", "timestamptz_struct", "date"):
        assert created[name] == had[name]
    # Spark lacks these types: a new table gets Spark's types, an existing table keeps its own.
    assert (created["uuid"], created["fixed"]) == ("string", "binary")
    save(frame, everything, mode="append")
    assert len(rows_of(spark, everything, {"filter": f"uuid = '{UUID}'", "columns": "id"})) == 2


def test_types_that_only_spark_has_are_widened(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(
        "SELECT CAST(1 AS TINYINT) AS b, CAST(2 AS SMALLINT) AS s, CAST('c' AS CHAR(3)) AS c, "
        "NULL AS n, 1 AS i"
    )
    save(frame, tmp_path / "t", {"format-version": "3"})
    assert path_table(tmp_path / "t").scan().to_arrow().to_pylist()[0] == {
        "b": 1,
        "s": 2,
        "c": "c",
        "n": None,
        "i": 1,
    }
    assert rows_of(spark, tmp_path / "t") == [(1, 2, "c", None, 1)]


def test_a_type_without_a_spark_type_is_refused_by_its_column(tmp_path: Path) -> None:
    schema = Schema(
        fields=(
            NestedField(field_id=1, name="id", type=LongType()),
            NestedField(
                field_id=2,
                name="s",
                type=StructType((NestedField(field_id=3, name="ns", type=TimestampNsType()),)),
            ),
            NestedField(field_id=4, name="u", type=UnknownType()),
        )
    )
    load_catalog("none", type="memory").create_table(
        str(tmp_path / "t"), schema, properties={"format-version": "3"}
    )
    with pytest.raises(UnsupportedFeatureError, match=r"column 's\.ns' has type timestamp_ns"):
        read_by_steps(tmp_path / "t")
    assert read_by_steps(tmp_path / "t", {"columns": "id, u"}).rows == []


@pytest.mark.parametrize(
    ("nanos_as", "shown", "values"),
    [
        ("long", "bigint", [-1, 1_767_225_600_000_000_999]),
        (
            "truncated",
            "timestamp_ntz",
            [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2026, 1, 1)],
        ),
    ],
)
def test_nanoseconds_are_read_as_the_option_says(
    tmp_path: Path, nanos_as: str, shown: str, values: list[Any]
) -> None:
    def inner(field_id: int) -> StructType:
        z = NestedField(field_id=field_id, name="z", type=TimestamptzNsType())
        return StructType((z,))

    schema = Schema(
        fields=(
            NestedField(field_id=1, name="id", type=LongType()),
            NestedField(field_id=2, name="ns", type=TimestampNsType()),
            NestedField(field_id=3, name="s", type=inner(4)),
            NestedField(field_id=5, name="l", type=ListType(element_id=6, element_type=inner(7))),
        )
    )
    table = load_catalog("none", type="memory").create_table(
        str(tmp_path / "t"), schema, properties={"format-version": "3"}
    )
    arrow = to_arrow_schema(table.schema)
    numbers = [-1, 1_767_225_600_000_000_999, None]
    times = pa.array(numbers, pa.timestamp("ns"))
    zoned = pa.StructArray.from_arrays(
        [times.cast(pa.timestamp("ns", "UTC"))], fields=list(arrow.field("s").type)
    )
    lists = pa.ListArray.from_arrays([0, 1, 1, 3], zoned).cast(arrow.field("l").type)
    table.append(pa.table([pa.array([0, 1, 2]), times, zoned, lists], schema=arrow))
    read = read_by_steps(tmp_path / "t", {"nanos-as": nanos_as})
    assert read.schema["ns"].dataType.simpleString() == shown
    rows = read.table.sort_by("id").to_pylist()
    assert [r["ns"] for r in rows] == [*values, None]
    utc = [v if isinstance(v, int) else v.replace(tzinfo=dt.timezone.utc) for v in values]
    assert [r["s"]["z"] for r in rows] == [*utc, None]
    assert [[e["z"] for e in r["l"]] for r in rows] == [utc[:1], [], [utc[1], None]]
    some = read_by_steps(
        tmp_path / "t", {"nanos-as": nanos_as, "filter": "ns > '2000-01-01'"}, read.schema
    )
    assert [r["id"] for r in some.table.to_pylist()] == [1]
    hidden = StructTypeOfSpark([*read.schema.fields[:2], StructField("_pos", SparkLong(), False)])
    positions = read_by_steps(tmp_path / "t", {"nanos-as": nanos_as}, hidden).table
    assert positions.column("_pos").to_pylist() == [0, 1, 2]
    assert positions.column("ns").to_pylist() == [*values, None]


def test_other_words_for_nanoseconds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidRequestError, match=r"nanos-as.*long or truncated or nanos or refused"
    ):
        read_by_steps(tmp_path / "t", {"nanos-as": "string"})


def test_intervals_are_refused_when_writing(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT 1 AS id, INTERVAL '1' DAY AS pause")
    with pytest.raises(Exception, match="column 'pause': Spark type interval day") as caught:
        save(frame, tmp_path / "t")
    assert "cast the column before writing" in str(caught.value)
    assert not (tmp_path / "t").exists()


DEFAULTS: dict[str, tuple[str, Any]] = {
    "text": ("string", "it's \\ 'must'"),
    "flag": ("boolean", False),
    "least": ("int", -(2**31)),
    "large": ("long", 2**62),
    "half": ("double", 0.5),
    "price": ("decimal(9, 2)", Decimal("-1.50")),
    "day": ("date", dt.date(1969, 12, 31)),
    "at": ("timestamp", NOON),
}


@cases("columns", fast=[",".join(DEFAULTS)], nightly=["text", "flag,least,large", "text,id"])
def test_required_columns_that_files_lack_have_their_default(
    read: Read, tmp_path: Path, columns: str
) -> None:
    table = create_path_table(
        tmp_path / "t", "id BIGINT", [{"id": 1}, {"id": 2}], properties={"format-version": "3"}
    )
    changes = table.update_schema()
    for name, (type_, default) in DEFAULTS.items():
        changes = changes.add_column(name, type_, required=True, default=default)
    changes.commit()
    own = {"id": 3, **{name: default for name, (_, default) in DEFAULTS.items()}, "text": "own"}
    append_rows(path_table(tmp_path / "t"), [own])

    expected = [{**own, "id": i, "text": DEFAULTS["text"][1]} for i in (1, 2)] + [own]
    names = columns.split(",")
    actual = read(tmp_path / "t", {"columns": columns})
    assert actual.rows == sorted(tuple(row[n] for n in names) for row in expected)
    assert [f.nullable for f in actual.schema] == [n == "id" for n in names]
    filtered = read(tmp_path / "t", {"columns": columns, "filter": "text = 'own'"})
    assert filtered.rows == [tuple(own[n] for n in names)]
