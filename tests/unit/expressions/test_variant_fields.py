"""Fields of variants in filters, and boxes: the rows that match, and the files that are skipped."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark import Table, load_catalog, variants_from_objects
from iceberg_pyspark.arrow.read.row_filter import compile_row_mask
from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.condition_text import condition_text
from iceberg_pyspark.expressions.file_filters import compile_metrics_filter
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import NestedField, VariantType
from iceberg_pyspark.spec.variant_encoding import FieldNames, encode_object, variant_of
from iceberg_pyspark.sql_text.filters import parse_filter

V3 = {"format-version": "3"}
SCHEMA = Schema(fields=(NestedField(field_id=1, name="v", type=VariantType()),))


@pytest.fixture
def variants(tmp_path: Path) -> Table:
    table = load_catalog("m", type="memory").create_table(
        str(tmp_path / "t"), "id BIGINT, v VARIANT", properties=V3
    )
    objects: list[Any] = [
        {"a": 1, "t": "x", "n": {"b c": True}},
        {"a": 300, "d": Decimal("1.50")},
        {"a": "text", "day": dt.date(2026, 1, 2), "at": dt.datetime(2026, 1, 2, 3)},
        {"a": None, "d": 2.5},
        None,
        [1],
        7,
    ]
    table.append(pa.table({"id": [*range(len(objects))], "v": variants_from_objects(objects)}))
    return table


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("variant_field(v, '$.a', 'bigint') >= 1", [0, 1]),
        ("variant_field(v, '$.a', 'int') = 300", [1]),
        ("5 > variant_field(v, '$.a', 'bigint')", [0]),
        ("NOT variant_field(v, '$.a', 'bigint') IN (1, 2)", [1]),
        ("variant_field(v, '$.a', 'string') = 'text'", [2]),
        ("variant_field(v, '$.a', 'bigint') IS NULL", [2, 3, 4, 5, 6]),
        ("variant_field(v, '$.d', 'double') > 1.4", [1, 3]),
        ("variant_field(v, '$.d', 'decimal(5,1)') = 1.5", [1]),
        ("variant_field(v, \"$['n']['b c']\", 'boolean')", [0]),
        ("variant_field(v, '$.day', 'date') < DATE'2027-01-01'", [2]),
        ("variant_field(v, '$.at', 'timestamp_ntz') > TIMESTAMP_NTZ'2026-01-02 00:00:00'", [2]),
        ("variant_field(v, '$', 'int') = 7 OR variant_field(v, '$.t', 'string') LIKE 'x%'", [0, 6]),
    ],
)
def test_fields_of_variants_select_rows(variants: Table, text: str, ids: list[int]) -> None:
    assert sorted(variants.scan(text, columns=["id"]).to_arrow()["id"].to_pylist()) == ids


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("variant_field(id, '$.a', 'int') = 1", "column 'id' is long, no variant"),
        ("variant_field(v, '$.a', 'variant') = 1", "no fields of type variant"),
        ("variant_field(v, '$.a', 'nonsense') = 1", "unknown type"),
        ("variant_field(v, '$.a[0]', 'int') = 1", "not the path of a field"),
        ("variant_field(v, '$.a', 'int') = 'x'", "does not compare"),
        ("variant_field(v, '$.a') = 1", "not understood|does not compare|not a column"),
        ("v = 1", "can only be tested for null"),
    ],
)
def test_wrong_fields_are_refused(variants: Table, text: str, why: str) -> None:
    with pytest.raises(InvalidRequestError, match=why):
        variants.scan(text).to_arrow()


def test_conditions_are_shown_as_they_are_written() -> None:
    text = "variant_field(v, '$[\\'a\\']', 'long') > 5"
    bound = bind(parse_filter("variant_field(v, '$.a', 'bigint') > 5"), SCHEMA)
    assert condition_text(bound) == text.replace("\\'", "'")


NUMBERS = st.integers(-3, 3) | st.sampled_from([Decimal("0.5"), 1.5, -2.5])
OPERATORS = st.sampled_from(["<", "<=", ">", ">=", "=", "<>"])


@given(
    st.lists(NUMBERS | st.none() | st.just("text"), min_size=1, max_size=4),
    st.sampled_from(["bigint", "double", "decimal(9,2)"]),
    OPERATORS,
    NUMBERS.map(lambda n: Decimal(str(n))),
)
def test_no_file_with_a_matching_row_is_skipped(
    values: list[Any], type_: str, operator: str, literal: Decimal
) -> None:
    """Writers give bounds to fields whose values have one type; nulls do not count."""
    predicate = bind(
        parse_filter(f"variant_field(v, '$.a', '{type_}') {operator} {literal}"), SCHEMA
    )
    objects = variants_from_objects([{"a": v} for v in values])
    present = [v for v in values if v is not None]
    bounds: dict[str, Any] = {}
    if present and len({type(v) for v in present}) == 1 and type(present[0]) is not str:
        for name, end in (("lower_bounds", min(present)), ("upper_bounds", max(present))):
            names = FieldNames.sorted([b"$['a']"])
            value = encode_object({b"$['a']": variant_of(end)[1]}, names)
            bounds[name] = {1: names.encoded() + value}
    file = DataFile(file_path="f", record_count=len(values), file_size_in_bytes=1, **bounds)
    matching = compile_row_mask(predicate)(len(values), lambda _: objects).to_pylist()
    assert compile_metrics_filter(predicate)(file) or True not in matching


def point(x: float, y: float) -> bytes:
    return struct.pack("<BI2d", 1, 1, x, y)


def test_boxes_select_rows_and_skip_files(tmp_path: Path) -> None:
    table = load_catalog("m", type="memory").create_table(
        str(tmp_path / "g"), "id BIGINT, g GEOMETRY, e GEOGRAPHY", properties=V3
    )
    line = struct.pack("<BII4d", 1, 2, 2, 0, 0, 10, 10)
    empty = struct.pack("<BII", 1, 2, 0)
    for ids, values in (([1, 2, 3], [point(1, 1), None, line]), ([4, 5], [point(50, 50), empty])):
        table.append(pa.table({"id": ids, "g": pa.array(values, pa.binary())}))

    def ids_of(text: str) -> list[int]:
        return sorted(table.scan(text).to_arrow()["id"].to_pylist())

    near = "st_intersects(g, 0, 0, 2, 2.5)"
    assert ids_of(near) == [1, 3]
    assert len(list(table.scan(near).plan_files())) == 1
    assert ids_of("st_intersects(g, 10, -5, 60, 50)") == [3, 4]
    assert ids_of("NOT st_intersects(g, 0, 0, 2, 2)") == [4, 5]
    assert ids_of("st_intersects(g, 20, 20, 30, 30) OR id = 2") == [2]
    assert not list(table.scan("st_intersects(g, 20, 20, 30, 30)").plan_files())
    assert condition_text(bind(parse_filter(near), table.schema)) == (
        "st_intersects(g, 0.0, 0.0, 2.0, 2.5)"
    )
    for text, why in (
        ("st_intersects(id, 0, 0, 1, 1)", "column 'id' is long; only geometries"),
        ("st_intersects(e, 0, 0, 1, 1)", "column 'e' is geography; only geometries"),
        ("st_intersects(g, 0, 0, 1)", "takes a column, xmin, ymin, xmax and ymax"),
        ("st_intersects(g, 2, 0, 1, 1)", "a corner above the other"),
        ("st_intersects(g, '0', 0, 1, 1)", "takes a column, xmin"),
    ):
        with pytest.raises(InvalidRequestError, match=why):
            ids_of(text)
    table.append(pa.table({"id": [9], "g": pa.array([b"junk"], pa.binary())}))
    with pytest.raises(InvalidMetadataError, match="not WKB"):
        ids_of(near)
