"""Schemas, specs, branches and tags that we changed: Java and PyIceberg read old and new rows."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from iceberg_pyspark import Table
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.removals import RemoveFiles
from iceberg_pyspark.changes.snapshot_changes import DeleteFiles, RowDelta
from iceberg_pyspark.spec.types import (
    IntegerType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.pending_changes import UpdateSpec
from iceberg_pyspark.table.commits.row_deletes import write_row_deletes
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from tests.support.java_tables import JavaTables, filter_json, show_rows
from tests.support.oracle import Oracle
from tests.support.our_tables import (
    CATALOGS,
    VERSIONS,
    assert_all_read,
    new_table,
    pyiceberg_table,
    write_frame,
)
from tests.support.parameters import cases
from tests.support.readings import our_table


def assert_readers_agree(java: JavaTables, name: str) -> list[str]:
    """Check that Java, Spark with Java, PyIceberg and we read equal rows; return the rows."""
    ours = our_table(java.oracle, name).scan().to_arrow()
    assert_all_read(java, name, ours, through_spark=True, with_pyiceberg=False)
    # PyIceberg 0.12 reads a null list or map of structs as empty, whoever wrote it.
    columns = [f.name for f in ours.schema if not pa.types.is_nested(f.type) or f.name == "s"]
    with pyiceberg_table(java.oracle, name) as theirs:
        result = theirs.scan(selected_fields=tuple(columns)).to_arrow()
    assert show_rows(result.select(columns)) == show_rows(ours.select(columns))
    return show_rows(ours)


@cases(
    ("version", "catalog"),
    fast=[(3, "java_hadoop")],
    nightly=[c for c in product(VERSIONS, CATALOGS) if c != (3, "java_hadoop")],
)
def test_schema_evolution(oracle: Oracle, java: JavaTables, catalog: str, version: int) -> None:
    name = f"{catalog}.we_write_evolution.schema_{version}"
    table = new_table(
        oracle,
        name,
        "id INT NOT NULL, a STRING, f FLOAT, n DECIMAL(9, 2), s STRUCT<x: INT, y: STRING>, "
        "l ARRAY<STRUCT<u: INT>>, m MAP<STRING, STRUCT<v: INT>>",
        properties={"format-version": str(version)},
    )
    table.append(
        pa.table(
            {
                "id": pa.array([1, 2], pa.int32()),
                "a": ["old", None],
                "f": pa.array([1.5, 0.1], pa.float32()),
                "n": pa.array([12, None], pa.decimal128(9, 2)),
                "s": pa.array([{"x": 1, "y": "y"}, None], table_type(table, "s")),
                "l": pa.array([[{"u": 1}, None], []], table_type(table, "l")),
                "m": pa.array([[("k", {"v": 1})], None], table_type(table, "m")),
            }
        )
    )
    with table.update_schema() as schema:
        schema.update_type("id", "long").update_type("f", "double").update_type(
            "n", "decimal(18,2)"
        )
        schema.rename_column("a", "b").rename_column("s.x", "z")
        schema.add_column("s.new", "date").add_column("l.element.w", "string")
        schema.add_column("m.value.t", "timestamptz").add_column("a", "int")
        schema.add_column(
            "deep",
            ListType(
                element_id=1,
                element_type=StructType(
                    (
                        NestedField(
                            field_id=2,
                            name="q",
                            type=MapType(
                                key_id=3,
                                key_type=StringType(),
                                value_id=4,
                                value_type=IntegerType(),
                            ),
                        ),
                    )
                ),
            ),
        )
        schema.move_first("b").move_after("n", "id").make_optional("id")
    assert_readers_agree(java, name)
    table.append(
        pa.table(
            {
                "id": pa.array([2**40, None], pa.int64()),
                "a": pa.array([5, None], pa.int32()),
                "b": ["new", "x"],
                "n": pa.array([10**14, None], pa.decimal128(18, 2)),
                "s": pa.array(
                    [{"z": 1, "y": "y", "new": dt.date(2026, 1, 1)}, {"z": None}],
                    table_type(table, "s"),
                ),
                "l": pa.array([[{"u": 2, "w": "w"}], None], table_type(table, "l")),
                "deep": pa.array([[{"q": [("k", 1)]}, None], None], table_type(table, "deep")),
            }
        )
    )
    before = assert_readers_agree(java, name)
    assert len(before) == 4
    with table.update_schema() as schema:
        schema.drop_column("b").drop_column("s.y").drop_column("l.element.u")
    # A new column with a dropped column's name does not show the dropped values.
    with table.update_schema() as schema:
        schema.add_column("b", "string").add_column("s.y", "string")
    rows = assert_readers_agree(java, name)
    assert not any("old" in row or "new" in row for row in rows)
    column_names = [f.name for f in our_table(oracle, name).schema.fields]
    assert oracle.spark.table(name).columns == column_names
    oracle.sql(f"INSERT INTO {name} (id, b) VALUES (7, 'java')")
    assert any("'java'" in row for row in assert_readers_agree(java, name))


def table_type(table: Table, column: str) -> pa.DataType:
    """Return a column's Arrow type, taken from an empty scan."""
    return table.scan(filter="false").to_arrow().schema.field(column).type


