"""Java parses each of our metadata files and would write it equally, and vice versa."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from iceberg_pyspark import Table
from iceberg_pyspark.spec.table_metadata import metadata_from_json, metadata_to_json
from tests.support.foreign_metadata import FOREIGN_METADATA, ForeignMetadata
from tests.support.java_tables import JavaTables
from tests.support.oracle import Oracle
from tests.support.our_tables import VERSIONS, new_table, our_catalog
from tests.support.parameters import cases

COLUMNS = "id BIGINT NOT NULL, d DATE, s STRING, p STRUCT<x: INT, y: MAP<STRING, ARRAY<INT>>>"
DEFAULTS: dict[str, tuple[str, Any]] = {
    "dec": ("decimal(9,2)", "1.5"),
    "tz": ("timestamptz", "2020-01-01T00:00:00.000001+00:00"),
    "ts": ("timestamp", "2020-01-01T00:00:00"),
    "ns": ("timestamp_ns", "1969-12-31T23:59:59.999999999"),
    "tzns": ("timestamptz_ns", "1970-01-01T00:00:00.000000001+00:00"),
    "tm": ("time", "23:59:59.999999"),
    "dt": ("date", "0001-01-01"),
    "fx": ("fixed[2]", b"\x00\x99"),
    "bin": ("binary", b""),
    "dbl": ("double", 0.1),
    "flt": ("float", 0.5),
    "lng": ("long", -(2**63)),
    "uu": ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    "yes": ("boolean", False),
    "txt": ("string", "é𐍈\"'\n"),
}


class Steps:
    """A table whose metadata file is compared after each change."""

    def __init__(self, java: JavaTables, table: Table) -> None:
        self.java = java
        self.table = table

    def check(self) -> None:
        text = Path(self.table.loaded.metadata_location).read_text(encoding="utf-8")
        javas = self.java.parse_metadata(text)
        assert json.loads(text) == javas
        assert metadata_to_json(metadata_from_json(javas)) == javas


@cases("catalog", fast=["java_sql"], nightly=["java_hadoop"])
@cases("version", fast=[3], nightly=[1, 2])
def test_every_change(oracle: Oracle, java: JavaTables, catalog: str, version: int) -> None:
    table = new_table(
        oracle,
        f"{catalog}.we_write_metadata.changes_{version}",
        COLUMNS,
        partitioned_by=["days(d)", "bucket(4, id)"],
        sorted_by=["s DESC NULLS LAST", "bucket(4, id)"],
        properties={"format-version": str(version), "comment": 'é " \\'},
    )
    steps = Steps(java, table)
    steps.check()
    day = pa.array([dt.date(2026, 1, 1)], pa.date32())
    table.append(pa.table({"id": pa.array([1]), "d": day}))
    steps.check()
    with table.update_schema() as schema:
        schema.add_column("n", "int", doc='doc "d"').rename_column("s", "t").move_first("d")
        schema.update_type("p.x", "long").set_identifier_fields("id")
    steps.check()
    with table.update_spec() as spec:
        spec.remove_field("d_day").add_field("t", "truncate[2]").add_field("p.x", "identity")
    steps.check()
    with table.replace_sort_order() as order:
        order.asc("id").desc("d")
    steps.check()
    table.append(pa.table({"id": pa.array([2])}))
    first, second = (s.snapshot_id for s in table.snapshots)
    with table.manage_snapshots() as refs:
        refs.create_tag("tag", first, max_ref_age_ms=9)
        refs.create_branch(
            "branch",
            second,
            min_snapshots_to_keep=3,
            max_snapshot_age_ms=5,
            max_ref_age_ms=7,
        )
    steps.check()
    table.overwrite(pa.table({"id": pa.array([3])}), branch="branch")
    steps.check()
    with table.manage_snapshots() as refs:
        refs.rollback_to(first)
    steps.check()
    with table.update_properties() as properties:
        properties.set({"a.b": "c"}).remove("comment")
    steps.check()
    table.delete("true")
    steps.check()


@pytest.mark.nightly
def test_every_default(oracle: Oracle, java: JavaTables) -> None:
    name = "java_sql.we_write_metadata.defaults"
    table = new_table(oracle, name, "id INT", properties={"format-version": "3"})
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    with table.update_schema() as schema:
        for column, (type_, value) in DEFAULTS.items():
            schema.add_column(column, type_, default=value)
    table.append(pa.table({"id": pa.array([2], pa.int32())}))
    steps = Steps(java, table)
    steps.check()
    old, new = java.rows(name)
    # Columns that the old file lacks have the same values as in the new file.
    assert old.removeprefix("{1") == new.removeprefix("{2")
    assert "null" not in old
    with table.update_schema() as schema:
        schema.update_default("lng", 7).update_default("txt", "new")
    table.append(pa.table({"id": pa.array([3], pa.int32())}))
    steps.check()
    assert java.rows(name)[:2] == [old, new]
    assert java.rows(name, columns=["id", "lng", "txt"])[2] == "{3|7|'new'}"


@pytest.mark.nightly
@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_table_is_that_of_java(oracle: Oracle, java: JavaTables, version: int) -> None:
    name = f"java_sql.we_write_metadata.new_{version}"
    table = new_table(
        oracle,
        name,
        COLUMNS,
        partitioned_by=["days(d)", "truncate(3, s)"],
        sorted_by=["id"],
        properties={"format-version": str(version)},
    )
    oracle.sql(
        f"CREATE TABLE {name}_java ({COLUMNS}) USING iceberg "
        f"PARTITIONED BY (days(d), truncate(3, s)) TBLPROPERTIES ('format-version' = '{version}')"
    )
    oracle.sql(f"ALTER TABLE {name}_java WRITE ORDERED BY id")
    ours = metadata_to_json(table.metadata)
    javas = java.parse_metadata(
        Path(
            our_catalog(oracle, "java_sql").load_table(f"{name}_java").loaded.metadata_location
        ).read_text(encoding="utf-8")
    )
    # Spark adds an owner and, with the order, a distribution mode; the unsorted order came first.
    for key in ("table-uuid", "location", "last-updated-ms", "metadata-log"):
        del ours[key], javas[key]
    for key in ("owner", "write.distribution-mode"):
        del javas["properties"][key]
    assert [o for o in javas.pop("sort-orders") if o["order-id"]] == ours.pop("sort-orders")
    assert ours == javas


@pytest.mark.nightly
@pytest.mark.parametrize("case", FOREIGN_METADATA, ids=lambda case: case.name)
def test_java_reads_of_foreign_metadata_what_the_list_says(
    java: JavaTables, case: ForeignMetadata
) -> None:
    try:
        java.parse_metadata(json.dumps(case.document))
        is_read = True
    except (Py4JJavaError, PySparkException):
        is_read = False
    assert is_read == case.java_reads
