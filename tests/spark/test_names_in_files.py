"""Spark's Parquet reader skips row groups by column names and bounds, but never matching rows."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark import install
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import LongType, MapType, NestedField, StringType, UUIDType
from tests.support.frames import append_rows, create_path_table, load

NAN = float("nan")


@pytest.fixture(scope="module", autouse=True)
def _native(spark: SparkSession) -> Iterator[None]:
    session = install(spark)
    assert session.is_native
    yield
    session.uninstall()


def selected(spark: SparkSession, table: Path, *conditions: str) -> list[list[Any]]:
    """Return the ids that each condition selects; native and portable reads must agree."""
    answers = []
    for native in ("true", "false"):
        frame = load(spark, table, {"native": native})
        frame.createOrReplaceTempView("selected")
        flags = ", ".join(
            f"(SELECT sort_array(collect_list(id)) FROM selected WHERE {c})" for c in conditions
        )
        answers.append([list(ids) for ids in spark.sql(f"SELECT {flags}").first() or ()])
    assert answers[0] == answers[1]
    return answers[0]


def test_nan_is_above_the_bounds_of_a_row_group(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"id": 1, "d": NAN, "s": {"f": NAN}}, {"id": 2, "d": 1.0, "s": {"f": 1.0}}]
    create_path_table(tmp_path / "t", "id BIGINT, d DOUBLE, s STRUCT<f: FLOAT>", rows)
    conditions = ("d > 1.0", "s.f > 1.0", "d = double('NaN')", "d <> 1.0")
    assert selected(spark, tmp_path / "t", *conditions) == [[1]] * 4


def test_a_name_that_was_anothers_in_another_case(spark: SparkSession, tmp_path: Path) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT, A INT", [{"id": 1, "A": 1}])
    table.update_schema().rename_column("A", "was").add_column("a", "int").commit()
    append_rows(table, [{"id": 2, "was": 2, "a": 2}])
    table.update_schema().rename_column("a", "b").rename_column("was", "a").commit()
    assert selected(spark, tmp_path / "t", "a = 1", "a = 2", "b = 2") == [[1], [2], [2]]


def test_a_field_of_a_struct_that_took_anothers_name(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"id": 1, "s": {"x": {"y": b"y"}}}, {"id": 2, "s": {"x": None}}]
    table = create_path_table(tmp_path / "t", "id BIGINT, s STRUCT<x: STRUCT<y: BINARY>>", rows)
    table.update_schema().drop_column("s.x.y").commit()
    string, number = StringType(), LongType()
    pairs = MapType(key_id=90, key_type=string, value_id=91, value_type=number)
    table.update_schema().add_column("y", pairs, parent="s.x").rename_column("s", "t").commit()
    conditions = ("t.x IS NOT NULL", "t.x.y IS NULL", "t.x IS NULL")
    assert selected(spark, tmp_path / "t", *conditions) == [[1], [1, 2], [2]]


def test_filter_value_beyond_the_range_of_an_older_type(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [{"id": 1, "d": Decimal("1.25"), "i": 7}]
    table = create_path_table(tmp_path / "t", "id BIGINT, d DECIMAL(9, 2), i INT", rows)
    table.update_schema().update_type("d", "decimal(20, 2)").update_type("i", "long").commit()
    wide = f"{(2**32 * 3 - 2**31) / 100:.2f}BD"
    conditions = (f"d < {wide}", f"NOT d > {wide}", f"i < {2**32 * 3 - 2**31}", "d > -99999999999")
    assert selected(spark, tmp_path / "t", *conditions) == [[1]] * 4


def test_uuids_are_texts_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema(
        fields=(
            NestedField(field_id=1, name="id", type=LongType()),
            NestedField(field_id=2, name="u", type=UUIDType()),
        )
    )
    rows = [{"id": 1, "u": b"\xab" * 16}]
    table = create_path_table(tmp_path / "t", schema)  # type: ignore[arg-type]
    append_rows(table, rows)
    upper = "'" + "AB" * 4 + "-ABAB-ABAB-ABAB-" + "AB" * 6 + "'"
    conditions = (f"u > {upper}", f"u <> {upper}", f"NOT u = {upper}", f"u = lower({upper})")
    assert selected(spark, tmp_path / "t", *conditions) == [[1]] * 4