@cases("version", fast=[3], nightly=[1, 2])
def test_partition_evolution(oracle: Oracle, java: JavaTables, version: int) -> None:
    name = f"java_sql.we_write_evolution.spec_{version}"
    table = new_table(
        oracle,
        name,
        "id BIGINT, ts TIMESTAMP, p STRING",
        properties={"format-version": str(version)},
    )

    def append(start: int) -> None:
        days = [dt.datetime(2026, 1, 1 + i) for i in range(3)]
        table.append(
            pa.table(
                {
                    "id": pa.array(range(start, start + 3), pa.int64()),
                    "ts": pa.array([*days[:2], None], pa.timestamp("us", tz="UTC")),
                    "p": ["abc", None, "é"],
                }
            )
        )

    append(0)
    changes: list[Callable[[UpdateSpec], object]] = [
        lambda spec: spec.add_field("ts", "day"),
        lambda spec: spec.add_field("p", "truncate[2]").add_field("id", "bucket[4]"),
        lambda spec: spec.remove_field("ts_day").rename_field("p_trunc_2", "cut"),
        lambda spec: spec.add_field("ts", "month").remove_field("id_bucket_4"),
        # A partition field that existed before gets its old id again.
        lambda spec: spec.remove_field("ts_month").add_field("ts", "day", name="ts_day_again"),
    ]
    for number, change in enumerate(changes):
        with table.update_spec() as spec:
            change(spec)
        append((number + 1) * 3)
        rows = assert_readers_agree(java, name)
        assert len(rows) == (number + 2) * 3
    for text, expected in [
        ("ts = '2026-01-01T00:00:00+00:00'", 6),
        ("ts is null", 6),
        ("p = 'abc'", 6),
        ("p is null and id < 6", 2),
        ("id = 7", 1),
    ]:
        assert len(java.rows(name, filter_json(text, table.schema))) == expected, text
        with pyiceberg_table(oracle, name) as theirs:
            assert theirs.scan(row_filter=text).to_arrow().num_rows == expected, text
    specs = sorted(set(oracle.sql(f"SELECT spec_id FROM {name}.files").collect()))
    assert [row.spec_id for row in specs] == [0, 1, 2, 3, 4, 5]
    # Java writes with our newest spec and deletes with all specs.
    oracle.sql(f"INSERT INTO {name} VALUES (100, TIMESTAMP '2026-01-01 00:00:00', 'abc')")
    oracle.sql(f"DELETE FROM {name} WHERE ts IS NULL")
    assert len(assert_readers_agree(java, name)) == 13


@pytest.mark.nightly
@pytest.mark.parametrize("catalog", CATALOGS)
def test_branches_and_tags(oracle: Oracle, java: JavaTables, catalog: str) -> None:
    name = f"{catalog}.we_write_evolution.refs"
    table = new_table(oracle, name, "id BIGINT, v STRING")

    def rows(*ids: int) -> pa.Table:
        return pa.table({"id": pa.array(ids, pa.int64()), "v": [str(i) for i in ids]})

    def java_ids(ref: str) -> list[int]:
        actual = sorted(oracle.sql(f"SELECT id FROM {name} VERSION AS OF '{ref}'").collect())
        ids = [row.id for row in actual]
        assert [int(text[1:].split("|")[0]) for text in java.rows(name, ref=ref)] == ids
        return ids

    table.append(rows(1))
    first = table.current_snapshot
    assert first is not None
    table.append(rows(2))
    with table.manage_snapshots() as refs:
        refs.create_tag("start", first.snapshot_id, max_ref_age_ms=86_400_000)
        refs.create_branch("audit", min_snapshots_to_keep=2, max_snapshot_age_ms=1_000)
    table.append(rows(3), branch="audit")
    table.append(rows(4))
    assert (java_ids("main"), java_ids("audit"), java_ids("start")) == ([1, 2, 4], [1, 2, 3], [1])
    shown = oracle.sql(
        "SELECT name, type, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms "
        f"FROM {name}.refs"
    ).collect()
    assert sorted(tuple(row) for row in shown) == [
        ("audit", "BRANCH", None, 2, 1_000),
        ("main", "BRANCH", None, None, None),
        ("start", "TAG", 86_400_000, None, None),
    ]
    # Both writers continue on each other's branch.
    oracle.sql(f"INSERT INTO {name}.branch_audit VALUES (5, '5')")
    oracle.sql(f"ALTER TABLE {name} CREATE BRANCH javas")
    table.refresh().overwrite(rows(6), "id = 2", branch="javas")
    table.delete("id = 1", branch="audit")
    assert (java_ids("main"), java_ids("audit"), java_ids("javas")) == (
        *([1, 2, 4], [2, 3, 5], [1, 4, 6]),
    )
    with pyiceberg_table(oracle, name) as theirs:
        snapshot = theirs.snapshot_by_name("audit")
        assert snapshot is not None
        actual = theirs.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        assert sorted(actual["id"].to_pylist()) == [2, 3, 5]
    branch = SnapshotSelector(branch="audit")
    assert sorted(table.scan(selector=branch).to_arrow()["id"].to_pylist()) == [2, 3, 5]
    oracle.sql(f"CALL {catalog}.system.fast_forward('{name.split('.', 1)[1]}', 'javas', 'javas')")
    with table.refresh().manage_snapshots() as refs:
        refs.rollback_to(first.snapshot_id).remove_branch("audit").rename_branch("javas", "ours")
    assert (java_ids("main"), java_ids("ours")) == ([1], [1, 4, 6])
    history = oracle.sql(
        f"SELECT made_current_at, is_current_ancestor FROM {name}.history"
    ).collect()
    assert [row.is_current_ancestor for row in sorted(history)] == [True, False, False, True]


