"""Iceberg tables created from the files of Spark tables, by us and by Java: the same tables."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.support import avro_sources
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import our_table

pytestmark = pytest.mark.nightly

COLUMNS = (
    "b TINYINT, s SMALLINT COMMENT 'small', c CHAR(3), l ARRAY<INT>, r STRUCT<x: INT, y: STRING>, "
    "m MAP<STRING, INT>, at TIMESTAMP, local TIMESTAMP_NTZ, price DECIMAL(10, 2), raw BINARY, "
    "day DATE, n INT"
)


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as native_oracle:
        oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.snapped")
        oracle.sql("CREATE NAMESPACE plain")
        yield native_oracle
        oracle.sql("DROP NAMESPACE plain CASCADE")


def make(lake: Oracle, name: str, file_format: str, partitioned: bool) -> None:
    columns = COLUMNS
    if file_format == "orc":
        # We refuse timestamps in ORC files of Spark, whose time zone the files do not name.
        columns = columns.replace("at TIMESTAMP, local TIMESTAMP_NTZ", "at STRING, local STRING")
    lake.sql(
        f"CREATE TABLE plain.{name} ({columns}) USING {file_format} "
        + ("PARTITIONED BY (day, n) " if partitioned else "")
        + "TBLPROPERTIES ('owned.by' = 'us')"
    )
    lake.sql(
        f"INSERT INTO plain.{name} VALUES "
        "(1, 2, 'abc', array(1, null), struct(1, 'y'), map('k', 1), TIMESTAMP'2026-01-01', "
        "TIMESTAMP_NTZ'2026-01-01', 1.5, X'01', DATE'2026-01-01', 1), "
        "(2, null, 'd', null, null, null, null, null, null, null, null, 2), "
        "(3, 4, 'é', array(), struct(null, null), map(), TIMESTAMP'1900-01-01', "
        "TIMESTAMP_NTZ'1900-01-01', -1, X'', DATE'1999-12-31', null)"
    )


def facts(lake: Oracle, name: str) -> dict[str, Any]:
    """Return everything that the two tables must have in common."""
    table = our_table(lake, f"java_hadoop.snapped.{name}")
    properties = dict(table.properties)
    mapping = json.loads(properties.pop("schema.name-mapping.default"))
    for key in ("owner", "write.parquet.compression-codec"):
        properties.pop(key, None)
    snapshot = table.current_snapshot
    assert snapshot is not None
    return {
        "schema": table.schema,
        "spec": table.metadata.default_spec,
        "properties": properties,
        "mapping": mapping,
        "counts": {
            k: snapshot.summary[k] for k in ("operation", "added-data-files", "total-records")
        },
        "files": sorted(t.file_path.removeprefix("file:") for t in table.scan().plan_files()),
    }


@pytest.mark.parametrize(
    ("file_format", "partitioned"), [("parquet", True), ("parquet", False), ("orc", True)]
)
def test_snapshots(lake: Oracle, file_format: str, partitioned: bool) -> None:
    source = f"{file_format}_{partitioned}".lower()
    make(lake, source, file_format, partitioned)
    results = [
        lake.sql(
            f"CALL {catalog}.system.snapshot(source_table => 'plain.{source}', "
            f"table => '{prefix}snapped.{source}_{name}', properties => map('p', 'q'), "
            "parallelism => 2)"
        )
        for catalog, prefix, name in (
            ("java_hadoop", "java_hadoop.", "java"),
            ("lake", "", "ours"),
        )
    ]
    assert results[0].schema == results[1].schema
    assert results[0].collect() == results[1].collect()
    rows = sorted(map(str, lake.sql(f"TABLE plain.{source}").collect()))
    assert len(rows) == 3
    for name in ("java", "ours"):
        for reader in ("java_hadoop", "lake"):
            actual = lake.sql(f"TABLE {reader}.snapped.{source}_{name}").collect()
            assert sorted(map(str, actual)) == rows, (name, reader)
    theirs, ours = (facts(lake, f"{source}_{name}") for name in ("java", "ours"))
    assert ours == theirs
    lake.sql(f"INSERT INTO java_hadoop.snapped.{source}_ours TABLE plain.{source}")
    lake.sql(f"DELETE FROM java_hadoop.snapped.{source}_ours WHERE b = 1")
    assert sorted(map(str, lake.sql(f"TABLE plain.{source}").collect())) == rows


@pytest.mark.parametrize("has_local_times", [False, True])
def test_java_reads_avro_tables_that_it_does_not_take_over(
    lake: Oracle, tmp_path: Path, has_local_times: bool
) -> None:
    """Java needs the package spark-avro for a table USING avro, and this Spark lacks it."""
    name, without = f"records_{has_local_times}".lower(), "" if has_local_times else "local"
    columns = avro_sources.COLUMNS
    if without:
        columns = columns.replace("local TIMESTAMP_NTZ, ", "")
    lake.sql(
        f"CREATE TABLE plain.{name} ({columns}, day DATE) USING parquet "
        f"PARTITIONED BY (day) LOCATION '{tmp_path}/records'"
    )
    lake.sql(f"ALTER TABLE plain.{name} ADD PARTITION (day = DATE'2026-01-01')")
    rows = [
        {column: value for column, value in row.items() if column != without}
        for row in (avro_sources.FULL, avro_sources.EMPTY)
    ]
    avro_sources.write(tmp_path / "records/day=2026-01-01", rows, without=without)
    avro_sources.set_provider(lake.spark, "plain", name, "avro")
    with pytest.raises(PySparkException, match="Failed to find data source: avro"):
        lake.sql(f"CALL java_hadoop.system.snapshot('plain.{name}', 'java_hadoop.snapped.{name}')")
    result = lake.sql(f"CALL lake.system.snapshot('plain.{name}', 'snapped.{name}')").collect()
    assert result == [(1,)]
    ours, javas = (
        lake.spark.table(f"{catalog}.snapped.{name}").orderBy("id")
        for catalog in ("lake", "java_hadoop")
    )
    actual = ours.collect()
    assert [(r.id, r.price, r.day) for r in actual] == [
        (r["id"], r["price"], date(2026, 1, 1)) for r in rows
    ]
    if has_local_times:
        # Java has no reader of Avro's type local-timestamp-micros, which Spark's writer uses.
        with pytest.raises(Py4JJavaError, match=r"Unknown logical type: .*LocalTimestampMicros"):
            javas.collect()
    else:
        assert javas.collect() == actual


def test_partitions_without_a_folder_are_refused_or_left_out(lake: Oracle, tmp_path: Path) -> None:
    lake.sql(
        f"CREATE TABLE plain.holes (id INT, day DATE) USING parquet PARTITIONED BY (day) "
        f"LOCATION '{tmp_path}/holes'"
    )
    lake.sql("INSERT INTO plain.holes VALUES (1, DATE'2026-01-01'), (2, DATE'2026-01-02')")
    shutil.rmtree(tmp_path / "holes" / "day=2026-01-02")
    for catalog in ("java_hadoop", "lake"):
        call = (
            f"CALL {catalog}.system.snapshot(source_table => 'plain.holes', "
            f"table => '{catalog}.snapped.holes_{catalog}'"
        )
        with pytest.raises((PySparkException, Py4JJavaError), match="day=2026-01-02"):
            lake.sql(f"{call})")
        [(count,)] = lake.sql(f"{call}, ignore_missing_files => true)").collect()
        assert count == 1


def test_files_of_a_table(lake: Oracle) -> None:
    """Each side adds the files of a Spark table to its own Iceberg table."""
    make(lake, "added", "parquet", partitioned=True)
    actual = []
    for catalog, name in (("java_hadoop", "added_by_java"), ("lake", "added_by_us")):
        lake.sql(
            f"CREATE TABLE java_hadoop.snapped.{name} ({COLUMNS.replace('CHAR(3)', 'STRING')}) "
            "USING iceberg PARTITIONED BY (day, n)"
        )
        steps = []
        for source in ("'plain.added', map('n', '1')", "'plain.added', map('n', '2')"):
            lake.sql(f"REFRESH TABLE lake.snapped.{name}")
            [row] = lake.sql(
                f"CALL {catalog}.system.add_files('snapped.{name}', {source})"
            ).collect()
            lake.sql(f"REFRESH TABLE java_hadoop.snapped.{name}")
            rows = lake.sql(f"TABLE java_hadoop.snapped.{name}").collect()
            steps.append((row[0], sorted(map(str, rows))))
        actual.append(steps)
    assert actual[0] == actual[1]
    assert [count for count, _ in actual[0]] == [1, 1]
