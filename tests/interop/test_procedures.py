"""CALL on our catalogs and on Java's gives the same result columns, rows and effects."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.table.commits.commit_files import commit_action
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import our_table


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as native_oracle:
        oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.called")
        yield native_oracle


def definition(oracle: Oracle, catalog: str, name: str) -> list[tuple[str, str, bool]]:
    """Return a procedure's parameters as Spark sees them: name, type, whether required."""
    actual = oracle.java_session.sessionState().catalogManager().catalog(catalog)
    gateway: Any = oracle.spark._sc._gateway
    names = gateway.new_array(oracle.jvm.java.lang.String, 1)
    names[0] = "system"
    identifier = oracle.jvm.org.apache.spark.sql.connector.catalog.Identifier.of(names, name)
    unbound = actual.loadProcedure(identifier)
    bound = unbound.bind(oracle.jvm.org.apache.spark.sql.types.StructType())
    return [
        (p.name(), p.dataType().catalogString(), p.defaultValue() is None)
        for p in bound.parameters()
    ]


OURS_ALONE = {
    "rewrite_equality_deletes": [("table", "string", True), ("dry_run", "boolean", False)]
}
WITH_DRY_RUN = {
    "add_files",
    "compute_partition_stats",
    "compute_table_stats",
    "expire_snapshots",
    "migrate",
    "register_table",
    "rewrite_data_files",
    "rewrite_manifests",
    "rewrite_position_delete_files",
    "rewrite_table_path",
    "snapshot",
}


def test_every_procedure_of_java_is_there_with_its_parameters(lake: Oracle) -> None:
    theirs, ours = (
        {
            row.procedure_name: definition(lake, catalog, row.procedure_name)
            for row in lake.sql(f"SHOW PROCEDURES IN {catalog}.system").collect()
        }
        for catalog in ("java_hadoop", "lake")
    )
    assert len(theirs) == 20
    # Our additional parameters come last, so that positional arguments stay the same.
    more = {name: [("dry_run", "boolean", False)] for name in WITH_DRY_RUN}
    assert ours == {n: [*p, *more.get(n, [])] for n, p in theirs.items()} | OURS_ALONE


def make(oracle: Oracle, name: str) -> None:
    """Create a table with Java, and overwrite its row three times, both writers in turns."""
    table = f"java_hadoop.called.{name}"
    oracle.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg")
    for number in range(4):
        if number % 3:
            our_table(oracle, table).overwrite(pa.table({"id": [number]}))
        else:
            oracle.sql(f"INSERT OVERWRITE {table} VALUES ({number})")


def test_expiry(lake: Oracle) -> None:
    for name in ("theirs", "ours"):
        make(lake, name)
    now = int(time.time() * 1000)
    results = [
        lake.sql(
            f"CALL {catalog}.system.expire_snapshots(table => 'called.{name}', retain_last => 2, "
            f"older_than => timestamp_millis({now}), max_concurrent_deletes => 2)"
        )
        for catalog, name in (("java_hadoop", "theirs"), ("lake", "ours"))
    ]
    assert results[0].schema == results[1].schema
    assert results[0].collect() == results[1].collect()
    snapshot_counts = [
        len(lake.sql(f"SELECT snapshot_id FROM java_hadoop.called.{name}.snapshots").collect())
        for name in ("theirs", "ours")
    ]
    assert snapshot_counts == [2, 2]


def test_orphan_files(lake: Oracle) -> None:
    make(lake, "strays")
    folder = lake.warehouse / "called" / "strays" / "data"
    past = time.time() - 4 * 86_400
    for name in ("a", "b", ".hidden", "_hidden"):
        (folder / name).touch()
        os.utime(folder / name, (past, past))
    results = [
        lake.sql(
            f"CALL {catalog}.system.remove_orphan_files('called.strays', dry_run => {dry_run})"
        )
        for catalog, dry_run in (("java_hadoop", "true"), ("lake", "false"))
    ]
    assert results[0].schema == results[1].schema
    theirs, ours = ({row[0].removeprefix("file:") for row in r.collect()} for r in results)
    assert theirs == ours == {str(folder / "a"), str(folder / "b")}
    call = "CALL java_hadoop.system.remove_orphan_files('called.strays')"
    assert lake.sql(call).collect() == []


