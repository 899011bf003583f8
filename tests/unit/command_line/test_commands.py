"""The output of each command, as text for people and as JSON."""

from __future__ import annotations

import json
import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.types import NestedField
from tests.unit.command_line.conftest import Run


def test_names_are_listed_by_level(run: Run, table: ice.Table) -> None:
    assert run("list").lines == ["name  kind", "db    namespace"]
    assert run("list", "db").lines == ["name  kind", "db.t  table"]
    assert run("list", "db", "--json").json == [{"name": "db.t", "kind": "table"}]


def test_a_configured_catalog_is_found_by_its_name(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", "w")
    assert run("create", "table", "lake.db.t", "--schema", "id INT", warehouse=None).code == 0
    assert "db    namespace" in run("list", "lake", warehouse=None).lines
    assert "db.t  table" in run("list", "lake.db", warehouse=None).lines
    assert run("location", "lake.db.t", warehouse=None).lines == [f"{Path.cwd()}/w/db/t"]
    monkeypatch.setenv("PYICEBERG_CATALOG__OTHER__WAREHOUSE", "w")
    assert run("rename", "lake.db.t", "other.db.u", warehouse=None).code == 2
    assert run("rename", "lake.db.t", "lake.db.u", warehouse=None).code == 0
    assert "db.u  table" in run("list", "lake.db", warehouse=None).lines


def test_a_table_is_described(run: Run, table: ice.Table) -> None:
    lines = run("describe", "db.t").lines
    assert f"location           {table.location}" in lines
    assert "partitioned by     months(day)" in lines
    assert " 1  id    long    true      key" in lines
    assert "owner                            me" in lines
    described = run("describe", "db.t", "--output", "json").json
    assert described["identifier"] == ["db", "t"]
    assert described["metadata-location"] == table.loaded.metadata_location
    assert described["metadata"]["table-uuid"] == table.metadata.table_uuid


def test_a_namespace_is_described(run: Run, table: ice.Table) -> None:
    assert run("create", "namespace", "other", "--namespace-property", "owner=me").code == 0
    assert run("describe", "other", "--json").json["owner"] == "me"
    assert run("describe", "--entity", "table", "other").code != 0
    assert run("describe", "nowhere").code == 3


def test_parts_of_a_table(run: Run, table: ice.Table) -> None:
    assert run("schema", "db.t").lines[1] == " 1  id    long    true      key"
    assert [f["name"] for f in run("schema", "db.t", "--json").json["fields"]] == ["id", "day", "v"]
    assert run("spec", "db.t").lines[1].split() == ["1000", "day_month", "months(day)"]
    assert run("spec", "db.t", "--json").json["fields"][0]["transform"] == "month"
    assert run("uuid", "db.t").lines == [table.metadata.table_uuid]
    assert run("location", "db.t", "--json").json == {"location": table.location}


def test_metadata_tables(run: Run, table: ice.Table) -> None:
    first, second = table.snapshots
    assert len(run("files", "db.t").lines) == 4
    assert {f["content"] for f in run("files", "db.t", "--json").json} == {0}
    assert len(run("files", "db.t", "--snapshot-id", str(first.snapshot_id)).lines) == 3
    assert run("files", "db.t", "--history", "--snapshot-id", "1").code == 2
    run("create", "table", "db.whole", "--schema", "id INT")
    assert run("files", "db.whole").text.split() == [
        *("content", "file_path", "record_count", "file_size_in_bytes")
    ]
    snapshots = run("snapshots", "db.t", "--json").json
    assert [s["snapshot_id"] for s in snapshots] == [first.snapshot_id, second.snapshot_id]
    assert snapshots[0]["summary"]["added-records"] == "2"
    assert len(run("history", "db.t").lines) == 3
    table.manage_snapshots().create_tag("closing").commit()
    assert [r["name"] for r in run("refs", "db.t", "--type", "tag", "--json").json] == ["closing"]
    assert len(run("list-refs", "db.t").lines) == 3


def test_rows_are_scanned(run: Run, table: ice.Table) -> None:
    assert run("scan", "db.t", "--filter", "id = 1").lines == [
        "id  day         v",
        " 1  1970-01-01  a",
    ]
    rows = run("scan", "db.t", "--json").json
    assert sorted(rows, key=lambda r: r["id"])[1:] == [
        {"id": 2, "day": "1970-02-10", "v": "b\x1b[2J"},
        {"id": 3, "day": None, "v": None},
    ]
    assert len(run("scan", "db.t", "--limit", "1").lines) == 2
    assert run("scan", "db.t", "--limit", "0").lines == ["id  day  v"]
    assert run("scan", "db.t", "--columns", "v, `id`", "--limit", "0").lines == ["v  id"]
    assert run("scan", "db.t", "--count").lines == ["3"]
    first = str(table.snapshots[0].snapshot_id)
    assert run("scan", "db.t", "--snapshot-id", first, "--count", "--json").json == {"count": 2}
    assert run("scan", "db.t", "--ref", "main", "--count").lines == ["3"]
    assert run("scan", f"{Path.cwd()}/w/db/t", "--count", warehouse=None).lines == ["3"]


def test_values_are_printed_as_sql_has_them(run: Run, table: ice.Table) -> None:
    text = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
    raw = uuid.UUID(text).bytes
    columns = [
        NestedField(field_id=1, name="u", type=types.UUIDType()),
        NestedField(field_id=2, name="raw", type=types.FixedType(16)),
        NestedField(field_id=3, name="d", type=types.DecimalType(12, 10)),
        NestedField(
            field_id=4, name="l", type=types.ListType(element_id=7, element_type=types.UUIDType())
        ),
        NestedField(
            field_id=5,
            name="m",
            type=types.MapType(
                key_id=8,
                key_type=types.UUIDType(),
                value_id=9,
                value_type=types.StructType(
                    (
                        NestedField(field_id=10, name="at", type=types.TimestampNsType()),
                        NestedField(field_id=11, name="u", type=types.UUIDType()),
                    )
                ),
            ),
        ),
    ]
    catalog = ice.load_catalog("default", warehouse="w")
    catalog.create_namespace("db", if_not_exists=True)
    new_table = catalog.create_table(
        "db.values", ice.Schema(fields=tuple(columns)), properties={"format-version": "3"}
    )
    arrow = to_arrow_schema(new_table.schema)
    at = pa.scalar(1, arrow.field("m").type.item_type.field("at").type)
    row = {"u": raw, "raw": raw, "d": Decimal("1E-10"), "l": [raw, None]}
    row["m"] = [(raw, {"at": at, "u": raw}), (b"0" * 16, None)]
    new_table.append(pa.Table.from_pylist([row, {}], arrow))
    printed, nulls = run("scan", "db.values", "--json").json
    assert printed == {
        "u": text,
        "raw": raw.hex(),
        "d": "0.0000000001",
        "l": [text, None],
        "m": {
            text: {"at": "1970-01-01 00:00:00.000000001", "u": text},
            str(uuid.UUID(bytes=b"0" * 16)): None,
        },
    }
    assert nulls == dict.fromkeys(printed)
    assert text in run("scan", "db.values", "--columns", "u").text
    assert text in run("files", "db.values", "--json").text


def test_incremental_scan_options(run: Run, table: ice.Table) -> None:
    first, last = table.snapshots[0], table.snapshots[-1]
    added = str(last.summary["added-records"])
    start = ("--start-snapshot-id", str(first.snapshot_id))
    assert len(table.snapshots) == 2
    assert run("scan", "db.t", *start, "--count").lines == [added]
    assert run("scan", "db.t", *start, "--ref", "main", "--count").lines == [added]
    end = ("--end-snapshot-id", str(first.snapshot_id))
    assert run("scan", "db.t", *start, *end, "--count").lines == ["0"]
    since = ("--start-timestamp", str(first.timestamp_ms))
    assert run("scan", "db.t", *since, "--count").lines == [added]
    every = ("--start-timestamp", "2000-01-01", "--end-timestamp", str(first.timestamp_ms))
    assert run("scan", "db.t", *every, "--count").lines == ["2"]
    changed = run("scan", "db.t.changes", *start, "--columns", "_change_type")
    assert changed.lines == ["_change_type", *["INSERT"] * int(added)]
    assert "needs a start" in run("scan", "db.t", *end).errors
    assert run("scan", "db.t", *start, "--as-of", "2000-01-01").code == 2


def test_metadata_tables_are_scanned(run: Run, table: ice.Table) -> None:
    assert run("scan", "db.t.partitions", "--count").lines == ["3"]
    assert run("scan", "w/db/t#files", "--columns", "record_count", warehouse=None).lines == [
        "record_count",
        *["           1"] * 3,
    ]
    refused = run("scan", "db.t.files", "--filter", "record_count = 1")
    assert (refused.code, refused.errors.count("\n")) == (2, 1)


def test_control_characters_are_escaped_for_terminals(run: Run, table: ice.Table) -> None:
    assert "b\\x1b[2J" in run("scan", "db.t").text
    assert "\x1b" not in run("scan", "db.t", "--json").text


def test_tables_are_created_changed_and_dropped(run: Run) -> None:
    creation = run(
        *("create", "table", "db.t", "--schema", "id BIGINT, ts TIMESTAMP"),
        *("--partitioned-by", "days(ts)", "--partitioned-by", "bucket(4, id)"),
        *("--sorted-by", "ts DESC", "--table-property", "owner=me"),
    )
    assert creation.code == 0
    assert creation.lines[0].startswith("created table db.t at ")
    assert len(run("spec", "db.t").lines) == 3
    metadata_location = run("describe", "db.t", "--json").json["metadata-location"]
    assert run("rename", "db.t", "db.u").code == 0
    assert run("drop", "table", "db.u").lines == ["dropped table db.u"]
    assert run("register", "db.t", metadata_location).code == 0
    assert run("properties", "get", "table", "db.t", "owner").lines == ["me"]
    refused = run("drop", "table", "db.t", "--purge")
    assert (refused.code, "--yes" in refused.errors) == (2, True)
    assert run("drop", "table", "db.t", "--purge", "--yes").code == 0
    assert not Path(metadata_location).exists()
    assert run("drop", "namespace", "db").code == 0
    assert run("list").lines == ["name  kind"]


def test_properties_of_tables_and_namespaces(run: Run, table: ice.Table) -> None:
    for kind, name in (("table", "db.t"), ("namespace", "db")):
        assert run("properties", "set", kind, name, "k", "1=2").code == 0
        assert run("properties", "get", kind, name, "k").lines == ["1=2"]
        assert run("properties", "get", kind, name, "--json").json["k"] == "1=2"
        assert run("properties", "remove", kind, name, "k").code == 0
        missing = run("properties", "get", kind, name, "k")
        assert (missing.code, "has no property 'k'" in missing.errors) == (3, True)


def test_secrets_are_not_printed(run: Run, table: ice.Table) -> None:
    table.update_properties().set({"s3.secret-access-key": "hush-hush"}).commit()
    for command in (
        ("describe", "db.t"),
        ("describe", "db.t", "--json"),
        ("properties", "get", "table", "db.t"),
        ("properties", "get", "table", "db.t", "s3.secret-access-key"),
    ):
        answer = run(*command)
        assert answer.code == 0
        assert "***" in answer.text
        assert "hush-hush" not in answer.text + answer.errors


def test_json_has_no_value_that_json_lacks(run: Run) -> None:
    run("create", "table", "db.f", "--schema", "x DOUBLE, b BINARY, d DECIMAL(5,2)")
    catalog = ice.load_catalog("default", warehouse="w")
    loaded = catalog.load_table("db.f")
    rows = loaded.scan().to_arrow()
    loaded.append(rows.from_pylist([{"x": float("nan"), "b": b"\x01", "d": None}], rows.schema))
    (row,) = json.loads(run("scan", "db.f", "--json").text, parse_constant=pytest.fail)
    assert row == {"x": "nan", "b": "01", "d": None}


def test_a_table_is_maintained(run: Run, table: ice.Table) -> None:
    packed = ("maintain", "rewrite-data-files", "db.t", "--option", "min-input-files=2")
    assert run(*packed, "--plan", "--json").json["rewritten_data_files_count"] == 0
    assert run(*packed, "--option", "rewrite-all=true", "--plan").lines[0].split() == [
        "rewritten_data_files_count",
        "3",
    ]
    assert len(table.refresh().snapshots) == 2
    assert run(*packed, "--option", "rewrite-all=true", "--where", "id = 1").code == 0
    assert len(table.refresh().snapshots) == 3
    assert run("maintain", "rewrite-manifests", "db.t", "--json").json == {
        "rewritten_manifests_count": 3,
        "added_manifests_count": 1,
    }
    for name in ("rewrite-position-delete-files", "rewrite-equality-deletes"):
        assert set(run("maintain", name, "db.t", "--json").json.values()) == {0}
    counted = ("maintain", "compute-table-stats", "db.t", "--column", "id", "--json")
    assert list(run(*counted, "--plan").json["distinct_counts"]) == ["id"]
    assert run(*counted).json["statistics_file"].endswith(".stats")
    partitions = run("maintain", "compute-partition-stats", "db.t", "--json").json
    assert partitions["partition_statistics_file"].endswith(".parquet")
    expired = ("maintain", "expire-snapshots", "db.t", "--older-than", "2099-01-01")
    assert run(*expired, "--plan", "--json").json["expired_snapshots_count"] == 3
    assert len(table.refresh().snapshots) == 4
    remaining = run(*expired, "--retain-last", "2", "--json").json
    assert (remaining["expired_snapshots_count"], remaining["deleted_data_files_count"]) == (2, 1)
    assert len(table.refresh().snapshots) == 2
    assert run("maintain", "remove-orphan-files", "db.t", "--json").json == []
    moved = run("maintain", "rewrite-table-path", "db.t", table.location, "/copy", "--json").json
    assert table.loaded.metadata_location.endswith(moved["latest_version"])
    assert f",/copy/metadata/{moved['latest_version']}" in Path(
        moved["file_list_location"]
    ).read_text(encoding="utf-8")
    refused = run("maintain", "rewrite-data-files", "db.t", "--option", "no=1")
    assert (refused.code, refused.errors.count("\n")) == (2, 1)
