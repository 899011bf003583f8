"""The metrics of our data files equal those of Java's Parquet writer for the same rows.

Every table has a twin, into which Java wrote the rows of each of our files again.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.spec.types import UUIDType
from tests.support.every_type import ODD_NAN, every_type
from tests.support.java_tables import JavaTables, filter_json
from tests.support.oracle import Oracle
from tests.support.our_tables import VERSIONS, new_table
from tests.support.raw_avro import raw_data_files
from tests.support.readings import our_table

pytestmark = pytest.mark.nightly

METRICS = (
    "record_count",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "sort_order_id",
    "partition",
    "file_format",
    "content",
)
# A deliberate tolerance: Parquet's own statistics ignore the sign of zero, so Arrow writes -0.0 as
# minimum and 0.0 as maximum. These bounds are correct for either zero, and no filter distinguishes
# them.
ZEROS = {bytes(4), bytes(8), b"\x00\x00\x00\x80", b"\x00\x00\x00\x00\x00\x00\x00\x80"}
ODD_NAN_TEXT = struct.pack(">d", ODD_NAN).hex()
_numbers = count(1)


def write_twins(
    oracle: Oracle,
    java: JavaTables,
    rows: pa.Table,
    properties: Mapping[str, str],
    partitioned_by: tuple[str, ...] = (),
) -> tuple[Table, Table]:
    """Write rows with our writer, and then each file's rows with Java's writer."""
    name = f"java_sql.we_write_metrics.ours_{next(_numbers)}"
    table = new_table(
        oracle, name, rows.schema, partitioned_by=partitioned_by, properties=properties
    )
    table.append(rows)
    twin = name.replace("ours", "twin")
    java.create(twin, like=name)
    java.copy(name, twin)
    # Java's writer normalizes NaN to one bit pattern.
    ours = [row.replace(ODD_NAN_TEXT, "7ff8000000000000") for row in java.rows(name)]
    assert sorted(ours) == java.rows(twin)
    return table, our_table(oracle, twin)


def assert_same_metrics(ours: Table, javas: Table) -> list[dict[str, Any]]:
    """Check that the metrics of each pair of files are equal; return our files."""
    pairs = list(zip(raw_data_files(ours), raw_data_files(javas), strict=True))
    assert pairs
    uuids = [i for i, f in ours.schema.field_by_id.items() if isinstance(f.type, UUIDType)]
    for our_file, java_file in pairs:
        # Java's bounds of uuids are in a wrong order, so Java skips matching rows
        # (apache/iceberg#14216).
        low, high = java_file["lower_bounds"] or {}, java_file["upper_bounds"] or {}
        for i in uuids:
            if i in low and low[i][0] >> 7 != high[i][0] >> 7:
                del low[i], high[i]
        for name in METRICS:
            assert plain(our_file.get(name)) == plain(java_file.get(name)), name
        # Sizes depend on the writer; the set of columns that have a size does not.
        assert our_file["column_sizes"].keys() == java_file["column_sizes"].keys()
        assert our_file["split_offsets"][0] == java_file["split_offsets"][0] == 4
    return [our_file for our_file, _ in pairs]


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: b"zero" if v in ZEROS else v for k, v in value.items()}
    # An empty map may be omitted.
    return value or None


@pytest.mark.parametrize("version", VERSIONS)
def test_every_type(oracle: Oracle, java: JavaTables, version: int) -> None:
    rows = every_type(version)
    ours, javas = write_twins(oracle, java, rows, {"format-version": str(version)})
    [file] = assert_same_metrics(ours, javas)
    ids = ours.schema.id_by_name
    assert file["nan_value_counts"][ids["nans"]] == 3
    # Columns inside lists and maps have no bounds (docs/conformance.md 46).
    assert not {ids["li.element.x"], ids["ma.key"], ids["mk.key.k"]} & file["lower_bounds"].keys()
    assert file["value_counts"][ids["st.b b.c"]] == 4


@pytest.mark.parametrize("row", range(4))
def test_metrics_of_single_rows_equal_those_of_java(
    oracle: Oracle, java: JavaTables, row: int
) -> None:
    ours, javas = write_twins(oracle, java, every_type(3).slice(row, 1), {"format-version": "3"})
    assert_same_metrics(ours, javas)


@pytest.mark.parametrize("mode", ["none", "counts", "truncate(1)", "truncate(3)", "full"])
def test_every_mode(oracle: Oracle, java: JavaTables, mode: str) -> None:
    properties = {
        "format-version": "2",
        "write.metadata.metrics.default": mode,
        "write.metadata.metrics.column.i": "full",
        "write.metadata.metrics.column.s": "truncate(2)",
        "write.metadata.metrics.column.st.a": "counts",
        "write.metadata.metrics.column.st.b b.c": "none",
        "write.metadata.metrics.column.f": "none",
        "write.metadata.metrics.column.li.element.x": "full",
        "write.metadata.metrics.column.d": "counts",
    }
    ours, javas = write_twins(oracle, java, every_type(2), properties)
    assert_same_metrics(ours, javas)


@pytest.mark.parametrize("limit", ["1", "3", "24", "27", "100"])
def test_only_the_first_columns_are_measured_unasked(
    oracle: Oracle, java: JavaTables, limit: str
) -> None:
    properties = {"write.metadata.metrics.max-inferred-column-defaults": limit}
    ours, javas = write_twins(oracle, java, every_type(2), properties)
    assert_same_metrics(ours, javas)


LAST = "\U0010ffff"
TEXTS = {
    "just_fits": ["a" * 16, "b" * 16],
    "one_more": ["a" * 17, "b" * 17],
    "pair_at_the_border": ["a" * 15 + "𐍈𐍈", "b" * 15 + "𐍈𐍈"],
    "pair_within": ["𐍈" * 16, "𐍈" * 17],
    "last_character": [LAST * 17, LAST * 20],
    "last_at_the_border": ["a" * 15 + LAST + "x", "b" * 15 + LAST + "x"],
    "all_last_but_first": ["a" + LAST * 20, "b" + LAST * 20],
    "before_surrogates": ["\ud7ff" * 20, "\ud7ff" * 20],
    "before_surrogates_at_the_border": ["a" * 15 + "\ud7ff" * 3, "a" * 15 + "\ud7ff" * 4],
    "end_of_the_plane": ["\uffff" * 20, "\uffff" * 20],
    "bmp_and_beyond": ["\uffff" * 20, "𐍈" * 20],
    "combining": ["e\u0301" * 20, "é" * 20],
    "empty": ["", ""],
    "nul": ["\x00" * 20, "\x00"],
    "delete_character": ["\x7f" * 20, "\x7f" * 21],
    "long": ["a" * 5000, "b" * 70000],
    "long_one": ["short", "z" * 5000],
    "long_last": [LAST * 2000, LAST * 2001],
}
BINARIES = {
    "bin_just_fits": [b"\x01" * 16, b"\xff" * 16],
    "bin_last": [b"\xff" * 17, b"\xff" * 20],
    "bin_last_but_first": [b"\x01" + b"\xff" * 20, b"\x02" + b"\xff" * 20],
    "bin_border": [b"\x01" * 20, b"\x01" * 15 + b"\xff" * 3],
    "bin_long": [b"\x00" * 5000, b"\xfe" * 70000],
}


def long_values() -> pa.Table:
    columns: dict[str, pa.Array] = {k: pa.array(v, pa.string()) for k, v in TEXTS.items()}
    columns |= {k: pa.array(v, pa.binary()) for k, v in BINARIES.items()}
    columns["fixed"] = pa.array([b"\x01" * 20, b"\xff" * 20], pa.binary(20))
    columns["fixed_cut"] = pa.array([b"\x01" * 20, b"\x02" + b"\xff" * 19], pa.binary(20))
    return pa.table({"id": pa.array([1, 2], pa.int64()), **columns})


@pytest.mark.parametrize("mode", [None, "truncate(1)", "truncate(17)", "full"])
def test_bounds_of_long_values_are_cut_as_java_cuts(
    oracle: Oracle, java: JavaTables, mode: str | None
) -> None:
    properties = {} if mode is None else {"write.metadata.metrics.default": mode}
    ours, javas = write_twins(oracle, java, long_values(), properties)
    assert_same_metrics(ours, javas)


def test_cut_bounds_lose_no_row(oracle: Oracle, java: JavaTables) -> None:
    ours, _ = write_twins(oracle, java, long_values(), {})
    for column, values in TEXTS.items():
        for value in set(values):
            request = filter_json(f"{column} = '{value}'", ours.schema)
            assert java.planned_files(f"java_sql.{ours.identifier}", request), (column, value[:20])


def test_row_groups_are_added_up(oracle: Oracle, java: JavaTables) -> None:
    size = 5000
    rows = pa.table(
        {
            "id": pa.array([(i * 7919) % size for i in range(size)], pa.int64()),
            "s": pa.array([f"{'x' * (i % 30)}{i}" for i in range(size)], pa.string()),
            "f": pa.array(
                [float("nan") if i % 7 == 0 else i - 2500.5 for i in range(size)], pa.float32()
            ),
            "late": pa.array([None if i < 4900 else i for i in range(size)], pa.int32()),
        }
    )
    properties = {
        "write.parquet.row-group-size-bytes": "40000",
        "write.parquet.row-group-check-min-record-count": "100",
        "write.parquet.row-group-check-max-record-count": "100",
    }
    ours, javas = write_twins(oracle, java, rows, properties)
    [file] = assert_same_metrics(ours, javas)
    assert len(file["split_offsets"]) > 1
    assert file["split_offsets"] == sorted(file["split_offsets"])


def test_partitions_are_measured_apart(oracle: Oracle, java: JavaTables) -> None:
    rows = every_type(2)
    ours, javas = write_twins(oracle, java, rows, {}, ("truncate(2, i)", "s", "days(ts)"))
    assert len(assert_same_metrics(ours, javas)) == 4