SAME_STORE = "equal_schemes => map('s3', 'file'), equal_authorities => map('bucket', '')"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("arguments", "orphans"),
    [
        ("equal_schemes => map('s3', 'file')", None),
        ("prefix_mismatch_mode => 'DELETE'", 1),
        (SAME_STORE, 0),
        ("prefix_mismatch_mode => 'ERROR'", None),
        ("prefix_mismatch_mode => 'Ignore'", 0),
    ],
)
def test_a_file_with_the_path_of_a_needed_file_of_another_store(
    lake: Oracle, arguments: str, orphans: int | None
) -> None:
    if not (lake.warehouse / "called" / "mismatch").exists():
        make(lake, "mismatch")
        table = our_table(lake, "java_hadoop.called.mismatch")
        file = lake.warehouse / "called" / "mismatch" / "data" / "both.parquet"
        file.touch()
        os.utime(file, (time.time() - 4 * 86_400,) * 2)
        needed = DataFile(file_path=f"s3://bucket{file}", record_count=1, file_size_in_bytes=8)
        commit_action(table.catalog, table.loaded, table.io, AppendFiles(data_files=(needed,)))
        lake.sql("REFRESH TABLE java_hadoop.called.mismatch")
    for catalog in ("java_hadoop", "lake"):
        call = (
            f"CALL {catalog}.system.remove_orphan_files(table => 'called.mismatch', "
            f"dry_run => true, {arguments})"
        )
        if orphans is None:
            with pytest.raises((PySparkException, Py4JJavaError), match=r"s3|bucket"):
                lake.sql(call)
        else:
            names = [row[0].rpartition("/")[2] for row in lake.sql(call).collect()]
            assert names == ["both.parquet"] * orphans, catalog


@pytest.mark.nightly
def test_moves_of_main(lake: Oracle) -> None:
    """The same calls on two tables with the same history return equal columns and matching ids."""
    actual = []
    for catalog, name in (("java_hadoop", "moved_by_java"), ("lake", "moved")):
        make(lake, name)
        table = f"java_hadoop.called.{name}"
        lake.sql(f"ALTER TABLE {table} CREATE BRANCH next")
        lake.sql(f"INSERT INTO {table}.branch_next VALUES (9)")
        lake.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
        lake.spark.conf.set("spark.wap.id", "audit-1")
        lake.sql(f"INSERT INTO {table} VALUES (7)")
        lake.spark.conf.unset("spark.wap.id")
        snapshots = lake.sql(
            f"SELECT snapshot_id, unix_millis(committed_at) FROM {table}.snapshots"
        ).collect()
        ids, times = ([row[i] for row in snapshots] for i in (0, 1))
        steps = []
        for text in (
            f"rollback_to_timestamp('called.{name}', timestamp_millis({times[2] + 1}))",
            # A snapshot of exactly this time is not before it.
            f"rollback_to_timestamp('called.{name}', timestamp => timestamp_millis({times[2]}))",
            f"set_current_snapshot('called.{name}', {ids[3]})",
            f"rollback_to_snapshot('called.{name}', {ids[1]})",
            f"set_current_snapshot('called.{name}', {ids[2]})",
            f"set_current_snapshot(table => 'called.{name}', ref => 'next')",
            f"rollback_to_snapshot(snapshot_id => {ids[3]}, table => 'called.{name}')",
            f"fast_forward('called.{name}', 'main', 'next')",
            f"fast_forward('called.{name}', 'made', 'next')",
            f"publish_changes('called.{name}', 'audit-1')",
            f"set_current_snapshot('called.{name}', {ids[1]})",
            f"cherrypick_snapshot('called.{name}', {ids[2]})",
            f"ancestors_of('called.{name}')",
            f"ancestors_of('called.{name}', {ids[1]})",
        ):
            result = lake.sql(f"CALL {catalog}.system.{text}")
            lake.sql(f"REFRESH TABLE {table}")
            rows = [[_place(ids, value) for value in row] for row in result.collect()]
            steps.append((result.schema, rows, sorted(lake.sql(f"TABLE {table}").collect())))
        actual.append(steps)
    assert actual[0] == actual[1]
    assert [rows for _, rows, _ in actual[0][:3]] == [[[3, 2]], [[2, 1]], [[1, 3]]]


def _place(ids: list[int], value: object) -> object:
    """Return an id's index in the history, "new" for another integer, or else the value itself."""
    if not isinstance(value, int):
        return value
    return ids.index(value) if value in ids else "new"


@pytest.mark.nightly
def test_a_registered_table(lake: Oracle, tmp_path: Path) -> None:
    make(lake, "adopted")
    lake.spark.conf.set("spark.sql.catalog.registry", "iceberg_pyspark")
    lake.spark.conf.set("spark.sql.catalog.registry.type", "sql")
    lake.spark.conf.set("spark.sql.catalog.registry.uri", f"sqlite:///{tmp_path}/catalog.db")
    lake.spark.conf.set("spark.sql.catalog.registry.warehouse", str(lake.warehouse))
    for catalog in ("java_sql", "registry"):
        lake.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.called")
    file = our_table(lake, "java_hadoop.called.adopted").loaded.metadata_location
    results = [
        lake.sql(f"CALL {catalog}.system.register_table('called.adopted_by_{name}', '{file}')")
        for catalog, name in (("java_sql", "java"), ("registry", "us"))
    ]
    assert results[0].schema == results[1].schema
    assert results[0].collect() == results[1].collect()