@pytest.mark.nightly
def test_a_branch_through_the_data_source(oracle: Oracle, java: JavaTables) -> None:
    name = "java_sql.we_write_evolution.source_branch"
    table = new_table(oracle, name, "id BIGINT")
    table.append(pa.table({"id": [1]}))
    with table.manage_snapshots() as refs:
        refs.create_branch("b")
    write_frame(
        oracle, oracle.spark.range(5, 7), name, branch="b", **{"snapshot-property.who": "me"}
    )
    assert java.rows(name, ref="b") == ["{1}", "{5}", "{6}"]
    assert java.rows(name) == ["{1}"]
    summaries = oracle.sql(f"SELECT summary['who'] FROM {name}.snapshots ORDER BY committed_at")
    assert [row[0] for row in summaries.collect()] == [None, "me"]


@pytest.mark.nightly
@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_of_a_column_that_no_schema_has_any_more(
    oracle: Oracle, java: JavaTables, version: int
) -> None:
    """After Java expires schemas, only manifests tell the type of a partition value."""
    name = f"java_hadoop.we_write_evolution.gone_{version}"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, day DATE) USING iceberg PARTITIONED BY (day) "
        f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    oracle.sql(
        f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ CAST(id AS INT), "
        "DATE '2026-01-01' + CAST(id % 2 AS INT) FROM range(0, 6, 1, 1)"
    )
    oracle.sql(f"ALTER TABLE {name} DROP PARTITION FIELD day")
    oracle.sql(f"ALTER TABLE {name} DROP COLUMN day")
    metadata = Path(our_table(oracle, name).loaded.metadata_location)
    text = json.loads(metadata.read_text(encoding="utf-8"))
    text["schemas"] = [s for s in text["schemas"] if s["schema-id"] == text["current-schema-id"]]
    text.pop("schema", None)
    for snapshot in text["snapshots"]:
        snapshot.pop("schema-id", None)
    metadata.write_text(json.dumps(text), encoding="utf-8")
    metadata.with_name(f".{metadata.name}.crc").unlink()

    table = our_table(oracle, name)
    table.append(pa.table({"id": pa.array([9], pa.int32())}))
    tasks = {task.file_path: task for task in our_table(oracle, name).scan().plan_files()}
    deletable = [path for path in tasks if "day=" in path]
    assert len(deletable) == 2
    if version > 1:
        rows = {deletable[0]: BitMap64([0])}
        deletes = write_row_deletes(name, table.metadata, table.io, rows, tasks, write_id="w")
        action = RowDelta(
            delete_files=deletes.delete_files,
            checks=ConflictChecks(base_snapshot_id=table.metadata.current_snapshot_id),
        )
        commit_action(table.catalog, table.loaded, table.io, action)
    removed = RemoveFiles(data_paths=frozenset(deletable[1:]))
    commit_action(table.catalog, table.loaded, table.io, DeleteFiles(removal=removed))
    remaining_rows = our_table(oracle, name).scan().to_arrow()
    assert remaining_rows.num_rows == (3 if version > 1 else 4)
    assert java.rows(name) == show_rows(remaining_rows)
    oracle.sql(f"INSERT INTO {name} VALUES (10)")
    oracle.sql(f"DELETE FROM {name} WHERE id < 10")
    assert our_table(oracle, name).scan().to_arrow().to_pylist() == [{"id": 10}]
