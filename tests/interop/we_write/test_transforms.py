"""Every transform on every source type: Java prunes our files by our values and loses no row.

Java applies each transform to the rows that it reads, and must get the file's partition and the
folder that contains the file (docs/conformance.md 47, 51-58, 80).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark.arrow.arrow_schemas import scalar_of, to_arrow_schema
from iceberg_pyspark.expressions.binding import bind_column
from iceberg_pyspark.expressions.json import predicate_to_json
from iceberg_pyspark.expressions.predicates import (
    BoundColumn,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    Predicate,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import accepts, parse_transform
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
)
from tests.support.java_tables import JavaTables, show_rows
from tests.support.oracle import Oracle
from tests.support.our_tables import VERSIONS, assert_all_read, new_table, pyiceberg_table
from tests.support.raw_avro import raw_data_files

pytestmark = pytest.mark.nightly

NAN, INF = float("nan"), float("inf")
DAY = 86_400_000_000
# 0001-01-02, a microsecond before 1970, 1970, 2017-11-16T22:31:08.000001, 2020-02-29T23:00
INSTANTS = [-62_135_510_400_000_000, -1, 0, 1_510_871_468_000_001, 1_583_017_200_000_000]
NANOS = [-8 * 10**18, -1, 0, 1_510_871_468_000_001_001, 2**63 - 1]
INTEGERS = [-11, -1, 0, 7, 34]

TYPES: Mapping[str, tuple[Type, list[Any]]] = {
    "bool": (BooleanType(), [True, False]),
    "int": (IntegerType(), [-(2**31), *INTEGERS, 2**31 - 1]),
    "long": (LongType(), [-(2**63), *INTEGERS, 2**63 - 1]),
    "float": (FloatType(), [NAN, -INF, -1.5, -0.0, 0.0, 1e-45, INF]),
    "double": (DoubleType(), [NAN, -INF, -1.5, -0.0, 0.0, 1e300, INF]),
    "dec9": (
        DecimalType(9, 2),
        [Decimal(v) for v in ("-10.65", "-0.01", "0.00", "10.65", "9999999.99")],
    ),
    "dec38": (
        DecimalType(38, 10),
        [Decimal(v + "0" * 9) for v in ("-9" + "9" * 20 + ".0", "0.0", "10.5")],
    ),
    "str": (StringType(), ["", "a/b c%=é~*", "null", "iceberg", "𐍈𐍈𐍈x", "ice+berg&?#'\"\n\\"]),
    "bin": (BinaryType(), [b"", b"\x00\xff", b"\x00\xff\x00", b"\xff\xff\xff", b"ab"]),
    "fix": (FixedType(3), [b"\x00\x00\x00", b"\xff\xff\xff", b"abc"]),
    "uuid": (UUIDType(), [bytes(16), b"\xff" * 16, bytes(range(16)), b"\x80" + bytes(15)]),
    "date": (DateType(), [-719_162, -1, 0, 17_486, 18_321, 2_932_896]),
    "time": (TimeType(), [0, 1, 1_000, 81_068_000_000, DAY - 1]),
    "ts": (TimestampType(), INSTANTS),
    "tz": (TimestamptzType(), INSTANTS),
    "ns": (TimestampNsType(), NANOS),
    "tzns": (TimestamptzNsType(), NANOS),
}
TERMS = {
    "identity": "{}",
    "bucket[5]": "bucket(5, {})",
    "truncate[2]": "truncate(2, {})",
    "year": "years({})",
    "month": "months({})",
    "day": "days({})",
    "hour": "hours({})",
    "void": "void({})",
}
ROWS = 8
NAMES = {text: text.partition("[")[0] for text in TERMS}


def columns_of(version: int) -> dict[str, tuple[str, str]]:
    """Return, by column name, each pair of a transform and a type that it accepts."""
    return {
        f"{NAMES[transform]}_{kind}": (transform, kind)
        for transform in TERMS
        for kind, (type_, _) in TYPES.items()
        if accepts(parse_transform(transform), type_)
        and (version >= 3 or kind not in ("ns", "tzns"))
    }


# Java 1.12 expects a length before a partition value of type fixed, which Avro's fixed lacks
# (apache/iceberg#17501). So Java cannot read a standard manifest of such a table, and nobody else
# can read Java's.
JAVA_CANNOT_READ = "identity_fix"
NANOSECOND_CONSTANTS = (("identity", "ns"), ("identity", "tzns"))


def schema_of(columns: Mapping[str, tuple[str, str]]) -> Schema:
    fields = [NestedField(field_id=1, name="id", type=IntegerType(), required=True)]
    for i, (name, (_, kind)) in enumerate(columns.items()):
        fields.append(NestedField(field_id=i + 2, name=name, type=TYPES[kind][0]))
    return Schema(fields=tuple(fields))


def rows_of(schema: Schema, columns: Mapping[str, tuple[str, str]]) -> pa.Table:
    """Return as many rows as the longest list of values; shorter lists are padded with nulls."""
    arrow_schema = to_arrow_schema(schema)
    arrays = [pa.array(range(ROWS), pa.int32())]
    for field, (_, kind) in zip(list(arrow_schema)[1:], columns.values(), strict=True):
        type_, values = TYPES[kind]
        padded = [*values, *[None] * (ROWS - len(values))]
        python = [None if v is None else scalar_of(type_, v).as_py() for v in padded]
        if kind in ("ts", "tz", "ns", "tzns"):
            arrays.append(pa.array(padded, pa.int64()).cast(field.type))
        else:
            arrays.append(pa.array(python, field.type))
    return pa.table(arrays, schema=arrow_schema)


def filters_on(column: BoundColumn, values: Sequence[Any]) -> Iterator[Predicate]:
    yield BoundUnary("is_null", column)
    yield BoundUnary("not_null", column)
    # Java's JSON has no infinity, and NaN cannot be a literal.
    usable = [v for v in values if not isinstance(v, float) or math.isfinite(v)]
    if len(usable) < len(values):
        yield BoundUnary("is_nan", column)
        yield BoundUnary("not_nan", column)
    for value in usable:
        yield BoundLiteral("eq", column, value)
    for value in (usable[0], usable[len(usable) // 2]):
        for op in ("not_eq", "lt", "lt_eq", "gt", "gt_eq"):
            yield BoundLiteral(op, column, value)
    # Java's sets of nanosecond timestamps contain microseconds.
    if not isinstance(column.type, TimestampNsType | TimestamptzNsType):
        yield BoundSet("in", column, frozenset(usable[::2]))
        yield BoundSet("not_in", column, frozenset(usable[::2]))
    if isinstance(column.type, StringType):
        # Java counts a character beyond the BMP as two, so it takes a prefix of one such character
        # for a whole truncate(2) value and loses the row, in its own tables too.
        for prefix in ("i", "ice", "𐍈𐍈𐍈", "a/"):
            yield BoundLiteral("starts_with", column, prefix)
            yield BoundLiteral("not_starts_with", column, prefix)


def filters_by_column(
    schema: Schema, columns: Mapping[str, tuple[str, str]]
) -> dict[str, list[str]]:
    return {
        name: [
            json.dumps(predicate_to_json(f))
            for f in filters_on(bind_column(name, schema), TYPES[kind][1])
        ]
        for name, (_, kind) in columns.items()
    }


@pytest.mark.parametrize(
    ("transform", "version"),
    [*((text, 3) for text in TERMS), ("identity", 1), ("identity", 2), ("truncate[2]", 1)],
)
def test_partition_values_alone_lose_no_row(
    oracle: Oracle, java: JavaTables, transform: str, version: int
) -> None:
    name = f"java_sql.we_write_transforms.{NAMES[transform]}_{version}"
    columns = {
        c: pair
        for c, pair in columns_of(version).items()
        if pair[0] == transform and c != JAVA_CANNOT_READ
    }
    schema = schema_of(columns)
    table = new_table(
        oracle,
        name,
        schema,
        partitioned_by=[TERMS[transform].format(c) for c in columns],
        properties={"format-version": str(version), "write.metadata.metrics.default": "none"},
    )
    rows = rows_of(schema, columns)
    # Two manifests with one row each, and one manifest with the other rows.
    table.append(rows.slice(0, 1))
    table.append(rows.slice(1, 1))
    table.append(rows.slice(2))
    assert java.file_problems(name) == []
    # Java's own reader does not convert identity partition constants of nanoseconds to timestamps.
    column_names = ["id", *(c for c, pair in columns.items() if pair not in NANOSECOND_CONSTANTS)]
    assert java.rows(name, columns=column_names) == show_rows(rows.select(column_names))
    filters = filters_by_column(table.schema, columns)
    if transform == "void":
        filters = {column: texts[:3] for column, texts in filters.items()}
    pruned = iter(java.prune(name, [text for texts in filters.values() for text in texts]))
    for column in columns:
        counts = [next(pruned) for _ in filters[column]]
        assert not any(count.lost for count in counts), column
        if transform == "void":
            assert all(count.planned == 3 for count in counts)
        else:
            assert any(count.planned < ROWS for count in counts), column
        if transform == "identity":
            # A plan for "not equal" or "not null" keeps files with nulls or NaN.
            type_, values = TYPES[columns[column][1]]
            odd = ROWS - len(values) + isinstance(type_, FloatType | DoubleType)
            assert all(c.planned - c.with_matches in (0, 1, odd) for c in counts), column


@pytest.mark.parametrize("version", VERSIONS)
def test_bounds_alone_lose_no_row(oracle: Oracle, java: JavaTables, version: int) -> None:
    name = f"java_hadoop.we_write_transforms.bounds_{version}"
    columns = {c: pair for c, pair in columns_of(version).items() if pair[0] == "identity"}
    schema = schema_of(columns)
    table = new_table(
        oracle, name, schema, partitioned_by=["id"], properties={"format-version": str(version)}
    )
    rows = rows_of(schema, columns)
    table.append(rows)
    assert_all_read(java, name, rows, with_pyiceberg=False)
    filters = filters_by_column(table.schema, columns)
    pruned = iter(java.prune(name, [text for texts in filters.values() for text in texts]))
    for column in columns:
        counts = [next(pruned) for _ in filters[column]]
        assert not any(count.lost for count in counts), column
        assert any(count.planned < ROWS for count in counts), column


def test_bounds_of_uuids_in_one_file_lose_no_row(oracle: Oracle, java: JavaTables) -> None:
    name = "java_sql.we_write_transforms.uuids"
    columns = {"identity_uuid": ("identity", "uuid")}
    schema = schema_of(columns)
    table = new_table(oracle, name, schema)
    table.append(rows_of(schema, columns))
    [filters] = filters_by_column(table.schema, columns).values()
    assert not any(count.lost for count in java.prune(name, filters))


def test_fixed_partition_values_are_avro_fixed(oracle: Oracle) -> None:
    name = "java_sql.we_write_transforms.fixed"
    schema = schema_of({JAVA_CANNOT_READ: ("identity", "fix")})
    table = new_table(oracle, name, schema, partitioned_by=[JAVA_CANNOT_READ])
    rows = rows_of(schema, {JAVA_CANNOT_READ: ("identity", "fix")})
    table.append(rows)
    values = [f["partition"][JAVA_CANNOT_READ] for f in raw_data_files(table)]
    assert {*values} == {None, *TYPES["fix"][1]}
    with pyiceberg_table(oracle, name) as theirs:
        assert show_rows(theirs.scan().to_arrow()) == show_rows(rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_pyiceberg_prunes_by_our_values(oracle: Oracle, version: int) -> None:
    name = f"java_sql.we_write_transforms.pyiceberg_{version}"
    # PyIceberg cannot read an Avro schema that refers to a decimal type by name at its second use,
    # as Avro requires.
    columns = {
        c: pair
        for c, pair in columns_of(2).items()
        if pair[0] != "void" and (pair[1] not in ("dec9", "dec38") or pair[0] == "truncate[2]")
    }
    schema = schema_of(columns)
    table = new_table(
        oracle,
        name,
        schema,
        partitioned_by=[TERMS[transform].format(c) for c, (transform, _) in columns.items()],
        properties={"format-version": str(version), "write.metadata.metrics.default": "none"},
    )
    rows = rows_of(schema, columns)
    table.append(rows)
    with pyiceberg_table(oracle, name) as theirs:
        assert show_rows(theirs.scan().to_arrow()) == show_rows(rows)
        for text, expected in [
            ("identity_int = 7", [4]),
            ("bucket_str = 'iceberg'", [3]),
            ("truncate_dec9 < -10.64", [0]),
            ("truncate_str = 'iceberg'", [3]),
            ("day_ts >= '2020-02-29T00:00:00'", [4]),
            ("hour_tz = '1970-01-01T00:00:00+00:00'", [2]),
            ("month_date < '1970-01-01'", [0, 1]),
            ("bucket_uuid is null", [4, 5, 6, 7]),
            ("identity_double is nan", [0]),
            ("year_date > '2018-01-01'", [4, 5]),
        ]:
            actual = theirs.scan(row_filter=text, selected_fields=("id",)).to_arrow()
            assert sorted(actual["id"].to_pylist()) == expected, text
