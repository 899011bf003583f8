"""Metadata tables of tables that Java wrote have the schema and the rows of Java's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from iceberg_pyspark.spark.data_source import metadata_tables
from iceberg_pyspark.table.metadata_tables.lookup import METADATA_TABLES
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.parameters import cases
from tests.support.readings import (
    INTERPRETED_QUERY,
    our_frame,
    our_table,
    snapshot_ids,
    table_path,
)
from tests.support.rows import plain_value
from tests.support.spark_settings import configured

KINDS_BY_TABLE = {
    # Java cannot read the changes of tables with delete files.
    "v3_vectors": tuple(n for n in METADATA_TABLES if n != "changes"),
    "evolved": tuple(n for n in METADATA_TABLES if n != "changes"),
    "unpartitioned": (
        *("files", "entries", "partitions", "position_deletes", "history"),
        "metadata_log_entries",
    ),
    "empty": ("files", "partitions", "position_deletes"),
}
EVERY_TYPE = (
    "id bigint, b boolean, i int, f float, d double, n decimal(20, 3), s string, bin binary, "
    "da date, ts timestamp, ntz timestamp_ntz, st struct<x: int, `y.z`: string>, l array<int>, "
    "m map<string, double>"
)


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as installed:
        make_tables(oracle)
        yield installed


def make_table(oracle: Oracle, table: str) -> None:
    """Create the tables `unpartitioned` and `empty`, which few tests need."""
    t = f"java_hadoop.shown.{table}"
    if oracle.spark.catalog.tableExists(t):
        return
    if table == "empty":
        oracle.sql(f"create table {t} (id bigint) using iceberg")
        return
    oracle.sql(f"create table {t} using iceberg as select id from range(5)")
    oracle.sql(f"insert into {t} values (7)")
    oracle.sql(f"call java_hadoop.system.rollback_to_snapshot('{t}', {first_snapshot(oracle, t)})")
    oracle.sql(f"insert into {t} values (8)")


def make_tables(oracle: Oracle) -> None:
    t = "java_hadoop.shown.v3_vectors"
    oracle.sql(
        f"create table {t} ({EVERY_TYPE}) using iceberg "
        "partitioned by (days(ts), truncate(2, s), bucket(4, id)) tblproperties "
        "('format-version'='3', 'write.delete.mode'='merge-on-read')"
    )
    oracle.sql(
        f"insert into {t} select /*+ coalesce(1) */ id, id % 2 = 0, cast(id as int), "
        "cast(id as float) / 2, if(id = 3, double('nan'), id / 3), id * 1.5, "
        "concat('name', id), cast(concat('bytes', id) as binary), date '2024-02-29', "
        "timestamp '2024-02-29 12:00:00', timestamp_ntz '1969-12-31 23:59:59.5', "
        "named_struct('x', cast(id as int), 'y.z', 'in'), array(1, 2), map('k', id / 2) "
        "from range(8)"
    )
    oracle.sql(f"insert into {t} (id, s) values (100, null), (101, 'zz')")
    oracle.sql(f"delete from {t} where id in (2, 5)")
    t = "java_hadoop.shown.evolved"
    oracle.sql(
        f"create table {t} (id int, p string, q int) using iceberg partitioned by (p) "
        "tblproperties ('format-version'='2', 'write.delete.mode'='merge-on-read')"
    )
    oracle.sql(
        f"insert into {t} select /*+ coalesce(1) */ * from values "
        "(1, 'a', 1), (11, 'a', 2), (2, 'b', null)"
    )
    oracle.sql(f"alter table {t} add partition field bucket(2, id)")
    oracle.sql(f"insert into {t} values (3, 'a', 3), (4, null, 4)")
    oracle.sql(f"alter table {t} drop partition field p")
    oracle.sql(f"alter table {t} alter column q type bigint")
    oracle.sql(f"alter table {t} rename column p to renamed")
    oracle.sql(
        f"insert into {t} select /*+ coalesce(1) */ * from values "
        "(5, 'c', 5000000000), (7, 'c', 1), (9, 'd', 2)"
    )
    oracle.sql(f"delete from {t} where id = 1")
    oracle.sql(f"delete from {t} where id = 5")
    oracle.sql(f"alter table {t} create tag first as of version {first_snapshot(oracle, t)}")
    oracle.sql(f"alter table {t} create branch side retain 5 days")


def first_snapshot(oracle: Oracle, t: str) -> int:
    return snapshot_ids(oracle, t)[0]


def shown(frame: DataFrame) -> list[Any]:
    return sorted((plain_value(row) for row in frame.collect()), key=repr)


def shown_by_java(lake: Oracle, frame: DataFrame) -> list[Any]:
    with configured(lake.spark, INTERPRETED_QUERY):
        return shown(frame)


def described(oracle: Oracle, name: str) -> list[Any]:
    rows = oracle.sql(f"describe {name}").collect()
    return [tuple(row) for row in rows]


def plain_schema(frame: DataFrame) -> list[Any]:
    # Java marks columns with reserved ids in its own way, so compare only the comment.
    return [(f.name, f.dataType, f.nullable, f.metadata.get("comment")) for f in frame.schema]


@cases("table", fast=["v3_vectors"], nightly=["evolved", "unpartitioned", "empty"])
def test_in_sql_every_metadata_table_is_described_and_filled_as_in_java(
    lake: Oracle, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_table(lake, table)
    for kind in KINDS_BY_TABLE[table]:
        name = f"shown.{table}.{kind}"
        java = lake.spark.table(f"java_hadoop.{name}")
        ours = lake.spark.table(f"lake.{name}")
        assert described(lake, f"lake.{name}") == described(lake, f"java_hadoop.{name}"), name
        assert plain_schema(ours) == plain_schema(java), name
        expected = shown_by_java(lake, java)
        assert shown(ours) == expected, name
        with monkeypatch.context() as patch:
            # no rows are few enough for the driver
            patch.setattr(metadata_tables, "_MAX_BYTES_HERE", -1)
            assert shown(lake.spark.table(f"lake.{name}")) == expected, name


@pytest.mark.nightly
@pytest.mark.parametrize(
    "kind", ["files", "entries", "manifests", "partitions", "position_deletes", "snapshots"]
)
def test_the_data_source_shows_the_same(lake: Oracle, kind: str) -> None:
    for table in ("v3_vectors", "evolved"):
        name = f"java_hadoop.shown.{table}.{kind}"
        java = lake.spark.table(name)
        ours = our_frame(lake, name)
        assert plain_schema(ours) == plain_schema(java)
        assert shown(ours) == shown_by_java(lake, java)


@pytest.mark.nightly
def test_columns_conditions_and_counts_are_those_of_java(lake: Oracle) -> None:
    for query in (
        "select count(*) from {t}.v3_vectors.files",
        "select count(*), max(committed_at) from {t}.v3_vectors.snapshots",
        "select summary['total-records'], operation from {t}.v3_vectors.snapshots",
        "select partition.s_trunc, readable_metrics.`st.x`.upper_bound, readable_metrics.s.* "
        "from {t}.v3_vectors.files where readable_metrics.id.lower_bound < 50",
        "select data_file.file_path, status from {t}.evolved.all_entries where data_file.content=0",
        "select pos, partition from {t}.evolved.position_deletes where pos < 9",
    ):
        ours, java = (
            shown(lake.sql(query.format(t=f"{c}.shown"))) for c in ("lake", "java_hadoop")
        )
        assert ours == java, query
        assert java, query


@pytest.mark.nightly
def test_a_field_of_structs_in_a_list_can_be_asked_for(lake: Oracle) -> None:
    # Java's reader refuses this column.
    query = "select path, {columns} from {t}.shown.evolved.manifests"
    ours = lake.sql(query.format(t="lake", columns="partition_summaries.upper_bound")).collect()
    java = lake.sql(query.format(t="java_hadoop", columns="partition_summaries")).collect()
    assert {row[0]: row[1] for row in ours} == {
        row[0]: [summary.upper_bound for summary in row[1]] for row in java
    }


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["files", "manifests", "partitions", "position_deletes"])
def test_time_travel_shows_that_snapshot(lake: Oracle, kind: str) -> None:
    t = f"java_hadoop.shown.evolved.{kind}"
    first = first_snapshot(lake, "java_hadoop.shown.evolved")
    expected = shown(lake.sql(f"select * from {t} version as of {first}"))
    assert shown(our_frame(lake, t, snapshot_id=str(first))) == expected
    assert shown(lake.sql(f"select * from lake.shown.evolved.{kind} version as of 'first'")) == (
        expected
    )
    assert expected != shown_by_java(lake, lake.spark.table(t))


@pytest.mark.nightly
def test_a_path_names_metadata_tables_too(lake: Oracle) -> None:
    path = table_path(lake, "java_hadoop.shown.evolved")
    ours = lake.spark.read.format("iceberg-py").load(f"{path}#refs")
    assert shown(ours) == shown_by_java(lake, lake.spark.table("java_hadoop.shown.evolved.refs"))


@pytest.mark.nightly
def test_the_columns_option_is_applied_and_filter_refused(lake: Oracle) -> None:
    t = "java_hadoop.shown.evolved.files"
    ours = our_frame(lake, t, columns="record_count,FILE_PATH")
    assert shown(ours) == shown_by_java(
        lake, lake.spark.table(t).select("record_count", "file_path")
    )
    with pytest.raises(Exception, match=r"use \.filter\(\.\.\.\) on the DataFrame"):
        our_frame(lake, t, filter="record_count > 1").collect()


@pytest.mark.nightly
def test_tables_of_all_snapshots_take_no_snapshot(lake: Oracle) -> None:
    with pytest.raises(Exception, match="takes no snapshot, branch, tag or time"):
        lake.sql("select * from lake.shown.evolved.snapshots version as of 'first'").collect()
    with pytest.raises(Exception, match="takes no snapshot, branch, tag or time"):
        our_frame(lake, "java_hadoop.shown.evolved.all_files", tag="first").collect()


@pytest.mark.nightly
def test_a_geometry_column_hides_nothing(oracle: Oracle) -> None:
    """Java shows bounds as geometry, we show bytes. Spark may be unable to create such a column, so
    the test adds the column to the metadata file.
    """
    name = "java_hadoop.metadata_tables.places"
    oracle.sql(
        f"CREATE TABLE {name} (id INT) USING iceberg TBLPROPERTIES "
        "('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    oracle.sql(f"INSERT INTO {name} SELECT CAST(id AS INT) FROM range(1, 3, 1, 1)")
    oracle.sql(f"DELETE FROM {name} WHERE id = 1")
    metadata = Path(our_table(oracle, name).loaded.metadata_location)
    text = json.loads(metadata.read_text(encoding="utf-8"))
    place = {"id": 2, "name": "place", "required": False, "type": "geometry"}
    text["schemas"][0]["fields"].append(place)
    metadata.write_text(json.dumps({**text, "last-column-id": 2}), encoding="utf-8")
    metadata.with_name(f".{metadata.name}.crc").unlink()
    for table in ("files", "data_files", "delete_files", "entries", "all_files", "all_entries"):
        theirs = oracle.spark.table(f"{name}.{table}").select("readable_metrics.*").collect()
        ours = our_table(oracle, name).metadata_table(table).to_arrow()["readable_metrics"]
        assert sorted(str(r.asDict(recursive=True)) for r in theirs) == sorted(
            str(r) for r in ours.to_pylist()
        ), table
    [deleted] = our_table(oracle, name).metadata_table("position_deletes").to_arrow().to_pylist()
    assert deleted["pos"] == 0
    assert our_table(oracle, name).scan(columns=["id"]).to_arrow().to_pylist() == [{"id": 2}]
