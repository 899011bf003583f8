"""Schemas, partition specs and sort orders as text."""

from __future__ import annotations

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import UNSORTED
from iceberg_pyspark.sql_text.ddl import parse_partitioning, parse_sort_order, parse_term
from iceberg_pyspark.sql_text.schema_text import parse_schema

SCHEMA = parse_schema("id BIGINT, ts TIMESTAMP, v STRING, s STRUCT<a: INT, `b.c`: DATE>, `x y` INT")


@pytest.mark.parametrize(
    ("spark", "iceberg"),
    [
        ("BOOLEAN", "boolean"),
        ("TINYINT", "int"),
        ("BYTE", "int"),
        ("SMALLINT", "int"),
        ("SHORT", "int"),
        ("INT", "int"),
        ("INTEGER", "int"),
        ("BIGINT", "long"),
        ("LONG", "long"),
        ("FLOAT", "float"),
        ("REAL", "float"),
        ("DOUBLE", "double"),
        ("DECIMAL", "decimal(10, 0)"),
        ("DECIMAL(5)", "decimal(5, 0)"),
        ("DECIMAL(38, 38)", "decimal(38, 38)"),
        ("NUMERIC(4,1)", "decimal(4, 1)"),
        ("DATE", "date"),
        ("TIMESTAMP", "timestamptz"),
        ("TIMESTAMP_LTZ", "timestamptz"),
        ("TIMESTAMP_NTZ", "timestamp"),
        ("STRING", "string"),
        ("VARCHAR(10)", "string"),
        ("CHAR(3)", "string"),
        ("BINARY", "binary"),
        ("UUID", "uuid"),
        ("TIME", "time"),
        ("VARIANT", "variant"),
        ("GEOMETRY", "geometry"),
        ("GEOMETRY(4326)", "geometry"),
        ("GEOMETRY(3857)", "geometry(EPSG:3857)"),
        ("GEOGRAPHY(4326)", "geography"),
        ("ARRAY<INT>", "list<int>"),
        ("MAP<STRING, DECIMAL(9,2)>", "map<string, decimal(9, 2)>"),
        ("array<map<string,struct<a:int>>>", None),
    ],
)
def test_types(spark: str, iceberg: str | None) -> None:
    (field,) = parse_schema(f"c {spark}").fields
    assert iceberg is None or str(field.type) == iceberg
    assert not field.required


def test_names_nullability_and_comments() -> None:
    schema = parse_schema(
        "id BIGINT NOT NULL COMMENT 'the key', `select` INT, order INT, `a``b.c` INT NULL, date "
        "DATE"
    )
    assert [(f.name, f.required, f.doc) for f in schema.fields] == [
        ("id", True, "the key"),
        ("select", False, None),
        ("order", False, None),
        ("a`b.c", False, None),
        ("date", False, None),
    ]


def test_ids_go_level_by_level() -> None:
    schema = parse_schema(
        "a STRUCT<x: INT NOT NULL COMMENT 'in', y: ARRAY<STRUCT<z: INT>>>, m MAP<INT, INT>, b INT"
    )
    assert dict(schema.id_by_name) == {
        "a": 1,
        "m": 2,
        "b": 3,
        "a.x": 4,
        "a.y": 5,
        "a.y.element": 6,
        "a.y.element.z": 7,
        "m.key": 8,
        "m.value": 9,
    }
    inner = schema.find("a.x")
    assert (inner.required, inner.doc) == (True, "in")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "a",
        "a foo",
        "a INT, a INT",
        "a INT) USING parquet (b",
        "a INT) AS SELECT (1",
        "a INT; DROP TABLE x",
        "a INT DEFAULT 5",
        "a BIGINT GENERATED ALWAYS AS IDENTITY",
        "PRIMARY KEY (a)",
        "select INT",
        "a.b INT",
        "a INTERVAL DAY",
        "a FIXED(16)",
        "a FLOAT(3)",
        "a TIMESTAMP(3)",
        "a DECIMAL(39)",
        "a DECIMAL(3, 5)",
        "a DECIMAL(1, 2, 3)",
        "a ARRAY",
        "a STRUCT",
        "a STRUCT<x: INT, x: INT>",
        "a MAP<STRING>",
        "a JSON",
        "a GEOMETRY('x')",
        "a GEOGRAPHY(1, 2)",
        "a 'INT'",
        "a INT 'unclosed",
        "x" * 500,
    ],
)
def test_invalid_schema_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        parse_schema(text)


@pytest.mark.parametrize(
    ("term", "name", "transform", "source"),
    [
        ("v", "v", "identity", "v"),
        ("identity(v)", "v", "identity", "v"),
        ("s.a", "s.a", "identity", "s.a"),
        ("days(s.`b.c`)", "s.b.c_day", "day", "s.b.c"),
        ("`x y`", "x y", "identity", "x y"),
        ("bucket(16, id)", "id_bucket", "bucket[16]", "id"),
        ("BUCKET(id,16)", "id_bucket", "bucket[16]", "id"),
        ("truncate(4, v)", "v_trunc", "truncate[4]", "v"),
        ("years(ts)", "ts_year", "year", "ts"),
        ("year(ts)", "ts_year", "year", "ts"),
        ("months(ts)", "ts_month", "month", "ts"),
        ("days(ts)", "ts_day", "day", "ts"),
        ("date(ts)", "ts_day", "day", "ts"),
        ("hours( ts )", "ts_hour", "hour", "ts"),
        ("date_hour(ts)", "ts_hour", "hour", "ts"),
        ("void(id)", "id_null", "void", "id"),
        ("bucket(8, `x y`) AS shard", "shard", "bucket[8]", "x y"),
        ("ID", "id", "identity", "id"),
    ],
)
def test_partition_terms(term: str, name: str, transform: str, source: str) -> None:
    (field,) = parse_partitioning([term], SCHEMA).fields
    assert (field.name, str(field.transform), field.field_id) == (name, transform, 1000)
    assert SCHEMA.name_by_id[field.source_id] == source