def test_added_files(lake: Oracle, tmp_path: Path) -> None:
    days = lake.sql(
        "SELECT id, 'x' || id AS name, CAST(id / 4 AS DOUBLE) AS ratio, "
        "TIMESTAMP'2026-01-01' AS at, DATE'2026-01-01' + CAST(id % 3 AS INT) AS day FROM range(9)"
    )
    days.repartition("day").write.partitionBy("day").parquet(f"{tmp_path}/source")
    actual = []
    for catalog, name in (("java_hadoop", "added_by_java"), ("lake", "added")):
        lake.sql(
            f"CREATE TABLE java_hadoop.called.{name} (name STRING, id BIGINT, ratio DOUBLE, "
            "at TIMESTAMP, day DATE) USING iceberg PARTITIONED BY (day)"
        )
        steps = []
        for more in (", partition_filter => map('day', '2026-01-02')", ""):
            if not more:
                lake.sql(f"DELETE FROM java_hadoop.called.{name}")
            result = lake.sql(
                f"CALL {catalog}.system.add_files(table => 'called.{name}', "
                f"source_table => '`parquet`.`{tmp_path}/source`'{more})"
            )
            lake.sql(f"REFRESH TABLE java_hadoop.called.{name}")
            lake.sql(f"REFRESH TABLE lake.called.{name}")
            rows = [
                sorted(lake.sql(f"TABLE {reader}.called.{name}").collect())
                for reader in ("java_hadoop", "lake")
            ]
            assert rows[0] == rows[1]
            files = lake.sql(
                "SELECT record_count, value_counts, null_value_counts, "
                "map_filter(lower_bounds, (k, v) -> k != 3) AS lower, "
                "map_filter(upper_bounds, (k, v) -> k != 3) AS upper, partition, split_offsets "
                f"FROM java_hadoop.called.{name}.files"
            )
            # Java's result lacks the count of partitions.
            counts = [row.added_files_count for row in result.collect()]
            steps.append((result.schema, counts, rows[0], sorted(map(str, files.collect()))))
        mapping = lake.sql(
            f"SHOW TBLPROPERTIES java_hadoop.called.{name} ('schema.name-mapping.default')"
        ).collect()[0]["value"]
        actual.append((steps, json.loads(mapping)))
    assert actual[0] == actual[1]


@pytest.mark.nightly
@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_added_folders_of_other_formats(lake: Oracle, tmp_path: Path, file_format: str) -> None:
    """Partitions are folders `day=.../name=...`, and the files have no field ids."""
    source = tmp_path / "source"
    rows = (
        "SELECT id, id / 4D AS ratio, DATE'2026-01-01' + CAST(id % 2 AS INT) AS day FROM range(6)"
    )
    if file_format == "orc":
        lake.sql(rows).write.partitionBy("day").orc(str(source))
    else:
        fields = [{"name": "id", "type": "long"}, {"name": "ratio", "type": "double"}]
        for row in lake.sql(rows).collect():
            folder = source / f"day={row.day}"
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / f"{row.id}.avro").open("wb") as out:
                schema = {"type": "record", "name": "r", "fields": fields}
                fastavro.writer(out, schema, [{"id": row.id, "ratio": row.ratio}])
    name = f"called.added_{file_format}"
    lake.sql(
        f"CREATE TABLE java_hadoop.{name} (ratio DOUBLE, id BIGINT, day DATE) USING iceberg "
        "PARTITIONED BY (day)"
    )
    expected = sorted((row.ratio, row.id, row.day) for row in lake.sql(rows).collect())
    for filter_, days in ((", partition_filter => map('day', '2026-01-02')", {2}), ("", {1, 2})):
        lake.sql(f"DELETE FROM java_hadoop.{name}")
        lake.sql(f"REFRESH TABLE lake.{name}")
        lake.sql(
            f"CALL lake.system.add_files(table => '{name}', "
            f"source_table => '`{file_format}`.`{source}`'{filter_})"
        )
        lake.sql(f"REFRESH TABLE java_hadoop.{name}")
        for reader in ("java_hadoop", "lake"):
            actual = sorted(map(tuple, lake.sql(f"TABLE {reader}.{name}").collect()))
            assert actual == [row for row in expected if row[2].day in days], reader
    files = f"SELECT sum(record_count) FROM java_hadoop.{name}.files"
    counts = lake.sql(f"{files} WHERE partition.day = DATE'2026-01-01'")
    assert counts.collect() == [(3,)]
