"""Types without a Spark SQL name, written by Java's API: time, uuid, fixed, nanoseconds."""

from __future__ import annotations

import datetime as dt
import uuid

import pytest

from tests.support.java_records import append_records, create_java_table
from tests.support.oracle import Oracle
from tests.support.readings import (
    assert_filters_alike,
    our_frame,
    our_rows,
    our_scan,
)
from tests.support.rows import spark_rows

pytestmark = pytest.mark.nightly

UUIDS = {i: f"{c}79c3e09-677c-4bbd-a479-3f349cb785e7" for i, c in enumerate("07f", 1)}


def test_uuid_and_fixed_as_spark_shows_them(oracle: Oracle) -> None:
    """Java orders uuids and their bounds as signed halves; our filters must still lose no rows."""
    name = "java_sql.api.bytes"
    nested = [{"id": 20, "name": "u", "type": "uuid", "required": False}]
    create_java_table(
        oracle,
        name,
        [
            {"name": "id", "type": "int"},
            {"name": "u", "type": "uuid"},
            {"name": "v", "type": "uuid"},
            {"name": "fx", "type": "fixed[3]"},
            {"name": "s", "type": {"type": "struct", "fields": nested}},
        ],
        partitioning=[("identity", "u"), ("bucket[4]", "u")],
        properties={"format-version": "2"},
    )
    values = ", ".join(f"({i}, '{u}', '{u}', X'0102FF', struct('{u}'))" for i, u in UUIDS.items())
    oracle.sql(f"INSERT INTO {name} VALUES {values}, (4, null, null, null, struct(null))")
    frame = our_frame(oracle, name)
    assert frame.schema == oracle.spark.table(name).schema
    assert spark_rows(frame.collect()) == oracle.table_rows(name)
    raw = {i: uuid.UUID(u).bytes for i, u in UUIDS.items()}
    assert our_rows(oracle, name)[:3] == [(i, u, u, b"\x01\x02\xff", (u,)) for i, u in raw.items()]
    filters = [
        text.replace("u", column)
        for column in ("u", "v")
        for text in (
            f"u = '{UUIDS[2]}'",
            f"u = '{UUIDS[3]}'",
            "u IS NULL",
            f"u > '{UUIDS[1]}'",
            f"u <= '{UUIDS[2]}'",
            f"u IN ('{UUIDS[2]}', '{UUIDS[1]}')",
        )
    ]
    # Spark compares uuids as text, which gives the order of the specification.
    assert_filters_alike(oracle, name, filters)
    for text in filters:
        assert our_scan(oracle, name, filter=text).describe().statistics.data_files_kept < 4, text


def test_time_and_nanoseconds(oracle: Oracle) -> None:
    """Spark's connector cannot read these types, so compare the rows with the written values."""
    name = "java_hadoop.api.times"
    create_java_table(
        oracle,
        name,
        [
            {"name": "id", "type": "int"},
            {"name": "t", "type": "time"},
            {"name": "ns", "type": "timestamp_ns"},
            {"name": "nstz", "type": "timestamptz_ns"},
        ],
        properties={"format-version": "3"},
    )
    append_records(
        oracle,
        name,
        [
            {"id": 1, "t": "23:59:59.999999", "ns": "2026-01-01T00:00:00.000000001",
             "nstz": "1969-12-31T23:59:59.999999999Z"},
            {"id": 2, "t": "00:00:00", "ns": "2262-04-11T23:47:16.854775807", "nstz": None},
            {"id": 3, "t": None, "ns": None, "nstz": "1970-01-01T00:00:00Z"},
        ],
    )  # fmt: skip
    table = our_scan(oracle, name).to_arrow()
    assert table["t"].to_pylist() == [dt.time(23, 59, 59, 999999), dt.time(0), None]
    assert [v.value for v in table["ns"]] == [1767225600 * 10**9 + 1, 2**63 - 1, None]
    assert [v.value for v in table["nstz"]] == [-1, None, 0]
    assert our_rows(oracle, name, columns="id", filter="t > '12:00:00'") == [(1,)]
    assert our_rows(oracle, name, columns="id", filter="nstz < TIMESTAMP '1970-01-01'") == [(1,)]
    times = our_frame(oracle, name, columns="id,t")
    assert times.filter("t IS NULL").select("id").collect() == [(3,)]
    assert times.selectExpr("cast(t as string)").filter("id = 1").collect() == [
        ("23:59:59.999999",)
    ]


def test_variants_come_as_their_metadata_and_value(oracle: Oracle) -> None:
    name = "java_hadoop.api.variant"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, v VARIANT) USING iceberg "
        "TBLPROPERTIES ('format-version' = '3')"
    )
    oracle.sql(f"""INSERT INTO {name} VALUES (1, parse_json('{{"a": 1}}')), (2, null)""")
    java = {row.id: row.v for row in oracle.spark.table(name).collect()}
    read = {row["id"]: row["v"] for row in our_scan(oracle, name).to_arrow().to_pylist()}
    assert read == {
        1: {"metadata": bytes(java[1].metadata), "value": bytes(java[1].value)},
        2: None,
    }