@pytest.mark.parametrize(
    "terms",
    [
        ["nope"],
        ["days(nope)"],
        ["weeks(ts)"],
        ["bucket(id)"],
        ["bucket(0, id)"],
        ["bucket(16, id, v)"],
        ["bucket(16, 16)"],
        ["truncate(-4, v)"],
        ["days(ts, 3)"],
        ["days()"],
        ["days(ts"],
        ["days(`ts)"],
        ["bucket(16,, id)"],
        ["id{# s.a #}"],
        ["id -- s.a"],
        ["id /* s.a */"],
        [""],
        ["days(ts)", "days(ts)"],
    ],
)
def test_invalid_partitioning_is_refused(terms: list[str]) -> None:
    with pytest.raises(InvalidRequestError):
        parse_partitioning(terms, SCHEMA)


def test_a_column_is_found_by_its_exact_case_first() -> None:
    schema = parse_schema("a INT, A INT, B INT")
    fields = parse_partitioning(["A", "a", "b"], schema).fields
    assert [f.source_id for f in fields] == [2, 1, 3]
    with pytest.raises(InvalidRequestError, match="ambiguous"):
        parse_partitioning(["ab"], parse_schema("AB INT, Ab INT"))


def test_the_case_of_names_counts_as_the_caller_says() -> None:
    schema = parse_schema("a INT, B INT, s STRUCT<X: INT>, C INT, c INT")
    assert parse_term("bucket(4, S.x)", schema, case_sensitive=False).column == "s.X"
    assert parse_sort_order(["b"], schema, case_sensitive=False).fields[0].source_ids == (2,)
    for case_sensitive, name, why in (
        (True, "A", "no column 'A'"),
        (True, "s.x", "no column 's.x'"),
        # as in Spark, the exact spelling is no better
        (False, "c", "'c' is ambiguous: 'C' and 'c' differ only in case"),
    ):
        with pytest.raises(InvalidRequestError, match=why):
            parse_term(name, schema, case_sensitive=case_sensitive)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("id", ("identity", "asc", "nulls-first")),
        ("id ASC", ("identity", "asc", "nulls-first")),
        ("id desc", ("identity", "desc", "nulls-last")),
        ("id DESC NULLS FIRST", ("identity", "desc", "nulls-first")),
        ("id NULLS LAST", ("identity", "asc", "nulls-last")),
        ("bucket(4, id) DESC", ("bucket[4]", "desc", "nulls-last")),
    ],
)
def test_sort_terms(term: str, expected: tuple[str, str, str]) -> None:
    (field,) = parse_sort_order([term], SCHEMA).fields
    assert (str(field.transform), field.direction, field.null_order) == expected


@pytest.mark.parametrize("term", ["", "DESC", "id UP", "id NULLS", "nope DESC"])
def test_invalid_sort_term_is_refused(term: str) -> None:
    with pytest.raises(InvalidRequestError):
        parse_sort_order([term], SCHEMA)


def test_no_terms_at_all() -> None:
    assert parse_sort_order([], SCHEMA) == UNSORTED
    assert parse_partitioning([], SCHEMA).fields == ()
    assert isinstance(SCHEMA, Schema)


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "term", [f"id{' ' * 100_000}x", f"{' AS ' * 20_000}", "`" * 50_001, f"bucket({'(' * 50_000}"]
)
def test_no_term_takes_long_to_refuse(term: str) -> None:
    for parse in (parse_partitioning, parse_sort_order):
        with pytest.raises(InvalidRequestError):
            parse([term], SCHEMA)


@pytest.mark.parametrize("number", ["0", "2147483648", "9" * 5000])
def test_a_transform_takes_a_number_of_32_bits(number: str) -> None:
    with pytest.raises(InvalidRequestError, match="takes a positive number and a column"):
        parse_partitioning([f"bucket({number}, id)"], SCHEMA)


def test_an_alias_may_be_quoted_and_hold_the_word_itself() -> None:
    (field,) = parse_partitioning(["days(ts)  as\t`x AS ``y`"], SCHEMA).fields
    assert field.name == "x AS `y"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a " + "ARRAY<" * 150 + "INT" + ">" * 150, "nested too deeply|nest deeper"),
        ("a " + "ARRAY<" * 5000 + "INT" + ">" * 5000, "nested deeper than 200 levels"),
        ("a DECIMAL(" + "9" * 5000 + ", 2)", "scale and precision must be numbers"),
        ("a INT; b INT", "not a list of columns|columns and nothing else"),
        ("a INT COMMENT '\ud800'", "half of a surrogate pair"),
    ],
)
def test_schemas_that_no_parser_survives_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        parse_schema(text)


def test_many_nested_columns_are_parsed() -> None:
    text = ", ".join(f"c{i} MAP<STRING, ARRAY<STRUCT<a: INT>>>" for i in range(300))
    assert len(parse_schema(text).fields) == 300
